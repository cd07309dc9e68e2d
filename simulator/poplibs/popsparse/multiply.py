"""Products with a sparse matrix, and the gradients of its non-zeros."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from simulator.codelets.costs import ceil_div
from simulator.codelets.products import sparse as vertices
from simulator.graph.errors import poplibs_error
from simulator.graph.graph import Graph
from simulator.graph.program import Execute, Sequence
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import IntArray
from simulator.graph.vertices.vertex import Codelet, Direction, Field, VertexGroup, cut_ranges
from simulator.poplibs import popops
from simulator.poplibs.popsparse.plan import SparsePlan
from simulator.poplibs.popsparse.tensors import (
    SparseTensor,
    by_columns,
    from_columns,
    grid,
)

# A field: its way, its tensor, and where each vertex has it.
Cut = tuple[Direction, Tensor, IntArray, IntArray]
Cost = Callable[[IntArray, IntArray, IntArray], IntArray]


def multiply(
    graph: Graph,
    sparse: SparseTensor,
    plan: SparsePlan,
    dense: Tensor,
    prog: Sequence,
    name: str,
    *,
    transpose: bool,
) -> Tensor:
    """Multiply a sparse [m, k], or its transpose, by a dense matrix."""
    shape = (plan.params.rows, plan.params.inner)
    height, inner = shape[::-1] if transpose else shape
    if dense.rank() != 2 or dense.dim(0) != inner or dense.dtype != plan.dtype:
        needed = f"{plan.dtype}[{inner}, columns]"
        raise poplibs_error(f"{name}: dense operand {dense!r}; {needed} is needed")
    with graph.debug_scope(name, "popsparse"):
        work = _Work(graph, plan, dense.dim(1), name)
        # Sums over y, or for the transpose over x, are added up by parts.
        parts = plan.x if transpose else plan.y
        out = graph.addVariable(plan.partials, [parts, height * dense.dim(1)], f"{name}/partials")
        compute_set = graph.addComputeSet(f"{name}/multiply")
        work.add_products(compute_set.id, sparse, by_columns(dense, work.columns), out, transpose)
        prog.add(Execute(compute_set))
        if parts > 1:
            params = popops.ReduceParams(popops.Operation.ADD)
            total = popops.reduce(graph, out, plan.dtype, [0], params, prog, f"{name}/Reduce")
        else:
            total = out[0]
            if total.dtype != plan.dtype:
                total = popops.cast(graph, total, plan.dtype, prog, f"{name}/Cast")
        return from_columns(total, height, work.columns)


def gradient_of_nonzeros(
    graph: Graph,
    meta: Tensor,
    plan: SparsePlan,
    up: Tensor,
    dense: Tensor,
    prog: Sequence,
    name: str,
) -> Tensor:
    """Return the gradients of non-zeros of [m, k], of `up` [m, n] and a dense [k, n]."""
    with graph.debug_scope(name, "popsparse"):
        work = _Work(graph, plan, dense.dim(1), name)
        size = plan.x * plan.y * plan.room * plan.block**2
        out = graph.addVariable(plan.partials, [work.parts, size], f"{name}/partials")
        compute_set = graph.addComputeSet(f"{name}/gradW")
        both = (by_columns(up, work.columns), by_columns(dense, work.columns))
        work.add_gradients(compute_set.id, meta, both, out)
        prog.add(Execute(compute_set))
        if work.parts > 1:
            params = popops.ReduceParams(popops.Operation.ADD)
            return popops.reduce(graph, out, plan.dtype, [0], params, prog, f"{name}/Reduce")
        total = out[0]
        if total.dtype != plan.dtype:
            total = popops.cast(graph, total, plan.dtype, prog, f"{name}/Cast")
        return total


class _Work:
    """The vertices of a plan for a dense operand of so many columns, in at most `z` parts."""

    def __init__(self, graph: Graph, plan: SparsePlan, columns: int, name: str) -> None:
        self.graph, self.plan, self.name = graph, plan, name
        self.parts = min(plan.z, columns)
        self.columns = np.arange(self.parts + 1) * columns // self.parts
        self.x, self.y, self.z = grid(plan.x, plan.y, self.parts)
        self.tiles = plan.tile(self.x, self.y, self.z)
        self.rows = plan.bounds("x") * plan.block
        self.inner = plan.bounds("y") * plan.block
        self.bucket = self.x * plan.y + self.y

    def add_products(
        self, compute_set: int, sparse: SparseTensor, dense: Tensor, out: Tensor, transpose: bool
    ) -> None:
        """Add the vertices of a product; each writes its part of the sums on its tile."""
        plan, target = self.plan, self.graph.target
        into, read = (self.inner, self.rows) if transpose else (self.rows, self.inner)
        row, column = (self.y, self.x) if transpose else (self.x, self.y)
        s = self._block(read, column)
        q = self._block(into, row)
        offset = (self.x if transpose else self.y) * out.dim(1)
        low, high = offset + q[0], offset + q[1]
        self.graph.map_ranges(out, low, high, self.tiles)
        block = plan.block

        def codelet(rows: int, columns: int) -> Codelet:
            sizes = (block, rows, columns)
            kinds = (plan.dtype, plan.partials)
            return vertices.product_codelet(*kinds, *sizes, transpose=transpose)

        def cost(rows: IntArray, nonzeros: IntArray, columns: IntArray) -> IntArray:
            if block > 1:
                return vertices.blocks(rows, nonzeros, columns, block, plan.dtype, target)
            kind = vertices.transposed if transpose else vertices.elements
            return kind(rows, ceil_div(nonzeros, rows), columns, plan.dtype, target)

        fields: dict[str, Cut] = {
            "s": ("input", dense, *s),
            "q": ("output", out.flatten(), low, high),
        }
        fields |= self._buckets(sparse.metaInfo, ("r", "input", sparse.nzValues, self.bucket))
        self._add(compute_set, codelet, cost, fields)

    def add_gradients(
        self, compute_set: int, meta: Tensor, both: tuple[Tensor, Tensor], out: Tensor
    ) -> None:
        """Add the vertices of gradients; each part of columns has sums of its own."""
        plan, target, block = self.plan, self.graph.target, self.plan.block
        size = plan.room * block**2
        place = self.z * (plan.x * plan.y) + self.bucket
        self.graph.map_ranges(out, place * size, (place + 1) * size, self.tiles)

        def codelet(rows: int, columns: int) -> Codelet:
            kinds = (plan.dtype, plan.partials)
            return vertices.gradient_codelet(*kinds, block, rows, columns)

        def cost(rows: IntArray, nonzeros: IntArray, columns: IntArray) -> IntArray:
            if block > 1:
                return vertices.blocks(rows, nonzeros, columns, block, plan.dtype, target)
            share = ceil_div(nonzeros, rows)
            return vertices.gradient(rows, share, columns, plan.dtype, target)

        fields: dict[str, Cut] = {
            "qGrad": ("input", both[0], *self._block(self.rows, self.x)),
            "s": ("input", both[1], *self._block(self.inner, self.y)),
        }
        fields |= self._buckets(meta, ("rGrad", "output", out.flatten(), place))
        self._add(compute_set, codelet, cost, fields)

    def _block(self, rows: IntArray, part: IntArray) -> tuple[IntArray, IntArray]:
        """Return where a part of rows and columns of a matrix is, laid by columns."""
        widths = np.diff(self.columns)[self.z]
        begin = self.columns[self.z] * int(rows[-1])
        return begin + rows[part] * widths, begin + rows[part + 1] * widths

    def _buckets(
        self, meta: Tensor, values: tuple[str, Direction, Tensor, IntArray]
    ) -> dict[str, Cut]:
        plan = self.plan
        label, way, tensor, place = values
        length, size = 1 + 2 * plan.room, plan.room * plan.block**2
        return {
            "metaInfo": ("input", meta, self.bucket * length, (self.bucket + 1) * length),
            label: (way, tensor, place * size, (place + 1) * size),
        }

    def _add(
        self,
        compute_set: int,
        codelet: Callable[[int, int], Codelet],
        cost: Cost,
        fields: dict[str, Cut],
    ) -> None:
        """Add a group for each size of parts: they differ by at most one row or column."""
        block = self.plan.block
        rows = np.diff(self.rows)[self.x] // block
        inner = np.diff(self.inner)[self.y] // block
        widths = np.diff(self.columns)[self.z]
        sizes = np.stack([rows, inner, widths], axis=1)
        for size in np.unique(sizes, axis=0):
            pick = np.flatnonzero((sizes == size).all(axis=1))
            ones = np.ones(len(pick), np.int64)
            cut: dict[str, Field] = {
                name: cut_ranges(name, way, tensor, low[pick], high[pick], ones)
                for name, (way, tensor, low, high) in fields.items()
            }
            nonzeros = ones * self.plan.nonzeros
            cycles = cost(rows[pick], nonzeros, widths[pick])
            kind = codelet(int(size[0]), int(size[1]))
            group = VertexGroup(compute_set, kind, self.tiles[pick], cut, {}, cycles)
            self.graph.add_vertices(group)
