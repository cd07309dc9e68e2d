"""Who is waited for, and the critical path, against a replay tile by tile in plain loops."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import pva
from pva.analysis import cycles_by_tile
from pva.analysis.waiting import causes
from pva.errors import NotRecordedError
from pva.report import Report
from tests.analysis.samples import NAMES, executed, never_run, opened, rows, small
from tests.builders import small_report
from tests.io_tiles import report_of

SYNCS = ("Sync", "SyncAns", "Sans")
WITHOUT_SMALL = [name for name in NAMES if name != "small"]  # whose clocks are made up
Span = tuple[int, int, int, int, bool]  # begin, end, tile, program, way to a sync


class Brute:
    """The clocks of all tiles, one by one, with what each of them did and whom it went on with."""

    def __init__(self, report: Report) -> None:
        data = report.dataset
        self.each = int(data.value("target", "tiles_per_ipu"))
        self.tiles = data.of_replica("num_tiles")
        delay = data.array("relative_sync_delay") + data.value("target", "min_sync_delay")
        self.delay = [int(delay[tile % self.each]) for tile in range(self.tiles)]
        self.apart = int(data.value("target", "global_sync_cycles"))
        self.io = set(data.column("io_tiles", "tile").tolist()) if data.has("io_tiles") else set()
        self.programs = rows(report, "programs")
        self.found: Counter[tuple[int, int, int, int, bool]] = Counter()
        self.path: list[Span] = []
        steps = list(executed(report))
        for run in rows(report, "runs"):
            self._run(data, steps[run["first_step"] : run["end_step"]], run)

    def _run(self, data: Any, steps: list[Any], run: dict[str, Any]) -> None:
        # Of each tile: its clock, what it did, and behind which tile's chain it goes on.
        self.clock = [run["cycles_from"]] * self.tiles
        self.did: list[list[Span]] = [[] for _ in range(self.tiles)]
        self.behind: list[Any] = [None] * self.tiles
        for kind, step, row in steps:
            if kind in SYNCS:
                self._sync(step["program"], step["sync_type"] == "External")
            elif kind in ("OnTileExecute", "DoExchange", "GlobalExchange", "StreamCopy"):
                name = {
                    "OnTileExecute": "compute_set_cycles_by_tile",
                    "DoExchange": "exchange_cycles",
                    "GlobalExchange": "external_exchange_cycles",
                    "StreamCopy": "host_exchange_cycles",
                }[kind]
                for tile, cycles in enumerate(data.row(name, row).tolist()):
                    begin = self.clock[tile]
                    self.clock[tile] += cycles
                    if cycles:
                        span = begin, self.clock[tile], tile, step["program"], False
                        self.did[tile].append(span)
        self._join(-1, list(range(self.tiles)), True, [0] * self.tiles)
        end = max(range(self.tiles), key=lambda tile: self.clock[tile])
        self.path += self._chain(end)

    def _chain(self, tile: int) -> list[Span]:
        chain: list[Span] = []
        did, behind = self.did[tile], self.behind[tile]
        while True:
            chain += reversed(did)
            if behind is None:
                return chain
            chain.append(behind[0])
            did, behind = behind[1], behind[2]

    def _sync(self, program: int, external: bool) -> None:
        wanted = {"All": (True, False), "IO": (True,), "Compute": (False,)}
        which = wanted[self.programs[program]["tile_set"]]
        tiles = [t for t in range(self.tiles) if (t % self.each in self.io) in which]
        requests = [(delay + 1) // 2 for delay in self.delay]
        last = self._join(program, tiles, external, requests)
        before = list(self.clock)
        clocks = {}
        for tile in tiles:
            winner = last[tile]
            on = before[winner] + requests[winner] + (self.apart if external else 0)
            clocks[tile] = on + self.delay[tile] // 2
        # What a tile did is not changed any more: what it does next goes to a new list.
        old = {tile: (self.did[tile], self.behind[tile]) for tile in tiles}
        for tile, clock in clocks.items():
            winner = last[tile]
            way = (before[winner], clock, winner, program, True)
            self.behind[tile], self.did[tile] = (way, *old[winner]), []
            self.clock[tile] = clock
            spent = requests[tile] + self.delay[tile] // 2 + (self.apart if external else 0)
            self.found[(tile // self.each,) * 2 + (-1, program, True)] += spent

    def _join(self, program: int, tiles: list[int], external: bool, way: list[int]) -> list[int]:
        """Count the waits of a sync; give whom each tile goes on with."""
        arrived = [clock + way[tile] for tile, clock in enumerate(self.clock)]

        def first_of(some: list[int]) -> int:
            order = sorted(some, key=lambda t: (t % self.each in self.io, t))
            return max(order, key=lambda t: arrived[t])

        sets: dict[Any, list[int]] = {}
        around: dict[Any, list[int]] = {}
        for tile in tiles:
            sets.setdefault((tile // self.each, tile % self.each in self.io), []).append(tile)
            around.setdefault(0 if external else tile // self.each, []).append(tile)
        found: list[int] = [-1] * self.tiles
        alike = {key: first_of(some) for key, some in sets.items()}
        beyond = {key: first_of(some) for key, some in around.items()}
        for tile in tiles:
            ipu = tile // self.each
            near = alike[ipu, tile % self.each in self.io]
            far = found[tile] = beyond[0 if external else ipu]
            waits = (arrived[tile], arrived[near])
            left = waits[1] - waits[0]
            for begin, end, _, step, _ in self.did[near]:
                shared = min(waits[1], end + way[near]) - max(waits[0], begin + way[near])
                if shared > 0:
                    self.found[ipu, ipu, near, step, False] += shared
                    left -= shared
            self.found[ipu, ipu, -1, program, True] += left
            window = arrived[near], arrived[far]
            if window[0] < window[1]:
                head = (self.clock[far], arrived[far], far, program, True)
                self._beside(ipu, window, [head, *self._chain(far)])
        return found

    def _beside(self, ipu: int, window: tuple[int, int], chain: list[Span]) -> None:
        for begin, end, tile, program, way in chain:
            if end <= window[0]:
                return
            shared = min(window[1], end) - max(window[0], begin)
            if shared > 0:
                self.found[ipu, tile // self.each, tile, program, way] += shared

    def waits(self, report: Report) -> Counter[tuple[Any, ...]]:
        counted: Counter[tuple[Any, ...]] = Counter()
        for (ipu, on, tile, program, way), spent in self.found.items():
            counted[(ipu, on, tile, *self._named(program, way))] += spent
        return +counted

    def _named(self, program: int, way: bool) -> tuple[str, str]:
        row = self.programs[program]
        kind = "Sync" if way else row["type"]
        return kind, (row["name"] or f"({row['type']})") if program >= 0 else "(end of the run)"

    def critical_path(self) -> Counter[tuple[Any, ...]]:
        counted: Counter[tuple[Any, ...]] = Counter()
        for begin, end, tile, program, way in self.path:
            counted[(tile // self.each, *self._named(program, way))] += end - begin
        return +counted


def told(frame: Any, *columns: str) -> Counter[tuple[Any, ...]]:
    """Return a table as a count of the last of its columns by the others."""
    counted: Counter[tuple[Any, ...]] = Counter()
    for *key, value in frame[list(columns)].itertuples(index=False):
        counted[tuple(key)] += value
    return +counted


def check(report: Report) -> None:
    brute = Brute(report)
    path = causes.critical_path(report)
    assert told(path, "ipu", "type", "name", "cycles") == brute.critical_path()
    waits = causes.waits(report)
    names = ("ipu", "for_ipu", "for_tile", "type", "name", "tile_cycles")
    assert told(waits, *names) == brute.waits(report)


@pytest.mark.parametrize("name", WITHOUT_SMALL)
def test_samples_are_as_replayed_tile_by_tile(name: str) -> None:
    check(opened(name))


@pytest.mark.parametrize("how", [{}, {"work": 0}, {"wait": True}, {"ipus": 2}, {"io": False}])
def test_io_tiles_wait_and_are_waited_for(tmp_path: Path, how: dict[str, Any]) -> None:
    report_of(tmp_path, **how)
    check(pva.openReport(str(tmp_path)))


@pytest.mark.parametrize("name", NAMES)
def test_causes_add_up_to_the_cycles_of_the_report(name: str) -> None:
    report = opened(name)
    cycles = report.dataset.value("execution", "cycles")
    assert causes.critical_path(report)["cycles"].sum() == cycles
    assert causes.path_steps(report, count=10**6)["cycles"].sum() == cycles
    waits = causes.waits(report).groupby("ipu")["tile_cycles"].sum().to_dict()
    assert waits == cycles_by_tile(report).groupby("ipu")["waiting"].sum().to_dict()
    idle = causes.why_idle(report)
    shares = idle[["compute", *causes.REASONS]]
    assert shares.sum(axis=1).tolist() == pytest.approx([1.0] * len(idle))


def test_a_program_that_never_ran_waits_for_nobody() -> None:
    for analysis in (causes.critical_path, causes.path_steps, causes.waits):
        assert len(analysis(never_run())) == 0
    assert causes.why_idle(never_run())["waits_for"].tolist() == [-1, -1]


@pytest.mark.parametrize("column", ["cycles", "cycles_from"])
def test_runs_whose_clocks_are_not_told_are_refused(column: str) -> None:
    runs = dict(small_report().table("runs")) | {column: [-1, -1]}
    for analysis in (causes.critical_path, causes.path_steps, causes.waits, causes.why_idle):
        with pytest.raises(NotRecordedError, match="cycles of the runs not recorded"):
            analysis(small(runs=runs))
