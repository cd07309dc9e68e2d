"""QR factors of a matrix by reflections (poplin/experimental/QRFactorization.hpp)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from simulator.codelets.costs import ceil_div
from simulator.codelets.products import qr as vertices
from simulator.graph.errors import poplibs_error
from simulator.graph.graph import Graph
from simulator.graph.option_table import Option, checked, defaults
from simulator.graph.program import Copy, Execute, Sequence
from simulator.graph.tensors.tensor import Tensor, concat
from simulator.graph.types import FLOAT, IntArray, Type, checked_type
from simulator.graph.vertices.vertex import Codelet, Field, VertexGroup, cut_field, cut_ranges
from simulator.logging import library_call
from simulator.poplibs.popops import Operation, countedLoop, reduceWithOutput
from simulator.poplibs.popops.regions import debug_name
from simulator.poplibs.poputil import mapTensorLinearly

Cost = Callable[[IntArray, IntArray], IntArray]
OPTIONS = {"rowsPerIteration": Option(32, "columns of A that are factors of one loop")}


@library_call("POPLIN")
def createQRFactorizationMatrices(
    graph: Graph, type: Type, m: int, n: int, debugContext: str = ""
) -> tuple[Tensor, Tensor]:
    """Add A [m, n] and Q [m, m]; columns of A, then rows of Q, are spread over the tiles.

    >>> from simulator import poplar, poplin
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> a, q = poplin.experimental.createQRFactorizationMatrices(trial.graph, poplar.FLOAT, 3, 2)
    >>> a.shape, q.shape
    ((3, 2), (3, 3))
    """
    name = debug_name(debugContext, "QRFactorization")
    _check_height(m, n, name)
    dtype = checked_type(type, name)
    a = graph.addVariable(dtype, [n, m], f"{name}/A")
    q = graph.addVariable(dtype, [m, m], f"{name}/Q")
    begin, end = _spread(n + m, graph.target.num_tiles)
    tiles = np.arange(len(begin))
    for tensor, first, count in ((a, 0, n), (q, n, m)):
        low, high = (np.clip(edge - first, 0, count) * m for edge in (begin, end))
        has = low < high
        graph.map_ranges(tensor, low[has], high[has], tiles[has])
    return a.transpose(), q


@library_call("POPLIN")
def QRFactorization(
    graph: Graph,
    A: Tensor,
    Q: Tensor,
    prog: Sequence,
    debugContext: str = "",
    options: Mapping[str, object] | None = None,
) -> None:
    """Replace A [m, n] by R, and Q [m, m], the identity, by the Q of A = Q R; m is at least n.

    Householder's reflections, a column of A at a time. An element of the diagonal that is zero when
    its column is reached gives NaN, as in PopLibs. Below the diagonal R has what rounding leaves.

    >>> from simulator import poplin
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> a, q = trial.tensor([[3.0], [4.0]]), trial.tensor([[1.0, 0.0], [0.0, 1.0]])
    >>> poplin.experimental.QRFactorization(trial.graph, a, q, trial.prog)
    >>> [[round(x, 5) for x in row] for row in trial.values(a)]
    [[-5.0], [0.0]]
    """
    name = debug_name(debugContext, "QRFactorization")
    _check(A, Q, name)
    step = int(defaults(OPTIONS, checked(OPTIONS, options or {}, name))["rowsPerIteration"])
    if step < 1:
        raise poplibs_error(f"{name}: rowsPerIteration is {step}; at least 1 is needed")
    with graph.debug_scope(name, "poplin"):
        work = _Reflections.of(graph, A, Q, name)
        columns = A.dim(1)
        for first in range(0, columns, step):
            prog.add(work.loop(first, min(step, columns - first)))


def _check_height(m: int, n: int, name: str) -> None:
    if not 1 <= n <= m:
        raise poplibs_error(f"{name}: A is [{m}, {n}]; at least as many rows as columns are needed")


def _check(a: Tensor, q: Tensor, name: str) -> None:
    """Raise poplibs_error where the matrices are none that can be factors."""
    if a.rank() != 2 or q.rank() != 2:
        raise poplibs_error(f"{name}: A is {list(a.shape)}, Q {list(q.shape)}; two matrices needed")
    _check_height(a.dim(0), a.dim(1), name)
    if q.shape != (a.dim(0), a.dim(0)):
        raise poplibs_error(f"{name}: Q is {list(q.shape)}; [{a.dim(0)}, {a.dim(0)}] is needed")
    if a.dtype != FLOAT or q.dtype != FLOAT:
        raise poplibs_error(f"{name}: A is {a.dtype}, Q {q.dtype}; only float is supported")


def _spread(count: int, tiles: int) -> tuple[IntArray, IntArray]:
    """Return begin and end of each tile's share of a count; the first tiles have one more."""
    shares = count // tiles + (np.arange(tiles) < count % tiles)
    end = np.cumsum(shares)
    begin = end - shares
    has = begin < count
    return begin[has], end[has]


@dataclass(frozen=True, slots=True)
class _Reflections:
    """The columns of A and the rows of Q, and the vectors of a step."""

    graph: Graph
    columns: Tensor  # [n, m], A transposed
    q: Tensor
    diagonals: Tensor
    squares: Tensor
    vector: Tensor
    sums: tuple[Tensor, Tensor]  # of the squares and of what is on the diagonal
    name: str

    @classmethod
    def of(cls, graph: Graph, a: Tensor, q: Tensor, name: str) -> _Reflections:
        """Add the vectors of a step."""
        workers = graph.target.workers

        def added(label: str, shape: list[int], grain: int) -> Tensor:
            tensor = graph.addVariable(FLOAT, shape, f"{name}/{label}")
            mapTensorLinearly(graph, tensor, grain, grain)
            return tensor

        return cls(
            graph,
            a.transpose(),
            q,
            diagonals=added("diagonalValueVector", [a.dim(0)], workers),
            squares=added("rowToProcess", [a.dim(0)], workers),
            vector=added("v", [a.dim(0)], workers),
            sums=(added("dotProduct", [], 1), added("diagonalValue", [], 1)),
            name=name,
        )

    def loop(self, first: int, count: int) -> Sequence:
        """Return the loop over so many columns; vectors are what is from the first's row on."""
        size = self.columns.dim(1) - first
        diagonals, squares, vector = (
            part.slice(0, size) for part in (self.diagonals, self.squares, self.vector)
        )

        def body(padding: Tensor) -> Sequence:
            steps = Sequence()
            self._copy(padding, first, count, diagonals, squares, steps)
            steps.add(Copy(squares, vector, name=f"{self.name}/v"))
            self._by_workers(
                "partialSquareElementsSet", vertices.SQUARE, vertices.square_cycles,
                {"rowToProcess": squares}, {"padding": padding}, steps,
            )  # fmt: skip
            self._add_up(diagonals, squares, steps)
            self._by_workers(
                "HouseholderSet", vertices.REFLECT, vertices.reflect_cycles, {"v": vector},
                {"dotProduct": self.sums[0], "padding": padding, "diagonalValue": self.sums[1]},
                steps,
            )  # fmt: skip
            self._update(padding, first, vector, steps)
            return steps

        return countedLoop(self.graph, count, body, debugContext=f"{self.name}/from {first}")

    def _shares(self, count: int, whole: int) -> tuple[IntArray, IntArray]:
        """Return the tiles' parts of `count` elements, as `whole` would be spread by workers."""
        target = self.graph.target
        begin, end = _spread(ceil_div(whole, target.workers), target.num_tiles)
        begin, end = begin * target.workers, np.minimum(end * target.workers, count)
        return begin[begin < count], end[begin < count]

    def _copy(
        self, padding: Tensor, first: int, count: int, diagonals: Tensor, row: Tensor,
        prog: Sequence,
    ) -> None:  # fmt: skip
        """Add a vertex for each tile's part of the column, which reads a row of all columns."""
        rows, height = self.columns.shape
        begin, end = self._shares(row.numElements(), rows + height)
        part = self.columns.slice([first, first], [first + count, height]).transpose().flatten()
        low = np.arange(row.numElements()) * count
        fields = {
            "copiedRow": cut_field("copiedRow", "output", row, begin, end),
            "diagonalValueVector": cut_field(
                "diagonalValueVector", "output", diagonals, begin, end
            ),
            "A": cut_ranges("A", "input", part, low, low + count, end - begin, as_rows=True),
        }
        cycles = vertices.copy_cycles(end - begin)
        group = fields | {"padding": _shared("padding", padding, len(begin))}
        self._execute("rowCopySet", vertices.COPY, group, {"offset": begin}, cycles, prog)

    def _by_workers(
        self, label: str, codelet: Codelet, cost: Cost, changed: dict[str, Tensor],
        read: dict[str, Tensor], prog: Sequence,
    ) -> None:  # fmt: skip
        """Add a vertex for each tile's part of a vector that changes in place."""
        ((name, vector),) = changed.items()
        begin, end = self._shares(vector.numElements(), vector.numElements())
        fields = {name: cut_field(name, "inout", vector, begin, end)}
        fields |= {key: _shared(key, tensor, len(begin)) for key, tensor in read.items()}
        cycles = cost(end - begin, begin)
        self._execute(label, codelet, fields, {"offset": begin}, cycles, prog)

    def _add_up(self, diagonals: Tensor, squares: Tensor, prog: Sequence) -> None:
        """Add up the squares, and the one element of the diagonal among zeros."""
        both = concat([squares.expand([0]), diagonals.expand([0])], 0)
        sums = concat([one.reshape([1]) for one in self.sums], 0)
        reduceWithOutput(self.graph, both, sums, [1], Operation.ADD, prog, self.name)

    def _update(self, padding: Tensor, first: int, vector: Tensor, prog: Sequence) -> None:
        """Add a vertex for each tile's columns of A and rows of Q, from the first's row on."""
        height = self.columns.dim(1)
        parts = [one.slice(first, height, 1) for one in (self.columns, self.q)]
        rows, size = concat(parts, 0), height - first
        begin, end = _spread(rows.dim(0), self.graph.target.num_tiles)
        low = np.arange(rows.dim(0)) * size
        fields = {
            "AQRows": cut_ranges(
                "AQRows", "inout", rows.flatten(), low, low + size, end - begin, as_rows=True
            ),
            "v": _shared("v", vector, len(begin)),
            "padding": _shared("padding", padding, len(begin)),
        }
        sizes = np.full(len(begin), size)
        cycles = vertices.update_cycles(end - begin, sizes)
        self._execute("dotProductsSet", vertices.UPDATE, fields, {}, cycles, prog)

    def _execute(
        self, label: str, codelet: Codelet, fields: dict[str, Field],
        parameters: dict[str, IntArray], cycles: IntArray, prog: Sequence,
    ) -> None:  # fmt: skip
        """Add vertices, one on each of the first tiles."""
        compute_set = self.graph.addComputeSet(f"{self.name}/{label}")
        tiles = np.arange(len(cycles))
        group = VertexGroup(compute_set.id, codelet, tiles, fields, parameters, cycles)
        self.graph.add_vertices(group)
        prog.add(Execute(compute_set))


def _shared(name: str, tensor: Tensor, vertices: int) -> Field:
    """Return the whole of a tensor for each vertex."""
    zeros = np.zeros(vertices, dtype=np.int64)
    return cut_field(name, "input", tensor.flatten(), zeros, zeros + tensor.numElements())
