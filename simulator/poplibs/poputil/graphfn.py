"""Functions on tensors that are built once and applied to several (poputil::graphfn).

    halve = graphfn.TensorFunction(
        graph, [graphfn.input(t)], lambda args, prog: popops.mul(graph, args[0], 0.5, prog), False
    )
    first, second = halve([a], prog), halve([b], prog)

A function has tensors of its own; a call copies its arguments there, runs it, and copies results
back. Unless `inlined`, every call runs the one program.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

from simulator.graph.arguments import refuse_in
from simulator.graph.debug import DebugName
from simulator.graph.errors import poplibs_error
from simulator.graph.graph import Graph
from simulator.graph.program import Call, Copy, Program
from simulator.graph.program import Sequence as ProgramSequence
from simulator.graph.tensors.tensor import Tensor
from simulator.logging import library_call
from simulator.poplibs.poputil.copies import duplicate

__all__ = [
    "ArgSig",
    "ArgType",
    "ProgramFunction",
    "TensorFunction",
    "VoidFunction",
    "created",
    "inout",
    "input",
    "output",
]

Arguments: TypeAlias = list[Tensor | None]
"""The tensors of a call or of the function; None or `Tensor()` for one that the function makes."""


class ArgType(Enum):
    """Which way an argument goes."""

    InputArg = "input"
    OutputArg = "output"
    InOutArg = "inout"
    CreatedArg = "created"


@dataclass(frozen=True, slots=True)
class ArgSig:
    """An argument, and a tensor that it is like; there is none for one that is created."""

    type: ArgType
    similarTensor: Tensor | None
    debugName: str = ""


@library_call("POPUTIL")
def input(similar: Tensor, debugName: str = "") -> ArgSig:
    """Declare an argument that the function reads."""
    return ArgSig(ArgType.InputArg, similar, debugName)


@library_call("POPUTIL")
def output(similar: Tensor, debugName: str = "") -> ArgSig:
    """Declare an argument that the function writes."""
    return ArgSig(ArgType.OutputArg, similar, debugName)


@library_call("POPUTIL")
def inout(similar: Tensor, debugName: str = "") -> ArgSig:
    """Declare an argument that the function reads and writes."""
    return ArgSig(ArgType.InOutArg, similar, debugName)


@library_call("POPUTIL")
def created(debugName: str = "") -> ArgSig:
    """Declare a result that the function makes: it puts it in its place in the list."""
    return ArgSig(ArgType.CreatedArg, None, debugName)


@refuse_in
class VoidFunction:
    """A function that changes its arguments."""

    def __init__(
        self,
        graph: Graph,
        sig: Sequence[ArgSig],
        f: Callable[..., object],
        inlined: bool = True,
        debugContext: str = "",
    ) -> None:
        self._graph, self._signature = graph, tuple(sig)
        self._inner: Arguments = [
            None if one.similarTensor is None else graph.clone(one.similarTensor, one.debugName)
            for one in self._signature
        ]
        body = ProgramSequence()
        _named(f, 2)(self._inner, body, DebugName(debugContext))
        for place, tensor in enumerate(self._inner):
            if not isinstance(tensor, Tensor):
                raise poplibs_error(f"graphfn: argument {place} is {tensor!r} after the function")
        self._program: Program = body if inlined else Call(graph.addFunction(body))

    def __call__(self, args: Arguments, seq: ProgramSequence, debugContext: str = "") -> None:
        """Add a call; what is created takes its place in the list of arguments."""
        if len(args) != len(self._signature):
            raise poplibs_error(
                f"graphfn: {len(args)} arguments; the function takes {len(self._signature)}"
            )
        for one, inner, argument in zip(self._signature, self._inner, args, strict=True):
            if one.type in (ArgType.InputArg, ArgType.InOutArg):
                seq.add(_copied(argument, inner, one))
        seq.add(self._program)
        for place, (one, inner) in enumerate(zip(self._signature, self._inner, strict=True)):
            if one.type is ArgType.CreatedArg and inner is not None:
                name = "/".join(part for part in (debugContext, one.debugName) if part)
                args[place] = duplicate(self._graph, inner, seq, name)
            elif one.type in (ArgType.OutputArg, ArgType.InOutArg):
                seq.add(_copied(inner, args[place], one))


def _named(f: Callable[..., Any], arguments: int) -> Callable[..., Any]:
    """Return a function that takes a debug name behind its arguments; PopLibs' may, or may not."""
    try:
        inspect.signature(f).bind(*range(arguments + 1))
    except TypeError:
        return lambda *given: f(*given[:arguments])
    return f


def _copied(source: Tensor | None, destination: Tensor | None, one: ArgSig) -> Copy:
    if source is None or destination is None or source.shape != destination.shape:
        raise poplibs_error(
            f"graphfn: argument {one.debugName!r}: {source!r} does not fit {destination!r}"
        )
    return Copy(source, destination, name=one.debugName)


@refuse_in
class ProgramFunction:
    """A function that gives its program; a call gives the program of the call."""

    def __init__(
        self,
        graph: Graph,
        sig: Sequence[ArgSig],
        f: Callable[..., Program],
        inlined: bool = True,
        debugContext: str = "",
    ) -> None:
        body = _named(f, 1)
        self._function = VoidFunction(
            graph, sig, lambda args, seq, name: seq.add(body(args, name)), inlined, debugContext
        )

    def __call__(self, args: Arguments, debugContext: str = "") -> Program:
        """Return the program of a call."""
        prog = ProgramSequence()
        self._function(args, prog, debugContext)
        return prog


@refuse_in
class TensorFunction:
    """A function that gives a tensor."""

    def __init__(
        self,
        graph: Graph,
        sig: Sequence[ArgSig],
        f: Callable[..., Tensor],
        inlined: bool = True,
        debugContext: str = "",
    ) -> None:
        body = _named(f, 2)

        def with_result(args: Arguments, seq: ProgramSequence, name: str) -> None:
            args[-1] = body(args[:-1], seq, name)

        self._function = VoidFunction(graph, [*sig, created()], with_result, inlined, debugContext)

    def __call__(self, args: Arguments, prog: ProgramSequence, debugContext: str = "") -> Tensor:
        """Add a call and give a copy of its result."""
        with_result = [*args, None]
        self._function(with_result, prog, debugContext)
        result = with_result.pop()
        args[:] = with_result
        if result is None:
            raise AssertionError("the call has put its result there")
        return result
