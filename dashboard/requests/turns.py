"""Whose turn it is: the parts of pages that are open come before further pages.

A browser asks for a page, and then for its parts, many at once. If those who come together took
turns, all of their pages would be whole late, and at the same time. So the page that was asked for
first is whole first.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from waitress.task import ThreadedTaskDispatcher

from dashboard.requests.access import CALLBACKS

PAGE = b"..page-above.children"  # in the first letters of what the browser sends for a page
FIRST = 40


class Turns(deque[Any]):
    """The connections whose requests wait; the dispatcher holds its lock around each call."""

    def __init__(self) -> None:
        super().__init__()
        self._parts = 0  # that stand before all pages

    def append(self, channel: Any) -> None:
        """Put a connection behind those that wait for the same kind of answer."""
        if asks_for_page(channel.requests[0]):
            super().append(channel)
        else:
            self.insert(self._parts, channel)
            self._parts += 1

    def popleft(self) -> object:
        """Take the connection whose turn it is."""
        self._parts = max(self._parts - 1, 0)
        return super().popleft()


def asks_for_page(request: Any) -> bool:
    """Return whether a request is for a page, not for a part of one that is open."""
    if request.path != CALLBACKS:
        return False
    body = request.get_body_stream()
    begin = body.read(FIRST)
    body.seek(0)
    return PAGE in begin


def dispatcher(threads: int) -> object:
    """Return what has waitress answer in turn, by so many threads."""
    pool = ThreadedTaskDispatcher()
    pool.queue = Turns()
    pool.set_thread_count(threads)
    return pool
