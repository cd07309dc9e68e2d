"""How copies with memory outside the IPU are split into transfers, and what they may not do."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stream_ends import mapped

from simulator.compiler.lowering.state import Building, Part
from simulator.compiler.lowering.stream import lower_remote, lower_stream, transfer_limit
from simulator.graph.graph import Graph
from simulator.graph.host.streams import Stream
from simulator.graph.machine.target import make_target
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import FLOAT, HALF, INT, UNSIGNED_INT
from tests.stream_copies import HOST_COPY, PHASES

MEGABYTE = 1 << 20


def kinds(parts: list[Part]) -> list[str]:
    programs = [part.program for part in parts]
    return [p.sync_type if p.type == "Sync" else p.type for p in programs]


def moved(building: Building) -> list[list[int]]:
    """Bytes by tile of each transfer."""
    return [(cost.sent + cost.received).tolist() for cost in building.host_exchanges]


# Streams
@pytest.mark.parametrize(
    ("target", "sizes"),
    [
        ("mk1", [128 * MEGABYTE, 128 * MEGABYTE, 44 * MEGABYTE]),
        ("mk2", [256 * MEGABYTE, 44 * MEGABYTE]),
    ],
)
@pytest.mark.parametrize("to_device", [True, False])
def test_a_stream_of_300_megabytes_is_split_at_the_targets_limit(
    target: str, sizes: list[int], to_device: bool
) -> None:
    graph = Graph(make_target(target))
    building = Building.start(graph)
    tensor = mapped(graph, 300 * MEGABYTE // 4)
    building = Building.start(graph)
    parts = lower_stream(building, "s", tensor, to_device)
    assert kinds(parts) == HOST_COPY * len(sizes)
    assert [sum(bytes_) for bytes_ in moved(building)] == sizes


def test_a_stream_at_the_limit_is_one_copy() -> None:
    graph = Graph(make_target("mk2"))
    tensor = mapped(graph, 64 * MEGABYTE)
    building = Building.start(graph)
    parts = lower_stream(building, "s", tensor, True)
    assert kinds(parts) == HOST_COPY
    assert parts[1].program.name == "s"


def test_a_split_follows_the_order_of_the_tensor_and_never_cuts_an_element() -> None:
    graph = Graph(make_target("tiny"))
    tensor = graph.addVariable(INT, [6], "t")
    graph.setTileMapping(tensor, [[(4, 6)], [(0, 4)]])
    building = Building.start(graph)
    parts = lower_stream(building, "s", tensor, True, 15)  # three elements a transfer
    assert moved(building) == [[0, 12, 0, 0], [8, 4, 0, 0]]
    assert [part.program.name for part in parts[2::6]] == ["s/0", "s/1"]


def test_the_limit_is_one_of_each_ipu() -> None:
    graph = Graph(make_target("tiny", num_ipus=2))
    tensor = graph.addVariable(INT, [8], "t")
    graph.setTileMapping(tensor, [[(0, 2)], [(2, 4)], [], [], [], [(6, 8)], [(4, 6)]])
    building = Building.start(graph)
    lower_stream(building, "s", tensor, True, 8)
    # IPU 1 holds the elements 4 to 7: the first of them are on its tile 2, that is tile 6.
    assert moved(building) == [[8, 0, 0, 0, 0, 0, 8, 0], [0, 8, 0, 0, 0, 8, 0, 0]]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 7), min_size=1, max_size=40), st.integers(4, 60))
def test_a_split_moves_every_byte_once_and_keeps_to_the_limit(tiles: list[int], limit: int) -> None:
    graph = Graph(make_target("tiny", num_ipus=2))
    tensor = graph.addVariable(FLOAT, [len(tiles)], "t")
    for element, tile in enumerate(tiles):
        graph.setTileMapping(tensor[element], tile)
    building = Building.start(graph)
    lower_stream(building, "s", tensor, True, limit)
    by_transfer = np.array(moved(building))
    wanted = 4 * np.bincount(tiles, minlength=8)
    assert (by_transfer.sum(axis=0) == wanted).all()
    by_ipu = by_transfer.reshape(-1, 2, 4).sum(axis=2)
    assert (by_ipu <= limit).all()
    fewest = [-(-int(held) // (limit // 4 * 4)) for held in wanted.reshape(2, 4).sum(axis=1)]
    assert len(by_transfer) == max(fewest)


def test_the_first_transfer_that_touches_a_variable_writes_it_whole() -> None:
    # Else what the variable held before would have to stay alive.
    graph = Graph(make_target("tiny"))
    first, second = mapped(graph, 3, tile=0), mapped(graph, 3, tile=1)
    both = Tensor(
        graph,
        FLOAT,
        (5,),
        (np.concatenate([first.begins, second.begins]), np.array([3, 2])),
    )
    building = Building.start(graph)
    copies = lower_stream(building, "s", both, True, 8)[2::5]
    assert [copy.writes.tolist() for copy in copies] == [[0], [0, 1], [1]]
    assert [copy.whole.tolist() for copy in copies] == [[True], [False, False], [False]]


def test_the_option_of_the_stream_goes_before_the_targets_limit() -> None:
    target = make_target("mk2")
    assert transfer_limit(Stream(0, "s", FLOAT, 1, "in"), target) == 256 * MEGABYTE
    assert transfer_limit(Stream(0, "s", FLOAT, 1, "in", splitLimit=64), target) == 64


# Remote buffers
def remote_parts(
    graph: Graph, tensor: Tensor, rows: int, offset: Tensor | None = None, to_device: bool = True
) -> tuple[Building, list[Part]]:
    elements = tensor.numElements() // rows
    buffer = graph.addRemoteBuffer("w", tensor.dtype, elements, 100)
    building = Building.start(graph)
    return building, lower_remote(building, "w", buffer, tensor, offset, to_device)


def test_each_row_of_a_remote_buffer_is_a_transfer_without_the_host() -> None:
    graph = Graph(make_target("tiny"))
    tensor, offset = mapped(graph, 6, INT, tile=1), mapped(graph, 3, UNSIGNED_INT, tile=0)
    building, parts = remote_parts(graph, tensor, 3, offset)
    assert kinds(parts) == ["Internal"] + 3 * [*PHASES, "Internal"]
    assert moved(building) == [[0, 8, 0, 0]] * 3
    assert [part.reads.tolist() for part in parts[2::4]] == [[1]] * 3
    assert [part.writes.tolist() for part in parts[2::4]] == [[0]] * 3


def test_rows_go_out_of_the_tiles_that_hold_them() -> None:
    graph = Graph(make_target("tiny"))
    tensor = graph.addVariable(HALF, [2, 4], "t")
    graph.setTileMapping(tensor, [[(0, 3)], [(3, 8)]])
    offset = mapped(graph, 2, UNSIGNED_INT, tile=0)
    building, parts = remote_parts(graph, tensor, 2, offset, to_device=False)
    assert [cost.sent.tolist() for cost in building.host_exchanges] == [[6, 2, 0, 0], [0, 8, 0, 0]]
    assert parts[2].reads.tolist() == [0, 1] and not len(parts[2].writes)


def test_a_row_takes_as_long_as_a_link_of_15_75_gigabytes_a_second() -> None:
    graph = Graph(make_target("mk2"))
    tensor = mapped(graph, MEGABYTE // 4)
    building, _ = remote_parts(graph, tensor, 1)
    cost = building.host_exchanges[0]
    # 1,048,576 bytes at 1.33 GHz over 15.753846 GB/s are 88,524.8 cycles; and 5 to begin with.
    assert set(cost.cycles.tolist()) - {0} == {88_530}
