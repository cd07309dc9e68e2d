"""Traces of several files on one timeline: which are found, how they lie, what the page offers."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dashboard.address import parse
from dashboard.pages.start import page as start
from dashboard.pages.trace import page
from dashboard.pages.trace import tables as trace_tables
from dashboard.store import Store
from dashboard.timeline import endpoint
from dashboard.timeline.charts import chart_list, charts_in
from pva.errors import NotFoundError
from pvti.schema import insert_statement
from tests.builders import write_report
from tests.dashboard.layouts import grid, words
from tests.dashboard.test_bad_timelines import write

SECOND = 10**9


def chrome(path: Path) -> Path:
    """Write a Chrome trace of two events."""
    events = [
        {"ph": "X", "name": "op", "pid": 3, "tid": 4, "ts": ts, "dur": 2} for ts in (0, 5)
    ]  # fmt: skip
    path.write_text(json.dumps({"traceEvents": events}), encoding="utf-8")
    return path


@pytest.fixture
def three(tmp_path: Path) -> list[Path]:
    """Return two traces that begin ten nanoseconds apart, and one of Chrome."""
    one = [(0, 0, 4, 0), (1, 2, 6, 0)]
    return [
        write(tmp_path / "a.pvti", one, ["x"], pid=1),
        write(tmp_path / "b.pvti", one, ["y"], pid=2, wall=10**18 + 10),
        chrome(tmp_path / "c.json"),
    ]


def begins(whole: Any) -> list[int]:
    """Return when each lane begins."""
    return [int(whole.tracks.begin[whole.tracks.offset[lane.first]]) for lane in whole.lanes]


def test_traces_given_together_are_one_source_and_one_each(three: list[Path]) -> None:
    store = Store(three)
    assert store.keys == ["a.pvti+b.pvti+c.json", "a.pvti", "b.pvti", "c.json"]
    lanes = endpoint.unmerged(store, "").lanes
    assert [lane.path for lane in lanes] == [
        ("a.pvti", "made.py 1"), ("a.pvti", "made.py 1"),
        ("b.pvti", "made.py 2"), ("b.pvti", "made.py 2"), ("c.json", "Process 3"),
    ]  # fmt: skip
    assert len(endpoint.unmerged(store, "b.pvti").lanes) == 2


def test_traces_are_not_offered_for_a_comparison_of_reports(
    three: list[Path], tmp_path: Path
) -> None:
    shown = words(start.layout(Store(three), parse("/", "")))
    assert "3 host traces under the paths given." in shown
    assert "Serve two reports to compare them." in shown
    two = [write_report(tmp_path / name) for name in ("before", "after")]
    shown = start.layout(Store([*three, *two]), parse("/", ""))
    assert "2 reports and 3 host traces under the paths given." in words(shown)
    offered = grid(shown, {"address": "before", "default": "before", "page": "/"}).data
    assert [each["value"] for each in offered] == ["before", "after"]


def test_line_of_a_file_ends_with_it(three: list[Path]) -> None:
    with closing(sqlite3.connect(three[0])) as file:
        file.execute(insert_statement("series"), (1, "Power", "W", "die"))
        file.execute(insert_statement("series_points"), (1, 2, 50.0))
        file.commit()
    trace = Store(three[:2]).trace()  # 16 ns long; the first of its files ends at 6
    assert trace is not None
    (line,) = charts_in(trace, 0, trace.duration_ns)["graph 1 Power [W]"]
    assert (trace.duration_ns, line["time"], line["end"]) == (16, [2], 6)


def test_graphs_of_one_name_and_several_units_have_lines_of_their_own(three: list[Path]) -> None:
    with closing(sqlite3.connect(three[0])) as file:
        for number, unit in enumerate(("W", "mV")):
            file.execute(insert_statement("series"), (number, "Board", unit, f"in {unit}"))
            file.execute(insert_statement("series_points"), (number, 2, 50.0))
        file.commit()
    trace = Store(three[:1]).trace()
    assert trace is not None
    found = charts_in(trace, 0, trace.duration_ns)
    shown = [(c["unit"], c["series"], [line["name"] for line in found[c["key"]]])
             for c in chart_list(trace)]  # fmt: skip
    assert shown == [("W", ["in W"], ["in W"]), ("mV", ["in mV"], ["in mV"])]


def test_files_lie_by_the_clock_or_from_their_begin(three: list[Path]) -> None:
    store = Store(three[:2])
    assert begins(endpoint.unmerged(store, "")) == [0, 2, 10, 12]
    assert begins(endpoint.unmerged(store, "", "start")) == [0, 2, 0, 2]


def test_a_file_is_added_and_taken_away_by_a_link(three: list[Path]) -> None:
    store = Store(three)
    one = words(page.layout(store, parse("/trace", "?report=a.pvti")))
    two = words(page.layout(store, parse("/trace", "?report=a.pvti%2Bb.pvti")))
    assert "Add b.pvti" in one and "Add c.json" in one and "Without" not in one
    assert "Without a.pvti" in two and "Add b.pvti" not in two


def test_a_trace_beside_a_report_is_joined_to_it(tmp_path: Path, three: list[Path]) -> None:
    report = write_report(tmp_path / "small")
    store = Store([report, *three])
    assert store.keys[0] == "small" and store.has_report("small+a.pvti")
    trace = store.trace("small+a.pvti")
    assert trace is not None and trace.processes[-1].pid == 1


def test_a_key_that_joins_what_is_not_there_is_an_error(three: list[Path]) -> None:
    with pytest.raises(NotFoundError, match="known: a.pvti, b.pvti"):
        Store(three).trace("a.pvti+z.pvti")


def test_a_directory_shows_the_traces_of_its_last_run(tmp_path: Path) -> None:
    long = [(0, 0, 4 * SECOND, 0)]
    for pid, wall in ((1, 100), (2, 200), (3, 203)):
        write(tmp_path / f"{pid}.pvti", long, ["x"], pid=pid, wall=wall * SECOND)
    trace = Store([tmp_path]).trace()
    assert trace is not None
    assert [process.pid for process in trace.processes] == [2, 3]


def test_a_chrome_trace_is_told_from_a_report_by_how_it_begins(tmp_path: Path) -> None:
    (tmp_path / "alone").mkdir()
    chrome(tmp_path / "alone" / "run.json")
    (tmp_path / "alone" / "notes.json").write_text('{"a": 1}', encoding="utf-8")
    store = Store([tmp_path])
    trace = store.trace("alone")
    assert not store.has_report("alone")
    assert trace is not None and trace.path.name == "run.json"


def test_a_folder_of_chrome_traces_is_each_file_and_all_together(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        for name in ("a", "b"):
            chrome(tmp_path / folder / f"{folder}_{name}.json")
    (tmp_path / "two" / "notes.json").write_text('{"a": 1}', encoding="utf-8")
    assert Store([tmp_path / "one"]).keys == ["one_a.json+one_b.json", "one_a.json", "one_b.json"]
    both = Store([tmp_path])
    assert [key for key in both.keys if "+" in key] == [
        "one_a.json+one_b.json",
        "two_a.json+two_b.json",
    ]
    assert len(endpoint.unmerged(both, "two_a.json+two_b.json").lanes) == 2


def test_chrome_traces_beside_a_report_are_its_own(tmp_path: Path) -> None:
    report = write_report(tmp_path / "run")
    for name in ("a.json", "b.json"):
        chrome(report / name)
    assert Store([tmp_path]).keys == ["run"]


def test_merged_threads_show_what_began_first(tmp_path: Path) -> None:
    events = [(0, 0, 10, 0), (1, 4, 14, 1), (2, 5, 9, 0), (2, 20, 30, 1)]
    store = Store([write(tmp_path / "t.pvti", events, ["x", "y"])])
    whole = endpoint.merged(store, "")
    (lane,) = whole.lanes
    assert (lane.name, lane.kinds) == ("3 threads", ("event",))
    assert whole.tracks.begin.tolist() == [0, 10, 20]
    assert whole.tracks.ends(np.arange(3)).tolist() == [10, 14, 30]
    assert whole.item(np.arange(3)).tolist() == [0, 1, 3]


def test_flags_are_counted_beside_their_row(tmp_path: Path) -> None:
    path = write(tmp_path / "t.pvti", [(0, 0, 10, 0), (1, 4, 14, 0)], ["x"])
    file = sqlite3.connect(path)
    for thread, time in ((1, 3), (1, 5), (2, 6)):
        file.execute(insert_statement("instants"), (thread, time, 1, None))
    file.commit()
    file.close()
    store = Store([path])
    assert [lane.names for lane in endpoint.unmerged(store, "").lanes] == [
        ("⚑ ×2", ""),
        ("⚑ ×1", ""),
    ]
    whole = endpoint.merged(store, "")
    assert whole.lanes[0].names == ("⚑ ×3", "")
    assert whole.tracks.begin[:3].tolist() == [3, 5, 6]


def test_labels_of_a_large_trace_are_those_of_a_small_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = [(0, 0, 100, 0), (0, 10, 20, 1), (1, 30, 60, 1)]
    store = Store([write(tmp_path / "t.pvti", events, ["x", "y"])])
    columns = ["label", "channel", "count", "total", "self_time", "mean", "p50", "longest"]
    small = page.label_frame(store, parse("/trace", ""))[columns]
    monkeypatch.setattr(trace_tables, "MAX_EVENTS", 2)
    large = page.label_frame(store, parse("/trace", ""))
    assert large[columns].to_dict("records") == small.to_dict("records")
    shown = words(page.time_tables(store, parse("/trace", "?range=0-50"), "light"))
    assert "3 events are in view." in shown
    assert "3 events" not in words(page.time_tables(store, parse("/trace", ""), "light"))
