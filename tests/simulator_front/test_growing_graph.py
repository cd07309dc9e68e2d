"""An engine keeps the graph and the programs that it was given; both may grow for the next one."""

from __future__ import annotations

import numpy as np

from simulator import poplar, popops
from simulator.poplar import program


class Increment(poplar.Vertex):
    x = poplar.InOut(poplar.Vector(poplar.FLOAT))

    def compute(self) -> None:
        self.x[:] += 1  # type: ignore[index,operator,misc]


def test_what_is_added_after_an_engine_was_made_is_no_part_of_it() -> None:
    device = poplar.IPUModel("tiny").createDevice()
    graph = poplar.Graph(device.getTarget())
    data = graph.addVariable(poplar.FLOAT, [4], "data")
    graph.setTileMapping(data, 1)
    graph.createHostRead("data", data)
    compute_set = graph.addComputeSet("increment")
    for half in (data[:2], data[2:]):
        vertex = graph.addVertex(compute_set, Increment, {"x": half}, tile=1)
        graph.setPerfEstimate(vertex, 5)
        main = program.Sequence(program.Execute(compute_set))
        if half.intersectsWith(data[:2]):
            engine = poplar.Engine(graph, main)
            before = engine.getGraphProfile()
    popops.addInPlace(graph, data, data, main)
    graph.setTileMapping(data, 2)
    engine.load(device)
    engine.run()
    assert engine.readTensor("data").tolist() == [1, 1, 0, 0]
    assert engine.getGraphProfile() == before


def test_a_case_added_after_an_engine_was_made_is_no_part_of_it() -> None:
    device = poplar.IPUModel("tiny").createDevice()
    graph = poplar.Graph(device.getTarget())
    control, result = (graph.addVariable(poplar.INT, [1], name) for name in ("control", "result"))
    values = [graph.addConstant(poplar.INT, [1], [number]) for number in (5, 6, 7)]
    for tensor in (control, result, *values):
        graph.setTileMapping(tensor, 0)
    graph.createHostWrite("control", control)
    graph.createHostRead("result", result)
    copies = [program.Copy(value, result) for value in values]
    switch = program.Switch(control, [(1, copies[0])], copies[1])
    engine = poplar.Engine(graph, switch)
    switch.add(2, copies[2])
    engine.load(device)
    for case, wanted in ((1, 5), (2, 6), (3, 6)):
        engine.writeTensor("control", np.array([case], dtype=np.int32))
        engine.run()
        assert engine.readTensor("result").tolist() == [wanted]
