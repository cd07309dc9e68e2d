"""Padding: views of a tensor, of constants beside it, or of its own elements again.

Negative padding cuts off. Nothing is copied until the view is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np

from simulator.graph.errors import poplibs_error
from simulator.graph.graph import Graph
from simulator.graph.tensors.tensor import Tensor, broadcast_to, concat
from simulator.graph.types import checked_values
from simulator.logging import library_call
from simulator.poplibs.popops.padding import MappingMethod, Type

Widths = Sequence[int]


@overload
def pad(
    graph: Graph,
    t: Tensor,
    paddingLower: Widths,
    paddingUpper: Widths,
    val: float | Tensor = 0,
    mappingMethod: MappingMethod = MappingMethod.ZERO,
) -> Tensor: ...
@overload
def pad(
    graph: Graph,
    t: Tensor,
    paddingLower: int,
    paddingUpper: int,
    dim: int,
    val: float | Tensor = 0,
    mappingMethod: MappingMethod = MappingMethod.ZERO,
) -> Tensor: ...
@overload
def pad(t: Tensor, paddingLower: Widths, paddingUpper: Widths, type: Type, /) -> Tensor: ...
@overload
def pad(t: Tensor, paddingLower: int, paddingUpper: int, dim: int, type: Type, /) -> Tensor: ...
@library_call("POPOPS")
def pad(*arguments: object, **named: object) -> Tensor:
    """Return a tensor with padding before and behind the elements of its dimensions.

    Of constants: `pad(graph, t, [1, 0], [2, 0], val)`, or `pad(graph, t, 1, 2, dim, val)` for one
    dimension. Of the tensor's own elements: without a graph, a `padding.Type` at the end.

    >>> from simulator import popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> a = trial.tensor([[1.0, 2.0]])
    >>> padded = popops.pad(trial.graph, a, [1, 0], [0, 2], 0.0)
    >>> trial.values(padded)
    [[0.0, 0.0, 0.0, 0.0], [1.0, 2.0, 0.0, 0.0]]
    """
    padding = _sorted_arguments(arguments, named)
    tensor = padding.tensor
    for axis, (lower, upper) in padding.widths.items():
        tensor = _padded(padding, _cut(tensor, lower, upper, axis), lower, upper, axis)
    return tensor


@dataclass(frozen=True, slots=True)
class _Padding:
    """The arguments of any of the forms; `widths` are lower and upper by dimension."""

    graph: Graph | None
    tensor: Tensor
    widths: dict[int, tuple[int, int]]
    value: Any
    method: MappingMethod
    type: Type | None


def _sorted_arguments(arguments: tuple[Any, ...], named: dict[str, object]) -> _Padding:
    """Sort the arguments: with or without a graph, of all dimensions or of one."""
    has_graph = "graph" in named or bool(arguments) and isinstance(arguments[0], Graph)
    names = (["graph"] if has_graph else []) + ["t", "paddingLower", "paddingUpper"]
    lower = named.get("paddingLower", next(iter(arguments[len(names) - 2 :]), None))
    single = isinstance(lower, int | np.integer)
    names += (["dim"] if single else []) + (["val", "mappingMethod"] if has_graph else ["type"])
    by_name = dict(zip(names, arguments, strict=False)) | named
    kind, method = by_name.get("type"), by_name.get("mappingMethod", MappingMethod.ZERO)
    needed = names if not has_graph else names[:-2]
    wrong = [name for name in needed if name not in by_name] + [
        n for n in by_name if n not in names
    ]
    if wrong or len(arguments) > len(names):
        raise poplibs_error(f"pad: takes {', '.join(names)}; missing or unknown: {wrong}")
    if not isinstance(by_name["t"], Tensor) or not isinstance(method, MappingMethod):
        raise poplibs_error(f"pad: of {by_name['t']!r} by {method!r}; needs tensor, MappingMethod")
    if not has_graph and not isinstance(kind, Type):
        raise poplibs_error(f"pad: type is {kind!r}; a padding.Type is needed")
    widths = _widths(by_name["t"], lower, by_name["paddingUpper"], by_name.get("dim"))
    return _Padding(by_name.get("graph"), by_name["t"], widths, by_name.get("val", 0), method, kind)


def _widths(tensor: Tensor, lower: Any, upper: Any, axis: Any) -> dict[int, tuple[int, int]]:
    """Pair lower and upper padding by dimension."""
    if isinstance(lower, int | np.integer):
        if not isinstance(axis, int | np.integer) or not 0 <= axis < tensor.rank():
            raise poplibs_error(f"pad: dimension {axis!r} of {tensor!r}")
        lower, upper, axes = [lower], [upper], [int(axis)]
    else:
        axes = list(range(tensor.rank()))
    lowers, uppers = list(lower), list(upper)
    are_integers = all(isinstance(width, int | np.integer) for width in (*lowers, *uppers))
    if not len(lowers) == len(uppers) == len(axes) or not are_integers:
        raise poplibs_error(
            f"pad: widths {lowers} and {uppers} of {tensor!r}; needs one for each dimension"
        )
    return {axis: (int(a), int(b)) for axis, a, b in zip(axes, lowers, uppers, strict=True)}


def _cut(tensor: Tensor, lower: int, upper: int, axis: int) -> Tensor:
    """Cut off what padding below zero takes away."""
    size = tensor.shape[axis]
    first, end = max(-lower, 0), size - max(-upper, 0)
    if first > end:
        raise poplibs_error(
            f"pad: widths {lower} and {upper} cut off more of dimension {axis} than its {size}"
        )
    return tensor.slice(first, end, axis)


def _padded(padding: _Padding, tensor: Tensor, lower: int, upper: int, axis: int) -> Tensor:
    """Lay what pads a dimension around a tensor."""
    before, behind = max(lower, 0), max(upper, 0)
    parts = [tensor]
    if before:
        parts.insert(0, _piece(padding, tensor, before, axis, first=True))
    if behind:
        parts.append(_piece(padding, tensor, behind, axis, first=False))
    return concat(parts, axis)


def _piece(padding: _Padding, tensor: Tensor, width: int, axis: int, *, first: bool) -> Tensor:
    """Return what pads one side."""
    size = tensor.shape[axis]
    if padding.graph is not None:
        return _constant(padding, padding.graph, tensor, width, axis, first=first)
    if padding.type is Type.EDGE:
        if not size:
            raise poplibs_error(f"pad: {tensor!r} has no edge to repeat in dimension {axis}")
        return _edge(tensor, axis, first=first).broadcast(width, axis)
    if width >= size:
        raise poplibs_error(
            f"pad: {width} to reflect of dimension {axis} of {tensor!r}; less than {size} can be"
        )
    begin, end = (1, width + 1) if first else (size - 1 - width, size - 1)
    return tensor.slice(begin, end, axis).reverse(axis)


def _edge(tensor: Tensor, axis: int, *, first: bool) -> Tensor:
    size = tensor.shape[axis]
    return tensor.slice(0, 1, axis) if first else tensor.slice(size - 1, size, axis)


def _constant(
    fill: _Padding, graph: Graph, tensor: Tensor, width: int, axis: int, *, first: bool
) -> Tensor:
    """Return a constant, or a value that is in a tensor, in the shape of the padding."""
    shape = (*tensor.shape[:axis], width, *tensor.shape[axis + 1 :])
    if isinstance(fill.value, Tensor):
        if fill.value.numElements() != 1 or fill.value.dtype != tensor.dtype:
            raise poplibs_error(f"pad: value is {fill.value!r}; needs one {tensor.dtype}")
        return broadcast_to(fill.value.reshape([1]), shape)
    value = checked_values(fill.value, tensor.dtype, "pad: value", poplibs_error)
    if value.ndim:
        raise poplibs_error(f"pad: value is {fill.value!r}; one number is needed")
    padding = graph.addConstant(tensor.dtype, shape, value, "padding")
    if fill.method is MappingMethod.ZERO:
        graph.setTileMapping(padding, 0)
    elif fill.method is MappingMethod.EDGE:
        if not tensor.numElements():
            raise poplibs_error(f"pad: {tensor!r} has no edge to lie beside")
        graph.copy_mapping(_edge(tensor, axis, first=first).broadcast(width, axis), padding)
    return padding
