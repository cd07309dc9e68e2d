"""DataLoader: batches as large as a call of a module takes, prepared beside it or not."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from typing import Any

import torch
from torch.utils import _pytree as trees
from torch.utils.data import IterableDataset

from simulator.poptorch.enums import DataLoaderMode
from simulator.poptorch.errors import Error
from simulator.poptorch.options import Options
from simulator.poptorch.profiling import Channel

AHEAD = 3  # batches that are prepared ahead, unless async_options say otherwise
# What a thread prepares: a batch, or END, and what was raised.
Item = tuple[object, BaseException | None]
BUFFER, END = "buffer_size", object()


class DataLoader(torch.utils.data.DataLoader):
    """Batches of a data set, each of batch_size x deviceIterations x replicas x micro-batches.

    `mode` is Sync, Async or AsyncRebatched: a thread prepares batches ahead, of the last of
    `rebatched_worker_size` samples a worker. What is left over is dropped, unless `drop_last` is
    false; a call refuses a smaller batch. Tensors of an item become one along a new first size.
    """

    def __init__(
        self,
        options: Options,
        dataset: torch.utils.data.Dataset[object] | Sequence[object],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        num_workers: int = 0,
        drop_last: bool = True,
        persistent_workers: bool | None = None,
        auto_distributed_partitioning: bool = True,
        mode: DataLoaderMode = DataLoaderMode.Sync,
        async_options: dict[str, int] | None = None,
        rebatched_worker_size: int | None = None,
        batch_sampler: torch.utils.data.Sampler[list[int]] | None = None,
        **named: Any,
    ) -> None:
        if mode not in list(DataLoaderMode):
            raise Error(f"DataLoader: mode is {mode!r}; a DataLoaderMode is needed")
        if batch_size is not None and (isinstance(batch_size, bool) or batch_size < 1):
            raise Error(f"DataLoader: batch_size is {batch_size!r}; 1 or more is needed, or None")
        self._combined = (batch_size or 1) * _micro_batches(options)
        self._mode, self._ahead = DataLoaderMode(mode), dict(async_options or {}).get(BUFFER, AHEAD)
        self._channel = Channel("poptorch.DataLoader")
        reads = "__iter__" if isinstance(dataset, IterableDataset) else "__getitem__"
        if not isinstance(dataset, list | tuple):
            Channel("dataset").instrument(dataset, reads)
        self._accessor: AsynchronousDataAccessor | None = None
        size = self._combined
        self._parts, self._drop_rest = 1, drop_last
        if mode == DataLoaderMode.AsyncRebatched and batch_sampler is None:
            size = rebatched_worker_size or min(self._combined, 256)
            if self._combined % size:
                raise Error(
                    f"DataLoader: rebatched_worker_size is {size}; a divisor of the combined batch"
                    f" of {self._combined} is needed"
                )
            self._parts = self._combined // size
        if batch_sampler is not None:
            sampling: dict[str, object] = {"batch_sampler": batch_sampler}
        elif batch_size is None:
            sampling = {"batch_size": None, "shuffle": shuffle}
        else:
            sampling = {"batch_size": size, "shuffle": shuffle, "drop_last": drop_last}
            if auto_distributed_partitioning and options.Distributed.numProcesses > 1:
                sampling |= _own_part(options, dataset, self._combined, bool(shuffle))
        if isinstance(dataset, IterableDataset):
            sampling.pop("shuffle", None)
        workers = {"num_workers": num_workers}
        if num_workers:
            persistence = persistent_workers
            workers["persistent_workers"] = (
                mode != DataLoaderMode.Sync if persistence is None else persistence
            )
        super().__init__(dataset, **sampling, **workers, **named)

    @property
    def combinedBatchSize(self) -> int:
        """Return how many samples a batch has."""
        return self._combined

    @property
    def options(self) -> DataLoaderMode:
        return self._mode

    def __len__(self) -> int:
        """Count the batches."""
        parts = int(super().__len__())
        return parts // self._parts if self._drop_rest else -(-parts // self._parts)

    def __iter__(self) -> Iterator[Any]:
        """Return an iterator of one pass over the data set."""
        if self._mode == DataLoaderMode.Sync:
            return self._traced(super().__iter__())
        if self._accessor is None:
            passes = _Passes(super().__iter__, self._parts, whole=self._drop_rest)
            self._accessor = AsynchronousDataAccessor(passes, self._ahead)
        return self._traced(iter(self._accessor))

    def _traced(self, batches: Iterator[object]) -> Iterator[object]:
        while True:
            with self._channel.event("poptorch.DataLoader.__next__"):
                batch = next(batches, END)
            if batch is END:
                return
            yield batch

    def terminate(self) -> None:
        """End the thread that prepares batches; it begins anew with the next pass."""
        if self._accessor is not None:
            self._accessor.terminate()
            self._accessor = None

    def __enter__(self) -> DataLoader:
        return self

    def __exit__(self, *_: object) -> None:
        self.terminate()


def _own_part(options: Options, dataset: Sized, combined: int, shuffle: bool) -> dict[str, object]:
    """Return what leaves a process its part of a data set: every n-th combined batch.

    Raises Error when data are shuffled without a seed that all processes share.
    """
    if isinstance(dataset, IterableDataset):
        return {}
    seed, process = options.value("randomSeed"), options.Distributed.processId
    if shuffle and seed is None:
        raise Error(
            "DataLoader: shuffle in several processes needs a seed that they share; call"
            " Options.randomSeed"
        )
    count = options.Distributed.numProcesses
    return {
        "shuffle": None,
        "sampler": _Part(len(dataset), combined, process, count, seed, shuffle),
    }


class _Part(torch.utils.data.Sampler[int]):
    """The places of one process of several: batch k of process p is batch k * count + p of all."""

    def __init__(
        self, length: int, combined: int, process: int, count: int, seed: int | None, shuffle: bool
    ) -> None:
        self._whole, self._combined = length // (combined * count), combined
        self._process, self._count = process, count
        self._length, self._shuffle = length, shuffle
        self._generator = torch.Generator().manual_seed(seed or 0)

    def __len__(self) -> int:
        return self._whole * self._combined

    def __iter__(self) -> Iterator[int]:
        every = torch.arange(self._length)
        if self._shuffle:
            every = torch.randperm(self._length, generator=self._generator)
        used = every[: self._whole * self._count * self._combined]
        mine = used.reshape(self._whole, self._count, self._combined)[:, self._process]
        return iter(mine.flatten().tolist())


def _micro_batches(options: object) -> int:
    if not isinstance(options, Options):
        raise Error(
            f"DataLoader: options are {type(options).__name__}; poptorch.Options are needed"
        )
    return options.micro_batches(training=True)


class _Passes:
    """Passes over a loader whose batches are put together of several, all `whole` or not."""

    def __init__(self, begin: Callable[[], Iterator[object]], parts: int, *, whole: bool) -> None:
        self._begin, self._parts, self._whole = begin, parts, whole

    def __iter__(self) -> Iterator[object]:
        batches: list[object] = []
        for batch in self._begin():
            batches.append(batch)
            if len(batches) == self._parts:
                yield _joined(batches)
                batches = []
        if batches and not self._whole:
            yield _joined(batches)


def _joined(batches: list[object]) -> object:
    """Return batches as one, tensor by tensor."""
    if len(batches) == 1:
        return batches[0]
    flat = [trees.tree_flatten(batch) for batch in batches]
    leaves = [
        torch.cat(parts) if isinstance(parts[0], torch.Tensor) else parts[0]
        for parts in zip(*(leaves for leaves, _ in flat), strict=True)
    ]
    return trees.tree_unflatten(leaves, flat[0][1])


class AsynchronousDataAccessor:
    """Batches that a thread takes from an iterable ahead, a pass at a time."""

    def __init__(self, dataset: Iterable[Any], buffer_size: int = AHEAD, **_: object) -> None:
        if isinstance(buffer_size, bool) or not isinstance(buffer_size, int) or buffer_size < 1:
            raise Error(f"{BUFFER} is {buffer_size!r}; a whole number of 1 or more is needed")
        self._dataset: Any = dataset  # of `len` the program knows whether it has one
        self._size = buffer_size
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def __iter__(self) -> Iterator[Any]:
        """Return the batches of a pass; one that goes on is ended."""
        self.terminate()
        self._stop = threading.Event()
        ready: queue.Queue[Item] = queue.Queue(self._size)
        arguments = (self._dataset, ready, self._stop)
        self._thread = threading.Thread(target=_prepare, args=arguments, daemon=True)
        self._thread.start()
        return _taken(ready)

    def __len__(self) -> int:
        return len(self._dataset)

    def terminate(self) -> None:
        """End the thread."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None


def _prepare(batches: Iterable[object], ready: queue.Queue[Item], stop: threading.Event) -> None:
    """Put batches into a queue till they end, and then their end or what was raised."""
    try:
        for batch in batches:
            if not _put(ready, (batch, None), stop):
                return
        _put(ready, (END, None), stop)
    except BaseException as error:  # the thread that takes batches raises it
        _put(ready, (END, error), stop)


def _put(ready: queue.Queue[Item], item: Item, stop: threading.Event) -> bool:
    """Put an item where there is room; tell whether it was wanted."""
    while not stop.is_set():
        try:
            ready.put(item, timeout=0.1)
        except queue.Full:
            continue
        return True
    return False


def _taken(ready: queue.Queue[Item]) -> Iterator[object]:
    while True:
        batch, error = ready.get()
        if error is not None:
            raise error
        if batch is END:
            return
        yield batch
