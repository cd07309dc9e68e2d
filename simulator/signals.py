"""Signals that come at any moment, and what waits for them.

Python notes a signal, and calls its handler when the main thread goes on. One that comes as the
main thread begins to wait wakes it no more (CPython looks at what is noted before it waits for a
lock): so it waits in turns. A KeyboardInterrupt that is raised anywhere may leave a lock of a
library held: so it is raised where none is.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

TURN = 0.25  # seconds that the main thread waits before it looks again


@contextmanager
def ctrl_c_noted() -> Iterator[Callable[[], None]]:
    """Note Ctrl-C while the block runs; what is given raises KeyboardInterrupt if there was one.

    So does the end of the block. Beside the main thread, and where Ctrl-C has a handler already,
    nothing changes.
    """
    noted: list[int] = []

    def raise_noted() -> None:
        if noted:
            raise KeyboardInterrupt

    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield raise_noted
        return
    signal.signal(signal.SIGINT, lambda number, _: noted.append(number))
    try:
        yield raise_noted
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    raise_noted()
