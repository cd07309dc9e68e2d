"""Tracepoints: blocks, pairs of begin and end, and instant events."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter_ns
from types import TracebackType

from pvti.buffers import Buffers, ThreadState, writable
from pvti.channel import TraceChannel
from pvti.schema import DURATION_LIMIT, LABEL_BITS, LABEL_MASK, NESTED, OVERLAPPING

_LABEL_SHIFT = 32
_KIND_SHIFT = _LABEL_SHIFT + LABEL_BITS


class Metadata:
    """JSON that goes with a tracepoint."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


def createJsonMetadata(value: object) -> Metadata:
    """Make metadata of JSON text, or of anything that JSON can spell; other text is quoted."""
    import json

    if isinstance(value, str):
        try:
            json.loads(value)
        except ValueError:
            return Metadata(json.dumps(value))
        return Metadata(writable(value))
    return Metadata(json.dumps(value, default=str))


def _text(metadata: Metadata | Mapping[str, object] | str | None) -> str | None:
    if metadata is None:
        return None
    return (metadata if isinstance(metadata, Metadata) else createJsonMetadata(metadata)).text


class Tracepoint:
    """A block that is recorded: `with Tracepoint(channel, "label"):`.

    One object may serve many blocks, nested and in several threads.
    """

    __slots__ = ("_channel", "_key", "_metadata")

    def __init__(
        self,
        channel: TraceChannel,
        label: str,
        metadata: Metadata | Mapping[str, object] | str | None = None,
    ) -> None:
        self._channel = channel
        self._key = channel.keys[label]
        self._metadata = metadata if metadata is None else _text(metadata)

    def __enter__(self) -> Tracepoint:
        buffers = self._channel.begins
        if buffers is not None:
            buffers.state.open.append((self._key, perf_counter_ns()))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        buffers = self._channel.ends
        if buffers is not None:
            _end(buffers, self._key, self._metadata, perf_counter_ns())

    @staticmethod
    def begin(channel: TraceChannel, label: str) -> None:
        """Begin an event that `end` ends, in the same thread."""
        buffers = channel.begins
        if buffers is not None:
            buffers.state.open.append((channel.keys[label], perf_counter_ns()))

    @staticmethod
    def end(channel: TraceChannel, label: str) -> None:
        """End the innermost open event of this channel and label; without one, count that."""
        buffers = channel.ends
        if buffers is not None:
            _end(buffers, channel.keys[label], None, perf_counter_ns())

    @staticmethod
    def event(
        channel: TraceChannel,
        label: str,
        metadata: Metadata | Mapping[str, object] | str | None = None,
    ) -> None:
        """Record an instant event."""
        buffers = channel.begins
        if buffers is not None:
            state = buffers.state
            number = channel.keys[label] >> _LABEL_SHIFT
            row = (state.number, perf_counter_ns(), number, _text(metadata))
            state.rows.append(("instants", row))


def _end(buffers: Buffers, key: int, metadata: str | None, end: int) -> None:
    state = buffers.state
    try:
        found, begin = state.open.pop()
    except IndexError:
        state.unmatched_ends += 1
        return
    duration = end - begin
    if found == key and metadata is None and duration < DURATION_LIMIT:
        state.events.extend((begin, duration | key))
        return
    _end_rarer(state, (found, begin), key, metadata, end)


def _end_rarer(
    state: ThreadState, popped: tuple[int, int], key: int, metadata: str | None, end: int
) -> None:
    """End an event that is not the innermost, long, or has metadata."""
    kind = NESTED
    if popped[0] != key:
        kind = OVERLAPPING
        state.open.append(popped)
        positions = range(len(state.open) - 1, -1, -1)
        found = next((place for place in positions if state.open[place][0] == key), None)
        if found is None:
            state.unmatched_ends += 1
            return
        popped = state.open.pop(found)
    begin, label = popped[1], key >> _LABEL_SHIFT & LABEL_MASK
    if metadata is not None:
        state.rows.append(("event_metadata", (state.number, begin, label, metadata)))
    if end - begin < DURATION_LIMIT:
        state.events.extend((begin, end - begin | key | kind << _KIND_SHIFT))
    else:
        state.rows.append(("long_events", (state.number, begin, end - begin, kind, label)))
