"""Measure modules of PyTorch on the simulator, beside torch and beside onnx's evaluator.

python -m benchmarks.torch_models [resnet18 | bert | gpt2]...    (in the environment of test-torch)

Networks of transformers with random weights, a batch of one, floats, on an Mk2. Each way runs in a
process of its own: `simulator` exports, compiles and runs once, `torch` and `onnx` run the module
and its export. Seconds are of the processor, of all threads; memory is the most that is resident.
The error is the largest, relative to the largest value that torch gives.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

LENGTH = 128  # words of a text
HEAD = f"{'model':<10}{'way':<11}{'export s':>9}{'compile s':>10}{'run s':>8}{'GB':>7}{'error':>10}"


def resnet18(kinds: Any, torch: Any) -> tuple[Any, Any]:
    config = kinds.ResNetConfig(
        depths=[2, 2, 2, 2], hidden_sizes=[64, 128, 256, 512], layer_type="basic", num_labels=1000
    )
    return kinds.ResNetForImageClassification(config), torch.randn(1, 3, 224, 224)


def bert(kinds: Any, torch: Any) -> tuple[Any, Any]:
    return kinds.BertModel(kinds.BertConfig()), torch.randint(0, 30522, (1, LENGTH))


def gpt2(kinds: Any, torch: Any) -> tuple[Any, Any]:
    config = kinds.GPT2Config(use_cache=False)
    return kinds.GPT2LMHeadModel(config), torch.randint(0, 50257, (1, LENGTH))


MODELS: dict[str, Callable[[Any, Any], tuple[Any, Any]]] = {
    "resnet18": resnet18, "bert": bert, "gpt2": gpt2,
}  # fmt: skip


def of_torch(module: Any, data: Any, seconds: dict[str, float]) -> Any:
    """Return what torch gives."""
    import torch

    begin = time.process_time()
    with torch.no_grad():
        found = module(data)
    seconds["run"] = time.process_time() - begin
    return found.numpy()


def of_simulator(module: Any, data: Any, seconds: dict[str, float]) -> Any:
    """Return what the simulated device gives."""
    from simulator import popart, poptorch
    from simulator.poptorch.exporting.export import export, to_numpy
    from simulator.poptorch.sessions import session_of

    begin = time.process_time()
    exported = export(module, (data,), {})
    seconds["export"] = time.process_time() - begin
    options = poptorch.Options().setTarget("mk2")
    options._Popart.set("engineOptions", {"debug.allowOutOfMemory": True})
    begin = time.process_time()
    session, _ = session_of(exported, module, options, None, set())
    session.prepareDevice()
    seconds["compile"] = time.process_time() - begin
    begin = time.process_time()
    session.weightsFromHost()
    anchors = session.initAnchorArrays()
    session.run(popart.PyStepIO({name: to_numpy(data) for name in exported.inputs}, anchors))
    seconds["run"] = time.process_time() - begin
    return anchors[str(exported.outputs[0])]


def of_onnx(module: Any, data: Any, seconds: dict[str, float]) -> Any:
    """Return what onnx's evaluator gives, but for GatherElements: its own takes 64 places alone."""
    import numpy as np
    from onnx.reference import ReferenceEvaluator
    from onnx.reference.op_run import OpRun

    from simulator.poptorch.exporting.export import export, to_numpy

    class GatherElements(OpRun):  # type: ignore[misc]
        def _run(self, data: Any, indices: Any, axis: int = 0) -> Any:
            return (np.take_along_axis(data, indices, axis),)

    begin = time.process_time()
    exported = export(module, (data,), {})
    seconds["export"] = time.process_time() - begin
    for node in exported.model.graph.node:  # what the simulator has noted there
        kept = [attribute for attribute in node.attribute if attribute.name[:2] != "__"]
        del node.attribute[:]
        node.attribute.extend(kept)
    begin = time.process_time()
    evaluator = ReferenceEvaluator(exported.model, new_ops=[GatherElements])
    found = evaluator.run(None, {name: to_numpy(data) for name in exported.inputs})
    seconds["run"] = time.process_time() - begin
    return found[0]


WAYS = {"torch": of_torch, "simulator": of_simulator, "onnx": of_onnx}


def measure(name: str, way: str, answer: Any) -> None:
    """Send seconds, memory in GB and the output of one way."""
    import torch
    import transformers

    torch.manual_seed(0)
    network, data = MODELS[name](transformers, torch)

    class First(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def forward(self, x: Any) -> Any:
            return self.network(x)[0]

    seconds: dict[str, float] = {}
    output = WAYS[way](First().eval(), data, seconds)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    answer.send((seconds, memory, output))


def main() -> None:
    """Measure the models that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("names", nargs="*", choices=[*MODELS, []], metavar="NAME")
    print(HEAD)
    spawned = multiprocessing.get_context("spawn")
    for name in parser.parse_args().names or MODELS:
        wanted: Any = None
        for way in WAYS:
            taken, answer = spawned.Pipe(duplex=False)
            process = spawned.Process(target=measure, args=(name, way, answer))
            process.start()
            answer.close()
            try:
                seconds, memory, output = taken.recv()
            except EOFError:
                sys.exit(f"{name}, {way}: ended without figures")
            process.join()
            wanted = output if wanted is None else wanted
            error = float(abs(output - wanted).max() / abs(wanted).max())
            parts = [f"{seconds[k]:.1f}" if k in seconds else "" for k in ("export", "compile")]
            print(f"{name:<10}{way:<11}{parts[0]:>9}{parts[1]:>10}{seconds['run']:>8.2f}"
                  f"{memory:>7.2f}{error:>10.1e}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
