"""The one trace of the process: when it starts, when it commits, how it ends.

The file and the writer's thread are made when something is first recorded. A fault of the recorder
ends the trace with one warning; the traced program goes on.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
from time import perf_counter_ns
from typing import TYPE_CHECKING

from pvti import channel
from pvti.buffers import Taken, ThreadBuffers, ThreadState, Unstarted, writable
from pvti.options import Options

if TYPE_CHECKING:
    from pvti.writer import TraceFile

COMMIT_SECONDS = 0.1
HEARTBEAT_SECONDS = 1.0  # between commits that only tell that the open spans still are
PATIENCE_SECONDS = 0.5  # how long a commit waits for a reader before the next takes it along
CLOSING_SECONDS = 30.0  # and the last one


class Recorder:
    """One trace of one process."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self._directory = os.path.abspath(options.directory)
        self.name = _free_name(self._directory, file_name(time.time(), os.getpid()))
        self._lock = threading.RLock()  # the list of threads, the start: held for a moment only
        self._file_lock = threading.RLock()  # the file: held while a commit waits for a reader
        self._stop = threading.Event()
        self._states: list[ThreadState] = []
        self._numbers = iter(range(1, sys.maxsize))
        self._buffers: ThreadBuffers | None = None
        self._file: TraceFile | None = None
        self._writer: threading.Thread | None = None
        self._began = perf_counter_ns()
        self._last_commit = 0.0
        self._was_busy = False
        self._lost_unmatched = 0

    @property
    def path(self) -> str:
        """Where the file is, or will be when something is recorded."""
        return os.path.join(self.options.directory, self.name)

    def listen(self) -> None:
        """Let the first event start the trace."""
        channel.send_to(Unstarted(self._start))

    def _start(self) -> ThreadBuffers:
        with self._lock:
            if self._buffers is None:
                self._began = perf_counter_ns()
                self._buffers = ThreadBuffers(self._register)
                with self._file_lock:  # no fork meanwhile
                    self._open_file()
                if self._file is not None and not self._stop.is_set():
                    channel.send_to(self._buffers)
                    self._start_writer()
            return self._buffers

    def _open_file(self) -> None:
        from pvti.writer import FAULTS, TraceFile

        wall, clock = time.time_ns(), perf_counter_ns()
        program = writable(os.path.basename(sys.argv[0]) if getattr(sys, "argv", None) else "")
        process = (os.getpid(), program or "python", clock, wall)
        try:
            os.makedirs(self._directory, exist_ok=True)
            self.name = _free_name(self._directory, self.name)
            self._file = TraceFile(os.path.join(self._directory, self.name), process)
        except FAULTS as error:
            self._give_up(str(error))

    def _start_writer(self) -> None:
        self._writer = threading.Thread(target=self._write, name="pvti writer", daemon=True)
        try:
            self._writer.start()
        except RuntimeError:  # the interpreter is ending: the last commit takes it all
            self._writer = None
        _close_with_process()

    def _register(self) -> ThreadState:
        tid = threading.get_ident()
        with self._lock:
            for state in self._states:
                state.retired = state.retired or state.tid == tid
            name = writable(threading.current_thread().name)
            self._states.append(ThreadState(next(self._numbers), tid, name))
            return self._states[-1]

    def _write(self) -> None:
        duration = self.options.duration * 1e9
        due = time.monotonic() + COMMIT_SECONDS
        while not self._stop.wait(max(due - time.monotonic(), 0)):
            due = time.monotonic() + COMMIT_SECONDS
            self._commit()
            if duration and perf_counter_ns() - self._began > duration:
                channel.send_to(None)
                self._finish()

    def _commit(self, *, finished: bool = False) -> None:
        from pvti.writer import FAULTS

        with self._file_lock:
            if self._file is None:
                return
            with self._lock:
                states = list(self._states)
            taken = [(state, Taken(state)) for state in states]
            if not (finished or self._is_due(taken)):
                return
            unmatched = self._lost_unmatched + sum(state.unmatched_ends for state in states)
            progress = (perf_counter_ns(), int(finished), unmatched)
            try:
                patience = CLOSING_SECONDS if finished else PATIENCE_SECONDS
                self._was_busy = not self._file.write(taken, progress, patience)
            except FAULTS as error:
                self._give_up(str(error))
            self._last_commit = time.monotonic()
            self._forget_retired()

    def _is_due(self, taken: list[tuple[ThreadState, Taken]]) -> bool:
        if self._was_busy or any(
            part.words or part.rows or part.open != state.open_written for state, part in taken
        ):
            return True
        waiting = any(part.open for _, part in taken)
        return waiting and time.monotonic() - self._last_commit >= HEARTBEAT_SECONDS

    def _forget_retired(self) -> None:
        with self._lock:
            gone = [
                state
                for state in self._states
                if state.retired
                and not (state.events or state.rows or state.open or state.open_written)
            ]
            self._lost_unmatched += sum(state.unmatched_ends for state in gone)
            self._states = [state for state in self._states if state not in gone]

    def _give_up(self, reason: str) -> None:
        """Record nothing more; what was committed stays."""
        channel.send_to(None)
        self._stop.set()
        file, self._file = self._file, None
        if file is not None:
            file.close()
        path = os.path.join(self._directory, self.name)
        print(f"pvti: tracing stopped: {path}: {reason}", file=sys.stderr)

    def close(self) -> None:
        """Commit what is left and close the file."""
        with self._lock:  # not while it starts
            channel.send_to(None)
            self._stop.set()
        if self._writer is not None and self._writer is not threading.current_thread():
            self._writer.join()
        self._finish()

    def _finish(self) -> None:
        self._stop.set()
        with self._file_lock:
            self._commit(finished=True)
            if self._file is not None and self._was_busy:
                self._give_up(f"a reader kept the file for {CLOSING_SECONDS:.0f} s")
            elif self._file is not None:
                self._file.close()
                self._file = None

    def hold(self) -> None:
        """Keep the file whole while the process forks."""
        self._file_lock.acquire()

    def release(self) -> None:
        """End `hold`."""
        self._file_lock.release()


def file_name(seconds: float, pid: int) -> str:
    """Name a trace after its local time, time zone and process, as libpvti does."""
    local = time.localtime(seconds)
    name = f"{time.asctime(local)} {local.tm_zone} {pid}.pvti".replace(" ", "_").replace("/", "_")
    return name.replace(":", "-") if os.name == "nt" else name


def _free_name(directory: str, name: str) -> str:
    """Give `name`, with a number when a trace of that name is there."""
    stem = name.removesuffix(".pvti")
    number = 1
    while os.path.exists(os.path.join(directory, name)):
        number += 1
        name = f"{stem}_{number}.pvti"
    return name


_current: Recorder | None = None
_abandoned: list[Recorder] = []  # a parent's, in a forked child: never closed here
_held: Recorder | None = None  # while the process forks
_hooked = False


def start(options: Options) -> Recorder:
    """Start a trace unless one runs; give the one that runs."""
    global _current
    if _current is None:
        _hook_forks()
        channel.choose(options.channels)
        _current = Recorder(options)
        _current.listen()
    return _current


def getCurrentTraceFilename() -> str:
    """Name the file of the running trace; empty when none runs."""
    return _current.path if _current is not None else ""


def closeTrace() -> None:
    """End the trace and close its file; nothing is recorded afterwards."""
    global _current
    if _current is not None:
        recorder, _current = _current, None
        recorder.close()


def _close_with_process() -> None:
    """Have the trace closed when the process ends, as a child of `multiprocessing` too."""
    atexit.unregister(closeTrace)
    atexit.register(closeTrace)
    pool = sys.modules.get("multiprocessing.util")
    if pool is not None:
        pool.Finalize(None, closeTrace, exitpriority=0)


def _hook_forks() -> None:
    global _hooked
    if not _hooked and hasattr(os, "register_at_fork"):
        _hooked = True
        os.register_at_fork(
            before=_before_fork, after_in_parent=_after_in_parent, after_in_child=_after_in_child
        )


def _before_fork() -> None:
    global _held
    _held = _current
    if _held is not None:
        _held.hold()


def _after_in_parent() -> None:
    if _held is not None:
        _held.release()


def _after_in_child() -> None:
    """Leave the parent's file alone; record into one of the child's own."""
    global _current
    if _current is not None:
        _abandoned.append(_current)
        _current = Recorder(_current.options)
        _current.listen()
