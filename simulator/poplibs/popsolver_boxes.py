"""The search of popsolver that cuts intervals in two, for values that are too many to list."""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt

from simulator.poplibs.popsolver_constraints import Problem
from simulator.poplibs.popsolver_intervals import Box, EmptyError


def search(problem: Problem, start: Box, cost: Sequence[int]) -> tuple[int, ...]:
    """Find the values of all variables with the least cost; none when there is no solution.

    It goes depth first: it cuts the widest interval in two and takes the half with the lower cost
    first; what cannot be cheaper than the best solution so far is left out.
    """
    best: tuple[int, ...] = ()
    least: list[int] | None = None
    waiting = [start]
    while waiting:
        box = waiting.pop()
        if least is not None and not _cheaper(problem, box, cost, least):
            continue
        widest = _widest(problem, box)
        if widest >= 0:
            waiting += _halves(problem, box, widest, cost)
        elif problem.settle(box, everything=True):
            found = [box.low[variable] for variable in cost]
            if least is None or found < least:
                best, least = tuple(box.low), found
            if not cost:
                break
    return best


def _cheaper(problem: Problem, box: Box, cost: Sequence[int], least: list[int]) -> bool:
    """Tell whether a box may hold less than the least cost; the first is narrowed to that."""
    if [box.low[variable] for variable in cost] >= least:
        return False
    try:
        box.clip(cost[0], 0, least[0] - (len(cost) == 1))
    except EmptyError:
        return False
    return problem.settle(box)


def _widest(problem: Problem, box: Box) -> int:
    """Find the chosen variable with the most open magnitude, else any that is open; else -1."""
    open_choices = [v for v in problem.choices if box.low[v] < box.high[v]]
    if open_choices:
        return max(open_choices, key=lambda v: (box.high[v] + 1) / (box.low[v] + 1))
    return next((v for v, low in enumerate(box.low) if low < box.high[v]), -1)


def _halves(problem: Problem, box: Box, variable: int, cost: Sequence[int]) -> list[Box]:
    """Cut an interval in two of like magnitudes; give what can hold, the cheaper last."""
    low, high = box.low[variable], box.high[variable]
    middle = min(isqrt((low + 1) * (high + 1)) - 1, high - 1)
    halves = []
    for least, most in ((low, middle), (middle + 1, high)):
        half = Box([*box.low], [*box.high])
        half.clip(variable, least, most)
        if problem.settle(half):
            halves.append(half)
    halves.sort(key=lambda half: [half.low[v] for v in cost], reverse=True)
    return halves
