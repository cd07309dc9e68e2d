"""Addresses: what is alive together never shares a byte, and everything lies in its region."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.compiler.allocate import Demand, allocate, conflicts_of, union_bytes
from simulator.compiler.compile import compile_graph
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
    st.dictionaries(st.integers(0, TILES - 1), st.integers(1, 60), min_size=1),
)


def place(given_variables):
    """Allocate variables of (begin, length, always live, interleaved, bytes by tile)."""
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
    demand = Demand(variable, tile, size, wants, np.zeros(len(wants), dtype=bool), conflicts)
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
    found = conflicts_of(flags, variable, begin, begin + length)
    np.testing.assert_array_equal(found, expected)


def bytes_of(demand, found, row):
    return set(range(found.address[row], found.address[row] + demand.bytes[row]))


@settings(max_examples=80, deadline=None)
@given(st.lists(variables, min_size=1, max_size=8))
def test_variables_alive_together_share_no_address_on_a_tile(given_variables):
    demand, begin, end, always, found = place(given_variables)
    for one in range(len(demand.variable)):
        for other in range(one):
            a, b = demand.variable[one], demand.variable[other]
            together = begin[a] < end[b] and begin[b] < end[a]
            together = together or always[a] or always[b]
            if a != b and demand.tile[one] == demand.tile[other] and together:
                assert not bytes_of(demand, found, one) & bytes_of(demand, found, other)


@settings(max_examples=40, deadline=None)
@given(st.lists(variables, min_size=1, max_size=8))
def test_a_piece_lies_inside_its_region_and_interleaved_data_above_the_base(given_variables):
    demand, *_, found = place(given_variables)
    low = np.array([0, BASE, MEMORY])[found.region]
    high = np.array([BASE, MEMORY, 1 << 40])[found.region]
    assert (found.address >= low).all()
    assert (found.address + demand.bytes <= high).all()
    assert (found.address % 8 == 0).all()
    assert (found.region[demand.interleaved[demand.variable]] > 0).all()


@settings(max_examples=40, deadline=None)
@given(st.lists(variables, min_size=1, max_size=8))
def test_the_union_counts_each_covered_byte_once(given_variables):
    demand, *_, found = place(given_variables)
    union = union_bytes(demand.tile, found.address, demand.bytes, TILES)
    for tile in range(TILES):
        rows = np.flatnonzero(demand.tile == tile)
        assert union[tile] == len(set().union(*(bytes_of(demand, found, row) for row in rows)))


def test_variables_that_are_never_alive_together_share_their_place():
    _, *_, found = place([(0, 2, False, False, {0: 40}), (2, 2, False, False, {0: 40})])
    assert found.address.tolist() == [0, 0]


def test_what_does_not_fit_overflows_above_the_memory():
    _, *_, found = place([(0, 6, True, False, {0: 90}), (0, 6, True, False, {0: 120})])
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


@pytest.mark.parametrize(
    ("divisible", "places"), [(True, [(56, 0, 40), (160, 1, 40)]), (False, [(200, 2, 80)])]
)
def test_what_fits_in_no_region_lies_in_two_if_it_may(divisible, places):
    # Of 96 bytes 56 are taken, of the interleaved 104 bytes 64: 40 and 40 are left.
    sizes, wants = np.array([56, 64, 80]), np.array([False, True, False])
    conflicts = np.ones((3, 3), dtype=bool)
    demand = Demand(
        np.arange(3), np.zeros(3, dtype=np.int64), sizes, wants, np.zeros(3, dtype=bool),
        conflicts, divisible=np.array([False, False, divisible]),
    )  # fmt: skip
    conflicts[2, 2] = False  # it is placed last, as it conflicts with one less
    found = allocate(demand, 1, MEMORY, BASE)
    last = found.piece == 2
    columns = found.address, found.region, found.bytes
    assert list(zip(*(column[last].tolist() for column in columns), strict=True)) == places


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
