"""Which host functions the device waits for, with the times worked out by hand.

The runs of test_alignment.py: 350 cycles at 1 GHz, run 0 from 100 to 400 of the host's clock, run 1
from 450 to 650, run 2 from 700 to 900. One thread does this:

    0      100      400   410       440 450      650   660          700      900   1000
    |before| run 0   |    | load      |  | run 1   |    | load       | run 2   | load |
    | epoch ................................................................ to 900 |
                              write 420 to 430            StreamCallback x: 800 to 810

So between runs the device waits 20 and 40 for load, 20 and 10 for epoch, not for the simulator's
writing of the profile; and in run 2 10 for the callback: of 350 + 100 in all.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pva.analysis.host import delays
from pva.analysis.host.alignment import RUN, align, gaps
from pva.analysis.host.delays import host_delays
from pva.analysis.insight_rules.causes import delayed_by_host
from pva.errors import NotRecordedError
from pva.model.host_trace.events import Metadata, Names, ThreadColumns
from pva.report import Report
from tests.analysis.samples import opened, small
from tests.analysis.test_alignment import START, TRACE, report

LABELS = ("epoch", "load", RUN, "write execution profile", "StreamCallback x")
EVENTS = [
    (0, 900, 0), (20, 60, 1), (100, 400, 2), (410, 440, 1), (420, 430, 3), (450, 650, 2),
    (660, 700, 1), (700, 900, 2), (800, 810, 4), (900, 1000, 1),
]  # fmt: skip


def planted(events: list[tuple[int, int, int]] = EVENTS) -> Any:
    """Return a trace of one thread of these events: begin, end and label."""
    begin, end, label = (np.array(column) for column in zip(*events, strict=True))
    names = Names(LABELS, ("Poplar",), np.zeros(len(LABELS), np.int32))
    kinds, nothing = np.zeros(len(begin), np.uint8), np.zeros(0, np.int64)
    columns = ThreadColumns(
        (begin, end), label.astype(np.int32), kinds, nothing, names, Metadata(nothing, ())
    )
    known = {"labels": LABELS, "channels": names.channels, "label_channels": names.label_channels}
    read = {"threads": (SimpleNamespace(read=lambda: columns),), "read_threads": lambda: [columns]}
    return SimpleNamespace(**vars(TRACE) | known | read)


def delayed(monkeypatch: pytest.MonkeyPatch, trace: Any, **changes: Any) -> Report:
    """Return the report of three runs with a trace beside it."""
    found = report(**changes)
    monkeypatch.setattr(delays, "_traced", lambda _: (trace, align(found, trace)))
    return found


def test_the_device_waits_for_what_the_host_does_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = host_delays(delayed(monkeypatch, planted()))
    rows = frame[["function", "where", "events", "wait_ns", "longest_ns", "run"]]
    assert rows.to_numpy().tolist() == [
        ["load", "between runs", 2, 60, 40, 2],
        ["epoch", "between runs", 1, 30, 30, 1],
        ["StreamCallback x", "stream callback", 1, 10, 10, 2],
    ]
    assert frame["cycles"].tolist() == [60, 30, 10]
    assert frame["share"].tolist() == [60 / 450, 30 / 450, 10 / 450]


def test_waits_between_runs_are_the_gaps(monkeypatch: pytest.MonkeyPatch) -> None:
    found, trace = delayed(monkeypatch, planted()), planted()
    frame = host_delays(found)
    between = frame.loc[frame["where"] == "between runs", "wait_ns"].sum()
    assert between == gaps(align(found, trace))["length"].sum() == 90


def test_a_callback_leads_to_the_step_that_copies_its_stream(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = delayed(monkeypatch, planted())
    names = [(step.program.type.name, step.program.name) for step in found.execution.steps]
    (step,) = host_delays(found).query("where == 'stream callback'")["step"]
    assert step == names.index(("StreamCopyMid", "x/StreamCopy"))


def test_a_function_that_takes_a_good_part_of_the_time_is_a_finding(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (finding,) = delayed_by_host(delayed(monkeypatch, planted()))
    assert finding.what == "The device waits for load on the host 13.3 % of the time"
    assert finding.where == "60 ns between runs, 2 times; 40 ns at once before run 2, main"
    assert (finding.amount, finding.saving, round(finding.whole)) == (60, 60, 450)


@pytest.mark.parametrize(("ends", "fires"), [(719, True), (718, False)])
def test_a_function_of_five_percent_of_the_time_is_none(
    monkeypatch: pytest.MonkeyPatch, ends: int, fires: bool
) -> None:
    """A callback of 19 ns is 5.1 % of 350 + 19, one of 18 ns 4.9 %."""
    runs = [event for event in EVENTS if event[2] == 2]
    trace = planted([*runs, (700, ends, 4)])
    assert bool(delayed_by_host(delayed(monkeypatch, trace))) == fires


def test_the_sample_with_a_trace_names_its_own_function() -> None:
    frame = host_delays(opened("mlp_digits_tiny"))
    assert {"epoch 1", "StreamCallback images"} <= set(frame["function"])
    assert not frame["function"].isin([RUN, "write execution profile"]).any()


def test_a_report_without_a_trace_is_refused() -> None:
    with pytest.raises(NotRecordedError, match="PVTI_OPTIONS set"):
        host_delays(small())


def test_times_count_from_the_models_first_run(monkeypatch: pytest.MonkeyPatch) -> None:
    begins = np.array([-1, START + 450, START + 700])
    found = delayed(monkeypatch, planted(), trace_begin=begins)
    assert host_delays(found)["wait_ns"].tolist() == [40, 10, 10]
