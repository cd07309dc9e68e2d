"""The search of popsolver by arrays, for choices from short lists of values.

A row is an assignment. The choices are added one after another: each row is repeated for each value
of the next choice, what follows is evaluated for all rows at once, and what cannot hold, or cannot
be cheaper than the best so far, is dropped. Chunks of rows go depth first, in lexicographic order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from simulator.poplibs.popsolver_constraints import Column, Problem
from simulator.poplibs.popsolver_intervals import Box
from simulator.poplibs.popsolver_stages import Check, Stage, ends, ordered

Places: TypeAlias = NDArray[np.intp]

MOST_ROWS = 1 << 16  # of a chunk; its columns stay in a processor's cache


class Table:
    """Columns of the known variables; what is kept of them is gathered when it is asked for.

    While the values of a choice are being added to rows, the table is a grid [row, value], and its
    columns have one length in one or both directions; the first `keep` makes it rows again.
    """

    def __init__(self, columns: dict[int, Column], rows: int) -> None:
        self.shape: tuple[int, ...] = (rows,)
        self._columns = {variable: (0, column) for variable, column in columns.items()}
        self._kept: list[tuple[Places, ...]] = []  # of each generation, what is still there

    def __contains__(self, variable: int) -> bool:
        return variable in self._columns

    def __getitem__(self, variable: int) -> Column:
        generation, column = self._columns[variable]
        if generation < len(self._kept):
            column = _gathered(column, self._kept[generation])
            self._columns[variable] = (len(self._kept), column)
        return column

    def __iter__(self) -> Iterator[int]:
        return iter(self._columns)

    def __setitem__(self, variable: int, column: Column) -> None:
        self._columns[variable] = (len(self._kept), column)

    @property
    def rows(self) -> int:
        return prod(self.shape)

    def part(self, places: slice | Places) -> Table:
        """Give the table of some of the rows."""
        columns = {variable: self[variable][places] for variable in self._columns}
        return Table(columns, len(np.arange(self.rows)[places]))

    def only(self, variables: Iterable[int]) -> Table:
        """Give the table of some of the columns."""
        return Table({variable: self[variable] for variable in variables}, self.rows)

    def spread(self, variable: int, values: Column) -> None:
        """Make a grid of all rows and all values of one more variable."""
        for known, (generation, column) in self._columns.items():
            self._columns[known] = generation, column[:, None]
        self.shape = (*self.shape, len(values))
        self[variable] = values[None, :]

    def keep(self, holds: NDArray[Any]) -> None:
        """Drop the rows, or places of the grid, where something does not hold."""
        if len(self.shape) == 1 and holds.all():
            return
        self._pick(np.flatnonzero(np.broadcast_to(holds, self.shape)))

    def flatten(self) -> None:
        """Make rows of a grid."""
        if len(self.shape) == 2:
            self._pick(np.arange(self.rows))

    def _pick(self, picked: Places) -> None:
        self._kept = [tuple(places[picked] for places in kept) for kept in self._kept]
        grid = len(self.shape) == 2
        self._kept.append(np.divmod(picked, self.shape[1]) if grid else (picked,))
        self.shape = (len(picked),)


def _gathered(column: Column, places: tuple[Places, ...]) -> Column:
    """Take places of a column, or of a grid's [row, value] column that may be of length 1."""
    if column.ndim == 1:
        return column.take(places[0])
    rows, values = places
    tall, wide = column.shape
    if wide == 1:
        return column.take(rows, mode="clip")
    return column.take(values if tall == 1 else rows * wide + values)


def search(problem: Problem, box: Box, cost: Sequence[int]) -> tuple[int, ...]:
    """Find the values of all variables with the least cost; none when there is no solution.

    Of solutions that cost the same, it is the first in the order of the choices' values.
    """
    if not _probe(problem, box, cost):
        return ()
    run = _Run(problem, box, cost)
    stages = ordered(problem, box, cost, problem.choices)
    if cost:
        run.sample(stages)
    waiting = [(0, Table({}, 1))]
    while waiting and not run.done:
        depth, table = waiting.pop()
        if depth == len(stages):
            run.consider(table)
            continue
        rows = _chunk(stages[depth])
        if table.rows > rows:
            waiting.append((depth, table.part(slice(rows, None))))
            table = table.part(slice(rows))
        run.advance(stages[depth], table)
        if table.rows:
            waiting.append((depth + 1, table.only(stages[depth].kept)))
    return () if run.best is None else problem.followed(run.best)


def _probe(problem: Problem, box: Box, cost: Sequence[int]) -> bool:
    """Narrow each choice, and what follows from it alone, to what its values come to."""
    for choice in problem.choices:
        run, table = _Run(problem, box, cost), Table({}, 1)
        for stage in ordered(problem, box, cost, [choice]):
            run.advance(stage, table)
            if not table.rows:
                return False
        for variable in table:
            values = table[variable]
            box.clip(variable, int(values.min()), int(values.max()))
    return problem.settle(box)


def _chunk(stage: Stage) -> int:
    """Tell how many rows may be repeated for each value of a choice."""
    return max(1, MOST_ROWS // max(1, len(stage.values)))


class _Run:
    """The bounds of all variables, and the best row so far."""

    def __init__(self, problem: Problem, box: Box, cost: Sequence[int]) -> None:
        self.ends, self.cost, self.choices = ends(box), cost, problem.choices
        self.best: dict[int, int] | None = None  # the values of the choices
        self.least: list[int] = []

    @property
    def done(self) -> bool:
        """Tell whether nothing can cost less than the best row."""
        if not self.cost:
            return self.best is not None
        low, high = self.ends[self.cost[0]]
        return bool(low > high)

    def sample(self, stages: Sequence[Stage]) -> None:
        """Bound the cost by that of a few rows, so that the search drops dearer ones at once."""
        table = Table({}, 1)
        for stage in stages:
            rows = _chunk(stage)
            if table.rows > rows:
                table = table.part(np.linspace(0, table.rows - 1, rows).astype(np.intp))
            self.advance(stage, table)
            if not table.rows:
                return
            table = table.only(stage.kept)
        self._limit(int(self._column(self.cost[0], table).min()))

    def _limit(self, most: int) -> None:
        """Let the first of the costs be this at most."""
        low, _ = self.ends[self.cost[0]]
        self.ends[self.cost[0]] = low, np.array([most])

    def advance(self, stage: Stage, table: Table) -> None:
        """Add a choice to the rows of a table, and drop those that come to nothing."""
        if stage.choice is not None:
            values = stage.values
            table.spread(stage.choice, values[values <= self.ends[stage.choice][1]])
        for step in stage.passes:
            for check in step.known:
                if check.constraint.slow:
                    table.flatten()
                if table.rows:
                    self._evaluate(check, table)
            if table.rows and step.bounded:
                self._bound(step.bounded, table)
        table.flatten()

    def consider(self, table: Table) -> None:
        """Take the first of the cheapest rows, if it is cheaper than the best so far."""
        rows = np.arange(table.rows)
        for variable in self.cost:
            costs = np.broadcast_to(self._column(variable, table), table.rows)[rows]
            rows = rows[costs == costs.min()]
        cost = [self._value(variable, table, rows[0]) for variable in self.cost]
        if self.best is None or cost < self.least:
            self.best = {v: self._value(v, table, rows[0]) for v in self.choices}
            self.least = cost
            if cost:
                self._limit(cost[0] - (len(cost) == 1))

    def _column(self, variable: int, table: Table) -> Column:
        return table[variable] if variable in table else self.ends[variable][0]

    def _value(self, variable: int, table: Table, row: np.intp) -> int:
        return int(np.broadcast_to(self._column(variable, table), table.rows)[row])

    def _evaluate(self, check: Check, table: Table) -> None:
        """Evaluate a constraint whose parts are known."""
        constraint = check.constraint
        found = constraint.of([self._column(part, table) for part in constraint.parts])
        if constraint.result is None:
            table.keep(found)
            return
        table[constraint.result] = found
        low, high = self.ends[constraint.result]
        if check.floor:
            table.keep(found >= low)
        if check.ceiling:
            table.keep(table[constraint.result] <= high)

    def _bound(self, checks: Sequence[Check], table: Table) -> None:
        """Drop the rows for which some constraint cannot hold whatever the other choices are."""
        between: dict[int, tuple[Column, Column]] = {}
        holds: list[NDArray[Any]] = []
        for check in checks:
            constraint = check.constraint
            parts = [
                (table[part],) * 2 if part in table else between.get(part, self.ends[part])
                for part in constraint.parts
            ]
            most = constraint.extreme(parts, most=True)
            if constraint.result is None:
                holds.append(most)
                continue
            low, high = self.ends[constraint.result]
            low = np.maximum(low, constraint.extreme(parts, most=False))
            high = np.minimum(high, most)
            if check.cuts:
                holds.append(low <= high)
                high = np.maximum(low, high)  # of rows that will be dropped, so that it divides
            between[constraint.result] = low, high
        table.keep(reduce(np.logical_and, holds))
