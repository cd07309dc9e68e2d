"""How the values of a reduction lie in memory decides which vertices reduce them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from value_program import Values, numbers

from simulator.graph.tensors.tensor import concat
from simulator.graph.types import FLOAT, HALF, Type
from simulator.poplibs import popops, poputil
from simulator.poplibs.popops import Operation
from simulator.poplibs.popops.reduction import regions, stages


def vertices(values: Values) -> list[tuple[str, list[int]]]:
    """List type and cycles of each group of vertices."""
    groups = values.graph.vertex_groups()
    return [(group.codelet.name, group.cycles.tolist()) for group in groups]


def test_outputs_with_their_values_in_one_row_are_a_continuous_reduction() -> None:
    # 12 rows of 4 floats on a tile: two for each of six workers, 17 + 2 * (12 + 4 / 2) cycles.
    values = Values(tiles_per_ipu=1)
    array = numbers(12, 4)
    out = popops.reduce(values.graph, values.tensor(array), [1], Operation.ADD, values.program)
    name = "popops::Reduce<popops::ReduceAdd,float,float,false,1>"
    assert vertices(values) == [(name, [45] * 6)]
    field = values.graph.vertex_groups()[0].fields["partials"]
    assert (field.begins.tolist(), field.lengths.tolist()) == ([0, 8, 16, 24, 32, 40], [8] * 6)
    np.testing.assert_allclose(values.run().read(out), array.sum(axis=1), rtol=1e-5)


def test_equal_runs_of_values_are_added_up_before_the_sum_of_each_run() -> None:
    # Four rows of 3 x 6 floats: 18 columns in shares of 4, 16 + 2 * (3 + 5 + 3 + 3) cycles, and one
    # of 2, 16 + 14; then three runs of 6 floats, 17 + 3 + 2 cycles.
    values = Values(tiles_per_ipu=1)
    array = numbers(4, 3, 6)
    out = popops.reduce(values.graph, values.tensor(array), [0, 2], Operation.ADD, values.program)
    name = "popops::Reduce<popops::ReduceAdd,float,float,false,"
    assert vertices(values) == [(f"{name}3>", [44] * 4 + [30]), (f"{name}2>", [22] * 3)]
    np.testing.assert_allclose(values.run().read(out), array.sum(axis=(0, 2)), rtol=1e-5)


def test_squares_are_added_once_when_runs_come_first() -> None:
    values = Values(tiles_per_ipu=2)
    array = numbers(4, 3, 6)
    tensor = values.tensor(array)
    out = popops.reduce(values.graph, tensor, [0, 2], Operation.SQUARE_ADD, values.program)
    expected = np.square(array).sum(axis=(0, 2))
    np.testing.assert_allclose(values.run().read(out), expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("dtype", "operation", "least"),
    [(FLOAT, Operation.ADD, 8), (HALF, Operation.MAX, 16), (HALF, Operation.ADD, 8)],
)
def test_outputs_are_spread_by_four_vectors_of_what_is_reduced_last(
    dtype: Type, operation: Operation, least: int
) -> None:
    # 64 columns, each with rows on all 16 tiles; sums of halves are floats until the end.
    values = Values(tiles_per_ipu=16)
    tensor = values.tensor(np.ones((16, 64)), dtype=dtype)
    out = popops.reduce(values.graph, tensor, [0], operation, values.program)
    mapping = [part for part in values.graph.getTileMapping(out) if part]
    assert mapping == [[(low, low + least)] for low in range(0, 64, least)]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(1, 9), min_size=3, max_size=4),
    st.sampled_from([HALF, FLOAT]),
    st.integers(1, 7),
)
def test_runs_on_uneven_tiles_give_numpys_sums(shape: list[int], dtype: Type, tiles: int) -> None:
    values = Values(tiles_per_ipu=tiles)
    array = np.random.default_rng(tiles).integers(-4, 5, shape).astype(np.float32)
    tensor = values.tensor(array, dtype=dtype)
    out = popops.reduce(values.graph, tensor, [0, 2], Operation.ADD, values.program)
    # Sums of few small whole numbers are exact in both types.
    np.testing.assert_array_equal(values.run().read(out), array.sum(axis=(0, 2)))


def of_a_block(values: Values, shape: tuple[int, ...], size: int) -> list[object]:
    """Reduce all but channels, of which `size` lie together; list all that vertices are."""
    batch, groups, field = shape
    tensor = values.graph.addVariable(FLOAT, (batch, groups, field, size))
    poputil.mapTensorLinearly(values.graph, tensor, 4 * size, size)
    view = tensor.dimShuffle([0, 1, 3, 2]).reshape((batch, groups * size, field))
    popops.reduce(values.graph, view, [0, 2], Operation.ADD, values.program)
    return [
        (group.codelet.name, group.tile.tolist(), group.cycles.tolist(), name, *columns)
        for group in values.graph.vertex_groups()
        for name, field in sorted(group.fields.items())
        for columns in [(field.begins.tolist(), field.lengths.tolist(), field.starts.tolist())]
    ]


@pytest.mark.parametrize("size", [1, 2, 6, 8])
@pytest.mark.parametrize("tiles", [1, 3, 7])
def test_blocks_of_channels_are_reduced_by_the_vertices_of_their_channels(
    size: int, tiles: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_blocks = of_a_block(Values(tiles_per_ipu=tiles), (2, 3, 5), size)
    monkeypatch.setattr(regions, "in_rows", lambda *_: None)
    one_by_one = of_a_block(Values(tiles_per_ipu=tiles), (2, 3, 5), size)
    monkeypatch.setattr(stages, "find_blocks", lambda partials, number, *_: (partials, number))
    assert in_blocks == one_by_one == of_a_block(Values(tiles_per_ipu=tiles), (2, 3, 5), size)


@pytest.mark.parametrize("rows", [[0, 1], [0, 0], [1, 0, 1]])
def test_a_row_of_channels_that_stands_twice_counts_twice(rows: list[int]) -> None:
    values = Values(tiles_per_ipu=3)
    tensor = values.tensor(np.arange(24.0).reshape(2, 3, 4))
    view = concat([tensor[row].expand([0]) for row in rows]).dimShuffle([0, 2, 1])
    out = popops.reduce(values.graph, view, [0, 2], Operation.ADD, values.program)
    expected = np.arange(24.0).reshape(2, 3, 4)[rows].sum(axis=(0, 1))
    np.testing.assert_array_equal(values.run().read(out), expected)
