"""Streams and remote buffers of replicated graphs, replicated from their start or as a view."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from simulator.device import IPUModel
from simulator.engine import Engine
from simulator.graph.errors import PoplarError
from simulator.graph.graph import Graph
from simulator.graph.host.streams import ReplicatedStreamMode
from simulator.graph.program import Copy, Sequence
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.tensors.views import replication_factor
from simulator.graph.types import INT, UNSIGNED_INT, Type

Made = tuple[Any, Graph, Graph]  # the device, the graph to compile, the graph with two replicas


def from_its_start() -> Made:
    device = IPUModel("tiny", numIPUs=2).createDevice()
    graph = Graph(device.getTarget(), replication_factor(2))
    return device, graph, graph


def as_a_view() -> Made:
    device = IPUModel("tiny", numIPUs=2).createDevice()
    graph = Graph(device.getTarget())
    return device, graph, graph.createReplicatedGraph(2)


both_ways = pytest.mark.parametrize("made", [from_its_start, as_a_view])


def variable(graph: Graph, elements: int, dtype: Type = INT) -> Tensor:
    tensor = graph.addVariable(dtype, [elements], "t")
    graph.setTileMapping(tensor, 1)
    return tensor


def loaded(made: Made, *programs: Sequence) -> Engine:
    device, graph, _ = made
    session = Engine(graph, list(programs))
    session.load(device)
    return session


@both_ways
def test_a_stream_gives_each_replica_its_own_data(made: Callable[[], Made]) -> None:
    parts = made()
    graph = parts[2]
    tensor = variable(graph, 2)
    into, out = graph.addHostToDeviceFIFO("in", INT, 2), graph.addDeviceToHostFIFO("out", INT, 2)
    session = loaded(parts, Sequence(Copy(into, tensor), Copy(tensor, out)))
    session.connectStream("in", np.arange(8, dtype=np.int32))
    ends = np.zeros((2, 2), np.int32)
    for replica in range(2):
        session.connectStream("out", replica, ends[replica])
    session.run()
    assert ends.tolist() == [[0, 1], [2, 3]]
    session.run()
    assert ends.tolist() == [[4, 5], [6, 7]]


@both_ways
def test_a_broadcast_stream_gives_all_replicas_the_same(made: Callable[[], Made]) -> None:
    parts = made()
    graph = parts[2]
    tensor = variable(graph, 2)
    into = graph.addHostToDeviceFIFO("in", INT, 2, ReplicatedStreamMode.BROADCAST)
    out = graph.addDeviceToHostFIFO("out", INT, 2)
    session = loaded(parts, Sequence(*2 * [Copy(into, tensor), Copy(tensor, out)]))
    calls: list[int] = []

    def count(buffer: Any) -> None:
        calls.append(len(calls))
        buffer[:] = len(calls)

    session.connectStreamToCallback("in", count)
    found = np.zeros(8, np.int32)
    session.connectStream("out", found)
    session.run()
    assert found.tolist() == [1, 1, 1, 1, 2, 2, 2, 2]
    assert len(calls) == 2


@both_ways
def test_each_replica_stores_where_its_own_offsets_say(made: Callable[[], Made]) -> None:
    parts = made()
    graph = parts[2]
    tensor, offset = variable(graph, 4), variable(graph, 2, UNSIGNED_INT)
    buffer = graph.addRemoteBuffer("w", INT, 2, 4)
    into = graph.addHostToDeviceFIFO("in", INT, 4)
    rows = graph.addHostToDeviceFIFO("rows", UNSIGNED_INT, 2)
    program = Sequence(Copy(into, tensor), Copy(rows, offset), Copy(tensor, buffer, offset))
    session = loaded(parts, program)
    session.connectStream("in", np.arange(1, 9, dtype=np.int32))
    session.connectStream("rows", np.array([3, 0, 1, 2], np.uint32))
    session.run()
    held = np.zeros((2, 4, 2), np.int32)
    for replica in range(2):
        for row in range(4):
            session.copyFromRemoteBuffer("w", held[replica, row], row, replica)
    assert held[0].tolist() == [[3, 4], [0, 0], [0, 0], [1, 2]]
    assert held[1].tolist() == [[0, 0], [5, 6], [7, 8], [0, 0]]


@both_ways
def test_without_offsets_each_replica_loads_its_row_0(made: Callable[[], Made]) -> None:
    parts = made()
    graph = parts[2]
    tensor = variable(graph, 2)
    buffer = graph.addRemoteBuffer("w", INT, 2, 4)
    out = graph.addDeviceToHostFIFO("out", INT, 2)
    session = loaded(parts, Sequence(Copy(buffer, tensor), Copy(tensor, out)))
    for replica in range(2):
        session.copyToRemoteBuffer(np.full(2, replica + 5, np.int32), "w", 0, replica)
    found = bytearray(16)
    session.connectStream("out", found)
    session.run()
    assert np.frombuffer(found, np.int32).tolist() == [5, 5, 6, 6]


def test_the_offsets_of_a_replicated_buffer_have_to_be_replicated() -> None:
    device, graph, view = as_a_view()
    del device
    tensor, offset = variable(view, 2), variable(graph, 1, UNSIGNED_INT)
    buffer = view.addRemoteBuffer("w", INT, 2, 4)
    said = r"remote buffer 'w': 1 offset\(s\); 1 in each of 2 replicas are needed"
    with pytest.raises(PoplarError, match=said):
        Engine(graph, Copy(tensor, buffer, offset))
