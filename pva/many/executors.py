"""Where the work of many reports runs: here, in processes, or on the workers of Dask.

A unit of work is a function from files to files that may run twice. Where a worker is lost, what it
had not answered goes to others: each unit is answered once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import TYPE_CHECKING, TypeVar

from pva.errors import PvaError

if TYPE_CHECKING:
    from distributed import Client


Item = TypeVar("Item")
Answer = TypeVar("Answer")
RETRIES = 3  # times that lost work is handed on
LOST = "its workers were lost again and again"


def mapped(
    work: Callable[[Item], Answer],
    items: Sequence[Item],
    *,
    workers: int = 1,
    client: object = None,
) -> Iterator[tuple[Item, Answer]]:
    """Return each item with its answer as they come; raises PvaError when workers keep dying."""
    if client is not None:
        yield from _by_dask(work, items, client)
    elif workers > 1 and len(items) > 1:
        yield from _by_processes(work, items, workers)
    else:
        for item in items:
            yield item, work(item)


def _by_processes(
    work: Callable[[Item], Answer], items: Sequence[Item], workers: int
) -> Iterator[tuple[Item, Answer]]:
    pending = dict(enumerate(items))
    for _ in range(RETRIES + 1):
        with ProcessPoolExecutor(min(workers, len(pending)), get_context("spawn")) as pool:
            try:
                futures = {pool.submit(work, item): place for place, item in pending.items()}
                for future in as_completed(futures):
                    answer = future.result()
                    yield pending.pop(futures[future]), answer
            except BrokenProcessPool:  # killed: what it had not answered goes to a new pool
                continue
            finally:
                pool.shutdown(cancel_futures=True)
        return
    raise PvaError("fleet", LOST, "look whether memory is enough")


def _by_dask(
    work: Callable[[Item], Answer], items: Sequence[Item], client: Client
) -> Iterator[tuple[Item, Answer]]:
    from distributed import KilledWorker
    from distributed import as_completed as as_answered

    futures = {}
    for item in items:
        future = client.submit(work, item, retries=RETRIES, pure=False)
        futures[future.key] = (future, item)
    for future in as_answered([future for future, _ in futures.values()]):
        try:
            answer = future.result()
        except KilledWorker:
            raise PvaError("fleet", LOST, "look whether memory is enough") from None
        _, item = futures.pop(future.key)
        yield item, answer
