"""The one trace of the process: when it starts, when it commits, how it ends.

The file and the writer's thread are made when something is first recorded. A fault of the recorder
ends the trace with one warning; the traced program goes on.

One lock of the process guards the start, the file and the end. With two a signal handler, which may
call any function here while its own thread holds one, would take them in the wrong order. What
threads share without the lock, the interpreter changes in one step: a dictionary, a counter.
"""

from __future__ import annotations

import atexit
import itertools
import os
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from operator import call
from time import perf_counter_ns
from typing import TYPE_CHECKING

from pvti import channel
from pvti.buffers import HURRY_NANOSECONDS, Buffers, Track, Unstarted
from pvti.options import RING, Options
from pvti.schema import TASK_TID
from pvti.spans import forget_losses, move_losses, raise_if_signalled, warn, writable
from pvti.tasks import thread_buffers
from pvti.trace_path import TracePath

if TYPE_CHECKING:
    from pvti.ring import Ring
    from pvti.writer import Open, Progress, Taken, TraceFile

COMMIT_SECONDS = 0.08  # and the commit itself: what is killed loses under 0.1 s
HEARTBEAT_SECONDS = 1.0  # between commits that only tell that the open spans still are
PATIENCE_SECONDS = 0.5  # how long a commit waits for a reader before the next takes it along
CLOSING_SECONDS = 30.0  # and the last one
JOINING_SECONDS = 1.0  # how long closing and forking wait for the writer
LATE_SECONDS = 0.25  # without a commit, then the threads that record make one
HELP_SECONDS = 0.02  # how long a thread that records waits for the writer to get on


class Recorder:
    """One trace of one process."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.place = TracePath(options.directory)
        self.over = False  # nothing more is recorded; the last commit may still be due
        self._stop = threading.Event()  # of the writer that runs
        self._tracks: dict[int, Track] = {}  # by number
        self._numbers = itertools.count(1)
        self._buffers: Buffers | None = None
        self._file: TraceFile | Ring | None = None
        self._writer: threading.Thread | None = None
        self._began = perf_counter_ns()
        self._last_commit = 0.0
        self._due = 0.0  # when the writer looks next, also one that was started after a fork
        self._was_busy = False
        self._is_committing = False
        self._lost_unmatched = 0

    def listen(self) -> None:
        """Let the first event start the trace."""
        channel.send_to(Unstarted(self._start))

    def _start(self) -> Buffers:
        with _lock:  # no fork meanwhile
            if self._buffers is None:
                self._began = perf_counter_ns()
                self._due = time.monotonic() + COMMIT_SECONDS
                self._buffers = thread_buffers(self._register)
                self._open_file()
                if not self.over:
                    channel.send_to(self._buffers)
                    self._start_writer()
                    _close_with_child()
            return self._buffers

    def _open_file(self) -> None:
        from pvti.writer import FAULTS, Process, TraceFile

        if self.over:
            return
        wall, clock = time.time_ns(), perf_counter_ns()
        program = writable(os.path.basename(sys.argv[0]) if getattr(sys, "argv", None) else "")
        process = Process(os.getpid(), program or "python", clock, wall)
        try:
            if self.options.mode == RING:
                from pvti.ring import Ring, catch_exceptions

                self._file = Ring(self.options.seconds, process, self.place.free)
                _catch_exceptions_once(catch_exceptions)
            else:
                self._file = TraceFile(self.place.free(), process)
        except FAULTS as error:
            raise_if_signalled(error)
            self._give_up(_refusal(error))
        finally:
            if self._file is None and not self.over:  # interrupted: the next event tries again
                self._buffers = None
        if self.over:  # a signal handler has closed it meanwhile
            self._commit()

    def _start_writer(self) -> None:
        self._stop = stop = threading.Event()
        try:
            writer = threading.Thread(
                target=self._write, args=[stop], name="pvti writer", daemon=True
            )
            writer.start()
            self._writer = writer
        except RuntimeError:  # the interpreter is ending, or has no such threads
            pass  # those that record commit, and the last commit takes it all

    def _await_writer(self) -> None:
        # A signal handler may wait here while its own thread holds what the writer waits for.
        if self._writer is not None and self._writer is not threading.current_thread():
            self._writer.join(JOINING_SECONDS)

    def _register(self, name: str, siblings: list[Track]) -> Track:
        """Make a track: the first of a thread, or one of a task beside its `siblings`."""
        tid = threading.get_ident()
        number = next(self._numbers)
        if siblings:
            track = Track(number, TASK_TID + number, name, siblings, self._help)
        else:
            for candidate in list(self._tracks.values()):
                of_thread = candidate.siblings is not siblings and candidate.siblings[0].tid == tid
                candidate.retired = candidate.retired or of_thread
            track = Track(number, tid, name, siblings, self._help)
            if siblings[0] is not track:  # a signal handler has recorded meanwhile
                return siblings[0]
        track.due = perf_counter_ns() + HURRY_NANOSECONDS
        self._tracks[number] = track
        return track

    def _write(self, stop: threading.Event) -> None:
        duration = self.options.duration * 1e9
        while not stop.wait(max(self._due - time.monotonic(), 0)) and not self.over:
            self._due = time.monotonic() + COMMIT_SECONDS
            if duration and perf_counter_ns() - self._began > duration:
                self._end()
            self._commit()

    def _help(self) -> None:
        """Commit from a thread that records, when the writer could not for too long."""
        if self.over or time.monotonic() - self._last_commit < LATE_SECONDS:
            return
        acquired: list[bool] = []
        acquire, release = partial(_lock.acquire, timeout=HELP_SECONDS), _lock.release
        try:
            # While another thread commits, waiting lets it go on. The answer is kept in one step: a
            # signal handler that raises must not leave the lock behind.
            acquired.extend(map(call, (acquire,)))
            if acquired[0] and time.monotonic() - self._last_commit > COMMIT_SECONDS:
                self._commit(patience=0)
        finally:
            if acquired and acquired[0]:
                release()

    def _commit(self, *, asked: bool = False, patience: float = PATIENCE_SECONDS) -> None:
        """Commit what there is; for the last time when the trace is over, and close the file."""
        with _lock:
            # What runs in the middle of a commit, a finalizer or a signal handler, may ask for
            # another; what it asks for is done below when it was to end the trace.
            if self._file is None or self._is_committing:
                return
            self._is_committing = True
            try:
                if not self.over:
                    self._write_taken(self._file, asked, patience)
                if self.over:
                    self._write_last(self._file)
            except Exception as error:  # whatever it is, the traced program must not meet it
                raise_if_signalled(error)
                if self._file is not None:
                    self._give_up(_refusal(error))
            finally:
                self._is_committing = False

    def _write_last(self, file: TraceFile | Ring) -> None:
        self._write_taken(file, False, CLOSING_SECONDS)
        if self._was_busy:
            self._give_up(f"a reader kept the file for {CLOSING_SECONDS:.0f} s")
        else:
            self._file = None
            file.close()

    def _write_taken(self, file: TraceFile | Ring, forced: bool, patience: float) -> None:
        from pvti.writer import take

        tracks = list(self._tracks.values())
        now = perf_counter_ns()
        # Before anything is taken: a thread that is gone by then records no more, and what it left
        # open another may end.
        ended = {track.number for track in tracks if track.retired and not track.spans()}
        if tracks:
            move_losses(tracks[0].rows, now)
        batches = [take(track, now) for track in tracks]
        if self.over or forced or self._is_due(batches, file.opened):
            progress = self._progress(tracks)
            self._was_busy = True  # unless it comes to its end: a signal handler may raise
            self._was_busy = not file.write(batches, progress, patience)
            if not self._was_busy:
                self._forget(ended)
            self._last_commit = time.monotonic()
            if forced:
                file.dump(progress)

    def _progress(self, tracks: list[Track]) -> Progress:
        from pvti.writer import Progress

        unmatched = self._lost_unmatched + sum(track.unmatched_ends for track in tracks)
        return Progress(perf_counter_ns(), int(self.over), unmatched)

    def _is_due(self, batches: list[Taken], opened: dict[int, Open]) -> bool:
        if self._was_busy or any(
            part.chunks or part.rows or part.open != opened.get(part.track.number, [])
            for part in batches
        ):
            return True
        waiting = any(part.open for part in batches)
        return waiting and time.monotonic() - self._last_commit >= HEARTBEAT_SECONDS

    def _forget(self, ended: set[int]) -> None:
        for number in ended:
            self._lost_unmatched += self._tracks.pop(number).unmatched_ends

    def write_now(self) -> str:
        """Write what is recorded; give the path of the file."""
        with _lock:
            self._commit(asked=True)
            return "" if self.over else self.place.path

    def _end(self) -> None:
        """Record nothing more."""
        with _lock:  # not while it starts
            if not self.over:
                self.over = True
                self._stop.set()
                channel.send_to(None)

    def _give_up(self, reason: str) -> None:
        """Record nothing more; what was committed stays."""
        self._end()
        file, self._file = self._file, None
        if file is not None:
            file.close()
        warn(f"tracing stopped: {self.place}: {reason}")

    def close(self) -> None:
        """Commit what is left and close the file."""
        self._end()
        self._commit()
        self._await_writer()

    def hold(self) -> None:
        """Keep the file whole while the process forks, and the process without our thread.

        Python 3.12 warns of forks while threads run, and the program may have none.
        """
        self._stop.set()
        self._await_writer()
        _lock.acquire()

    def release(self) -> None:
        """End `hold`."""
        _lock.release()
        if self._writer is not None and not self.over:
            self._start_writer()

    def abandon(self) -> None:
        """Leave the file to the parent; what the child still ends here is dropped."""
        self.over = True
        _abandoned.append(self._file)
        self._file = None


_current: Recorder | None = None  # the last that was started
_abandoned: list[object] = []  # files of the parent, in a forked child: never closed here
_lock = threading.RLock()  # the only one: the start, the file, the end
_held: dict[int, Recorder] = {}  # by the thread that forks
_hooked = False
_catching = False


def start(options: Options) -> Recorder:
    """Start a trace unless one runs; give the one that runs."""
    global _current
    with _lock:
        recorder = _running()
        if recorder is None:
            _hook()
            closeTrace()  # one that is over may have its last commit before it
            channel.choose(options.channels)
            forget_losses()  # of the trace before
            recorder = _current = Recorder(options)
            recorder.listen()
        return recorder


def _running() -> Recorder | None:
    return None if _current is None or _current.over else _current


def getCurrentTraceFilename() -> str:
    """Name the file of the running trace; empty when none runs.

    >>> getCurrentTraceFilename()
    ''
    """
    recorder = _running()
    return recorder.place.path if recorder is not None else ""


def writeTrace() -> str:
    """Write what is recorded so far; give the path of the file, empty when no trace runs.

    In ring mode that is the last seconds, into a file of their own; else a commit.

    >>> writeTrace()
    ''
    """
    recorder = _running()
    return recorder.write_now() if recorder is not None else ""


def closeTrace() -> None:
    """End the trace and close its file; nothing is recorded afterwards.

    >>> closeTrace()
    >>> getCurrentTraceFilename()
    ''
    """
    if _current is not None:
        _current.close()


def _close_with_child() -> None:
    """Register the closing of the trace with `multiprocessing`, whose children call no `atexit`."""
    process = sys.modules.get("multiprocessing.process")
    if process is not None and process.parent_process() is not None:
        sys.modules["multiprocessing.util"].Finalize(None, closeTrace, exitpriority=0)


def _catch_exceptions_once(catch: Callable[[Callable[[], object]], None]) -> None:
    global _catching
    if not _catching:
        _catching = True
        catch(_write_ring)


def _write_ring() -> None:
    recorder = _running()
    if recorder is not None and recorder.options.mode == RING:
        recorder.write_now()


def _hook() -> None:
    global _hooked
    if _hooked:
        return
    _hooked = True
    atexit.register(closeTrace)  # after all that the program registers once pvti is there
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(
            before=_before_fork, after_in_parent=_after_in_parent, after_in_child=_after_in_child
        )


def _before_fork() -> None:
    while (recorder := _current) is not None:
        recorder.hold()
        if recorder is _current:  # and no other was started meanwhile
            _held[threading.get_ident()] = recorder
            return
        recorder.release()


def _after_in_parent() -> None:
    recorder = _held.pop(threading.get_ident(), None)
    if recorder is not None:
        recorder.release()


def _after_in_child() -> None:
    """Leave the parent's file alone; record into one of the child's own."""
    global _current, _lock
    _lock = threading.RLock()  # another thread may have held it
    _held.clear()
    parents, _current = _current, None
    # Another thread may have been starting or ending the trace: no channel may go on as it is.
    channel.send_to(None)
    if parents is not None:
        runs = not parents.over
        parents.abandon()
        forget_losses()
        if runs:
            _current = Recorder(parents.options)
            _current.listen()


def _refusal(error: BaseException) -> str:
    """Return what the system refused, without the path, which the line begins with."""
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
