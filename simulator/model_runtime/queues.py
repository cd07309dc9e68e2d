"""Queues between a program's streams and the user's arrays, one an anchor."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from threading import Condition
from typing import TypeVar

import numpy as np

from simulator.graph.errors import PoplarError
from simulator.graph.types import Array
from simulator.model_runtime.memory import DataDesc
from simulator.popef.structures import Anchor


class _Queue:
    """Arrays that wait for their transfers."""

    def __init__(self, anchor: Anchor, timeout: float | None) -> None:
        self.desc = DataDesc.of(anchor)
        self._timeout = timeout
        self._waiting: deque[Array] = deque()
        self._changed = Condition()

    def __len__(self) -> int:
        return len(self._waiting)

    def _add(self, array: Array) -> None:
        with self._changed:
            self._waiting.append(array)
            self._changed.notify()

    def _take(self) -> Array | None:
        """Return the next array; None when none came in time."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._waiting, self._timeout):
                return None
            return self._waiting.popleft()


class InputQueue(_Queue):
    """Arrays that go to the device; where none comes in time it gets zeros.

    >>> from simulator.popef import TensorInfo
    >>> anchor = Anchor(name="x", tensorInfo=TensorInfo(shape=[2]))
    >>> queue = InputQueue(anchor, timeout=0)
    >>> queue.enqueue(np.float32([1, 2]))
    >>> queue.next().tolist(), queue.next().tolist()
    ([1.0, 2.0], [0.0, 0.0])
    """

    def enqueue(self, array: Array) -> None:
        """Let the next transfer that lacks one take this array; raises PoplarError.

        >>> from simulator.popef import TensorInfo
        >>> anchor = Anchor(name="x", tensorInfo=TensorInfo(shape=[2]))
        >>> queue = InputQueue(anchor, timeout=0)
        >>> queue.enqueue(np.float32([1, 2]))
        >>> len(queue)
        1
        """
        self._add(self.desc.checked(array, "input"))

    def next(self) -> Array:
        """Return what the next transfer takes.

        >>> from simulator.popef import TensorInfo
        >>> anchor = Anchor(name="x", tensorInfo=TensorInfo(shape=[2]))
        >>> InputQueue(anchor, timeout=0).next().tolist()
        [0.0, 0.0]
        """
        array = self._take()
        return np.zeros(self.desc.shape, self.desc.dtype) if array is None else array


class OutputQueue(_Queue):
    """Arrays that are filled by the device; where none waits the values are lost.

    >>> from simulator.popef import TensorInfo
    >>> anchor = Anchor(name="x", tensorInfo=TensorInfo(shape=[2]))
    >>> queue, out = OutputQueue(anchor, timeout=0), np.zeros(2, np.float32)
    >>> queue.enqueue(out)
    >>> queue.put(np.float32([1, 2]))
    >>> out.tolist()
    [1.0, 2.0]
    """

    def enqueue(self, array: Array) -> None:
        """Let the next transfer that lacks one fill this array; raises PoplarError.

        >>> from simulator.popef import TensorInfo
        >>> anchor = Anchor(name="x", tensorInfo=TensorInfo(shape=[2]))
        >>> queue, out = OutputQueue(anchor, timeout=0), np.zeros(2, np.float32)
        >>> queue.enqueue(out)
        >>> len(queue)
        1
        """
        if self.desc.checked(array, "output") is not array or not array.flags.writeable:
            raise PoplarError(f"output {self.desc.name!r}: an array to be filled is needed")
        self._add(array)

    def put(self, values: Array) -> None:
        """Fill the next array.

        >>> from simulator.popef import TensorInfo
        >>> anchor = Anchor(name="x", tensorInfo=TensorInfo(shape=[2]))
        >>> queue, out = OutputQueue(anchor, timeout=0), np.zeros(2, np.float32)
        >>> queue.enqueue(out)
        >>> queue.put(np.float32([1, 2]))
        >>> out.tolist()
        [1.0, 2.0]
        """
        array = self._take()
        if array is not None:
            array[...] = values


Q = TypeVar("Q", InputQueue, OutputQueue)


class QueueManager:
    """The queues of a session, by the names of its anchors: made by Session.createQueueManager.

    `timeout_ns` is how long a transfer waits for an array.

    >>> from simulator.popef import TensorInfo
    >>> anchor = Anchor(name="x", tensorInfo=TensorInfo(shape=[2]))
    >>> manager = QueueManager()
    >>> give = manager.input_of(anchor)
    >>> manager.inputQueue("x").enqueue(np.float32([1, 2]))
    >>> give().tolist()
    [1.0, 2.0]
    """

    def __init__(self, timeout_ns: int = 0) -> None:
        self._timeout = timeout_ns / 1e9
        self.inputs: dict[str, InputQueue] = {}
        self.outputs: dict[str, OutputQueue] = {}

    def inputQueue(self, name: str) -> InputQueue:
        """Return the queue of an input; raises PoplarError.

        >>> from simulator.popef import TensorInfo
        >>> anchor = Anchor(name="x", tensorInfo=TensorInfo(shape=[2]))
        >>> manager = QueueManager()
        >>> give = manager.input_of(anchor)
        >>> manager.inputQueue("x").enqueue(np.float32([1, 2]))
        >>> len(manager.inputQueue("x"))
        1
        """
        return _queue_named(self.inputs, name, "input")

    def outputQueue(self, name: str) -> OutputQueue:
        """Return the queue of an output; raises PoplarError.

        >>> from simulator.popef import TensorInfo
        >>> anchor = Anchor(name="x", tensorInfo=TensorInfo(shape=[2]))
        >>> manager = QueueManager()
        >>> take, out = manager.output_of(anchor), np.zeros(2, np.float32)
        >>> manager.outputQueue("x").enqueue(out)
        >>> take(np.float32([1, 2]))
        >>> out.tolist()
        [1.0, 2.0]
        """
        return _queue_named(self.outputs, name, "output")

    def input_of(self, anchor: Anchor) -> Callable[[], Array]:
        """Make the queue of an input; return what gives its values.

        >>> from simulator.popef import TensorInfo
        >>> anchor = Anchor(name="x", tensorInfo=TensorInfo(shape=[2]))
        >>> manager = QueueManager()
        >>> give = manager.input_of(anchor)
        >>> manager.inputQueue("x").enqueue(np.float32([1, 2]))
        >>> give().tolist()
        [1.0, 2.0]
        """
        queue = self.inputs[anchor.name()] = InputQueue(anchor, self._timeout)
        return queue.next

    def output_of(self, anchor: Anchor) -> Callable[[Array], None]:
        """Make the queue of an output; return what takes its values.

        >>> from simulator.popef import TensorInfo
        >>> anchor = Anchor(name="x", tensorInfo=TensorInfo(shape=[2]))
        >>> manager = QueueManager()
        >>> take, out = manager.output_of(anchor), np.zeros(2, np.float32)
        >>> manager.outputQueue("x").enqueue(out)
        >>> take(np.float32([1, 2]))
        >>> out.tolist()
        [1.0, 2.0]
        """
        queue = self.outputs[anchor.name()] = OutputQueue(anchor, self._timeout)
        return queue.put


def _queue_named(queues: Mapping[str, Q], name: str, kind: str) -> Q:
    if name not in queues:
        names = ", ".join(queues) or "none"
        raise PoplarError(f"QueueManager: no {kind} {name!r}; there are {names}")
    return queues[name]
