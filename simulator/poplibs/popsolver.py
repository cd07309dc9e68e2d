"""A solver of small integer problems, with which plans are chosen (popsolver).

    model = popsolver.Model()
    rows, columns = model.addVariable(1, 64, "rows"), model.addVariable(1, 64, "columns")
    model.lessOrEqual(model.product([rows, columns]), 64)
    work = model.product([model.ceildiv(1000, rows), model.ceildiv(300, columns)], "work")
    solution = model.minimize(work)
    solution[rows], solution[columns], solution[work]

Values are integers from 0. Each variable has an interval; each constraint narrows the intervals of
its variables. The search goes depth first: it cuts the widest interval in two and takes the half
with the lower cost first; what cannot be cheaper than the best solution so far is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import isqrt
from operator import index
from typing import TypeAlias

from simulator.graph.arguments import refuse_in
from simulator.graph.errors import PoplarError
from simulator.poplibs import popsolver_intervals as intervals
from simulator.poplibs.popsolver_intervals import Box, EmptyError, Narrow

LARGEST = (1 << 62) - 1  # of a variable without a bound of its own
MOST_NARROWINGS = 10_000  # of one box; a plan of a matrix product takes fewer than a hundred


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
        self._low: list[int] = []
        self._high: list[int] = []
        self._choices: list[int] = []
        self._constants: dict[int, Variable] = {}
        self._constraints: list[Narrow] = []
        self._watchers: list[list[int]] = []

    # Variables
    def addVariable(self, min: int = 0, max: int = LARGEST, name: str = "") -> Variable:
        """Add a variable that may take the values min to max, both included."""
        if not 0 <= index(min) <= index(max):
            raise PoplarError(
                f"popsolver: variable {name!r} from {min} to {max}; it needs 0 <= min <= max"
            )
        variable = self._add(index(min), index(max), name)
        self._choices.append(variable.id)
        return variable

    def addConstant(self, value: int, name: str = "") -> Variable:
        """Give a variable that has this value."""
        if value not in self._constants:
            if index(value) < 0:
                raise PoplarError(f"popsolver: constant {name!r} is {value}; 0 or more is needed")
            self._constants[value] = self._add(index(value), index(value), name or str(value))
        return self._constants[value]

    def _add(self, low: int, high: int, name: str) -> Variable:
        self._low.append(low)
        self._high.append(high)
        self._watchers.append([])
        return Variable(len(self._low) - 1, name)

    def _id(self, operand: Operand) -> int:
        variable = operand if isinstance(operand, Variable) else self.addConstant(operand)
        if variable.id >= len(self._low):
            raise PoplarError(f"popsolver: {variable!r} is of another model")
        return variable.id

    def _ids(self, operands: Sequence[Operand], what: str) -> list[int]:
        ids = [self._id(operand) for operand in operands]
        if not ids:
            raise PoplarError(f"popsolver: {what} of no variables")
        return ids

    def _hold(self, narrow: Narrow, variables: Sequence[int]) -> None:
        for variable in set(variables):
            self._watchers[variable].append(len(self._constraints))
        self._constraints.append(narrow)

    def _result(
        self, make: Callable[..., Narrow], name: str, parts: list[int], *arguments: object
    ) -> Variable:
        """Add a variable that follows from others."""
        result = self._add(0, LARGEST, name)
        self._hold(make(result.id, *arguments), [*parts, result.id])
        return result

    # What follows from other variables
    def sum(self, variables: Sequence[Operand], name: str = "") -> Variable:
        ids = self._ids(variables, "sum")
        return self._result(intervals.summed, name, ids, ids)

    def product(self, variables: Sequence[Operand], name: str = "") -> Variable:
        ids = self._ids(variables, "product")
        return self._result(intervals.multiplied, name, ids, ids)

    def max(self, variables: Sequence[Operand], name: str = "") -> Variable:
        ids = self._ids(variables, "max")
        return self._result(intervals.largest, name, ids, ids)

    def min(self, variables: Sequence[Operand], name: str = "") -> Variable:
        ids = self._ids(variables, "min")
        return self._result(intervals.least, name, ids, ids)

    def sub(self, left: Operand, right: Operand, name: str = "") -> Variable:
        """Give left - right, which is 0 or more."""
        a, b, result = self._id(left), self._id(right), self._add(0, LARGEST, name)
        self._hold(intervals.summed(a, [result.id, b]), [a, b, result.id])
        return result

    def floordiv(self, left: Operand, right: Operand, name: str = "") -> Variable:
        return self._binary(intervals.divided_down, left, right, name)

    def ceildiv(self, left: Operand, right: Operand, name: str = "") -> Variable:
        return self._binary(intervals.divided_up, left, right, name)

    def mod(self, left: Operand, right: Operand, name: str = "") -> Variable:
        return self._binary(intervals.remainder, left, right, name)

    def _binary(
        self, make: Callable[..., Narrow], left: Operand, right: Operand, name: str
    ) -> Variable:
        a, b = self._id(left), self._id(right)
        return self._result(make, name, [a, b], a, b)

    def call(
        self,
        variables: Sequence[Operand],
        function: Callable[[list[int]], int | None],
        name: str = "",
    ) -> Variable:
        """Give what a function makes of a list of values; None rules the values out.

        It is called when all variables have one value, so nothing is left out by its result before.
        """
        ids = self._ids(variables, "call")
        return self._result(intervals.called, name, ids, ids, function)

    # What must hold
    def less(self, left: Operand, right: Operand) -> None:
        a, b = self._id(left), self._id(right)
        self._hold(intervals.at_most(a, b, 1), [a, b])

    def lessOrEqual(self, left: Operand, right: Operand) -> None:
        a, b = self._id(left), self._id(right)
        self._hold(intervals.at_most(a, b, 0), [a, b])

    def equal(self, left: Operand, right: Operand) -> None:
        a, b = self._id(left), self._id(right)
        self._hold(intervals.summed(a, [b]), [a, b])

    def notEqual(self, left: Operand, right: Operand) -> None:
        a, b = self._id(left), self._id(right)
        self._hold(intervals.different(a, b), [a, b])

    def factorOf(self, value: Operand, factor: Operand) -> None:
        """Let `factor` divide `value` without a remainder."""
        a, b = self._id(value), self._id(factor)
        self._hold(intervals.divides(a, b), [a, b])

    # The search
    def minimize(self, variables: Variable | Sequence[Variable]) -> Solution:
        """Find the least value of a variable; of several, of the first, then of the second..."""
        several = [variables] if isinstance(variables, Variable) else list(variables)
        cost = [self._id(variable) for variable in several]
        start = Box([*self._low], [*self._high])
        best: tuple[int, ...] = ()
        least: list[int] | None = None
        waiting = [start] if self._settle(start, [*range(len(self._constraints))]) else []
        while waiting:
            box = waiting.pop()
            if least is not None and not self._cheaper(box, cost, least):
                continue
            widest = self._widest(box)
            if widest < 0:
                if not self._settle(box, [*range(len(self._constraints))]):
                    continue
                best, least = tuple(box.low), [box.low[variable] for variable in cost]
                if not cost:
                    break
            else:
                waiting += self._halves(box, widest, cost)
        return Solution(best)

    def _cheaper(self, box: Box, cost: list[int], least: list[int]) -> bool:
        """Tell whether a box may hold less than the least cost; the first is narrowed to that."""
        if [box.low[variable] for variable in cost] >= least:
            return False
        try:
            box.clip(cost[0], 0, least[0] - (len(cost) == 1))
        except EmptyError:
            return False
        return self._settle(box)

    def _settle(self, box: Box, waiting: Sequence[int] = ()) -> bool:
        """Narrow intervals until no constraint narrows one; False when nothing is left of one.

        Two that narrow each other a step at a time are left to the search.
        """
        queue = dict.fromkeys(waiting)
        try:
            for _ in range(MOST_NARROWINGS):
                for variable in box.changed:
                    queue.update(dict.fromkeys(self._watchers[variable]))
                box.changed.clear()
                if not queue:
                    return True
                constraint = next(iter(queue))
                del queue[constraint]
                self._constraints[constraint](box)
        except EmptyError:
            return False
        box.changed.clear()
        return True

    def _widest(self, box: Box) -> int:
        """Find the chosen variable with the most open magnitude, else any that is open; else -1."""
        open_choices = [v for v in self._choices if box.low[v] < box.high[v]]
        if open_choices:
            return max(open_choices, key=lambda v: (box.high[v] + 1) / (box.low[v] + 1))
        return next((v for v, low in enumerate(box.low) if low < box.high[v]), -1)

    def _halves(self, box: Box, variable: int, cost: list[int]) -> list[Box]:
        """Cut an interval in two of like magnitudes; give what can hold, the cheaper last."""
        low, high = box.low[variable], box.high[variable]
        middle = min(isqrt((low + 1) * (high + 1)) - 1, high - 1)
        halves = []
        for least, most in ((low, middle), (middle + 1, high)):
            half = Box([*box.low], [*box.high])
            half.clip(variable, least, most)
            if self._settle(half):
                halves.append(half)
        halves.sort(key=lambda half: [half.low[v] for v in cost], reverse=True)
        return halves
