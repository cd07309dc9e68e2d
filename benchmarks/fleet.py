"""A fleet of reports of the demo's kind: add, trend, map, and the naive loop beside them.

    python -m benchmarks.fleet [--reports 1000] [--keep DIRECTORY]

Each report is of a program of its own: a network of two layers, whose batch, widths and runs vary.
Measured are the reports a second that `add` takes in, a trend over all, `map(insights)` with one
worker and with two, the memory of the front process, and a loop of `openReport` beside them.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np

import pva
from pva.analysis.whole_report.key_figures import figures
from pva.many.fleet import addReports

ROOT = Path(__file__).parent.parent
NAIVE = 50  # reports of the loop, from which its speed is known


def write_program(number: int, folder: str) -> None:
    """Compile and run a network of its own sizes, and write its report."""
    from simulator import poplar, poplin, popnn, poputil

    batch, inner = 1 + number % 25, 8 + number // 25
    directory = Path(folder) / f"batch{batch}-width{inner}"
    if (directory / "profile.pop").exists():
        return
    depth = int(np.random.default_rng(number).integers(8, 24))
    device = poplar.IPUModel("tiny", compileIPUCode=True).createDevice()
    graph = poplar.Graph(device.getTarget())
    program = poplar.program.Sequence()
    values = graph.addVariable(poplar.FLOAT, [batch, depth], "images")
    poputil.mapTensorLinearly(graph, values)
    for layer, (rows, columns) in enumerate(((depth, inner), (inner, 4))):
        weights = graph.addVariable(poplar.FLOAT, [rows, columns], f"Layer{layer}/weights")
        poputil.mapTensorLinearly(graph, weights)
        values = poplin.matMul(graph, values, weights, program, f"Layer{layer}")
        popnn.nonLinearityInPlace(graph, popnn.NonLinearityType.SIGMOID, values, program,
                                  f"Layer{layer}/sigmoid")  # fmt: skip
    options = {"autoReport.all": "true", "autoReport.directory": str(directory)}
    engine = poplar.Engine(graph, program, options)
    engine.load(device)
    for _ in range(1 + number % 2):
        engine.run(0)


def reports(folder: Path, count: int) -> list[str]:
    """Write so many reports, in two processes, and list them."""
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        list(pool.map(partial(write_program, folder=str(folder)), range(count), chunksize=10))
    return sorted(map(str, folder.iterdir()))[:count]


def batch_of(path: str) -> dict[str, str]:
    """Return the batch that the name of a report has."""
    return {"batch": Path(path).name.partition("-")[0].removeprefix("batch")}


def timed(work: object) -> float:
    """Return the seconds that a function takes."""
    begin = time.perf_counter()
    work()  # type: ignore[operator]
    return time.perf_counter() - begin


def map_seconds(fleet: Path, workers: int) -> float:
    """Return the seconds of `map(insights)` without earlier answers."""
    shutil.rmtree(fleet / "maps", ignore_errors=True)
    return timed(lambda: pva.openFleet(fleet).map("insights", workers=workers))


# The front process alone, from nothing: what it holds after the map, in MB.
FRONT = """
import shutil, sys
import pva
if __name__ == "__main__":
    fleet = sys.argv[1]
    shutil.rmtree(fleet + "/maps", ignore_errors=True)
    pva.openFleet(fleet).map("insights", workers=2)
    lines = open("/proc/self/status").read().splitlines()
    print(next(line.split()[1] for line in lines if line.startswith("VmHWM")))
"""


def front_megabytes(fleet: Path) -> float:
    """Return the most memory of a front process that maps with two workers."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "front.py"
        script.write_text(FRONT)
        done = subprocess.run(
            [sys.executable, script, fleet], cwd=ROOT, check=True, capture_output=True, text=True,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        )  # fmt: skip
    return int(done.stdout.split()[-1]) * 1024 / 1e6


def naive(path: str) -> None:
    """Read what a loop over reports would."""
    figures(pva.openReport(path))


def main() -> None:
    """Print the table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reports", type=int, default=1000)
    parser.add_argument("--keep", type=Path, help="where the reports are, or will be")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        folder = given.keep or Path(directory) / "reports"
        paths = reports(folder, given.reports)
        fleet = Path(directory) / "fleet"
        added = timed(lambda: addReports(fleet, paths, tables=("runs",), tags=batch_of))
        assert len(pva.openFleet(fleet).frames.reports()) == len(paths)
        pva.openFleet(fleet).trend("total_cycles", by="batch")
        trend = timed(lambda: pva.openFleet(fleet).trend("total_cycles", by="batch"))
        one, two = (map_seconds(fleet, workers) for workers in (1, 2))
        loop = timed(lambda: [naive(path) for path in paths[:NAIVE]]) / min(NAIVE, len(paths))
        megabytes = front_megabytes(fleet)
    print(f"| {len(paths):,} reports ({os.cpu_count()} cores) | figure | goal |")
    print("| --- | ---: | ---: |")
    print(f"| `fleet add`, reports/s | {len(paths) / added:.0f} | 50 |")
    print(f"| loop of `openReport` and its figures, reports/s | {1 / loop:.0f} | |")
    print(f"| a trend over all, s | {trend:.2f} | 1 |")
    print(f"| `map(insights)`, one worker, s | {one:.1f} | |")
    print(f"| `map(insights)`, two workers, times as fast | {one / two:.2f} | 1.7 |")
    print(f"| memory of the front process, MB | {megabytes:.0f} | 200 |")


if __name__ == "__main__":
    main()
