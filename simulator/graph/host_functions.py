"""Functions of the host that a program calls: streams carry what they take and what they give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from simulator.graph.errors import PoplarError
from simulator.graph.streams import Stream, checked_handle
from simulator.graph.tensor import Tensor
from simulator.graph.types import Type

if TYPE_CHECKING:
    from simulator.graph.graph import Graph
    from simulator.graph.program import Program


class HostFunctionArgument(NamedTuple):
    """What a function of the host takes or gives: so many values of a type."""

    type: Type
    numElements: int


@dataclass(frozen=True, slots=True, eq=False)
class HostFunction:
    """A function of the host; `Call(function, inputs, outputs)` calls it with tensors."""

    handle: str
    inputs: tuple[Stream, ...]
    outputs: tuple[Stream, ...]

    def call(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor], name: str = "") -> Program:
        """Return the program that sends the inputs, has the function called, and takes its outputs.

        Raises PoplarError for tensors of another number, type or size than the function has.
        """
        from simulator.graph.program import Copy
        from simulator.graph.program import Sequence as InOrder

        for what, given, needed in (
            ("inputs", inputs, self.inputs),
            ("outputs", outputs, self.outputs),
        ):
            if len(given) != len(needed):
                raise PoplarError(
                    f"Call of host function {self.handle!r}: {len(given)} {what}; it has "
                    f"{len(needed)}"
                )
        sent = [Copy(tensor, end) for tensor, end in zip(inputs, self.inputs, strict=True)]
        taken = [Copy(end, tensor) for end, tensor in zip(self.outputs, outputs, strict=True)]
        return InOrder([*sent, *taken], name=name or self.handle)


def new_host_function(
    graph: Graph,
    handle: str,
    inputs: Sequence[HostFunctionArgument | tuple[Type, int]],
    outputs: Sequence[HostFunctionArgument | tuple[Type, int]],
) -> HostFunction:
    """Add the streams of a function; raises HostAccessError naming it and what is wrong."""
    what = checked_handle("host function", handle, graph.host_functions)
    if not inputs and not outputs:
        raise PoplarError(f"{what}: neither inputs nor outputs; what would call it?")
    for argument in (*inputs, *outputs):
        if not isinstance(argument, tuple | list) or len(argument) != 2:
            raise PoplarError(f"{what}: argument {argument!r}; a type and a number are needed")
    function = HostFunction(
        handle,
        tuple(
            graph.addDeviceToHostFIFO(f"{handle}/input{number}", *argument)
            for number, argument in enumerate(inputs)
        ),
        tuple(
            graph.addHostToDeviceFIFO(f"{handle}/output{number}", *argument)
            for number, argument in enumerate(outputs)
        ),
    )
    graph.host_functions[handle] = function
    return function
