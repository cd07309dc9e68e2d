"""Tracepoints: blocks, pairs of begin and end, and instant events."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter_ns
from typing import Any

from pvti.buffers import Metadata, json_text
from pvti.channel import TraceChannel
from pvti.implementation import Span
from pvti.spans import find_key, lost


class Tracepoint(Span):
    """A block that is recorded: `with Tracepoint(channel, "label", metadata):`.

    One object may serve many blocks, nested, in several threads and in several tasks. Metadata are
    what `createJsonMetadata` gives, or what it takes; they are spelled out when the block ends.
    `begin` and `end` are a block in two calls.

    >>> from pvti import createTraceChannel
    >>> channel = createTraceChannel("loader")
    >>> with Tracepoint(channel, "read a batch"):
    ...     batch = list(range(4))
    """

    __slots__ = ()

    @staticmethod
    def event(
        channel: TraceChannel,
        label: str,
        metadata: Metadata | Mapping[str, object] | str | None = None,
    ) -> None:
        """Record an instant event."""
        buffers = channel.begins
        if buffers is None:
            return
        try:
            track = buffers.current
            row = (track.number, perf_counter_ns(), find_key(channel, label), json_text(metadata))
            track.rows.append(("instants", row))
        except Exception as error:
            lost(error)


class Activity:
    """A span that may end in another task or thread than it began in, as those of generators do."""

    __slots__ = ("_channel", "_label", "_begun")

    def __init__(self, tracepoint: Span) -> None:
        self._channel = tracepoint.channel
        self._label = tracepoint.label
        self._begun: tuple[Any, int, int] | None = None

    def __enter__(self) -> None:
        buffers = self._channel.begins
        if buffers is None:
            return
        try:
            self._begun = (buffers.current, find_key(self._channel, self._label), perf_counter_ns())
            track, key, begin = self._begun
            track.push(key, begin)
        except Exception as error:
            lost(error)

    def __exit__(self, *raised: object) -> None:
        buffers = self._channel.ends
        if buffers is None or self._begun is None:
            return
        end = perf_counter_ns()
        try:
            track, key, begin = self._begun
            if buffers.track.siblings is track.siblings:
                track.end(key, end, begin)
            else:
                track.end_elsewhere(key, end, begin)
        except Exception as error:
            lost(error)
