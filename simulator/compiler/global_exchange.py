"""What an exchange between IPUs costs: bytes, cycles and code of every tile.

Estimates, after the constraints that PopLibs gives to the IPU Model (lib/poplibs_test/Util.cpp,
addGlobalExchangeConstraints). IPUs stand in a ladder of cards: IPUs 2k and 2k + 1 share a card,
which is a rung. How the sentence "4 links inside a card pair, 2 across the rung, 2 up, 2 down" is
read here: each IPU has bundles of links that lead away from it, and all traffic that leaves through
a bundle shares it. A bundle of 4 links carries what is meant for the other IPU of its own card; one
of 2 links carries across the rung what goes on to another card on the other side; one of 2 links
leads up and one of 2 links down its side of the ladder. Traffic takes the rung first, then up or
down. An odd number of IPUs is routed as if its last card were whole.

IPU-Links join the IPUs of a domain (`ipuLinkDomainSize`). What goes from one domain to another, as
between hosts, takes the GW-Links of its IPU-Machine: those of four IPUs share them, each way. Their
bandwidth is published, what of it programs reach and the latency are not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from simulator.compiler.exchange import INSTRUCTION_BYTES, repetition
from simulator.compiler.executable import Exchange
from simulator.compiler.flows import flows as flows_of_groups
from simulator.graph.geometry.intervals import distinct
from simulator.graph.machine.constants import GlobalExchangeFlow, Machine
from simulator.graph.machine.target import Target
from simulator.graph.types import IntArray

GLOBAL_EXCHANGE = "/GlobalExchange"  # how its name ends, as in the user guide's example
PACKET_INSTRUCTIONS = 2  # a request and a wait, as for a packet of the host [I]


def global_exchange_cost(
    target: Target, source: IntArray, destination: IntArray, size: IntArray, begin: IntArray
) -> Exchange:
    """Cost an exchange between the IPUs of `target` of fragments of `size` bytes.

    Bytes (`begin` in the arena) from one tile to many of another IPU cross the links once. The
    links are shared, so that all tiles that take part take as long: the latency and the time of
    the busiest bundle of links, or of the busiest tile when that is longer.
    """
    one_graph = np.zeros(1, dtype=np.int64)
    return cross_replica_cost(target, one_graph, source, destination, size, begin)


def cross_replica_cost(
    target: Target,
    to_replica: IntArray,
    source: IntArray,
    destination: IntArray,
    size: IntArray,
    begin: IntArray,
) -> Exchange:
    """Cost an exchange between replicas, each of which has the IPUs of `target`.

    Replica r sends the fragments to `to_replica[r]`; its IPUs stand in the ladder after those of
    replica r - 1. Tiles are of a replica: each sends its own bytes and receives another replica's.
    """
    tiles, ipus = target.num_tiles, target.num_ipus
    tile, to_ipu, moved = _crossings(target, source, destination, size, begin)
    sent, received = _sum(tile, moved, tiles), _sum(destination, size, tiles)
    replicas = len(to_replica)
    of_one = np.zeros((ipus, ipus), dtype=np.int64)
    np.add.at(of_one, (tile // target.tiles_per_ipu, to_ipu), moved)
    of_all = np.zeros((replicas, ipus, replicas, ipus), dtype=np.int64)
    of_all[np.arange(replicas), :, to_replica] = of_one
    flows = of_all.reshape(replicas * ipus, replicas * ipus)
    np.fill_diagonal(flows, 0)
    most = max(int(sent.max(initial=0)), int(received.max(initial=0)))
    busiest_tile = -(-most // target.exchange_bytes_per_cycle)
    domain = np.arange(len(flows)) // target.link_domain_size
    apart = (domain[:, None] != domain) & (not target.global_exchange_constraints)
    between = np.where(apart, flows, 0)
    late = max(latency(flows - between, target), gateway_latency(between, target))
    busiest_link = max(link_cycles(flows - between, target), gateway_cycles(between, target))
    time = late + max(busiest_link, busiest_tile)
    packets = -(-sent // target.host_packet_bytes) - (-received // target.host_packet_bytes)
    return Exchange(
        sent=sent,
        received=received,
        cycles=np.where((sent > 0) | (received > 0), time, 0),
        code=PACKET_INSTRUCTIONS * INSTRUCTION_BYTES * packets,
        flows=flows_of_groups(target, source, destination, size),
    )


def link_cycles(flows: IntArray, machine: Machine) -> int:
    """Return the cycles of the busiest bundle of links; `flows` are bytes by [from IPU][to IPU].

    Constraints of the machine stand for other links than those of the ladder: what shares which
    bandwidth.
    """
    links, constraints = np.array(machine.link_bundles), machine.global_exchange_constraints
    seconds = 8 * busiest_bundles(flows) / (links * machine.link_bits_per_second)
    if constraints:
        seconds = np.array([8 * _shared(flows, c.flows) / c.bandwidth for c in constraints])
    return math.ceil(float(seconds.max()) * machine.clock_frequency)


def gateway_latency(flows: IntArray, machine: Machine) -> int:
    """Return the cycles before the first word of traffic between domains; 0 without any."""
    if not flows.any():
        return 0
    cycles = machine.gateway_nanoseconds * machine.clock_frequency / 1e9
    return math.ceil(machine.exchange_latency[-1]) + math.ceil(cycles)


def gateway_cycles(flows: IntArray, machine: Machine) -> int:
    """Return the cycles of the busiest GW-Links; `flows` are bytes between domains."""
    place = np.arange(len(flows)) // machine.gateway_ipus
    sent, received = (np.bincount(place, weights=flows.sum(axis=axis)) for axis in (1, 0))
    seconds = 8 * max(sent.max(), received.max()) / machine.gateway_bits_per_second
    return math.ceil(float(seconds) * machine.clock_frequency)


def _shared(flows: IntArray, pairs: Sequence[GlobalExchangeFlow]) -> int:
    """Add up the bytes of some flows; those of IPUs that are not there have none."""
    source, destination = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    existing = np.maximum(source, destination) < len(flows)
    return int(flows[source[existing], destination[existing]].sum())


def busiest_bundles(flows: IntArray) -> IntArray:
    """Return the bytes through the busiest bundle of each kind, in the order of `link_bundles`."""
    card, side = _places(len(flows))
    stays = card[:, None] == card
    leaves = np.where(stays, 0, flows)
    over_rung = np.where(side[:, None] != side, leaves, 0)
    climbs = [
        (
            leaves[np.ix_(below, ~below & (side == way))],
            leaves[np.ix_(~below, below & (side == way))],
        )
        for border in range(int(card[-1]))
        for below in [card <= border]
        for way in (0, 1)
    ]
    return np.array(
        [
            int(np.where(stays, flows, 0).sum(axis=1).max()),
            int(over_rung.sum(axis=1).max()),
            max((int(up.sum()) for up, _ in climbs), default=0),
            max((int(down.sum()) for _, down in climbs), default=0),
        ]
    )


def latency(flows: IntArray, machine: Machine) -> int:
    """Return the cycles before the first word over the longest route that has traffic.

    To the links and from them it is taken to cross an IPU, like the farthest internal exchange.
    """
    card, side = _places(len(flows))
    apart = np.abs(card[:, None] - card)
    hops = np.where(apart == 0, 1, apart + (side[:, None] != side))
    most = int(hops[flows > 0].max(initial=0))
    hop = machine.link_hop_nanoseconds / 10**9
    farthest = math.ceil(machine.exchange_latency[-1])
    return farthest + math.ceil(hop * machine.clock_frequency * most)


def _places(ipus: int) -> tuple[IntArray, IntArray]:
    """Return the card and the side of the ladder of each IPU."""
    number = np.arange(ipus, dtype=np.int64)
    return number // 2, number % 2


def _crossings(
    target: Target, source: IntArray, destination: IntArray, size: IntArray, begin: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Return the tile, the IPU that it sends to and the bytes of each sending.

    What one tile receives several times, as of a broadcast tensor, crosses as often.
    """
    to_ipu = destination // target.tiles_per_ipu
    again = repetition(destination, begin)
    sends, _ = distinct(source * target.num_ipus + to_ipu, begin, size, again)
    return source[sends], to_ipu[sends], size[sends]


def _sum(tile: IntArray, size: IntArray, tiles: int) -> IntArray:
    return np.bincount(tile, weights=size, minlength=tiles).astype(np.int64)
