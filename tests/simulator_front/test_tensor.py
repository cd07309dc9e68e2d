"""Tensors are views of the variables in the arena."""

from __future__ import annotations

import pytest

from simulator.graph.errors import PoplarError
from simulator.graph.graph import Graph
from simulator.graph.machine.target import TARGETS
from simulator.graph.tensors.tensor import Tensor, broadcast_to, concat
from simulator.graph.types import FLOAT, INT


def fresh(*shape: int) -> Tensor:
    return Graph(TARGETS["tiny"]).addVariable(FLOAT, shape, "v")


def test_a_row_is_one_region_and_a_column_one_for_each_row() -> None:
    tensor = fresh(3, 4)
    assert tensor[1].getContiguousRegions() == [(0, 4)]
    assert tensor[:, 1].getContiguousRegions() == [(0, 1), (1, 2), (2, 3)]


def test_transposing_twice_joins_the_regions_again() -> None:
    assert fresh(3, 4).transpose().transpose().isContiguous()


def test_slices_take_a_begin_and_an_end_for_every_dimension() -> None:
    tensor = fresh(4, 4).slice([1, 1], [3, 4])
    assert tensor.elements().tolist() == [[5, 6, 7], [9, 10, 11]]


def test_negative_indexes_count_from_the_end() -> None:
    assert fresh(3, 4)[-1, -2].elements().tolist() == 10


def test_concat_along_columns_alternates_the_rows() -> None:
    tensor = fresh(2, 2)
    both = concat([tensor, tensor.transpose()], 1)
    assert both.elements().tolist() == [[0, 1, 0, 2], [2, 3, 1, 3]]


def test_expand_inserts_dimensions_of_one() -> None:
    assert fresh(2, 3).expand([0, 1]).shape == (1, 2, 1, 3)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda t: t[4], "index 4 of dimension 0; its size is 3"),
        (lambda t: t.slice(1, 6, 1), r"slice \[1, 6\) of dimension 1; its size is 4"),
        (lambda t: t.reshape([5]), "12 elements against 5"),
        (lambda t: t.dimShuffle([0, 0]), "no order of its dimensions"),
        (lambda t: t.dim(2), "dimension 2 of a tensor of 2 dimensions"),
        (lambda t: concat([t, t[0]]), "concat of"),
        (lambda t: broadcast_to(t, (5, 4)), "does not broadcast"),
    ],
)
def test_a_view_that_does_not_fit_names_the_variable(wrong: object, said: str) -> None:
    with pytest.raises(PoplarError, match=said) as caught:
        wrong(fresh(3, 4))  # type: ignore[operator]
    assert "v: float[3, 4]" in str(caught.value)


def test_variables_of_any_type_begin_at_whole_words() -> None:
    graph = Graph(TARGETS["tiny"])
    graph.addVariable(FLOAT, [3], "a")
    graph.addVariable(INT, [1], "b")
    assert [variable.offset for variable in graph.variables] == [0, 16]
    assert graph.arena_bytes == 20


def test_a_clone_keeps_order_in_memory_and_mapping() -> None:
    graph = Graph(TARGETS["tiny"])
    rows = graph.addVariable(FLOAT, [2, 3], "v")
    for tile in range(2):
        graph.setTileMapping(rows[tile], tile)
    copy = graph.clone(rows.transpose(), "copy")
    assert copy.shape == (3, 2)
    assert copy[:, 1].isContiguous()
    assert graph.getTileMapping(copy.transpose())[1] == [(3, 6)]
