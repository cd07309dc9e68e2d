"""A solver of small integer problems, with which plans are chosen (popsolver).

    model = popsolver.Model()
    rows, columns = model.addVariable(1, 64, "rows"), model.addVariable(1, 64, "columns")
    model.lessOrEqual(model.product([rows, columns]), 64)
    work = model.product([model.ceildiv(1000, rows), model.ceildiv(300, columns)], "work")
    solution = model.minimize(work)
    solution[rows], solution[columns], solution[work]

Values are integers from 0. Each variable has an interval; each constraint narrows the intervals of
its variables (popsolver_intervals). Choices from few values are then searched by arrays, one choice
after another (popsolver_rows); others by cutting intervals in two (popsolver_boxes).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import index
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from simulator.graph.arguments import refuse_in
from simulator.graph.errors import PoplarError
from simulator.poplibs import popsolver_boxes as boxes
from simulator.poplibs import popsolver_constraints as constraints
from simulator.poplibs import popsolver_rows as rows
from simulator.poplibs.popsolver_constraints import LARGEST, Kind, Problem
from simulator.poplibs.popsolver_intervals import Box
from simulator.poplibs.popsolver_stages import listable


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


def _check_values(values: NDArray[Any], name: str) -> None:
    """Refuse a list of allowed values that is not an ascending one of integers from 0."""
    whole = values.ndim == 1 and values.size and values.dtype.kind in "iu"
    if not whole or values[0] < 0 or (values[1:] <= values[:-1]).any():
        raise PoplarError(
            f"popsolver: variable {name!r} among {values.tolist()}; ascending integers from 0 are "
            "needed"
        )


@refuse_in
class Model:
    """Variables and the constraints between them."""

    def __init__(self) -> None:
        self._problem = Problem()
        self._constants: dict[int, Variable] = {}

    # Variables
    def addVariable(
        self, min: int = 0, max: int = LARGEST, name: str = "", among: Sequence[int] | None = None
    ) -> Variable:
        """Add a variable that may take the values min to max, both included.

        Of these, `among` lists the only ones allowed, in ascending order.
        """
        if not 0 <= index(min) <= index(max):
            raise PoplarError(
                f"popsolver: variable {name!r} from {min} to {max}; it needs 0 <= min <= max"
            )
        problem, values = self._problem, None if among is None else np.array(among)
        if values is not None:
            _check_values(values, name)
        variable = Variable(problem.add(index(min), index(max)), name)
        problem.choices.append(variable.id)
        if values is not None:
            problem.among[variable.id] = values.astype(np.int64)
            problem.hold(constraints.one_of(variable.id, problem.among[variable.id]))
        return variable

    def addConstant(self, value: int, name: str = "") -> Variable:
        """Give a variable that has this value."""
        if value not in self._constants:
            if index(value) < 0:
                raise PoplarError(f"popsolver: constant {name!r} is {value}; 0 or more is needed")
            constant = self._problem.add(index(value), index(value))
            self._constants[value] = Variable(constant, name or str(value))
        return self._constants[value]

    def _id(self, operand: Operand) -> int:
        variable = operand if isinstance(operand, Variable) else self.addConstant(operand)
        if variable.id >= len(self._problem.low):
            raise PoplarError(f"popsolver: {variable!r} is of another model")
        return variable.id

    def _ids(self, operands: Sequence[Operand], what: str) -> list[int]:
        ids = [self._id(operand) for operand in operands]
        if not ids:
            raise PoplarError(f"popsolver: {what} of no variables")
        return ids

    def _follow(self, kind: Kind, parts: list[int], name: str) -> Variable:
        """Add a variable that follows from others."""
        result = self._problem.add(0, LARGEST)
        self._problem.hold(kind.over(parts, result))
        return Variable(result, name)

    # What follows from other variables
    def sum(self, variables: Sequence[Operand], name: str = "") -> Variable:
        return self._follow(constraints.SUM, self._ids(variables, "sum"), name)

    def product(self, variables: Sequence[Operand], name: str = "") -> Variable:
        return self._follow(constraints.PRODUCT, self._ids(variables, "product"), name)

    def max(self, variables: Sequence[Operand], name: str = "") -> Variable:
        return self._follow(constraints.MAX, self._ids(variables, "max"), name)

    def min(self, variables: Sequence[Operand], name: str = "") -> Variable:
        return self._follow(constraints.MIN, self._ids(variables, "min"), name)

    def sub(self, left: Operand, right: Operand, name: str = "") -> Variable:
        """Give left - right, which is 0 or more."""
        return self._follow(constraints.SUB, [self._id(left), self._id(right)], name)

    def floordiv(self, left: Operand, right: Operand, name: str = "") -> Variable:
        return self._follow(constraints.FLOORDIV, [self._id(left), self._id(right)], name)

    def ceildiv(self, left: Operand, right: Operand, name: str = "") -> Variable:
        return self._follow(constraints.CEILDIV, [self._id(left), self._id(right)], name)

    def mod(self, left: Operand, right: Operand, name: str = "") -> Variable:
        return self._follow(constraints.MOD, [self._id(left), self._id(right)], name)

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
        Without, all is searched by intervals, and it is called for one set of values at a time.
        """
        ids = self._ids(variables, "call")
        result = Variable(self._problem.add(0, LARGEST), name)
        if arrays:
            held = constraints.calling_by_arrays(ids, result.id, function, name)
        else:
            held = constraints.calling(ids, result.id, function)
        self._problem.hold(held)
        return result

    # What must hold
    def less(self, left: Operand, right: Operand) -> None:
        self._hold(constraints.LESS, left, right)

    def lessOrEqual(self, left: Operand, right: Operand) -> None:
        self._hold(constraints.LESS_OR_EQUAL, left, right)

    def equal(self, left: Operand, right: Operand) -> None:
        self.lessOrEqual(left, right)
        self.lessOrEqual(right, left)

    def notEqual(self, left: Operand, right: Operand) -> None:
        self._hold(constraints.NOT_EQUAL, left, right)

    def factorOf(self, value: Operand, factor: Operand) -> None:
        """Let `factor` divide `value` without a remainder."""
        self._hold(constraints.DIVIDES, value, factor)

    def _hold(self, kind: Kind, left: Operand, right: Operand) -> None:
        self._problem.hold(kind.over([self._id(left), self._id(right)]))

    # The search
    def minimize(self, variables: Variable | Sequence[Variable]) -> Solution:
        """Find the least value of a variable; of several, of the first, then of the second...

        Among solutions that cost the same, a search by arrays takes the first in the order of the
        values that are chosen.
        """
        several = [variables] if isinstance(variables, Variable) else list(variables)
        cost = [self._id(variable) for variable in several]
        box = Box([*self._problem.low], [*self._problem.high])
        if not self._problem.settle(box, everything=True):
            return Solution()
        search = rows.search if listable(self._problem, box) else boxes.search
        return Solution(search(self._problem, box, cost))
