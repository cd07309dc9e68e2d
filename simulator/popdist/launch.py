"""Start the instances of a run, show what they write, and end them together.

When one fails, or the user stops the run, all others are asked to end and, `GRACE` seconds later,
killed.
"""

from __future__ import annotations

import math
import os
import queue
import secrets
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import IO, Literal

from pva.errors import PvaError
from pva.formats.run_file import (
    INSTANCE_NAME,
    InstanceFile,
    RunFile,
    Topology,
    clock_now,
    folder_name,
    read_instance,
    write_run,
)
from simulator.instances.placement import Placement
from simulator.popdist.instance import Plan
from simulator.popdist.relay import Relay
from simulator.popdist.starters import Started, kill, mpirun, processes
from simulator.signals import TURN

GRACE = 3.0  # seconds from the request to end until the kill
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
Launcher = Literal["mpi", "processes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What is to be run, and how."""

    command: tuple[str, ...]
    directory: Path
    topology: Topology
    launcher: Launcher = "processes"
    offline: bool = False
    timeout: float = 300.0  # seconds that an instance waits for another
    variables: dict[str, str] = field(default_factory=dict)
    own_variables: dict[int, dict[str, str]] = field(default_factory=dict)
    mpi_arguments: tuple[str, ...] = ()


def launch(order: Order, relay: Relay) -> int:
    """Run all instances; return one exit code: 0, that of the first that failed, or of the signal.

    Raises PvaError when `run.json` cannot be written, and PoplarError while another run writes
    into the directory.
    """
    topology = order.topology
    run = RunFile(
        run=secrets.token_hex(16), command=order.command, topology=topology,
        launcher=order.launcher, begin=clock_now(), pid=os.getpid(),
    )  # fmt: skip
    placement = Placement(
        instances=topology.instances, replicas=topology.replicas,
        ipus_per_replica=topology.ipus_per_replica, ilds=topology.ilds, timeout=order.timeout,
        offline=order.offline,
    )  # fmt: skip
    by_mpi = order.launcher == "mpi"
    with _locked(order.directory), TemporaryDirectory(prefix="poprun-") as scratch:
        plan = Plan(
            run=run.run, directory=str(order.directory),
            placement=placement if by_mpi else replace(placement, socket_directory=scratch),
            scratch=scratch,
            variables=order.variables, own_variables=order.own_variables,
        )  # fmt: skip
        write_run(order.directory, run)
        start = mpirun if by_mpi else processes
        watch = _Watch(relay)
        watch.run(lambda: start(plan, order.command, topology, order.mpi_arguments))
        files = _instance_files(order.directory, run)
        failed = None if watch.signal else _first_failed(files, relay.failed)
        code = (failed.exit_code if failed else None) or watch.code
        ended = replace(run, end=clock_now(), exit_code=code, instances=files)
        write_run(order.directory, ended)
    if code and watch.signal != signal.SIGPIPE:
        relay.tell_last(
            failed.instance if failed else relay.failed, _words(code, failed, watch.signal)
        )
    return code


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Hold a run's directory, which is made; raises PvaError while another run holds it."""
    import fcntl

    try:
        directory.mkdir(parents=True, exist_ok=True)
        lock = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise PvaError(f"cannot make {directory}", error.strerror or str(error)) from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        reason = "another program writes into it"
        raise PvaError(
            directory, reason, "give each run a directory of its own, by --out"
        ) from None
    except OSError:  # a file system without locks
        pass
    try:
        yield
    finally:
        os.close(lock)


class _Watch:
    """The instances while they run: the first that fails, or a signal, ends all of them."""

    def __init__(self, relay: Relay) -> None:
        self._relay = relay
        self._events: queue.SimpleQueue[tuple[str, int, int]] = queue.SimpleQueue()
        self._running: dict[int, Started] = {}
        self.code = 0
        self.signal: int | None = None

    def run(self, start: Callable[[], Sequence[Started]]) -> None:
        """Start them and wait until all have ended; `code` and `signal` say how."""
        before = {number: signal.signal(number, self._note) for number in STOPPING}
        started: Sequence[Started] = ()
        try:
            started = start()
            self._running = dict(enumerate(started))
            threads = [thread for place, one in enumerate(started)
                       for thread in self._follow(place, one)]  # fmt: skip
            self._wait()
            for thread in threads:
                thread.join(GRACE)  # a process of theirs that lives on may hold the pipe
        finally:
            kill(*started)
            for number, handler in before.items():
                signal.signal(number, handler)

    def _note(self, number: int, _: FrameType | None) -> None:
        self._events.put(("signal", number, 0))

    def _follow(self, place: int, one: Started) -> Iterator[threading.Thread]:
        def end() -> None:
            self._events.put(("ended", place, one.process.wait()))

        def show(stream: IO[bytes], name: str) -> None:
            with stream:
                for line in stream:
                    try:
                        self._relay.line(one.instance, name, line)
                    except BrokenPipeError:
                        self._events.put(("signal", signal.SIGPIPE, 0))

        assert one.process.stdout is not None and one.process.stderr is not None
        for target, arguments in (
            (end, ()),
            (show, (one.process.stdout, "stdout")),
            (show, (one.process.stderr, "stderr")),
        ):
            thread = threading.Thread(target=target, args=arguments, daemon=True)
            thread.start()
            if target is show:
                yield thread

    def _wait(self) -> None:
        deadline = math.inf  # of the request to end
        while self._running:
            seconds = max(deadline - time.monotonic(), 0)
            try:
                kind, value, code = self._events.get(timeout=min(seconds, TURN))
            except queue.Empty:
                if seconds > TURN:
                    continue
                deadline = math.inf
                kill(*self._running.values())
                continue
            number = self._stop_signal(kind, value, code)
            if number is None:
                continue
            again = deadline < math.inf  # who presses Ctrl-C twice is in a hurry
            deadline = time.monotonic() + (0 if again else GRACE)
            for one in self._running.values():
                with suppress(ProcessLookupError):
                    one.process.send_signal(number)

    def _stop_signal(self, kind: str, value: int, code: int) -> int | None:
        """Return the signal that asks the others to end, None when they may go on."""
        if kind == "signal":
            self.signal = value
            self.code = 128 + value
            return signal.SIGTERM if value == signal.SIGPIPE else value
        one = self._running.pop(value)
        if not code or self.code:
            return None
        self.code = 128 - code if code < 0 else code
        self._relay.failed = one.instance
        return signal.SIGTERM


def _instance_files(directory: Path, run: RunFile) -> tuple[InstanceFile, ...]:
    """Read what the instances of this run wrote; those on other hosts' disks are not there."""
    files = []
    for index in range(run.topology.instances):
        with suppress(PvaError):
            one = read_instance(directory / folder_name(index) / INSTANCE_NAME)
            if one.run == run.run:
                files.append(one)
    return tuple(files)


def _first_failed(files: Sequence[InstanceFile], dead: int | None) -> InstanceFile | None:
    """Return the instance that ended first with an error, or that was killed."""
    failed = [one for one in files if one.exit_code and one.end]
    named = [one for one in files if one.instance == dead]
    return min(failed, key=lambda one: one.end.wall_ns if one.end else 0, default=None) or (
        named[0] if named else None
    )


def _words(code: int, failed: InstanceFile | None, stopped_by: int | None) -> str:
    if stopped_by is not None:
        return f"all instances were ended by {signal.Signals(stopped_by).name}"
    if failed is None:
        return f"the run ended with exit code {code}"
    return f"instance {failed.instance} ({failed.host}, process {failed.pid}) ended with {code}"
