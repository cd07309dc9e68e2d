"""Figures that the user guide prints, each typed in: exchange, memory and liveness of its sample.

The programs that they come from are not public; these tests give the model the sizes that the guide
prints and compare what it makes of them.
"""

import numpy as np
import pytest

from pva.schema import REGIONS
from simulator import poplar
from simulator.codelets.products.convolution import worklists
from simulator.compiler.allocate import Demand, allocate
from simulator.compiler.compile import compile_graph
from simulator.compiler.exchange import exchange_cost, host_exchange_cost
from simulator.graph.machine.target import TARGETS
from simulator.poplar import CHAR, program
from tests.stream_copies import HOST_COPY

MK1, MK2 = TARGETS["mk1"], TARGETS["mk2"]
LAYER_1 = np.arange(392)  # the tiles of the sample's first layer


@pytest.mark.parametrize(("size", "cycles"), [(4, 7), (8, 9)])
def test_small_stream_copies_take_the_printed_cycles(size, cycles):
    cost = host_exchange_cost(MK1, np.array([0]), np.array([size]), to_device=True)
    assert cost.cycles.tolist() == [cycles] + [0] * 1215


def test_the_images_of_the_sample_have_the_printed_data_and_balance():
    # 128 bytes of the images on each tile; labels and the program's number on one of them.
    size = np.full(392, 128)
    size[0] += 16 * 4 + 4
    cost = host_exchange_cost(MK1, LAYER_1, size, to_device=True)
    moved = cost.sent + cost.received
    assert moved.sum() == 50_244
    assert moved.sum() // 2 == 25_122
    assert round(100 * moved.mean() / moved.max(), 1) == 21.1


def test_the_exchanges_of_the_sample_have_the_printed_balances():
    word = np.zeros(1215, dtype=np.int64)
    broadcast = exchange_cost(MK1, word, np.arange(1, 1216), word + 4, word)
    both = broadcast.sent + broadcast.received
    assert both.mean() / both.max() == 1.0
    assert round(100 * broadcast.cycles.mean() / broadcast.cycles.max(), 1) == 86.6
    source = np.repeat(LAYER_1, 4)
    destination = source // 4 * 4 + np.tile(np.arange(4), 392)
    layer = exchange_cost(MK1, source, destination, np.full(1568, 128), source * 128)
    both = layer.sent + layer.received
    assert round(100 * both.mean() / both.max(), 1) == 32.2


def test_what_selects_a_program_takes_the_printed_steps():
    # The steps of the guide's sample up to its user program, with one internal sync of 118 cycles
    # fewer after each of the two stream copies, as on the screenshot of tutorial 4.
    device = poplar.IPUModel("mk1").createDevice()
    engine = poplar.Engine(poplar.Graph(device.getTarget()), [program.Sequence()] * 2)
    engine.load(device)
    engine.run(1)
    steps = engine.getExecutionProfile()["simulation"]["steps"]
    short = {"External": "E", "Internal": "I"}
    assert [short[s["syncType"]] if s["type"] == "Sync" else s["type"] for s in steps] == [
        *[short.get(kind, kind) for kind in [*HOST_COPY, *HOST_COPY]],
        "I",
        "DoExchange",
    ]
    printed = ("cyclesFrom", "cyclesTo", "cycles", "activeTiles", "totalData")
    assert [[s[name] for name in printed] for s in steps if s.get("totalData")] == [
        [118, 118, 7, 1, 2],
        [354, 354, 9, 1, 4],
        [590, 710, 120, 1216, 2432],
    ]


def ends(target, tiles, pieces):
    """Allocate (code, data, interleaved) bytes on each tile; give where each tile's memory ends."""
    sizes = np.array(pieces, dtype=np.int64).reshape(-1, 3)
    variable, tile = (part.reshape(-1) for part in np.indices(sizes.T.shape))
    used = sizes.T.reshape(-1) > 0
    demand = Demand(
        variable[used],
        tile[used],
        sizes.T.reshape(-1)[used],
        np.array([False, False, True]),
        np.array([True, False, False]),
        np.ones((3, 3), dtype=bool),
    )
    found = allocate(
        demand, tiles, target.bytes_per_tile, target.interleaved_base, target.memory_element_bytes
    )
    result = np.zeros(tiles, dtype=np.int64)
    np.maximum.at(result, demand.tile, found.address + demand.bytes)
    return result


@pytest.mark.parametrize(
    ("target", "interleaved", "including_gaps"),
    [(MK1, 536, 131_608), (MK1, 504, 131_576), (MK2, 6_400, 219_392)],
)
def test_interleaved_data_begins_at_its_region_whatever_lies_below(
    target, interleaved, including_gaps
):
    assert ends(target, 1, [(684, 3_212, interleaved)]).tolist() == [including_gaps]


def test_an_idle_tile_of_the_sample_has_its_data_in_the_element_after_its_code():
    # 3,896 bytes: 684 of code, then 3,168 of stack and 44 of data from 16,384 on.
    assert ends(MK1, 1, [(684, 3_168 + 44, 0)]).tolist() == [19_596]


def test_the_tiles_of_the_sample_add_up_to_its_memory_including_gaps():
    # 392 tiles with 504 interleaved bytes (four of them 32 more) and 824 idle tiles.
    layer = [(684, 3_212, 536)] * 4 + [(684, 3_212, 504)] * 388
    total = ends(MK1, 1_216, layer + [(684, 3_212, 0)] * 824)
    assert total.max() == 131_608
    assert total.sum() == 67_725_024


@pytest.mark.parametrize(
    ("elements", "data", "end"),
    [(1, 56, 16_440), (2, 104, 32_872), (3, 88, 49_240), (4, 32, 65_568)],
)
def test_what_lies_above_code_begins_at_a_memory_element(elements, data, end):
    # Published ends of the region below the interleaved one: a little above whole elements.
    assert ends(MK2, 1, [(elements * 16_384 - 99, data, 0)]).tolist() == [end]


def test_the_worklists_of_the_sample_take_36_bytes_a_vertex():
    lists = worklists(np.tile([8, 8, 8, 6], 98), workers=6)
    assert lists.nbytes == 392 * 36 == 14_112


def one_tile(kept, temporary):
    """Compile a program that keeps `kept` bytes and, one after another, takes in the others."""
    target = poplar.IPUModel("tiny", memoryBytesPerTile=1 << 24).getTarget()
    graph, steps = poplar.Graph(target), program.Sequence()
    always = graph.addVariable(CHAR, [kept], "kept")
    graph.setTileMapping(always, 0)
    graph.createHostWrite("kept", always)
    for number, size in enumerate(temporary):
        variable = graph.addVariable(CHAR, [size], f"temporary {number}")
        graph.setTileMapping(variable, 0)
        source = graph.addHostToDeviceFIFO(f"in {number}", CHAR, size)
        steps.add(program.Copy(source, variable))
        steps.add(program.Copy(variable, graph.addDeviceToHostFIFO(f"out {number}", CHAR, size)))
    return compile_graph(graph, [steps])


def test_the_maximum_of_live_bytes_is_what_always_lives_and_the_largest_step():
    executable = one_tile(5_976_425, (105_168, 580_312, 311_022))
    always = dict(executable.memory.always_live_items)["kept"]
    assert executable.liveness.bytes.max() == 580_312
    assert always + executable.liveness.bytes.max() == 6_556_737


def test_memory_excluding_gaps_is_what_lies_alone_and_what_is_left_after_overlapping():
    memory = one_tile(6_325_741, (394_596, 300_000)).memory
    alone, overlapped = memory.by_category[:, REGIONS.index("interleaved")].sum(axis=(0, 2))
    assert (alone, overlapped) == (6_325_741, 694_596)
    assert memory.by_tile["interleaved"].sum() == 6_720_337
    assert memory.by_tile["interleaved"].sum() - alone == 394_596
