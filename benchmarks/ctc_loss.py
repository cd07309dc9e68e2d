"""Print what the classification loss and its gradient take: `python -m benchmarks.ctc_loss`.

One sample of so many steps and labels, 40 classes, on a Mk2: PopLibs' tests have such sizes.
"""

from __future__ import annotations

from simulator import popnn
from simulator.poplar import FLOAT, UNSIGNED_INT, Engine, Graph, IPUModel, VariableMappingMethod
from simulator.poplar import program as programs

SIZES = ((375, 80), (1200, 400))
CLASSES = 40


def cycles(steps: int, labels: int) -> tuple[str, str]:
    """Return how a sample is cut, and the time that it takes."""
    device = IPUModel("mk2").createDevice()
    graph, prog = Graph(device.getTarget()), programs.Sequence()
    plan = popnn.ctc.plan(graph, FLOAT, FLOAT, 1, steps, labels, CLASSES)
    data = popnn.ctc.createDataInput(graph, FLOAT, 1, steps, CLASSES, plan)
    symbols = popnn.ctc.createLabelsInput(graph, UNSIGNED_INT, 1, labels, plan)
    lengths = [
        graph.addVariable(UNSIGNED_INT, [1], VariableMappingMethod.LINEAR, name)
        for name in ("steps", "labels")
    ]
    popnn.ctc.calcLossAndGradientLogProbabilities(
        graph, FLOAT, data, symbols, *lengths, prog, 0, plan
    )
    engine = Engine(graph, prog, {"debug.instrument": True, "simulator.computeValues": False})
    engine.load(device)
    begin = engine.getTimeStamp()
    engine.run(0)
    cuts = f"{plan.time} x {plan.label_parts} parts"
    return cuts, engine.reportTiming(begin, engine.getTimeStamp()).partition("; ")[2]


def main() -> None:
    """Print a line for each size."""
    for steps, labels in SIZES:
        print(f"{steps} steps, {labels} labels:", *cycles(steps, labels), sep="  ")


if __name__ == "__main__":
    main()
