"""The image of tiles against recorded clocks, and against each tile and step one by one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pva.analysis.execution import tile_activity as module
from pva.analysis.execution.tile_activity import ACTIVITIES, CLOCK_INTERVAL, tile_activity
from pva.data.dataset import Dataset
from pva.report import Report, openReport

SAMPLES = Path(__file__).parents[2] / "sample_reports"


@pytest.fixture(scope="module", params=["mlp_digits_tiny", "newton_pipeline_replicas"])
def report(request: pytest.FixtureRequest) -> Report:
    """Return reports of one IPU and of several."""
    return openReport(str(SAMPLES / request.param))


def clocks(report: Report, steps: slice) -> tuple[np.ndarray, np.ndarray]:
    """Return when steps begin and end on each tile."""
    tiles = slice(0, report.dataset.of_replica("num_tiles"))
    first, clock = module._anchored(report, steps.start, tiles)
    cost, _ = module._costs(report, slice(first, steps.stop), tiles)
    begin = module._begins(report, slice(first, steps.stop), tiles, clock, cost)
    return begin, begin + cost


def test_steps_begin_on_the_latest_tile_where_the_report_says(report: Report) -> None:
    data = report.dataset
    count = min(data.length("steps"), CLOCK_INTERVAL)
    begin, end = clocks(report, slice(0, count))
    assert (begin.max(axis=1) == data.column("steps", "cycles_from")[:count]).all()
    work = data.texts("steps", "type")[:count] != "Sync"
    assert (end.max(axis=1) == data.column("steps", "cycles_to")[:count])[work].all()


@pytest.mark.parametrize("number", [1, 2, 5])
def test_the_next_snapshot_is_reached(number: int) -> None:
    report = openReport(str(SAMPLES / "mlp_digits_tiny"))
    last = number * CLOCK_INTERVAL
    _, end = clocks(report, slice(last - CLOCK_INTERVAL, last))
    assert report.dataset.texts("steps", "type")[last - 1] != "Sync"
    assert end[-1].tolist() == report.dataset.array("tile_clock")[number].tolist()


def apart(report: Report, gap: int) -> tuple[Report, int]:
    """Let the second run begin so many cycles later; give when the first one ends, too."""
    data = report.dataset
    steps, by_ipu = data.table("steps"), data.table("steps_by_ipu")
    later = steps["run"] == 1
    steps |= {name: steps[name] + gap * later for name in ("cycles_from", "cycles_to")}
    times = [name for name in by_ipu if name.endswith(("_min", "_max"))]
    by_ipu |= {name: by_ipu[name] + gap * later[by_ipu["step"]] for name in times}
    changed = Dataset.of({"steps": steps, "steps_by_ipu": by_ipu})
    end = int(steps["cycles_to"][~later].max())
    return Report.of(Dataset.joined((changed, data))), end


@pytest.mark.parametrize("columns", [201, 302, 403])
def test_no_tile_does_anything_between_runs(columns: int) -> None:
    report, end = apart(openReport(str(SAMPLES / "newton_pipeline_replicas")), 20_000)
    window = (0, int(report.dataset.column("steps", "cycles_to").max()))
    edges = np.linspace(*window, columns + 1)
    between = (edges[:-1] >= end) & (edges[1:] <= end + 20_000)
    shares = tile_activity(report, *window, columns=columns, rows=3).shares
    assert between.sum() > 10 and (shares[:, :, between] == 0).all()
    assert (shares[:, :, ~between].sum(axis=0) > 0).any()


def test_time_of_a_cell_is_what_its_tiles_do_in_it(report: Report) -> None:
    data = report.dataset
    window, columns = (1000, 2600), 16
    found = tile_activity(report, *window, columns=columns, rows=10**6)
    assert found.by_step and found.shares.shape[1] == data.of_replica("num_tiles")
    steps = slice(0, int(np.searchsorted(data.column("steps", "cycles_from"), window[1])) + 2)
    begin, end = clocks(report, steps)
    types = data.texts("steps", "type")[steps]
    edges = np.linspace(*window, columns + 1)
    for number, kind in list(enumerate(ACTIVITIES))[1:]:
        mine = types == kind
        for tile in (0, 1, found.shares.shape[1] - 1):
            spans = list(zip(begin[mine, tile], end[mine, tile], strict=True))
            expected = [
                sum(max(0.0, min(b, right) - max(a, left)) for a, b in spans) / (right - left)
                for left, right in zip(edges[:-1], edges[1:], strict=True)
            ]
            assert found.shares[number, tile].tolist() == pytest.approx(expected, abs=1e-9)


def test_many_steps_give_the_same_shares_as_each_placed_on_its_tiles(
    report: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    extent = (0, int(report.dataset.column("steps", "cycles_to").max()))
    placed = tile_activity(report, *extent, columns=1, rows=3)
    monkeypatch.setattr(module, "MAX_CELLS", 0)
    spread = tile_activity(report, *extent, columns=1, rows=3)
    assert placed.by_step and not spread.by_step
    assert spread.shares == pytest.approx(placed.shares, abs=1e-9)
    assert placed.shares.sum(axis=0) == pytest.approx(np.ones((3, 1)))


def test_a_window_behind_the_end_holds_nothing(report: Report) -> None:
    last = int(report.dataset.column("steps", "cycles_to").max())
    assert not tile_activity(report, last + 5, last + 50, columns=4, rows=4).shares.any()


@pytest.mark.parametrize("tiles", [(0, 1), (-5, 2), (10**6, 10**7), (2, 1)])
def test_tiles_that_are_not_there_are_left_out(report: Report, tiles: tuple[int, int]) -> None:
    found = tile_activity(report, 0, 100, columns=2, rows=4, tiles=tiles)
    assert 0 <= found.tiles[0] < found.tiles[-1] <= report.dataset.of_replica("num_tiles")
