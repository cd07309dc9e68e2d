"""Write host traces for Perfetto (ui.perfetto.dev), as packets of its protocol buffers.

Every thread is a track; events that lie across another's end have tracks of their own below it, one
a depth. Instants stand on the track of their thread. A series is a counter, and so is each bin of a
heatmap. Timestamps are nanoseconds since 1970.

What there is one of for each thread or name, the package `perfetto` encodes. Packets of events are
arrays of bytes of one length, thousands at a time: a number may be written with more bytes than it
needs. Labels and channels are told once and referred to by number.
Sources: perfetto.dev/docs/reference/synthetic-track-event, protobuf.dev/programming-guides/encoding
(the numbers of fields are those of perfetto_trace.proto).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from types import ModuleType
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
import numpy.typing as npt

from pva.array_types import Integers
from pva.errors import MissingPackageError
from pva.formats.traces.identifiers import identifiers
from pva.formats.traces.writable import Thread, Trace
from pva.progress import WRITING, part_of

if TYPE_CHECKING:
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TracePacket

Bytes = npt.NDArray[np.uint8]
Texts = Sequence[str] | npt.NDArray[np.object_]

SEQUENCE = 1
INSTALL = "pip install 'tilescope[perfetto]'"
FORMAT = "Perfetto's format"
BLOCK = 1 << 15  # events that are written at once
BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4  # TrackEvent.Type
CLEARED, NEEDED = 1, 2  # TracePacket.SequenceFlags
TID_LIMIT = 1 << 31
_LONGEST = 10  # bytes of a number
_SHORT = 1 << 7  # numbers below take one byte


def write(trace: Trace, out: BinaryIO) -> None:
    """Write a `pva.trace.Trace` to a stream of bytes; raises MissingPackageError."""
    try:
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos
    except ImportError as error:
        raise MissingPackageError(FORMAT, f"needs the package {error.name}", INSTALL) from None
    tracks = _Tracks(protos, out)
    tracks.names(trace)
    pids, threads = identifiers(trace, range(TID_LIMIT))
    owners = {
        pid: tracks.process(pid, process.name)
        for pid, process in zip(pids, trace.processes, strict=True)
    }
    numbers = [tracks.thread(identifiers, thread.name, owners[identifiers[0]])
               for identifiers, thread in zip(threads, trace.threads, strict=True)]  # fmt: skip
    packets = _Packets(trace)
    *before, events = accumulate((thread.count for thread in trace.threads), initial=0)
    with part_of(WRITING, events) as tell_done:
        for thread, track, first in zip(trace.threads, numbers, before, strict=True):
            for rows, parts in _thread(thread, track, tracks, packets):
                tell_done(first + rows)
                out.writelines(parts)
    for part in _instants(trace, np.array(numbers, np.int64), packets):
        out.write(part)
    for process, name, unit, times, values in _counted(trace):
        track = tracks.counter(name, unit, owners[pids[process]])
        for first in range(0, len(times), BLOCK):
            block = slice(first, first + BLOCK)
            out.write(packets.counted(times[block], track, values[block]))


class _Tracks:
    """What is told once: names and tracks."""

    def __init__(self, protos: ModuleType, out: BinaryIO) -> None:
        self._protos = protos
        self._out = out
        self._count = 0

    def names(self, trace: Trace) -> None:
        """Write the packet of labels and channels, numbered from 1."""
        packet = self._protos.TracePacket(sequence_flags=CLEARED)
        texts = (
            (packet.interned_data.event_names, trace.labels),
            (packet.interned_data.event_categories, trace.channels),
        )
        for messages, names in texts:
            for number, name in enumerate(names, 1):
                messages.add(iid=number, name=_text(name))
        self._packet(packet)

    def process(self, pid: int, name: str) -> int:
        """Describe a process; give the number of its track."""
        described = self._new()
        described.track_descriptor.process.pid = pid
        described.track_descriptor.process.process_name = _text(name)
        return self._packet(described)

    def thread(self, identifiers: tuple[int, int], name: str, process: int) -> int:
        """Describe a thread; give the number of its track."""
        described = self._new(parent=process)
        described.track_descriptor.thread.pid, described.track_descriptor.thread.tid = identifiers
        described.track_descriptor.thread.thread_name = _text(name)
        return self._packet(described)

    def below(self, thread: Thread, parent: int) -> int:
        """Describe a track for overlapping events; give its number."""
        described = self._new(parent=parent)
        described.track_descriptor.name = _text(f"{thread.name}, overlapping")
        return self._packet(described)

    def counter(self, name: str, unit: str, process: int) -> int:
        """Describe a counter; give the number of its track."""
        described = self._new(parent=process)
        described.track_descriptor.name = _text(name)
        described.track_descriptor.counter.unit_name = _text(unit)
        return self._packet(described)

    def _new(self, parent: int = 0) -> TracePacket:
        self._count += 1
        packet = self._protos.TracePacket()
        packet.track_descriptor.uuid = self._count
        if parent:
            packet.track_descriptor.parent_uuid = parent
        return packet

    def _packet(self, packet: TracePacket) -> int:
        packet.trusted_packet_sequence_id = SEQUENCE
        self._out.write(self._protos.Trace(packet=[packet]).SerializeToString())
        return self._count


def _text(text: str) -> str:
    """Spell out what UTF-8 cannot hold."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


class _Packets:
    """Packets of events as bytes. Each is a begin of some fields, and they have all one length."""

    def __init__(self, trace: Trace) -> None:
        self._base = trace.anchor.wall_ns
        self._channels = trace.label_channels.astype(np.int64)
        self._name_bytes = _bytes_of(len(trace.labels))
        self._category_bytes = _bytes_of(len(trace.channels))

    def named(
        self, kind: int, times: Integers, tracks: Integers, labels: npt.NDArray[np.int32]
    ) -> Bytes:
        """Return begins of events, or instants: one a row."""
        names = _field(10, labels.astype(np.int64) + 1, self._name_bytes)
        categories = _field(3, self._channels[labels] + 1, self._category_bytes)
        return self._packets(times, kind, [_field(11, tracks, 4), categories, names])

    def ends(self, times: Integers, tracks: Integers) -> Bytes:
        """Return ends of events: as long as their begins, for which the track takes more bytes."""
        extra = self._name_bytes + self._category_bytes + 2
        most = min(extra, _LONGEST - 4)
        return self._packets(times, END, [_field(11, tracks, 4 + most)], extra - most)

    def counted(self, times: Integers, track: int, values: npt.NDArray[np.float64]) -> bytes:
        """Return points of a counter."""
        numbers = values.astype("<f8").view(np.uint8).reshape(-1, 8)
        tag = np.broadcast_to(np.frombuffer(b"\xe1\x02", np.uint8), (len(values), 2))
        tracks = np.full(len(values), track)
        return self._packets(times, COUNTER, [_field(11, tracks, 4), tag, numbers]).tobytes()

    def _packets(self, times: Integers, kind: int, fields: list[Bytes], padding: int = 0) -> Bytes:
        count = len(times)
        event = [_same(count, b"\x48" + _number(kind)), *fields]
        absolute = np.maximum(times + self._base, 0)
        packet = [
            _field(8, absolute, 9),
            _same(count, b"\x50" + _number(SEQUENCE, 1 + padding)),
            _same(count, b"\x68" + _number(NEEDED)),
            _same(count, b"\x5a" + _number(_width(event))),
            *event,
        ]
        return np.concatenate([_same(count, b"\x0a" + _number(_width(packet))), *packet], axis=1)


def annotated(packet: bytes, text: str) -> bytes:
    """Add metadata to a packet that ends with its event, both of a length of one byte."""
    value = text.encode("utf-8", "backslashreplace")
    note = b"\x52\x08metadata\x32" + _number(len(value)) + value
    note = b"\x22" + _number(len(note)) + note
    # Up to the length of the event: its time, sequence, flags and tag.
    at = packet.index(b"\x68\x02\x5a") + 3
    inside = packet[2:at] + _number(packet[at] + len(note)) + packet[at + 1 :] + note
    return b"\x0a" + _number(len(inside)) + inside


def _bytes_of(greatest: int) -> int:
    """Return how many bytes a number up to this one takes."""
    return max(-(-greatest.bit_length() // 7), 1)


def _number(value: int, size: int = 0) -> bytes:
    """Encode a number, in `size` bytes or as few as it takes."""
    size = size or _bytes_of(value)
    low = [value >> 7 * place & 0x7F for place in range(size)]
    return bytes([*(part | 0x80 for part in low[:-1]), low[-1]])


def _same(count: int, content: bytes) -> Bytes:
    return np.broadcast_to(np.frombuffer(content, np.uint8), (count, len(content)))


def _field(field: int, values: Integers, size: int) -> Bytes:
    """Encode a field of whole numbers, each in `size` bytes behind its tag."""
    encoded = np.empty((len(values), size + 1), np.uint8)
    encoded[:, 0] = field << 3
    for place in range(size):
        encoded[:, place + 1] = (values >> 7 * place & 0x7F) | (0x80 if place + 1 < size else 0)
    return encoded


def _width(parts: Sequence[Bytes]) -> int:
    return sum(part.shape[1] for part in parts)


def _thread(
    thread: Thread, main: int, tracks: _Tracks, packets: _Packets
) -> Iterator[tuple[int, Iterator[bytes]]]:
    """Yield begins and ends of a thread's events in order, and how many events came before."""
    columns = thread.columns
    if not len(columns):
        return
    track = np.zeros(int(columns.depth.max()) + 1, np.int64)  # of overlapping events, by depth
    across = columns.overlapping
    for depth in np.unique(columns.depth[across]).tolist():
        track[depth] = tracks.below(thread, main)
    for rows, at, closed, closed_at in _brackets(columns.begin_ns, columns.end_ns):
        on, off = (np.where(across[some], track[columns.depth[some]], main)
                   for some in (rows, closed))  # fmt: skip
        begins = packets.named(BEGIN, columns.begin_ns[rows], on, columns.label[rows])
        both = np.empty((len(rows) + len(closed), begins.shape[1]), np.uint8)
        both[at] = begins
        both[closed_at] = packets.ends(columns.end_ns[closed], off)
        metadata_rows = np.searchsorted(columns.metadata.rows, (rows[0], rows[-1] + 1))
        places = at[columns.metadata.rows[slice(*metadata_rows)] - rows[0]]
        texts = columns.metadata.texts[slice(*metadata_rows)]
        yield int(rows[0]), _with_metadata(both, places, texts)


def _brackets(
    begin: Integers, end: Integers
) -> Iterator[tuple[Integers, Integers, Integers, Integers]]:
    """Return some rows that begin, and those that end before any other begins, with their order."""
    waiting = np.zeros(0, np.int64)
    start = 0
    while start < len(begin):
        stop = min(start + max(BLOCK, len(waiting)), len(begin))
        rows = np.arange(start, stop)
        waiting = np.concatenate((waiting, rows))
        # As in `pva.model.host_trace.nesting`: one of no duration is around what begins with it.
        ends = np.maximum(end[waiting], begin[waiting] + 1)
        closes = ends <= begin[stop] if stop < len(begin) else np.ones(len(ends), np.bool_)
        closed, times = waiting[closes], ends[closes]
        order = np.lexsort((-closed, times))
        closed, times = closed[order], times[order]
        begins = begin[start:stop]
        at = np.arange(len(rows)) + np.searchsorted(times, begins, side="right")
        closed_at = np.arange(len(closed)) + np.searchsorted(begins, times)
        yield rows, at, closed, closed_at
        waiting, start = waiting[~closes], stop


def _with_metadata(rows: Bytes, places: Integers, texts: Texts) -> Iterator[bytes]:
    """Return packets, with metadata added to some."""
    written = 0
    for place, text in zip(places.tolist(), texts, strict=True):
        yield rows[written:place].tobytes()
        yield annotated(rows[place].tobytes(), text)
        written = place + 1
    yield rows[written:].tobytes()


def _instants(trace: Trace, tracks: Integers, packets: _Packets) -> Iterator[bytes]:
    instants = trace.instants
    for first in range(0, len(instants), BLOCK):
        block = slice(first, first + BLOCK)
        rows = packets.named(
            INSTANT, instants.time_ns[block], tracks[instants.thread[block]], instants.label[block]
        )
        texts = instants.metadata[block]
        places = [place for place, text in enumerate(texts) if text is not None]
        texts_of_places = [text for text in texts if text is not None]
        yield from _with_metadata(rows, np.array(places, np.int64), texts_of_places)


def _counted(trace: Trace) -> Iterator[tuple[int, str, str, Integers, npt.NDArray[np.float64]]]:
    """Return process, name, unit, times and values of each series and of each bin of a heatmap."""
    for series in trace.series:
        finite = np.isfinite(series.value)
        name = f"{series.graph}: {series.name}"
        yield series.process, name, series.unit, series.time_ns[finite], series.value[finite]
    for heatmap in trace.heatmaps:
        for name, counts in heatmap.bins():
            values = counts.astype(np.float64)
            yield heatmap.process, f"{heatmap.name}: {name}", "", heatmap.time_ns, values
