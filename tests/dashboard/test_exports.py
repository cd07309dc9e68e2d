"""The events of a window as files that other programs read."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dashboard import downloads
from dashboard.exports import exported
from pva.analysis.timeline.pyramid import build
from pva.errors import PvaError
from pva.plot.lanes import Lane, Timeline

LABELS = ["<b>run</b>", "a,b", "c\n\ud800"]


def whole() -> Timeline:
    """Return two lanes: an outer and an inner row, and a row of one event, at 2 cycles a ns."""
    rows = [
        (np.array([0, 100]), np.array([80, 160]), np.array([0, 0])),
        (np.array([10]), np.array([30]), np.array([1])),
        (np.array([50]), np.array([90]), np.array([2])),
    ]
    main = Lane("main", ("file", "p 1"), 0, 2, (), ("event", "event"), 0)
    other = Lane("other", ("file", "p 1"), 2, 3, (), ("event",), 2)
    lanes = (other, main)  # which stand in any order
    colours = [("run", "Run"), ("step", "Step")]
    return Timeline("cycles", 2e9, lanes, build(rows, lambda: [0, 1, 1]), LABELS, colours)


def test_csv_has_a_line_for_each_event_of_the_window() -> None:
    text = exported(whole(), "csv", 0, 60).decode()
    lines = list(csv.DictReader(io.StringIO(text)))
    assert [(line["lane"], line["label"], line["kind"]) for line in lines] == [
        ("file/p 1/main", "<b>run</b>", "Run"),
        ("file/p 1/main", "a,b", "Step"),
        ("file/p 1/other", "c\n?", "Step"),
    ]
    assert [line["begin_cycles"] for line in lines] == ["0", "10", "50"]
    assert [line["length_cycles"] for line in lines] == ["80", "20", "40"]


def test_chrome_json_has_the_events_in_microseconds() -> None:
    document = json.loads(exported(whole(), "json", 0, 60))
    events = [event for event in document["traceEvents"] if event["ph"] == "X"]
    found = {(event["name"], event["ts"], event["dur"]) for event in events}
    assert found >= {("<b>run</b>", 0.0, 0.04), ("a,b", 0.005, 0.01)}
    told = [event.get("args", {}).get("name") for event in document["traceEvents"]]
    names = [name for name in told if name]
    assert names == ["file/p 1", "other", "main"]


def test_flags_of_the_host_are_instants_and_its_wall_clock_is_told() -> None:
    rows = [
        (np.array([50, 70]), np.array([50, 70]), np.array([0, 1])),
        (np.array([20]), np.array([80]), np.array([0])),
    ]
    lane = Lane("main", ("file", "p 1"), 0, 2, (), ("flag", "event"), 1)
    tracks = build(rows, lambda: [0, 0])
    host = Timeline("ns", 1e9, (lane,), tracks, ["a", "b"], [("c", "C")], wall_ns=1_790_000_000)
    document = json.loads(exported(host, "json", 0, 100))
    shown = [(event["ph"], event["name"], event["ts"]) for event in document["traceEvents"]
             if event["ph"] != "M"]  # fmt: skip
    assert shown == [("X", "a", 0.02), ("i", "a", 0.05), ("i", "b", 0.07)]
    told = {"wall_clock_ns": 1_790_000_000, "duration_ns": 80, "finished": True}
    assert document["otherData"] == told


def test_perfetto_gets_a_track_a_lane() -> None:
    protos = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    trace = protos.Trace()
    trace.ParseFromString(exported(whole(), "pftrace", 0, 60))
    threads = [p.track_descriptor.thread.thread_name for p in trace.packet]
    assert [name for name in threads if name] == ["other", "main"]
    assert sum(p.HasField("track_event") for p in trace.packet) == 6


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_an_empty_window_gives_an_empty_file(kind: str) -> None:
    text = exported(whole(), kind, 1000, 2000).decode()
    assert "run" not in text


def test_unknown_kinds_are_refused(tmp_path: Path) -> None:
    with pytest.raises(PvaError, match="known: csv, json, pftrace"):
        exported(whole(), "exe", 0, 1)


def test_names_are_no_formulas_to_a_spreadsheet() -> None:
    names = ["=1+1", "ok", None, "-x", "@m", -2.5]
    frame = pd.DataFrame({"name": names, "n": -1}, index=[0, 0, 1, 1, 2, 2])
    lines = downloads.csv(frame).decode().splitlines()
    assert lines == ["name,n", "'=1+1,-1", "ok,-1", ",-1", "'-x,-1", "'@m,-1", "-2.5,-1"]
