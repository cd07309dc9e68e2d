"""How long layers of real networks take to plan and to compile, and what that needs.

    python benchmarks/convolution_speed.py

Layers of the size of ResNet-50's convolutions and BERT base's products, each in a process of its
own: seconds to plan, to build and to compile, and the most memory that the process took. Then the
same layer on each of 1, 2, 4 and 16 IPUs, to see that time grows with the number of tiles.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from typing import Any

from simulator import poplar, poplin
from simulator.graph.graph import Graph
from simulator.graph.program import Sequence

TARGET = "mk2"
IPUS = (1, 2, 4, 16)
GIBIBYTE = 1 << 20  # in the unit of ru_maxrss
CONVOLUTIONS = {  # batch, field, kernel, inputs, outputs, stride, padding
    "ResNet-50, first 7x7": (4, 224, 7, 4, 64, 2, 3),
    "ResNet-50, 3x3 of 64": (4, 56, 3, 64, 64, 1, 1),
    "ResNet-50, 1x1 of 256 to 64": (4, 56, 1, 256, 64, 1, 0),
    "ResNet-50, 3x3 of 512": (4, 7, 3, 512, 512, 1, 1),
}
PRODUCTS = {  # rows, inner, columns
    "BERT base, queries, keys, values": (384, 768, 2304),
    "BERT base, first feed-forward": (384, 768, 3072),
    "BERT base, second feed-forward": (384, 3072, 768),
}


def convolution(graph: Graph, layer: tuple[int, ...], program: Sequence) -> float:
    """Add a convolution; give the seconds that its plan takes."""
    batch, field, kernel, inputs, outputs, stride, padding = layer
    around = (padding, padding)
    params = poplin.ConvParams(
        poplar.HALF,
        batch,
        (field, field),
        (kernel, kernel),
        inputs,
        outputs,
        inputTransform=poplin.InputTransform(paddingLower=around, paddingUpper=around),
        outputTransform=poplin.OutputTransform(stride=(stride, stride)),
    )
    begin = time.perf_counter()
    poplin.reportPlanInfo(graph, params)
    planned = time.perf_counter() - begin
    tensors = poplin.createInput(graph, params, "x"), poplin.createWeights(graph, params, "w")
    poplin.convolution(graph, *tensors, params, False, program, "layer")
    return planned


def product(graph: Graph, layer: tuple[int, ...], program: Sequence) -> float:
    """Add a product; give the seconds that its plan takes."""
    rows, inner, columns = layer
    kinds = (poplar.HALF, poplar.HALF, [rows, inner], [inner, columns])
    begin = time.perf_counter()
    poplin.matMulReportPlan(graph, *kinds)
    planned = time.perf_counter() - begin
    left = poplin.createMatMulInputLHS(graph, *kinds, "a")
    right = poplin.createMatMulInputRHS(graph, *kinds, "b")
    poplin.matMul(graph, left, right, program, "layer")
    return planned


def measure(name: str, ipus: int) -> dict[str, float]:
    """Plan, build and compile a layer on each of so many IPUs."""
    device = poplar.IPUModel(TARGET, numIPUs=ipus).createDevice()
    graph, program = Graph(device.getTarget()), Sequence()
    begin, planned = time.perf_counter(), 0.0
    tiles = graph.getTarget().getTilesPerIPU()
    for ipu in range(ipus):
        part = graph.createVirtualGraph(ipu * tiles, (ipu + 1) * tiles)
        if name in CONVOLUTIONS:
            planned += convolution(part, CONVOLUTIONS[name], program)
        else:
            planned += product(part, PRODUCTS[name], program)
    built = time.perf_counter()
    poplar.Engine(graph, program)
    return {
        "plan": planned,
        "build": built - begin - planned,
        "compile": time.perf_counter() - built,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / GIBIBYTE,
    }


def measured(name: str, ipus: int) -> dict[str, Any]:
    """Measure in a process of its own."""
    command = [sys.executable, __file__, name, str(ipus)]
    found: dict[str, Any] = json.loads(subprocess.check_output(command, text=True))
    return found


def main() -> None:
    """Print both tables."""
    if len(sys.argv) == 3:
        print(json.dumps(measure(sys.argv[1], int(sys.argv[2]))))
        return
    print("| layer | IPUs | plan, s | build, s | compile, s | memory, GiB |")
    print("| --- | --- | --- | --- | --- | --- |")
    rows = [(name, 1) for name in (*CONVOLUTIONS, *PRODUCTS)]
    rows += [("ResNet-50, 3x3 of 64", ipus) for ipus in IPUS[1:]]
    for name, ipus in rows:
        found = measured(name, ipus)
        cells = [f"{found[key]:.2f}" for key in ("plan", "build", "compile", "memory")]
        print(f"| {name} | {ipus} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
