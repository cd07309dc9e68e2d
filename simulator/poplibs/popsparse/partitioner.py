"""Buckets of non-zeros on the host, and matrices out of them (popsparse/SparsePartitioner.hpp)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simulator.graph.errors import poplibs_error
from simulator.graph.machine.target import Target
from simulator.graph.types import Array, IntArray, Type
from simulator.poplibs.popsparse.formats import COOMatrix, CSCMatrix, CSRMatrix
from simulator.poplibs.popsparse.params import Params
from simulator.poplibs.popsparse.plan import Options, SparsePlan, sparse_plan

AnyMatrix = CSRMatrix | CSCMatrix | COOMatrix


@dataclass(frozen=True, slots=True)
class SparsityDataImpl:
    """What a sparse tensor of the device holds: where its blocks are, and their values."""

    metaInfo: IntArray
    nzValues: Array


class Partitioner:
    """Puts the non-zeros of a matrix into the buckets of a plan, and takes them out again."""

    def __init__(
        self,
        params: Params,
        dataType: Type,
        target: Target,
        options: Options = None,
        cache: object = None,
        name: str = "",
    ) -> None:
        self._name = name or "Partitioner"
        self._plan = sparse_plan(target, params, dataType, options, self._name)

    def createSparsityDataImpl(self, matrix: AnyMatrix) -> SparsityDataImpl:
        """Return the buckets of a matrix; raises poplibs_error where a bucket has no room."""
        return fill_buckets(self._plan, matrix, self._name)

    def sparsityDataImplToCOOMatrix(self, data: SparsityDataImpl) -> COOMatrix:
        return COOMatrix.of(*blocks_of(self._plan, data))

    def sparsityDataImplToCSRMatrix(self, data: SparsityDataImpl) -> CSRMatrix:
        return CSRMatrix.of(*blocks_of(self._plan, data))

    def sparsityDataImplToCSCMatrix(self, data: SparsityDataImpl) -> CSCMatrix:
        return CSCMatrix.of(*blocks_of(self._plan, data))

    def getPlanPartitions(self) -> tuple[list[int], list[int], list[int]]:
        """Return where the parts of rows, of columns and of dense columns begin, in elements."""
        block = self._plan.block
        x, y, z = (self._plan.bounds(axis)[:-1] for axis in "xyz")
        return (x * block).tolist(), (y * block).tolist(), z.tolist()

    def getmetaInfoBucketElements(self) -> int:
        """Count the numbers of a bucket's meta-information."""
        return 1 + 2 * self._plan.room


def fill_buckets(plan: SparsePlan, matrix: AnyMatrix, name: str) -> SparsityDataImpl:
    """Put blocks into the bucket of their part, row by row."""
    rows, columns, values, part = _placed(plan, matrix, name)
    block, count = plan.block, plan.x * plan.y
    order = np.argsort(part, kind="stable")
    sizes = np.bincount(part, minlength=count)
    if int(sizes.max()) > plan.room:
        fullest = int(sizes.argmax())
        raise poplibs_error(
            f"{name}: {int(sizes.max())} blocks in part {divmod(fullest, plan.y)}; its bucket has "
            f"room for {plan.room}; raise metaInfoBucketOversizeProportion"
        )
    meta = np.zeros((count, 1 + 2 * plan.room), dtype=np.int64)
    table = np.zeros((count, plan.room, block, block))
    meta[:, 0] = sizes
    slot = np.arange(len(part)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    owner = part[order]
    meta[owner, 1 + slot] = (rows - plan.bounds("x")[part // plan.y])[order]
    meta[owner, 1 + plan.room + slot] = (columns - plan.bounds("y")[part % plan.y])[order]
    table[owner, slot] = values[order]
    return SparsityDataImpl(meta.reshape(-1), table.reshape(-1))


def fullest_bucket(plan: SparsePlan, matrix: AnyMatrix, name: str) -> int:
    """Count the blocks of the part that has most of them."""
    part = _placed(plan, matrix, name)[3]
    return int(np.bincount(part, minlength=plan.x * plan.y).max())


def _placed(
    plan: SparsePlan, matrix: AnyMatrix, name: str
) -> tuple[IntArray, IntArray, Array, IntArray]:
    """Return block row, block column, values and part of each block; raises poplibs_error."""
    rows, columns, values = matrix.coordinates()
    shape, block = (plan.params.rows, plan.params.inner), plan.block
    if matrix.blockDimensions != (block, block):
        raise poplibs_error(
            f"{name}: a matrix with blocks of {matrix.blockDimensions}; the plan has {block}"
        )
    last = int(rows.max(initial=0)) * block, int(columns.max(initial=0)) * block
    if last[0] >= shape[0] or last[1] >= shape[1]:
        raise poplibs_error(
            f"{name}: a block at row {last[0]}, column {last[1]}; the plan is for {shape[0]} x "
            f"{shape[1]}"
        )
    x, y = (_part(plan.bounds(axis), place) for axis, place in (("x", rows), ("y", columns)))
    return rows, columns, values, x * plan.y + y


def _part(bounds: IntArray, places: IntArray) -> IntArray:
    return np.searchsorted(bounds, places, side="right") - 1


def blocks_of(
    plan: SparsePlan, data: SparsityDataImpl
) -> tuple[tuple[int, int], IntArray, IntArray, Array]:
    """Return shape, block rows, block columns and values of the blocks of buckets."""
    meta = np.asarray(data.metaInfo, dtype=np.int64).reshape(-1, 1 + 2 * plan.room)
    values = np.asarray(data.nzValues).reshape(-1, plan.room, plan.block, plan.block)
    part, slot = np.nonzero(np.arange(plan.room) < meta[:, :1])
    rows = meta[part, 1 + slot] + plan.bounds("x")[part // plan.y]
    columns = meta[part, 1 + plan.room + slot] + plan.bounds("y")[part % plan.y]
    order = np.lexsort((columns, rows))
    shape = (plan.params.rows, plan.params.inner)
    return shape, rows[order], columns[order], values[part, slot][order]
