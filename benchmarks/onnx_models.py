"""What models cost on an Mk2, without values and with, beside onnx's evaluator and onnxruntime.

python -m benchmarks.onnx_models [NAME... | all]

Each is compiled, run once and leaves its report, in a process of its own. Seconds are those of the
processor, so that other programs matter less; the peak is that of the process that compiles and
runs, which reads the model from a file that another one wrote. Of values the time is also given as
a multiple of that of onnx's reference evaluator, in the same process and on the same inputs, and of
onnxruntime on one thread where it is installed; the error is the largest absolute one, divided by
the largest output. If no name is given, all that have a goal are measured.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from benchmarks import transformer_models as transformers
from benchmarks.external_weights import layers, stretch_files
from benchmarks.light_models import expected, image, light_model, of_any_batch
from simulator import popart
from simulator.popart.simulate import Request, simulate_model

Inputs = dict[str, np.ndarray]
TIMES_REFERENCE = 3.0  # with values, where there is a goal


@dataclass(frozen=True)
class Case:
    """A model and how it is run; goals are processor seconds and GB without values.

    `with_values` tells whether it is run with values too: "goal" where they have one.
    """

    make: Callable[[bool], tuple[onnx.ModelProto, Inputs]]
    seconds: float = 0.0
    gigabytes: float = 0.0
    with_values: str = ""
    train: bool = False
    batch: int | None = None
    stages: int = 1  # IPUs, each a stage of a pipeline
    ipus: int = 1  # that share the nodes, without a pipeline


def light(name: str, _: bool) -> tuple[onnx.ModelProto, Inputs]:
    """Make a model that onnx ships."""
    model = of_any_batch(light_model(name))
    return model, image(model)


def square_layers(count: int, width: int, _: bool) -> tuple[onnx.ModelProto, Inputs]:
    """Make a chain of products whose weights lie in a file beside it."""
    return layers(count, width)


def transformer(size: transformers.Size, stored: bool) -> tuple[onnx.ModelProto, Inputs]:
    """Make a transformer; its weights are stored for values alone."""
    return transformers.transformer(size, stored=stored), transformers.words(size)


CASES = {
    "resnet50": Case(partial(light, "resnet50"), 4.0, 0.8, "goal"),
    "bert_base": Case(partial(transformer, transformers.BERT_BASE), 4.0, 1.0, "goal"),
    "bvlc_alexnet": Case(partial(light, "bvlc_alexnet"), with_values="goal"),
    "gpt2_small": Case(partial(transformer, transformers.GPT2_SMALL), 6.0),
    "bert_large": Case(partial(transformer, transformers.BERT_LARGE), 15.0, 3.0, stages=4),
    "resnet50_training": Case(partial(light, "resnet50"), 25.0, 3.0, train=True, batch=4),
    "external_3gb": Case(partial(square_layers, 45, 4096), gigabytes=4.0, ipus=4),
    **{
        name: Case(partial(light, name), with_values="yes")
        for name in ("squeezenet", "shufflenet", "inception_v1", "inception_v2", "zfnet512",
                     "densenet121", "vgg19")
    },
}  # fmt: skip


def saved(name: str, folder: Path, values: bool) -> tuple[Path, Inputs]:
    """Make a model and leave it in a folder."""
    model, inputs = CASES[name].make(values)
    onnx.save(model, path := folder / "model.onnx")
    stretch_files(model, folder)
    return path, inputs


def simulated(case: Case, path: Path, inputs: Inputs, values: bool) -> Inputs:
    """Compile and run a model, and leave its report beside it; give its outputs."""
    if case.stages > 1:
        return in_pipeline(case, path)
    data = inputs if values and not case.train else {}
    wanted = Request(values=values, train=case.train, batch=case.batch, ipus=case.ipus, data=data)
    return simulate_model(path, path.parent / "report", wanted).outputs


def in_pipeline(case: Case, path: Path) -> Inputs:
    """Run a model without values, a stage on each IPU, with as many batches as fill it."""
    model, folder = onnx.load(path, load_external_data=False), str(path.parent)
    engine = {"autoReport.all": True, "autoReport.directory": folder}
    options = popart.SessionOptions(
        engineOptions={**engine, "simulator.computeValues": False},
        autoVirtualGraph=True,
        enablePipelining=True,
    )
    given = {"ipuVersion": "mk2", "numIPUs": case.stages}
    device = popart.DeviceManager().createIpuModelDevice(given)
    flow = popart.DataFlow(2 * case.stages, [value.name for value in model.graph.output])
    session = popart.InferenceSession(model, flow, device, userOptions=options)
    session.prepareDevice()
    session.weightsFromHost()
    session.run(popart.PyStepIO({}, session.initAnchorArrays()))
    return {}


def reference(name: str, case: Case, inputs: Inputs) -> tuple[Inputs, dict[str, float]]:
    """Compute the outputs by onnx's evaluator, and by onnxruntime where it is; give seconds."""
    model, _ = case.make(True)
    (output,) = (value.name for value in model.graph.output)
    seconds = {}
    if find_spec("onnxruntime"):
        import onnxruntime  # noqa: PLC0415 - an extra

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        begin = process_time()
        session = onnxruntime.InferenceSession(model.SerializeToString(), options)
        session.run(None, inputs)
        seconds["onnxruntime"] = process_time() - begin
    begin = process_time()
    if name.startswith("bert"):
        values = ReferenceEvaluator(model).run(None, inputs)[0]
    else:
        values = expected(model, inputs)
    return {output: np.asarray(values)}, seconds | {"reference": process_time() - begin}


def measure(name: str, values: bool) -> dict[str, float]:
    """Measure a case: seconds, bytes, and with values the error and what others take."""
    case = CASES[name]
    with tempfile.TemporaryDirectory() as folder:
        # Elsewhere, so that the peak is that of who has the model as a file.
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            path, inputs = pool.submit(saved, name, Path(folder), values).result()
        begin = process_time()
        outputs = simulated(case, path, inputs, values)
        found = {"seconds": process_time() - begin}
    found["bytes"] = 1024.0 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if values:
        wanted, seconds = reference(name, case, inputs)
        found |= seconds
        ((output, exact),) = wanted.items()
        error = np.abs(outputs[output].astype(np.float64) - exact).max()
        found["error"] = float(error / np.abs(exact.astype(np.float64)).max())
    return found


def in_a_process(name: str, values: bool) -> dict[str, float]:
    """Measure in a process of its own, so that the memory is that of this model alone."""
    command = [sys.executable, "-m", "benchmarks.onnx_models", "--one", name, str(int(values))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def verdict(case: Case, values: bool, found: dict[str, float]) -> str:
    """Return whether the goals are met; "" where there are none."""
    size = found["bytes"] / 1e9
    if values:
        ratio = found["seconds"] / found["reference"]
        limits = [(ratio, TIMES_REFERENCE, "x")] if case.with_values == "goal" else []
    else:
        limits = [(found["seconds"], case.seconds, " s"), (size, case.gigabytes, " GB")]
    limits = [limit for limit in limits if limit[1]]
    if not limits:
        return ""
    met = all(value <= most for value, most, _ in limits)
    shown = ", ".join(f"{most:g}{unit}" for _, most, unit in limits)
    return f"{'pass' if met else 'FAIL'}: {shown}"


def row(name: str, values: bool, found: dict[str, Any]) -> str:
    """Format one line of the table."""
    ratios = [
        f"{found['seconds'] / found[other]:.1f}" if other in found else ""
        for other in ("reference", "onnxruntime")
    ]
    error = f"{found['error']:.0e}" if "error" in found else ""
    columns = (name, "yes" if values else "no", f"{found['seconds']:.1f}",
               f"{found['bytes'] / 1e9:.2f}", *ratios, error,
               verdict(CASES[name], values, found))  # fmt: skip
    return f"| {' | '.join(columns)} |"


def chosen_names(arguments: list[str]) -> list[str]:
    """Return the models that a command line names; of an unknown one it ends with a line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"all, {', '.join(CASES)}")
    names: list[str] = parser.parse_args(arguments).names
    for name in {*names} - {*CASES, "all"}:
        parser.error(f"{name!r} is no model: all, {', '.join(CASES)}")
    goals = [n for n, c in CASES.items() if c.seconds or c.gigabytes or c.with_values == "goal"]
    return [*CASES] if "all" in names else names or goals


def main(names: list[str]) -> None:
    """Print a row for each model, without values and, where it is run so, with them."""
    print("| model | values | processor s | peak GB | x onnx | x onnxruntime | error | goal |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | --- |")
    for name in names:
        for values in (False, True) if CASES[name].with_values else (False,):
            print(row(name, values, in_a_process(name, values)), flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(measure(sys.argv[2], sys.argv[3] == "1")))
    else:
        main(chosen_names(sys.argv[1:]))
