"""A CPU target: values without a model of the machine."""

from simulator import poplar
from simulator.poplar import program


class Copy(poplar.Vertex):
    in_ = poplar.Input(poplar.Vector(poplar.FLOAT))
    out = poplar.Output(poplar.Vector(poplar.FLOAT))

    def compute(self):
        self.out[:] = self.in_


def test_a_program_for_the_cpu_needs_no_tiles_and_no_estimates():
    target = poplar.Target.createCPUTarget()
    graph = poplar.Graph(target)
    source, result = (graph.addVariable(poplar.FLOAT, [4], name) for name in "ab")
    compute_set = graph.addComputeSet("copy")
    graph.addVertex(compute_set, Copy, {"in": source, "out": result})
    graph.createHostWrite("a", source)
    graph.createHostRead("b", result)
    engine = poplar.Engine(graph, program.Execute(compute_set))
    engine.load(poplar.Device.createCPUDevice())
    engine.writeTensor("a", [1, 2, 3, 4])
    engine.run()
    assert engine.readTensor("b").tolist() == [1, 2, 3, 4]
    assert engine.getGraphProfile()["target"]["type"] == "CPU"
    profile = engine.getExecutionProfile()
    assert profile["profilerMode"] == "CPU"
    assert not {"programTrace", "simulation"} & set(profile)
