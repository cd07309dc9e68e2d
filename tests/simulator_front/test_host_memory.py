"""Tensors that the host writes and reads directly, from and into any memory."""

from __future__ import annotations

import array
import ctypes
from typing import Any

import numpy as np
import pytest

from simulator.device import Device, IPUModel
from simulator.engine import Engine
from simulator.graph.errors import HostAccessError
from simulator.graph.graph import Graph
from simulator.graph.program import Copy, Sequence
from simulator.graph.tensors.views import replication_factor
from simulator.graph.types import FLOAT, INT

FLOATS = np.array([1.5, 2.5], np.float32)


def loaded(replicas: int = 1) -> Engine:
    device = IPUModel("tiny", numIPUs=replicas).createDevice()
    graph = Graph(device.getTarget(), replication_factor(replicas))
    tensor = graph.addVariable(FLOAT, [2], "t")
    graph.setTileMapping(tensor, 0)
    graph.createHostWrite("in", tensor)
    graph.createHostRead("out", tensor)
    session = Engine(graph, Sequence())
    session.load(device)
    return session


@pytest.mark.parametrize(
    "memory",
    [
        FLOATS.tobytes(),
        bytearray(FLOATS.tobytes()),
        memoryview(FLOATS),
        array.array("f", FLOATS),
        (ctypes.c_float * 2)(*FLOATS),
        [1.5, 2.5],
    ],
    ids=lambda memory: type(memory).__name__,
)
def test_a_tensor_is_written_from_any_memory(memory: Any) -> None:
    session = loaded()
    session.writeTensor("in", memory)
    assert session.readTensor("out").tolist() == [1.5, 2.5]


@pytest.mark.parametrize(
    "memory",
    [bytearray(8), array.array("f", [0, 0]), (ctypes.c_float * 2)(), np.zeros((1, 2), np.float32)],
    ids=lambda memory: type(memory).__name__,
)
def test_a_tensor_is_read_into_any_memory(memory: Any) -> None:
    session = loaded()
    session.writeTensor("in", FLOATS)
    assert session.readTensor("out", memory) is memory
    assert bytes(memory) == FLOATS.tobytes()


def test_one_handle_is_a_host_read_and_a_host_write() -> None:
    device = IPUModel("tiny").createDevice()
    graph = Graph(device.getTarget())
    tensors = [graph.addVariable(FLOAT, [2], name) for name in ("a", "b")]
    for tensor in tensors:
        graph.setTileMapping(tensor, 0)
    graph.createHostWrite("t", tensors[0])
    graph.createHostRead("t", tensors[1])
    with pytest.raises(HostAccessError, match="host read 't': there is one of this name already"):
        graph.createHostRead("t", tensors[0])
    session = Engine(graph, Sequence(Copy(tensors[0], tensors[1])))
    session.load(device)
    session.writeTensor("t", FLOATS)
    session.run()
    assert session.readTensor("t").tolist() == [1.5, 2.5]


def test_bytes_are_split_among_the_replicas() -> None:
    session = loaded(replicas=2)
    session.writeTensor("in", np.arange(4, dtype=np.float32).tobytes())
    found = bytearray(16)
    session.readTensor("out", found)
    assert np.frombuffer(found, np.float32).tolist() == [0, 1, 2, 3]


def test_a_wider_array_holds_the_values_too() -> None:
    session = loaded()
    session.writeTensor("in", FLOATS)
    assert session.readTensor("out", np.zeros(2)).tolist() == [1.5, 2.5]


@pytest.mark.parametrize(
    ("memory", "said"),
    [
        (np.zeros(2, np.int32), "array of int32; one of float is needed"),
        (np.zeros(2, np.float16), "array of float16; one of float is needed"),
        (array.array("d", [0, 0]), "array of float64; one of float is needed"),
        (np.zeros(3, np.float32), "array of 3 elements for t of 2"),
        (bytearray(12), "array of 3 elements for t of 2"),
        (bytes(8), "the array is read-only; one that can be written is needed"),
        (np.broadcast_to(np.float32(0), 2), "the array is read-only"),
        ([0.0, 0.0], "list does not show its memory"),
    ],
)
def test_memory_that_cannot_take_a_tensor_is_refused(memory: Any, said: str) -> None:
    session = loaded()
    with pytest.raises(HostAccessError, match=f"host read 'out': {said}"):
        session.readTensor("out", memory)


@pytest.mark.parametrize(
    ("memory", "said"),
    [
        (bytes(7), "host write 'in': 7 bytes; a multiple of 4, the size of float, is needed"),
        (bytes(12), "host write 'in': 3 values for t of 2 elements"),
        (memoryview(np.zeros(2)), "host write 'in': array of float64; one of float is needed"),
    ],
)
def test_memory_that_does_not_fit_a_tensor_is_refused(memory: Any, said: str) -> None:
    with pytest.raises(HostAccessError, match=said):
        loaded().writeTensor("in", memory)


def test_a_cpu_moves_streams_and_rows_as_an_ipu_does() -> None:
    device = Device.createCPUDevice()
    graph = Graph(device.getTarget())
    tensor = graph.addVariable(INT, [4], "t")
    graph.setTileMapping(tensor, 0)
    into = graph.addHostToDeviceFIFO("in", INT, 4, options={"splitLimit": 8})
    buffer = graph.addRemoteBuffer("w", INT, 4, 2)
    session = Engine(graph, Sequence(Copy(into, tensor), Copy(tensor, buffer)))
    session.load(device)
    session.connectStream("in", np.arange(4, dtype=np.int32))
    session.run()
    found = np.zeros(4, np.int32)
    session.copyFromRemoteBuffer("w", found, 0)
    assert found.tolist() == [0, 1, 2, 3]
