"""Systems of equations whose matrix is triangular (poplin/TriangularSolve.hpp).

Large systems are halved until a block is solved row by row: by one vertex for a single column, else
by products of each row with what is solved.
"""

from __future__ import annotations

from collections.abc import Sequence as Numbers
from dataclasses import dataclass, field
from math import prod

import numpy as np

from simulator.codelets.costs import ceil_div
from simulator.codelets.products import triangular
from simulator.graph.errors import poplibs_error
from simulator.graph.graph import Graph
from simulator.graph.program import Copy, Execute, Sequence
from simulator.graph.tensors.tensor import Tensor, concat
from simulator.graph.types import FLOAT, HALF, IntArray, Type, checked_shape, checked_type
from simulator.graph.vertices.vertex import VertexGroup, cut_field
from simulator.logging import library_call
from simulator.poplibs.poplin.convolutions.create import PlanningCache
from simulator.poplibs.poplin.convolutions.matmul import (
    createMatMulGroupedInputLHS,
    createMatMulGroupedInputRHS,
    matMulGrouped,
)
from simulator.poplibs.poplin.factors.square import (
    Options,
    as_batch,
    block_size_of,
    check_square,
    fill_part,
    part_of,
    tiles_with_most,
)
from simulator.poplibs.popops import div, divInPlace, pad, sub
from simulator.poplibs.popops.regions import debug_name
from simulator.poplibs.poputil import mapTensorLinearly
from simulator.poplibs.poputil.graphfn import Arguments, VoidFunction, created, inout
from simulator.poplibs.poputil.graphfn import input as read

BLOCK = 64  # rows of a block, where no option says otherwise


@library_call("POPLIN")
def createTriangularSolveInputLHS(
    graph: Graph,
    inputType: Type,
    outputType: Type,
    aShape: Numbers[int],
    bShape: Numbers[int],
    leftSide: bool,
    debugContext: str = "",
    options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor:
    """Add the triangular matrices of systems, which lie block by block.

    >>> from simulator import poplar, poplin
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> shapes = [4, 4], [4, 2]
    >>> types = poplar.FLOAT, poplar.FLOAT
    >>> poplin.createTriangularSolveInputLHS(trial.graph, *types, *shapes, True).shape
    (4, 4)
    """
    name = debug_name(debugContext, "triangularSolve")
    a, _ = _checked(name, aShape, bShape, leftSide)
    size, _ = block_size_of(options, BLOCK, name)
    variable = _in_blocks(graph, checked_type(inputType, name), a, leftSide, size, f"{name}/A")
    return variable.reshape(a)


@library_call("POPLIN")
def createTriangularSolveInputRHS(
    graph: Graph,
    inputType: Type,
    outputType: Type,
    aShape: Numbers[int],
    bShape: Numbers[int],
    leftSide: bool,
    debugContext: str = "",
    options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor:
    """Add the right sides of systems, spread in order, each column together.

    >>> from simulator import poplar, poplin
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> shapes = [4, 4], [4, 2]
    >>> types = poplar.FLOAT, poplar.FLOAT
    >>> poplin.createTriangularSolveInputRHS(trial.graph, *types, *shapes, True).shape
    (4, 2)
    """
    name = debug_name(debugContext, "triangularSolve")
    _, b = _checked(name, aShape, bShape, leftSide)
    groups, rows, columns = prod(b[:-2]), *b[-2:]
    layout = (groups, columns, rows) if leftSide else (groups, rows, columns)
    variable = graph.addVariable(checked_type(outputType, name), layout, debugContext or name)
    mapTensorLinearly(graph, variable)
    return (variable.dimShuffle([0, 2, 1]) if leftSide else variable).reshape(b)


def _checked(
    name: str, a_shape: Numbers[int], b_shape: Numbers[int], left_side: bool
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the shapes of A and B; raises poplibs_error where they make no system."""
    a, b = checked_shape(a_shape, name), checked_shape(b_shape, name)
    check_square(a, name)
    side = -2 if left_side else -1
    if len(a) != len(b) or a[:-2] != b[:-2] or b[side] != a[-1] or min(b) < 1:
        needed = "[..., n, k]" if left_side else "[..., k, n]"
        raise poplibs_error(f"{name}: B is {list(b)}; {needed} is needed for A {list(a)}")
    return a, b


def _in_blocks(
    graph: Graph, dtype: Type, shape: tuple[int, ...], left_side: bool, size: int, name: str
) -> Tensor:
    """Add matrices [g, n, m], or those that are their transposes, each block together."""
    groups, rows, columns = prod(shape[:-2]), *(shape[-2:] if left_side else shape[:-3:-1])
    side = size if rows > size else 1
    down, across = ceil_div(rows, side), ceil_div(columns, side)
    variable = graph.addVariable(dtype, (groups, down, across, side, side), name)
    mapTensorLinearly(graph, variable, side, graph.target.getVectorWidth(dtype))
    padded = variable.dimShuffle([0, 1, 3, 2, 4]).reshape((groups, down * side, across * side))
    tensor = padded.slice([0, 0, 0], [groups, rows, columns])
    return tensor if left_side else tensor.dimShuffle([0, 2, 1])


@library_call("POPLIN")
def triangularMask(
    graph: Graph,
    a: Tensor,
    lower: bool,
    unitDiagonal: bool,
    prog: Sequence,
    debugContext: str = "",
) -> Tensor:
    """Return a triangle of matrices [..., n, n], zeros beside it, ones on a `unitDiagonal`.

    >>> from simulator import poplin
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> a = trial.tensor([[2.0, 7.0], [1.0, 3.0]])
    >>> trial.values(poplin.triangularMask(trial.graph, a, True, True, trial.prog))
    [[1.0, 0.0], [1.0, 1.0]]
    """
    name = debug_name(debugContext, "triangularMask")
    check_square(a.shape, name)
    with graph.debug_scope(name, "poplin"):
        return _triangle(graph, as_batch(a), lower, unitDiagonal, prog, name).reshape(a.shape)


def _triangle(
    graph: Graph, batch: Tensor, lower: bool, unit_diagonal: bool, prog: Sequence, name: str
) -> Tensor:
    out = graph.clone(batch, name)
    whole = np.ones(batch.shape[1:], dtype=bool)
    inside = (np.tril if lower else np.triu)(whole)
    diagonal = np.eye(batch.dim(1), dtype=bool)
    fill_part(graph, out, ~inside, 0, prog)
    if unit_diagonal:
        fill_part(graph, out, diagonal, 1, prog)
        inside = inside & ~diagonal
    prog.add(Copy(part_of(batch, inside), part_of(out, inside), name=name))
    return out


def tensors_of(arguments: Arguments) -> list[Tensor]:
    """Return the arguments of a function that has made all its results."""
    return [argument for argument in arguments if argument is not None]


@dataclass(slots=True, eq=False)
class _Solver:
    """What the blocks of systems share: the solution, and the functions that solve and multiply."""

    graph: Graph
    prog: Sequence
    x: Tensor
    lower: bool
    size: int
    columns: int  # of a block of right sides that is solved by products
    options: dict[str, object]
    name: str
    products: dict[tuple[tuple[int, ...], tuple[int, ...]], VoidFunction] = field(
        default_factory=dict
    )
    by_rows: VoidFunction | None = None

    def solve(self, a: Tensor, b: Tensor, top: int, first: int) -> None:
        """Solve a x = b [g, n, k] for the part of x at a row and a column."""
        groups, rows, columns = b.shape
        if not columns:
            return
        if rows <= self.size:
            self._solve_block(a, b, top, first)
            return
        middle, half = (rows + 1) // 2, (columns + 1) // 2
        diagonal = [
            a.slice([0, low, low], [groups, high, high])
            for low, high in ((0, middle), (middle, rows))
        ]
        upper = (0, middle), (middle, rows)
        order = upper if self.lower else upper[::-1]
        blocks = diagonal if self.lower else diagonal[::-1]
        (low, high), (low2, high2) = order
        beside = a.slice([0, low2, low], [groups, high2, high])
        halves = [(0, half), (half, columns)]
        for begin, end in halves:
            part = b.slice([0, low, begin], [groups, high, end])
            self.solve(blocks[0], part, top + low, first + begin)
        for begin, end in halves:
            if begin == end:
                continue
            solved = self._part(top + low, first + begin, high - low, end - begin)
            product = self._product(beside, solved)
            part = b.slice([0, low2, begin], [groups, high2, end])
            difference = sub(self.graph, part, product, self.prog, f"{self.name}/B-A*X")
            self.solve(blocks[1], difference, top + low2, first + begin)

    def _part(self, top: int, first: int, rows: int, columns: int) -> Tensor:
        return self.x.slice([0, top, first], [self.x.dim(0), top + rows, first + columns])

    def _product(self, a: Tensor, x: Tensor) -> Tensor:
        """Multiply by a function that all blocks of these shapes call."""
        graph, shapes = self.graph, (a.shape, x.shape)
        if shapes not in self.products:
            makers = (createMatMulGroupedInputLHS, createMatMulGroupedInputRHS)
            operands = [
                make(graph, a.dtype, a.dtype, *shapes, f"{self.name}/matmul{side}", self.options)
                for make, side in zip(makers, ("InputA", "InputB"), strict=True)
            ]

            def multiply(args: Arguments, prog: Sequence) -> None:
                a, x = tensors_of(args[:2])
                args[2] = matMulGrouped(
                    graph, a, x, prog, a.dtype, f"{self.name}/A*X", self.options
                )

            signature = [*map(read, operands), created()]
            self.products[shapes] = VoidFunction(graph, signature, multiply, False)
        arguments: Arguments = [a, x, None]
        self.products[shapes](arguments, self.prog)
        return tensors_of(arguments)[2]

    def _solve_block(self, a: Tensor, b: Tensor, top: int, first: int) -> None:
        groups, rows, columns = b.shape
        x = self._part(top, first, rows, columns)
        if columns == 1:
            self._solve_column(a, b, x)
            return
        padding = self.columns - columns
        if padding:
            b = pad(self.graph, b, [0, 0, 0], [0, 0, padding])
            extra = self.graph.addVariable(x.dtype, (groups, rows, padding), f"{self.name}/padding")
            mapTensorLinearly(self.graph, extra)
            x = concat([x, extra], 2)
        if self.by_rows is None:
            signature = [read(a), read(b), inout(x)]
            self.by_rows = VoidFunction(self.graph, signature, self._substitute, False)
        self.by_rows([a, b, x], self.prog)

    def _solve_column(self, a: Tensor, b: Tensor, x: Tensor) -> None:
        """Add a vertex for each system, where most of its matrix lies."""
        graph, (groups, rows, _), dtype = self.graph, a.shape, a.dtype
        by_all = rows % triangular.SIMD == 0
        if by_all:
            copy = graph.addVariable(dtype, b.shape, f"{self.name}/bCopy")
            graph.setTileMapping(copy, 0)
            self.prog.add(Copy(b, copy))
            b = copy
        begin = np.arange(groups, dtype=np.int64)
        fields = {
            "a": cut_field("a", "input", a.flatten(), begin * rows**2, (begin + 1) * rows**2),
            "b": cut_field("b", "inout" if by_all else "input", b.flatten(), begin * rows,
                           (begin + 1) * rows),
            "x": cut_field("x", "output", x.flatten(), begin * rows, (begin + 1) * rows),
        }  # fmt: skip
        cycles = self._cycles(np.full(groups, rows), dtype, by_all=by_all)
        compute_set = graph.addComputeSet(f"{self.name}/triangularSolve")
        codelet = triangular.solve_codelet(dtype, self.lower, by_all=by_all)
        tiles = tiles_with_most(graph, a)
        graph.add_vertices(VertexGroup(compute_set.id, codelet, tiles, fields, {}, cycles))
        self.prog.add(Execute(compute_set))

    def _cycles(self, rows: IntArray, dtype: Type, *, by_all: bool) -> IntArray:
        if by_all:
            return triangular.solve_by_all_cycles(rows, dtype, self.lower, self.graph.target)
        return triangular.solve_cycles(rows, dtype, self.lower)

    def _substitute(self, args: Arguments, prog: Sequence) -> None:
        """Solve a block row by row; each takes a product with all that is solved."""
        (a, b, x), graph = tensors_of(args), self.graph
        groups, rows, columns = b.shape
        for number in range(rows):
            row = number if self.lower else rows - 1 - number
            solved = (0, row) if self.lower else (row + 1, rows)
            value = b.slice([0, row, 0], [groups, row + 1, columns])
            if number:
                factors = a.slice([0, row, solved[0]], [groups, row + 1, solved[1]])
                before = x.slice([0, solved[0], 0], [groups, solved[1], columns])
                label = f"{self.name}/substituteX{number}"
                dot = matMulGrouped(graph, factors, before, prog, a.dtype, label, self.options)
                value = sub(graph, value, dot, prog, f"{self.name}/substituteB{number}")
            prog.add(Copy(value, x.slice([0, row, 0], [groups, row + 1, columns])))


@library_call("POPLIN")
def triangularSolve(
    graph: Graph,
    a: Tensor,
    b: Tensor,
    leftSide: bool,
    lower: bool,
    unitDiagonal: bool,
    prog: Sequence,
    debugContext: str = "",
    options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor:
    """Solve A X = B, or X A = B where A is not on the `leftSide`, for triangular A [..., n, n].

    Only one triangle of A is read, on a `unitDiagonal` as if it had ones there.

    >>> from simulator import poplin
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> a, b = trial.tensor([[2.0, 0.0], [1.0, 1.0]]), trial.tensor([[4.0], [5.0]])
    >>> trial.values(poplin.triangularSolve(trial.graph, a, b, True, True, False, trial.prog))
    [[2.0], [3.0]]
    """
    name = debug_name(debugContext, "triangularSolve")
    _checked(name, a.shape, b.shape, leftSide)
    if a.dtype != b.dtype or a.dtype not in (FLOAT, HALF):
        raise poplibs_error(f"{name}: A is {a.dtype} and B {b.dtype}; both float or half")
    size, products = block_size_of(options, BLOCK, name)
    with graph.debug_scope(name, "poplin"):
        matrices = _triangle(graph, as_batch(a), lower, unitDiagonal, prog, f"{name}/mask")
        sides = as_batch(b)
        if not leftSide:  # X A = B is A^T X^T = B^T
            matrices, sides = (tensor.dimShuffle([0, 2, 1]) for tensor in (matrices, sides))
        if not unitDiagonal:
            sides = _scaled(graph, matrices, sides, prog, name)
        rows, columns = sides.shape[1:]
        padded = size
        while padded < rows:
            padded, columns = padded * 2, (columns + 1) // 2
        if rows > size:
            matrices, sides = _padded(graph, matrices, sides, padded - rows, prog, name)
        x = _in_blocks(graph, a.dtype, sides.shape, False, size, f"{name}/X")
        solver = _Solver(graph, prog, x, lower == leftSide, size, columns, products, name)
        solver.solve(matrices, sides, 0, 0)
        x = x.slice(0, rows, 1)
    return (x if leftSide else x.dimShuffle([0, 2, 1])).reshape(b.shape)


def _scaled(graph: Graph, a: Tensor, b: Tensor, prog: Sequence, name: str) -> Tensor:
    """Divide the rows of matrices and right sides by the diagonal; returns the right sides."""
    source = part_of(a, np.eye(a.dim(1), dtype=bool)).reshape(a.shape[:2])
    diagonal = graph.clone(source, f"{name}/diagClone")
    prog.add(Copy(source, diagonal))
    factors = diagonal.expand([2])
    divInPlace(graph, a, factors, prog, f"{name}/scaleA")
    return div(graph, b, factors, prog, f"{name}/scaleB")


def _padded(
    graph: Graph, a: Tensor, b: Tensor, padding: int, prog: Sequence, name: str
) -> tuple[Tensor, Tensor]:
    """Add rows and columns of the unit matrix, so that halves of halves are whole blocks."""
    if not padding:
        return a, b
    groups, rows, _ = a.shape
    shapes = {"right": (groups, rows, padding), "bottom": (groups, padding, rows + padding)}
    parts = [graph.addVariable(a.dtype, shape, f"{name}/{side}") for side, shape in shapes.items()]
    for part in parts:
        mapTensorLinearly(graph, part)
        fill_part(graph, part, np.ones(part.shape[1:], dtype=bool), 0, prog)
    matrices = concat([concat([a, parts[0]], 2), parts[1]], 1)
    places = np.diag(np.arange(rows + padding) >= rows)
    fill_part(graph, matrices, places, 1, prog)
    return matrices, pad(graph, b, [0, 0, 0], [0, padding, 0])
