"""Sums with a scaled tensor: A += scale B, A -= scale B, A = scaleA A + scaleB B."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, overload

from simulator.codelets.elementwise.operations import BINARY
from simulator.codelets.elementwise.scaled_add import ScaledSum, scaled_sum
from simulator.graph.errors import poplibs_error
from simulator.graph.graph import Graph
from simulator.graph.option_table import Option, checked
from simulator.graph.program import Execute, Sequence
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import FLOAT, HALF, INT, UNSIGNED_INT
from simulator.logging import library_call
from simulator.poplibs.popops.elementwise.cast import cast_into
from simulator.poplibs.popops.elementwise.pointwise import apply, as_tensor
from simulator.poplibs.popops.rearrange import regroupIfBeneficial
from simulator.poplibs.popops.regions import Operand, add_elementwise, debug_name

Scale = Tensor | float
REAL, INTEGERS = (FLOAT, HALF), (INT, UNSIGNED_INT)


class ScaledAddSpecialisation(Enum):
    """What becomes of A before scaleB B is added: scaleA A, or A - scaleA A."""

    DEFAULT = "DEFAULT"
    X_MINUS_AX_PLUS_BY = "X_MINUS_AX_PLUS_BY"


OPTIONS = {
    "optimizeForSpeed": Option(False, "taken, and without effect here"),
    "scaleFloatToHalfTolerance": Option("1e-6", "taken, and without effect here"),
}


@dataclass(frozen=True, slots=True)
class _Sum:
    """The arguments of a scaled sum; without a `scale_a` A is taken as it is."""

    a: Tensor
    b: Tensor
    scale_b: Scale
    scale_a: Scale | None
    prog: Sequence
    context: str
    options: Mapping[str, object]
    speciality: ScaledAddSpecialisation = ScaledAddSpecialisation.DEFAULT


@overload
def scaledAddTo(
    graph: Graph,
    a: Tensor,
    b: Tensor,
    scale: Tensor | float,
    prog: Sequence,
    debugContext: str = "",
    options: Mapping[str, object] | None = None,
) -> None: ...
@overload
def scaledAddTo(
    graph: Graph,
    a: Tensor,
    scaleA: Tensor | float,
    b: Tensor,
    scaleB: Tensor | float,
    prog: Sequence,
    debugContext: str = "",
    options: Mapping[str, object] | None = None,
    /,
) -> None: ...
@overload
def scaledAddTo(
    graph: Graph,
    a: Tensor,
    scaleA: Tensor | float,
    b: Tensor,
    scaleB: Tensor | float,
    prog: Sequence,
    speciality: ScaledAddSpecialisation,
    debugContext: str = "",
    options: Mapping[str, object] | None = None,
    /,
) -> None: ...
@library_call("POPOPS")
def scaledAddTo(graph: Graph, a: Tensor, *arguments: object, **named: object) -> None:
    """Add `scale` times b to a, or make a the sum of `scaleA` times a and `scaleB` times b.

    A scale is a number, or a tensor of one element; b is cast to the type of a: float, half, int or
    unsigned int. With the speciality X_MINUS_AX_PLUS_BY a becomes a less `scaleA` times a, plus
    `scaleB` times b.

    >>> from simulator import popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> a, b = trial.tensor([1.0, 2.0]), trial.tensor([3.0, 4.0])
    >>> popops.scaledAddTo(trial.graph, a, b, 10.0, trial.prog)
    >>> trial.values(a)
    [31.0, 42.0]
    """
    _scaled(graph, _sum_of("scaledAddTo", a, arguments, named), subtract=False)


@overload
def scaledSubtractFrom(
    graph: Graph,
    a: Tensor,
    b: Tensor,
    scale: Tensor | float,
    prog: Sequence,
    debugContext: str = "",
    options: Mapping[str, object] | None = None,
) -> None: ...
@overload
def scaledSubtractFrom(
    graph: Graph,
    a: Tensor,
    scaleA: Tensor | float,
    b: Tensor,
    scaleB: Tensor | float,
    prog: Sequence,
    debugContext: str = "",
    options: Mapping[str, object] | None = None,
    /,
) -> None: ...
@library_call("POPOPS")
def scaledSubtractFrom(graph: Graph, a: Tensor, *arguments: object, **named: object) -> None:
    """Subtract `scale` times b from a, or make a `scaleA` times a less `scaleB` times b.

    >>> from simulator import popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> a, b = trial.tensor([1.0, 2.0]), trial.tensor([3.0, 4.0])
    >>> popops.scaledSubtractFrom(trial.graph, a, b, 10.0, trial.prog)
    >>> trial.values(a)
    [-29.0, -38.0]
    """
    _scaled(graph, _sum_of("scaledSubtractFrom", a, arguments, named), subtract=True)


_SHORT = ("b", "scale", "prog", "debugContext", "options")
_LONG = ("scaleA", "b", "scaleB", "prog", "debugContext", "options")
_SPECIAL = (*_LONG[:4], "speciality", *_LONG[4:])


def _sum_of(function: str, a: Tensor, arguments: tuple[Any, ...], named: dict[str, object]) -> _Sum:
    """Sort the arguments of either form: the longer one has its program in the fourth place."""
    long = (len(arguments) > 3 and isinstance(arguments[3], Sequence)) or "scaleA" in named
    special = len(arguments) > 4 and isinstance(arguments[4], ScaledAddSpecialisation)
    special = special or "speciality" in named
    names = _SPECIAL if special else _LONG if long else _SHORT
    by_name = dict(zip(names, arguments, strict=False)) | named
    wrong = [name for name in names[: 4 if long else 3] if name not in by_name]
    wrong += [name for name in by_name if name not in names]
    if wrong or len(arguments) > len(names):
        raise TypeError(f"{function}: takes {', '.join(names)}; missing or unknown: {wrong}")
    if not isinstance(by_name["b"], Tensor) or not isinstance(by_name["prog"], Sequence):
        types = f"b is {by_name['b']!r}, prog is {by_name['prog']!r}"
        raise poplibs_error(f"{function}: {types}; a tensor and a sequence are needed")
    return _Sum(
        a,
        by_name["b"],
        by_name["scaleB" if long else "scale"],
        by_name.get("scaleA"),
        by_name["prog"],
        by_name.get("debugContext", ""),
        by_name.get("options") or {},
        by_name.get("speciality", ScaledAddSpecialisation.DEFAULT),
    )


def _scaled(graph: Graph, operation: _Sum, *, subtract: bool) -> None:
    scales = {"scaleB": operation.scale_b}
    scales |= {} if operation.scale_a is None else {"scaleA": operation.scale_a}
    numbers = {key: scale for key, scale in scales.items() if not isinstance(scale, Tensor)}
    constant = len(numbers) == len(scales)
    if subtract and constant:  # a number changes its sign, and the vertices add
        numbers["scaleB"], subtract = -numbers["scaleB"], False
    name = debug_name(operation.context, "SubtractFrom" if subtract else "AddTo")
    checked(OPTIONS, operation.options, name)
    a, b = operation.a, operation.b
    if a.shape != b.shape:
        raise poplibs_error(f"{name}: operands {a!r} and {b!r} differ in shape")
    rest = operation.speciality is ScaledAddSpecialisation.X_MINUS_AX_PLUS_BY
    if a.dtype not in REAL + INTEGERS or (rest and a.dtype != HALF):
        known = "half" if rest else ", ".join(map(str, REAL + INTEGERS))
        raise poplibs_error(f"{name}: {a!r}; known for {known}")
    with graph.debug_scope(name, "popops"):
        if a.dtype in INTEGERS and operation.scale_a is not None:  # no vertex scales both
            _scaled_integers(graph, a, operation.scale_a, operation.prog, name)
            operation, scales = replace(operation, scale_a=None), {"scaleB": scales["scaleB"]}
            numbers.pop("scaleA", None)
            constant = bool(numbers)
        b = regroupIfBeneficial(graph, b, a, operation.prog, name)
        if b.dtype != a.dtype:
            b = cast_into(graph, b, a.dtype, operation.prog, name, None)
        operands: dict[str, Operand] = {"out": ("inout", a), "in2": ("input", b)}
        for key, scale in {} if constant else scales.items():
            operands[key] = ("input", _one(graph, scale, a, name))
        which = ScaledSum(constant, subtract, operation.scale_a is not None, rest)
        vertices = scaled_sum(which, a.dtype, graph.target)
        compute_set = graph.addComputeSet(name)
        add_elementwise(graph, compute_set, vertices, operands, numbers if constant else {})
        operation.prog.add(Execute(compute_set))


def _scaled_integers(graph: Graph, a: Tensor, scale: Scale, prog: Sequence, name: str) -> None:
    """Multiply a by its scale in place."""
    factor = scale if isinstance(scale, Tensor) else as_tensor(graph, scale, a.dtype, name)
    apply(graph, BINARY["MULTIPLY"], [a, factor], prog, name, out=a, in_place=True)


def _one(graph: Graph, scale: Scale, a: Tensor, name: str) -> Tensor:
    """Return a scale as a tensor of one element."""
    if not isinstance(scale, Tensor):
        constant = graph.addConstant(a.dtype, [], scale, f"{name}/scale")
        graph.setTileMapping(constant, 0)
        return constant
    if scale.numElements() != 1 or scale.dtype not in (REAL if a.dtype in REAL else (a.dtype,)):
        needed = "float or half" if a.dtype in REAL else a.dtype
        raise poplibs_error(f"{name}: scales by {scale!r}; one {needed} is needed")
    return scale
