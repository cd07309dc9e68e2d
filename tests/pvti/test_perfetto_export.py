"""What is written for Perfetto, read by the classes of its own package, is what the trace holds."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import pvti
from pva.formats.traces import perfetto_trace
from pva.trace import Trace

protos: Any = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")

Finish = Callable[[], Trace]
Span = tuple[str, str, int, int]  # label, channel, begin and end


@dataclass
class Told:
    """What packets tell: spans with the name of their track, instants, and points of counters."""

    spans: list[tuple[Span, Any]] = field(default_factory=list)
    instants: list[tuple[str, int, Any]] = field(default_factory=list)
    points: dict[str, list[tuple[int, float]]] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)


def read(trace: Trace) -> Told:
    """Write a trace and read the packets as Perfetto does: by time, in their order when equal."""
    out = io.BytesIO()
    perfetto_trace.write(trace, out)
    packets = list(protos.Trace.FromString(out.getvalue()).packet)
    interned = packets[0].interned_data
    names = {entry.iid: entry.name for entry in interned.event_names}
    categories = {entry.iid: entry.name for entry in interned.event_categories}
    tracks = {p.track_descriptor.uuid: p.track_descriptor for p in packets
              if p.HasField("track_descriptor")}  # fmt: skip
    told, stacks = Told(), {uuid: [] for uuid in tracks}
    for packet in sorted((p for p in packets if p.timestamp), key=lambda p: p.timestamp):
        event, time = packet.track_event, packet.timestamp - trace.anchor.wall_ns
        stack, track = stacks[event.track_uuid], tracks[event.track_uuid]
        name = names.get(event.name_iid, "")
        for note in event.debug_annotations:
            told.notes[name] = note.string_value
        if event.type == event.TYPE_SLICE_BEGIN:
            stack.append((name, categories[event.category_iids[0]], time))
        elif event.type == event.TYPE_SLICE_END:
            told.spans.append(((*stack.pop(), time), track))
        elif event.type == event.TYPE_INSTANT:
            told.instants.append((name, time, track))
        else:
            told.points.setdefault(track.name, []).append((time, event.double_counter_value))
    assert not any(stacks.values())
    return told


def spans_of(trace: Trace) -> Counter[Span]:
    columns = [thread.columns for thread in trace.threads]
    return Counter(
        (trace.labels[label], trace.channels[trace.label_channels[label]], begin, end)
        for c in columns
        for label, begin, end in zip(c.label, c.begin_ns.tolist(), c.end_ns.tolist(), strict=True)
    )


def test_every_span_stands_on_its_thread_with_its_times(finish: Finish, clock: Any) -> None:
    channel = pvti.createTraceChannel('work "A"')
    with pvti.Tracepoint(channel, "outer"):
        with pvti.Tracepoint(channel, "inner <1>", pvti.createJsonMetadata({"x": 1})):
            pass
        pvti.Tracepoint.event(channel, "here", pvti.createJsonMetadata([2]))
    trace = finish()
    told, thread = read(trace), trace.threads[0]
    assert [span for span, _ in told.spans] == [
        ("inner <1>", 'work "A"', 2000, 3000), ("outer", 'work "A"', 1000, 5000),
    ]  # fmt: skip
    assert {track.thread.thread_name for _, track in told.spans} == {thread.name}
    assert [(name, time) for name, time, _ in told.instants] == [("here", 4000)]
    assert told.notes == {"inner <1>": '{"x": 1}', "here": "[2]"}


def test_what_overlaps_stands_on_tracks_of_its_own(finish: Finish, clock: Any) -> None:
    channel = pvti.createTraceChannel("overlapping")
    for label in ("first", "second"):
        pvti.Tracepoint.begin(channel, label)
    for label in ("first", "second"):
        pvti.Tracepoint.end(channel, label)
    told = read(finish())
    assert sorted((label, begin, end) for (label, _, begin, end), _ in told.spans) == [
        ("first", 1000, 3000), ("second", 2000, 4000),
    ]  # fmt: skip
    assert len({track.uuid for _, track in told.spans}) == 2
    assert {span[0]: track.name for span, track in told.spans} == {
        "first": "", "second": "MainThread, overlapping",
    }  # fmt: skip


def test_series_and_bins_are_counters(finish: Finish, clock: Any) -> None:
    loss = pvti.Graph("Loss", "nats").addSeries("train")
    loss.add(2.5)
    loss.add(float("nan"))
    pvti.HeatmapDouble("w", [-1, 0, 1]).add([-0.5, 0.5, 0.75])
    assert read(finish()).points == {
        "Loss: train": [(1000, 2.5)], "w: -1 to 0": [(3000, 1.0)], "w: 0 to 1": [(3000, 2.0)],
    }  # fmt: skip


@pytest.mark.parametrize("block", [1, 2, 7, 1 << 15])
def test_blocks_of_any_size_tell_the_same(
    finish: Finish, clock: Any, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(perfetto_trace, "BLOCK", block)
    monkeypatch.setattr("pva.model.host_trace.nesting.BLOCK", block)
    channel, generator = pvti.createTraceChannel("random"), np.random.default_rng(block)
    names = [f"label {number}" for number in range(150)]  # more than one byte counts
    is_open: list[str] = []
    for choice in generator.integers(0, 10, 300):
        if choice < 5 or not is_open:
            is_open.append(names[generator.integers(len(names))])
            pvti.Tracepoint.begin(channel, is_open[-1])
        else:
            place = -1 if choice < 9 else int(generator.integers(len(is_open)))
            pvti.Tracepoint.end(channel, is_open.pop(place))
    trace = finish()
    assert Counter(span for span, _ in read(trace).spans) == spans_of(trace)
