"""Stream data that is spread thinly comes by whole packets, and reaches the tiles it belongs to."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator import poplar
from simulator.compiler.lowering.packet_gathering import lower_gathered
from simulator.compiler.lowering.state import Building
from simulator.graph.graph import Graph
from simulator.graph.machine.target import make_target
from simulator.poplar import FLOAT, program
from tests.stream_copies import HOST_COPY

LIMIT = 1 << 20


def spread(graph, tiles):
    """Add a variable of one float for each of `tiles`."""
    tensor = graph.addVariable(FLOAT, [len(tiles)], "t")
    place = np.arange(len(tiles))
    graph.map_ranges(tensor, place, place + 1, np.array(tiles))
    return tensor


def lowered(graph, tensor, *, to_device=True, limit=LIMIT):
    """Lower a copy from (or to) a stream; give what was built and the kinds of its programs."""
    building = Building.start(graph)
    parts = lower_gathered(building, "s", tensor, to_device, limit)
    programs = [part.program for part in parts]
    return building, parts, [p.sync_type if p.type == "Sync" else p.type for p in programs]


@pytest.mark.parametrize(("target", "packets"), [("mk1", 63), ("mk2", 32)])
def test_a_thousand_words_on_as_many_tiles_need_the_published_number_of_copies(target, packets):
    graph = Graph(make_target(target))
    tiles = np.arange(1000) * graph.target.num_tiles // 1000
    building, _, _ = lowered(graph, spread(graph, tiles))
    copies = building.groups[-1]
    assert copies.codelet.name == "poplar_rt::ShortMemcpy"
    assert (len(copies), copies.cycles.sum()) == (packets, packets * 72)


def test_packets_are_streamed_copied_and_exchanged():
    # 40 words one a tile on Mk1: packets of 16 words begin on the tiles 0, 16 and 32.
    graph = Graph(make_target("mk1"))
    building, parts, kinds = lowered(graph, spread(graph, range(40)))
    assert kinds == [*HOST_COPY, "OnTileExecute", "Internal", "DoExchange"]
    names = [part.program.name for part in parts if part.program.type != "Sync"]
    assert names == ["s", "s", "s", "s/PostArrange-0", "s/ExchangePost"]
    assert np.flatnonzero(building.host_exchanges[0].received).tolist() == [0, 16, 32]
    assert building.host_exchanges[0].received[[0, 16, 32]].tolist() == [64, 64, 32]
    exchange = building.exchanges[0]
    assert exchange.sent[[0, 16, 32]].tolist() == [60, 60, 28]
    assert exchange.received[:40].tolist() == [0, *[4] * 15, 0, *[4] * 15, 0, *[4] * 7]


def test_the_copy_begins_the_life_of_what_stays_on_its_tile():
    graph = Graph(make_target("mk1"))
    building, parts, _ = lowered(graph, spread(graph, range(32)))
    _, stream, _, copy, exchange = (part for part in parts if part.program.type != "Sync")
    packet, rearranged = 1, 2  # after the variable itself
    names = [variable.name for variable in building.variables]
    assert names == ["tPacket", "tRearranged"]
    assert (stream.reads.tolist(), stream.writes.tolist()) == ([], [packet])
    assert (copy.reads.tolist(), copy.writes.tolist()) == ([packet], [rearranged, 0])
    assert (exchange.reads.tolist(), exchange.writes.tolist()) == ([rearranged], [0])
    assert (copy.whole.tolist(), exchange.whole.tolist()) == ([True, True], [False])


def test_what_fills_a_packet_somewhere_or_needs_only_one_is_not_gathered():
    graph = Graph(make_target("mk1"))
    for tiles in ([7] * 40, [*range(40), *[3] * 16], range(15)):
        assert lowered(graph, spread(graph, tiles))[2] == HOST_COPY
    assert lowered(graph, spread(graph, range(40)), to_device=False)[2] == HOST_COPY


def test_what_takes_several_transfers_is_not_gathered():
    graph = Graph(make_target("mk1"))
    _, _, kinds = lowered(graph, spread(graph, range(40)), limit=100)
    assert kinds == HOST_COPY * 2


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 199), min_size=1, max_size=120))
def test_every_word_reaches_its_tile_from_a_packet_of_the_same_ipu(tiles):
    graph = Graph(make_target("tiny", tiles_per_ipu=100, num_ipus=2, host_packet_bytes=64))
    building, _, kinds = lowered(graph, spread(graph, tiles))
    wanted = 4 * np.bincount(tiles, minlength=200)
    streamed = building.host_exchanges[0].received
    assert streamed.sum() == wanted.sum()
    if "DoExchange" not in kinds:
        np.testing.assert_array_equal(streamed, wanted)
        return
    assert "GlobalExchange" not in kinds
    assert len(building.groups[-1]) == sum(-(-wanted.reshape(2, 100).sum(axis=1) // 64))
    exchange = building.exchanges[0]
    np.testing.assert_array_equal(streamed - exchange.sent + exchange.received, wanted)


def test_gathered_values_are_those_of_the_stream():
    device = poplar.IPUModel("mk1").createDevice()
    graph = poplar.Graph(device.getTarget())
    tensor = spread(graph, np.arange(100) * 12 % 1216)
    stream = graph.addHostToDeviceFIFO("in", FLOAT, 100)
    graph.createHostRead("read", tensor)
    engine = poplar.Engine(graph, program.Sequence(program.Copy(stream, tensor)))
    engine.load(device)
    engine.connectStream(stream, np.arange(100, dtype=np.float32))
    engine.run()
    assert engine.readTensor("read").tolist() == list(range(100))
