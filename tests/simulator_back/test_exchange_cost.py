"""Exchange costs against the printed steps of the user guide's sample, and conservation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.compiler.exchange import exchange_cost, host_exchange_cost, repetition
from simulator.graph import kernels
from simulator.graph.machine.target import TARGETS

MK1, TINY = TARGETS["mk1"], TARGETS["tiny"]


@pytest.fixture(autouse=True, scope="module", params=["compiled", "NumPy"])
def _passes(request):
    """Count the traffic in C where it was built, and in NumPy."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "NumPy":
            patch.setattr(kernels, "compiled", None)
        yield


def test_a_word_from_tile_0_to_all_others_takes_the_120_cycles_that_the_guide_prints():
    others = np.arange(1, 1216)
    same = np.zeros(1215, dtype=np.int64)
    cost = exchange_cost(MK1, same, others, same + 4, same)
    assert cost.cycles.max() == 120
    assert round(100 * cost.cycles.mean() / 120, 1) == 86.6
    assert (cost.sent.sum() + cost.received.sum()) // 2 == 2432


def test_four_times_128_bytes_in_layer_1_take_the_169_cycles_that_the_guide_prints():
    # 392 tiles; each sends its 128 bytes to the four tiles of its group of four, itself included.
    tile = np.arange(392)
    source = np.repeat(tile, 4)
    destination = (source // 4) * 4 + np.tile(np.arange(4), 392)
    cost = exchange_cost(MK1, source, destination, np.full(1568, 128), source * 128)
    assert cost.cycles.max() == 169
    assert np.count_nonzero(cost.cycles) == 392
    assert round(100 * cost.cycles[:392].mean() / 169, 1) == 86.6
    assert (cost.sent.sum() + cost.received.sum()) // 2 == 125_440


def test_fragments_cost_instructions_of_the_kinds_in_the_guides_example():
    # The guide's example: delay 24, receiveAddress 16, receiveMux 32, send 8, total 80.
    source, begin = np.array([0, 0, 1, 1]), np.array([0, 0, 8, 8])
    cost = exchange_cost(TINY, source, np.array([0, 1, 2, 3]), np.full(4, 8), begin)
    assert cost.instructions == (24, 0, 0, 16, 0, 32, 8, 0, 0, 0, 80)
    assert cost.code is not None
    assert cost.code.sum() == 80


@pytest.mark.parametrize(("in_rows", "addresses"), [(True, 2), (False, 4)])
def test_a_tile_selects_each_sender_and_none_at_the_end(in_rows, addresses):
    # Tile 1 receives three fragments, tile 2 one.
    source, begin = np.array([0, 2, 3, 3]), np.array([0, 8, 16, 24])
    cost = exchange_cost(
        TINY, source, np.array([1, 1, 1, 2]), np.full(4, 8), begin, in_rows=in_rows
    )
    # Two tiles receive and three send; each of them waits once.
    delays, muxes, sends = 2 + 3, 4 + 2, 4
    assert sum(cost.instructions[:-1]) == 4 * (delays + muxes + addresses + sends)
    assert cost.instructions[5] == 4 * muxes
    assert cost.code.sum() == cost.instructions[-1] == sum(cost.instructions[:-1])


def test_the_same_bytes_to_several_tiles_are_sent_once():
    cost = exchange_cost(
        TINY, np.array([0, 0, 0]), np.array([1, 2, 3]), np.full(3, 8), np.full(3, 40)
    )
    assert cost.sent.tolist() == [8, 0, 0, 0]
    assert cost.received.tolist() == [0, 8, 8, 8]


@pytest.mark.parametrize("target", [MK1, TARGETS["mk2"]])
def test_what_both_tiles_of_a_bus_receive_alike_takes_half_the_time(target):
    # Tiles 4 and 5 receive the same 4,000 bytes, tile 7 as many without tile 6, tiles 9 and 10 are
    # of two buses; of what 12 and 13 receive, half is the same.
    destination = np.array([4, 5, 7, 9, 10, 12, 12, 13, 13])
    begin = np.array([0, 0, 0, 0, 0, 0, 8000, 0, 16000])
    cost = exchange_cost(target, np.zeros(9, dtype=int), destination, np.full(9, 4000), begin)
    to = np.arange(1, 14)
    word = np.full(13, 4)
    latency = exchange_cost(target, 0 * to, to, word, 0 * to).cycles - 1  # of a word
    taken = cost.cycles - latency
    assert taken[[4, 5, 7, 9, 10, 12, 13]].tolist() == [500, 500, 1000, 1000, 1000, 1500, 1500]


def test_what_a_tile_sends_has_the_time_of_one_lane():
    cost = exchange_cost(MK1, *np.array([[0, 0], [2, 3], [4000, 4000], [0, 0]]))
    assert cost.cycles[0] - 60 == 1000
    assert cost.cycles[2] - 60 == 500


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(1, 400)), min_size=1))
def test_bytes_sent_equal_bytes_received_without_multicast(moves):
    source, destination, size = (np.array(column) for column in zip(*moves, strict=True))
    begin = np.arange(len(moves)) * 1000
    cost = exchange_cost(TINY, source, destination, size, begin)
    assert cost.sent.sum() == cost.received.sum() == size.sum()
    assert (cost.cycles * 4 >= np.maximum(cost.sent, cost.received)).all()


def test_the_host_link_is_shared_so_that_all_active_tiles_take_as_long():
    cost = host_exchange_cost(MK1, np.arange(8), np.full(8, 1000), to_device=True)
    # 8,000 bytes at 8 GB/s and 1.6 GHz are 1,600 cycles.
    assert cost.cycles[:8].tolist() == [1605] * 8
    assert (cost.cycles[8:].sum(), cost.received.sum(), cost.sent.sum()) == (0, 8000, 0)


def test_what_one_tile_receives_twice_is_sent_twice():
    # Tile 0 holds one word; tile 1 wants it in two places, tile 2 in one: sent twice, not thrice.
    same = np.zeros(3, dtype=np.int64)
    cost = exchange_cost(TINY, same, np.array([1, 1, 2]), same + 4, same + 16)
    assert cost.sent.tolist() == [8, 0, 0, 0]
    assert cost.received.tolist() == [0, 8, 4, 0]


@pytest.mark.parametrize(("size", "packets"), [(64, 1), (65, 2), (128, 2), (129, 3)])
def test_each_begun_packet_of_the_host_takes_a_request_and_a_wait(size, packets):
    # An Mk1 has packets of 64 bytes; both instructions have 4 bytes.
    cost = host_exchange_cost(MK1, np.array([3]), np.array([size]), to_device=True)
    assert (cost.code[3], cost.code.sum()) == (2 * 4 * packets, 2 * 4 * packets)


@pytest.mark.parametrize(("size", "words"), [(4, 1), (5, 2), (8, 2), (9, 3), (64, 16), (66, 16)])
def test_a_begun_word_of_the_first_packet_takes_its_two_cycles(size, words):
    # By its link a byte takes 0.2 cycles: never longer than the words of one packet.
    cost = host_exchange_cost(MK1, np.array([0]), np.array([size]), to_device=False)
    assert cost.cycles[0] == 5 + 2 * words


def test_bytes_to_the_host_are_sent_and_bytes_from_it_received():
    tile, size = np.array([2]), np.array([12])
    away = host_exchange_cost(TINY, tile, size, to_device=False)
    here = host_exchange_cost(TINY, tile, size, to_device=True)
    assert (away.sent.tolist(), away.received.sum()) == ([0, 0, 12, 0], 0)
    assert (here.received.tolist(), here.sent.sum()) == ([0, 0, 12, 0], 0)
    assert {of.dtype for of in (away.received, here.sent, away.cycles)} == {np.dtype(np.int64)}


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1]])
def test_bytes_go_from_the_group_that_sends_to_the_group_that_receives(order):
    rows = np.array([[0, 1, 8, 0], [3, 1, 12, 16], [0, 2, 4, 8]])[order]  # a tile is a group here
    cost = exchange_cost(TINY, *rows.T.copy())
    assert cost.flows.tolist() == [[0, 8, 4, 0], [0] * 4, [0] * 4, [0, 12, 0, 0]]


def test_a_begun_cycle_of_the_host_link_counts():
    # 8 x 101 bytes at 5 bytes a cycle are 161.6 cycles.
    cost = host_exchange_cost(MK1, np.arange(8), np.full(8, 101), to_device=True)
    assert cost.cycles[:8].tolist() == [5 + 162] * 8


def test_a_begun_word_of_an_exchange_takes_its_cycle():
    def cycles(size):
        return exchange_cost(TINY, *(np.array([number]) for number in (0, 1, size, 0))).cycles[1]

    assert [cycles(size) - cycles(4) for size in (1, 4, 5, 8, 9)] == [0, 0, 1, 1, 2]


def columns(*rows):
    return [np.array(column, dtype=np.int64) for column in zip(*rows, strict=True)]


def test_a_row_may_stand_for_several_fragments():
    # Tile 0 sends three of 8 bytes to tile 1, tile 2 one to tile 3.
    moves = [(0, 1, 8, 0), (0, 1, 8, 8), (0, 1, 8, 16), (2, 3, 8, 24)]
    whole = exchange_cost(TINY, *columns((0, 1, 24, 0), (2, 3, 8, 24)), count=np.array([3, 1]))
    parts = exchange_cost(TINY, *columns(*moves))
    assert parts.received.tolist() == [0, 24, 0, 8]
    for name in ("sent", "received", "cycles", "code"):
        assert getattr(whole, name).tolist() == getattr(parts, name).tolist()
        assert getattr(whole, name).dtype == getattr(parts, name).dtype == np.int64
    assert whole.instructions == parts.instructions
    assert parts.instructions == exchange_cost(TINY, *columns(*moves), in_rows=False).instructions
    assert parts.instructions != exchange_cost(TINY, *columns(*moves), in_rows=True).instructions


def test_fragments_of_one_begin_and_other_sizes_are_others():
    cost = exchange_cost(TINY, *columns((0, 1, 8, 0), (0, 2, 16, 0)))
    assert cost.sent.tolist() == [24, 0, 0, 0]


@pytest.mark.parametrize(
    ("to", "sizes", "taken"),
    [((4, 5), (4000, 4000), (500, 500)), ((4, 5), (4000, 2000), (1000, 500)),
     ((4, 4), (4000, 4000), (2000, 0)), ((4, 6), (4000, 4000), (1000, 0))],
)  # fmt: skip
def test_a_bus_shares_the_same_bytes_of_its_two_tiles_alone(to, sizes, taken):
    cost = exchange_cost(MK1, *columns((0, to[0], sizes[0], 0), (0, to[1], sizes[1], 0)))
    two = np.array([4, 5])
    word = exchange_cost(MK1, two * 0, two, two * 0 + 4, two * 8).cycles[two] - 1
    assert np.maximum(cost.cycles[two] - word, 0).tolist() == list(taken)


def test_what_came_before_is_counted_by_tile_and_byte():
    def again(*rows):
        return repetition(*columns(*rows)).tolist()

    assert again((0, 3), (1, 1), (0, 3)) == [0, 0, 1]
    assert again((0, 1), (4, 0), (0, 1), (9, 3)) == [0, 0, 1, 0]
    assert again((0, 0), (1, 0), (1, 0), (1, 0)) == [0, 0, 1, 2]
    assert again((0, 0), (0, 1), (0, 1), (0, 0)) == [0, 0, 1, 1]
    nothing = np.zeros(0, dtype=np.int64)
    assert (repetition(nothing, nothing).tolist(), repetition(nothing, nothing).dtype) == (
        [],
        np.int64,
    )


def test_no_bytes_take_no_time():
    nothing = np.zeros(0, dtype=np.int64)
    assert not host_exchange_cost(TINY, nothing, nothing, to_device=True).cycles.any()
    assert not exchange_cost(TINY, nothing, nothing, nothing, nothing).cycles.any()
    assert host_exchange_cost(TINY, nothing + 0, nothing, to_device=True).cycles.dtype == np.int64


def test_one_byte_from_the_host_takes_the_time_of_a_word():
    one, word = (host_exchange_cost(MK1, *columns((0, size)), to_device=True) for size in (1, 4))
    assert one.cycles.tolist() == word.cycles.tolist()
    assert one.cycles[0] == 7
