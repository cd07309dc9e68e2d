"""The IPU-Link model: loads of links worked out by hand for two, four and six IPUs."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.compiler.global_exchange import (
    busiest_bundles,
    cross_replica_cost,
    global_exchange_cost,
    latency,
    link_cycles,
)
from simulator.graph.machine.constants import GlobalExchangeConstraint, GlobalExchangeFlow
from simulator.graph.machine.target import MK2, make_target

MEGABYTE = 1 << 20


def target(ipus, tiles=4):
    return make_target("mk2", tiles_per_ipu=tiles, num_ipus=ipus)


def flows(ipus, **pairs):
    """Make the matrix of flows: `_0_3=5` are 5 bytes from IPU 0 to IPU 3."""
    result = np.zeros((ipus, ipus), dtype=np.int64)
    for name, size in pairs.items():
        source, destination = name[1:].split("_")
        result[int(source), int(destination)] = size
    return result


def arrays(*columns):
    return [np.array(column, dtype=np.int64) for column in columns]


def test_four_links_carry_what_stays_on_a_card():
    # 2^23 bits over 4 links of 0.85 * 2^37 bits a second: 17.952 microseconds, 23,875.8 cycles.
    assert link_cycles(flows(2, _0_1=MEGABYTE), MK2) == 23_876
    assert round(4 * MK2.link_bits_per_second / 8 / 1e9, 1) == 58.4  # GB a second


def test_both_directions_of_a_card_have_links_of_their_own():
    both = link_cycles(flows(2, _0_1=MEGABYTE, _1_0=MEGABYTE), MK2)
    assert both == link_cycles(flows(2, _0_1=MEGABYTE), MK2)


def test_two_links_lead_up_one_side_of_the_ladder():
    # Half as many links as on the card take twice as long: 47,751.5 cycles.
    assert link_cycles(flows(4, _0_2=MEGABYTE), MK2) == 47_752


def test_traffic_to_the_other_side_takes_the_rung_first_and_then_climbs():
    # 0 -> 3 crosses to IPU 1 and climbs there, beside 1 -> 3; 0 -> 1 stays on its card's own links.
    loads = busiest_bundles(flows(4, _0_3=10, _1_3=5, _0_1=100, _0_2=7))
    assert loads.tolist() == [100, 10, 15, 0]


def test_way_down_is_not_shared_with_the_way_up():
    assert busiest_bundles(flows(4, _2_0=3, _0_2=8)).tolist() == [0, 0, 8, 3]


def test_each_border_between_cards_carries_all_that_passes_it():
    # Up the even side: 0 -> 4 passes both borders, 0 -> 2 the first, 2 -> 4 the second.
    loads = busiest_bundles(flows(6, _0_4=10, _0_2=3, _2_4=4, _5_1=6, _5_0=1))
    # Down: 5 -> 1 goes down the odd side; 5 -> 0 crosses the rung to 4 and goes down the even one.
    assert loads.tolist() == [0, 1, 14, 6]


def test_constraints_of_the_ipu_model_stand_for_its_links():
    # 10^6 bits a second for what leaves IPU 0: 50 bytes are 400 bits, 0.4 ms, 532,000 cycles.
    slow = GlobalExchangeConstraint(1e6, (GlobalExchangeFlow(0, 1), GlobalExchangeFlow(0, 2)))
    fast = GlobalExchangeConstraint(1e9, (GlobalExchangeFlow(2, 0), GlobalExchangeFlow(0, 7)))
    loads = flows(4, _0_1=20, _0_2=30, _2_0=40)
    assert link_cycles(loads, replace(MK2, global_exchange_constraints=(slow, fast))) == 532_000


def test_latency_grows_with_the_hops_of_the_longest_route():
    # 119 cycles through the IPUs, and 15 ns = 19.95 cycles a hop.
    assert latency(flows(2, _0_1=1), MK2) == 119 + 20
    assert latency(flows(4, _0_1=1, _0_3=1), MK2) == 119 + 40
    assert latency(flows(6, _0_5=1), MK2) == 119 + 60


def test_cost_of_a_few_bytes_is_the_latency_and_the_busiest_tile():
    # 400 bytes from tile 0 to tile 5: 100 cycles at 4 bytes a cycle; the links need only 9.1.
    cost = global_exchange_cost(target(2), *arrays([0], [5], [400], [0]))
    assert cost.cycles.tolist() == [239, 0, 0, 0, 0, 239, 0, 0]
    assert (cost.sent[0], cost.received[5]) == (400, 400)
    # Packets of 128 bytes: 4 on each of both tiles, 2 instructions of 4 bytes each.
    assert cost.code[[0, 5]].tolist() == [32, 32]


def test_links_bound_the_time_when_many_tiles_send():
    # 64 tiles send 4,096 bytes each: 1,024 cycles a tile, but 2^18 bytes take 5,969 on 4 links.
    source = np.arange(64)
    begin = source * 4096
    size = np.full(64, 4096)
    cost = global_exchange_cost(target(2, 64), source, source + 64, size, begin)
    assert cost.cycles.tolist() == [5969 + 139] * 128


def test_a_multicast_crosses_the_links_once_for_each_ipu():
    to = [4, 5, 8, 9, 6]
    begin, size = [0, 0, 0, 0, 20], [40, 40, 40, 40, 40]
    cost = global_exchange_cost(target(4), *arrays([0] * 5, to, size, begin))
    # Bytes 0 to 40 for two tiles of IPU 1 and two of IPU 2, and 20 to 60 for one of IPU 1.
    assert cost.sent.tolist() == [120, *[0] * 15]
    assert cost.received[to].tolist() == [40] * 5


def test_replicas_load_the_links_together():
    # Each of four replicas of one IPU sends 400,000 bytes up or down to the next card.
    to_replica = np.array([2, 3, 0, 1])
    one = target(1, 100)
    tiles = np.arange(100)
    size = np.full(100, 4000)
    cost = cross_replica_cost(one, to_replica, tiles, tiles, size, tiles * 4000)
    # 3.2 million bits over 2 links: 13.70 microseconds, 18,215.8 cycles; one hop of latency.
    assert cost.cycles.tolist() == [18_216 + 139] * 100
    assert cost.sent.sum() == cost.received.sum() == 400_000


def test_a_replica_that_keeps_its_bytes_loads_no_link():
    cost = cross_replica_cost(target(1), np.array([0, 1]), *arrays([0], [1], [40], [0]))
    assert cost.cycles.tolist() == [129, 129, 0, 0]  # through the IPU, and ten cycles of payload


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(4, 11), st.integers(1, 9), st.integers(0, 9)),
        min_size=1,
        max_size=12,
    )
)
def test_what_overlaps_and_repeats_is_sent_before_it_is_received(moves):
    # A tile's bytes begin at 100 times its number, so that fragments of one tile overlap.
    source, destination, size, begin = arrays(*zip(*moves, strict=True))
    cost = global_exchange_cost(target(3), source, destination, size, 100 * source + begin)
    assert cost.sent.sum() <= cost.received.sum() == size.sum()
    assert (cost.received <= cost.sent.sum()).all()
    assert ((cost.cycles > 0) == (cost.sent + cost.received > 0)).all()


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 100), min_size=36, max_size=36))
def test_routes_hop_by_hop_give_the_same_loads(values):
    matrix = np.array(values).reshape(6, 6)
    np.fill_diagonal(matrix, 0)
    loads = [{} for _ in range(4)]
    for source in range(6):
        for destination in range(6):
            at = source
            while at != destination:
                if at // 2 == destination // 2 and at == source:
                    kind, after = 0, destination
                elif at % 2 != destination % 2:
                    kind, after = 1, at ^ 1
                else:
                    kind, after = (2, at + 2) if at < destination else (3, at - 2)
                size = int(matrix[source, destination])
                loads[kind][at] = loads[kind].get(at, 0) + size
                at = after
    assert busiest_bundles(matrix).tolist() == [max(load.values()) for load in loads]


def test_what_one_tile_of_another_ipu_receives_twice_crosses_twice():
    source, destination, size, begin = arrays([0, 0, 0], [5, 5, 6], [4, 4, 4], [16, 16, 16])
    cost = global_exchange_cost(target(2), source, destination, size, begin)
    assert cost.sent.tolist() == [8, 0, 0, 0, 0, 0, 0, 0]
    assert cost.received.tolist() == [0, 0, 0, 0, 0, 8, 4, 0]
