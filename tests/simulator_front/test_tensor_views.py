"""Every view of a tensor against NumPy on an array of element numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from value_program import Values

from simulator.graph.errors import GraphConnectionError, PoplarError
from simulator.graph.graph import Graph
from simulator.graph.program import Copy
from simulator.graph.target import TARGETS
from simulator.graph.tensor import Tensor, UpsampleMethod, append, concat
from simulator.graph.types import FLOAT, HALF, INT, SHORT
from simulator.graph.validate import check_writers
from simulator.graph.vertex import Output, Vector, Vertex

Pair = tuple[Tensor, Any]
Draw = Callable[..., Any]


class Fill(Vertex):
    out: Any = Output(Vector(FLOAT))

    def compute(self) -> None:
        self.out[:] = 1


def fresh(*shape: int) -> Tensor:
    return Graph(TARGETS["tiny"]).addVariable(FLOAT, shape, "v")


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


SHAPES = st.lists(st.integers(1, 4), min_size=1, max_size=4)


@settings(max_examples=300, deadline=None)
@given(st.data(), SHAPES)
def test_any_chain_of_views_equals_the_same_chain_on_numpy(
    data: st.DataObject, shape: list[int]
) -> None:
    tensor, array = chain(data, fresh(*shape), REORDERS + REPEATS)
    assert tensor.shape == array.shape
    np.testing.assert_array_equal(tensor.elements(), array)
    numbers = array.reshape(-1)
    assert tensor.containsAliases() == (len(np.unique(numbers)) < len(numbers))
    assert tensor.numElements() == array.size
    parts = [list(range(*region.interval)) for region in tensor.getVarRegions()]
    assert [number for part in parts for number in part] == numbers.tolist()
    for begin, end in tensor.getContiguousRegions():
        assert (np.diff(numbers[begin:end]) == 1).all()


@settings(max_examples=60, deadline=None)
@given(st.data(), SHAPES)
def test_a_copy_to_any_view_reaches_the_elements_that_numpy_names(
    data: st.DataObject, shape: list[int]
) -> None:
    values = Values()
    start = values.tensor(np.zeros(shape), "start")
    view, array = chain(data, start, REORDERS)
    source = values.tensor(1 + np.arange(array.size).reshape(array.shape), "source")
    values.program.add(Copy(source, view))
    expected = np.zeros(int(np.prod(shape)))
    expected[array.reshape(-1)] = 1 + np.arange(array.size)
    np.testing.assert_array_equal(values.run().read(start).reshape(-1), expected)


@settings(max_examples=60, deadline=None)
@given(st.data(), SHAPES)
def test_tensors_intersect_when_they_have_an_element_in_common(
    data: st.DataObject, shape: list[int]
) -> None:
    start = fresh(*shape)
    one, first = chain(data, start, REORDERS + REPEATS)
    other, second = chain(data, start, REORDERS + REPEATS)
    common = bool(set(first.reshape(-1).tolist()) & set(second.reshape(-1).tolist()))
    assert one.intersectsWith(other) == other.intersectsWith(one) == common


def test_slices_of_lists_of_intervals_lie_end_to_end() -> None:
    tensor = fresh(5)
    first, second, third = tensor.slices([[(0, 1), (3, 5)], (1, 2), 4])
    assert [t.elements().tolist() for t in (first, second, third)] == [[0, 3, 4], [1], [4]]


def test_iterating_gives_the_rows() -> None:
    assert [row.elements().tolist() for row in fresh(2, 2)] == [[0, 1], [2, 3]]


def test_variables_that_lie_side_by_side_are_regions_of_their_own() -> None:
    graph = Graph(TARGETS["tiny"])
    a, b = (graph.addVariable(FLOAT, [2], name) for name in "ab")
    both = concat(a, b)
    assert both.getContiguousRegions() == [(0, 2), (2, 4)]
    assert [(part.var, *part.interval) for part in both.getVarRegions()] == [(0, 0, 2), (1, 0, 2)]
    assert both.describe() == "a, b"
    assert not both.isContiguous()


def test_a_tensor_that_holds_a_constant_or_an_element_twice_cannot_be_written_in_parallel() -> None:
    graph = Graph(TARGETS["tiny"])
    variable = graph.addVariable(FLOAT, [2], "v")
    constant = graph.addConstant(FLOAT, [2], [1, 2], "c")
    assert variable.isParallelWriteable()
    assert concat(variable, constant).containsConstant()
    assert not concat(variable, constant).isParallelWriteable()
    assert not variable.broadcast(2, 0).isParallelWriteable()


def test_a_copy_to_a_repeated_tensor_is_refused() -> None:
    tensor = fresh(2, 2)
    with pytest.raises(GraphConnectionError, match="writes an element of v twice"):
        Copy(tensor, tensor[0].expand([0]).broadcast(2, 0))


def test_reinterpreting_keeps_the_bytes() -> None:
    values = Values()
    tensor = values.tensor([1.0, -2.0])
    # IEEE single precision: 1.0 is 3F800000, -2.0 is C0000000.
    bits = values.run().read(tensor.reinterpret(INT))
    assert bits.view(np.uint32).tolist() == [0x3F800000, 0xC0000000]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda t: t.slice((1, 2, 3)), r"slice of \(1, 2, 3\); a begin and an end are needed"),
        (lambda t: t.slice("a", 1), "slice of 'a'; numbers are needed"),
        (lambda t: t.slice([0], [1]), r"slice\(\[0\], \[1\]\) needs 2 numbers each"),
        (lambda t: t["a"], "index a of dimension 0; its size is 3"),
        (lambda t: t[0, 0, 0], "3 indexes for 2 dimensions"),
        (lambda t: t[..., ...], "2 indexes for 2 dimensions"),
        (lambda t: t[0][0][0], "index 0 of dimension 0; its size is 0"),
        (lambda t: t.reshapePartial(1, 3, [4]), r"dimensions \[1, 3\) of 2 dimensions"),
        (lambda t: t.flatten(2, 1), r"dimensions \[2, 1\) of 2 dimensions"),
        (lambda t: t.expand([3]), "expand before dimension 3 of 2 dimensions"),
        (lambda t: t.squeeze([0]), "squeeze of dimension 0; its size is 3, not 1"),
        (lambda t: t.broadcast(-1, 0), "broadcast: count of -1; at least 0 is needed"),
        (lambda t: t.subSample(0, 0), "subSample: stride of 0; at least 1 is needed"),
        (lambda t: t.upsample(2, 0, "linear"), "REPEAT is the one there is"),
        (lambda t: t.reverse(2), "dimension 2 of a tensor of 2 dimensions"),
        (lambda t: t.dimShufflePartial([0, 0], [0, 1]), "as many places as dimensions, each once"),
        (lambda t: t.reinterpret(HALF), "reinterpret as half of 2 bytes; float has 4"),
        (lambda t: t.reinterpret("int"), "type is 'int'; one such as poplar.FLOAT is needed"),
        (lambda t: concat(t, 1), "needs two tensors or a list of them"),
        (lambda t: concat([]), "needs at least one tensor"),
        (lambda t: concat(t, t, 2), "along dimension 2"),
        (lambda t: concat(t, fresh(3, 4)), "concat of"),
        (lambda t: concat(t, t.graph.addVariable(SHORT, [3, 4])), "concat of"),
    ],
)
def test_a_view_that_cannot_be_made_says_why(wrong: Any, said: str) -> None:
    with pytest.raises(PoplarError, match=said):
        wrong(fresh(3, 4))


def test_a_constant_that_lies_beside_a_variable_cannot_be_written_with_it() -> None:
    # Two floats each: their eight bytes follow one another, so that both are one interval.
    values = Values()
    graph = values.graph
    source = graph.addVariable(FLOAT, [4], "s")
    variable = graph.addVariable(FLOAT, [2], "v")
    constant = graph.addConstant(FLOAT, [2], [1, 2], "c")
    with pytest.raises(GraphConnectionError, match="writes constant 'c'"):
        Copy(source, concat(variable, constant))
    vertex = graph.addVertex(graph.addComputeSet("fill"), Fill, tile=0)
    graph.connect(vertex["out"], concat(variable, constant))
    graph.setPerfEstimate(vertex, 1)
    with pytest.raises(GraphConnectionError, match=r"Fill\[0\] .* 'out': writes constant 'c'"):
        check_writers(graph)
