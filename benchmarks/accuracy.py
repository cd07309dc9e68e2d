"""Put our figures beside published ones; prints the table of docs/accuracy.md."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pva.analysis.execution.totals import execution_overview
from pva.model.programs import Program
from pva.report import openReport
from simulator.codelets.products.convolution_cycles import conv_cycles
from simulator.compiler.compile import compile_graph
from simulator.compiler.exchange import exchange_cost, host_exchange_cost
from simulator.compiler.executable import Executable
from simulator.examples import matmul_chain
from simulator.graph.graph import Graph
from simulator.graph.machine.target import MK1, MK2, Target
from simulator.graph.types import FLOAT
from simulator.runtime.run import Runner
from tests import matrix_vector

GUIDE = "user guide, profile sample"
TUTORIAL = "matrix-vector tutorial"
CHAIN = "matrix chain, public tutorial 4"
ROOT = Path(__file__).parents[1]
TUTORIAL_PROGRAM = ROOT / "examples" / "tutorials" / "tut7_matrix_vector_opt.py"
SAMPLES = ROOT / "sample_reports"


# Cycles of the phases of tutorial 4, read off its public screenshot, to 50 or so: the product, what
# the names of our steps begin with in it, what they are, and why they differ.
NO_COPY = "the copy of the other operand, actsRearranged, is not made here"
ZEROS = "there channels are filled up with zeros, from tile 0, before the copy"
BLOCKS = "matrices of 8 x 20 elements here; 8 x 8, as they lie on their tiles, would take 576"
PREARRANGED = "the ninth may put in order 500 channels that are filled up to 504: a guess"
PHASES = (
    ("MatMul1", "weights/regroup", "first copy to regroup", 1_100, ZEROS),
    ("MatMul1", "Transpose", "first transpose", 600, BLOCKS),
    ("MatMul1", "Rearranged", "first copy to rearrange", 340, NO_COPY),
    ("MatMul1", "Convolve", "first product, with its exchange", 15_280, ""),
    ("MatMul1", "Reduce", "first reduction", 3_430, ""),
    ("MatMul2", "input/regroup", "second copy to regroup", 510, ""),
    ("MatMul2", "Transpose", "second transpose", 840, ""),
    ("MatMul2", "weights/regroup", "second copy, of the other operand", 630, ""),
    ("MatMul2", "Convolve", "second product, with its exchange", 7_900, ""),
    ("MatMul2", "Reduce", "second reduction", 2_375, ""),
)


class Row(NamedTuple):
    """A published figure, ours, and why they differ."""

    what: str
    source: str
    published: float
    ours: float
    reason: str

    def markdown(self) -> str:
        """Write the row of the table."""
        apart = 100 * (self.ours / self.published - 1)
        difference = "exact" if self.ours == self.published else f"{apart:+.1f} %"
        figures = f"{_figure(self.published)} | {_figure(self.ours)} | {difference}"
        return f"| {self.what} | {self.source} | {figures} | {self.reason} |"


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"


def guide() -> Iterator[Row]:
    """Compare single steps of the guide's sample."""
    tile = np.arange(1, 1216)
    zero, word = 0 * tile, 0 * tile + 4
    broadcast = exchange_cost(MK1, zero, tile, word, zero).cycles
    fitted = "the latency is fitted to it"
    yield Row("broadcast of 4 B, slowest tile", GUIDE, 120, broadcast.max(), fitted)
    yield Row("broadcast of 4 B, mean tile", GUIDE, 104, round(broadcast.mean()), fitted)
    cycles = 98 * (3 * conv_cycles(MK1, FLOAT, 8, 16, 8) + conv_cycles(MK1, FLOAT, 6, 16, 8))
    yield Row("Layer1/Fwd convolution, tile cycles", GUIDE, 384_944, int(cycles), "")
    small, link = "fitted to this figure", "the link of the model is 8 GB/s"
    for size, published, why in ((4, 7, small), (8, 9, small), (50_244, 10_700, link)):
        name = f"stream copy of {size:,} B on Mk1"
        yield Row(name, GUIDE, published, stream(MK1, size), why)


def stream(target: Target, size: int) -> int:
    """Return the cycles of a stream copy."""
    cost = host_exchange_cost(target, np.array([0]), np.array([size]), True)
    return int(cost.cycles.max())


def tutorials() -> Iterator[Row]:
    """Compare whole programs."""
    tutorial = matrix_vector.tutorial()
    compute = tutorial.costs.cycles.max(axis=1)
    yield Row("multiply, cycles", TUTORIAL, 4410, int(compute[0]), "")
    yield Row("reduce, cycles", TUTORIAL, 96, int(compute[1]), "")
    total = matrix_vector.user_cycles(tutorial)
    read = "no number is fitted to it; that latency follows the sync delays was read from it"
    yield Row("all cycles, Mk1 without sync delay", TUTORIAL, 5071, total, read)
    size, link = 40_044_000, "the link of the model is 8 GB/s"
    yield Row("its streams on Mk1, cycles", TUTORIAL, 8_184_787, stream(MK1, size), link)
    yield Row("its streams on Mk2, cycles", TUTORIAL, 6_663_551, stream(MK2, size), link)


# The tutorial with its data streamed: sums over all tiles on Mk1, means of a tile on Mk2, where the
# program is of a later SDK; and why ours differ.
LINK = "the link of the model is 8 GB/s"
STREAMED = {
    "mk1": {
        "active_compute": (5_334_536, ""),
        "compute": (5_513_152, "not explained"),
        "do_exchange": (963_855, "tiles that receive less end earlier here"),
        "stream_copy": (9_952_701_003, LINK),
        "sync": (781_286, "that tiles take part in a whole transaction was read from it"),
        "all": (8_190_756, LINK),
    },
    "mk2": {
        "active_compute": (3_717.6, ""),
        "compute": (3_801.8, "not explained"),
        "do_exchange": (8_697.4, "the matrix, 6,794 words a tile, seems to be exchanged there"),
        "stream_copy": (6_663_550.8, LINK),
        "sync": (1_134.8, "follows the exchange"),
        "all": (6_681_766, "the exchange, and 4,581 cycles that the printed means have not"),
    },
}
SPENT = {
    "active_compute": "compute without idle threads",
    "compute": "compute with idle threads",
    "do_exchange": "exchange",
    "stream_copy": "host exchange",
    "sync": "sync",
    "all": "all cycles",
}


def streamed() -> Iterator[Row]:
    """Compare the cycles of the matrix-vector tutorial with its data streamed."""
    for machine, figures in STREAMED.items():
        with tempfile.TemporaryDirectory() as folder:
            arguments = ["10000", "1000", "--target", machine, "--out", folder]
            command = [sys.executable, str(TUTORIAL_PROGRAM), *arguments]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            overview = execution_overview(openReport(folder))
        tiles = 1 if machine == "mk1" else MK2.num_tiles
        for kind, (published, reason) in figures.items():
            spent = overview.tile_cycles[kind] / tiles if kind != "all" else overview.cycles
            name = f"streamed on {machine.capitalize()}: {SPENT[kind]}"
            yield Row(name, TUTORIAL, published, round(spent, 1), reason)


def chain() -> Iterator[Row]:
    """Compare 800x500 * 500x400 * 400x200 on Mk2, without IPU code."""
    graph = Graph(MK2)
    compiled = compile_graph(graph, [matmul_chain.build(graph, matmul_chain.SHAPES)])
    cycles = Runner(compiled, matrix_vector.NoValues()).run(0, "run", record=True).cycles
    axis = "with the programs before the user's, whose syncs were read from this screenshot"
    yield Row("cycles", CHAIN, 34_655, cycles, axis)
    yield from chain_memory(compiled)


def chain_memory(compiled: Executable) -> Iterator[Row]:
    """Compare its memory."""
    by_tile = {name: int(v.sum()) for name, v in compiled.memory.by_tile.items()}
    unknown = "not explained; its categories were not published"
    figures = (
        ("memory including gaps, B", 307_309_104, by_tile["total_including_gaps"], unknown),
        ("memory excluding gaps, B", 59_894_241, by_tile["total"], unknown),
        ("interleaved, B", 8_960_000, by_tile["interleaved"], ""),
    )
    for name, published, ours, reason in figures:
        yield Row(name, CHAIN, published, ours, reason)


def chain_balance() -> Iterator[Row]:
    """Compare how evenly its run uses the tiles; both definitions are not public."""
    report = openReport(SAMPLES / "matmul_chain_mk2")
    waiting = execution_overview(report).sync_share
    kinds = (Program.Type.OnTileExecute, Program.Type.DoExchange)
    at_work = [step.ipus[0] for step in report.execution.steps if step.program.type in kinds]
    cycles = np.array([ipu.cycles for ipu in at_work])
    balance = np.average([ipu.tileBalance for ipu in at_work], weights=cycles)
    read = "read as the cycles of all tiles that are not spent in syncs"
    yield Row("parallel efficiency, %", CHAIN, 89.04, round(100 * (1 - waiting), 2), read)
    read = "read as the mean of compute and exchange steps by their cycles"
    yield Row("tile balance, %", CHAIN, 81, round(100 * float(balance), 2), read)


def chain_phases() -> Iterator[Row]:
    """Compare its ten phases, syncs apart, and its compute sets."""
    report = openReport(SAMPLES / "matmul_chain_mk2")
    named = [(str(step.program.name), step.cycles) for step in report.execution.steps]
    for product, part, label, published, reason in PHASES:
        ours = sum(cycles for name, cycles in named if name.startswith(f"{product}/Conv_1/{part}"))
        yield Row(f"{label}, cycles", CHAIN, published, ours, reason)
    sets = int(report.dataset.value("graph", "num_compute_sets"))
    yield Row("compute sets", CHAIN, 9, sets, PREARRANGED)


def main() -> None:
    """Print the table."""
    print("| what | source | published | ours | difference | why |")
    print("| --- | --- | --- | --- | --- | --- |")
    for part in (guide, tutorials, streamed, chain, chain_balance, chain_phases):
        for row in part():
            print(row.markdown())


if __name__ == "__main__":
    main()
