"""Which requests are under way: what nobody waits for gives way to them.

Between the requests of one page the browser lays out what came. Work that begins there is in the
way of the request that comes next, so that a rest is longer than such a pause.
"""

from __future__ import annotations

import threading
import time

from flask import Flask, g, request

PATIENCE = 1.0  # seconds that a part of other work waits at most
LOOK = 0.01  # seconds between two looks
PAUSE = 0.15  # seconds between two requests of one page
LOADING = 2.5  # seconds in which a browser loads its first page


class UnderWay:
    """The requests that a server is answering, and until when more of the same page may come."""

    def __init__(self, server: Flask) -> None:
        self.count = 0
        self._loading = 0.0  # until when the last browser loads its first page
        self._pausing = 0.0
        self._lock = threading.Lock()
        server.before_request(self._begin)
        server.teardown_request(self._end)

    def rest(self) -> None:
        """Wait until no request is under way and none is expected, but not for long."""
        now = time.monotonic()
        until = max(now, self._loading) + PATIENCE
        while now < until and (self.count or now < max(self._loading, self._pausing)):
            time.sleep(LOOK)
            now = time.monotonic()

    def _begin(self) -> None:
        g.is_counted = True
        with self._lock:
            self.count += 1
        if request.headers.get("Sec-Fetch-Dest") == "document":
            self._loading = time.monotonic() + LOADING

    def _end(self, _: BaseException | None) -> None:
        if g.pop("is_counted", False):  # one that was refused earlier was not counted
            self._pausing = time.monotonic() + PAUSE
            with self._lock:
                self.count -= 1
