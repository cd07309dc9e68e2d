"""Compare single-operation programs with the figures that PopLibs published of them, on Mk1.

    python -m benchmarks.poplibs_accuracy --kind gemm,reduction --name 'bert_*' --jobs 2 --write

Each program is rebuilt, compiled without IPU code and run without values, in a process of its own,
so that its memory is given back. Without options all rows are compared; `--write` puts the table
into docs/accuracy.md. With `--results FILE` rows are kept there, so that kinds can be compared one
at a time: the table is then of all rows in the file.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from fnmatch import fnmatch
from pathlib import Path

import numpy as np

from benchmarks.poplibs_programs import (
    BUILDERS,
    Benchmark,
    Figures,
    build,
    device_of,
    read_table,
)
from pva.report import Report, openReport
from simulator import poplar

PAGE = Path(__file__).parents[1] / "docs" / "accuracy.md"
BEGIN, END = "<!-- poplibs_accuracy: begin -->", "<!-- poplibs_accuracy: end -->"
OPTIONS = {
    "autoReport.outputGraphProfile": "true",
    "autoReport.outputExecutionProfile": "true",
    "simulator.computeValues": "false",
}
NAMES = ("cycles", "total memory", "largest tile")
WORST = 12  # rows that are listed with their errors
# Why rows are far away, by the pattern of their names; the first that fits counts.
REASONS = (
    (
        "fc_layer_1_1000_1000_*",
        "one sample: published without AMP, its largest tile has no partials",
    ),
    (
        "fc_layer_*_1000_5_*",
        "the forward pass is cut for horizontal multiplications here, which price syncs too",
    ),
    (
        "fc_layer_*_1000_1000_float",
        "weights and their update move between tiles more than published",
    ),
    ("mobilenet_depthwise*", "which pass uses SLIC, and how groups are rearranged for it"),
    ("conv_5x200*", "the gradient has one output channel, its planning is not public in full"),
    ("bert_reduce_1", "published: workers share the rows on a tile, by way of partial results"),
    (
        "inception_tr_bs1_i9_*",
        "channels lie one by one; rearranged at greater cost in the published run",
    ),
    ("gemm_600x64*", "another cut: twice the partial results in the published program"),
    ("*_tr_bs4_*", "memory: perhaps an operand stands both as received and rearranged at the peak"),
    ("*", "not explained"),
)
LONGEST = 200  # characters of a reason


@dataclass(frozen=True, slots=True)
class Comparison:
    """A row, our figures of it and the seconds that they took; or why there are none."""

    benchmark: Benchmark
    ours: Figures | None
    seconds: float
    reason: str = ""

    def errors(self) -> tuple[float, ...]:
        """Give how far each figure is from the published one, as a share of that."""
        if self.ours is None:
            return ()
        ours, published = (asdict(figures) for figures in (self.ours, self.benchmark.published))
        return tuple(ours[name] / published[name] - 1 for name in ours)


def figures_of(report: Report) -> Figures:
    """Read the three figures from a report."""
    tiles = report.compilation.tiles
    live = sum(tile.memory.alwaysLiveBytes + tile.memory.notAlwaysLiveBytes for tile in tiles)
    largest = max(tile.memory.total.includingGaps for tile in tiles)
    return Figures(report.execution.totalCycles.total, live, largest)


def measure(benchmark: Benchmark) -> Figures:
    """Build, compile and run the program of a row; raises PoplarError."""
    device = device_of(benchmark)
    graph, built = build(benchmark, device)
    with tempfile.TemporaryDirectory() as folder:
        options = OPTIONS | {"autoReport.directory": folder}
        engine = poplar.Engine(graph, built.programs, options)
        engine.load(device)
        for number in range(built.run):
            engine.run(number)
        return figures_of(openReport(folder))


def compare(benchmark: Benchmark) -> Comparison:
    """Measure a row in a process of its own."""
    begin = time.perf_counter()
    command = [sys.executable, "-m", "benchmarks.poplibs_accuracy", "--measure", benchmark.name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - begin
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"ended with status {done.returncode}"]
        return Comparison(benchmark, None, seconds, lines[-1][:LONGEST])
    return Comparison(benchmark, Figures(**json.loads(done.stdout)), seconds)


def compare_all(benchmarks: Iterable[Benchmark], jobs: int) -> Iterator[Comparison]:
    """Compare rows, so many at a time; each is given when it is done."""
    with ThreadPoolExecutor(jobs) as pool:
        for future in as_completed([pool.submit(compare, benchmark) for benchmark in benchmarks]):
            yield future.result()


def keep(done: Comparison, path: Path) -> None:
    """Append a row to a file of results."""
    ours = None if done.ours is None else asdict(done.ours)
    fields = {"name": done.benchmark.name, "ours": ours, "seconds": done.seconds}
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps({**fields, "reason": done.reason}) + "\n")


def kept(path: Path) -> list[Comparison]:
    """Read a file of results: the last of each row, in the order of the table."""
    lines = path.read_text(encoding="utf-8").splitlines()
    found = {row["name"]: row for row in map(json.loads, lines)}
    rows = ((benchmark, found.get(benchmark.name)) for benchmark in read_table())
    return [
        Comparison(benchmark, row["ours"] and Figures(**row["ours"]), row["seconds"], row["reason"])
        for benchmark, row in rows
        if row is not None
    ]


def line_of(done: Comparison) -> str:
    """Write a row: our figure, the published one and the error, three times."""
    name = f"{done.benchmark.name:40}"
    if done.ours is None:
        return f"{name} {done.reason}"
    ours, published = (asdict(figures) for figures in (done.ours, done.benchmark.published))
    parts = [
        f"{ours[figure]:>13,} {published[figure]:>13,} {100 * error:+7.1f} %"
        for figure, error in zip(ours, done.errors(), strict=True)
    ]
    return f"{name}{''.join(parts)} {done.seconds:7.1f} s"


def summary(done: list[Comparison]) -> Iterator[str]:
    """Write the table by kind: median and 90th percentile of the size of the errors."""
    yield "| kind | rows | " + " | ".join(f"{name}: median, p90" for name in NAMES) + " |"
    yield "| --- | --- | " + " | ".join("---" for _ in NAMES) + " |"
    for kind in BUILDERS:
        errors = [row.errors() for row in done if row.benchmark.kind == kind and row.ours]
        if errors:
            middle, high = np.percentile(np.abs(errors), [50, 90], axis=0)
            cells = [f"{100 * m:.1f} %, {100 * h:.1f} %" for m, h in zip(middle, high, strict=True)]
            yield f"| {kind} | {len(errors)} | {' | '.join(cells)} |"


def worst(done: list[Comparison]) -> Iterator[str]:
    """Write the table of the rows with the largest errors of cycles or total memory."""
    yield "| row | kind | " + " | ".join(NAMES) + " | why |"
    yield "| --- | --- | " + " | ".join("---" for _ in NAMES) + " | --- |"
    measured = [row for row in done if row.ours]
    measured.sort(key=lambda row: max(map(abs, row.errors()[:2])), reverse=True)
    for row in measured[:WORST]:
        cells = " | ".join(f"{100 * error:+.0f} %" for error in row.errors())
        why = next(text for pattern, text in REASONS if fnmatch(row.benchmark.name, pattern))
        yield f"| {row.benchmark.name} | {row.benchmark.kind} | {cells} | {why} |"


def document(done: list[Comparison]) -> str:
    """Write both tables."""
    failed = [f"* {row.benchmark.name}: {row.reason}" for row in done if row.ours is None]
    parts = ["\n".join(summary(done)), "The rows that are farthest away:", "\n".join(worst(done))]
    if failed:
        parts += ["Rows without figures:", "\n".join(failed)]
    return "\n\n".join(parts)


def write_page(text: str, page: Path = PAGE) -> None:
    """Replace what stands between the markers of the page."""
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        raise SystemExit(f"{page.name}: the lines {BEGIN} and {END} are not there")
    page.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", encoding="utf-8")


def main() -> None:
    """Compare the rows that were asked for."""
    given = argparse.ArgumentParser(description=__doc__)
    given.add_argument("--kind", default=",".join(BUILDERS), help="kinds, with commas between")
    given.add_argument("--name", default="*", help="pattern of the rows' names")
    given.add_argument("--jobs", type=int, default=1, help="rows at a time")
    given.add_argument("--write", action="store_true", help="put the table into docs/accuracy.md")
    given.add_argument("--results", type=Path, help="file of results that is added to")
    given.add_argument("--measure", help=argparse.SUPPRESS)
    options = given.parse_args()
    if options.measure:
        chosen = next(row for row in read_table() if row.name == options.measure)
        print(json.dumps(asdict(measure(chosen))))
        return
    kinds = options.kind.split(",")
    rows = [row for row in read_table() if row.kind in kinds and fnmatch(row.name, options.name)]
    done = []
    for comparison in compare_all(rows, options.jobs):
        print(line_of(comparison), flush=True)
        done.append(comparison)
        if options.results:
            keep(comparison, options.results)
    text = document(kept(options.results) if options.results else done)
    print(f"\n{text}")
    if options.write:
        write_page(text)


if __name__ == "__main__":
    main()
