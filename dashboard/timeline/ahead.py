"""Timelines made before somebody asks: when a page of a source is shown, in a thread that yields.

A report of a million steps takes seconds to lay out, which is when a reader looks at its summary.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable

from dashboard.store import Store
from dashboard.timeline.endpoint import host, timeline
from pva.errors import PvaError

SOON = 1.5  # seconds after a page was asked for, so that it comes first
LARGEST = 500_000_000  # bytes of files; what is larger is made only when it is asked for


def ahead_of(store: Store) -> Callable[[str], None]:
    """Return the function to call with the key of a source that is shown."""
    known: set[str] = set()

    def shown(key: str) -> None:
        if key in known:
            return
        known.add(key)
        timer = threading.Timer(SOON, prepare, (store, key))
        timer.daemon = True
        timer.start()

    return shown


def prepare(store: Store, key: str) -> None:
    """Make the timelines of a source; what stands in the way is told where they are asked for."""
    try:
        _yield()
        if store.size(key) > LARGEST:
            return
        if store.has_report(key) and store.report(key).dataset.has("steps"):
            timeline(store, "device", key)
        if store.trace(key) is not None:
            host(store, key)
    except (PvaError, OSError):
        return


def _yield() -> None:
    """Let other threads go first: on Linux priorities are of threads (setpriority(2), Notes)."""
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 10)
