"""How far long work has come, for who listens: a command does, where it has a terminal.

Readers, writers, checks and the simulator tell. Work inside of other work tells, too, and a
listener may pass over it. While nobody listens, telling costs nothing to speak of.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
# The work, how much of it is done, how much there is, and what is done now.
Listener = Callable[[str, int, int, str], None]
_listeners: list[Listener] = []


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Add this listener while the block runs."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def tell(work: str, finished: int, total: int, now: str = "") -> None:
    """Call all listeners with how far some work has come; it ends when all of it is done."""
    for listener in _listeners:
        listener(work, finished, total, now)


@contextmanager
def part_of(work: str, total: int) -> Iterator[Callable[[int], None]]:
    """Return what tells how much of some work is done; the work ends with the block."""
    try:
        yield lambda finished: tell(work, finished, total)
    finally:
        tell(work, total, total)


WRITING = "writing"


def reading(path: Path) -> str:
    """Name the work of reading a file."""
    return f"reading {path.name}"


def each(items: Collection[T], work: str) -> Iterable[T]:
    """Go through items, and tell how many of them were left behind."""
    return _counted(items, work) if _listeners else items


def _counted(items: Collection[T], work: str) -> Iterator[T]:
    with part_of(work, len(items)) as tell_done:
        for finished, item in enumerate(items):
            tell_done(finished)
            yield item
