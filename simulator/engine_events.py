"""What engines do, for those who subscribe: every compilation and every run is an event.

Nothing listens unless asked for; the command `tilescope simulate` does, for its progress, and to
say which engines a program made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple


class Event(NamedTuple):
    """An engine was compiled for so many IPUs of a part, or has ended its run number `runs`."""

    kind: Literal["compiled", "ran"]
    part: str
    ipus: int
    tiles: int
    runs: int
    directory: Path


Listener = Callable[[Event], None]
_listeners: list[Listener] = []


def emit(event: Event) -> None:
    """Call all listeners."""
    for listener in _listeners:
        listener(event)


@contextmanager
def subscribed(listener: Listener) -> Iterator[None]:
    """Call this listener as well, within the block."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)
