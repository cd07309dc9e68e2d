"""Random views of a tensor, each beside the same view of the array of its element numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from simulator.graph.tensors.tensor import Tensor, UpsampleMethod, append, concat

Pair = tuple[Tensor, Any]
Draw = Callable[..., Any]


def axis_and_range(draw: Draw, tensor: Tensor) -> tuple[int, int, int]:
    axis = draw(st.integers(0, tensor.rank() - 1))
    low = draw(st.integers(0, tensor.dim(axis)))
    return axis, low, draw(st.integers(low, tensor.dim(axis)))


def sliced(draw: Draw, tensor: Tensor, array: Any) -> Pair:
    axis, low, high = axis_and_range(draw, tensor)
    wanted = array.take(range(low, high), axis)
    whole_low, whole_high = [0] * tensor.rank(), list(tensor.shape)
    whole_low[axis], whole_high[axis] = low, high
    forms = {
        "numbers": lambda: tensor.slice(low, high, axis),
        "lists": lambda: tensor.slice(whole_low, whole_high),
        "interval": lambda: tensor.slice((low, high), axis),
        "slices": lambda: tensor.slices([(low, high), 0], axis)[0],
        "python": lambda: tensor[(slice(None),) * axis + (slice(low, high),)],
    }
    return forms[draw(st.sampled_from(sorted(forms)))](), wanted


def indexed(draw: Draw, tensor: Tensor, array: Any) -> Pair:
    numbers = [draw(st.integers(-s, s - 1)) for s in tensor.shape[: draw(st.integers(1, 2))]]
    if draw(st.booleans()):
        return tensor.index(numbers), array[tuple(numbers)]
    return tensor[..., numbers[0] % tensor.shape[-1]], array[..., numbers[0] % tensor.shape[-1]]


def stepped(draw: Draw, tensor: Tensor, array: Any) -> Pair:
    part = draw(st.slices(tensor.dim(0)))
    return tensor[part], array[part]


def shuffled(draw: Draw, tensor: Tensor, array: Any) -> Pair:
    order = draw(st.permutations(range(tensor.rank())))
    return tensor.dimShuffle(order), array.transpose(order)


def partly_shuffled(draw: Draw, tensor: Tensor, array: Any) -> Pair:
    dimensions = range(tensor.rank())
    count = draw(st.integers(0, tensor.rank()))
    source = draw(st.permutations(dimensions))[:count]
    places = draw(st.permutations(dimensions))[:count]
    return tensor.dimShufflePartial(source, places), np.moveaxis(array, source, places)


def rolled(draw: Draw, tensor: Tensor, array: Any) -> Pair:
    old, new = (draw(st.integers(0, tensor.rank() - 1)) for _ in range(2))
    return tensor.dimRoll(old, new), np.moveaxis(array, old, new)


def transposed(draw: Draw, tensor: Tensor, array: Any) -> Pair:
    return tensor.transpose(), array.transpose()


def flattened(draw: Draw, tensor: Tensor, array: Any) -> Pair:
    low = draw(st.integers(0, tensor.rank()))
    high = draw(st.integers(low, tensor.rank()))
    shape = (*array.shape[:low], int(np.prod(array.shape[low:high])), *array.shape[high:])
    return tensor.flatten(low, high), array.reshape(shape)


def reshaped(draw: Draw, tensor: Tensor, array: Any) -> Pair:
    axis = draw(st.integers(0, tensor.rank() - 1))
    size = tensor.dim(axis)
    factor = draw(st.sampled_from([n for n in range(1, size + 1) if size % n == 0]))
    shape = (*array.shape[:axis], factor, size // factor, *array.shape[axis + 1 :])
    split = tensor.reshapePartial(axis, axis + 1, [factor, size // factor])
    return (split if draw(st.booleans()) else tensor.reshape(shape)), array.reshape(shape)


def expanded(draw: Draw, tensor: Tensor, array: Any) -> Pair:
    axis = draw(st.integers(0, tensor.rank()))
    return tensor.expand([axis]), np.expand_dims(array, axis)


def squeezed(draw: Draw, tensor: Tensor, array: Any) -> Pair:
    ones = [axis for axis, size in enumerate(tensor.shape) if size == 1]
    return tensor.squeeze(ones), array.squeeze(tuple(ones))


def reversed_(draw: Draw, tensor: Tensor, array: Any) -> Pair:
    axis = draw(st.integers(0, tensor.rank() - 1))
    return tensor.reverse(axis), np.flip(array, axis)


def sampled(draw: Draw, tensor: Tensor, array: Any) -> Pair:
    axis, stride = draw(st.integers(0, tensor.rank() - 1)), draw(st.integers(1, 3))
    part = (slice(None),) * axis + (slice(None, None, stride),)
    return tensor.subSample(stride, axis), array[part]


def upsampled(draw: Draw, tensor: Tensor, array: Any) -> Pair:
    axis, scale = draw(st.integers(0, tensor.rank() - 1)), draw(st.integers(1, 2))
    return tensor.upsample(scale, axis, UpsampleMethod.REPEAT), np.repeat(array, scale, axis)


def repeated(draw: Draw, tensor: Tensor, array: Any) -> Pair:
    axis, count = draw(st.integers(0, tensor.rank() - 1)), draw(st.integers(1, 2))
    return tensor.broadcast(count, axis), np.concatenate([array] * count, axis)


def joined(draw: Draw, tensor: Tensor, array: Any) -> Pair:
    axis, low, high = axis_and_range(draw, tensor)
    part, wanted = tensor.slice(low, high, axis), array.take(range(low, high), axis)
    both = concat([part, tensor], axis) if draw(st.booleans()) else concat(part, tensor, axis)
    return both, np.concatenate([wanted, array], axis)


def appended(draw: Draw, tensor: Tensor, array: Any) -> Pair:
    return append(tensor, tensor[-1]), np.concatenate([array, array[-1:]])


REORDERS = [
    sliced, indexed, stepped, shuffled, partly_shuffled, rolled, transposed, flattened, reshaped,
    expanded, squeezed, reversed_, sampled,
]  # fmt: skip
REPEATS = [upsampled, repeated, joined, appended]


def chain(data: st.DataObject, start: Tensor, ways: list[Any]) -> Pair:
    """Apply random views to a tensor and to the array of its element numbers."""
    tensor, array = start, start.elements()
    for _ in range(data.draw(st.integers(1, 5))):
        if 0 in tensor.shape or not tensor.shape or tensor.numElements() > 500:
            break
        tensor, array = data.draw(st.sampled_from(ways))(data.draw, tensor, array)
    return tensor, array
