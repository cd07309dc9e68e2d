"""Tutorial 4 of the Poplar user guide: profiling output.

python examples/tutorials/tut4_profiling.py --out tut4_report > profile.txt
"""

import argparse
import sys

import checkout  # noqa: F401  (finds the simulator without an install)

from simulator import poplar, poplin, popops, poputil
from simulator.poplar import FLOAT, program


def main() -> None:
    """Multiply three matrices and print where memory and cycles went."""
    parser = argparse.ArgumentParser(description="Profile ((m1 * m2) * m3).")
    parser.add_argument("--out", default="tut4_report", help="directory of the report")
    arguments = parser.parse_args()

    ipuModel = poplar.IPUModel()
    device = ipuModel.createDevice()
    target = device.getTarget()

    graph = poplar.Graph(target)
    popops.addCodelets(graph)
    poplin.addCodelets(graph)

    # Each matrix is spread evenly over the tiles.
    m1 = graph.addVariable(FLOAT, [800, 500], "m1")
    m2 = graph.addVariable(FLOAT, [500, 400], "m2")
    m3 = graph.addVariable(FLOAT, [400, 200], "m3")
    poputil.mapTensorLinearly(graph, m1)
    poputil.mapTensorLinearly(graph, m2)
    poputil.mapTensorLinearly(graph, m3)

    # The library plans how to split each product over the tiles.
    prog = program.Sequence()
    m4 = poplin.matMul(graph, m1, m2, prog, "m4")
    poplin.matMul(graph, m4, m3, prog, "m5")

    # The report is also there for `tilescope`, on the command line or as pages.
    options = {"autoReport.all": True, "autoReport.directory": arguments.out}
    engine = poplar.Engine(graph, prog, options)
    engine.load(device)

    print("Running program")
    engine.run(0)
    print("Program complete")

    engine.printProfileSummary(sys.stdout, {"showExecutionSteps": "true"})


if __name__ == "__main__":
    main()
