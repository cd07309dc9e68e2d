"""A report's dataset without some of its runs, which are counted among the other runs.

Runs and steps are numbered anew. Clocks of tiles, kept by number of step, are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import cache

import numpy as np
import numpy.typing as npt

from pva import schema
from pva.array_types import Integers, Values
from pva.data.dataset import DTYPES, Dataset
from pva.data.sources import Spend

RUNS, STEPS, OTHERS, TOTALS = "runs", "steps", "other_runs", "tile_cycles"
CLOCK = "tile_clock"
# What refers to rows that are numbered anew, and to rows of which table.
REFERENCES = {
    (RUNS, "first_step"): STEPS,
    (RUNS, "end_step"): STEPS,
    (STEPS, "run"): RUNS,
    ("steps_by_ipu", "step"): STEPS,
    ("blocks", "run"): RUNS,
}
RENUMBERED = {table for table, _ in REFERENCES}


class WithoutRuns:
    """The source of another dataset without some rows of `runs`.

    `spent` is what the tiles did in these, by column of `tile_cycles`; it is asked for once.
    """

    def __init__(
        self, data: Dataset, rows: Integers, spent: Callable[[], Mapping[str, int]]
    ) -> None:
        self.room = data.room
        self._data = data
        self._left_out = rows
        self._spent = cache(spent)
        self._rows: dict[str, Integers] = {}

    def tables(self) -> Collection[str]:
        return {*self._data.source.tables(), OTHERS}

    def arrays(self) -> Collection[str]:
        return set(self._data.source.arrays()) - {CLOCK}  # it is kept by number of step

    def length(self, table: str) -> int:
        if table == OTHERS:
            return self._data.length(OTHERS) + len(self._left_out)
        return len(self.kept_rows(table)) if table in RENUMBERED else self._data.length(table)

    def whole(self, table: str, spend: Spend) -> list[Values] | None:
        return None

    def rows(self, array: str, first: int, stop: int | None, spend: Spend) -> Values:
        return self._data.source.rows(array, first, stop, spend)

    def kept_rows(self, table: str) -> Integers:
        """Return which rows of a table that refers to runs are kept."""
        if table not in self._rows:
            self._rows[table] = np.flatnonzero(self._are_kept(table))
        return self._rows[table]

    def _are_kept(self, table: str) -> npt.NDArray[np.bool_]:
        data = self._data
        mask = np.ones(data.length(table), dtype=np.bool_)
        if table == RUNS:
            mask[self._left_out] = False
        elif table == STEPS:
            first, end = (
                data.column(RUNS, name)[self._left_out] for name in ("first_step", "end_step")
            )
            for begin, stop in zip(first.tolist(), end.tolist(), strict=True):  # few runs
                mask[begin:stop] = False
        else:
            (of,) = (column for name, column in REFERENCES if name == table)
            mask = self._kept_among(REFERENCES[table, of])[data.column(table, of)]
        return mask

    def _kept_among(self, table: str) -> npt.NDArray[np.bool_]:
        mask = np.zeros(self._data.length(table), dtype=np.bool_)
        mask[self.kept_rows(table)] = True
        return mask

    def column(self, table: str, column: str, spend: Spend) -> Values:
        values = self._column(table, column)
        spend(values.nbytes, f"table {table}, column {column}")
        return values

    def _column(self, table: str, column: str) -> Values:
        data = self._data
        if table == OTHERS:
            return self._other_runs(column)
        if (table, column) == ("execution", "cycles"):
            return np.array([recorded_cycles(data, self.kept_rows(RUNS))])
        if table == TOTALS:
            return np.array([int(data.value(TOTALS, column)) - self._spent()[column]])
        values = data.stored(table, column)
        of = REFERENCES.get((table, column))
        if of and data.has(of):  # without it, its rows may be any numbers
            before = np.append(0, np.cumsum(self._kept_among(of)))
            values = before[data.column(table, column)]
        return values[self.kept_rows(table)] if table in RENUMBERED else values

    def _other_runs(self, column: str) -> Values:
        """Return a column of the other runs, those of set-up among them, by the clock."""
        data = self._data
        kind = schema.TABLE[OTHERS].column(column).kind
        parts = {
            name: np.concatenate(
                [
                    data.column(OTHERS, name) if data.has(OTHERS) else [],
                    data.column(RUNS, name)[self._left_out],
                ]
            )
            for name in ("cycles_from", column)
        }
        order = np.argsort(parts["cycles_from"], kind="stable")
        return parts[column][order].astype(DTYPES[kind])


def recorded_cycles(data: Dataset, rows: Integers) -> int:
    """Add up the cycles of those rows of `runs` that were recorded step by step."""
    first, end, cycles = (
        data.column(RUNS, name)[rows] for name in ("first_step", "end_step", "cycles")
    )
    return int(cycles[end > first].sum())
