"""Makes the functions of an operator: with a new result, in place, and with a given output."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ParamSpec, Protocol, TypeVar

from simulator.codelets.operations import BINARY, TERNARY, UNARY
from simulator.graph.graph import Graph
from simulator.graph.program import Sequence
from simulator.graph.tensor import Tensor
from simulator.logging import library_call
from simulator.poplibs.popops.pointwise import apply

_P = ParamSpec("_P")
_R = TypeVar("_R")
_C = TypeVar("_C", covariant=True)


class Unary(Protocol[_C]):
    """A function of one tensor."""

    def __call__(
        self,
        graph: Graph,
        a: Tensor,
        prog: Sequence,
        debugContext: str = "",
        options: Mapping[str, object] | None = None,
    ) -> _C: ...


class Binary(Protocol[_C]):
    """A function of two tensors, or of one and the output."""

    def __call__(
        self,
        graph: Graph,
        a: Tensor | float,
        b: Tensor | float,
        prog: Sequence,
        debugContext: str = "",
        options: Mapping[str, object] | None = None,
    ) -> _C: ...


class UnaryTo(Protocol):
    """A function of one tensor that is given its output."""

    def __call__(
        self,
        graph: Graph,
        a: Tensor,
        out: Tensor,
        prog: Sequence,
        debugContext: str = "",
        options: Mapping[str, object] | None = None,
    ) -> None: ...


class BinaryTo(Protocol):
    """A function of two tensors that is given its output."""

    def __call__(
        self,
        graph: Graph,
        a: Tensor | float,
        b: Tensor | float,
        out: Tensor,
        prog: Sequence,
        debugContext: str = "",
        options: Mapping[str, object] | None = None,
    ) -> None: ...


class Ternary(Protocol[_C]):
    """A function of three tensors."""

    def __call__(
        self,
        graph: Graph,
        a: Tensor | float,
        b: Tensor | float,
        c: Tensor | float,
        prog: Sequence,
        debugContext: str = "",
        options: Mapping[str, object] | None = None,
    ) -> _C: ...


class TernaryTo(Protocol):
    """A function of three tensors that is given its output."""

    def __call__(
        self,
        graph: Graph,
        a: Tensor | float,
        b: Tensor | float,
        c: Tensor | float,
        out: Tensor,
        prog: Sequence,
        debugContext: str = "",
        options: Mapping[str, object] | None = None,
    ) -> None: ...


def _named(function: Callable[_P, _R], name: str, does: str) -> Callable[_P, _R]:
    """Return a function its name in the library, and what is said of it."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = does
    return library_call("POPOPS")(function)


def unary(name: str, kind: str) -> tuple[Unary[Tensor], Unary[None], UnaryTo]:
    """Make the functions of an operator with one operand."""
    entry = UNARY[kind]

    def new(
        graph: Graph,
        a: Tensor,
        prog: Sequence,
        debugContext: str = "",
        options: Mapping[str, object] | None = None,
    ) -> Tensor:
        return apply(graph, entry, [a], prog, debugContext, options=options)

    def in_place(
        graph: Graph,
        a: Tensor,
        prog: Sequence,
        debugContext: str = "",
        options: Mapping[str, object] | None = None,
    ) -> None:
        apply(graph, entry, [a], prog, debugContext, in_place=True, options=options)

    def to(
        graph: Graph,
        a: Tensor,
        out: Tensor,
        prog: Sequence,
        debugContext: str = "",
        options: Mapping[str, object] | None = None,
    ) -> None:
        apply(graph, entry, [a], prog, debugContext, out=out, options=options)

    return (
        _named(new, name, f"Give {kind} of every element."),
        _named(in_place, f"{name}InPlace", f"Replace every element by its {kind}."),
        _named(to, f"{name}WithOutput", f"Write {kind} of every element to `out`."),
    )


def binary(name: str, kind: str) -> tuple[Binary[Tensor], Binary[None], BinaryTo]:
    """Make the functions of an operator with two operands."""
    entry = BINARY[kind]

    def new(
        graph: Graph,
        a: Tensor | float,
        b: Tensor | float,
        prog: Sequence,
        debugContext: str = "",
        options: Mapping[str, object] | None = None,
    ) -> Tensor:
        return apply(graph, entry, [a, b], prog, debugContext, options=options)

    def in_place(
        graph: Graph,
        a: Tensor | float,
        b: Tensor | float,
        prog: Sequence,
        debugContext: str = "",
        options: Mapping[str, object] | None = None,
    ) -> None:
        apply(graph, entry, [a, b], prog, debugContext, in_place=True, options=options)

    def to(
        graph: Graph,
        a: Tensor | float,
        b: Tensor | float,
        out: Tensor,
        prog: Sequence,
        debugContext: str = "",
        options: Mapping[str, object] | None = None,
    ) -> None:
        apply(graph, entry, [a, b], prog, debugContext, out=out, options=options)

    return (
        _named(new, name, f"Give {kind} of elements of a and b."),
        _named(in_place, f"{name}InPlace", f"Replace the elements of a by {kind} of a and b."),
        _named(to, f"{name}WithOutput", f"Write {kind} of elements of a and b to `out`."),
    )


def ternary(name: str, kind: str) -> tuple[Ternary[Tensor], Ternary[None], TernaryTo]:
    """Make the functions of an operator with three operands."""
    entry = TERNARY[kind]

    def new(
        graph: Graph,
        a: Tensor | float,
        b: Tensor | float,
        c: Tensor | float,
        prog: Sequence,
        debugContext: str = "",
        options: Mapping[str, object] | None = None,
    ) -> Tensor:
        return apply(graph, entry, [a, b, c], prog, debugContext, options=options)

    def in_place(
        graph: Graph,
        a: Tensor | float,
        b: Tensor | float,
        c: Tensor | float,
        prog: Sequence,
        debugContext: str = "",
        options: Mapping[str, object] | None = None,
    ) -> None:
        apply(graph, entry, [a, b, c], prog, debugContext, in_place=True, options=options)

    def to(
        graph: Graph,
        a: Tensor | float,
        b: Tensor | float,
        c: Tensor | float,
        out: Tensor,
        prog: Sequence,
        debugContext: str = "",
        options: Mapping[str, object] | None = None,
    ) -> None:
        apply(graph, entry, [a, b, c], prog, debugContext, out=out, options=options)

    return (
        _named(new, name, f"Give {kind} of elements of a, b and c."),
        _named(in_place, f"{name}InPlace", f"Replace the elements of a by {kind} of a, b and c."),
        _named(to, f"{name}WithOutput", f"Write {kind} of elements of a, b and c to `out`."),
    )
