"""Explore a space: run what is not there yet, keep every row at once, and the best reports."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

from pva.schema.exploration import REPORTS, PointFigures, PointRow
from simulator.explore import record, search
from simulator.explore.engine import Engine
from simulator.explore.levers import Point, Space
from simulator.explore.work import is_disk_full, tasks_of

Progress = Callable[[int, int, str], None]
Rows = Sequence[PointRow]
BETWEEN_TABLES = 10.0  # seconds, as points end


@dataclass(frozen=True, slots=True)
class Plan:
    """How a space is explored: limits of each point, which reports are kept, what is searched for.

    `best` sorts rows, the best first; `objectives` are columns with 1 where more is better. With
    more than `most` points in the space Optuna chooses so many. `again` runs failed points again.
    """

    columns: Sequence[str]
    best: Callable[[Rows], Rows]
    objectives: Mapping[str, int]
    seconds: float = 3600
    memory: int = 0
    keep: int = 8
    most: int = 256
    seed: int = 0
    again: bool = False
    progress: Progress = field(default=lambda finished, total, now: None)


class Exploration:
    """The exploration of one space into one directory; its `rows` are by the keys of points."""

    def __init__(self, space: Space, out: Path, engine: Engine, plan: Plan) -> None:
        self.space, self.plan, self._engine = space, plan, engine
        self._record = record.Record(out, space)
        self._total = min(space.size, plan.most)
        self._written = time.monotonic()
        self.computed = 0
        self.asked: dict[str, Point] = {}

    @property
    def rows(self) -> dict[str, PointRow]:
        """The rows of all points in the directory."""
        return self._record.rows

    def run(self) -> None:
        """Run the space, or what a search chooses of it; what is done is kept however it ends."""
        self._record.read()
        try:
            if self.space.size <= self.plan.most:
                search.whole(self.space, self.points)
            else:
                plan = self.plan
                search.searched(self.space, self.points, self.rows, plan.objectives, plan.most,
                                plan.seed, self._record.path)  # fmt: skip
        finally:
            self.close()

    def read(self) -> None:
        """Read what is there, before single points are run."""
        self._record.read()

    def close(self) -> None:
        """Write the table, and keep the reports of the best points alone."""
        self._keep_best()
        with suppress(record.DiskFullError):
            self._record.write_table(self.plan.columns)

    def points(self, points: Sequence[Point]) -> None:
        """Run those points that are not there yet; raises DiskFullError."""
        by_key = {point.key: point for point in points}
        self._record.tell_levers(point for point in points if point.key in self.rows)
        self.asked |= by_key
        missing = [point for point in by_key.values() if self._is_missing(point)]
        reports = self._record.path / REPORTS
        tasks = tasks_of(missing, reports.resolve(), self.plan.seconds, self.plan.memory)
        self._tell("the first point")
        # Closed at once, whatever ends it: Python waits for the threads of one that is only let go.
        with closing(self._engine.run(tasks)) as rows:
            for task, figures in rows:
                if is_disk_full(figures):
                    raise record.disk_full(self._record.path)
                self._take(by_key[task.key], figures, task.report)

    def _is_missing(self, point: Point) -> bool:
        row = self.rows.get(point.key)
        return row is None or (self.plan.again and bool(row.get("error")))

    def _take(self, point: Point, figures: PointFigures, report: str) -> None:
        where = f"{REPORTS}/{point.key}" if Path(report).is_dir() else ""
        self._record.add(record.row_of(point, figures, where))
        self.computed += 1
        self._tell(" ".join(f"{name}={value}" for name, value in point.levers.items()))
        if time.monotonic() - self._written > BETWEEN_TABLES:
            self._keep_best()
            self._record.write_table(self.plan.columns)
            self._written = time.monotonic()

    def _tell(self, now: str) -> None:
        finished = sum(key in self.rows for key in self.asked)
        self.plan.progress(finished, max(self._total, len(self.asked)), now)

    def _keep_best(self) -> None:
        best = self.plan.best(list(self.rows.values()))[: self.plan.keep]
        self._record.keep_reports([row["key"] for row in best])
        for row in self.rows.values():
            if row.get("report") and not (self._record.path / row["report"]).is_dir():
                row["report"] = ""
