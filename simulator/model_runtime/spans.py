"""Spans of what is served, on a channel of their own: recorded while pvti records, and bounded.

Graphcore's backend has tracepoints whose names are not public. Ours: `request` and, in it, `queue`;
`batch`; and where a program runs `execute` with `upload`, `pad` in it, and `download`.
"""

from __future__ import annotations

import itertools
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pvti

CHANNEL = pvti.createTraceChannel("Serving")
MOST = 4_000_000  # spans: the channel records no more
_numbers = itertools.count(1)
_NOTHING: AbstractContextManager[Any] = nullcontext()


def is_recorded() -> bool:
    """Return whether spans are recorded now."""
    return CHANNEL.begins is not None


def span(label: str, metadata: dict[str, Any] | None = None) -> AbstractContextManager[Any]:
    """Return a block that is recorded; its metadata are taken as they are when it ends."""
    if CHANNEL.begins is None:
        return _NOTHING
    if next(_numbers) >= MOST:
        pvti.disableTraceChannel(CHANNEL)
    return pvti.Tracepoint(CHANNEL, label, metadata)


def event(label: str, metadata: dict[str, object]) -> None:
    """Record what has no duration."""
    if CHANNEL.begins is not None:
        pvti.Tracepoint.event(CHANNEL, label, metadata)
