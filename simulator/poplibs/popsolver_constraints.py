"""What each constraint of popsolver says: how it narrows intervals, and what arrays it accepts.

Both searches read this one declaration. A column is an int64 array of a variable's values, one a
row, or of one value that stands for all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from math import prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from simulator.graph.errors import PoplarError
from simulator.poplibs import popsolver_intervals as intervals
from simulator.poplibs.popsolver_intervals import Box, EmptyError, Narrow

LARGEST = (1 << 62) - 1  # of a variable without a bound of its own
MOST_NARROWINGS = 10_000  # of one box; a plan of a matrix product takes fewer than a hundred

Column: TypeAlias = NDArray[np.int64]
Evaluate: TypeAlias = Callable[[Sequence[Column]], NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Constraint:
    """What ties a few variables together, told of intervals (`narrow`) and of columns (`evaluate`).

    `evaluate` gives the values of `result`; without one, whether the constraint holds. It is None
    where only single values can be tried. `signs` has "+" for a part that what it gives grows with,
    "-" for one that it falls with; it is empty when neither is sure.
    """

    narrow: Narrow
    parts: tuple[int, ...]
    result: int | None = None
    evaluate: Evaluate | None = None
    signs: str = ""
    slow: bool = False

    def of(self, columns: Sequence[Column]) -> NDArray[Any]:
        """Evaluate; the caller has seen that it can be done."""
        assert self.evaluate is not None
        return self.evaluate(columns)

    def extreme(self, ends: Sequence[tuple[Column, Column]], most: bool) -> NDArray[Any]:
        """Give the least or the most that comes of parts that lie between two ends each."""
        signs = zip(self.signs, ends, strict=True)
        return self.of([pair[(sign == "+") == most] for sign, pair in signs])


class Kind(NamedTuple):
    """Constraints that differ only in their variables."""

    narrowing: Callable[..., Narrow]  # of the result, if there is one, and the parts
    evaluate: Evaluate
    signs: str = ""  # one for all parts, or one a part

    def over(self, parts: Sequence[int], result: int | None = None) -> Constraint:
        """Give the constraint of these variables."""
        narrow = self.narrowing(parts) if result is None else self.narrowing(result, parts)
        signs = self.signs * len(parts) if len(self.signs) == 1 else self.signs
        return Constraint(narrow, tuple(parts), result, self.evaluate, signs)


@dataclass(slots=True)
class Problem:
    """The intervals of all variables by their ids, which are chosen, and the constraints."""

    low: list[int] = field(default_factory=list)
    high: list[int] = field(default_factory=list)
    choices: list[int] = field(default_factory=list)
    among: dict[int, Column] = field(default_factory=dict)
    constraints: list[Constraint] = field(default_factory=list)
    watchers: list[list[int]] = field(default_factory=list)

    def add(self, low: int, high: int) -> int:
        """Add a variable; gives its id."""
        self.low.append(low)
        self.high.append(high)
        self.watchers.append([])
        return len(self.low) - 1

    def hold(self, constraint: Constraint) -> None:
        """Add a constraint; what it makes follows from variables that were added before."""
        tied = {*constraint.parts} | (
            {constraint.result} if constraint.result is not None else set()
        )
        for variable in tied:
            self.watchers[variable].append(len(self.constraints))
        self.constraints.append(constraint)

    def followed(self, chosen: dict[int, int]) -> tuple[int, ...]:
        """Give the values of all variables that follow from those of the choices."""
        values = [np.array([chosen.get(v, low)]) for v, low in enumerate(self.low)]
        for constraint in self.constraints:
            if constraint.result is not None:
                values[constraint.result] = constraint.of([values[p] for p in constraint.parts])
        return tuple(int(value[0]) for value in values)

    def settle(self, box: Box, everything: bool = False) -> bool:
        """Narrow intervals until no constraint narrows one; False when nothing is left of one.

        Two that narrow each other a step at a time are left to the search.
        """
        queue = dict.fromkeys(range(len(self.constraints)) if everything else ())
        try:
            for _ in range(MOST_NARROWINGS + len(queue)):
                for variable in box.changed:
                    queue.update(dict.fromkeys(self.watchers[variable]))
                box.changed.clear()
                if not queue:
                    return True
                constraint = next(iter(queue))
                del queue[constraint]
                self.constraints[constraint].narrow(box)
        except EmptyError:
            return False
        box.changed.clear()
        return True


def _exact(operation: Callable[..., Column], whole: Callable[[list[int]], int]) -> Evaluate:
    """Sum or multiply columns; what is above LARGEST becomes LARGEST + 1."""

    def rough(left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
        return np.minimum(operation(left, right), 1e30)  # so that 0 times it is 0

    def evaluate(columns: Sequence[Column]) -> Column:
        if whole([int(column.max()) for column in columns]) <= LARGEST:
            return reduce(operation, columns)
        roughly = reduce(rough, [column.astype(np.float64) for column in columns])
        # A result below 2^63 is right whatever wrapped round on the way.
        fits = roughly < 1.5 * LARGEST
        return np.where(fits, np.minimum(reduce(operation, columns), LARGEST + 1), LARGEST + 1)

    return evaluate


SUM = Kind(intervals.summed, _exact(np.add, sum), "+")
PRODUCT = Kind(intervals.multiplied, _exact(np.multiply, prod), "+")
MAX = Kind(intervals.largest, lambda columns: reduce(np.maximum, columns), "+")
MIN = Kind(intervals.least, lambda columns: reduce(np.minimum, columns), "+")
SUB = Kind(intervals.difference, lambda columns: columns[0] - columns[1], "+-")
# Divisors are 1 or more once the intervals are narrowed.
FLOORDIV = Kind(intervals.divided_down, lambda columns: columns[0] // columns[1], "+-")
CEILDIV = Kind(intervals.divided_up, lambda columns: -(-columns[0] // columns[1]), "+-")
MOD = Kind(intervals.remainder, lambda columns: columns[0] % columns[1])
LESS = Kind(intervals.less, lambda columns: columns[0] < columns[1], "-+")
LESS_OR_EQUAL = Kind(intervals.at_most, lambda columns: columns[0] <= columns[1], "-+")
NOT_EQUAL = Kind(intervals.different, lambda columns: columns[0] != columns[1])
DIVIDES = Kind(intervals.divides, lambda columns: columns[0] % columns[1] == 0)


def one_of(variable: int, values: Column) -> Constraint:
    """Let a variable be one of ascending values."""
    narrow = intervals.one_of(variable, values.tolist())
    return Constraint(narrow, (variable,), None, lambda columns: np.isin(columns[0], values))


def calling(
    parts: Sequence[int], result: int, function: Callable[[list[int]], int | None]
) -> Constraint:
    """Let a function of single values make the result; None rules them out."""
    return Constraint(intervals.called(result, parts, function), tuple(parts), result)


def calling_by_arrays(
    parts: Sequence[int], result: int, function: Callable[[list[Column]], Column], name: str
) -> Constraint:
    """Let a function of columns make the result; below 0 rules a row out."""

    def evaluate(columns: Sequence[Column]) -> Column:
        shape = np.broadcast_shapes(*(column.shape for column in columns))
        found = function([np.broadcast_to(column, shape) for column in columns])
        if getattr(found, "shape", None) != shape or found.dtype.kind not in "iu":
            gave = f"{found.dtype} {list(found.shape)}" if hasattr(found, "shape") else repr(found)
            raise PoplarError(
                f"popsolver: call {name!r} gave {gave}; an int64 array {list(shape)} is needed"
            )
        return found.astype(np.int64, copy=False)

    def single(values: list[int]) -> int | None:
        found = int(evaluate([np.array([value]) for value in values])[0])
        return found if found >= 0 else None

    narrow = intervals.called(result, parts, single)
    return Constraint(narrow, tuple(parts), result, evaluate, slow=True)
