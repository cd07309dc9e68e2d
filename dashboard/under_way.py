"""Which requests are under way: what nobody waits for gives way to them."""

from __future__ import annotations

import threading
import time

from flask import Flask, g

PATIENCE = 1.0  # seconds that a part of other work waits at most
LOOK = 0.01  # seconds between two looks


class UnderWay:
    """The number of requests that a server is answering."""

    def __init__(self, server: Flask) -> None:
        self.count = 0
        self._lock = threading.Lock()
        server.before_request(self._begin)
        server.teardown_request(self._end)

    def rest(self) -> None:
        """Wait until no request is under way, but not for long."""
        until = time.monotonic() + PATIENCE
        while self.count and time.monotonic() < until:
            time.sleep(LOOK)

    def _begin(self) -> None:
        g.is_counted = True
        with self._lock:
            self.count += 1

    def _end(self, _: BaseException | None) -> None:
        if g.pop("is_counted", False):  # one that was refused earlier was not counted
            with self._lock:
                self.count -= 1
