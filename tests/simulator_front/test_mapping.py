"""The mapping of variables to tiles."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from value_program import Values

from simulator.graph.errors import PoplarError
from simulator.graph.graph import Graph
from simulator.graph.machine.target import TARGETS, make_target
from simulator.graph.mapping import Mapping, MappingTable, last_wins
from simulator.graph.program import Copy
from simulator.graph.types import CHAR, FLOAT, HALF, LONGLONG, Type
from simulator.graph.validation.graphs import check_mapped
from simulator.poplibs import poputil

INTERVALS = st.lists(
    st.tuples(st.integers(0, 20), st.integers(1, 10), st.integers(0, 3)), min_size=1, max_size=8
)


@settings(max_examples=60, deadline=None)
@given(INTERVALS)
def test_the_last_mapping_of_a_byte_is_the_one_that_counts(
    intervals: list[tuple[int, int, int]],
) -> None:
    expected = np.full(40, -1)
    for begin, length, tile in intervals:
        expected[begin : begin + length] = tile
    begins, lengths, tiles = (np.array(column) for column in zip(*intervals, strict=True))
    low, high, tile = last_wins(begins, begins + lengths, tiles)
    found = np.full(40, -1)
    for a, b, t in zip(low, high, tile, strict=True):
        assert (found[a:b] == -1).all()
        found[a:b] = t
    np.testing.assert_array_equal(found, expected)


@settings(max_examples=60, deadline=None)
@given(INTERVALS, st.lists(st.booleans(), min_size=8, max_size=8))
def test_a_table_that_is_asked_between_mappings_knows_the_last_of_each_byte(
    intervals: list[tuple[int, int, int]], asked: list[bool]
) -> None:
    # Three variables with a gap between the first two; what is mapped may span several.
    bounds = np.array([0, 10, 16]), np.array([8, 16, 40])
    table, expected = MappingTable(), np.full(40, -1)
    for number, ((begin, length, tile), ask) in enumerate(zip(intervals, asked, strict=False)):
        end = begin + length
        if number % 2:
            table.add_one(begin, end, tile)
        else:
            table.add(np.array([begin]), np.array([end]), np.array([tile]))
        expected[begin:end] = tile
        if ask:
            table.settled(bounds, [number % 3])
    for variable, (low, high) in enumerate(zip(*bounds, strict=True)):
        found = table.settled(bounds, [variable])
        tiles = np.full(40, -1)
        for a, b, t in zip(found.begin, found.end, found.tile, strict=True):
            tiles[a:b] = t
        np.testing.assert_array_equal(tiles[low:high], expected[low:high])
        assert (tiles[:low] == -1).all() and (tiles[high:] == -1).all()
        assert (found.variable == variable).all()
    everything = table.settled(bounds)
    assert (np.diff(everything.begin) > 0).all()


@settings(max_examples=60, deadline=None)
@given(INTERVALS, INTERVALS)
def test_covered_counts_the_mapped_bytes_of_an_interval(
    mapped: list[tuple[int, int, int]], asked: list[tuple[int, int, int]]
) -> None:
    is_mapped = np.zeros(40, dtype=bool)
    for begin, length, _ in mapped:
        is_mapped[begin : begin + length] = True
    begins, lengths, tiles = (np.array(column) for column in zip(*mapped, strict=True))
    pieces = last_wins(begins, begins + lengths, tiles)
    mapping = Mapping(*pieces, pieces[2])
    low, size, _ = (np.array(column) for column in zip(*asked, strict=True))
    expected = [is_mapped[a : a + n].sum() for a, n in zip(low, size, strict=True)]
    assert mapping.covered(low, low + size).tolist() == expected


def test_pieces_are_cut_where_the_variable_changes() -> None:
    graph = Graph(TARGETS["tiny"])
    for name in ("a", "b"):
        graph.setTileMapping(graph.addVariable(FLOAT, [2], name), 1)
    table = graph.mapping_table()
    assert table.begin.tolist() == [0, 8]
    assert table.variable.tolist() == [0, 1]


def test_whole_tensors_and_parts_are_mapped_in_the_order_of_the_calls() -> None:
    graph = Graph(TARGETS["tiny"])
    tensor = graph.addVariable(FLOAT, [6], "v")
    graph.setTileMapping(tensor, 1)
    graph.setTileMapping(tensor, [[(0, 3)]])
    graph.setTileMapping(tensor[1], 3)
    graph.setTileMapping(tensor, [[], [], [(5, 6)]])
    assert graph.getTileMapping(tensor) == [[(0, 1), (2, 3)], [(3, 5)], [(5, 6)], [(1, 2)]]


def test_a_mapping_can_be_given_tile_by_tile() -> None:
    graph = Graph(TARGETS["tiny"])
    tensor = graph.addVariable(FLOAT, [6], "v")
    wanted = [[(0, 2)], [], [(4, 6)], [(2, 4)]]
    graph.setTileMapping(tensor, wanted)
    assert graph.getTileMapping(tensor) == wanted


@pytest.mark.parametrize("tile", [-1, 4])
def test_a_tile_out_of_range_names_the_variable_and_the_tiles(tile: int) -> None:
    graph = Graph(TARGETS["tiny"])
    tensor = graph.addVariable(FLOAT, [6], "weights")
    with pytest.raises(PoplarError, match=f"'weights': tile {tile}; .* tiles 0 to 3"):
        graph.setTileMapping(tensor, tile)


def test_the_first_unmapped_element_is_named() -> None:
    graph = Graph(TARGETS["tiny"])
    tensor = graph.addVariable(FLOAT, [6], "weights")
    graph.setTileMapping(tensor[:4], 1)
    graph.createHostRead("weights", tensor)
    with pytest.raises(PoplarError, match="'weights': element 4 of 6 is not mapped to a tile"):
        check_mapped(graph)


def test_a_variable_that_nothing_uses_needs_no_tile() -> None:
    graph = Graph(TARGETS["tiny"])
    graph.addVariable(FLOAT, [6], "unused")
    check_mapped(graph)


def test_linear_mapping_gives_each_tile_at_least_128_bytes() -> None:
    # 100 floats are 50 grains of 2; a tile needs 16 of them, so 3 tiles: 0, 16, 33, 50 grains.
    graph = Graph(TARGETS["mk1"])
    tensor = graph.addVariable(FLOAT, [100], "v")
    poputil.mapTensorLinearly(graph, tensor)
    parts = [part for tile in graph.getTileMapping(tensor) for part in tile]
    assert parts == [(0, 32), (32, 66), (66, 100)]


def test_linear_mapping_fills_all_tiles_evenly_when_there_is_enough() -> None:
    # 2,000,001 halves are 500,001 grains of 4: 412 a tile at most, over ceil(500001 / 412) = 1214.
    graph = Graph(TARGETS["mk1"])
    tensor = graph.addVariable(HALF, [2_000_001], "v")
    mapping = poputil.calcLinearTileMapping(graph, tensor)
    sizes = [high - low for tile in mapping for low, high in tile]
    assert len(sizes) == 1214
    assert sum(sizes) == 2_000_001
    assert set(sizes[:-1]) <= {411 * 4, 412 * 4}
    graph.setTileMapping(tensor, mapping)
    assert graph.getTileMapping(tensor) == mapping


def test_the_mapping_round_trips_through_views() -> None:
    graph = Graph(TARGETS["tiny"])
    tensor = graph.addVariable(FLOAT, [4, 4], "v")
    for i in range(4):
        graph.setTileMapping(tensor[:, i], i)
    assert graph.getTileMapping(tensor)[2] == [(2, 3), (6, 7), (10, 11), (14, 15)]
    assert graph.getTileMapping(tensor.transpose())[2] == [(8, 12)]


def tiles_by_the_rule(
    elements: int, size: int, tiles: int, least: int, grain: int
) -> list[list[tuple[int, int]]]:
    """Work out a linear mapping tile by tile: vectors of 8 bytes, at least 128 bytes a tile."""
    grain = grain or max(8 // size, 1)
    least = least or math.ceil(128 / size)
    grains = math.ceil(elements / grain)
    mapping: list[list[tuple[int, int]]] = [[] for _ in range(tiles)]
    if grains == 0:
        return mapping
    enough = max(1, grains // max(1, math.ceil(least / grain)))
    each = max(math.ceil(grains / tiles), math.ceil(grains / enough))
    used = math.ceil(grains / each)
    for tile in range(used):
        low, high = (grain * (grains * number // used) for number in (tile, tile + 1))
        mapping[tile] = [(low, min(high, elements))]
    return mapping


@settings(max_examples=80, deadline=None)
@given(
    st.integers(0, 3000),
    st.sampled_from([CHAR, HALF, FLOAT, LONGLONG]),
    st.integers(0, 90),
    st.integers(0, 9),
)
def test_linear_mapping_follows_the_rule_of_grains(
    elements: int, dtype: Type, least: int, grain: int
) -> None:
    graph = Graph(make_target("mk2", tiles_per_ipu=20))
    tensor = graph.addVariable(dtype, [elements], "v")
    expected = tiles_by_the_rule(elements, dtype.size, 20, least, grain)
    assert poputil.calcLinearTileMapping(graph, tensor, least, grain) == expected
    poputil.mapTensorLinearly(graph, tensor, minElementsPerTile=least, grainSize=grain)
    assert graph.getTileMapping(tensor) == expected


def test_a_linear_mapping_of_a_view_goes_by_the_order_of_its_elements() -> None:
    # 64 floats are two tiles of 32; the columns of an 8 x 8 matrix: four columns on each.
    graph = Graph(TARGETS["tiny"])
    tensor = graph.addVariable(FLOAT, [8, 8], "v")
    poputil.mapTensorLinearly(graph, tensor.transpose())
    assert graph.getTileMapping(tensor[0])[:2] == [[(0, 4)], [(4, 8)]]


def test_negative_grains_are_refused() -> None:
    graph = Graph(TARGETS["tiny"])
    with pytest.raises(PoplarError, match="grainSize is -1; a number is needed"):
        poputil.mapTensorLinearly(graph, graph.addVariable(FLOAT, [8], "v"), grainSize=-1)


def test_a_duplicate_lies_where_the_tensor_lies_and_holds_its_values() -> None:
    values = Values()
    tensor = values.tensor(np.arange(64).reshape(8, 8))
    copy = poputil.duplicate(values.graph, tensor.transpose(), values.program, "copy")
    later = values.graph.addConstant(FLOAT, [8, 8], 0)
    values.graph.setTileMapping(later, 0)
    values.program.add(Copy(later, tensor))
    assert values.graph.getTileMapping(copy) == values.graph.getTileMapping(tensor.transpose())
    np.testing.assert_array_equal(values.run().read(copy), np.arange(64).reshape(8, 8).T)
