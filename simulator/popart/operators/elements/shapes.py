"""Operators that move elements: views of a tensor wherever that will do."""

from __future__ import annotations

import numpy as np

from simulator.graph.tensors.tensor import Tensor, concat
from simulator.graph.types import INT, UNSIGNED_INT, IntArray, element_count
from simulator.popart.errors import popart_exception
from simulator.popart.operators.call import Call, broadcast
from simulator.poplibs import popops
from simulator.poplibs.popops import expr
from simulator.poplibs.popops.expr import _1, _2


def same(call: Call) -> Tensor:
    """Return the input as it is."""
    return call[0]


def reshaped(call: Call) -> Tensor:
    """View the elements in the shape that the output has."""
    return call[0].reshape(call.outputs[0].dims)


def reshaped_back(call: Call, output: Tensor) -> Tensor:
    """View a tensor that lies as the output should in the shape of the input."""
    return output.reshape(call.info().dims)


def order_of(call: Call) -> list[int]:
    """Return the axes of a Transpose in their new order."""
    rank = len(call.info().dims)
    return list(call.attribute("perm", range(rank)[::-1]))


def transposed(call: Call) -> Tensor:
    """View the axes in another order."""
    return call[0].dimShuffle(order_of(call))


def transposed_back(call: Call, output: Tensor) -> Tensor:
    """View a tensor that lies as the output should with the axes of the input."""
    return output.dimShuffle(np.argsort(order_of(call)).tolist())


def expanded(call: Call) -> Tensor:
    """View the elements repeated along the axes that the output has longer."""
    return broadcast(call[0], call.outputs[0].dims)


def _blocks(call: Call) -> tuple[list[int], list[int]]:
    """Return the input's sizes with blocks of channels or of the image apart, and their order.

    In the order is what the output joins to its dimensions.
    """
    batch, channels, height, width = call.info().dims
    size = int(call.attribute("blocksize"))
    if call.node.operator == "SpaceToDepth":
        apart = [batch, channels, height // size, size, width // size, size]
        return apart, [0, 3, 5, 1, 2, 4]
    remaining_channels = channels // size**2
    if call.attribute("mode", "DCR") == "DCR":
        return [batch, size, size, remaining_channels, height, width], [0, 3, 4, 1, 5, 2]
    return [batch, remaining_channels, size, size, height, width], [0, 1, 4, 2, 5, 3]


def blocked(call: Call) -> Tensor:
    """View blocks of channels as squares of the image, or the other way."""
    apart, order = _blocks(call)
    return call[0].reshape(apart).dimShuffle(order).reshape(call.outputs[0].dims)


def blocked_back(call: Call, output: Tensor) -> Tensor:
    """View a tensor that lies as the output should as the input."""
    apart, order = _blocks(call)
    shuffled = output.reshape([apart[axis] for axis in order])
    return shuffled.dimShuffle(np.argsort(order).tolist()).reshape(call.info().dims)


def joined(call: Call) -> Tensor:
    """Lay the inputs one after another."""
    default = 1 if call.node.version < 4 else 0  # version 1 has an axis of 1 if none is given
    return concat([call[place] for place in range(len(call.inputs))], call.axis(default))


def split(call: Call) -> list[Tensor]:
    """Cut an axis into the sizes that the outputs have."""
    axis = call.axis()
    ends = np.cumsum([info.dims[axis] for info in call.outputs]).tolist()
    return [
        call[0].slice(begin, end, axis) for begin, end in zip([0, *ends[:-1]], ends, strict=True)
    ]


def sliced(call: Call) -> Tensor:
    """Take every so many elements between bounds, which are clamped to the axis."""
    tensor = call[0]
    starts, ends = call.numbers(1, "starts") or [], call.numbers(2, "ends") or []
    axes = call.numbers(3, "axes") or list(range(len(starts)))
    steps = call.numbers(4) or [1] * len(starts)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        place = axis % tensor.rank()
        size = tensor.shape[place]
        # Python's own bounds; an end before the first element is written below -size.
        stop = None if step < 0 and end < -size else end
        tensor = _taken(tensor, range(size)[start:stop:step], place)
    return tensor


def _taken(tensor: Tensor, places: range, axis: int) -> Tensor:
    if places.step == 1:
        return tensor.slice(places.start, max(places.start, places.stop), axis)
    return tensor.taken(np.array(places, dtype=np.int64), axis)


def subsampled(call: Call) -> Tensor:
    """Take every so many elements of each axis (ai.graphcore)."""
    tensor = call[0]
    for axis, stride in enumerate(call.attribute("strides", ())):
        tensor = tensor.subSample(int(stride), axis)
    return tensor


def tiled(call: Call) -> Tensor:
    """Repeat each axis; version 1 repeats one."""
    tensor = call[0]
    if call.node.version < 6:
        repeats = [1] * tensor.rank()
        repeats[(call.numbers(2) or [0])[0]] = (call.numbers(1) or [1])[0]
    else:
        repeats = call.numbers(1) or []
    for axis, times in enumerate(repeats):
        tensor = tensor if times == 1 else tensor.broadcast(times, axis)
    return call.copy(tensor, "tiled")


def pad_mode(call: Call) -> str:
    """Name what a Pad puts around its tensor."""
    return str(call.attribute("mode", "constant"))


def pad_widths(call: Call) -> list[tuple[int, int, int]]:
    """Return the axes that a Pad widens, with the elements before and behind."""
    rank = len(call.info().dims)
    widths = call.numbers(1, "pads") or []
    axes = [axis % rank for axis in call.numbers(3) or range(rank)]
    half = len(widths) // 2
    return list(zip(axes, widths[:half], widths[half:], strict=True))


def padded(call: Call) -> Tensor:
    """Put a value, or the tensor's own elements again, around it."""
    tensor, mode, value = call[0], pad_mode(call), call.value(2)
    number = call.attribute("value", 0) if value is None else value.reshape(-1)[0].item()
    for axis, lower, upper in pad_widths(call):
        if mode == "constant":
            fill_value = call.scalar(2) if value is None and call.has(2) else number
            tensor = call.padded(tensor, lower, upper, axis, fill_value)
        else:
            tensor = tensor.taken(around(mode, tensor.shape[axis], lower, upper), axis)
    return tensor


def around(mode: str, size: int, lower: int, upper: int) -> IntArray:
    """Return the places of an axis that its padded form has."""
    places = np.arange(-lower, size + upper, dtype=np.int64)
    if mode == "edge":
        return np.clip(places, 0, size - 1)
    if mode == "wrap":
        return places % size
    period = max(2 * (size - 1), 1)  # reflect
    folded = places % period
    return np.where(folded < size, folded, period - folded)


# Indices
def gathered(call: Call) -> Tensor:
    """Take slices of an axis by indices; negative ones count from its end."""
    axis, tensor = call.axis(), call[0]
    indices = call.value(1)
    shape = (*tensor.shape[:axis], *call.info(1).dims, *tensor.shape[axis + 1 :])
    size = tensor.shape[axis]
    if indices is not None:
        numbers = indices.reshape(-1).astype(np.int64)
        wrong = numbers[(numbers < -size) | (numbers >= size)]
        if wrong.size:
            raise popart_exception(f"{call.node}: index {wrong[0]} of an axis of {size}")
        return tensor.taken(numbers % size, axis).reshape(shape)
    places = from_front(call, call[1].flatten(), size)
    rows = tensor.dimRoll(axis, 0).reshape((size, tensor.numElements() // size))
    slices = popops.multiSlice(
        call.graph, rows, places.expand([1]), [0], [1], call.prog, debugContext=call.name
    )
    moved = slices.reshape((places.numElements(), *tensor.dimRoll(axis, 0).shape[1:]))
    return moved.dimRoll(0, axis).reshape(shape)


def gather_input(call: Call) -> Tensor:
    """Add a table whose rows are looked up at low cost."""
    info, axis = call.info(), call.axis()
    return popops.createGatherInput(call.graph, info.device, info.dims, axis)


def from_front(call: Call, indices: Tensor, size: int) -> Tensor:
    """Return indices as unsigned ones, those below 0 counted from the end."""
    signed = call.cast(indices, INT)
    wrapped = call.map(expr.Select(_1 + size, _1, _1 < 0), signed)
    return call.cast(wrapped, UNSIGNED_INT)


def element_places(call: Call) -> Tensor:
    """Return where each element of input 1 points: its own place, but for the index of the axis."""
    axis, shape, picked = call.axis(), call.info().dims, call.info(1).dims
    if len(picked) != len(shape):
        raise popart_exception(f"{call.node}: indices {call.info(1)} for {call.info()}")
    inner, places = element_count(shape[axis + 1 :]), np.indices(picked)
    strides = [element_count(shape[place + 1 :]) for place in range(len(shape))]
    base = sum(
        (places[place] * stride for place, stride in enumerate(strides) if place != axis),
        start=np.zeros(picked, dtype=np.int64),
    ).reshape(-1)
    along = from_front(call, call[1].flatten(), shape[axis])
    offsets = call.constant(base.astype(np.uint32), UNSIGNED_INT, "offsets")
    return call.map(_1 * inner + _2, along, offsets)


def gathered_elements(call: Call) -> Tensor:
    """Take an element for each index along the axis."""
    if not call.info(1).nelms():
        return call[0].flatten().slice(0, 0).reshape(call.info(1).dims)
    flat = element_places(call)
    call.saved = (flat,)
    rows = call[0].flatten().expand([1])
    elements = popops.multiSlice(
        call.graph, rows, flat.expand([1]), [0], [1], call.prog, debugContext=call.name
    )
    return elements.reshape(call.info(1).dims)
