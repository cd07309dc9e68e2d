"""Addresses: what is alive together never shares a byte, and everything lies in its region."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pva import progress
from simulator.compiler import allocate as module
from simulator.compiler.allocate import (
    Demand,
    allocate,
    conflicts_of,
    first_gaps,
    shares_its_place,
    union_bytes,
)
from simulator.compiler.compile import compile_graph
from simulator.graph import kernels
from simulator.graph.graph import Graph
from simulator.graph.machine.target import make_target
from simulator.graph.program import Copy, Sequence
from simulator.graph.types import FLOAT
from simulator.poplibs import popops

STEPS, TILES, BASE, MEMORY = 6, 2, 96, 200
variables = st.tuples(
    st.integers(0, STEPS - 1),
    st.integers(1, STEPS),
    st.booleans(),
    st.booleans(),
    st.dictionaries(st.integers(0, TILES - 1), st.integers(1, 120), min_size=1),
    st.sampled_from(["message", "lasting", "neither"]),
)


def place(given_variables):
    """Allocate variables of (begin, length, always live, interleaved, bytes by tile, kind).

    A message should lie apart from the variable before it.
    """
    rows = [
        (number, tile, size)
        for number, variable in enumerate(given_variables)
        for tile, size in sorted(variable[4].items())
    ]
    variable, tile, size = (np.array(column) for column in zip(*rows, strict=True))
    begin = np.array([v[0] for v in given_variables])
    end = np.minimum(begin + [v[1] for v in given_variables], STEPS)
    always = np.array([v[2] for v in given_variables])
    numbers = np.arange(len(given_variables))
    conflicts = conflicts_of(always, numbers, begin, end)
    wants = np.array([v[3] for v in given_variables])
    kinds = np.array([(*v, "neither")[5] for v in given_variables])
    messages = numbers[1:][kinds[1:] == "message"]
    demand = Demand(
        variable, tile, size, wants, np.zeros(len(wants), dtype=bool), conflicts,
        np.stack([messages - 1, messages], axis=1), kinds == "message", kinds == "lasting",
    )  # fmt: skip
    return demand, begin, end, always, allocate(demand, TILES, MEMORY, BASE)


INTERVALS = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, STEPS - 1), st.integers(1, STEPS)), max_size=12
)


@settings(max_examples=80, deadline=None)
@given(INTERVALS, st.sets(st.integers(0, 4)))
def test_conflicts_are_the_variables_that_have_a_step_in_common(intervals, always):
    live = np.zeros((5, 2 * STEPS), dtype=bool)
    for variable, begin, length in intervals:
        live[variable, begin : begin + length] = True
    expected = (live[:, None] & live[None, :]).any(axis=2)
    for variable in always:
        expected[variable, :] = expected[:, variable] = True
    variable, begin, length = np.array(intervals, dtype=np.int64).reshape(-1, 3).T
    flags = np.isin(np.arange(5), list(always))
    for at_once in (256, 2):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "INTERVALS_AT_ONCE", at_once)
            found = conflicts_of(flags, variable, begin, begin + length)
        np.testing.assert_array_equal(found, expected)


def bytes_of(found, piece):
    rows = np.flatnonzero(found.piece == piece)
    parts = (range(found.address[row], found.address[row] + found.bytes[row]) for row in rows)
    return set().union(*parts)


@settings(max_examples=120, deadline=None)
@given(st.lists(variables, min_size=1, max_size=8))
def test_variables_alive_together_share_no_address_on_a_tile(given_variables):
    demand, begin, end, always, found = place(given_variables)
    with pytest.MonkeyPatch.context() as patch:  # in NumPy as in C, where it was built
        patch.setattr(kernels, "compiled", None)
        assert allocate(demand, TILES, MEMORY, BASE).address.tolist() == found.address.tolist()
    for one in range(len(demand.variable)):
        for other in range(one):
            a, b = demand.variable[one], demand.variable[other]
            together = begin[a] < end[b] and begin[b] < end[a]
            together = together or always[a] or always[b]
            if a != b and demand.tile[one] == demand.tile[other] and together:
                assert not bytes_of(found, one) & bytes_of(found, other)


def test_what_comes_above_a_message_is_clear_of_it_on_each_tile():
    # `one` goes on in the second region on tile 0, up to 136, and lies there whole on tile 1, up to
    # 104: the other message, never live with it, ends between them.
    one, other = (0, 2, False, False, {0: 136, 1: 8}, "message"), {0: 120}
    full = (0, 2, False, False, {1: 96}, "lasting")
    idle = (5, 1, False, False, {0: 8})
    above = (0, 5, False, False, {0: 8})
    last = (3, 2, False, False, other, "message")
    *_, found = place([one, full, last, idle, above])
    assert found.address[-1] == 136


@settings(max_examples=40, deadline=None)
@given(st.lists(variables, min_size=1, max_size=8))
def test_the_parts_of_a_piece_are_its_bytes(given_variables):
    demand, *_, found = place(given_variables)
    for piece, size in enumerate(demand.bytes):
        assert len(bytes_of(found, piece)) == size


@settings(max_examples=40, deadline=None)
@given(st.lists(variables, min_size=1, max_size=8))
def test_a_piece_lies_inside_its_region_and_interleaved_data_above_the_base(given_variables):
    demand, *_, found = place(given_variables)
    low = np.array([0, BASE, MEMORY])[found.region]
    high = np.array([BASE, MEMORY, 1 << 40])[found.region]
    assert (found.address >= low).all()
    assert (found.address + found.bytes <= high).all()
    assert (found.address % 8 == 0).all()
    assert (found.region[demand.interleaved[demand.variable[found.piece]]] > 0).all()


@settings(max_examples=40, deadline=None)
@given(st.lists(variables, min_size=1, max_size=8))
def test_the_union_counts_each_covered_byte_once(given_variables):
    demand, *_, found = place(given_variables)
    union = union_bytes(demand.tile[found.piece], found.address, found.bytes, TILES)
    for tile in range(TILES):
        rows = np.flatnonzero(demand.tile == tile)
        assert union[tile] == len(set().union(*(bytes_of(found, row) for row in rows)))


def test_variables_that_are_never_alive_together_share_their_place():
    *_, found = place([(0, 2, False, False, {0: 40}), (2, 2, False, False, {0: 40})])
    assert found.address.tolist() == [0, 0]


def test_what_does_not_fit_overflows_above_the_memory():
    *_, found = place([(0, 6, True, False, {0: 90}), (0, 6, True, False, {0: 120})])
    assert sorted(found.region.tolist()) == [0, 2]
    assert found.address[found.region == 2].tolist() == [MEMORY]


def addresses(variables, conflicts, is_code=None):
    """Return the address of variables of (bytes on tile 0), in a memory without interleaving."""
    count = len(variables)
    tile, wants = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=bool)
    code = wants if is_code is None else np.array(is_code)
    demand = Demand(np.arange(count), tile, np.array(variables), wants, code, np.array(conflicts))
    return allocate(demand, 1, 4096, 4096, element_bytes=64).address.tolist()


def test_of_equally_crowded_variables_the_largest_comes_first():
    together = np.ones((3, 3), dtype=bool)
    assert addresses([8, 24, 16], together) == [24 + 16, 0, 24]


def test_the_variable_that_is_live_with_most_others_comes_before_larger_ones():
    # The first is live with both others, which are not live together.
    together = [[True, True, True], [True, True, False], [True, False, True]]
    assert addresses([8, 24, 16], together) == [0, 8, 8]


def test_code_comes_before_all_data_and_fills_whole_memory_elements():
    together = np.ones((2, 2), dtype=bool)
    assert addresses([800, 65], together, is_code=[False, True]) == [128, 0]


def test_equal_variables_lie_in_their_order():
    assert addresses([8, 8, 8], np.ones((3, 3), dtype=bool)) == [0, 8, 16]


def placed_apart(pairs, sizes, conflicts):
    """Place variables on a tile with elements of 32 bytes; return their addresses."""
    count = len(sizes)
    none, numbers = np.zeros(count, dtype=bool), np.arange(count)
    together = np.eye(count, dtype=bool)
    for one, other in conflicts:
        together[one, other] = together[other, one] = True
    asked = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    demand = Demand(numbers, numbers * 0, np.array(sizes), none, none, together, asked)
    return allocate(demand, 1, 1000, 500, 32).address.tolist()


def test_operands_of_a_vertex_begin_in_another_memory_element():
    # The third is never live with the others; the second lies behind the first, or in the next one.
    assert placed_apart([], [24, 16, 8], [(0, 1)]) == [0, 24, 0]
    assert placed_apart([(0, 1)], [24, 16, 8], [(0, 1)]) == [0, 32, 0]


def test_rules_that_follow_one_another_leave_two_elements_at_most():
    chain = [(n, n + 1) for n in range(5)]
    assert max(placed_apart(chain, [8] * 6, chain)) < 3 * 32


def in_elements(sizes, wants, conflicts, **columns):
    """Place variables on a tile, 96 bytes and 128 interleaved, with elements of 32 bytes."""
    count = len(sizes)
    together = np.eye(count, dtype=bool)
    for one, other in conflicts:
        together[one, other] = together[other, one] = True
    demand = Demand(
        np.arange(count), np.zeros(count, dtype=np.int64), np.array(sizes), np.array(wants),
        np.zeros(count, dtype=bool), together, **columns,
    )  # fmt: skip
    found = allocate(demand, 1, 224, 96, 32)
    columns = (found.piece, found.address, found.region, found.bytes)
    return list(zip(*(column.tolist() for column in columns), strict=True))


@pytest.mark.parametrize(
    ("message", "rows"), [(True, [(1, 40, 0, 56), (1, 96, 1, 24)]), (False, [(1, 96, 1, 80)])]
)
def test_a_message_that_fills_the_first_region_goes_on_in_the_second(message, rows):
    # 40 of 96 bytes are taken by what lasts.
    columns = {"messages": np.array([False, message]), "lasting": np.array([True, False])}
    assert in_elements([40, 80], [False, False], [(0, 1)], **columns) == [(0, 0, 0, 40), *rows]


def test_interleaved_results_lie_a_pair_of_elements_above_a_message_that_they_lie_apart_from():
    wants, messages = [False, True], np.array([True, False])
    pair = np.array([[0, 1]])
    found = in_elements([104, 16], wants, [(0, 1)], messages=messages, apart=pair)
    assert found[-1] == (1, 96 + 64, 1, 16)
    found = in_elements([104, 16], wants, [(0, 1)], messages=messages)
    assert found[-1] == (1, 96 + 8, 1, 16)


def test_what_fits_below_a_message_that_lies_apart_fills_that_gap():
    # The message lies apart from what lasts, in the next element; what comes later lies below it.
    # The last one is never live with the others, so that none of these conflicts with all.
    columns = {
        "messages": np.array([False, True, False, False]),
        "lasting": np.array([True, False, False, False]),
        "apart": np.array([[0, 1]]),
    }
    found = in_elements([8, 8, 24, 8], [False] * 4, [(0, 1), (1, 2), (0, 2)], **columns)
    assert [row[1] for row in found] == [0, 32, 8, 0]


PIECES = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 30), st.integers(1, 9)), max_size=9)


def columns(rows):
    return np.array(rows, dtype=np.int64).reshape(-1, 3).T


@settings(max_examples=80, deadline=None)
@given(PIECES)
def test_a_piece_shares_its_place_with_one_that_has_a_byte_of_it_on_its_tile(rows):
    taken = [(tile, set(range(begin, begin + size))) for tile, begin, size in rows]
    shared = [
        any(tile == other and one & two for other, two in taken[:n] + taken[n + 1 :])
        for n, (tile, one) in enumerate(taken)
    ]
    found = shares_its_place(*columns(rows))
    assert (found.tolist(), found.dtype) == (shared, np.bool_)
    union = union_bytes(*columns(rows), 4)
    bytes_of_tile = [set().union(*(one for on, one in taken if on == tile)) for tile in range(4)]
    assert (union.tolist(), union.dtype) == ([*map(len, bytes_of_tile)], np.int64)


@settings(max_examples=120, deadline=None)
@given(PIECES, st.lists(st.tuples(st.integers(0, 20), st.integers(1, 12)), min_size=1, max_size=3),
       st.integers(0, 9))  # fmt: skip
def test_the_first_gap_is_that_of_a_walk_over_all_addresses(rows, wanted, cut):
    on = np.arange(len(wanted))[::-1]
    floor, size = np.array(wanted).T
    tile, begin, length = columns(rows)
    taken = (tile, begin, begin + length)
    parts = [tuple(column[:cut] for column in taken), tuple(column[cut:] for column in taken)]
    expected = []
    for place, least, bytes_wanted in zip(on, floor, size, strict=True):
        used = {byte for t, b, n in rows if t == place for byte in range(b, b + n)}
        expected.append(
            next(a for a in range(least, 99) if not used & {*range(a, a + bytes_wanted)})
        )
    found = first_gaps(on, size, floor, 40, parts)
    assert (found.tolist(), found.dtype) == (expected, np.int64)


def test_variables_are_told_as_they_are_placed_and_addresses_are_whole():
    heard = []
    with progress.listening(lambda *news: heard.append(news)):
        *_, found = place([(0, 2, False, False, {0: 40, 1: 8}), (1, 2, True, False, {0: 40})])
    assert {news[0] for news in heard} == {"placing variables"}
    assert {column.dtype for column in (found.address, found.region, found.piece, found.bytes)} == {
        np.dtype(np.int64)
    }


def test_code_fills_words_where_no_memory_element_is_given():
    none, code = np.zeros(2, dtype=bool), np.array([False, True])
    demand = Demand(np.arange(2), np.zeros(2, dtype=np.int64), np.array([8, 9]), none, code,
                    np.ones((2, 2), dtype=bool))  # fmt: skip
    assert allocate(demand, 1, 4096, 4096).address.tolist() == [16, 0]


def test_what_lasts_comes_before_messages_these_before_interleaved_data_and_that_before_the_rest():
    together = np.ones((5, 5), dtype=bool)
    kinds = np.eye(5, dtype=bool)
    demand = Demand(
        np.arange(5), np.zeros(5, dtype=np.int64), np.full(5, 8), kinds[3], kinds[4], together,
        messages=kinds[2], lasting=kinds[1],
    )  # fmt: skip
    assert module._order(demand, np.full(5, 8)).tolist() == [4, 1, 2, 3, 0]
    both = Demand(
        np.arange(5), np.zeros(5, dtype=np.int64), np.full(5, 8), kinds[3] | kinds[1],
        kinds[4] | kinds[1], together, messages=kinds[2] | kinds[3], lasting=kinds[1] | kinds[4],
    )  # fmt: skip
    assert module._order(both, np.full(5, 8)).tolist() == [1, 4, 2, 3, 0]


def test_the_first_gap_is_found_above_the_floor_of_each_tile():
    on, size, floor = np.array([3, 5]), np.array([8, 8]), np.array([16, 0])
    taken = (np.array([3, 3, 5, 4]), np.array([20, 40, 0, 0]), np.array([30, 50, 8, 99]))
    assert first_gaps(on, size, floor, 100, [taken]).tolist() == [30, 8]


@pytest.mark.parametrize(("machine", "past"), [("mk1", 24), ("mk2", 0)])
def test_what_a_vertex_reads_is_followed_by_bytes_that_it_may_read_past(machine, past):
    graph, sequence = Graph(make_target(machine, tiles_per_ipu=2)), Sequence()
    tensor = graph.addVariable(FLOAT, [100], "given")
    graph.setTileMapping(tensor, 0)
    for _ in range(3):  # the second result lies above the first, and is read
        tensor = popops.neg(graph, tensor, sequence)
    idle = graph.addVariable(FLOAT, [100], "idle")
    graph.setTileMapping(idle, 1)
    sequence.add(Copy(tensor, idle))
    found = compile_graph(graph, [sequence])
    ends = np.zeros(2, dtype=np.int64)
    np.maximum.at(ends, found.pieces.tile, found.allocation.address + found.pieces.bytes)
    needs = found.memory.by_tile["total_including_gaps"]
    assert (needs - ends).tolist() == [past, 0]


@pytest.mark.parametrize(("size", "begin"), [(64, 160), (72, 104)])
def test_interleaved_results_move_only_as_far_as_they_fit(size, begin):
    # The message ends at 104; the next pair of elements begins at 160, and 64 bytes end the memory.
    wants, messages = [False, True], np.array([True, False])
    found = in_elements([104, size], wants, [(0, 1)], messages=messages, apart=np.array([[0, 1]]))
    assert found[-1] == (1, begin, 1, size)


@pytest.mark.parametrize(("size", "begin"), [(32, 64), (40, 40)])
@pytest.mark.parametrize("idle", [[], [8]])
def test_data_moves_to_the_next_element_only_if_it_fits_there(size, begin, idle):
    # With one that is never live with the others, none of these conflicts with all.
    count = 2 + len(idle)
    lasting = np.arange(count) == 0
    found = in_elements(
        [40, size, *idle], [False] * count, [(0, 1)], lasting=lasting, apart=np.array([[0, 1]])
    )
    assert [row[1] for row in found[:2]] == [0, begin]


@pytest.mark.parametrize(("searched", "begin"), [(2, 8), (1, 40)])
def test_a_gap_is_searched_below_few_variables(searched, begin, monkeypatch):
    monkeypatch.setattr(module, "SEARCHED", searched)
    columns = {
        "messages": np.array([False, True, False, False]),
        "lasting": np.array([True, False, False, False]),
        "apart": np.array([[0, 1]]),
    }
    found = in_elements([8, 8, 24, 8], [False] * 4, [(0, 1), (1, 2), (0, 2)], **columns)
    assert found[2][1] == begin


@pytest.mark.parametrize(("size", "begin"), [(16, 80), (24, 0)])
def test_what_does_not_fit_on_top_of_others_is_put_below_them(size, begin):
    # The third is live with the second alone, which lies at 40 on the first.
    lasting = np.array([True, False, False, False])
    found = in_elements([40, 40, size, 8], [False] * 4, [(0, 1), (1, 2)], lasting=lasting)
    assert [row[1] for row in found] == [0, 40, begin, 0]


@pytest.mark.parametrize(
    ("before", "size", "rows"),
    [
        (96, 80, [(1, 96, 1, 80)]),
        (88, 80, [(1, 88, 0, 8), (1, 96, 1, 72)]),
        (40, 56, [(1, 40, 0, 56)]),
        (40, 184, [(1, 40, 0, 56), (1, 96, 1, 128)]),
        (40, 192, [(1, 224, 2, 192)]),
    ],
)
def test_a_message_is_divided_where_both_regions_have_room(before, size, rows):
    columns = {"messages": np.array([False, True]), "lasting": np.array([True, False])}
    found = in_elements([before, size], [False, False], [(0, 1)], **columns)
    assert found == [(0, 0, 0, before), *rows]


def test_a_message_fills_whole_words_of_a_region_that_ends_within_one():
    none, first = np.zeros(2, dtype=bool), np.array([True, False])
    demand = Demand(np.arange(2), np.zeros(2, dtype=np.int64), np.array([40, 80]), none, none,
                    np.ones((2, 2), dtype=bool), messages=~first, lasting=first)  # fmt: skip
    found = allocate(demand, 1, 228, 100, 32)
    assert (found.address.tolist(), found.bytes.tolist()) == ([0, 40, 100], [40, 56, 24])


def test_rules_that_follow_one_another_are_kept_up_to_the_second_element():
    chain = [(n, n + 1) for n in range(3)]
    every = [(n, m) for n in range(4) for m in range(n)]
    # The fifth is never live: without it all four conflict with all, and count as always live.
    assert placed_apart(chain, [8] * 4, every) == [0, 32, 64, 96]
    assert placed_apart(chain, [8] * 5, every) == [0, 32, 8, 40, 0]


def test_data_lies_apart_from_others_as_far_up_as_these_are_large():
    assert placed_apart([(0, 1)], [72, 8, 8], [(0, 1)]) == [0, 96, 0]
    every = [(0, 1), (0, 2), (1, 2)]  # the third is to lie apart from the second, at 64 to 72
    assert placed_apart([(1, 2)], [64, 8, 8, 8], every) == [0, 64, 72, 0]


def test_what_lies_apart_from_a_variable_does_so_on_the_tiles_of_both():
    # Of the first on tile 0 alone, of the second on both.
    none = np.zeros(3, dtype=bool)
    together = np.array([[True, True, False], [True, True, False], [False, False, True]])
    demand = Demand(
        np.array([0, 1, 1, 2]), np.array([0, 0, 1, 1]), np.array([24, 8, 8, 8]), none, none,
        together, np.array([[0, 1]]),
    )  # fmt: skip
    assert allocate(demand, 2, 1000, 500, 32).address.tolist() == [0, 32, 0, 0]


def test_a_gap_is_no_part_of_an_element_that_a_piece_is_to_lie_apart_from():
    # The third is live with the second, at 8 on the first: below it are 8 bytes of its element.
    columns = {"lasting": np.array([True, False, False, False]), "apart": np.array([[1, 2]])}
    found = in_elements([8, 8, 8, 8], [False] * 4, [(0, 1), (1, 2)], **columns)
    assert [row[1] for row in found] == [0, 8, 32, 0]


def test_data_that_goes_on_in_the_interleaved_region_is_held_apart_in_no_pairs_of_elements():
    columns = {"lasting": np.array([True, False, False, False]), "apart": np.array([[1, 2]])}
    conflicts = [(0, 1), (0, 2), (1, 2)]
    found = in_elements([96, 16, 16, 8], [False] * 4, conflicts, **columns)
    assert [row[1] for row in found] == [0, 96, 112, 0]


def test_a_message_begins_in_the_next_element_though_it_ends_in_the_next_region():
    columns = {"messages": np.array([False, True]), "lasting": np.array([True, False])}
    found = in_elements([40, 40], [False] * 2, [(0, 1)], apart=np.array([[0, 1]]), **columns)
    assert found == [(0, 0, 0, 40), (1, 64, 0, 32), (1, 96, 1, 8)]


def test_interleaved_results_lie_apart_up_to_the_second_pair_of_elements():
    # The last one is never live: without it all others count as always live.
    count, wants = 5, np.ones(5, dtype=bool)
    together = np.eye(count, dtype=bool)
    together[:4, :4] = True
    chain = np.array([(n, n + 1) for n in range(3)])
    demand = Demand(np.arange(count), np.zeros(count, dtype=np.int64), np.full(count, 8), wants,
                    ~wants, together, chain)  # fmt: skip
    found = allocate(demand, 1, 1000, 96, 32)
    assert found.address.tolist() == [96, 160, 224, 232, 96]


def test_a_gap_is_searched_on_each_tile_that_needs_it():
    # The message leaves a gap on tile 0; on tile 1 the last one fits below the third alone.
    kinds = np.eye(4, dtype=bool)
    together = np.eye(4, dtype=bool)
    for one, other in [(0, 1), (0, 2), (1, 3), (2, 3)]:
        together[one, other] = together[other, one] = True
    demand = Demand(
        np.array([0, 0, 1, 2, 3]), np.array([0, 1, 0, 1, 1]), np.array([8, 40, 8, 40, 24]),
        kinds[0] & False, kinds[0] & False, together, np.array([[0, 1]]), kinds[1], kinds[0],
    )  # fmt: skip
    assert allocate(demand, 2, 224, 96, 32).address.tolist() == [0, 0, 32, 40, 0]


def test_the_parts_of_a_piece_follow_each_other_on_many_tiles():
    tiles = 200
    demand = Demand(
        np.repeat([0, 1], tiles), np.tile(np.arange(tiles), 2), np.repeat([40, 80], tiles),
        np.zeros(2, dtype=bool), np.zeros(2, dtype=bool), np.ones((2, 2), dtype=bool),
        messages=np.array([False, True]), lasting=np.array([True, False]),
    )  # fmt: skip
    found = allocate(demand, tiles, 224, 96, 32)
    assert found.address.tolist() == [0] * tiles + [40, 96] * tiles


def test_data_that_ends_where_the_element_of_another_begins_stays():
    columns = {"lasting": np.array([True, False, False]), "apart": np.array([[1, 2]])}
    found = in_elements([32, 8, 32], [False] * 3, [(0, 1)], **columns)
    assert [row[1] for row in found] == [0, 32, 0]


def test_data_stays_in_an_element_that_begins_where_those_of_another_end():
    columns = {"lasting": np.array([True, False, False, False]), "apart": np.array([[1, 3]])}
    conflicts = [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)]
    found = in_elements([40, 24, 24, 8], [False] * 4, conflicts, **columns)
    assert [row[1] for row in found] == [0, 40, 64, 88]


def test_interleaved_data_that_ends_where_the_pair_of_another_begins_stays():
    none, together = np.zeros(3, dtype=bool), np.eye(3, dtype=bool)
    together[0, 1] = together[1, 0] = True
    demand = Demand(np.arange(3), np.zeros(3, dtype=np.int64), np.array([64, 8, 64]), ~none, none,
                    together, np.array([[1, 2]]), lasting=np.arange(3) == 0)  # fmt: skip
    assert allocate(demand, 1, 1000, 96, 32).address.tolist() == [96, 160, 96]
