"""Helpers of poputil: mappings by balance and by use, copies, broadcasting, groups and regions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from value_program import Values, numbers

from simulator.graph.errors import poplibs_error
from simulator.graph.graph import Graph
from simulator.graph.machine.target import TARGETS, make_target
from simulator.graph.program import Copy
from simulator.graph.tensors.tensor import Tensor, concat
from simulator.graph.tensors.variables import TensorCloneMethod
from simulator.graph.types import BOOL, FLOAT, HALF, INT
from simulator.poplibs import popops, poputil
from simulator.poplibs.poputil.mapping_by_use import Uses, _uses, spread_by_use

MK1 = TARGETS["mk1"]


def on_tiles(values: Values, tiles: list[int], name: str = "t") -> Tensor:
    """Add a variable whose element i lies on tiles[i]."""
    tensor = values.graph.addVariable(FLOAT, [len(tiles)], name)
    for place, tile in enumerate(tiles):
        values.graph.setTileMapping(tensor[place], tile)
    return tensor


def tiles_of(values: Values, tensor: Tensor) -> list[int]:
    found = np.full(tensor.numElements(), -1)
    for low, high, tile in zip(*values.graph.tile_ranges(tensor), strict=True):
        found[low:high] = tile
    return found.tolist()


# Balance
def test_imbalance_is_what_the_fullest_tile_has_above_its_share() -> None:
    values = Values()
    tensor = on_tiles(values, [0] * 10 + [1] * 70 + [2] * 10 + [3] * 10)
    assert poputil.getTileImbalance(values.graph, tensor) == 45
    assert poputil.getTileImbalance(values.graph, tensor, 40) == 30
    assert poputil.getTileImbalance(values.graph.getTileMapping(tensor), 0, 60) == 10
    assert poputil.getTileImbalance([[(0, 3)], []]) == 1


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_rebalancing_gives_each_tile_its_share_and_moves_no_more(data: st.DataObject) -> None:
    values = Values()
    tiles = data.draw(st.lists(st.integers(0, 3), min_size=16, max_size=60))
    grain = data.draw(st.integers(1, 4))
    tensor = on_tiles(values, tiles)
    poputil.rebalanceTensor(values.graph, tensor, 1, grain, 0)
    found = tiles_of(values, tensor)
    before, after = (np.bincount(x, minlength=4) for x in (tiles, found))
    if before.max() <= -(-len(tiles) // 4):
        assert found == tiles
        return
    grains = -(-len(tiles) // grain)
    bounds = [min(grains * tile // 4 * grain, len(tiles)) for tile in range(5)]
    assert after.tolist() == np.diff(bounds).tolist()
    moved = sum(a != b for a, b in zip(tiles, found, strict=True))
    assert moved == np.maximum(before - after, 0).sum()


def test_small_and_balanced_tensors_stay() -> None:
    values = Values()
    few = on_tiles(values, [2] * 100)  # 25 a tile is less than 128 bytes
    poputil.rebalanceTensor(values.graph, few, imbalanceThreshold=0)
    assert set(tiles_of(values, few)) == {2}
    many = on_tiles(values, [0] * 64 + [1] * 30 + [2] * 30 + [3] * 30)
    poputil.rebalanceTensor(values.graph, many)  # 25 too many; 128 are let be
    assert tiles_of(values, many)[:64] == [0] * 64


def test_outputs_lie_like_the_operand_that_is_spread_best() -> None:
    values = Values()
    single = on_tiles(values, [0, 1, 2, 3] * 4)
    pairs = on_tiles(values, [0, 0, 1, 1] * 4)
    constant = values.graph.addConstant(FLOAT, [16], 0)
    out = values.graph.addVariable(FLOAT, [16], "out")
    operands = [constant, pairs, single]

    def mapped(*given: int) -> list[int]:
        poputil.mapOutputForElementWiseOp(values.graph, operands, out, *given)
        return tiles_of(values, out)

    assert mapped() == [0, 1, 2, 3] * 4
    assert mapped(2) == [0, 0, 1, 1] * 4
    assert mapped(2, 8) == [0] * 16  # 8 grains a tile, which none of them has: in order
    made = popops.createOutputForElementWiseOp(values.graph, [pairs, single], HALF)
    assert (made.dtype, tiles_of(values, made)) == (HALF, [0, 1, 2, 3] * 4)
    linear = popops.createOutputForElementWiseOp(values.graph, [constant], FLOAT)
    assert tiles_of(values, linear) == [0] * 16


def test_linear_mappings_take_shapes_too() -> None:
    values = Values()
    found = poputil.calcLinearTileMapping(values.graph, [3, 4], 1, 2)
    assert found == [[(0, 4)], [(4, 8)], [(8, 12)], []]  # 6 grains, 2 a tile at most


# Use
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_elements_go_to_tiles_that_use_them_evenly(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 30))
    tiles = st.sets(st.integers(0, 5), min_size=1, max_size=4)
    used = [data.draw(tiles) for _ in range(count)]
    pairs = [(element, tile) for element, tile_set in enumerate(used) for tile in tile_set]
    element, tile = np.array(pairs).T
    found = spread_by_use(Uses(element, tile, count), 1, 1)
    assert all(int(where) in users for where, users in zip(found, used, strict=True))
    for users in {frozenset(x) for x in used}:
        alike = [int(found[i]) for i in range(count) if used[i] == users]
        counts = np.bincount(alike, minlength=6)[sorted(users)]
        assert counts.max() <= -(-len(alike) // len(users))


def test_a_broadcast_operand_lies_where_it_is_used() -> None:
    values = Values()
    full = values.graph.addVariable(FLOAT, [6, 8], "full")
    for row in range(6):
        values.graph.setTileMapping(full[row], row // 2)
    rows = poputil.createBroadcastOperand(values.graph, full, HALF, 0)
    assert (rows.shape, rows.dtype) == ((6,), HALF)
    assert tiles_of(values, rows) == [0, 0, 1, 1, 2, 2]
    columns = poputil.createBroadcastOperand(values.graph, full, FLOAT, 1)
    assert tiles_of(values, columns) == [0, 0, 0, 1, 1, 1, 2, 2]
    apart = poputil.createBroadcastOperand(values.graph, full, FLOAT, 1, True)
    assert set(tiles_of(values, apart)) == {0, 1, 2}


@pytest.mark.parametrize("size", [1, 2, 4])
@pytest.mark.parametrize("grain", [1, 3, 8])
def test_a_channel_is_used_on_the_tiles_of_its_elements(size: int, grain: int) -> None:
    values = Values(tiles_per_ipu=5)
    tensor = values.graph.addVariable(FLOAT, [2, 3, 5, size], "groups")
    poputil.mapTensorLinearly(values.graph, tensor, grain, grain)
    channels = tensor.dimShuffle([0, 1, 3, 2]).reshape([2, 3 * size, 5])
    tiles = np.array(tiles_of(values, channels)).reshape(2, 3 * size, 5)
    expected = {(c, tile) for c in range(3 * size) for tile in tiles[:, c].flat}
    uses = _uses(values.graph, channels, 1)
    assert sorted(expected) == list(zip(uses.element, uses.tile, strict=True))


def test_a_tracker_maps_what_it_was_told_of() -> None:
    values = Values()
    left = values.graph.addVariable(FLOAT, [8], "left")
    right = values.graph.addVariable(FLOAT, [4], "right")
    tracker = poputil.TensorUseTracker(4)
    assert tracker.empty()
    tracker.add(values.graph, 1, left[:4])
    tracker.add(values.graph, 3, concat(left[2:6], right[:2]))
    tracker.mapTensorsByUse(values.graph, 1, 1)
    assert tiles_of(values, left) == [1, 1, 1, 3, 3, 3, -1, -1]
    assert tiles_of(values, right) == [3, 3, -1, -1]
    tracker.mapTensorsByUse(values.graph, 2, 1, extendPartialUsage=True)
    assert tiles_of(values, left) == [1, 1, 1, 1, 3, 3, 3, 3]


# Copies
def test_clones_and_copies_go_to_the_same_places_of_another_ipu() -> None:
    values = Values(num_ipus=2)
    tensor = values.tensor(numbers(2, 70))
    copy = poputil.copyToIpu(values.graph, tensor, values.program, 1, "there")
    assert tiles_of(values, copy) == [tile + 4 for tile in tiles_of(values, tensor)]
    back, source, target = poputil.createIpuCopy(values.graph, copy, 0)
    values.program.add(Copy(source, target))
    assert tiles_of(values, back) == tiles_of(values, tensor)
    storage = values.run()
    np.testing.assert_array_equal(storage.read(back), storage.read(tensor))
    several = poputil.cloneN(values.graph, tensor, 3)
    assert several.shape == (3, 2, 70)
    assert tiles_of(values, several[2]) == tiles_of(values, tensor)


# Shapes
def test_broadcasting_follows_numpy() -> None:
    values = Values()
    a, b, c = (values.tensor(numbers(*s)) for s in ((3, 1), (4,), (2, 1, 1)))
    assert [t.shape for t in poputil.broadcastToMatch(a, b)] == [(3, 4)] * 2
    assert [t.shape for t in poputil.broadcastToMatch(a, b, c)] == [(2, 3, 4)] * 3
    assert poputil.broadcastToMatch(b, [5, 4]).shape == (5, 4)
    assert [t.shape for t in poputil.expandToMatchRanks(b, c)] == [(1, 1, 4), (2, 1, 1)]
    assert poputil.canBroadcastToMatch(a, b)
    assert not poputil.canBroadcastToMatch(b, values.tensor(numbers(3)))


def test_dimensions_are_factored_and_put_together_again() -> None:
    values = Values()
    tensor = values.tensor(np.arange(2 * 6 * 4).reshape(2, 6, 4))
    split = poputil.factorDims(tensor, [3, 2], 1)
    expected = tensor.elements().reshape(2, 2, 3, 2, 2).transpose(0, 1, 3, 2, 4)
    np.testing.assert_array_equal(split.elements(), expected)
    again = poputil.unfactorDims(split, 2, 1)
    np.testing.assert_array_equal(again.elements(), tensor.elements())


# Groups
def test_groups_are_found_from_the_innermost_outwards() -> None:
    graph = Graph(make_target("tiny"))
    # In memory: [2][3] blocks of [4 channels][8 columns], of a tensor [channels 12][columns 16].
    blocks = graph.addVariable(FLOAT, [3, 2, 4, 8], "blocks")
    graph.setTileMapping(blocks, 0)
    tensor = blocks.dimShuffle([0, 2, 1, 3]).reshape([12, 16])
    assert poputil.detectInnermostGrouping(graph, tensor) == 8
    assert poputil.detectDimGroupings(graph, tensor) == [(1, 8), (0, 4), (1, 2), (0, 3)]
    assert poputil.detectInnermostGrouping(graph, tensor.transpose()) == 0
    graph.setTileMapping(blocks.slice(4, 8, 3), 1)  # groups end where the tile changes
    assert poputil.detectDimGroupings(graph, tensor) == [(1, 4)]


def test_a_dimension_is_split_where_its_lines_leave_a_tile() -> None:
    values = Values(num_ipus=2)
    tensor = values.graph.addVariable(FLOAT, [4, 3], "t")
    for row in range(4):
        values.graph.setTileMapping(tensor[row], 2 * row)
    assert poputil.dimIsSplitOverTiles(values.graph, tensor, 0)
    assert poputil.dimIsSplitOverIPUs(values.graph, tensor, 0)
    assert not poputil.dimIsSplitOverTiles(values.graph, tensor, 1)
    assert not poputil.dimIsSplitOverIPUs(values.graph, tensor[:2], 0)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_each_part_of_a_partitionable_tensor_is_contiguous(data: st.DataObject) -> None:
    shape = data.draw(st.lists(st.integers(1, 7), min_size=1, max_size=3))
    parts = [data.draw(st.integers(1, size + 1)) for size in shape]
    graph = Graph(make_target("tiny"))
    tensor = poputil.createPartitionableTensor(graph, FLOAT, shape, parts)
    seen: list[list[int]] = []

    def look(index: list[int], part: Tensor) -> None:
        seen.append(index)
        assert part.numElements() == 0 or part.isContiguous()

    poputil.iterateTensorPartitions(tensor, parts, look)
    assert tensor.shape == tuple(shape)
    assert seen == [list(i)[::-1] for i in np.ndindex(*parts[::-1])]


# Regions
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_split_regions_share_all_elements_evenly(data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(0, 20), min_size=1, max_size=6))
    gaps = np.arange(len(sizes)) * 30
    regions = [(int(g), int(g) + n) for g, n in zip(gaps, sizes, strict=True)]
    grain, most = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 7))
    least = data.draw(st.integers(0, 9))
    parts = poputil.splitRegions(regions, grain, most, least)
    elements = [e for part in parts for low, high in part for e in range(low, high)]
    assert elements == [e for low, high in regions for e in range(low, high)]
    counts = [sum(high - low for low, high in part) for part in parts]
    assert len(parts) <= most
    assert all(count % grain == 0 for count in counts[:-1])
    if len(parts) > 1:
        assert min(counts[:-1]) >= least - least % grain
        grains = [-(-count // grain) for count in counts]
        assert max(grains) - min(grains) <= 1


def test_regions_can_be_kept_short() -> None:
    assert poputil.splitRegions([(0, 10), (20, 25)], 1, 2, 0, 5, 3) == [
        [(0, 3), (3, 5)],
        [(5, 8), (8, 10)],
        [(20, 23), (23, 25)],
    ]
    assert len(poputil.splitRegionsBetweenWorkers(MK1, [(0, 60)], 1)) == 6
    assert poputil.mergeAdjacentRegions([(4, 6), (0, 2), (2, 4), (9, 9)]) == [(0, 6)]
    assert poputil.mergeAdjacentRegions([[(0, 1), (1, 2)], []]) == [[(0, 2)], []]
    assert poputil.intervalSequenceNumElements([[(0, 3)], [(5, 9), (10, 11)]]) == 8


def test_indices_and_parts() -> None:
    assert poputil.flattenIndex([3, 4, 5], [2, 1, 3]) == 48
    assert poputil.unflattenIndex([3, 4, 5], 48) == [2, 1, 3]
    assert poputil.balancedPartition(10, 4) == [3, 3, 2, 2]


# Values
def test_values_are_held_against_their_half() -> None:
    third = float(np.float16(1 / 3))
    assert poputil.castToDeviceHalfValue(MK1, 1 / 3) == third
    assert poputil.castToDeviceHalfValue(MK1, 1e9) == np.inf
    assert poputil.checkAccuracyWhenCast(MK1, 1 / 3, FLOAT, HALF, 1e-3)
    assert not poputil.checkAccuracyWhenCast(MK1, 1 / 3, FLOAT, HALF, 1e-6)
    assert not poputil.checkAccuracyWhenCast(MK1, 1e9, FLOAT, HALF, 0.5)
    assert poputil.checkAccuracyWhenCast(MK1, 1 / 3, HALF, FLOAT, 0)


REFUSED: list[tuple[Any, str]] = [
    (lambda g, t: poputil.cloneToIpu(g, t, 1, "net"), "net: IPU 1; the target has 0 to 0"),
    (lambda g, t: poputil.cloneN(g, t, 0), "cloneN: N is 0; at least 1"),
    (lambda g, t: poputil.broadcastToMatch(t, t[:2]), "broadcastToMatch: .* do not broadcast"),
    (lambda g, t: poputil.broadcastToMatch(t, [3]), "broadcastToMatch: .* does not broadcast to"),
    (lambda g, t: poputil.createBroadcastOperand(g, t, INT, 2, False, "net"), "net: dimension 2"),
    (lambda g, t: poputil.checkAccuracyWhenCast(MK1, 1, INT, HALF, 1), "from int to half; known"),
    (lambda g, t: poputil.detectInnermostGrouping(g, t[0][0]), "at least one dimension"),
    (lambda g, t: poputil.detectDimGroupings(g, t[0][0]), "at least one dimension"),
    (lambda g, t: poputil.factorDims(t, [2]), r"factorDims: .* by \[2\]"),
    (lambda g, t: poputil.unfactorDims(t, 2), "unfactorDims: 2 dimensions of"),
    (lambda g, t: poputil.flattenIndex([2, 2], [2, 0]), "is no element of"),
    (lambda g, t: poputil.unflattenIndex([2, 2], 4), "has no element 4"),
    (lambda g, t: poputil.balancedPartition(3, 0), "0 parts; at least 1"),
    (lambda g, t: poputil.splitRegions([(0, 4)], 0, 1), "grains of 0, 1 partitions"),
    (
        lambda g, t: poputil.createPartitionableTensor(g, BOOL, [2, 3], [1], "net"),
        r"net: shape \[2, 3\] in \[1\] parts",
    ),
    (lambda g, t: poputil.iterateTensorPartitions(t, [1], print), r"in \[1\] parts; needs one"),
    (lambda g, t: poputil.mapOutputForElementWiseOp(g, [t], t[0]), "differ in their elements"),
    (lambda g, t: popops.createOutputForElementWiseOp(g, [], FLOAT, "net"), "net: inputs"),
    (lambda g, t: poputil.TensorUseTracker(4).add(g, 4, t), "tile 4 of 4"),
]


@pytest.mark.parametrize(("call", "said"), REFUSED, ids=[said[:20] for _, said in REFUSED])
def test_what_does_not_fit_is_refused(call: Any, said: str) -> None:
    values = Values()
    with pytest.raises(poputil.poplibs_error, match=said):
        call(values.graph, values.tensor(numbers(3, 4)))


def test_the_loop_that_the_guide_calls_poputils_is_popops() -> None:
    assert poputil.countedForLoop is popops.countedForLoop


def test_a_mapping_goes_on_where_another_ended() -> None:
    values = Values()  # 4 tiles; at least 32 floats a tile
    tensor = values.graph.addVariable(FLOAT, [70], "t")
    mapping, behind = poputil.calcLinearTileMappingAndNewOffset(values.graph, tensor, 3)
    assert (mapping, behind) == ([[(34, 70)], [], [], [(0, 34)]], 1)
    down = poputil.calcLinearTileMapping(values.graph.target, [6], 1, 1, 1, False)
    assert down == [[(4, 6)], [(2, 4)], [(0, 2)], []]
    for ascending in (True, False):
        there = [poputil.transformTileIndex(tile, 5, 2, ascending) for tile in range(5)]
        back = [poputil.invTransformTileIndex(tile, 5, 2, ascending) for tile in there]
        assert (sorted(there), back) == ([*range(5)], [*range(5)])
    assert 0 <= poputil.chooseMappingOffset(7, [3, 4]) < 7
    with pytest.raises(poplibs_error, match="0 tiles; at least 1 is needed"):
        poputil.chooseMappingOffset(0, [3])


def test_shuffled_intervals_are_put_back() -> None:
    shuffle = [(4, 6), (0, 1), (1, 4)]
    values = Values()
    tensor = values.tensor(np.arange(6.0))
    shuffled = concat(tensor.slices(shuffle))
    back = concat(shuffled.slices(poputil.calculateUnshufflingIntervals(shuffle)))
    np.testing.assert_array_equal(back.elements(), tensor.elements())
    assert poputil.flattenIntervals([[(0, 1)], [], [(2, 4), (5, 6)]]) == [(0, 1), (2, 4), (5, 6)]


def test_clones_go_to_another_view_and_take_aliases_apart() -> None:
    values = Values(num_ipus=2)
    tensor = values.tensor(numbers(2, 70))
    there = values.graph.createVirtualGraph(4, 8)
    clone = poputil.cloneToGraph(values.graph.createVirtualGraph(0, 4), there, tensor)
    assert tiles_of(values, clone) == [tile + 4 for tile in tiles_of(values, tensor)]
    twice = tensor[0].expand([0]).broadcast(2, 0)
    apart, behind = poputil.cloneAndExpandAliasing(values.graph, twice, 1)
    assert not apart.containsAliases() and behind == 3
    first = tiles_of(values, twice)[:70]
    assert tiles_of(values, apart) == [*first, *[1] * 34, *[2] * 36]


@pytest.mark.parametrize("method", list(TensorCloneMethod))
def test_clones_keep_what_their_method_says(method: TensorCloneMethod) -> None:
    values = Values()
    base = on_tiles(values, [1, 0, 1, 0])
    values._initial.append((base, np.array([1, 2, 3, 4], np.float32)))
    twice = base.reverse(0).expand([0]).broadcast(2, 0)
    copy = poputil.duplicate(values.graph, twice, values.program, "copy", method)
    assert copy.containsAliases() == method.aliases
    assert tiles_of(values, copy) == tiles_of(values, twice)
    found = copy.elements()[0] - copy.elements().min()
    orders = {"PRESERVE_ORDER_AND_ALIASES": [3, 2, 1, 0], "CREATE_NEW_ORDER": [0, 1, 2, 3],
              "GATHER_AND_PRESERVE_TILE_ORDER_AND_ALIASES": [1, 3, 0, 2]}  # fmt: skip
    assert found.tolist() == orders.get(method.name, found.tolist())
    np.testing.assert_array_equal(values.run().read(copy), [[4, 3, 2, 1]] * 2)


def test_regions_are_listed_by_memory() -> None:
    values = Values()
    a, b = on_tiles(values, [0] * 6, "a"), on_tiles(values, [0] * 4, "b")
    tensor = concat([b[2:], a[3:], a[:3], b[:2]])
    regions = values.graph.getSortedContiguousRegions
    assert regions(tensor) == [[(5, 8), (2, 5)], [(8, 10), (0, 2)]]
    assert regions(tensor, [(1, 4)]) == [[(2, 4)], [(1, 2)]]
    again = concat([a[2:5], a[:3]])
    assert regions(again, None, True) == [[(3, 6), (1, 3)]]
