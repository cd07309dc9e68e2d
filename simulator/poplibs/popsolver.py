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
from itertools import chain, cycle
from math import prod
from operator import index
from typing import NamedTuple, TypeAlias

import numpy as np

from simulator.graph.arguments import refuse_in
from simulator.graph.errors import PoplarError
from simulator.graph.types import Array, IntArray

LARGEST = (1 << 62) - 2  # of any variable
BEYOND = LARGEST + 1  # stands for what is larger, or not allowed; twice that is an int64 still
MAX_ROWS = 1 << 16  # of a chunk; its columns stay in a processor's cache
MAX_VALUES = 1 << 20  # of a variable that is chosen

Column: TypeAlias = Array
Table: TypeAlias = dict[int, Column]
Ends: TypeAlias = list[tuple[int, bool]]  # nodes, and whether the most of each


class Kind(NamedTuple):
    """How a value follows from others, or whether a constraint of them `holds`.

    By its `signs`, which repeat over the parts, it grows (+) or falls (-) with each; none: unsure.
    """

    function: Callable[[Sequence[Column]], Column]
    signs: str = ""
    holds: bool = False
    number: Callable[[Sequence[int]], int] | None = None  # the same of single numbers, sooner

    def of_numbers(self, numbers: Sequence[int]) -> int:
        """Return what follows from single numbers."""
        if self.number:
            return self.number(numbers)
        return int(self.function([np.array([number]) for number in numbers]).flat[0])

    def ends(self, parts: Sequence[int]) -> tuple[Ends, Ends]:
        """List of which end of the parts the least follows, and of which the most: True is most."""
        signs = [*zip(cycle(self.signs or "+"), parts, strict=False)]
        return [(v, s == "-") for s, v in signs], [(v, s == "+") for s, v in signs]


def _multiply(left: Column, right: Column) -> Column:
    if int(left.max()) * int(right.max()) <= LARGEST:
        return left * right
    fits = np.multiply(left, right, dtype=np.float64) < 1.5 * BEYOND  # so it is below 2^63
    return np.minimum(np.where(fits, left * right, BEYOND), BEYOND)


def _of_one_length(columns: Sequence[Column]) -> list[Column]:
    """Repeat columns of one value, constants, to the length of the others."""
    shape = np.broadcast_shapes(*{column.shape for column in columns})
    return [c if c.shape == shape else np.broadcast_to(c, shape) for c in columns]


SUM = Kind(
    lambda c: reduce(lambda a, b: np.minimum(a + b, BEYOND), c),
    "+",
    number=lambda n: min(sum(n), BEYOND),
)
PRODUCT = Kind(lambda c: reduce(_multiply, c), "+", number=lambda n: min(prod(n), BEYOND))
CEILDIV = Kind(
    lambda c: np.where(c[1], -(-c[0] // np.maximum(c[1], 1)), BEYOND),
    "+-",
    number=lambda n: -(-n[0] // n[1]) if n[1] else BEYOND,
)
LESS_OR_EQUAL = Kind(lambda c: c[0] <= c[1], "-+", True, lambda n: n[0] <= n[1])
ALLOWED = Kind(lambda c: c[0] <= LARGEST, "-", True, lambda n: n[0] <= LARGEST)


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

    ends: tuple[int, int]
    depths: tuple[int, int] = (-1, -1)
    kind: Kind = Kind(np.array)
    parts: tuple[int, ...] = ()
    values: Column = np.zeros(0)  # of a choice


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
        return self._add(
            Node((int(values[0]), int(values[-1])), (depth, depth), values=values), name
        )

    def addConstant(self, value: int, name: str = "") -> Variable:
        """Return a variable that has this value."""
        if not 0 <= index(value) <= LARGEST:
            raise PoplarError(f"popsolver: constant {name!r} is {value}; 0 to {LARGEST} is needed")
        return self._add(Node((index(value), index(value))), name or str(value))

    def _add(self, node: Node, name: str) -> Variable:
        self._nodes.append(node)
        return Variable(len(self._nodes) - 1, name)

    def _own_variable(self, operand: Operand) -> int:
        variable = operand if isinstance(operand, Variable) else self.addConstant(operand)
        if variable.id >= len(self._nodes):
            raise PoplarError(f"popsolver: {variable!r} is of another model")
        return variable.id

    def _follow(self, kind: Kind, operands: Sequence[Operand], name: str) -> Variable:
        """Add what follows from variables."""
        if not operands:
            raise PoplarError(f"popsolver: {name} of no variables")
        parts = tuple(self._own_variable(operand) for operand in operands)
        depths = sorted(d for part in parts for d in self._nodes[part].depths if d >= 0) or [-1]
        least, most = 0, BEYOND
        if kind.signs or depths == [-1]:
            least, most = (
                kind.of_numbers([self._nodes[v].ends[is_most] for v, is_most in ends])
                for ends in kind.ends(parts)
            )
        variable = self._add(Node((least, most), (depths[0], depths[-1]), kind, parts), name)
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
            parts = _of_one_length(parts)
            values = np.asarray(function(parts))
            if values.shape != parts[0].shape or values.dtype.kind not in "iu":
                gave, shape_needed = f"{values.dtype} {list(values.shape)}", list(parts[0].shape)
                raise PoplarError(
                    f"popsolver: call {name!r} gave {gave}; int64 {shape_needed} is needed"
                )
            return np.where(values < 0, BEYOND, values).astype(np.int64)

        return self._follow(Kind(columns), variables, name)

    def minimize(self, variables: Variable | Sequence[Variable]) -> Solution:
        """Minimize a variable; of several the first, then the second...

        Among solutions that cost the same, it takes the first in the order of the values chosen.
        """
        cost = [variables] if isinstance(variables, Variable) else [*variables]
        ids = [self._own_variable(variable) for variable in cost or [self.addConstant(0)]]
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
        self.ends = [tuple(np.array([end]) for end in node.ends) for node in nodes]
        used = [(v, node) for v, node in enumerate(nodes) if v in holding or v in self.last]
        self.known, self.ahead = [], []  # what is known after each choice, and what is bounded
        for d in range(len(choices)):
            self.known.append([v for v, node in used if node.parts and node.depths[1] == d])
            later = [(v, node) for v, node in used if node.depths[0] <= d < node.depths[1]]
            self.ahead.append([v for v, node in later if node.kind.signs and v in bounded])
        self.parts = {v: nodes[v].kind.ends(nodes[v].parts) for v in {*chain(*self.ahead)}}

    def minimum(self) -> tuple[int, ...]:
        """Return the values of all variables with the least cost; none if there is no solution."""
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
        nodes, fixed, values = self.nodes, self.ends, self.nodes[self.choices[depth]].values
        picked = np.repeat(np.arange(length), len(values))
        table = {self.choices[depth]: np.tile(values, length)}
        ends: dict[int, tuple[Column, Column]] = {}

        def column(v: int) -> Column:
            if v not in table and v in before:
                table[v] = before[v][picked]
            return table[v] if v in table else fixed[v][0]

        def end(v: int, most: bool) -> Column:
            is_final = nodes[v].depths[1] <= depth
            return column(v) if is_final else ends.get(v, fixed[v])[most]

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
            function, (least, most) = nodes[v].kind.function, self.parts[v]
            ends[v] = (
                function([end(*part) for part in least]),
                function([end(*part) for part in most]),
            )
        holds = [ends[v][1] for v in self.ahead[depth] if nodes[v].kind.holds]
        holds.append(end(self.cost[0], False) < self.limit)
        keep(np.broadcast_to(reduce(np.logical_and, holds), picked.shape))
        return {v: column(v) for v in before | table if self.last.get(v, -1) > depth}, len(picked)

    def _consider(self, table: Table, length: int) -> None:
        """Take the first of the cheapest rows, if it is cheaper than the best so far."""
        costs = [np.broadcast_to(table.get(v, self.ends[v][0]), length) for v in self.cost]
        rows = np.arange(length)
        for cost in costs:
            rows = rows[cost[rows] == cost[rows].min()]
        row = rows[0]
        least = [int(cost[row]) for cost in costs]
        if least < self.least:
            values: list[int] = []
            for v, node in enumerate(self.nodes):
                if v in table:
                    values.append(int(np.broadcast_to(table[v], length)[row]))
                elif node.parts:
                    values.append(node.kind.of_numbers([values[part] for part in node.parts]))
                else:
                    values.append(node.ends[0])
            self.best, self.least = tuple(map(int, values)), least
            self.limit = least[0] + (len(least) > 1)
