"""Resize and Upsample: axis by axis, nearest elements as a view, else a product by weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import UNSIGNED_INT, IntArray, element_count
from simulator.popart.operators.call import Call
from simulator.popart.operators.elements.pointwise_gradients import added_to_rows
from simulator.popart.representation.ir import Ir, Node
from simulator.poplibs import poplin

Numbers = npt.NDArray[np.float64]


class Axis(NamedTuple):
    """An axis that changes: its size before and after, and by how much it is stretched."""

    place: int
    before: int
    after: int
    scale: float


def _half_pixel(x: Numbers, axis: Axis) -> Numbers:
    return (x + 0.5) / axis.scale - 0.5


def _symmetric(x: Numbers, axis: Axis) -> Numbers:
    """Keep the middle where it is also when the size after was rounded."""
    missing = 1 - axis.after / (axis.scale * axis.before)
    return _half_pixel(x, axis) + axis.before / 2 * missing


def _align_corners(x: Numbers, axis: Axis) -> Numbers:
    length = axis.scale * axis.before
    return x * 0 if length == 1 else x * (axis.before - 1) / (length - 1)


# Where an element after is among those before, by the attribute coordinate_transformation_mode.
_POINTS: dict[str, Callable[[Numbers, Axis], Numbers]] = {
    "align_corners": _align_corners,
    "asymmetric": lambda x, axis: x / axis.scale,
    "half_pixel": _half_pixel,
    "half_pixel_symmetric": _symmetric,
    "pytorch_half_pixel": lambda x, axis: x - 0.5 if axis.after == 1 else _half_pixel(x, axis),
    "tf_half_pixel_for_nn": lambda x, axis: (x + 0.5) / axis.scale,
}
_ROUNDED: dict[str, Callable[[Numbers], Numbers]] = {
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
    "pytorch": np.floor,  # of asymmetric points, whatever these are (popart, op/resizex.cpp)
}


def axes_of(call: Call) -> list[Axis]:
    """Return the axes that change; the scales are given, or made by the sizes that are."""
    before, after = call.info().dims, call.outputs[0].dims
    which = call.attribute("axes") or range(len(before))
    places = [int(axis) % max(len(before), 1) for axis in which]
    scales = [target / max(size, 1) for size, target in zip(before, after, strict=True)]
    scales_input = call.value(2 if _has_region(call.node) else 1)
    sizes = call.value(3)
    policy = call.attribute("keep_aspect_ratio_policy", "stretch")
    if sizes is not None and sizes.size and policy != "stretch":
        ratios = [int(sizes[n]) / before[axis] for n, axis in enumerate(places)]
        common = min(ratios) if policy == "not_larger" else max(ratios)
        for axis in places:
            scales[axis] = common
    elif sizes is None or not sizes.size:
        numbers = (
            call.attribute("scales", [])
            if scales_input is None
            else scales_input.reshape(-1).tolist()
        )
        for axis, scale in zip(places, numbers, strict=False):
            scales[axis] = float(scale)
    rows = enumerate(zip(before, after, scales, strict=True))
    by_size = call.attribute("nearest_mode", "") == "pytorch"
    return [Axis(n, *row) for n, row in rows if row[0] != row[1] or (row[2] != 1 and not by_size)]


def _has_region(node: Node) -> bool:
    """Return whether a region of interest stands before the scales."""
    return node.operator == "Resize" and node.version > 10


def _mode(call: Call) -> tuple[str, str, str]:
    """Return the mode, where elements are, how they are rounded; older versions have no choice."""
    mode = str(call.attribute("mode", "nearest"))
    newer = _has_region(call.node)
    rounded = str(call.attribute("nearest_mode", "round_prefer_floor" if newer else "floor"))
    points = str(call.attribute("coordinate_transformation_mode", "half_pixel"))
    return mode, points if newer and rounded != "pytorch" else "asymmetric", rounded


def nearest(call: Call, axis: Axis) -> IntArray:
    """Return which element before each element after is."""
    _, points, rounded = _mode(call)
    where = _POINTS[points](np.arange(axis.after, dtype=np.float64), axis)
    return np.clip(_ROUNDED[rounded](where), 0, axis.before - 1).astype(np.int64)


def weights(call: Call, axis: Axis) -> Numbers:
    """Return what each element before [before] is worth to each after [before, after]."""
    mode, points, _ = _mode(call)
    where = _POINTS[points](np.arange(axis.after, dtype=np.float64), axis)
    slower = min(axis.scale, 1.0) if call.attribute("antialias", 0) else 1.0
    reach = int(np.ceil((1 if mode == "linear" else 2) / slower))
    taps = np.floor(where)[:, None] + np.arange(1 - reach, reach + 1)
    far = np.abs(taps - where[:, None]) * slower
    a = float(call.attribute("cubic_coeff_a", -0.75))
    if mode == "linear":
        worth = np.maximum(1 - far, 0)
    else:
        near = ((a + 2) * far - (a + 3)) * far * far + 1
        farther = ((a * far - 5 * a) * far + 8 * a) * far - 4 * a
        worth = np.where(far <= 1, near, np.where(far < 2, farther, 0))
    if call.attribute("exclude_outside", 0):
        worth = np.where((taps < 0) | (taps >= axis.before), 0, worth)
    worth = worth / worth.sum(axis=1, keepdims=True)
    matrix = np.zeros((axis.before, axis.after))
    rows = np.clip(taps, 0, axis.before - 1).astype(np.int64)
    np.add.at(matrix, (rows, np.broadcast_to(np.arange(axis.after)[:, None], rows.shape)), worth)
    return matrix


def resized(call: Call) -> Tensor:
    """Resize one axis after another."""
    out = call[0]
    for axis in axes_of(call):
        if _mode(call)[0] == "nearest":
            out = out.taken(nearest(call, axis), axis.place)
        else:
            out = _times(call, out, axis.place, weights(call, axis))
    return out


def of_resized(
    call: Call, outputs: Sequence[Tensor], grads: Sequence[Tensor]
) -> list[Tensor | None]:
    """Assign each element before what the elements made of it have, the last axis first."""
    grad = grads[0]
    for axis in reversed(axes_of(call)):
        if _mode(call)[0] == "nearest":
            places = nearest(call, axis).astype(np.uint32)
            indices = call.constant(places, UNSIGNED_INT, "ResizeGrad")
            grad = added_to_rows(call, grad, indices, axis.before, axis.place, "ResizeGrad")
        else:
            grad = _times(call, grad, axis.place, weights(call, axis).T)
    return [grad, *[None] * (len(call.inputs) - 1)]


def _times(call: Call, tensor: Tensor, axis: int, matrix: Numbers) -> Tensor:
    """Multiply along an axis by a matrix of [before, after]."""
    last = tensor.rank() - 1
    moved = tensor.dimRoll(axis, last)
    rows = element_count(moved.shape[:-1])
    factor = call.constant(matrix, tensor.dtype, "weights")
    product = poplin.matMul(
        call.graph, moved.reshape((rows, matrix.shape[0])), factor, call.prog,
        debugContext=f"{call.name}/Axis{axis}", options=call.options,
    )  # fmt: skip
    return product.reshape((*moved.shape[:-1], matrix.shape[1])).dimRoll(last, axis)


def lacks(node: Node, ir: Ir) -> str:
    """Return which attribute of a node is not known, or which type cannot be weighed."""
    mode, info = node.attributes.get("mode", "nearest"), ir.infos[node.inputs[0]]
    choices_of = {
        "mode": ("nearest", "linear", "cubic"),
        "coordinate_transformation_mode": _POINTS,
        "nearest_mode": _ROUNDED,
    }
    for name, choices in choices_of.items():
        choice = node.attributes.get(name)
        if choice is not None and choice not in choices:
            return f"{name} {choice!r}; known are {', '.join(choices)}"
    if mode != "nearest" and info.device.numpy.kind != "f":
        return f"input {node.inputs[0]!r} is {info}; mode {mode!r} is of FLOAT or FLOAT16"
    return ""
