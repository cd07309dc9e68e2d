"""A solver of small integer problems, with which plans are chosen (popsolver).

    model = popsolver.Model()
    rows, columns = model.addVariable(1, 64, "rows"), model.addVariable(1, 64, "columns")
    model.lessOrEqual(model.product([rows, columns]), 64)
    work = model.product([model.ceildiv(1000, rows), model.ceildiv(300, columns)], "work")
    solution = model.minimize(work)
    solution[rows], solution[columns], solution[work]

Values are integers from 0 to LARGEST. Rows of them grow by one choice after another, in chunks,
depth first, and are dropped as soon as a constraint cannot hold whatever the later choices are, or
they cannot be cheaper than the best so far.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import cycle
from operator import index
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from simulator.graph.arguments import refuse_in
from simulator.graph.errors import PoplarError
from simulator.graph.types import IntArray

LARGEST = (1 << 62) - 2  # of any variable
BEYOND = LARGEST + 1  # stands for what is larger, or not allowed; twice that is an int64 still
MAX_ROWS = 1 << 16  # of a chunk; its columns stay in a processor's cache
MAX_VALUES = 1 << 20  # of a variable that is chosen

Column: TypeAlias = NDArray[Any]
Table: TypeAlias = dict[int, Column]


class Kind(NamedTuple):
    """How a value follows from others, or whether a constraint of them `holds`.

    By its `signs`, which repeat over the parts, it grows (+) or falls (-) with each; none: unsure.
    """

    function: Callable[[Sequence[Column]], Column]
    signs: str = ""
    holds: bool = False


def _multiply(left: Column, right: Column) -> Column:
    if int(left.max()) * int(right.max()) <= LARGEST:
        return left * right
    fits = np.multiply(left, right, dtype=np.float64) < 1.5 * BEYOND  # so it is below 2^63
    return np.minimum(np.where(fits, left * right, BEYOND), BEYOND)


SUM = Kind(lambda c: reduce(lambda a, b: np.minimum(a + b, BEYOND), c), "+")
PRODUCT = Kind(lambda c: reduce(_multiply, c), "+")
CEILDIV = Kind(lambda c: np.where(c[1], -(-c[0] // np.maximum(c[1], 1)), BEYOND), "+-")
LESS_OR_EQUAL = Kind(lambda c: c[0] <= c[1], "-+", holds=True)
ALLOWED = Kind(lambda c: c[0] <= LARGEST, "-", holds=True)


@dataclass(frozen=True)
class Variable:
    """A number that the solver chooses, or that follows from others; `id` is its place."""

    id: int
    name: str = ""


Operand: TypeAlias = Variable | int


@dataclass(frozen=True, slots=True)
class Solution:
    """The values of all variables; none when the constraints cannot all hold."""

    values: tuple[int, ...] = ()

    def validSolution(self) -> bool:
        """Return whether there is a solution."""
        return bool(self.values)

    def __getitem__(self, variable: Variable) -> int:
        if not isinstance(variable, Variable) or variable.id >= len(self.values):
            solution = "this solution" if self.values else "any solution: there is none"
            raise PoplarError(f"popsolver: {variable!r} is no variable of {solution}")
        return self.values[variable.id]


class Node(NamedTuple):
    """A variable or constraint: the least and the most of it, and what it follows from.

    `depths` are the first and the last choice that it follows from, -1 for none.
    """

    ends: tuple[Column, Column]
    depths: tuple[int, int] = (-1, -1)
    kind: Kind = Kind(np.array)
    parts: tuple[int, ...] = ()
    values: Column = np.zeros(0)  # of a choice

    def between(self, end: Callable[[int, bool], Column]) -> tuple[Column, Column]:
        """Find the least and the most from the ends of the parts, by part and whether the most."""
        signs = [*zip(cycle(self.kind.signs or "+"), self.parts, strict=False)]
        least, most = ([end(v, (s == "+") == most) for s, v in signs] for most in (False, True))
        return self.kind.function(least), self.kind.function(most)


@refuse_in
class Model:
    """Variables and the constraints between them."""

    def __init__(self) -> None:
        self._nodes: list[Node] = []
        self._choices: list[int] = []

    def addVariable(
        self, min: int = 0, max: int = LARGEST, name: str = "", among: Sequence[int] | None = None
    ) -> Variable:
        """Add a variable that takes a value from min to max, both included, and of `among`."""
        listed = range(min, max + 1) if among is None else among
        values = np.unique(listed if len(listed) <= MAX_VALUES else [])
        values = values[(values >= min) & (values <= max)]
        if not values.size or values[0] < 0 or values.dtype.kind not in "iu":
            which = f"from {min} to {max}" + f" among {among}" * (among is not None)
            needed = f"1 to {MAX_VALUES} whole numbers from 0 are needed"
            raise PoplarError(f"popsolver: variable {name!r} {which}; {needed}")
        values, depth = values.astype(np.int64), len(self._choices)
        self._choices.append(len(self._nodes))
        return self._add(Node((values[:1], values[-1:]), (depth, depth), values=values), name)

    def addConstant(self, value: int, name: str = "") -> Variable:
        """Return a variable that has this value."""
        if not 0 <= index(value) <= LARGEST:
            raise PoplarError(f"popsolver: constant {name!r} is {value}; 0 to {LARGEST} is needed")
        number = np.array([index(value)])
        return self._add(Node((number, number)), name or str(value))

    def _add(self, node: Node, name: str) -> Variable:
        self._nodes.append(node)
        return Variable(len(self._nodes) - 1, name)

    def _known(self, operand: Operand) -> int:
        variable = operand if isinstance(operand, Variable) else self.addConstant(operand)
        if variable.id >= len(self._nodes):
            raise PoplarError(f"popsolver: {variable!r} is of another model")
        return variable.id

    def _follow(self, kind: Kind, operands: Sequence[Operand], name: str) -> Variable:
        """Add what follows from variables."""
        if not operands:
            raise PoplarError(f"popsolver: {name} of no variables")
        parts = tuple(self._known(operand) for operand in operands)
        depths = sorted(d for part in parts for d in self._nodes[part].depths if d >= 0) or [-1]
        node = Node((np.array([0]), np.array([BEYOND])), (depths[0], depths[-1]), kind, parts)
        if kind.signs or depths == [-1]:
            node = node._replace(ends=node.between(lambda v, most: self._nodes[v].ends[most]))
        variable = self._add(node, name)
        if not kind.holds:
            self._follow(ALLOWED, [variable], name)
        return variable

    def sum(self, variables: Sequence[Operand], name: str = "sum") -> Variable:
        return self._follow(SUM, variables, name)

    def product(self, variables: Sequence[Operand], name: str = "product") -> Variable:
        return self._follow(PRODUCT, variables, name)

    def ceildiv(self, left: Operand, right: Operand, name: str = "") -> Variable:
        return self._follow(CEILDIV, [left, right], name)

    def lessOrEqual(self, left: Operand, right: Operand) -> None:
        self._follow(LESS_OR_EQUAL, [left, right], "lessOrEqual")

    def call(
        self,
        variables: Sequence[Operand],
        function: Callable[[list[IntArray]], IntArray],
        name: str = "call",
    ) -> Variable:
        """Return what a function makes of lists of values, each of its own row alone.

        It takes int64 arrays of one length, not to be written to, and gives an array of integers of
        that length; below 0 (-1) rules the row out.
        """

        def columns(parts: Sequence[Column]) -> Column:
            parts = np.broadcast_arrays(*parts)
            values = np.asarray(function([*parts]))
            if values.shape != parts[0].shape or values.dtype.kind not in "iu":
                gave, shape_needed = f"{values.dtype} {list(values.shape)}", list(parts[0].shape)
                raise PoplarError(
                    f"popsolver: call {name!r} gave {gave}; int64 {shape_needed} is needed"
                )
            return np.where(values < 0, BEYOND, values).astype(np.int64)

        return self._follow(Kind(columns), variables, name)

    def minimize(self, variables: Variable | Sequence[Variable]) -> Solution:
        """Find the least value of a variable; of several, of the first, then of the second...

        Among solutions that cost the same, it takes the first in the order of the values chosen.
        """
        cost = [variables] if isinstance(variables, Variable) else [*variables]
        ids = [self._known(variable) for variable in cost or [self.addConstant(0)]]
        return Solution(_Search(self._nodes, self._choices, ids).minimum())


class _Search:
    """What is worked out after which choice, and the best so far."""

    def __init__(self, nodes: list[Node], choices: list[int], cost: list[int]) -> None:
        self.nodes, self.choices, self.cost = nodes, choices, cost
        self.least, self.limit = [BEYOND], BEYOND  # the first cost must be below
        self.best: tuple[int, ...] = ()
        holding = {v for v, node in enumerate(nodes) if node.kind.holds and not node.ends[0]}
        bounded = {*cost[:1], *(v for v in holding if nodes[v].kind is not ALLOWED)}
        self.last = dict.fromkeys([*choices, *cost], len(choices))  # the choice of its last use
        for v, node in reversed([*enumerate(nodes)]):
            for part in node.parts if v in holding or v in self.last else ():
                self.last[part] = max(self.last.get(part, -1), node.depths[1])
            bounded.update(node.parts if v in bounded else ())
        used = [(v, node) for v, node in enumerate(nodes) if v in holding or v in self.last]
        self.known, self.ahead = [], []  # what is known after each choice, and what is bounded
        for d in range(len(choices)):
            self.known.append([v for v, node in used if node.parts and node.depths[1] == d])
            later = [(v, node) for v, node in used if node.depths[0] <= d < node.depths[1]]
            self.ahead.append([v for v, node in later if node.kind.signs and v in bounded])

    def minimum(self) -> tuple[int, ...]:
        """Find the values of all variables with the least cost; none if there is no solution."""
        waiting: list[tuple[int, Table, int]] = [(0, {}, 1)]
        if not all(node.ends[1] for node in self.nodes if node.kind.holds):
            return ()
        while waiting:
            depth, table, length = waiting.pop()
            if depth == len(self.choices):
                self._consider(table, length)
                continue
            most = max(1, MAX_ROWS // len(self.nodes[self.choices[depth]].values))
            if length > most:
                waiting.append((depth, {v: c[most:] for v, c in table.items()}, length - most))
            table, length = self._advance(depth, table, min(length, most))
            if length:
                waiting.append((depth + 1, table, length))
        return self.best

    def _advance(self, depth: int, before: Table, length: int) -> tuple[Table, int]:
        """Repeat rows for each value of a choice; give those that may be the best."""
        nodes, values = self.nodes, self.nodes[self.choices[depth]].values
        picked = np.repeat(np.arange(length), len(values))
        table = {self.choices[depth]: np.tile(values, length)}
        ends: dict[int, tuple[Column, Column]] = {}

        def column(v: int) -> Column:
            if v not in table and v in before:
                table[v] = before[v][picked]
            return table[v] if v in table else nodes[v].ends[0]

        def end(v: int, most: bool) -> Column:
            is_final = nodes[v].depths[1] <= depth
            return column(v) if is_final else ends.get(v, nodes[v].ends)[most]

        def keep(holds: Column) -> None:
            nonlocal picked, table
            if not holds.all():
                rows = np.flatnonzero(holds)
                picked, table = picked[rows], {v: c[rows] for v, c in table.items()}

        for v in self.known[depth]:
            result = nodes[v].kind.function([column(part) for part in nodes[v].parts])
            if nodes[v].kind.holds:
                keep(result)
            else:
                table[v] = result
            if v == self.cost[0]:
                keep(result < self.limit)
            if not len(picked):
                return {}, 0
        for v in self.ahead[depth]:
            ends[v] = nodes[v].between(end)
        holds = [ends[v][1] for v in self.ahead[depth] if nodes[v].kind.holds]
        holds.append(end(self.cost[0], False) < self.limit)
        keep(np.broadcast_to(reduce(np.logical_and, holds), picked.shape))
        return {v: column(v) for v in before | table if self.last.get(v, -1) > depth}, len(picked)

    def _consider(self, table: Table, length: int) -> None:
        """Take the first of the cheapest rows, if it is cheaper than the best so far."""
        costs = [np.broadcast_to(table.get(v, self.nodes[v].ends[0]), length) for v in self.cost]
        rows = np.arange(length)
        for cost in costs:
            rows = rows[cost[rows] == cost[rows].min()]
        row = rows[0]
        least = [int(cost[row]) for cost in costs]
        if least < self.least:
            values: list[Column] = []
            for v, node in enumerate(self.nodes):
                values_found = node.kind.function(
                    [values[part] for part in node.parts] or [node.ends[0]]
                )
                values.append(table[v][row : row + 1] if v in self.choices else values_found)
            self.best, self.least = tuple(int(value.flat[0]) for value in values), least
            self.limit = least[0] + (len(least) > 1)
