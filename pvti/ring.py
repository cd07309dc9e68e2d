"""The flight recorder: the last seconds, held in memory, and written when asked for."""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import chain
from types import TracebackType
from typing import NamedTuple

from pvti.buffers import Track
from pvti.spans import do_at_once
from pvti.writer import Open, Process, Progress, Taken, TraceFile, remember, remove

BYTES_LIMIT = 64 << 20  # of records and rows: four million events
ROW_BYTES = 300  # about what a row that is no event takes in memory
PATIENCE_SECONDS = 30.0


class Batch(NamedTuple):
    """What one look at all tracks brought."""

    time_ns: int
    bytes: int
    taken: list[Taken]


class Ring:
    """Stands where a recorder has its `TraceFile`: it takes what is written, and forgets the old.

    A span begun long ago and still open is in each file. What ended is dropped once it is older
    than `seconds`, or when it would take more than BYTES_LIMIT.
    """

    def __init__(self, seconds: float, process: Process, free_path: Callable[[], str]) -> None:
        self.opened: dict[int, Open] = {}
        self._tracks: dict[int, Track] = {}  # those with open spans
        self._seconds = seconds
        self._process = process
        self._free_path = free_path
        self._batches: deque[Batch] = deque()
        self._bytes = 0
        self._changed = False  # since the last file

    def write(self, track_batches: list[Taken], progress: Progress, patience: float) -> bool:
        """Keep what was taken; write a file when this is the last, and there is something new."""
        parts = [part._replace(removal=()) for part in track_batches if part.chunks or part.rows]
        batch = Batch(progress.last_ns, sum(map(_size, parts)), parts)
        do_at_once(
            partial(self._batches.append, batch),
            partial(setattr, self, "_bytes", self._bytes + batch.bytes),
            partial(setattr, self, "_changed", self._changed or bool(parts)),
            *chain.from_iterable(part.removal for part in track_batches),
        )
        for part in track_batches:
            self._changed |= remember(self.opened, part)
            self._tracks[part.track.number] = part.track
        self._tracks = {number: self._tracks[number] for number in self.opened}
        if progress.finished and self._changed:
            self.dump(progress)
        self._forget(progress.last_ns)
        return True

    def dump(self, progress: Progress) -> str:
        """Write what is held into a new file; give its path."""
        self._forget(progress.last_ns)
        path = self._free_path()
        file = TraceFile(path, self._process)
        try:
            file.write(self._content(), progress._replace(finished=1), PATIENCE_SECONDS)
        except BaseException:
            file.close()
            remove(path)
            raise
        file.close()
        self._changed = False
        return path

    def close(self) -> None:
        """Let go of everything."""
        self._batches.clear()

    def _forget(self, now: int) -> None:
        horizon = now - self._seconds * 1e9
        batches = self._batches
        while batches and (batches[0].time_ns < horizon or self._bytes > BYTES_LIMIT):
            remaining_bytes = self._bytes - batches[0].bytes
            do_at_once(batches.popleft, partial(setattr, self, "_bytes", remaining_bytes))

    def _content(self) -> list[Taken]:
        """Join the batches of each track, and add what is open now."""
        joined = {
            number: Taken(track, [], [], self.opened[number])
            for number, track in self._tracks.items()
        }
        for part in chain.from_iterable(batch.taken for batch in self._batches):
            merged = joined.setdefault(part.track.number, Taken(part.track, [], [], []))
            merged.chunks.extend(part.chunks)
            merged.rows.extend(part.rows)
        return list(joined.values())


def _size(part: Taken) -> int:
    return sum(len(chunk.data) for chunk in part.chunks) + ROW_BYTES * len(part.rows)


def catch_exceptions(write: Callable[[], object]) -> None:
    """Call `write` when an exception ends the program or one of its threads."""
    main, thread = sys.excepthook, threading.excepthook

    def in_main(
        kind: type[BaseException], value: BaseException, traceback: TracebackType | None
    ) -> None:
        write()
        main(kind, value, traceback)

    def in_thread(arguments: threading.ExceptHookArgs) -> None:
        if arguments.exc_type is not SystemExit:  # that ends a thread as it should
            write()
        thread(arguments)

    sys.excepthook, threading.excepthook = in_main, in_thread
