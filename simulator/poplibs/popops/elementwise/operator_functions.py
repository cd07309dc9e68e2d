"""Makes the functions of an operator: with a new result, in place, and with a given output."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar

from simulator.codelets.elementwise.operation import Operation
from simulator.graph.graph import Graph
from simulator.graph.program import Sequence
from simulator.graph.tensors.tensor import Tensor
from simulator.logging import library_call
from simulator.poplibs.popops.elementwise.pointwise import apply

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


# Examples of the three forms: `operands` are their names, `shown` the texts of their values.
_HEAD = """
    >>> from simulator import {modules}
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> {operands} = {shown}"""
_NEW = """
    >>> trial.values(popops.{name}(trial.graph, {operands}, trial.prog))
    {result}
    """
_IN_PLACE = """
    >>> popops.{name}(trial.graph, {operands}, trial.prog)
    >>> trial.values(a)
    {result}
    """
_TO = """
    >>> out = trial.graph.clone({like})
    >>> popops.{name}(trial.graph, {operands}, out, trial.prog)
    >>> trial.values(out)
    {result}
    """


def _example(entry: Operation, texts: tuple[str, ...], form: str, name: str) -> str:
    """Write the example of a function: operands that have values, a call, and what it gives."""
    *values, result = texts
    other_type = entry.boolean and form is _TO
    return (_HEAD + form).format(
        name=name,
        operands=", ".join("abc"[: len(values)]),
        shown=", ".join(f"trial.tensor({value})" for value in values),
        modules="poplar, popops" if other_type else "popops",
        like="poplar.BOOL, a" if other_type else "a",
        result=result,
    )


def _named(function: Callable[..., object], docstring: str, name: str) -> Callable[..., object]:
    """Return a function under its name in the library, with its docstring."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = docstring
    return library_call("POPOPS")(function)


def _functions(entry: Operation, *forms: tuple[Callable[..., object], str]) -> dict[str, object]:
    """Return the functions of an operator by name: two where it cannot be in place."""
    names = (entry.function, f"{entry.function}InPlace", f"{entry.function}WithOutput")
    truths = entry.truth_example or entry.example
    examples = ((entry.example, _NEW), (truths, _IN_PLACE), (entry.example, _TO))
    return {
        name: _named(function, f"{sentence}\n{_example(entry, texts, call, name)}", name)
        for name, (function, sentence), (texts, call) in zip(names, forms, examples, strict=True)
        if entry.replaces or name != names[1]
    }


def unary(entry: Operation) -> dict[str, object]:
    """Make the functions of an operator with one operand."""

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

    return _functions(
        entry,
        (new, f"Return {entry.name} of every element."),
        (in_place, f"Replace every element by its {entry.name}."),
        (to, f"Write {entry.name} of every element to `out`."),
    )


def binary(entry: Operation) -> dict[str, object]:
    """Make the functions of an operator with two operands."""

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

    return _functions(
        entry,
        (new, f"Return {entry.name} of elements of a and b."),
        (in_place, f"Replace the elements of a by {entry.name} of a and b."),
        (to, f"Write {entry.name} of elements of a and b to `out`."),
    )


def ternary(entry: Operation) -> dict[str, object]:
    """Make the functions of an operator with three operands."""

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

    return _functions(
        entry,
        (new, f"Return {entry.name} of elements of a, b and c."),
        (in_place, f"Replace the elements of a by {entry.name} of a, b and c."),
        (to, f"Write {entry.name} of elements of a, b and c to `out`."),
    )
