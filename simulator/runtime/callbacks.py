"""What a program calls back for each transfer of a stream, and what it may give.

Source: programming guide, 2.6.1 "Data streams" and 2.6.2 "Optimising host data transfers".
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from simulator.graph.errors import HostAccessError, PoplarError
from simulator.graph.host.streams import Stream
from simulator.graph.types import Array
from simulator.runtime.host_data import host_array


class StreamCallback(ABC):
    """Fills or takes the buffer of each transfer, an array of the stream's type.

    class Numbers(StreamCallback):
        def fetch(self, buffer):
            buffer[:] = 1

    >>> class Ones(StreamCallback):
    ...     def fetch(self, buffer):
    ...         buffer[:] = 1
    >>> buffer = np.zeros(2)
    >>> Ones().fetch(buffer)
    >>> buffer.tolist()
    [1.0, 1.0]
    """

    class Result(Enum):
        """What `prefetch` found."""

        Success = "Success"
        NotAvailable = "NotAvailable"

    @abstractmethod
    def fetch(self, buffer: Array) -> object:
        """Fill the buffer of a transfer to the device, or take that of one from the device.

        >>> class Ones(StreamCallback):
        ...     def fetch(self, buffer):
        ...         buffer[:] = 1
        >>> buffer = np.zeros(2)
        >>> Ones().fetch(buffer)
        >>> buffer.tolist()
        [1.0, 1.0]
        """

    def prefetch(self, buffer: Array) -> Result:
        """Fill the buffer of a later transfer, or say that there is nothing yet.

        >>> class Ones(StreamCallback):
        ...     def fetch(self, buffer):
        ...         buffer[:] = 1
        >>> Ones().prefetch(np.zeros(2)).name
        'NotAvailable'
        """
        return Result.NotAvailable

    def complete(self) -> None:
        """Learn that a transfer is over and its buffer free.

        >>> class Ones(StreamCallback):
        ...     def fetch(self, buffer):
        ...         buffer[:] = 1
        >>> Ones().complete()
        """
        return

    def invalidatePrefetched(self) -> None:
        """Learn that what was prefetched is thrown away and has to be given again.

        >>> class Ones(StreamCallback):
        ...     def fetch(self, buffer):
        ...         buffer[:] = 1
        >>> Ones().invalidatePrefetched()
        """
        return


Result = StreamCallback.Result


def _nothing() -> None:
    return


@dataclass(slots=True, eq=False)
class End:
    """What a stream is connected to, and the buffers that were filled ahead."""

    fetch: Callable[[Array], object]
    prefetch: Callable[[Array], object] | None = None
    complete: Callable[[], object] = _nothing
    invalidate: Callable[[], object] = _nothing
    ahead: deque[Array] = field(default_factory=deque)


def callback_end(stream: Stream, callback: object) -> End:
    """Make the end of a function or a StreamCallback; HostAccessError for anything else."""
    fetch = getattr(callback, "fetch", None)
    if callable(fetch):
        return End(
            fetch,
            getattr(callback, "prefetch", None),
            getattr(callback, "complete", _nothing),
            getattr(callback, "invalidatePrefetched", _nothing),
        )
    if callable(callback):
        return End(callback)
    raise HostAccessError(
        f"stream {stream.handle!r}: {callback!r} cannot be called; a function or a StreamCallback "
        "is needed"
    )


def called(stream: Stream, function: Callable[..., object], *arguments: Array) -> object:
    """Call what a program gave; what it raises becomes the cause of a PoplarError."""
    try:
        return function(*arguments)
    except Exception as error:
        first = str(error).partition("\n")[0]
        raise PoplarError(
            f"stream {stream.handle!r}: its callback raised {type(error).__name__}: {first}"
        ) from error


def fill_ahead(stream: Stream, end: End, prefetch: Callable[[Array], object]) -> None:
    """Fill as many buffers as the stream has, until there is nothing to fill them with."""
    while len(end.ahead) < stream.bufferingDepth:
        buffer = np.zeros(stream.elements, dtype=stream.dtype.numpy)
        result = called(stream, prefetch, buffer)
        if result is Result.NotAvailable:
            return
        if result is not Result.Success:
            raise HostAccessError(
                f"stream {stream.handle!r}: prefetch gave {result!r}; Result.Success or "
                "Result.NotAvailable is needed"
            )
        end.ahead.append(buffer)


def fill(stream: Stream, buffer: Array, answer: object) -> None:
    """Take what a callback gives back; raises HostAccessError when it is too little or too much.

    Nothing or True says that the buffer is filled, a number how many bytes of it (as `readinto`
    gives); anything else holds the values.
    """
    subject = f"stream {stream.handle!r}"
    if answer is None or answer is True or answer is Result.Success:
        return
    if answer is False or answer is Result.NotAvailable:
        answer = ()
    if isinstance(answer, int | np.integer):
        if answer != buffer.nbytes:
            raise HostAccessError(
                f"{subject}: its callback gave {answer} bytes; {buffer.nbytes} are needed"
            )
        return
    values = _values(stream, answer, subject)
    if values.size != buffer.size:
        raise HostAccessError(
            f"{subject}: its callback gave {values.size} elements; {buffer.size} are needed"
        )
    buffer[:] = values


def _values(stream: Stream, answer: object, subject: str) -> Array:
    if isinstance(answer, list | tuple | float):
        try:
            return np.asarray(answer, dtype=stream.dtype.numpy).reshape(-1)
        except (TypeError, ValueError, OverflowError) as error:
            raise HostAccessError(
                f"{subject}: its callback gave no {stream.dtype}: {error}"
            ) from None
    data = np.ascontiguousarray(answer) if isinstance(answer, np.ndarray) else answer
    return host_array(data, stream.dtype, f"{subject}: its callback")
