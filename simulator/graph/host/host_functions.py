"""Functions of the host that a program calls: streams carry what they take and what they give."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from simulator.graph.errors import PoplarError
from simulator.graph.host.streams import Stream, checked_handle
from simulator.graph.types import Type


class HostFunctionArgument(NamedTuple):
    """What a function of the host takes or gives: so many values of a type.

    >>> from simulator.graph.types import FLOAT
    >>> HostFunctionArgument(FLOAT, 4).numElements
    4
    """

    type: Type
    numElements: int


@dataclass(frozen=True, slots=True, eq=False)
class HostFunction:
    """A function of the host; `Call(function, inputs, outputs)` calls it with tensors.

    >>> from simulator.graph.types import FLOAT
    >>> from simulator.trial import Trial
    >>> pair = [HostFunctionArgument(FLOAT, 2)]
    >>> function = Trial().graph.addHostFunction("double", pair, pair)
    >>> function.inputs[0].numElements()
    2
    """

    handle: str
    inputs: tuple[Stream, ...]
    outputs: tuple[Stream, ...]


def checked_function(
    handle: str,
    handles: Container[str],
    inputs: Sequence[HostFunctionArgument | tuple[Type, int]],
    outputs: Sequence[HostFunctionArgument | tuple[Type, int]],
) -> str:
    """Return how messages name a new function; raises HostAccessError for what is wrong with it."""
    subject = checked_handle("host function", handle, handles)
    if not inputs and not outputs:
        raise PoplarError(f"{subject}: neither inputs nor outputs; what would call it?")
    for argument in (*inputs, *outputs):
        if not isinstance(argument, tuple | list) or len(argument) != 2:
            raise PoplarError(f"{subject}: argument {argument!r}; a type and a number are needed")
    return subject
