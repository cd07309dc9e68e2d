"""Tensors of which only the first elements along an axis count: how many is found at run time.

Operators that work element by element, or along other axes, hand that on; others are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from simulator.graph.types import Array
from simulator.popart.operators.table import ELEMENTWISE
from simulator.popart.representation.ir import ONNX, Bound, Ir, Node


def bounds_of(node: Node, ir: Ir) -> Mapping[str, Bound]:
    """Return the bounds of a node's outputs; raises ValueError that says why there can be none."""
    read = {name: ir.bounds[name] for name in node.reads if name in ir.bounds}
    if not read:
        return {}
    rule = _RULES.get(node.operator) if node.domain == ONNX else None
    axis = None
    if rule is not None and set(read) <= set(node.inputs):
        axis = rule(node, ir)
    roots = {(bound.root, bound.root_axis) for bound in read.values()}
    if axis is None or len(roots) > 1:
        name, bound = next(iter(read.items()))
        raise ValueError(
            f"reads {name!r}, {ir.infos[name]}, of which only the first elements along axis "
            f"{bound.axis} count, as many as are chosen when the program runs; operators that work "
            "element by element or along another axis can read it"
        )
    return {name: Bound(*next(iter(roots)), axis) for name in node.outputs if name}


def with_roots(names: Sequence[str], bounds: Mapping[str, Bound]) -> list[str]:
    """Return the tensors with those that say how much of them counts."""
    return list(dict.fromkeys([*names, *(bounds[name].root for name in names if name in bounds)]))


def chosen(arrays: Mapping[str, Array], bounds: Mapping[str, Bound]) -> dict[str, Array]:
    """Return what counts of the arrays of one batch, which have those that say so beside them."""
    trimmed = dict(arrays)
    for name, values in arrays.items():
        if name in bounds:
            root, root_axis, axis = bounds[name]
            other_axes = tuple(n for n in range(arrays[root].ndim) if n != root_axis)
            count = int((arrays[root] >= 0).all(axis=other_axes).sum())
            trimmed[name] = np.take(values, np.arange(count), axis=axis)
    return trimmed


def _bound_axis(ir: Ir, name: str) -> int | None:
    return ir.bounds[name].axis if name in ir.bounds else None


def _by_element(node: Node, ir: Ir) -> int | None:
    """Count the axis from the end: all inputs that are bounded have it at the same place."""
    ranks = {name: len(ir.infos[name].dims) for name in node.inputs if name}
    behind = {ranks[n] - ir.bounds[n].axis for n in ranks if n in ir.bounds}
    if len(behind) > 1:
        return None
    (back,) = behind
    unbounded = [n for n in ranks if n not in ir.bounds and ranks[n] >= back]
    if any(ir.infos[name].dims[-back] != 1 for name in unbounded):
        return None  # it is as long as the bound, not as what was chosen
    return max(ranks.values()) - back


def _turned(node: Node, ir: Ir) -> int | None:
    axis, rank = ir.bounds[node.inputs[0]].axis, len(ir.infos[node.inputs[0]].dims)
    order = node.attributes.get("perm") or list(range(rank))[::-1]
    return [int(n) for n in order].index(axis)


def _numbers(node: Node, ir: Ir, place: int) -> list[int] | None:
    """Return the axes of a node, of an attribute or of a constant input."""
    value = ir.known(node.inputs[place]) if place < len(node.inputs) else None
    axes = node.attributes.get("axes") if value is None else value.reshape(-1)
    return None if axes is None else [int(n) for n in axes]


def _squeezed(node: Node, ir: Ir) -> int | None:
    info, axis = ir.infos[node.inputs[0]], ir.bounds[node.inputs[0]].axis
    axes = _numbers(node, ir, 1)
    if axes is None:
        return None
    removed = [n % len(info.dims) for n in axes]
    return None if axis in removed else axis - sum(n < axis for n in removed)


def _unsqueezed(node: Node, ir: Ir) -> int | None:
    axes = _numbers(node, ir, 1) or []
    rank = len(ir.infos[node.inputs[0]].dims) + len(axes)
    added = {n % rank for n in axes}
    return [n for n in range(rank) if n not in added][ir.bounds[node.inputs[0]].axis]


def _sliced(node: Node, ir: Ir) -> int | None:
    """Keep the axis if it is not cut."""
    axis, rank = ir.bounds[node.inputs[0]].axis, len(ir.infos[node.inputs[0]].dims)
    starts = ir.known(node.inputs[1]) if len(node.inputs) > 1 else node.attributes.get("starts")
    axes = _numbers(node, ir, 3)
    cut = range(len(starts)) if axes is None and starts is not None else axes or []
    return None if axis in {n % rank for n in cut} else axis


def _gathered(node: Node, ir: Ir) -> int | None:
    data, indices = node.inputs[:2]
    info, places = ir.infos[data], ir.infos[indices]
    along = int(node.attributes.get("axis", 0)) % max(len(info.dims), 1)
    rows, data_axis = _bound_axis(ir, indices), _bound_axis(ir, data)
    if data_axis is None and rows is not None:
        return along + rows
    if rows is None and data_axis is not None and data_axis != along:
        return data_axis + (len(places.dims) - 1) * (data_axis > along)
    return None


def _gathered_nd(node: Node, ir: Ir) -> int | None:
    rows = _bound_axis(ir, node.inputs[1])
    last = len(ir.infos[node.inputs[1]].dims) - 1
    batch = int(node.attributes.get("batch_dims", 0))
    if rows is None or rows == last or batch or node.inputs[0] in ir.bounds:
        return None
    return rows


def _along_another(node: Node, ir: Ir) -> int | None:
    """Keep the axis if the node's own is another; all inputs that it joins have to be bounded."""
    infos = [ir.infos[name] for name in node.inputs if name]
    axes = {_bound_axis(ir, name) for name in node.inputs if name}
    joined = node.inputs if node.operator == "Concat" else node.inputs[:1]
    along = int(node.attributes.get("axis", 0)) % max(len(infos[0].dims), 1)
    axis = _bound_axis(ir, node.inputs[0])
    same = all(_bound_axis(ir, name) == axis for name in joined)
    return axis if axis is not None and axis != along and same and None not in axes else None


_RULES: dict[str, Callable[[Node, Ir], int | None]] = {
    **dict.fromkeys({*ELEMENTWISE, "Identity"} - {"OneHot", "Trilu"}, _by_element),
    "Concat": _along_another,
    "Gather": _gathered,
    "GatherND": _gathered_nd,
    "Slice": _sliced,
    "Squeeze": _squeezed,
    "Transpose": _turned,
    "Unsqueeze": _unsqueezed,
}
