"""A solver of small integer problems, with which plans are chosen (popsolver).

    model = popsolver.Model()
    rows, columns = model.addVariable(1, 64, "rows"), model.addVariable(1, 64, "columns")
    model.lessOrEqual(model.product([rows, columns]), 64)
    work = model.product([model.ceildiv(1000, rows), model.ceildiv(300, columns)], "work")
    solution = model.minimize(work)
    solution[rows], solution[columns], solution[work]

Values are integers from 0 to LARGEST; those of the added variables are listed and searched
(popsolver_search).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from operator import index
from typing import Any, TypeAlias

import numpy as np

from simulator.graph.arguments import refuse_in
from simulator.graph.errors import PoplarError
from simulator.poplibs import popsolver_search as search
from simulator.poplibs.popsolver_search import BEYOND, LARGEST, Column, Fact, Kind

MOST_VALUES = 1 << 20  # of a variable that is chosen


@dataclass(frozen=True, slots=True)
class Variable:
    """A number that the solver chooses, or that follows from others; `id` is its place."""

    id: int
    name: str = field(default="", compare=False)


Operand: TypeAlias = Variable | int


@dataclass(frozen=True, slots=True)
class Solution:
    """The values of all variables; none when the constraints cannot all hold."""

    values: tuple[int, ...] = ()

    def validSolution(self) -> bool:
        """Tell whether there is a solution."""
        return bool(self.values)

    def __getitem__(self, variable: Variable) -> int:
        if not self.values:
            raise PoplarError(f"popsolver: no solution, so {variable!r} has no value")
        if not isinstance(variable, Variable) or variable.id >= len(self.values):
            raise PoplarError(f"popsolver: {variable!r} is no variable of this solution")
        return self.values[variable.id]


@refuse_in
class Model:
    """Variables and the constraints between them."""

    def __init__(self) -> None:
        self._facts: list[Fact] = []
        self._choices: list[int] = []
        self._held: list[int] = []  # the constraints
        self._constants: dict[int, Variable] = {}

    def addVariable(
        self, min: int = 0, max: int = LARGEST, name: str = "", among: Sequence[int] | None = None
    ) -> Variable:
        """Add a variable that may take the values min to max, both included.

        Of these, `among` lists the only ones allowed, in ascending order.
        """
        said = f"popsolver: variable {name!r}"
        if not 0 <= index(min) <= index(max):
            raise PoplarError(f"{said} from {min} to {max}; it needs 0 <= min <= max")
        if among is None and max - min >= MOST_VALUES:
            raise PoplarError(f"{said} from {min} to {max}; {MOST_VALUES} values can be searched")
        values = np.array(range(min, max + 1) if among is None else among)
        whole = values.ndim == 1 and values.size and values.dtype.kind in "iu"
        allowed = values[(values >= min) & (values <= max)]
        if not whole or values[0] < 0 or (values[1:] <= values[:-1]).any() or not allowed.size:
            raise PoplarError(
                f"{said} among {values.tolist()}; ascending integers from 0 are needed, "
                f"at least one of them from {min} to {max}"
            )
        depths = frozenset({len(self._choices)})
        self._choices.append(self._add(search.listed(allowed.astype(np.int64), depths)))
        return Variable(self._choices[-1], name)

    def addConstant(self, value: int, name: str = "") -> Variable:
        """Give a variable that has this value."""
        if value not in self._constants:
            if not 0 <= index(value) <= LARGEST:
                raise PoplarError(
                    f"popsolver: constant {name!r} is {value}; 0 to {LARGEST} is needed"
                )
            constant = self._add(search.listed(np.array([index(value)])))
            self._constants[value] = Variable(constant, name or str(value))
        return self._constants[value]

    def _id(self, operand: Operand) -> int:
        variable = operand if isinstance(operand, Variable) else self.addConstant(operand)
        if variable.id >= len(self._facts):
            raise PoplarError(f"popsolver: {variable!r} is of another model")
        return variable.id

    def _add(self, fact: Fact) -> int:
        self._facts.append(fact)
        return len(self._facts) - 1

    def _follow(self, kind: Kind | str, operands: Sequence[Operand], name: str = "") -> Variable:
        """Add a variable that follows from others."""
        parts = tuple(self._id(operand) for operand in operands)
        if not parts:
            raise PoplarError(f"popsolver: {name or kind} of no variables")
        made = kind if isinstance(kind, Kind) else search.KINDS[kind]
        variable = Variable(self._add(search.following(self._facts, made, parts)), name)
        if made.holds:
            self._held.append(variable.id)
        else:
            self._follow("allowed", [variable])
        return variable

    def sum(self, variables: Sequence[Operand], name: str = "") -> Variable:
        return self._follow("sum", variables, name)

    def product(self, variables: Sequence[Operand], name: str = "") -> Variable:
        return self._follow("product", variables, name)

    def max(self, variables: Sequence[Operand], name: str = "") -> Variable:
        return self._follow("max", variables, name)

    def min(self, variables: Sequence[Operand], name: str = "") -> Variable:
        return self._follow("min", variables, name)

    def sub(self, left: Operand, right: Operand, name: str = "") -> Variable:
        """Give left - right, which is 0 or more."""
        self.lessOrEqual(right, left)
        return self._follow("sub", [left, right], name)

    def floordiv(self, left: Operand, right: Operand, name: str = "") -> Variable:
        return self._follow("floordiv", [left, right], name)

    def ceildiv(self, left: Operand, right: Operand, name: str = "") -> Variable:
        return self._follow("ceildiv", [left, right], name)

    def mod(self, left: Operand, right: Operand, name: str = "") -> Variable:
        return self._follow("mod", [left, right], name)

    def call(
        self,
        variables: Sequence[Operand],
        function: Callable[[list[Any]], Any],
        name: str = "",
        arrays: bool = False,
    ) -> Variable:
        """Give what a function makes of a list of values; None rules the values out.

        With `arrays` it takes int64 arrays of one length, not to be written to, and gives an array
        of integers of that length, each of its own row alone; below 0 (-1) rules the row out.
        """

        @lru_cache(search.MOST_ROWS)
        def single(*values: int) -> int:
            found = function([*values])
            return -1 if found is None else index(found)

        def columns(parts: Sequence[Column]) -> Column:
            parts = np.broadcast_arrays(*parts)
            if arrays:
                found = function([*parts])
            else:
                rows = zip(*(part.tolist() for part in parts), strict=True)
                found = np.array([single(*row) for row in rows])
            if getattr(found, "shape", None) != parts[0].shape or found.dtype.kind not in "iu":
                array = isinstance(found, np.ndarray)
                gave = f"{found.dtype} {list(found.shape)}" if array else repr(found)
                needed = f"an int64 array {list(parts[0].shape)} is needed"
                raise PoplarError(f"popsolver: call {name!r} gave {gave}; {needed}")
            return np.where(found < 0, BEYOND, found).astype(np.int64)

        return self._follow(Kind(columns, called=True), variables, name or "call")

    def less(self, left: Operand, right: Operand) -> None:
        self._follow("less", [left, right])

    def lessOrEqual(self, left: Operand, right: Operand) -> None:
        self._follow("lessOrEqual", [left, right])

    def equal(self, left: Operand, right: Operand) -> None:
        self.lessOrEqual(left, right)
        self.lessOrEqual(right, left)

    def notEqual(self, left: Operand, right: Operand) -> None:
        self._follow("notEqual", [left, right])

    def factorOf(self, value: Operand, factor: Operand) -> None:
        """Let `factor` divide `value` without a remainder."""
        self.equal(self.mod(value, factor), 0)

    def minimize(self, variables: Variable | Sequence[Variable]) -> Solution:
        """Find the least value of a variable; of several, of the first, then of the second...

        Among solutions that cost the same, it takes the first in the order of the values chosen.
        """
        several = [variables] if isinstance(variables, Variable) else list(variables)
        cost = [self._id(variable) for variable in several] or [self._id(0)]
        return Solution(search.Search(self._facts, self._choices, self._held, cost).minimum())
