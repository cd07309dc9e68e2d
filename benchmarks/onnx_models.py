"""How long the models that onnx ships take on an Mk2, and whether their values are right.

python -m benchmarks.onnx_models [NAME... | all]

Each is compiled, run once and leaves its report: without values, and with values, which are
compared with those of onnx's reference evaluator; AlexNet and ResNet-50, for which there are goals,
if no name is given. Each in a process of its own; seconds are those
of the clock and of the processor, the ratio is of the clock, in one run.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from time import perf_counter, process_time

import numpy as np

from benchmarks.light_models import expected, image, light_model
from simulator import popart

NAMES = ("bvlc_alexnet", "resnet50", "squeezenet", "shufflenet", "inception_v1", "inception_v2",
         "zfnet512", "densenet121", "vgg19")  # fmt: skip
# The goals of AlexNet with values (or 3 times the reference), and of both without.
LIMITS = {("bvlc_alexnet", True): 60.0, ("bvlc_alexnet", False): 30.0, ("resnet50", False): 60.0}
MOST_BYTES = {("resnet50", False): 4e9}


def measure(name: str, values: bool) -> dict[str, float]:
    """Compile and run a model; give seconds, bytes, and the largest relative error."""
    model = light_model(name)
    inputs = image(model)
    (output,) = (value.name for value in model.graph.output)
    begin, work = perf_counter(), process_time()
    with tempfile.TemporaryDirectory() as folder:
        options = popart.SessionOptions(
            engineOptions={
                "autoReport.all": True,
                "autoReport.directory": folder,
                "simulator.computeValues": values,
            }
        )
        device = popart.DeviceManager().createIpuModelDevice({"ipuVersion": "mk2"})
        flow = popart.DataFlow(1, [output])
        session = popart.InferenceSession(model, flow, device, userOptions=options)
        session.prepareDevice()
        session.weightsFromHost()
        anchors = session.initAnchorArrays()
        session.run(popart.PyStepIO(inputs, anchors))
    found = {"seconds": perf_counter() - begin, "processor": process_time() - work}
    found["bytes"] = 1024.0 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if values:
        begin = perf_counter()
        wanted = expected(model, inputs)
        found["reference"] = perf_counter() - begin
        least = np.finfo(np.float32).tiny  # a probability may be 0
        error = np.abs(anchors[output] - wanted) / np.maximum(np.abs(wanted), least)
        found["error"] = float(error.max())
    return found


def in_a_process(name: str, values: bool) -> dict[str, float]:
    """Measure in a process of its own, so that the memory is that of this model alone."""
    command = [sys.executable, "-m", "benchmarks.onnx_models", "--one", name, str(int(values))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def verdict(name: str, values: bool, found: dict[str, float]) -> str:
    """Say whether the goals are met; "" where there are none."""
    limit = LIMITS.get((name, values))
    if limit is None:
        return ""
    limit = max(limit, 3 * found.get("reference", 0.0))
    met = found["seconds"] <= limit and found["bytes"] <= MOST_BYTES.get((name, values), np.inf)
    return f"{'met' if met else 'MISSED'}: {limit:.0f} s"


def main(names: list[str]) -> None:
    """Print a row for each model, without and with values."""
    print("| model | values | seconds | processor | GB | times the reference | error | goal |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    wanted = NAMES if names == ["all"] else names or sorted({name for name, _ in LIMITS})
    for name in wanted:
        for values in (False, True):
            found = in_a_process(name, values)
            ratio = f"{found['seconds'] / found['reference']:.1f}" if values else ""
            error = f"{found['error']:.1e}" if values else ""
            seconds = f"{found['seconds']:.1f} | {found['processor']:.1f}"
            row = (name, "yes" if values else "no", seconds, f"{found['bytes'] / 1e9:.1f}",
                   ratio, error, verdict(name, values, found))  # fmt: skip
            print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(measure(sys.argv[2], sys.argv[3] == "1")))
    else:
        main(sys.argv[1:])
