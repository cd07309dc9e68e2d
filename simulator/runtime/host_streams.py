"""The host's end of the data streams: a ring over an array, or a callback."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import pvti
from simulator.graph.errors import HostAccessError
from simulator.graph.streams import Stream
from simulator.graph.types import Array

Callback = Callable[[Array], object]


@dataclass(slots=True)
class Ring:
    """A host array that is read or written one transfer after another, and again from its start."""

    data: Array
    elements: int
    position: int = 0

    def __call__(self, buffer: Array) -> None:
        """Fill the buffer of a host-to-device transfer."""
        buffer[:] = self._advance()

    def store(self, buffer: Array) -> None:
        """Keep the values of a device-to-host transfer."""
        self._advance()[:] = buffer

    def _advance(self) -> Array:
        begin = self.position
        self.position = (begin + self.elements) % len(self.data)
        return self.data[begin : begin + self.elements]


class HostStreams:
    """What each stream of a graph is connected to."""

    def __init__(self, streams: list[Stream]) -> None:
        self._streams = {stream.handle: stream for stream in streams}
        self._ends: dict[int, Callback] = {}

    def connect(self, handle: str, end: Any) -> None:
        """Connect a stream to an array (a ring of transfers) or to a callback.

        A callback gets the buffer of a transfer: to fill it (host to device) or to read it.
        """
        stream = self._streams.get(handle)
        if stream is None:
            known = ", ".join(self._streams) or "none"
            raise HostAccessError(f"stream {handle!r}: unknown; streams are {known}")
        self._ends[stream.id] = end if callable(end) else _ring(stream, end)

    def fetch(self, stream: Stream) -> Array:
        """Give the values of the next host-to-device transfer."""
        buffer = np.zeros(stream.elements, dtype=stream.dtype.numpy)
        self._call(stream, buffer)
        return buffer

    def store(self, stream: Stream, values: Array) -> None:
        """Hand the values of a device-to-host transfer on."""
        self._call(stream, np.array(values))

    def _call(self, stream: Stream, buffer: Array) -> None:
        end = self._ends.get(stream.id)
        if end is None:
            raise HostAccessError(f"stream {stream.handle!r}: not connected; see connectStream")
        with pvti.Tracepoint(pvti.tracePoplar, f"StreamCallback {stream.handle}"):
            end(buffer)


def _ring(stream: Stream, array: Any) -> Callback:
    data = np.asarray(array)
    what = f"stream {stream.handle!r}"
    if data.dtype != stream.dtype.numpy:
        raise HostAccessError(f"{what}: array of {data.dtype}; the stream is of {stream.dtype}")
    if data.size == 0 or data.size % stream.elements:
        raise HostAccessError(
            f"{what}: array of {data.size} elements; a multiple of {stream.elements} is needed"
        )
    if stream.direction == "in":
        return Ring(data.reshape(-1), stream.elements)
    if not (isinstance(array, np.ndarray) and data.flags.c_contiguous and data.flags.writeable):
        raise HostAccessError(f"{what}: needs a contiguous NumPy array that can be written")
    return Ring(data.reshape(-1), stream.elements).store
