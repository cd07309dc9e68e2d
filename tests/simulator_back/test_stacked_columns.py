"""Groups of columns that lie row under row are seen in loops as they are in intervals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.graph.geometry.intervals import spread
from simulator.graph.geometry.strides import stepped
from simulator.graph.graph import Graph
from simulator.graph.machine.target import make_target
from simulator.graph.types import FLOAT
from simulator.poplibs.popops.slicing.planned.block_fields import _stacked_columns

SHAPES = {
    "whole": ([6, 4], [0, 1], (6, 4)),
    "columns": ([4, 6], [1, 0], (6, 4)),
    "groups": ([3, 6, 4], [1, 0, 2], (6, 12)),
    "groups of groups": ([2, 3, 6, 4], [2, 1, 0, 3], (6, 24)),
    "no groups": ([6, 4, 3], [0, 2, 1], (6, 12)),
    "one row": ([3, 1, 4], [1, 0, 2], (1, 12)),
    "rows in two loops": ([2, 6, 3, 4], [0, 2, 1, 3], (6, 24)),
}


@pytest.mark.parametrize("name", SHAPES)
def test_stacked_columns_are_those_of_the_intervals(name: str) -> None:
    shape, order, matrix = SHAPES[name]
    graph = Graph(make_target("tiny"))
    view = graph.addVariable(FLOAT, shape, "v").dimShuffle(order).reshape(matrix)
    listed = view.at(view.shape, view.intervals())
    found, wanted = _stacked_columns(view), _stacked_columns(listed)
    assert (
        (found is None)
        == (wanted is None)
        == (name not in ("columns", "groups", "groups of groups"))
    )
    if found is not None and wanted is not None:
        np.testing.assert_array_equal(found, wanted)


@settings(deadline=None, max_examples=100)
@given(loops=st.lists(st.tuples(st.integers(1, 5), st.integers(0, 40)), max_size=4))
def test_an_element_at_a_position_is_that_of_the_intervals(loops: list[tuple[int, int]]) -> None:
    places = stepped(7, loops)
    listed = spread(*places.intervals())
    np.testing.assert_array_equal(places.at(np.arange(len(listed))), listed)
