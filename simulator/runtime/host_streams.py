"""The host's end of the data streams: rings over the host's memory, and callbacks.

Source: programming guide, 2.6.1 "Data streams" and 2.6.2 "Optimising host data transfers".
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from operator import index
from typing import Any

import numpy as np

import pvti
from simulator.graph.errors import HostAccessError
from simulator.graph.host.streams import ReplicatedStreamMode, Stream
from simulator.graph.types import Array
from simulator.logging import log
from simulator.runtime.callbacks import End, callback_end, called, fill, fill_ahead
from simulator.runtime.host_data import host_array


@dataclass(slots=True)
class Ring:
    """Host memory that is used one transfer after another, and again from its start.

    Of a stream with several replicas, transfer k of replica r is number k * replicas + r.
    """

    data: Array
    elements: int
    position: int
    step: int

    def read(self, buffer: Array) -> None:
        """Fill the buffer of a transfer to the device."""
        buffer[:] = self._advance()

    def write(self, buffer: Array) -> None:
        """Keep the values of a transfer from the device."""
        self._advance()[:] = buffer

    def _advance(self) -> Array:
        begin = self.position
        self.position = (begin + self.step) % len(self.data)
        return self.data[begin : begin + self.elements]


@dataclass(slots=True)
class Broadcast:
    """The transfers of a broadcast stream that some replicas have had and others not."""

    taken: list[int]
    waiting: deque[Array] = field(default_factory=deque)
    first: int = 0

    def take(self, replica: int, fetch: Callable[[], Array]) -> Array:
        """Return a replica its next transfer, which is fetched once for all replicas."""
        place = self.taken[replica] - self.first
        if place == len(self.waiting):
            self.waiting.append(fetch())
        values = self.waiting[place]
        self.taken[replica] += 1
        while self.waiting and min(self.taken) > self.first:
            self.waiting.popleft()
            self.first += 1
        return values


class HostStreams:
    """What each stream of a graph is connected to.

    `prefetch` and `overlap` are the engine options exchange.enablePrefetch and
    exchange.streamBufferOverlap: buffers are filled ahead only when they do not overlap.
    """

    def __init__(
        self,
        streams: list[Stream],
        replicas: int = 1,
        *,
        prefetch: bool = False,
        overlap: str = "Any",
    ) -> None:
        self._streams = streams
        self._replicas = replicas
        self._prefetch = prefetch and overlap != "Any"
        self._ends: dict[tuple[int, int], End] = {}
        self._broadcasts: dict[int, Broadcast] = {}
        if prefetch and overlap == "Any":
            log(
                "PO",
                "ENGINE",
                "WARN",
                "exchange.enablePrefetch has no effect: stream buffers may overlap; set "
                "exchange.streamBufferOverlap to HostRearrangeOnly or None",
            )

    # Connecting
    def connect(self, handle: str | Stream, *arguments: object, callback: bool = False) -> None:
        """Connect a stream: `[replica,] memory[, end]`, or `[replica,] callback`.

        Memory is any object with the buffer protocol, used as a ring of transfers up to element
        `end`. A callback is a function of the transfer's buffer or a StreamCallback. Without a
        replica all replicas share one end: a ring gives the transfers of one round to the replicas
        in their order; a callback is called in the order in which the replicas run.
        A function is taken for a callback even when `callback` is not set. A handle stands for the
        streams of both directions that have it.
        """
        for stream in self._named(handle):
            self._connect(stream, *arguments, callback=callback)

    def _connect(self, stream: Stream, *arguments: object, callback: bool) -> None:
        replica, ends = _split(stream, arguments, most=1 if callback else 2)
        callback = callback or callable(ends[0])
        total = self.copies(stream)
        copies = range(total) if replica is None else [_checked_replica(stream, replica, total)]
        if callback:
            shared = callback_end(stream, ends[0])
            connected = dict.fromkeys(copies, shared)
        else:
            data = _memory(stream, *ends)
            step = stream.elements * len(copies)
            rings = [
                Ring(data, stream.elements, place * stream.elements % len(data), step)
                for place in range(len(copies))
            ]
            to_device = stream.direction == "in"
            moves = [ring.read if to_device else ring.write for ring in rings]
            connected = dict(zip(copies, map(End, moves), strict=True))
        for copy, end in connected.items():
            self._invalidate(stream, self._ends.get((stream.id, copy)))
            self._ends[stream.id, copy] = end
        self._broadcasts.pop(stream.id, None)

    def start_run(self) -> None:
        """Forget the broadcast transfers that only some replicas of a failed run have had."""
        self._broadcasts.clear()

    def reset(self) -> None:
        """Throw away what was prefetched, as when a program is loaded again."""
        self.start_run()
        by_id = {stream.id: stream for stream in self._streams}
        for (stream, _), end in self._ends.items():
            self._invalidate(by_id[stream], end)

    def _named(self, handle: str | Stream) -> list[Stream]:
        """Return a stream, or those of a handle: at most one to the device and one to the host."""
        name = handle.handle if isinstance(handle, Stream) else handle
        directions = [handle.direction] if isinstance(handle, Stream) else ["in", "out"]
        streams = [one for one in self._streams if one.handle == name]
        streams = [one for one in streams if one.direction in directions]
        if not streams:
            names = ", ".join(dict.fromkeys(one.handle for one in self._streams)) or "none"
            raise HostAccessError(f"stream {name!r}: unknown; streams are {names}")
        return streams

    def copies(self, stream: Stream) -> int:
        """Count the ends that a stream has: one a replica, or one for all."""
        broadcast = stream.replicated_mode is ReplicatedStreamMode.BROADCAST
        return 1 if broadcast else self._replicas * stream.replicas

    def _invalidate(self, stream: Stream, end: End | None) -> None:
        if end is not None and end.ahead:
            end.ahead.clear()
            called(stream, end.invalidate)

    # Transfers
    def fetch(self, stream: Stream, replica: int = 0) -> Array:
        """Return the values of the next transfer to the device."""
        if stream.replicated_mode is ReplicatedStreamMode.BROADCAST:
            if stream.id not in self._broadcasts:
                self._broadcasts[stream.id] = Broadcast([0] * self._replicas)
            take = partial(self._take, stream, 0)
            return np.tile(self._broadcasts[stream.id].take(replica, take), stream.replicas)
        first = replica * stream.replicas
        values = [self._take(stream, first + i) for i in range(stream.replicas)]
        return np.concatenate(values) if len(values) > 1 else values[0]

    def store(self, stream: Stream, values: Array, replica: int = 0) -> None:
        """Hand the values of a transfer from the device on."""
        for i, part in enumerate(values.reshape(stream.replicas, stream.elements)):
            end = self._end(stream, replica * stream.replicas + i)
            with _traced(stream):
                called(stream, end.fetch, part.copy())
                called(stream, end.complete)

    def _take(self, stream: Stream, copy: int) -> Array:
        """Take a buffer that was filled ahead, or have one filled now; then fill others ahead."""
        end = self._end(stream, copy)
        with _traced(stream):
            if end.ahead:
                buffer = end.ahead.popleft()
            else:
                buffer = np.zeros(stream.elements, dtype=stream.dtype.numpy)
                fill(stream, buffer, called(stream, end.fetch, buffer))
            called(stream, end.complete)
            if self._prefetch and end.prefetch is not None:
                fill_ahead(stream, end, end.prefetch)
        return buffer

    def _end(self, stream: Stream, copy: int) -> End:
        end = self._ends.get((stream.id, copy))
        if end is None:
            which = f"replica {copy} " if self.copies(stream) > 1 else ""
            subject = f"stream {stream.handle!r}"
            raise HostAccessError(f"{subject}: {which}not connected; see connectStream")
        return end


def _traced(stream: Stream) -> pvti.Tracepoint:
    return pvti.Tracepoint(pvti.tracePoplar, f"StreamCallback {stream.handle}")


def _split(stream: Stream, arguments: tuple[Any, ...], most: int) -> tuple[int | None, list[Any]]:
    """Return the replica, if there is one, from what it is connected to."""
    replica, ends = None, list(arguments)
    if len(ends) > 1 and isinstance(ends[0], int | np.integer):
        replica = int(ends.pop(0))
    if not 1 <= len(ends) <= most:
        requirement = "memory and at most its end" if most == 2 else "one callback"
        raise HostAccessError(
            f"stream {stream.handle!r}: connected to {len(ends)} things; {requirement} is needed"
        )
    return replica, ends


def _checked_replica(stream: Stream, replica: int, total: int) -> int:
    if stream.replicated_mode is ReplicatedStreamMode.BROADCAST:
        raise HostAccessError(
            f"stream {stream.handle!r}: replica {replica}; a broadcast stream is connected once, "
            "for all replicas"
        )
    if not 0 <= replica < total:
        raise HostAccessError(
            f"stream {stream.handle!r}: replica {replica}; there are replicas 0 to {total - 1}"
        )
    return replica


def _memory(stream: Stream, data: object, end: int | None = None) -> Array:
    """Return the memory of a ring, which holds a whole number of transfers."""
    subject = f"stream {stream.handle!r}"
    array = host_array(data, stream.dtype, subject, writable=stream.direction == "out")
    if end is not None:
        try:
            size = index(end)
        except TypeError:
            problem = f"{subject}: end is {end!r}"
            raise HostAccessError(f"{problem}; a number of elements is needed") from None
        if not 0 <= size <= array.size:
            raise HostAccessError(f"{subject}: end is {size}; the array has {array.size} elements")
        array = array[:size]
    if array.size == 0 or array.size % stream.elements:
        raise HostAccessError(
            f"{subject}: array of {array.size} elements; a multiple of {stream.elements} is needed"
        )
    return array
