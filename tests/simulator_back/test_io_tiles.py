"""Tiles that exchange with the host while the others compute."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from pva import openReport
from pva.check import check
from pva.check.law import Values
from pva.data.dataset import Dataset
from simulator import gcl, poplar
from simulator.graph.errors import poplibs_error
from tests.io_tiles import IO_TILES, NUMBERS, TURNS, machine, report_of


def test_a_turn_lasts_as_long_as_the_longer_of_fetching_and_computing(tmp_path: Path) -> None:
    together, _ = report_of(tmp_path / "together", work=10)
    apart, _ = report_of(tmp_path / "apart", work=10, wait=True)
    fetch = int(together.array("host_exchange_cycles").max())
    gain = apart.value("execution", "cycles") - together.value("execution", "cycles")
    assert TURNS * fetch < gain < TURNS * (fetch + 5 * 126)  # and the syncs around a fetch


def test_a_fetch_that_takes_longer_than_the_work_is_waited_for(tmp_path: Path) -> None:
    data, _ = report_of(tmp_path, work=0)
    steps, hidden = _fetches(data)
    assert 0 < hidden[0] < data.column("steps", "cycles")[steps[0]]


def test_values_are_those_of_a_program_without_io_tiles(tmp_path: Path) -> None:
    numbers = (np.arange(NUMBERS * (TURNS + 1)) % 7).reshape(-1, NUMBERS)[:TURNS]
    _, total = report_of(tmp_path)
    assert np.array_equal(total, (numbers.astype(np.float32) ** 2).sum(axis=0))


@pytest.mark.parametrize("ipus", [1, 2])
def test_a_report_of_it_keeps_every_law(tmp_path: Path, ipus: int) -> None:
    data, _ = report_of(tmp_path, ipus=ipus)
    assert check(data) == []
    assert data.column("io_tiles", "tile").tolist() == gcl.perIPUTiles(
        poplar.Graph(machine().getTarget()), 0, IO_TILES
    )


@pytest.mark.parametrize(
    ("options", "apart"),
    [
        ({"debug.instrument": True}, True),
        ({"profiler.blocks.filter": ".*", "profiler.programs.filter": ".*"}, True),
        # one tile measures for all, so that they go in step
        ({"debug.instrument": True, "debug.computeInstrumentationLevel": "device"}, False),
    ],
)
def test_what_is_measured_keeps_every_law(
    tmp_path: Path, options: dict[str, object], apart: bool
) -> None:
    data, _ = report_of(tmp_path, **options)
    assert check(data) == []
    assert (data.length("io_tiles") > 0) == apart


def test_only_syncs_of_the_tiles_that_meet_are_waited_for(tmp_path: Path) -> None:
    data, _ = report_of(tmp_path)
    sets = data.texts("programs", "tile_set")
    names, types = data.column("programs", "name"), data.texts("programs", "type")
    assert set(sets[(types == "StreamCopy") & (names == "fetch")]) == {"IO"}
    assert set(sets[types == "OnTileExecute"]) == {"Compute"}
    assert set(sets[names == "hand over/ExchangePre"]) == {"All"}


def test_what_the_host_brings_meanwhile_is_hidden(tmp_path: Path) -> None:
    data, _ = report_of(tmp_path, work=10)
    steps, hidden = _fetches(data)
    assert len(steps) == TURNS
    assert np.array_equal(hidden, data.column("steps", "cycles")[steps])


def test_a_copy_that_is_hidden_has_its_three_phases_in_programs_steps_and_blocks(
    tmp_path: Path,
) -> None:
    phases = ["StreamCopyBegin", "StreamCopyMid", "StreamCopyEnd"]
    report_of(
        tmp_path, **dict.fromkeys(("profiler.blocks.filter", "profiler.programs.filter"), ".")
    )
    report = openReport(tmp_path)
    (run,) = report.execution.runs
    made = [p.type.name for p in report.compilation.programs if p.name == "fetch"]
    assert [kind for kind in made if kind in phases] == phases
    steps = [step for step in run.steps if step.program.name == "fetch"]
    assert [step.program.type.name for step in steps] == TURNS * phases
    assert [step.cycles > 0 for step in steps] == TURNS * [False, True, False]
    blocks = [b for b in report.execution.blocks(0) if b.isStreamCopy and b.program.name == "fetch"]
    assert [block.program.type.name for block in blocks] == TURNS * phases
    assert all(a.cyclesTo <= b.cyclesFrom for a, b in pairwise(blocks))


def _fetches(data: Dataset) -> tuple[Values, Values]:
    """Return the steps that fetch, and the cycles of each that made the run no longer."""
    named = data.column("programs", "name")[data.column("steps", "program")] == "fetch"
    steps = np.flatnonzero(named & (data.texts("steps", "type") == "StreamCopy"))
    return steps, data.column("steps", "cycles_overlapped")[steps]


def test_io_tiles_are_spread_over_the_exchange_contexts_in_pairs() -> None:
    graph = poplar.Graph(poplar.IPUModel("mk2").createDevice().getTarget())
    tiles = np.array(gcl.perIPUTiles(graph, 0, 92))
    assert np.bincount(tiles // 32).tolist() == [2] * 46
    assert (tiles.reshape(-1, 2) % 2 == [0, 1]).all()
    rest = gcl.perIPUTiles(graph, 92, 1472 - 92)
    assert sorted([*tiles.tolist(), *rest]) == list(range(1472))


@pytest.mark.parametrize(("offset", "count"), [(0, 3), (1, 2), (0, 10), (8, 2), (-2, 2), (0, 0)])
def test_tiles_that_are_not_there_or_no_pairs_are_refused(offset: int, count: int) -> None:
    with pytest.raises(poplibs_error, match="perIPUTiles"):
        gcl.perIPUTiles(poplar.Graph(machine().getTarget()), offset, count)
