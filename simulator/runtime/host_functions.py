"""Calls of functions of the host: when all that they take has come, and before they give."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from simulator.graph.errors import HostAccessError
from simulator.graph.host.host_functions import HostFunction
from simulator.graph.types import Array
from simulator.runtime.host_streams import HostStreams

HostCallback = Callable[[list[Array], list[Array]], object]


class _Caller:
    """The calls from one replica: the values that have come and those that are to go."""

    def __init__(self, function: HostFunction, callback: HostCallback) -> None:
        self._callback = callback
        self._taken = [_zeros(stream) for stream in function.inputs]
        self._given = [_zeros(stream) for stream in function.outputs]

    def take(self, number: int, buffer: Array) -> None:
        self._taken[number][:] = buffer
        if number == len(self._taken) - 1:
            self._call()

    def give(self, number: int, buffer: Array) -> None:
        if number == 0 and not self._taken:
            self._call()
        buffer[:] = self._given[number]

    def _call(self) -> None:
        self._callback([values.copy() for values in self._taken], self._given)


class _End:
    """A stream's end, which prefetches nothing: what a call gives depends on what it takes."""

    def __init__(self, fetch: Callable[[Array], None]) -> None:
        self.fetch = fetch


def connect(
    streams: HostStreams,
    functions: Mapping[str, HostFunction],
    handle: str,
    *arguments: object,
) -> None:
    """Let a function of the host be called, by one replica or by all: `[replica,] callback`.

    It is called with a list of arrays that it takes, and one of arrays to be filled. Raises
    HostAccessError.
    """
    *replica, callback = arguments or (None,)
    function = functions.get(handle)
    if function is None:
        handles = ", ".join(functions) or "none"
        raise HostAccessError(f"host function {handle!r}: unknown; host functions are {handles}")
    if not callable(callback):
        raise HostAccessError(f"host function {handle!r}: {callback!r} cannot be called")
    ends = [*function.inputs, *function.outputs]
    for copy in replica[:1] or range(streams.copies(ends[0])):
        caller = _Caller(function, callback)
        for fetch, group in ((caller.take, function.inputs), (caller.give, function.outputs)):
            for number, stream in enumerate(group):
                streams.connect(stream, copy, _End(partial(fetch, number)), callback=True)


def _zeros(stream: Any) -> Array:
    return np.zeros(stream.elements, dtype=stream.dtype.numpy)
