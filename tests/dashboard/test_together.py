"""Both timelines on one axis: three runs and the host work between them (see test_alignment.py)."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dashboard.address import parse
from dashboard.exports import exported
from dashboard.pages.execution import page as execution
from dashboard.store import Store
from dashboard.timeline.compared import compared_timeline
from dashboard.timeline.together import together_timeline
from pva.analysis.host.alignment import Alignment
from pva.analysis.timeline.pyramid import build
from pva.plot.lanes import Lane, RowItems, Timeline
from tests.builders import small_report, write_report
from tests.dashboard.layouts import words

FOUND = Alignment(
    run=np.arange(3),
    name=["", "", "last"],
    begin=np.array([100, 450, 700]),
    end=np.array([400, 650, 900]),
    cycles_from=np.array([0, 50, 150]),
    cycles=np.array([50, 100, 200]),
    device=np.array([50, 100, 200]),
    clock=1e9,
)
NAMES = ["Engine::run #0", "Engine::run #1", "Engine::run #2: last"]


def numbers(*values: int) -> Any:
    return np.array(values, dtype=np.int64)


def device() -> Timeline:
    """Return a lane of two runs recorded in full and four steps of them, on the device's clock."""
    rows = [
        (numbers(0, 50), numbers(50, 150), numbers(0, 0)),
        (numbers(0, 25, 50, 100), numbers(25, 50, 100, 150), numbers(1, 2, 1, 2)),
    ]
    lane = Lane("IPU 0", (), 0, 2, ("Runs", "Steps"), ("run", "step"), 1)
    tracks = build(rows, lambda: [0, 1, 1])
    items = (RowItems(), RowItems.of(numbers(0, 1, 2, 3)))
    colours = [("run", "Run"), ("step", "Step")]
    return Timeline("cycles", 1e9, (lane,), tracks, ["run", "a", "b"], colours, items)


def host() -> Timeline:
    """Return a thread with work before, between and after, and the simulator's own phases."""
    rows = [
        (numbers(0, 100, 400, 450, 900), numbers(100, 400, 450, 650, 1000), numbers(0, 1, 0, 1, 0)),
        (numbers(110, 250), numbers(240, 390), numbers(2, 3)),
    ]
    lane = Lane("main", ("t.pvti", "p 1"), 0, 2, (), ("event", "event"), 0)
    labels = ["work", "Engine::run", "run/values", "StreamCallback x"]
    return Timeline("ns", 1e9, (lane,), build(rows, lambda: [0] * 4), labels, [("series-0", "P")])


def shown(whole: Timeline, row: int) -> list[tuple[int, int, str, int]]:
    """Return begin, end, label and item of the events of a row."""
    events = np.arange(*whole.tracks.offset[row : row + 2])
    columns = (whole.tracks.begin[events], whole.tracks.ends(events), whole.tracks.label[events])
    return [
        (int(begin), int(end), whole.labels[label], int(item))
        for begin, end, label, item in zip(*columns, whole.item(events), strict=True)
    ]


def test_as_on_the_device_runs_take_their_cycles_and_the_host_moves_up() -> None:
    whole = together_timeline(device(), host(), FOUND, "device", NAMES)
    assert [(lane.path, lane.name) for lane in whole.lanes] == [
        (("Device",), "IPU 0"), (("Host", "p 1"), "main")
    ]  # fmt: skip
    assert [(lane.first, lane.stop, lane.overview) for lane in whole.lanes] == [
        (0, 2, 1),
        (2, 4, 2),
    ]
    runs = [(begin, end, name) for begin, end, name, _ in shown(whole, 0)]
    assert runs == [(100, 150, NAMES[0]), (200, 300, NAMES[1]), (350, 550, NAMES[2])]
    assert shown(whole, 1) == [
        (100, 125, "a", 1), (125, 150, "b", 3), (200, 250, "a", 5), (250, 300, "b", 7)
    ]  # fmt: skip
    assert [(b, e, text) for b, e, text, _ in shown(whole, 2)] == [
        (0, 100, "work"), (100, 150, "Engine::run"), (150, 200, "work"),
        (200, 300, "Engine::run"), (550, 650, "work"),
    ]  # fmt: skip
    assert shown(whole, 3) == [(125, 148, "StreamCallback x", 12)]


def test_as_on_the_device_the_axis_begins_with_the_models_first_run() -> None:
    assert together_timeline(device(), host(), FOUND, "device", NAMES).extent == (100, 650)
    weights = replace(FOUND, run=np.array([-1, 0, 1]))
    assert together_timeline(device(), host(), weights, "device", NAMES).extent == (200, 650)
    assert together_timeline(device(), host(), FOUND, "simulated", NAMES).extent == (0, 1000)


def test_as_simulated_steps_are_stretched_and_nothing_is_hidden() -> None:
    whole = together_timeline(device(), host(), FOUND, "simulated", NAMES)
    assert whole.stretched
    assert [(begin, end) for begin, end, _, _ in shown(whole, 1)] == [
        (100, 250), (250, 400), (450, 550), (550, 650)
    ]  # fmt: skip
    assert [text for _, _, text, _ in shown(whole, 3)] == ["run/values", "StreamCallback x"]


def test_two_reports_stand_below_each_other_by_their_own_clocks() -> None:
    whole = compared_timeline(device(), device(), ("one", "other"))
    assert [lane.path for lane in whole.lanes] == [("one",), ("other",)]
    steps = [(0, 25, "a"), (25, 50, "b"), (50, 100, "a"), (100, 150, "b")]
    assert [row[:3] for row in shown(whole, 1)] == [row[:3] for row in shown(whole, 3)] == steps
    assert [row[3] for row in shown(whole, 1)] == [0, 1, 2, 3]
    assert [row[3] for row in shown(whole, 3)] == [-1] * 4


def test_lanes_of_two_clocks_tell_their_own_and_the_axis_none() -> None:
    alike = compared_timeline(device(), device(), ("one", "other"))
    assert (alike.clock, [lane.clock for lane in alike.lanes]) == (1e9, [0.0, 0.0])
    two = compared_timeline(device(), replace(device(), clock=5e9), ("one", "other"))
    assert (two.clock, [lane.clock for lane in two.lanes]) == (0.0, [1e9, 5e9])
    document = json.loads(exported(two, "json", 0, 150))
    took = [event["dur"] for event in document["traceEvents"] if event["name"] == "b"]
    # 25 and 50 cycles, in microseconds by each clock.
    assert took == [0.025, 0.05, 0.005, 0.01]


@pytest.mark.parametrize(
    ("against", "told"), [("alike", "1,024 cycles (1.0 µs)"),
                          ("fast", "1,024 cycles (1.0 µs in one, 512 ns in fast)")],
)  # fmt: skip
def test_a_range_of_two_reports_is_told_as_time_by_the_clock_of_each(
    tmp_path: Path, against: str, told: str
) -> None:
    fast = small_report(target=dict(small_report().table("target")) | {"clock_frequency": [2e9]})
    store = Store([write_report(tmp_path / "one"), write_report(tmp_path / "alike"),
                   write_report(tmp_path / "fast", fast)])  # fmt: skip
    chosen = parse("/execution", f"?report=one&against={against}")
    assert told in words(execution.range_details(store, chosen, "light"))


@pytest.mark.parametrize("axis", ["device", "simulated"])
def test_colours_follow_their_labels(axis: Any) -> None:
    whole = together_timeline(device(), host(), FOUND, axis, NAMES)
    words = {text: whole.colours[int(kind)][1]
             for text, kind in zip(whole.labels, whole.tracks.kind, strict=False)}  # fmt: skip
    assert (words["a"], words["work"], words[NAMES[2]]) == ("Step", "P", "Run")
