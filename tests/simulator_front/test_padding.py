"""Padding is a view of a tensor and constants, or of the tensor's own elements, as NumPy pads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from value_program import Values, numbers

from simulator.graph.program import Copy
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import FLOAT, HALF, INT
from simulator.poplibs import popops, poputil
from simulator.poplibs.popops.padding import MappingMethod, Type


def read(values: Values, tensor: Tensor) -> Any:
    """Copy a view to a variable of its own and run."""
    copy = values.graph.addVariable(tensor.dtype, tensor.shape, "copy")
    values.graph.setTileMapping(copy, 1)
    values.program.add(Copy(tensor, copy))
    return values.run().read(copy)


def cut(array: Any, lower: list[int], upper: list[int]) -> tuple[Any, list[tuple[int, int]]]:
    """Cut off what is below zero, and give NumPy's widths of the rest."""
    for axis, (before, behind) in enumerate(zip(lower, upper, strict=True)):
        places = np.arange(max(-before, 0), array.shape[axis] - max(-behind, 0))
        array = np.take(array, places, axis)
    return array, [(max(a, 0), max(b, 0)) for a, b in zip(lower, upper, strict=True)]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_padding_equals_numpys(data: st.DataObject) -> None:
    shape = data.draw(st.lists(st.integers(3, 6), min_size=1, max_size=3))
    widths = st.lists(st.integers(-1, 2), min_size=len(shape), max_size=len(shape))
    lower, upper = data.draw(widths), data.draw(widths)
    mode = data.draw(st.sampled_from(["constant", "edge", "reflect"]))
    if mode == "reflect":  # what has been cut to one element has nothing to reflect
        lower = [max(w, -1 if n > 4 else 0) for w, n in zip(lower, shape, strict=True)]
        upper = [max(width, 0) for width in upper]
    values, array = Values(), numbers(*shape)
    tensor = values.tensor(array)
    if mode == "constant":
        found = popops.pad(values.graph, tensor, lower, upper, 1.5)
    else:
        found = popops.pad(tensor, lower, upper, Type(mode.upper()))
    kept, by_axis = cut(array, lower, upper)
    options = {"constant_values": 1.5} if mode == "constant" else {}
    np.testing.assert_array_equal(read(values, found), np.pad(kept, by_axis, mode, **options))


@pytest.mark.parametrize("dtype", [FLOAT, HALF, INT], ids=str)
def test_one_dimension_is_padded_by_a_value_that_may_be_in_a_tensor(dtype: Any) -> None:
    values, array = Values(), np.arange(6).reshape(2, 3).astype(dtype.numpy)
    tensor, value = values.tensor(array, dtype=dtype), values.tensor(7, dtype=dtype)
    both = popops.pad(values.graph, popops.pad(values.graph, tensor, 1, 0, 0, 5), 0, 2, 1, value)
    expected = np.pad(array, ((1, 0), (0, 0)), constant_values=5)
    expected = np.pad(expected, ((0, 0), (0, 2)), constant_values=7)
    np.testing.assert_array_equal(read(values, both), expected)
    again = popops.pad(tensor, 1, 1, 1, Type.EDGE)
    np.testing.assert_array_equal(read(values, again), np.pad(array, ((0, 0), (1, 1)), "edge"))


def test_constants_lie_on_tile_0_at_the_edge_or_nowhere() -> None:
    values = Values()
    tensor = values.graph.addVariable(FLOAT, [2, 2], "t")
    for row in range(2):
        values.graph.setTileMapping(tensor[row], row + 2)

    def tiles(method: MappingMethod) -> list[list[int]]:
        padded = popops.pad(values.graph, tensor, [1, 0], [0, 1], mappingMethod=method)
        found = np.full(9, -1)
        for low, high, tile in zip(*values.graph.tile_ranges(padded), strict=True):
            found[low:high] = tile
        return found.reshape(3, 3).tolist()

    assert tiles(MappingMethod.ZERO) == [[0, 0, 0], [2, 2, 0], [3, 3, 0]]
    assert tiles(MappingMethod.EDGE) == [[2, 2, 2], [2, 2, 2], [3, 3, 3]]
    assert tiles(MappingMethod.NONE) == [[-1, -1, -1], [2, 2, -1], [3, 3, -1]]


def test_padding_by_nothing_is_the_tensor() -> None:
    values = Values()
    tensor = values.tensor(numbers(3, 4))
    padded = popops.pad(values.graph, tensor, [0, 0], [0, 0])
    assert (padded.shape, padded.begins.tolist()) == (tensor.shape, tensor.begins.tolist())
    assert len(values.graph.variables) == 1


REFUSED: list[tuple[Any, str]] = [
    (lambda g, t: popops.pad(g, t, [1], [1]), "pad: widths .* needs one for each dimension"),
    (lambda g, t: popops.pad(g, t, 1, 1, 2), "pad: dimension 2 of Tensor"),
    (lambda g, t: popops.pad(g, t, 1, 1), "pad: takes .*missing or unknown: .*dim"),
    (lambda g, t: popops.pad(t, [0, 4], [0, 0], Type.REFLECT), "pad: 4 to reflect .* less than 4"),
    (lambda g, t: popops.pad(t, [0, 1], [0, 0], "edge"), "pad: type is 'edge'; a padding.Type"),
    (lambda g, t: popops.pad(g, t, [-2, 0], [-2, 0]), "cut off more of dimension 0 than its 3"),
    (lambda g, t: popops.pad(g, t, [1, 0], [0, 0], [1, 2]), "pad: value is .* one number"),
    (lambda g, t: popops.pad(g, t, [1, 0], [0, 0], t), "pad: value is Tensor.*needs one float"),
    (lambda g, t: popops.pad(g, 3, [1], [0]), "pad: of 3 by"),
    (lambda g, t: popops.pad(t[:0], [1, 0], [0, 0], Type.EDGE), "has no edge to repeat"),
]


@pytest.mark.parametrize(("call", "said"), REFUSED, ids=[said[:18] for _, said in REFUSED])
def test_what_does_not_fit_is_refused(call: Any, said: str) -> None:
    values = Values()
    with pytest.raises(poputil.poplibs_error, match=said):
        call(values.graph, values.tensor(numbers(3, 4)))
