"""The channels of PopTorch in a host trace: nothing is imported unless PVTI_OPTIONS asks for it."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from typing import Any

VARIABLE = "PVTI_OPTIONS"


class Channel:
    """A channel of the trace, made when it is first used."""

    def __init__(self, name: str, owner: str = "") -> None:
        self._name, self._owner = name, owner
        self._channel: Any = None

    def span(self, label: str) -> AbstractContextManager[Any]:
        """Return an event of this channel: poptorch.trainingModel.modelExecution."""
        return self._event(f"{self._name}.{label}")

    def method(self, name: str) -> AbstractContextManager[Any]:
        """Return an event of a method, labelled as libpvti.instrument does: module.Class.method."""
        return self._event(f"{self._owner}.{name}")

    def _event(self, label: str) -> AbstractContextManager[Any]:
        if VARIABLE not in os.environ:
            return nullcontext()
        import pvti

        if self._channel is None:
            self._channel = pvti.createTraceChannel(self._name)
        return pvti.Tracepoint(self._channel, label)
