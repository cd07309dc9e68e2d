"""Tutorial 3 of the Poplar user guide: writing vertex code.

python examples/tutorials/tut3_vertices.py
"""

from typing import Any

import checkout  # noqa: F401  (finds the simulator without an install)

from simulator import poplar
from simulator.poplar import FLOAT, program


class SumVertex(poplar.Vertex):
    """A codelet: it adds up what comes in. The field is called `in`, a word that Python keeps."""

    in_: Any = poplar.Input(poplar.Vector(FLOAT))
    out: Any = poplar.Output(FLOAT)

    def compute(self) -> bool:
        self.out[0] = 0
        for v in self.in_:
            self.out[0] += v
        return True


def main() -> None:
    """Set each element of v2 to the sum of v1 from that element on."""
    ipuModel = poplar.IPUModel()
    device = ipuModel.createDevice()
    target = device.getTarget()

    # The graph knows the codelet by its name from here on.
    graph = poplar.Graph(target)
    graph.addCodelets(SumVertex)

    v1 = graph.addVariable(FLOAT, [4], "v1")
    v2 = graph.addVariable(FLOAT, [4], "v2")
    for i in range(4):
        graph.setTileMapping(v1[i], i)
        graph.setTileMapping(v2[i], i)

    prog = program.Sequence()
    c1 = graph.addConstant(FLOAT, [4], [1.0, 1.5, 2.0, 2.5])
    graph.setTileMapping(c1, 0)
    prog.add(program.Copy(c1, v1))

    # The vertices of a compute set run in parallel, here one on each of four tiles.
    computeSet = graph.addComputeSet("computeSet")
    for i in range(4):
        vtx = graph.addVertex(computeSet, "SumVertex")
        graph.connect(vtx["in"], v1.slice(i, 4))
        graph.connect(vtx["out"], v2[i])
        graph.setTileMapping(vtx, i)
        # The model does not count the codelet's instructions: say what they cost.
        graph.setCycleEstimate(vtx, 20)

    prog.add(program.Execute(computeSet))
    prog.add(program.PrintTensor("v2", v2))

    engine = poplar.Engine(graph, prog)
    engine.load(device)

    print("Running program")
    engine.run(0)
    print("Program complete")


if __name__ == "__main__":
    main()
