"""What joins the device to memory outside it: data streams, remote buffers, direct host accesses.

Source: programming guide, 2.6 "Data streams and remote buffers".
"""

from __future__ import annotations

import difflib
from collections.abc import Container, Mapping
from dataclasses import dataclass
from enum import Enum
from operator import index
from typing import Literal

from simulator.graph.errors import HostAccessError, PoplarError
from simulator.graph.tensors.arena import Arena
from simulator.graph.types import Type, checked_type

MEGABYTE = 1 << 20
ROW_LIMIT = 256 * MEGABYTE  # bytes of one transfer of a remote buffer
# Bytes of remote buffers an IPU may have unless target.extendedMemory is true: 16 GB, of which
# 256 MB stay with the data streams.
REMOTE_LIMIT = (16 << 30) - 256 * MEGABYTE

Direction = Literal["in", "out"]
_OPTION_DEFAULTS = {"bufferingDepth": 1, "splitLimit": 0}


class ReplicatedStreamMode(Enum):
    """What the replicas of a graph get from one stream to the device."""

    REPLICATE = "replicate"  # each replica has data of its own
    BROADCAST = "broadcast"  # all replicas get the same data


@dataclass(frozen=True, slots=True)
class Stream:
    """A first-in first-out channel; direction "in" is host to device.

    A transfer of one replica has `elements` values. `replicas` counts the copies that a replicated
    view of a graph adds: one Copy then moves `total` values, one replica's after another's.
    `splitLimit` is in bytes, 0 when not given.

    >>> from simulator.trial import Trial
    >>> from simulator.graph.types import FLOAT
    >>> stream = Trial().graph.addHostToDeviceFIFO("x", FLOAT, 4)
    >>> stream.numElements()
    4
    """

    id: int
    handle: str
    dtype: Type
    elements: int
    direction: Direction
    replicated_mode: ReplicatedStreamMode = ReplicatedStreamMode.REPLICATE
    replicas: int = 1
    bufferingDepth: int = 1
    splitLimit: int = 0

    @property
    def total(self) -> int:
        """Count the values that one Copy moves.

        >>> from simulator.trial import Trial
        >>> from simulator.graph.types import FLOAT
        >>> stream = Trial().graph.addHostToDeviceFIFO("x", FLOAT, 4)
        >>> stream.total
        4
        """
        return self.elements * self.replicas

    @property
    def options(self) -> dict[str, int]:
        """Return the options by their names; those that were not given are left out.

        >>> from simulator.trial import Trial
        >>> from simulator.graph.types import FLOAT
        >>> stream = Trial().graph.addHostToDeviceFIFO("x", FLOAT, 4)
        >>> stream.options
        {'bufferingDepth': 1}
        """
        values = {"bufferingDepth": self.bufferingDepth, "splitLimit": self.splitLimit}
        return {name: value for name, value in values.items() if value}

    # Poplar's getters, under its names.
    def numElements(self) -> int:
        """Count the values of a transfer of one replica.

        >>> from simulator.trial import Trial
        >>> from simulator.graph.types import FLOAT
        >>> stream = Trial().graph.addHostToDeviceFIFO("x", FLOAT, 4)
        >>> stream.numElements()
        4
        """
        return self.elements

    def elementType(self) -> Type:
        """Return the type of the values.

        >>> from simulator.trial import Trial
        >>> from simulator.graph.types import FLOAT
        >>> stream = Trial().graph.addHostToDeviceFIFO("x", FLOAT, 4)
        >>> stream.elementType().name
        'float'
        """
        return self.dtype

    def replicatedMode(self) -> ReplicatedStreamMode:
        """Return what the replicas get.

        >>> from simulator.trial import Trial
        >>> from simulator.graph.types import FLOAT
        >>> stream = Trial().graph.addHostToDeviceFIFO("x", FLOAT, 4)
        >>> stream.replicatedMode().name
        'REPLICATE'
        """
        return self.replicated_mode

    def replicationFactor(self) -> int:
        """Count the replicas that the stream was added for.

        >>> from simulator.trial import Trial
        >>> from simulator.graph.types import FLOAT
        >>> stream = Trial().graph.addHostToDeviceFIFO("x", FLOAT, 4)
        >>> stream.replicationFactor()
        1
        """
        return self.replicas


DataStream = Stream


@dataclass(frozen=True, slots=True)
class RemoteBuffer:
    """Memory outside the IPU: `repeats` rows of `num_elements` values, a row a transfer.

    `replicas` counts the copies that a replicated view of a graph adds, as for a stream.

    >>> from simulator.trial import Trial
    >>> from simulator.graph.types import FLOAT
    >>> buffer = Trial().graph.addRemoteBuffer("b", FLOAT, 4, 3)  # three rows of 4
    >>> buffer.numElements(), buffer.getRepeats()
    (4, 3)
    """

    id: int
    handle: str
    dtype: Type
    num_elements: int
    repeats: int
    rearrange_on_host: bool = False
    optimise_memory: bool = False
    replicas: int = 1

    @property
    def row_bytes(self) -> int:
        """Return the bytes of a row.

        >>> from simulator.trial import Trial
        >>> from simulator.graph.types import FLOAT
        >>> buffer = Trial().graph.addRemoteBuffer("b", FLOAT, 4, 3)  # three rows of 4
        >>> buffer.row_bytes
        16
        """
        return self.num_elements * self.dtype.size

    @property
    def bytes(self) -> int:
        """Return the bytes of the rows of one replica.

        >>> from simulator.trial import Trial
        >>> from simulator.graph.types import FLOAT
        >>> buffer = Trial().graph.addRemoteBuffer("b", FLOAT, 4, 3)  # three rows of 4
        >>> buffer.bytes
        48
        """
        return self.row_bytes * self.repeats

    # Poplar's getters, under its names.
    def getNumElements(self) -> int:
        """Count the values of a row.

        >>> from simulator.trial import Trial
        >>> from simulator.graph.types import FLOAT
        >>> buffer = Trial().graph.addRemoteBuffer("b", FLOAT, 4, 3)  # three rows of 4
        >>> buffer.getNumElements()
        4
        """
        return self.num_elements

    numElements = getNumElements

    def getRepeats(self) -> int:
        """Count the rows.

        >>> from simulator.trial import Trial
        >>> from simulator.graph.types import FLOAT
        >>> buffer = Trial().graph.addRemoteBuffer("b", FLOAT, 4, 3)  # three rows of 4
        >>> buffer.getRepeats()
        3
        """
        return self.repeats

    def elementType(self) -> Type:
        """Return the type of the values.

        >>> from simulator.trial import Trial
        >>> from simulator.graph.types import FLOAT
        >>> buffer = Trial().graph.addRemoteBuffer("b", FLOAT, 4, 3)  # three rows of 4
        >>> buffer.elementType().name
        'float'
        """
        return self.dtype

    def isRearrangeOnHost(self) -> bool:
        """Return whether the host puts values in the order of memory.

        >>> from simulator.trial import Trial
        >>> from simulator.graph.types import FLOAT
        >>> buffer = Trial().graph.addRemoteBuffer("b", FLOAT, 4, 3)  # three rows of 4
        >>> buffer.isRearrangeOnHost()
        False
        """
        return self.rearrange_on_host

    def isOptimisedForMemory(self) -> bool:
        """Return whether little memory is wanted rather than speed.

        >>> from simulator.trial import Trial
        >>> from simulator.graph.types import FLOAT
        >>> buffer = Trial().graph.addRemoteBuffer("b", FLOAT, 4, 3)  # three rows of 4
        >>> buffer.isOptimisedForMemory()
        False
        """
        return self.optimise_memory


def new_stream(
    arena: Arena,
    streams: list[Stream],
    direction: Direction,
    handle: str,
    dtype: Type,
    elements: int,
    mode: ReplicatedStreamMode = ReplicatedStreamMode.REPLICATE,
    options: Mapping[str, object] | None = None,
) -> Stream:
    """Check a stream and add it; raises HostAccessError naming it and what is wrong.

    A stream to the device and one to the host may share a handle. Options, as numbers or texts:
    `bufferingDepth`, how many transfers the host may prepare ahead (1), and `splitLimit`, the bytes
    above which a copy is split (0 and more than the target's limit: at that).
    """
    handles = [stream.handle for stream in streams if stream.direction == direction]
    subject = checked_handle("stream", handle, handles)
    checked_type(dtype, subject)
    if not isinstance(mode, ReplicatedStreamMode):
        modes = " or ".join(f"ReplicatedStreamMode.{one.name}" for one in ReplicatedStreamMode)
        raise HostAccessError(f"{subject}: mode is {mode!r}; {modes} is needed")
    values = _stream_options(
        subject, options or {}, {"bufferingDepth": 1, "splitLimit": dtype.size}
    )
    values["splitLimit"] = min(values["splitLimit"], arena.target.stream_copy_limit)
    stream = Stream(
        len(streams),
        handle,
        dtype,
        _count(subject, "elements", elements),
        direction,
        mode,
        arena.window.replicas,
        **values,
    )
    streams.append(stream)
    return stream


def new_remote_buffer(
    arena: Arena,
    buffers: list[RemoteBuffer],
    handle: str,
    dtype: Type,
    num_elements: int,
    repeats: int = 1,
    rearrange_on_host: bool = False,
    optimise_memory: bool = False,
) -> RemoteBuffer:
    """Check a remote buffer and add it; raises HostAccessError naming it and what is wrong."""
    subject = checked_handle("remote buffer", handle, [buffer.handle for buffer in buffers])
    buffer = RemoteBuffer(
        len(buffers),
        handle,
        checked_type(dtype, subject),
        _count(subject, "numElements", num_elements),
        _count(subject, "repeats", repeats),
        bool(rearrange_on_host),
        bool(optimise_memory),
        arena.window.replicas,
    )
    if buffer.row_bytes > ROW_LIMIT:
        raise HostAccessError(
            f"{subject}: a row of {buffer.num_elements:,} x {dtype} is {buffer.row_bytes:,} bytes; "
            f"a transfer is at most {ROW_LIMIT:,}; use shorter rows and more repeats"
        )
    buffers.append(buffer)
    return buffer


def check_remote_buffers(
    buffers: list[RemoteBuffer],
    extended_memory: bool,
    ipus: Mapping[tuple[int, int], int] | None = None,
) -> None:
    """Raise PoplarError when the remote buffers of one IPU take more than it may have.

    `ipus` tells the IPU with which a buffer (its id and the replica of a view) is copied; without
    a copy it counts as one of IPU 0.
    """
    total: dict[int, int] = {}
    copies = [(buffer, replica) for buffer in buffers for replica in range(buffer.replicas)]
    for buffer, replica in copies if not extended_memory else ():
        ipu = (ipus or {}).get((buffer.id, replica), 0)
        total[ipu] = total.get(ipu, 0) + buffer.bytes
        if total[ipu] > REMOTE_LIMIT:
            raise PoplarError(
                f"remote buffer {buffer.handle!r}: with it IPU {ipu} has {total[ipu]:,} bytes of "
                f"remote buffers; without the engine option target.extendedMemory it may have "
                f"{REMOTE_LIMIT:,}"
            )


def checked_handle(kind: str, handle: object, handles: Container[str]) -> str:
    """Return how messages name a new stream or buffer; its handle must be a text not used yet."""
    if not isinstance(handle, str) or not handle:
        raise HostAccessError(f"{kind} {handle!r}: a name is needed")
    if handle in handles:
        raise HostAccessError(f"{kind} {handle!r}: there is one of this name already")
    return f"{kind} {handle!r}"


def _count(subject: str, name: str, value: object) -> int:
    try:
        number = index(value)  # type: ignore[arg-type]
    except TypeError:
        raise HostAccessError(f"{subject}: {name} is {value!r}; a number is needed") from None
    if number < 1:
        raise HostAccessError(f"{subject}: {number} {name}; at least 1 is needed")
    return number


def _stream_options(
    subject: str, options: Mapping[str, object], lowest: Mapping[str, int]
) -> dict[str, int]:
    """Return the options of a stream: each its default or a number from its lowest on."""
    values = dict(_OPTION_DEFAULTS)
    for name, value in options.items():
        if name not in values:
            near = difflib.get_close_matches(str(name), values, n=1, cutoff=0.4)
            hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(values)}"
            raise HostAccessError(f"{subject}: no option {name!r}; {hint}")
        number = _option_number(value)
        if number is None or (number < lowest[name] and number != values[name]):
            raise HostAccessError(
                f"{subject}: {name} is {value!r}; a number from {lowest[name]} on is needed"
            )
        values[name] = number
    return values


def _option_number(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    try:
        return int(value) if isinstance(value, str) else index(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
