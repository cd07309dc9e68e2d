"""LU factors of a matrix (poplin/experimental/LuFactorization.hpp)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simulator.codelets.products import lu as vertices
from simulator.graph.errors import poplibs_error
from simulator.graph.geometry.intervals import spread
from simulator.graph.graph import Graph
from simulator.graph.program import Copy, Execute, Sequence
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import FLOAT, HALF, IntArray
from simulator.graph.vertices.vertex import Codelet, Direction, Field, VertexGroup, cut_ranges
from simulator.logging import library_call
from simulator.poplibs.poplin.factors.square import fill_part, part_of
from simulator.poplibs.popops.elementwise.cast import cast
from simulator.poplibs.popops.regions import debug_name
from simulator.poplibs.poputil import mapTensorLinearly

BLOCKS = ((768, 6), (1048, 12), (1200, 24))  # below so many rows or columns blocks are so large
LARGEST, DEPTH = 48, 6  # else they are; so many rows and columns are factorised at once


@library_call("POPLIN")
def LUFactorization(
    graph: Graph, input: Tensor, seq: Sequence, debugContext: str = ""
) -> tuple[Tensor, Tensor]:
    """Return L [m, m], lower with ones on its diagonal, and U [m, n], upper, of a matrix [m, n].

    There is no pivoting: no element that is divided by may be zero. Of halves the factors are
    floats. As in PopLibs, blocks are spread over the tiles and six rows and columns are taken at
    a time: the corner, what is beside and below it, then all the rest.

    >>> from simulator import poplin
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> a = trial.tensor([[4.0, 2.0], [2.0, 2.0]])
    >>> trial.values(*poplin.experimental.LUFactorization(trial.graph, a, trial.prog))
    [[[1.0, 0.0], [0.5, 1.0]], [[4.0, 2.0], [0.0, 1.0]]]
    """
    name = debug_name(debugContext, "LUFactorization")
    if input.rank() != 2 or input.dtype not in (FLOAT, HALF) or not input.numElements():
        raise poplibs_error(f"{name}: {input!r}; a matrix of float or half is needed")
    rows, columns = input.shape
    with graph.debug_scope(name, "poplin"):
        lower = graph.addVariable(FLOAT, [rows, rows], f"{name}/L")
        mapTensorLinearly(graph, lower)
        work = _Factors.of(graph, seq, rows, columns, name)
        source = input if input.dtype == FLOAT else cast(graph, input, FLOAT, seq, name)
        seq.add(Copy(source, work.upper, name=f"{name}/copy"))
        for start in range(0, min(rows, columns), DEPTH):
            work.advance(start, min(DEPTH, min(rows, columns) - start))
        _split(graph, lower, work.upper, seq, name)
    return lower, work.upper


def _split(graph: Graph, lower: Tensor, upper: Tensor, seq: Sequence, name: str) -> None:
    """Move what is below the diagonal to L, and put zeros there."""
    rows, columns = upper.shape
    width = min(rows, columns)
    below = np.tri(rows, width, -1, dtype=bool)
    mask = np.zeros((rows, columns), dtype=bool)
    mask[:, :width] = below
    all_of = np.zeros((rows, rows), dtype=bool)
    all_of[:, :width] = below
    one = np.eye(rows, dtype=bool)
    whole, part = lower.expand([0]), upper.expand([0])
    seq.add(Copy(part_of(part, mask), part_of(whole, all_of), name=f"{name}/L"))
    fill_part(graph, whole, ~all_of & ~one, 0, seq)
    fill_part(graph, whole, one, 1, seq)
    if mask.any():
        fill_part(graph, part, mask, 0, seq)


@dataclass(frozen=True, slots=True)
class _Factors:
    """U and the tile of each of its blocks."""

    graph: Graph
    seq: Sequence
    upper: Tensor
    size: int
    tiles: IntArray
    name: str

    @classmethod
    def of(cls, graph: Graph, seq: Sequence, rows: int, columns: int, name: str) -> _Factors:
        """Add U, block by block: the corner, its row and its column together, then the next."""
        shorter = min(rows, columns)
        size = next((block for limit, block in BLOCKS if shorter < limit), LARGEST)
        down, across = np.indices((-(-rows // size), -(-columns // size)))
        order = np.lexsort(
            ((down > across).ravel(), np.maximum(down, across).ravel(),
             np.minimum(down, across).ravel())
        )  # fmt: skip
        tiles = np.empty(down.size, dtype=np.int64)
        tiles[order] = np.arange(down.size) % graph.target.num_tiles
        upper = graph.addVariable(FLOAT, [rows, columns], f"{name}/U")
        table = tiles.reshape(down.shape)
        edges = np.minimum(np.arange(down.shape[1] + 1) * size, columns)
        begin = np.arange(rows)[:, None] * columns
        low, high = (begin + edges[:-1]).ravel(), (begin + edges[1:]).ravel()
        graph.map_ranges(upper, low, high, table[np.arange(rows) // size].ravel())
        return cls(graph, seq, upper, size, table, name)

    def advance(self, start: int, depth: int) -> None:
        """Factorise the next rows and columns, and update what is left."""
        rows, columns = self.upper.shape
        end, target = start + depth, self.graph.target
        here = np.array([[start, end, start, end]])
        right = self._pieces([(start, end)], _cuts(end, columns, self.size))
        below = self._pieces(_cuts(end, rows, self.size), [(start, end)])
        rest = self._pieces(_cuts(end, rows, self.size), _cuts(end, columns, self.size))
        n = np.full(1, depth)
        self._run("csCore", [(vertices.CORE, here, {}, vertices.core(n, target))], depth)
        steps = []
        for codelet, pieces, cost, axis in (
            (vertices.ROW, right, vertices.row, 2),
            (vertices.COLUMN, below, vertices.column, 0),
        ):
            count = pieces[:, axis + 1] - pieces[:, axis]
            core = {"sliceLUCore": np.broadcast_to(here, (len(pieces), 4))}
            steps.append((codelet, pieces, core, cost(n, count, target)))
        self._run("cs_rows_cols", steps, depth)
        high, wide = rest[:, 1] - rest[:, 0], rest[:, 3] - rest[:, 2]
        span = np.broadcast_to([start, end], (len(rest), 2))
        beside = {
            "sliceLURow": np.hstack([span, rest[:, 2:]]),
            "sliceLUCol": np.hstack([rest[:, :2], span]),
        }
        cost_of_rest = vertices.block(n, high, wide, target)
        self._run("csBlocks", [(vertices.BLOCK, rest, beside, cost_of_rest)], depth)

    def _pieces(self, down: list[tuple[int, int]], across: list[tuple[int, int]]) -> IntArray:
        """List the pieces [top, bottom, left, right] of rows and columns."""
        pieces = [(*rows, *columns) for rows in down for columns in across]
        return np.array(pieces, dtype=np.int64).reshape(-1, 4)

    def _run(
        self,
        label: str,
        steps: list[tuple[Codelet, IntArray, dict[str, IntArray], IntArray]],
        depth: int,
    ) -> None:
        """Add the vertices of pieces, each on the tile of its block."""
        if not any(len(pieces) for _, pieces, *_ in steps):
            return
        compute_set = self.graph.addComputeSet(f"{self.name}/{label}")
        for codelet, pieces, others, cycles in steps:
            if len(pieces):
                fields = {"sliceLU": self._field("sliceLU", "inout", pieces)}
                fields |= {key: self._field(key, "input", part) for key, part in others.items()}
                parameters = {
                    "rows": pieces[:, 1] - pieces[:, 0],
                    "columns": pieces[:, 3] - pieces[:, 2],
                    "depth": np.full(len(pieces), depth),
                }
                tile = self.tiles[pieces[:, 0] // self.size, pieces[:, 2] // self.size]
                self.graph.add_vertices(
                    VertexGroup(compute_set.id, codelet, tile, fields, parameters, cycles)
                )
        self.seq.add(Execute(compute_set))

    def _field(self, name: str, direction: Direction, pieces: IntArray) -> Field:
        """Return the rows of each piece, one after another."""
        top, bottom, left, right = pieces.T
        height = bottom - top
        row = spread(top, height) * self.upper.dim(1)
        low, high = row + np.repeat(left, height), row + np.repeat(right, height)
        return cut_ranges(name, direction, self.upper.flatten(), low, high, height, as_rows=True)


def _cuts(begin: int, end: int, size: int) -> list[tuple[int, int]]:
    """List the parts of [begin, end) between the edges of blocks."""
    if begin >= end:
        return []
    edges = [begin, *range((begin // size + 1) * size, end, size), end]
    return list(zip(edges[:-1], edges[1:], strict=True))
