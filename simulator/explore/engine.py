"""Run points beside one another: in processes of this machine, or on the workers of Dask."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from distributed import Future as DaskFuture

from pva.dask_client import connected
from simulator.explore.work import Row, Running, Task, run_point
from simulator.signals import TURN, ctrl_c_noted

MARGIN = 1.25  # what a point takes may differ from what the first took
LOST = 1  # a point whose worker is lost is tried so often again


Rows = Generator[tuple[Task, Row], None, None]  # to be closed


class Engine(Protocol):
    """What runs tasks: one at a time, until it is ended."""

    def run(self, tasks: Sequence[Task]) -> Rows:
        """Run tasks and give each with its row as it ends."""


class Processes:
    """Processes of this machine; as many as given, or as fit into memory by the first point."""

    def __init__(self, workers: int = 0) -> None:
        self._workers, self._running = workers, Running()
        self._by_memory = 0

    def run(self, tasks: Sequence[Task]) -> Rows:
        """Run tasks; raises what ends the run early, with all processes ended."""
        waiting = list(tasks)
        most = max(self._workers, os.cpu_count() or 1)
        with ctrl_c_noted() as raise_noted, ThreadPoolExecutor(most) as pool:
            try:
                yield from self._all(pool, waiting, raise_noted)
            finally:
                if waiting or not self._running.is_over:
                    self._running.end()
                    self._running = Running()

    def _all(
        self, pool: ThreadPoolExecutor, waiting: list[Task], raise_noted: Callable[[], None]
    ) -> Iterator[tuple[Task, Row]]:
        busy: dict[Future[Row], Task] = {}
        while waiting or busy:
            raise_noted()
            while waiting and len(busy) < self._room():
                task = waiting.pop(0)
                busy[pool.submit(run_point, task, self._running)] = task
            finished, _ = wait(busy, TURN, FIRST_COMPLETED)
            for future in finished:
                task, row = busy.pop(future), future.result()
                self._measure(row)
                yield task, row

    def _room(self) -> int:
        """Return how many points may run at once; one until the first has told its memory."""
        return self._workers or self._by_memory or 1

    def _measure(self, row: Row) -> None:
        memory = int(row.get("memory") or 0)
        if memory and not self._by_memory:
            fit = int(available_memory() // (memory * MARGIN))
            self._by_memory = max(1, min(fit, os.cpu_count() or 1))


class Dask:
    """The workers of a Dask scheduler, who see the same files as this machine."""

    def __init__(self, address: str) -> None:
        self._client: Any = connected(address)

    def run(self, tasks: Sequence[Task]) -> Rows:
        """Run tasks; one whose worker is lost is tried again, and then is a row that says so."""
        from distributed import as_completed

        futures = {self._submit(task): task for task in tasks}
        try:
            for future in as_completed(list(futures)):
                yield futures.pop(future), _result(future)
        finally:
            with suppress(Exception):
                self._client.cancel(list(futures))

    def _submit(self, task: Task) -> object:
        # The library's name is the address of a point: the same one is not run twice.
        return self._client.submit(
            run_point, task, key=f"point-{task.key}", retries=LOST, pure=True
        )

    def close(self) -> None:
        """Let go of the scheduler."""
        self._client.close()


def _result(future: DaskFuture | Future[Row]) -> Row:
    try:
        row: Row = future.result()
        return row.copy()
    except Exception as error:
        name = type(error).__name__
        lost = "its worker was lost" if name == "KilledWorker" else f"{name}: {error}"
        return {"error": lost, "lost": True}


@contextmanager
def engine(dask: str = "", workers: int = 0) -> Iterator[Engine]:
    """Return an engine, and let go of it; raises PvaError and MissingPackageError."""
    if not dask:
        yield Processes(workers)
        return
    cluster = Dask(dask)
    try:
        yield cluster
    finally:
        cluster.close()


def available_memory() -> int:
    """Return the bytes of memory that new processes could have."""
    with suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    with suppress(AttributeError, ValueError, OSError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    return 1 << 32
