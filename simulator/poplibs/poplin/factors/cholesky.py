"""Cholesky factors of positive definite matrices, block by block (poplin/Cholesky.hpp)."""

from __future__ import annotations

from collections.abc import Sequence as Numbers
from dataclasses import dataclass

import numpy as np

from simulator.codelets.costs import ceil_div
from simulator.codelets.products import triangular
from simulator.graph.errors import poplibs_error
from simulator.graph.graph import Graph
from simulator.graph.program import Copy, Execute, Sequence
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import (
    FLOAT,
    HALF,
    BoolArray,
    IntArray,
    Type,
    checked_shape,
    checked_type,
)
from simulator.graph.vertices.vertex import VertexGroup, cut_field
from simulator.logging import library_call
from simulator.poplibs.poplin.convolutions.create import PlanningCache
from simulator.poplibs.poplin.convolutions.matmul import (
    createMatMulGroupedInputLHS,
    createMatMulGroupedInputRHS,
    matMulGrouped,
    matMulGroupedAcc,
    transposeGroupedMatrix,
)
from simulator.poplibs.poplin.factors.square import (
    Options,
    as_batch,
    block_size_of,
    check_square,
    fill_part,
    tiles_with_most,
)
from simulator.poplibs.popops.regions import debug_name

BLOCK = 8  # rows of a block, where no option says otherwise


@library_call("POPLIN")
def createCholeskyInput(
    graph: Graph,
    type: Type,
    shape: Numbers[int],
    lower: bool,
    debugContext: str = "",
    options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor:
    """Add matrices [..., n, n] in blocks, those below the diagonal on tiles of their own.

    >>> from simulator import poplar, poplin
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> poplin.createCholeskyInput(trial.graph, poplar.FLOAT, [2, 8, 8], True).shape
    (2, 8, 8)
    """
    name = debug_name(debugContext, "cholesky")
    sizes = checked_shape(shape, name)
    check_square(sizes, name)
    rows = sizes[-1]
    size = min(block_size_of(options, BLOCK, name)[0], rows)
    blocks, groups = ceil_div(rows, size), int(np.prod(sizes[:-2], dtype=np.int64))
    layout = (groups, blocks, blocks, size, size)
    variable = graph.addVariable(checked_type(type, name), layout, debugContext or name)
    starts = np.arange(groups * blocks * blocks, dtype=np.int64) * size * size
    tiles = np.tile(block_tiles(blocks, size, graph.target.num_tiles).reshape(-1), groups)
    graph.map_ranges(variable, starts, starts + size * size, tiles)
    padded = variable.dimShuffle([0, 1, 3, 2, 4]).reshape((groups, blocks * size, blocks * size))
    tensor = padded.slice([0, 0, 0], [groups, rows, rows])
    return (tensor if lower else transposeGroupedMatrix(tensor)).reshape(sizes)


def block_tiles(blocks: int, size: int, tiles: int) -> IntArray:
    """Return the tile of each block [blocks, blocks].

    Blocks below the diagonal go by rows from tile 0 on, of an even number two by two together; what
    is above lies on the tiles from the third on, the upper half of the left half from the last one
    down.
    """
    side = 1 if blocks % 2 else 2
    begin = min(tiles - 1, 2)
    middle = (blocks * size // 2 + size - 1) // size
    row, column = np.indices((blocks, blocks))
    coarse = ceil_div(blocks, side)
    below = np.zeros((coarse, coarse), dtype=np.int64)
    below[np.tril_indices(coarse)] = (begin - 2 + np.arange(coarse * (coarse + 1) // 2)) % tiles
    table = below.repeat(side, axis=0).repeat(side, axis=1)[:blocks, :blocks].copy()
    right = ceil_div(blocks - middle, side)
    corner = (row < middle) & (column >= middle)
    number = (row // side) * right + (column - middle) // side
    table[corner] = ((begin + number) % tiles)[corner]
    lower_right = (row >= middle) & (column >= middle)
    _number_upper(table, lower_right, (middle, middle), side, (begin, 1), tiles)
    if middle > side:
        upper_left = (row < middle) & (column >= side) & (column < middle)
        _number_upper(table, upper_left, (0, side), side, (tiles - 1, -1), tiles)
    return table


def _number_upper(
    table: IntArray,
    part: BoolArray,
    corner: tuple[int, int],
    side: int,
    count: tuple[int, int],
    tiles: int,
) -> None:
    """Number the upper triangle of a part of the table, column by column."""
    row, column = np.indices(table.shape)
    across = column - corner[1]
    mask = part & (row - corner[0] < across - across % side + side)
    first, step = count
    table.T[mask.T] = (first + step * np.arange(mask.sum())) % tiles


@dataclass(frozen=True, slots=True, eq=False)
class _Blocks:
    """What all blocks of a factor share."""

    graph: Graph
    prog: Sequence
    size: int
    options: dict[str, object]
    name: str

    def factorise(self, a: Tensor) -> None:
        """Factorise matrices [g, n, n] in place: the first block, then what remains without it."""
        groups, rows, _ = a.shape
        size = self.size
        if rows <= size:
            self._factorise_block(a)
            return
        first = a.slice([0, 0, 0], [groups, size, size])
        self._factorise_block(first)
        below = a.slice([0, size, 0], [groups, rows, size])
        trailing = a.slice([0, size, size], [groups, rows, rows])
        lhs, rhs = self._laid_out(below, self._inverse(first))
        product = matMulGrouped(
            self.graph, lhs, rhs, self.prog, a.dtype, f"{self.name}/A21*A11IT", self.options
        )
        self.prog.add(Copy(product, below))
        operands = self._laid_out(below, transposeGroupedMatrix(below))
        matMulGroupedAcc(
            self.graph, trailing, -1.0, *operands, self.prog, f"{self.name}/A21*A21T", self.options
        )
        self.factorise(trailing)

    def _laid_out(self, lhs: Tensor, rhs: Tensor) -> tuple[Tensor, Tensor]:
        """Copy the operands of products to where their plan reads them."""
        makers = {
            "createLHS": createMatMulGroupedInputLHS,
            "createRHS": createMatMulGroupedInputRHS,
        }
        shapes = (lhs.dtype, lhs.dtype, lhs.shape, rhs.shape)
        copies = [
            make(self.graph, *shapes, f"{self.name}/{label}", self.options)
            for label, make in makers.items()
        ]
        for source, copy in zip((lhs, rhs), copies, strict=True):
            self.prog.add(Copy(source, copy))
        return copies[0], copies[1]

    def _factorise_block(self, a: Tensor) -> None:
        groups, rows, _ = a.shape
        begin = np.arange(groups, dtype=np.int64) * rows * rows
        fields = {"in": cut_field("in", "inout", a.flatten(), begin, begin + rows * rows)}
        cycles = triangular.cholesky_cycles(np.full(groups, rows), a.dtype)
        compute_set = self.graph.addComputeSet(f"{self.name}/cholesky")
        codelet, tiles = triangular.cholesky_codelet(a.dtype), tiles_with_most(self.graph, a)
        self.graph.add_vertices(VertexGroup(compute_set.id, codelet, tiles, fields, {}, cycles))
        self.prog.add(Execute(compute_set))

    def _inverse(self, a: Tensor) -> Tensor:
        """Return the transposed inverses of lower triangles; a vertex for a worker's each row."""
        graph, (groups, rows, _), workers = self.graph, a.shape, self.graph.target.workers
        out = graph.clone(a, f"{self.name}/inverse")
        parts = ceil_div(rows, workers)
        matrix, part = np.divmod(np.arange(groups * parts, dtype=np.int64), parts)
        column = part * workers
        begin = (matrix * rows + column) * rows
        end = (matrix * rows + np.minimum(column + workers, rows)) * rows
        low, high, tile = graph.tile_ranges(out.flatten())
        lies_on = tile[np.searchsorted(high, begin, side="right")]
        start = matrix * rows * rows
        fields = {
            "in": cut_field("in", "input", a.flatten(), start, start + rows * rows),
            "out": cut_field("out", "inout", out.flatten(), begin, end),
        }
        dim = np.full(len(column), rows)
        compute_set = graph.addComputeSet(f"{self.name}/triangularInverse_n={rows}")
        codelet = triangular.inverse_codelet(a.dtype)
        tiles = (part + lies_on) % graph.target.num_tiles
        cycles = triangular.inverse_cycles(dim, a.dtype)
        parameters = {"dim": dim, "colBegin": column}
        group = VertexGroup(compute_set.id, codelet, tiles, fields, parameters, cycles)
        graph.add_vertices(group)
        self.prog.add(Execute(compute_set))
        return out


@library_call("POPLIN")
def choleskyInPlace(
    graph: Graph,
    a: Tensor,
    lower: bool,
    prog: Sequence,
    debugContext: str = "",
    options: Options = None,
    cache: PlanningCache | None = None,
) -> None:
    """Replace symmetric positive definite matrices [..., n, n] by a triangular factor of each.

    `lower`: L with L L^T = A is in the lower triangle, else U with U^T U = A in the upper one; the
    other triangle becomes zero. Only one triangle of A is read.

    >>> from simulator import poplin
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> a = trial.tensor([[4.0, 2.0], [2.0, 2.0]])
    >>> poplin.choleskyInPlace(trial.graph, a, True, trial.prog)
    >>> trial.values(a)
    [[2.0, 0.0], [1.0, 1.0]]
    """
    name = debug_name(debugContext, "cholesky")
    check_square(a.shape, name)
    if a.dtype not in (FLOAT, HALF):
        raise poplibs_error(f"{name}: A is of type {a.dtype}; float or half is needed")
    size, products = block_size_of(options, BLOCK, name)
    batch = as_batch(a)
    with graph.debug_scope(name, "poplin"):
        matrices = batch if lower else transposeGroupedMatrix(batch)
        _Blocks(graph, prog, min(size, a.shape[-1]), products, name).factorise(matrices)
        above = np.triu(np.ones(a.shape[-2:], dtype=bool), 1)
        fill_part(graph, matrices, above, 0, prog)


@library_call("POPLIN")
def cholesky(
    graph: Graph,
    a: Tensor,
    lower: bool,
    prog: Sequence,
    debugContext: str = "",
    options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor:
    """Return a triangular factor of each of symmetric positive definite matrices [..., n, n].

    >>> from simulator import poplin
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> a = trial.tensor([[4.0, 2.0], [2.0, 2.0]])
    >>> trial.values(poplin.cholesky(trial.graph, a, True, trial.prog))
    [[2.0, 0.0], [1.0, 1.0]]
    """
    out = createCholeskyInput(graph, a.dtype, a.shape, lower, debugContext, options, cache)
    prog.add(Copy(a, out))
    choleskyInPlace(graph, out, lower, prog, debugContext, options, cache)
    return out
