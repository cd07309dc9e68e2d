"""Channels in a host trace: nothing is recorded unless PVTI_OPTIONS or a trace asks for it.

with poptorch.profiling.Channel("MyApp").tracepoint("load"):
    ...
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TypeVar

import pvti

Traced = TypeVar("Traced")


class Channel:
    """A channel of the trace."""

    def __init__(self, name: str) -> None:
        self._name, self._channel = name, pvti.createTraceChannel(name)

    def tracepoint(self, name: str) -> AbstractContextManager[object]:
        """Return an event of this channel, labelled channel.name."""
        return self.event(f"{self._name}.{name}")

    def event(self, label: str) -> AbstractContextManager[object]:
        """Return an event of this channel with a label of its own."""
        return pvti.Tracepoint(self._channel, label)

    def instrument(self, obj: Traced, *methods: str) -> Traced:
        """Record the calls of methods of an object, labelled module.Class.method; return it."""
        if pvti.getCurrentTraceFilename():
            pvti.instrument(obj, methods, self._channel)
        return obj
