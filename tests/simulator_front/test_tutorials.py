"""The public tutorials, as programs of this simulator: the values and texts that they print."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

from simulator import poplar, popops
from simulator.poplar import FLOAT, INT, program


@pytest.fixture
def device() -> poplar.Device:
    return poplar.IPUModel("tiny").createDevice()


def on_four_tiles(graph: poplar.Graph, tensor: poplar.Tensor) -> None:
    """Map the elements of a vector of four to tiles 0 to 3."""
    for tile in range(4):
        graph.setTileMapping(tensor[tile], tile)


def loaded(
    graph: poplar.Graph, prog: program.Program, device: poplar.Device
) -> tuple[poplar.Engine, io.StringIO]:
    engine, text = poplar.Engine(graph, prog), io.StringIO()
    engine.load(device)
    engine.setPrintStream(text)
    return engine, text


def test_tutorial_1_variables_copies_and_streams(device: poplar.Device) -> None:
    graph = poplar.Graph(device.getTarget())
    v1, v2 = graph.addVariable(FLOAT, [4], "v1"), graph.addVariable(FLOAT, [4], "v2")
    v3, v4 = graph.addVariable(FLOAT, [4, 4], "v3"), graph.addVariable(INT, [10], "v4")
    c1 = graph.addConstant(FLOAT, [4], [1.0, 1.5, 2.0, 2.5])
    graph.setTileMapping(v1, 0)
    for tensor in (v2, v3):
        on_four_tiles(graph, tensor)
    graph.setTileMapping(v4, 1)
    graph.setTileMapping(c1, 0)
    graph.createHostWrite("v3-write", v3)
    graph.createHostRead("v3-read", v3)
    stream = graph.addHostToDeviceFIFO("v4-input-stream", INT, 10)
    prog = program.Sequence(program.PrintTensor("v1-debug", v1), program.Copy(c1, v1))
    prog.add(program.PrintTensor("v1-debug", v1))
    prog.add(program.Copy(c1, v2))
    prog.add(program.PrintTensor("v2-debug", v2))
    prog.add(program.Copy(v1.slice(0, 3), v3.slice([1, 1], [2, 4])))
    for i in range(2):
        prog.add(program.Copy(stream, v4))
        prog.add(program.PrintTensor(f"v4-{i}", v4))
    engine, text = loaded(graph, prog, device)
    engine.writeTensor("v3-write", np.zeros((4, 4), np.float32))
    engine.connectStream("v4-input-stream", np.arange(30, dtype=np.int32))
    engine.run(0)
    assert text.getvalue().splitlines() == [
        "v1-debug: {0,0,0,0}",
        "v1-debug: {1,1.5,2,2.5}",
        "v2-debug: {1,1.5,2,2.5}",
        "v4-0: {0,1,2,3,4,5,6,7,8,9}",
        "v4-1: {10,11,12,13,14,15,16,17,18,19}",
    ]
    expected = [[0, 0, 0, 0], [0, 1, 1.5, 2], [0, 0, 0, 0], [0, 0, 0, 0]]
    assert engine.readTensor("v3-read").tolist() == expected


def test_tutorial_2_library_additions(device: poplar.Device) -> None:
    graph = poplar.Graph(device.getTarget())
    v1, v2 = graph.addVariable(FLOAT, [2, 2], "v1"), graph.addVariable(FLOAT, [2, 2], "v2")
    for i in range(2):
        for j in range(2):
            graph.setTileMapping(v1[i][j], i * 2 + j)
            graph.setTileMapping(v2[i][j], j * 2 + i)
    graph.createHostWrite("v1", v1)
    graph.createHostWrite("v2", v2)
    prog = program.Sequence()
    v3 = popops.add(graph, v1, v2, prog, "Add")
    prog.add(program.PrintTensor("v3", v3))
    v4 = popops.add(graph, v3, v2, prog, "Add")
    prog.add(program.PrintTensor("v4", v4))
    v5 = popops.add(graph, v1, v2.transpose(), prog, "Add")
    prog.add(program.PrintTensor("v5", v5))
    engine, text = loaded(graph, prog, device)
    engine.writeTensor("v1", np.array([[1, 1.5], [2, 2.5]], np.float32))
    engine.writeTensor("v2", np.array([[4, 3], [2, 1]], np.float32))
    engine.run()
    assert text.getvalue() == (
        "v3: {\n {5,4.5},\n {4,3.5}\n}\n"
        "v4: {\n {9,7.5},\n {6,4.5}\n}\n"
        "v5: {\n {5,3.5},\n {5,3.5}\n}\n"
    )


class SumVertex(poplar.Vertex):
    in_: Any = poplar.Input(poplar.Vector(FLOAT))
    out: Any = poplar.Output(FLOAT)

    def compute(self) -> None:
        self.out[0] = self.in_.sum()


def test_tutorial_3_a_codelet_on_every_tile(device: poplar.Device) -> None:
    graph = poplar.Graph(device.getTarget())
    v1, v2 = graph.addVariable(FLOAT, [4], "v1"), graph.addVariable(FLOAT, [4], "v2")
    c1 = graph.addConstant(FLOAT, [4], [1.0, 1.5, 2.0, 2.5])
    graph.setTileMapping(c1, 0)
    for tensor in (v1, v2):
        on_four_tiles(graph, tensor)
    add = graph.addComputeSet("computeSet")
    for tile in range(4):
        vertex = graph.addVertex(add, SumVertex)
        graph.connect(vertex["in"], v1.slice(tile, 4))
        graph.connect(vertex["out"], v2[tile])
        graph.setTileMapping(vertex, tile)
        graph.setCycleEstimate(vertex, 20)
    prog = program.Sequence(program.Copy(c1, v1), program.Execute(add))
    prog.add(program.PrintTensor("v2", v2))
    engine, text = loaded(graph, prog, device)
    engine.run(0)
    assert text.getvalue() == "v2: {7,6,4.5,2.5}\n"


class DotProductVertex(poplar.Vertex):
    a: Any = poplar.Input(poplar.Vector(FLOAT))
    b: Any = poplar.Input(poplar.Vector(FLOAT))
    out: Any = poplar.Output(FLOAT)

    def compute(self) -> None:
        self.out[0] = self.a @ self.b


def test_tutorial_6_a_matrix_times_a_vector() -> None:
    device = poplar.IPUModel("tiny", tilesPerIPU=40).createDevice()
    rows, columns = 40, 50
    graph = poplar.Graph(device.getTarget())
    matrix = graph.addVariable(FLOAT, [rows, columns], "matrix")
    vector = graph.addVariable(FLOAT, [columns], "inputVector")
    result = graph.addVariable(FLOAT, [rows], "outputVector")
    multiply = graph.addComputeSet("mulCS")
    graph.setTileMapping(vector, 0)
    for row in range(rows):
        connections = {"a": matrix[row], "b": vector, "out": result[row]}
        vertex = graph.addVertex(multiply, DotProductVertex, connections, tile=row)
        graph.setCycleEstimate(vertex, 20)
        graph.setTileMapping(matrix[row], row)
        graph.setTileMapping(result[row], row)
    out = graph.addDeviceToHostFIFO("output", FLOAT, rows)
    graph.createHostWrite("matrix", matrix)
    graph.createHostWrite("inputVector", vector)
    engine, _ = loaded(
        graph, program.Sequence(program.Execute(multiply), program.Copy(result, out)), device
    )
    engine.writeTensor("inputVector", np.arange(columns))
    engine.writeTensor("matrix", np.outer(np.arange(rows), np.arange(columns)))
    found = np.zeros(rows, np.float32)
    engine.connectStream("output", found)
    engine.run(0)
    # The sum of the squares of 0 to 49 is 40,425.
    assert found.tolist() == [40_425 * row for row in range(rows)]
