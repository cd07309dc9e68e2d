"""Sparse tensors of the device, and dense ones that lie as a sparse product reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from simulator.graph.errors import poplibs_error
from simulator.graph.geometry.intervals import as_int64
from simulator.graph.graph import Graph
from simulator.graph.tensors.tensor import Tensor, concat
from simulator.graph.types import UNSIGNED_SHORT, IntArray, Type
from simulator.poplibs.popsparse.plan import SparsePlan


@dataclass(frozen=True, slots=True)
class SparseTensor:
    """Where the blocks of a sparse matrix are, and their values: a bucket for each part.

    One whose places never change has no tensor of them that a host could write.
    """

    metaInfo: Tensor
    nzValues: Tensor
    opMetaData: Any = None

    def getMetaInfoTensor(self) -> Tensor:
        return self.metaInfo

    def getNzValuesTensor(self) -> Tensor:
        return self.nzValues

    def getOpMetaData(self) -> Any:
        return self.opMetaData

    def plan(self, name: str) -> SparsePlan:
        """Return the plan by which a tensor was created; raises poplibs_error."""
        if not isinstance(self.opMetaData, SparsePlan):
            raise poplibs_error(
                f"{name}: a sparse tensor without a plan; give the one that was created, or its "
                "getOpMetaData()"
            )
        return self.opMetaData


def add_buckets(
    graph: Graph, plan: SparsePlan, name: str, meta: IntArray | None = None
) -> SparseTensor:
    """Add the buckets of a plan, each on the first tile of its part; `meta` never changes."""
    parts = plan.x * plan.y
    shape = [parts * (1 + 2 * plan.room)]
    if meta is None:
        info = graph.addVariable(UNSIGNED_SHORT, shape, f"{name}/metaInfo")
    else:
        info = graph.addConstant(UNSIGNED_SHORT, shape, meta, f"{name}/metaInfo")
    values = graph.addVariable(plan.dtype, [parts * plan.room * plan.block**2], f"{name}/nzValues")
    tiles = np.arange(parts) * plan.z
    for tensor in (info, values):
        map_parts(graph, tensor, tiles)
    return SparseTensor(info, values, plan)


def map_parts(graph: Graph, tensor: Tensor, tiles: IntArray) -> None:
    """Put equal parts of a tensor on tiles, in order."""
    size = tensor.numElements() // max(len(tiles), 1)
    begins = np.arange(len(tiles)) * size
    graph.map_ranges(tensor, begins, begins + size, tiles)


def dense_operand(
    graph: Graph, plan: SparsePlan, dtype: Type, name: str, *, by: str, columns: IntArray
) -> Tensor:
    """Add a dense matrix whose rows are cut like the columns of the sparse one (y), or its rows.

    Each part of rows and of columns is shared by the tiles that read it.
    """
    rows = plan.bounds(by) * plan.block
    widths, height = np.diff(columns), int(rows[-1])
    memory = graph.addVariable(dtype, [height * int(columns[-1])], name)
    across = plan.x if by == "y" else plan.y
    z, part, share = (axis.reshape(-1) for axis in np.indices((len(widths), len(rows) - 1, across)))
    row_ends = [rows[part] + np.diff(rows)[part] * (share + step) // across for step in (0, 1)]
    low, high = (height * columns[z] + end * widths[z] for end in row_ends)
    places = (share, part, z) if by == "y" else (part, share, z)
    graph.map_ranges(memory, low, high, plan.tile(*places))
    return from_columns(memory, height, columns)


def dense_matrix(operand: Tensor, name: str) -> Tensor:
    """Return the matrix of a dense operand [1, rows, columns]; raises poplibs_error for another."""
    if operand.rank() != 3 or operand.dim(0) != 1:
        raise poplibs_error(f"{name}: dense operand {operand!r}; [1, rows, columns] is needed")
    return operand[0]


def from_columns(memory: Tensor, height: int, columns: IntArray) -> Tensor:
    """View parts of columns, laid one after another, as a matrix."""
    ends = (columns * height).tolist()
    parts = [
        memory[low:high].reshape([height, (high - low) // height])
        for low, high in zip(ends[:-1], ends[1:], strict=True)
    ]
    return concat(parts, 1)


def by_columns(matrix: Tensor, columns: IntArray) -> Tensor:
    """Lay parts of the columns of a matrix one after another."""
    ends = columns.tolist()
    parts = [matrix.slice(low, high, 1).flatten()
             for low, high in zip(ends[:-1], ends[1:], strict=True)]  # fmt: skip
    return concat(parts)


def grid(*sizes: int) -> Sequence[IntArray]:
    """Number the parts of several axes."""
    return [as_int64(axis.reshape(-1)) for axis in np.indices(sizes)]
