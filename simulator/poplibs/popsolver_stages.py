"""The order of popsolver's search by arrays: what is known, and what to check, after each choice.

It is found once; the search goes through it with one chunk of rows after another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from simulator.poplibs.popsolver_constraints import Column, Constraint, Problem
from simulator.poplibs.popsolver_intervals import Box

MOST_VALUES = 4096  # of a variable that is chosen


class Check(NamedTuple):
    """A constraint to evaluate, and whether what it gives may be too low or too high."""

    constraint: Constraint
    floor: bool
    ceiling: bool

    @property
    def cuts(self) -> bool:
        """Tell whether it may rule rows out."""
        return self.floor or self.ceiling


class Pass(NamedTuple):
    """What becomes known without another call; then, between which bounds what follows lies."""

    known: list[Check]
    bounded: list[Check]


class Stage(NamedTuple):
    """The values of one more choice (none in the first stage), and the columns used later."""

    choice: int | None
    values: Column
    passes: list[Pass]
    kept: list[int]


def ends(box: Box) -> list[tuple[Column, Column]]:
    """Give the intervals of all variables as columns of one value."""
    return [
        (np.array([low]), np.array([high])) for low, high in zip(box.low, box.high, strict=True)
    ]


def listable(problem: Problem, box: Box) -> bool:
    """Tell whether all choices have few values, and all constraints can take arrays."""
    counts = (
        len(_within(box, v, problem.among[v]))
        if v in problem.among
        else box.high[v] - box.low[v] + 1
        for v in problem.choices
    )
    arrays = all(constraint.evaluate is not None for constraint in problem.constraints)
    return arrays and all(count <= MOST_VALUES for count in counts)


def _within(box: Box, variable: int, values: Column) -> Column:
    return values[(values >= box.low[variable]) & (values <= box.high[variable])]


def ordered(problem: Problem, box: Box, cost: Sequence[int], choices: Sequence[int]) -> list[Stage]:
    """Give the stages for some choices of a problem whose intervals are narrowed."""
    return _Order(problem, box, cost, choices).stages()


class _Order:
    """What is known and what is pending while the stages are made."""

    def __init__(
        self, problem: Problem, box: Box, cost: Sequence[int], choices: Sequence[int]
    ) -> None:
        self.box, self.cost, self.among = box, cost, problem.among
        self.ends = ends(box)
        self.fixed = {v for v, low in enumerate(box.low) if low == box.high[v]}
        self.choices = [v for v in choices if v not in self.fixed]
        self.known = {*self.fixed}
        self.alone: dict[int, list[Constraint]] = {choice: [] for choice in self.choices}
        self.pending: list[Check] = []
        for constraint in problem.constraints:
            loose = {*constraint.parts} - self.fixed
            if constraint.result is None and len(loose) == 1 and loose <= self.alone.keys():
                self.alone[loose.pop()].append(constraint)
            else:
                self.pending.append(self._check(constraint))

    def stages(self) -> list[Stage]:
        stages = [Stage(None, np.zeros(1, np.int64), [*self._passes(set())], [])]
        reached = [{*self.known}]
        for choice in self.choices:
            stages.append(Stage(choice, self._values(choice), [*self._passes({choice})], []))
            reached.append({*self.known})
        used = {*self.choices, *self.cost}
        for stage, known in zip(reversed(stages), reversed(reached), strict=True):
            stage.kept.extend(sorted((used & known) - self.fixed))
            checks = [check for step in stage.passes for check in (*step.known, *step.bounded)]
            used.update(part for check in checks for part in check.constraint.parts)
        return stages

    def _values(self, choice: int) -> Column:
        """List the values of a choice that the constraints on it alone leave."""
        if choice in self.among:
            values = _within(self.box, choice, self.among[choice])
        else:
            values = np.arange(self.box.low[choice], self.box.high[choice] + 1)
        for constraint in self.alone[choice]:
            columns = [values if v == choice else self.ends[v][0] for v in constraint.parts]
            values = values[constraint.of(columns)]
        return values

    def _check(self, constraint: Constraint) -> Check:
        """Hold what comes of the intervals of the parts against what is allowed."""
        if not constraint.signs:
            return Check(constraint, True, True)
        parts, result = [self.ends[v] for v in constraint.parts], constraint.result
        least = int(constraint.extreme(parts, most=False)[0])
        if result is None:
            return Check(constraint, not least, False)
        most = int(constraint.extreme(parts, most=True)[0])
        above = most > self.box.high[result] or result in self.cost[:1]
        return Check(constraint, least < self.box.low[result], above)

    def _passes(self, fresh: set[int]) -> Iterator[Pass]:
        """Give what follows of a new choice; each call waits until all before it is checked."""
        self.known |= fresh
        call: list[Check] = []
        while True:
            done = [*self._follow(call, fresh)]
            yield Pass(done, self._bounded(fresh))
            call = [c for c in self.pending if {*c.constraint.parts} <= self.known][:1]
            if not call:
                return
            fresh = set()

    def _follow(self, call: list[Check], fresh: set[int]) -> Iterator[Check]:
        """Take a call, and all that is known then without another, off what is pending."""
        left = []
        for check in self.pending:
            constraint = check.constraint
            ready = check in call or not constraint.slow
            if not ready or not {*constraint.parts} <= self.known:
                left.append(check)
                continue
            if constraint.result is not None:
                self.known.add(constraint.result)
                fresh.add(constraint.result)
            if check.cuts or constraint.result is not None:
                yield check
        self.pending = left

    def _bounded(self, fresh: set[int]) -> list[Check]:
        """List what to bound: what may rule rows out by the fresh values, and its parts."""
        partly, moved = self.known - self.fixed, {*fresh}
        able: list[tuple[Check, bool]] = []
        for check in self.pending:
            constraint = check.constraint
            if not constraint.signs or not partly & {*constraint.parts}:
                continue
            moves = bool(moved & {*constraint.parts})
            able.append((check, moves and check.cuts))
            if constraint.result is not None:
                partly.add(constraint.result)
                moved |= {constraint.result} if moves else set()
        needed: set[int] = set()
        chosen: list[Check] = []
        for check, wanted in reversed(able):
            if wanted or check.constraint.result in needed:
                needed.update(check.constraint.parts)
                chosen.append(check)
        return chosen[::-1]
