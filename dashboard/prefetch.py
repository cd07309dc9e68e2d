"""Findings, timelines and broken laws of a source, computed before its reader asks for them.

A report of a million steps takes seconds to lay out, and the rules and laws of a large one take two
more. They are made one by one, each when no request is being answered, and kept as if they had been
asked for.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial

from dash import Dash

from dashboard.address import Address
from dashboard.memory import give_back
from dashboard.pages import broken_laws, insights
from dashboard.store import Store
from dashboard.timeline.endpoint import host, timeline
from pva.errors import PvaError

DELAY_SECONDS = 1.5  # after a page was asked for, so that it comes first
_NAME = "tilescope prefetcher"
LARGEST = 500_000_000  # bytes of files; what is larger is made only when it is asked for


class Prefetcher:
    """The sources of a store that were shown, each of which is made ready once, one at a time.

    `rest` waits until little else is to do. May be asked from several threads.
    """

    def __init__(self, store: Store, pause: Callable[[], None]) -> None:
        self._store, self.rest = store, pause
        self._known: set[str] = set()
        self._waiting: set[str] = set()
        self._quickly, self._slowly = threading.Lock(), threading.Lock()
        self._ended = threading.Event()

    def show(self, key: str) -> None:
        """Make a source ready a while from now; at once is for what its reader sees."""
        if self._is_new(key):
            timer = threading.Timer(DELAY_SECONDS, self._prepare, (key,))
            timer.daemon = True
            timer.start()

    def prepare(self, key: str) -> None:
        """Make a source ready, unless that was begun."""
        if self._is_new(key):
            self._prepare(key)

    def awaits(self, key: str) -> bool:
        """Return whether a source will soon be ready."""
        return key in self._waiting

    def end(self, seconds: float) -> None:
        """Begin no further part, and wait so long for the last ones."""
        self._ended.set()
        for lock in (self._quickly, self._slowly):
            if lock.acquire(timeout=seconds):
                lock.release()

    def _is_new(self, key: str) -> bool:
        if key in self._known:
            return False
        self._known.add(key)
        self._waiting.add(key)
        return True

    def _prepare(self, key: str) -> None:
        """Make the parts of a source, those that take long or that no click waits for more slowly.

        Who waits for a part that a thread of low priority makes would wait for all other threads.
        """
        with self._quickly:
            self._make(findings(self._store, key))
        threading.Thread(target=self._prepare_slowly, args=(key,), daemon=True).start()

    def _prepare_slowly(self, key: str) -> None:
        try:
            _yield()
            with self._slowly:
                self._make(timelines(self._store, key))
                self._make(laws(self._store, key))
        finally:
            self._waiting.discard(key)
            give_back()

    def _make(self, parts: Iterator[Callable[[], object]]) -> None:
        """Make parts; what stands in the way is told where they are asked for."""
        with suppress(PvaError, OSError):
            for make in parts:
                self.rest()
                if self._ended.is_set():
                    return
                make()
                self._store.let_go()


def prefetcher_of(app: Dash, new: Prefetcher | None = None) -> Prefetcher:
    """Return the prefetcher of an application, after registering a `new` one."""
    if new:
        app.server.extensions[_NAME] = new
    prefetcher: Prefetcher = app.server.extensions[_NAME]
    return prefetcher


def findings(store: Store, key: str) -> Iterator[Callable[[], object]]:
    """Return what makes each finding of a source; raises PvaError."""
    if _is_small(store, key) and store.has_report(key) and insights.available(store, key):
        yield from insights.parts(store, Address(insights.PATH, key))


def timelines(store: Store, key: str) -> Iterator[Callable[[], object]]:
    """Return what makes each timeline of a source; raises PvaError."""
    if not _is_small(store, key):
        return
    if store.has_report(key) and store.report(key).dataset.has("steps"):
        yield partial(timeline, store, "device", key)
    if store.trace(key) is not None:
        yield partial(host, store, key)


def laws(store: Store, key: str) -> Iterator[Callable[[], object]]:
    """Return what holds a source against each law; raises PvaError."""
    if _is_small(store, key) and store.has_report(key):
        yield from broken_laws.parts(store, key)


def _is_small(store: Store, key: str) -> bool:
    return store.size(key) <= LARGEST


def _yield() -> None:
    """Let other threads go first: on Linux priorities are of threads (setpriority(2), Notes)."""
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 10)
