"""Tutorial 2 of the Poplar user guide: operations of the PopLibs libraries.

python examples/tutorials/tut2_operations.py
"""

import checkout  # noqa: F401  (finds the simulator without an install)

from simulator import poplar, popops
from simulator.poplar import FLOAT, program


def main() -> None:
    """Add two matrices, add again, add a transposed view."""
    ipuModel = poplar.IPUModel()
    device = ipuModel.createDevice()
    target = device.getTarget()

    # Each library that a program uses brings its vertices into the graph.
    graph = poplar.Graph(target)
    popops.addCodelets(graph)

    # Two matrices with one element a tile; v2 lies the other way round.
    v1 = graph.addVariable(FLOAT, [2, 2], "v1")
    v2 = graph.addVariable(FLOAT, [2, 2], "v2")
    for i in range(2):
        for j in range(2):
            graph.setTileMapping(v1[i][j], i * 2 + j)
            graph.setTileMapping(v2[i][j], j * 2 + i)

    prog = program.Sequence()

    # Their values are constants on tile 0.
    c1 = graph.addConstant(FLOAT, [4], [1.0, 1.5, 2.0, 2.5])
    c2 = graph.addConstant(FLOAT, [4], [4.0, 3.0, 2.0, 1.0])
    graph.setTileMapping(c1, 0)
    graph.setTileMapping(c2, 0)
    prog.add(program.Copy(c1, v1.flatten()))
    prog.add(program.Copy(c2, v2.flatten()))

    # A library function adds its steps to the program and gives a new variable.
    v3 = popops.add(graph, v1, v2, prog, "Add")
    prog.add(program.PrintTensor("v3", v3))

    v4 = popops.add(graph, v3, v2, prog, "Add")
    prog.add(program.PrintTensor("v4", v4))

    # Any view will do as an operand.
    v5 = popops.add(graph, v1, v2.transpose(), prog, "Add")
    prog.add(program.PrintTensor("v5", v5))

    engine = poplar.Engine(graph, prog)
    engine.load(device)

    print("Running program")
    engine.run(0)
    print("Program complete")


if __name__ == "__main__":
    main()
