"""Measure what ResNet-50 takes in a second: fp16 inference, one IPU of a Mk2, by batch.

    python -m benchmarks.resnet50 [BATCH]...

The model is onnx's own (tilescope[popart]), in half precision with one size of batch; weights are
on the chip, images come from the host in half precision before each batch, outputs go back after
it. A step has three batches: the figure is that from one batch to the next.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from onnx import numpy_helper

from benchmarks.light_models import light_model
from pva.analysis import main_run
from pva.analysis.main_runs import MainRun
from pva.analysis.memory import MemoryOverview, memory_overview
from pva.report import openReport
from simulator.popart.simulate import Request, simulate_model
from simulator.popart.transformer import GraphTransformer

BATCHES = (1, 4, 16)
STEP = 3  # batches


def halved(batch: int) -> bytes:
    """Return ResNet-50 in half precision, its last reshape for any batch."""
    model = light_model("resnet50")
    (reshape,) = (node for node in model.graph.node if node.op_type == "Reshape")
    for tensor in model.graph.initializer:
        if tensor.name == reshape.input[1]:
            shape = numpy_helper.to_array(tensor).copy()
            shape[0] = batch
            tensor.CopyFrom(numpy_helper.from_array(shape, tensor.name))
    transformer = GraphTransformer(model.SerializeToString())
    transformer.convertFloatsToHalfs()
    return transformer.getModelProto()


def measured(batch: int) -> tuple[MainRun, MemoryOverview]:
    """Return the figures of a step of batches of a size, and of its memory."""
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder) / "resnet50.onnx", Path(folder) / "report"
        path.write_bytes(halved(batch))
        simulate_model(path, out, Request(batch=batch, repeat=STEP, values=False))
        report = openReport(out)
        return main_run(report), memory_overview(report)


def main() -> None:
    """Print a line for each size of batch."""
    for batch in map(int, sys.argv[1:]) if sys.argv[1:] else BATCHES:
        run, memory = measured(batch)
        print(
            f"batch {batch}: {run.steady_items_per_second:,.0f} items/s, {run.steady_cycles:,.0f}"
            f" cycles a batch, latency {run.latency_seconds * 1e3:.2f} ms;"
            f" set-up {run.setup_cycles:,} cycles; the fullest tile needs"
            f" {memory.fullest_bytes:,} of {memory.bytes_per_tile:,} B",
            flush=True,
        )


if __name__ == "__main__":
    main()
