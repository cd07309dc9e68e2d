"""Every view of a tensor against NumPy on an array of element numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from value_program import Values
from view_chains import REORDERS, REPEATS, chain

from simulator.graph.errors import GraphConnectionError, PoplarError
from simulator.graph.geometry.intervals import from_elements
from simulator.graph.geometry.strides import Strides
from simulator.graph.graph import Graph
from simulator.graph.machine.target import TARGETS
from simulator.graph.program import Copy
from simulator.graph.tensors.regions import variables_of
from simulator.graph.tensors.tensor import Tensor, broadcast_to, concat
from simulator.graph.types import FLOAT, HALF, INT, SHORT
from simulator.graph.validation.graphs import check_writers
from simulator.graph.vertices.vertex import Output, Vector, Vertex


class Fill(Vertex):
    out: Any = Output(Vector(FLOAT))

    def compute(self) -> None:
        self.out[:] = 1


def fresh(*shape: int) -> Tensor:
    return Graph(TARGETS["tiny"]).addVariable(FLOAT, shape, "v")


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
    for one, other in zip(tensor.intervals(), from_elements(numbers), strict=True):
        np.testing.assert_array_equal(one, other)
    assert tensor.containsAliases() == (len(np.unique(numbers)) < len(numbers))
    assert tensor.numElements() == array.size
    parts = [list(range(*region.interval)) for region in tensor.getVarRegions()]
    assert [number for part in parts for number in part] == numbers.tolist()
    for begin, end in tensor.getContiguousRegions():
        assert (np.diff(numbers[begin:end]) == 1).all()


def test_a_view_of_many_elements_in_loops_lists_none_of_them() -> None:
    table = fresh(30_522, 768)
    columns = table.transpose().reshape([12, 64, 30_522]).dimShuffle([1, 0, 2])[1:3, :, :30_000]
    assert columns.places == Strides(1, ((2, 1), (12, 64), (30_000, 768)))
    crossed = table[:3, :5].transpose().reshape([3, 5])[:, 1:]  # loops of 5 and 3 do not fit
    assert crossed.elements().tolist()[1] == [2, 768 + 2, 2 * 768 + 2, 3]


def test_a_clone_of_a_transposed_view_has_its_order_in_memory_and_its_tiles() -> None:
    whole = fresh(4, 6)
    for tile in range(4):
        whole.graph.setTileMapping(whole[tile], tile)
    copy = whole.graph.clone(whole.transpose()[1:4])
    places = copy.elements() - copy.elements().min()
    assert places.tolist() == [[0, 3, 6, 9], [1, 4, 7, 10], [2, 5, 8, 11]]
    parts = whole.graph.getTileMapping(copy)
    assert parts[:4] == [[(t, t + 1), (4 + t, 5 + t), (8 + t, 9 + t)] for t in range(4)]


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


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=3), st.lists(st.integers(0, 3), max_size=4))
def test_broadcasting_follows_numpy(shape: list[int], wanted: list[int]) -> None:
    tensor = fresh(*shape)
    try:
        expected = np.broadcast_to(tensor.elements(), wanted)
    except ValueError:
        with pytest.raises(PoplarError, match="does not broadcast"):
            broadcast_to(tensor, tuple(wanted))
    else:
        np.testing.assert_array_equal(broadcast_to(tensor, tuple(wanted)).elements(), expected)


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
        (lambda t: t.slice([0, "a"], [1, 2]), r"slice\(\[0, 'a'\], \[1, 2\]\) needs numbers"),
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


def test_a_tensor_is_neither_true_nor_false() -> None:
    # Its length would tell: that of none of its elements, and of one of no dimensions none at all.
    for shape in ([], [0], [3]):
        with pytest.raises(PoplarError, match="neither true nor false; compare it with None"):
            bool(fresh(*shape))


@settings(max_examples=100, deadline=None)
@given(st.data(), SHAPES)
def test_a_view_is_of_the_variables_that_hold_an_element_of_it(
    data: st.DataObject, shape: list[int]
) -> None:
    graph = Graph(TARGETS["tiny"])
    parts = [graph.addVariable(FLOAT, sizes) for sizes in (shape, [0], [3, *shape])]
    tensor, array = chain(data, concat(parts[2], parts[0].expand([0])), REORDERS + REPEATS)
    held = [n for n, part in enumerate(parts) if np.isin(array, part.elements()).any()]
    assert variables_of(tensor) == held
