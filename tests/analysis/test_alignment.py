"""Three runs and host work between them, with the times on both axes worked out by hand.

At 1 GHz a cycle is a nanosecond. On the host the trace begins at 1,000 of its clock:

    host     0    100        400    450        650  700      900    1000
    what     |work | run 0    | work | run 1     |    | run 2  | work |
    cycles           50                100              200

As on the device, run 0 is 100 to 150, the work after it 150 to 200, run 1 200 to 300, the gap 300
to 350, run 2 350 to 550, and the work after it ends at 650.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pva.analysis.host.alignment import RUN, Alignment, align, gaps, run_events, waits
from pva.analysis.timeline.pyramid import build
from pva.errors import NotRecordedError
from pva.model.host_trace.events import Metadata, Names, ThreadColumns
from pva.report import Report
from tests.builders import small_report

START = 1000
TRACE: Any = SimpleNamespace(
    anchor=SimpleNamespace(clock_ns=START), duration_ns=1000, path=Path("t.pvti"), labels=()
)


def report(**changes: Any) -> Report:
    """Return a report of three runs at 1 GHz."""
    data = small_report()
    runs = {name: np.resize(values, 3).copy() for name, values in data.table("runs").items()}
    runs |= {
        "cycles_from": np.array([0, 50, 150]),
        "cycles": np.array([50, 100, 200]),
        "trace_begin": START + np.array([100, 450, 700]),
        "trace_end": START + np.array([400, 650, 900]),
        **changes,
    }
    target = dict(data.table("target")) | {"clock_frequency": np.array([1e9])}
    return Report.of(small_report(runs=runs, target=target))


@pytest.fixture(scope="module")
def found() -> Alignment:
    """Align the three runs."""
    return align(report(), TRACE)


HOST = np.array([0, 50, 100, 250, 400, 420, 450, 550, 650, 700, 900, 1000])
DEVICE = np.array([0, 50, 100, 125, 150, 170, 200, 250, 300, 350, 550, 650])


def test_host_moments_move_up_by_what_the_runs_took_too_long(found: Alignment) -> None:
    assert found.host(HOST, "device").tolist() == DEVICE.tolist()


def test_host_moments_stay_as_simulated(found: Alignment) -> None:
    assert found.host(HOST, "simulated").tolist() == HOST.tolist()


def test_cycles_of_runs_are_nanoseconds_as_on_the_device(found: Alignment) -> None:
    cycles = np.array([0, 25, 50, 100, 150, 250, 350])
    places = [100, 125, 200, 250, 350, 450, 550]  # 50 and 150 begin the next run
    assert found.on_device(cycles, "device").tolist() == places


def test_cycles_of_runs_are_stretched_as_simulated(found: Alignment) -> None:
    cycles = np.array([0, 25, 75, 100, 250, 350])
    assert found.on_device(cycles, "simulated").tolist() == [100, 250, 500, 550, 800, 900]


def test_moments_before_the_first_run_and_after_the_last_are_its_begin_and_its_end() -> None:
    late = align(report(cycles_from=np.array([10, 60, 160])), TRACE)
    assert late.on_device(np.array([0, 10, 360, 999]), "device").tolist() == [100, 100, 550, 550]
    begin, end = np.array([5]), np.array([20])
    assert [part.tolist() for part in late.spans(begin, end, "device")] == [[100], [110]]


def test_a_run_of_a_cycle_or_of_none_has_a_place() -> None:
    short = align(report(cycles_from=np.array([0, 0, 1]), cycles=np.array([0, 1, 200])), TRACE)
    assert (short.run.tolist(), short.device.tolist()) == ([0, 1, 2], [0, 1, 200])
    begin, end = short.spans(np.array([0]), np.array([1]), "simulated")
    assert (begin.tolist(), end.tolist()) == ([450], [650])
    last = align(report(cycles=np.array([50, 100, 1])), TRACE)
    assert last.on_device(np.array([150, 151]), "simulated").tolist() == [700, 900]


def test_host_moments_within_the_last_run_are_shortened_as_it_is(found: Alignment) -> None:
    assert replace(found, device=np.array([50, 100, 20])).host(
        np.array([700, 800, 900, 1000]), "device"
    ).tolist() == [350, 360, 370, 470]


def test_places_and_clocks_are_whole_nanoseconds_and_cycles(found: Alignment) -> None:
    places = found.host(HOST, "device"), found.on_device(HOST, "device"), found.device, found.own
    spans = found.spans(HOST, HOST + 1, "device")
    assert {column.dtype for column in (*places, *spans, found.run)} == {np.dtype(np.int64)}
    assert (found.clock, found.cycles_from.tolist()) == (1e9, [0, 50, 150])
    assert align(report(cycles=np.full(3, 2 * 10**9)), TRACE).device.tolist() == [2 * 10**9] * 3


def test_without_a_run_the_axis_of_the_device_is_the_hosts() -> None:
    nothing = np.zeros(0, dtype=np.int64)
    none = Alignment(nothing, [], nothing, nothing, nothing, nothing, nothing, 1e9)
    assert none.host(HOST, "device").tolist() == HOST.tolist()
    places = none.on_device(HOST, "device")
    assert (places.tolist(), places.dtype) == ([0] * len(HOST), np.int64)


def test_a_step_that_ends_a_run_ends_with_it(found: Alignment) -> None:
    begin, end = np.array([40, 50, 340, 60]), np.array([50, 70, 350, 60])
    on_device = found.spans(begin, end, "device")
    assert [part.tolist() for part in on_device] == [[140, 200, 540, 210], [150, 220, 550, 210]]
    simulated = found.spans(begin, end, "simulated")
    assert [part.tolist() for part in simulated] == [[340, 450, 890, 470], [400, 490, 900, 470]]


def test_gaps_between_runs_are_told_on_both_axes(found: Alignment) -> None:
    rows = gaps(found).to_dict("records")
    assert rows == [
        {"run": 1, "name": "main", "begin": 150, "length": 50, "wall_begin": 400, "wall_end": 450},
        {"run": 2, "name": "main", "begin": 300, "length": 50, "wall_begin": 650, "wall_end": 700},
    ]


def test_the_longest_gaps_come_first_and_equal_ones_in_order() -> None:
    """Gaps of 10, but 5 before the second run, and 20 before the last."""
    begin = np.arange(40) * 20
    begin[1] -= 5
    begin[39] += 10
    end, cycles = np.arange(40) * 20 + 10, np.full(40, 10)
    name = [f"{run}" for run in range(40)]
    many = Alignment(np.arange(40), name, begin, end, cycles * 0, cycles, end - begin, 1e9)
    frame = gaps(many)
    assert frame["run"].tolist() == [39, *range(2, 39), 1]
    assert frame["length"].tolist() == [20, *[10] * 37, 5]
    assert frame.index.tolist() == list(range(39))


def test_who_waited_for_whom(found: Alignment) -> None:
    row = (np.array([0, 120, 420, 500]), np.array([100, 130, 440, 1000]), np.array([0, 1, 1, 0]))
    result = waits(report(), found, build([row]), ["work", "StreamCallback x"])
    assert (result.total, result.device) == (550, 350)  # from the first run on
    assert (result.before, result.between, result.after) == (100, 100, 100)
    assert (result.callbacks, result.callback_time) == (1, 10)  # the other is outside of runs
    assert result.stream_copies == 24  # of the small report, whose steps are these


def test_callbacks_count_from_the_begin_of_a_run_to_before_its_end(found: Alignment) -> None:
    starts = np.array([10, 100, 399, 400, 700])
    row = (starts, starts + 1, np.zeros(5, dtype=np.int64))
    result = waits(report(), found, build([row]), ["StreamCallback x"])
    assert (result.callbacks, result.callback_time, result.before) == (3, 3, 90)


def test_stream_copies_last_as_long_as_their_cycles_by_the_clock() -> None:
    data = report().dataset
    times = np.where(
        np.char.startswith(data.texts("steps", "type").astype(str), "StreamCopy"), 0, 1
    )
    steps = dict(data.table("steps")) | {"cycles": np.where(times, 10**10, 10**9 + 1)}
    steps["cycles"][np.flatnonzero(times == 0)[:2]] = -1, 0  # not recorded, and none
    copies = int((times == 0).sum()) - 2
    slow = Report.of(
        small_report(steps=steps, runs=data.table("runs"), target=data.table("target"))
    )
    row = (np.array([0]), np.array([1000]), np.array([0]))
    result = waits(slow, align(slow, TRACE), build([row]), ["work"])
    assert result.stream_copies == copies * (10**9 + 1)


def test_nothing_on_the_host_waits_for_nothing(found: Alignment) -> None:
    steps = {name: values[:0] for name, values in report().dataset.table("steps").items()}
    none = Report.of(small_report(steps=steps))
    row = (np.array([0]), np.array([1000]), np.array([0]))
    result = waits(none, found, build([row]), ["work"])
    assert (result.callbacks, result.stream_copies) == (0, 0)
    nothing = np.zeros(0, dtype=np.int64)
    assert waits(none, found, build([(nothing,) * 3]), []).callbacks == 0


def test_what_the_simulator_does_for_itself_takes_no_time_on_the_device(found: Alignment) -> None:
    """It writes the profile from 410 to 430, in the 50 between the first two runs."""
    own = replace(found, own=np.array([[410, 430]]))
    assert own.host(np.array([400, 410, 420, 430, 450, 650]), "device").tolist() == [
        150, 160, 160, 160, 180, 280
    ]  # fmt: skip
    assert sorted(gaps(own)["length"].tolist()) == [30, 50]


@pytest.mark.parametrize(
    ("spans", "left"),
    [
        ([(390, 430), (420, 460), (720, 800)], [[400, 430], [430, 450]]),
        ([(390, 410), (405, 430), (420, 440)], [[400, 410], [410, 430], [430, 440]]),
        ([(390, 500), (410, 420)], [[400, 450]]),  # one within another
        ([(0, 50), (100, 420), (390, 400)], [[0, 50], [400, 420]]),
        ([(950, 990)], [[950, 990]]),
        ([(390, 400), (420, 420)], []),  # of which nothing is left, and of no length
    ],
)
def test_the_simulators_own_work_is_cut_at_the_runs_and_counted_once(
    spans: list[tuple[int, int]], left: list[list[int]]
) -> None:
    times, size = np.array(sorted(spans)).T, len(spans)
    names = Names(("write execution profile",), ("Poplar",), np.zeros(1, np.int32))
    nothing = Metadata(np.zeros(0, np.int64), ())
    columns = ThreadColumns(
        (times[0], times[1]), np.zeros(size, np.int32), np.zeros(size, np.uint8),
        np.zeros(0, np.int64), names, nothing,
    )  # fmt: skip
    thread = SimpleNamespace(read=lambda: columns)
    trace = SimpleNamespace(**vars(TRACE) | {"labels": names.labels, "threads": (thread,)})
    own = align(report(), trace).own
    assert (own.tolist(), own.dtype) == (left, np.int64)


def test_runs_that_a_report_leaves_out_have_no_row() -> None:
    """The last of three is kept: the others are placed, as runs outside of it."""
    kept = align(report().without_runs(np.array([0, 1]), dict), TRACE)
    assert (kept.run.tolist(), kept.begin.tolist()) == ([-1, -1, 0], [100, 450, 700])
    assert kept.first == 2


def test_runs_outside_the_profile_before_the_models_first_are_set_up(found: Alignment) -> None:
    weights = replace(found, run=np.array([-1, 0, 1]))
    row = (np.array([0]), np.array([1000]), np.array([0]))
    result = waits(report(), weights, build([row]), ["work"])
    assert (result.total, result.device, result.before) == (450, 300, 200)
    assert gaps(weights)["length"].tolist() == [50]


def test_runs_without_a_place_in_the_trace_are_left_out() -> None:
    begins = np.array([-1, START + 450, START + 5000])
    kept = align(report(trace_begin=begins, trace_end=begins + 100), TRACE)
    assert kept.run.tolist() == [1]


def test_runs_at_the_edges_of_the_trace_are_in_it() -> None:
    """The first is at 0 and takes no time, the last ends with the trace."""
    begin, end = START + np.array([0, 450, 700]), START + np.array([0, 650, 1000])
    kept = align(report(trace_begin=begin, trace_end=end), TRACE)
    assert (kept.begin.tolist(), kept.end.tolist()) == ([0, 450, 700], [0, 650, 1000])
    beyond = align(report(trace_begin=begin - [1, 0, 0], trace_end=end + [0, 0, 1]), TRACE)
    assert beyond.run.tolist() == [1]


def test_a_run_at_0_of_the_clock_is_told() -> None:
    trace = SimpleNamespace(**vars(TRACE) | {"anchor": SimpleNamespace(clock_ns=0)})
    begin = np.array([0, 1, -1])
    kept = align(report(trace_begin=begin, trace_end=np.array([1, 5, -1])), trace)
    assert (kept.run.tolist(), kept.begin.tolist()) == ([0, 1], [0, 1])


def test_runs_that_begin_together_stay_in_the_order_of_the_clock() -> None:
    """Forty at 300, of no cycles; each is placed behind the one before it."""
    names = np.array([f"run {number}" for number in range(40)], dtype=object)
    runs = {name: np.resize(values, 40) for name, values in report().dataset.table("runs").items()}
    runs |= {"name": names, "cycles": np.zeros(40, int), "cycles_from": np.zeros(40, int)}
    runs |= {"trace_begin": np.full(40, START + 300), "trace_end": np.full(40, START + 400)}
    kept = align(Report.of(small_report(runs=runs)), TRACE)
    assert kept.name == names.tolist()
    assert kept.begin.tolist() == [300, *[400] * 39]


def test_runs_come_by_their_begin_then_by_the_clock_then_by_their_row() -> None:
    rows = range(40)
    clock, begin = (
        np.array([n % 2 for n in rows]),
        np.array([300 - 100 * (n % 3 > 0) for n in rows]),
    )
    runs = {name: np.resize(values, 40) for name, values in report().dataset.table("runs").items()}
    runs |= {"cycles": np.zeros(40, int), "cycles_from": clock}
    runs |= {"trace_begin": START + begin, "trace_end": START + begin + 10}
    kept = align(Report.of(small_report(runs=runs)), TRACE)
    assert kept.run.tolist() == sorted(rows, key=lambda n: (begin[n], clock[n]))


def test_a_trace_of_something_else_is_refused() -> None:
    nowhere = report(trace_begin=NOWHERE, trace_end=NOWHERE)
    with pytest.raises(NotRecordedError) as refused:
        align(nowhere, TRACE)
    assert str(refused.value) == (
        f"{nowhere.path.name}: no run in the trace t.pvti; trace the run that makes the report: "
        "set PVTI_OPTIONS and run again"
    )


def traced(metadata: list[str | None]) -> Any:
    """Return a trace of three events of runs, 0 to 10, 20 to 30 and 40 to 50, that tell this."""
    rows = np.flatnonzero([text is not None for text in metadata])
    times = np.array([0, 20, 40]), np.array([10, 30, 50])
    texts = [text for text in metadata if text is not None]
    names = Names((RUN,), ("Poplar",), np.zeros(1, np.int32))
    columns = ThreadColumns(
        times, np.zeros(3, np.int32), np.zeros(3, np.uint8), np.zeros(0, np.int64), names,
        Metadata(rows, tuple(texts)),
    )  # fmt: skip
    thread = SimpleNamespace(read=lambda: columns)
    return SimpleNamespace(**vars(TRACE) | {"labels": (RUN,), "threads": (thread,)})


def told(run: int, name: str) -> str:
    """Write what the engine tells of a run."""
    return f'{{"run": {run}, "name": "main", "report": "{name}"}}'


NOWHERE = np.full(3, -1)


def test_runs_are_placed_by_what_their_events_tell(tmp_path: Path) -> None:
    mine = report()
    mine.path = tmp_path
    trace = traced([told(2, tmp_path.name), told(1, "other"), told(0, tmp_path.name)])
    for path in (tmp_path, tmp_path / "profile.pop"):  # the directory, or the file in it
        mine.path = path
        kept = align(mine, trace)
        assert (kept.run.tolist(), kept.begin.tolist()) == ([2, 0, 1], [0, 40, 450])


def test_a_run_outside_the_profile_is_placed_among_those_of_the_model() -> None:
    """It has no row of `runs`, but the axis of the device has its cycles."""
    others = {
        "name": ["weights", *["check"] * 5], "program": [1] * 6, "cycles_from": [10, *[990] * 5],
        "cycles": [20] * 6, "start_microseconds": [0.0] * 6, "end_microseconds": [1.0] * 6,
    }  # fmt: skip
    small = report(trace_begin=NOWHERE, trace_end=NOWHERE)
    tables = {name: small.dataset.table(name) for name in ("runs", "target")}
    apart = '{"other_run": 0, "name": "weights", "report": "report"}'
    kept = align(
        Report.of(small_report(**tables, other_runs=others)),
        traced([told(0, "report"), apart, told(1, "report")]),
    )
    assert (kept.run.tolist(), kept.name) == ([0, -1, 1], ["main", "weights", "main"])
    assert (kept.begin.tolist(), kept.cycles.tolist()) == ([0, 20, 40], [50, 20, 100])


def test_a_report_that_was_renamed_is_the_only_one_told() -> None:
    kept = align(
        report(trace_begin=NOWHERE, trace_end=NOWHERE), traced([None, told(1, "old"), "1"])
    )
    assert (kept.run.tolist(), kept.begin.tolist(), kept.end.tolist()) == ([1], [20], [30])


def test_an_event_of_a_run_below_0_tells_of_none() -> None:
    numbered, unnamed = run_events(traced([told(-1, "r"), None, told(0, "r")]), "r")
    assert numbered == {("run", 0): (40, 50)}
    assert (unnamed.tolist(), unnamed.dtype) == ([[20, 30]], np.int64)


def test_runs_of_which_nothing_tells_are_placed_in_order_if_as_many() -> None:
    trace = traced([None, None, None])
    kept = align(report(trace_begin=NOWHERE, trace_end=NOWHERE), trace)
    assert (kept.run.tolist(), kept.begin.tolist()) == ([0, 1, 2], [0, 20, 40])
    with pytest.raises(NotRecordedError):
        align(report(trace_begin=NOWHERE, trace_end=NOWHERE), traced([None, None, "{}"]))


def test_a_run_that_begins_before_the_one_before_it_ends_is_placed_at_that_end() -> None:
    overlapping = report(trace_begin=START + np.array([100, 390, 700]))
    kept = align(overlapping, TRACE)
    assert (kept.begin.tolist(), kept.end.tolist()) == ([100, 400, 700], [400, 650, 900])


def test_a_run_that_begins_before_the_end_of_the_one_before_is_moved_once_for_each() -> None:
    begin, end = START + np.array([100, 300, 500]), START + np.array([400, 600, 900])
    kept = align(report(trace_begin=begin, trace_end=end), TRACE)
    assert (kept.begin.tolist(), kept.end.tolist()) == ([100, 400, 600], [400, 600, 900])


def test_a_run_that_begins_within_an_earlier_one_is_placed_behind_the_last_of_them() -> None:
    # The second lies within the first; the third begins in the first, behind the second's end.
    begin, end = START + np.array([100, 150, 300]), START + np.array([400, 250, 900])
    kept = align(report(trace_begin=begin, trace_end=end), TRACE)
    assert kept.begin.tolist() == [100, 400, 400]
