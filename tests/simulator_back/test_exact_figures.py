"""Figures that the user guide prints, each typed in: exchange, memory and liveness of its sample.

The programs that they come from are not public; these tests give the model the sizes that the guide
prints and compare what it makes of them.
"""

import numpy as np
import pytest

from simulator.compiler.allocate import Demand, allocate
from simulator.compiler.exchange import exchange_cost, host_exchange_cost
from simulator.graph.target import TARGETS

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
    source = np.repeat(LAYER_1, 4)
    destination = source // 4 * 4 + np.tile(np.arange(4), 392)
    layer = exchange_cost(MK1, source, destination, np.full(1568, 128), source * 128)
    both = layer.sent + layer.received
    assert round(100 * both.mean() / both.max(), 1) == 32.2


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
    ("target", "interleaved", "including_gaps"), [(MK1, 536, 131_608), (MK2, 6_400, 219_392)]
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
