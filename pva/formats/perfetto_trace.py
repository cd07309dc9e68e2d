"""Write host traces for Perfetto (ui.perfetto.dev), by the package `perfetto`.

Every thread is a track; events that lie across another's end have tracks of their own below it, one
a depth. Instants stand on the track of their thread, series are counters; heatmaps have no place.
Timestamps are nanoseconds since 1970.
Source: perfetto.dev/docs/reference/synthetic-track-event.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from pva.errors import MissingPackageError

Integers = npt.NDArray[np.int64]

SEQUENCE = 1
INSTALL = "pip install 'tilescope[perfetto]'"
WHAT = "Perfetto's format"


def write(trace: Any, out: BinaryIO) -> None:
    """Write a `pva.trace.Trace` to a stream of bytes; raises MissingPackageError."""
    try:
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos
        from perfetto.trace_builder.proto_builder import TraceProtoBuilder
    except ImportError as error:
        raise MissingPackageError(WHAT, f"needs the package {error.name}", INSTALL) from None
    builder, event = TraceProtoBuilder(), protos.TrackEvent
    tracks = _Tracks(builder)
    for thread in trace.threads:
        _write_thread(trace, thread, tracks, event)
    _write_instants(trace, tracks, event)
    _write_counters(trace, tracks, event)
    out.write(builder.serialize())


class _Tracks:
    """The tracks that have been described, by what they stand for; packets of their events."""

    def __init__(self, builder: Any) -> None:
        self._builder = builder
        self._numbers: dict[tuple[Any, ...], int] = {}

    def packet(self) -> Any:
        """Add an empty packet."""
        packet = self._builder.add_packet()
        packet.trusted_packet_sequence_id = SEQUENCE
        return packet

    def event(self, kind: int, time: int, track: int) -> Any:
        """Add an event of a kind."""
        packet = self.packet()
        packet.timestamp = time
        packet.track_event.type = kind
        packet.track_event.track_uuid = track
        return packet.track_event

    def thread(self, thread: Any) -> int:
        """Give the number of a thread's track."""
        key = ("thread", thread.pid, thread.tid, thread.name)
        described = self._new(key)
        if described is not None:
            described.thread.pid, described.thread.tid = thread.pid, thread.tid & 0x7FFFFFFF
            described.thread.thread_name = thread.name
        return self._numbers[key]

    def below(self, thread: Any, depth: int) -> int:
        """Give the number of the track for overlapping events of a depth."""
        parent = self.thread(thread)
        described = self._new((parent, depth))
        if described is not None:
            described.parent_uuid, described.name = parent, f"{thread.name}, overlapping"
        return self._numbers[parent, depth]

    def counter(self, series: Any) -> int:
        """Give the number of the track of a series."""
        key = ("series", series.graph, series.name)
        described = self._new(key)
        if described is not None:
            described.name = f"{series.graph}: {series.name}"
            described.counter.unit_name = series.unit
        return self._numbers[key]

    def _new(self, key: tuple[Any, ...]) -> Any:
        if key in self._numbers:
            return None
        self._numbers[key] = len(self._numbers) + 1
        descriptor = self.packet().track_descriptor
        descriptor.uuid = self._numbers[key]
        return descriptor


def _write_thread(trace: Any, thread: Any, tracks: _Tracks, event: Any) -> None:
    columns, start = thread.columns, trace.anchor.wall_ns
    main, across = tracks.thread(thread), columns.overlapping
    depths = np.unique(columns.depth[across]).tolist()
    parts = [(main, np.flatnonzero(~across))]
    parts += [
        (tracks.below(thread, depth), np.flatnonzero(across & (columns.depth == depth)))
        for depth in depths
    ]
    for track, rows in parts:
        for row, time in _begins_and_ends(columns, rows):
            if row < 0:
                tracks.event(event.TYPE_SLICE_END, start + time, track)
                continue
            begun = tracks.event(event.TYPE_SLICE_BEGIN, start + time, track)
            label = int(columns.label[row])
            begun.name = trace.labels[label]
            begun.categories.append(trace.channels[trace.label_channels[label]])
            _annotate(begun, columns.metadata.get((time, label)))


def _begins_and_ends(columns: Any, rows: Integers) -> Iterator[tuple[int, int]]:
    """Give row and begin of each event, and -1 and the end, as they follow each other.

    The library takes one event at a time: there is nothing to be done in bulk.
    """
    begins, ends = columns.begin_ns[rows].tolist(), columns.end_ns[rows].tolist()
    depths = columns.depth[rows].tolist()
    waiting: list[tuple[int, int]] = []  # depth and end of the events around
    for row, begin, end, depth in zip(rows.tolist(), begins, ends, depths, strict=True):
        while waiting and waiting[-1][0] >= depth:
            yield -1, waiting.pop()[1]
        yield row, begin
        waiting.append((depth, end))
    while waiting:
        yield -1, waiting.pop()[1]


def _write_instants(trace: Any, tracks: _Tracks, event: Any) -> None:
    instants = trace.instants
    columns = (instants.time_ns, instants.label, instants.channel, instants.thread)
    rows = zip(*(column.tolist() for column in columns), instants.metadata.tolist(), strict=True)
    for time, label, channel, thread, metadata in rows:
        track = tracks.thread(trace.threads[thread])
        told = tracks.event(event.TYPE_INSTANT, trace.anchor.wall_ns + time, track)
        told.name = trace.labels[label]
        told.categories.append(trace.channels[channel])
        _annotate(told, metadata)


def _write_counters(trace: Any, tracks: _Tracks, event: Any) -> None:
    for series in trace.series:
        track, known = tracks.counter(series), np.isfinite(series.value)
        points = zip(series.time_ns[known].tolist(), series.value[known].tolist(), strict=True)
        for time, value in points:
            counted = tracks.event(event.TYPE_COUNTER, trace.anchor.wall_ns + time, track)
            counted.double_counter_value = value


def _annotate(event: Any, metadata: str | None) -> None:
    if metadata is not None:
        note = event.debug_annotations.add()
        note.name, note.string_value = "metadata", metadata
