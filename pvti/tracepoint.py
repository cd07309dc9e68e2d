"""Tracepoints: blocks, pairs of begin and end, and instant events."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter_ns
from types import TracebackType

from pvti.buffers import ThreadState, writable
from pvti.channel import TraceChannel
from pvti.schema import DURATION_LIMIT, LABEL_BITS, NESTED, OVERLAPPING

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

    __slots__ = ("_channel", "_label", "_key", "_metadata")

    def __init__(
        self,
        channel: TraceChannel,
        label: str,
        metadata: Metadata | Mapping[str, object] | str | None = None,
    ) -> None:
        self._channel = channel
        self._label = label
        # Labels are kept for good: of a program that is not traced, none is.
        self._key = 0 if channel.begins is None else channel.keys[label]
        self._metadata = metadata if metadata is None else _text(metadata)

    def __enter__(self) -> Tracepoint:
        buffers = self._channel.begins
        if buffers is not None:
            key = self._key
            if not key:
                key = self._key = self._channel.keys[self._label]
            buffers.state.open.append((key, perf_counter_ns()))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        buffers = self._channel.ends
        if buffers is None:
            return
        end = perf_counter_ns()
        # The frequent case stands here, not in a function: a call costs a tenth of the block.
        state, key = buffers.state, self._key
        if state.open and state.open[-1][0] == key and self._metadata is None:
            begin = state.open.pop()[1]
            if end - begin < DURATION_LIMIT:
                state.events.extend((begin, end - begin | key))
                return
            state.open.append((key, begin))
        _end(state, key, self._metadata, end)

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
            end = perf_counter_ns()
            found = _end(buffers.state, channel.keys[label], None, end)
            # While a channel is disabled its begins are dropped, and so their ends are no mistake.
            buffers.state.unmatched_ends += not found and channel.begins is not None

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


def _end(state: ThreadState, key: int, metadata: str | None, end: int) -> bool:
    """End the innermost open event with this key; False when there is none."""
    spans = state.open
    place = len(spans) - 1
    while place >= 0 and spans[place][0] != key:
        place -= 1
    if place < 0:
        return False
    kind = NESTED if place == len(spans) - 1 else OVERLAPPING
    begin = spans.pop(place)[1]
    label = key >> _LABEL_SHIFT
    if metadata is not None:
        state.rows.append(("event_metadata", (state.number, begin, label, metadata)))
    if end - begin < DURATION_LIMIT:
        state.events.extend((begin, end - begin | key | kind << _KIND_SHIFT))
    else:
        state.rows.append(("long_events", (state.number, begin, end - begin, kind, label)))
    return True
