"""Measure what ResNet-50 takes in a second: fp16 inference, one IPU of a Mk2, by batch.

    python -m benchmarks.resnet50 [--io-tiles N] [--partials half|float] [BATCH]...

The model is onnx's own (tilescope[popart]), in half precision with one size of batch; weights are
on the chip, images come from the host in half precision: before each batch, or by I/O tiles while
the one before it is computed; outputs go back likewise. A step has six batches: the figure is that
from one batch to the next. Partial results are halves unless told otherwise, as in the published
runs (graphcore/examples, vision/cnns/pytorch/inference/configs.yml: `half_partial`).
"""

from __future__ import annotations

import argparse
import tempfile
from itertools import product
from pathlib import Path

import pandas as pd
from onnx import numpy_helper

from benchmarks.light_models import light_model
from pva.analysis import main_run, overlap_io
from pva.analysis.execution.main_runs import MainRun
from pva.analysis.memory.totals import MemoryOverview, memory_overview
from pva.report import openReport
from simulator.popart.importing.transformer import GraphTransformer
from simulator.popart.simulate import Request, simulate_model

BATCHES = (1, 4, 16)
STEP = 6  # batches
IO_TILES = (0, 32)


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


def measured(
    batch: int, io_tiles: int, partials: str
) -> tuple[MainRun, MemoryOverview, pd.DataFrame]:
    """Return the figures of a step of batches of a size, of its memory and of what is hidden."""
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder) / "resnet50.onnx", Path(folder) / "report"
        path.write_bytes(halved(batch))
        request = Request(
            batch=batch, repeat=STEP, values=False, io_tiles=io_tiles, partials=partials
        )
        simulate_model(path, out, request)
        report = openReport(out)
        return main_run(report), memory_overview(report), overlap_io(report)


def main() -> None:
    """Print a line for each size of batch."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("batches", nargs="*", type=int, default=BATCHES)
    parser.add_argument("--io-tiles", type=int)
    parser.add_argument("--partials", choices=("half", "float"), default="half")
    given = parser.parse_args()
    io_tiles_of = IO_TILES if given.io_tiles is None else (given.io_tiles,)
    for batch, io_tiles in product(given.batches, io_tiles_of):
        run, memory, host = measured(batch, io_tiles, given.partials)
        print(
            f"batch {batch}, {io_tiles} I/O tiles: {run.steady_items_per_second:,.0f} items/s,"
            f" {run.steady_cycles:,.0f}"
            f" cycles a batch, latency {run.latency_seconds * 1e3:.2f} ms;"
            f" set-up {run.setup_cycles:,} cycles; waits for the host"
            f" {host['exposed_share'][0]:.1%} of the run; the fullest tile needs"
            f" {memory.fullest_bytes:,} of {memory.bytes_per_tile:,} B",
            flush=True,
        )


if __name__ == "__main__":
    main()
