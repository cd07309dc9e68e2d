"""Tutorial 1 of the Poplar user guide: programs and variables.

python examples/tutorials/tut1_variables.py
"""

import checkout  # noqa: F401  (finds the simulator without an install)
import numpy as np

from simulator import poplar
from simulator.poplar import FLOAT, INT, program


def main() -> None:
    """Build the graph and its program, run it, show what came back."""
    # A model of an IPU stands in for the machine; its target says what to build for.
    ipuModel = poplar.IPUModel()
    device = ipuModel.createDevice()
    target = device.getTarget()
    graph = poplar.Graph(target)

    # Variables: two vectors and a matrix of floats, a vector of integers.
    v1 = graph.addVariable(FLOAT, [4], "v1")
    v2 = graph.addVariable(FLOAT, [4], "v2")
    v3 = graph.addVariable(FLOAT, [4, 4], "v3")
    v4 = graph.addVariable(INT, [10], "v4")

    # All of v1 lies on tile 0, one element of v2 on each of the tiles 0 to 3.
    graph.setTileMapping(v1, 0)
    for i in range(4):
        graph.setTileMapping(v2[i], i)
    graph.setTileMapping(v3, 0)
    graph.setTileMapping(v4, 0)

    # A constant takes room on a tile like a variable.
    c1 = graph.addConstant(FLOAT, [4], [1.0, 1.5, 2.0, 2.5])
    graph.setTileMapping(c1, 0)

    # The control program: steps one after another. Nothing has been written to v1 at first.
    prog = program.Sequence()
    prog.add(program.PrintTensor("v1-debug", v1))
    prog.add(program.Copy(c1, v1))
    prog.add(program.PrintTensor("v1-debug", v1))
    prog.add(program.Copy(v1, v2))
    prog.add(program.PrintTensor("v2-debug", v2))

    # Handles by which the host writes and reads v3 between runs.
    graph.createHostWrite("v3-write", v3)
    graph.createHostRead("v3-read", v3)

    # Slices are views: the copy puts three elements of v1 into the middle of v3.
    v1slice = v1.slice(0, 3)
    v3slice = v3.slice([1, 1], [2, 4])
    prog.add(program.Copy(v1slice, v3slice))

    # A stream brings ten new integers each time it is copied from.
    inStream = graph.addHostToDeviceFIFO("v4-input-stream", INT, 10)
    prog.add(program.Copy(inStream, v4))
    prog.add(program.PrintTensor("v4-0", v4))
    prog.add(program.Copy(inStream, v4))
    prog.add(program.PrintTensor("v4-1", v4))

    # The engine compiles graph and program for the device.
    engine = poplar.Engine(graph, prog)
    engine.load(device)

    # Give v3 its values, and the stream a buffer that it goes round and round.
    h3 = np.zeros((4, 4), np.float32)
    engine.writeTensor("v3-write", h3)
    inData = np.arange(10 * 3, dtype=np.int32)
    engine.connectStream("v4-input-stream", inData)

    print("Running program")
    engine.run(0)
    print("Program complete")

    # Copy v3 back to the host.
    engine.readTensor("v3-read", h3)
    print("\nh3 data:")
    for row in h3:
        print("  " + " ".join(f"{value:g}" for value in row))


if __name__ == "__main__":
    main()
