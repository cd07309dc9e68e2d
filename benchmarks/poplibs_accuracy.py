"""Compare single-operation programs with published figures of them, on any machine.

    python -m benchmarks.poplibs_accuracy --kind gemm,reduction --name 'bert_*' --jobs 2 --write
    python -m benchmarks.poplibs_accuracy --target mk2 --table FILE.csv --names ROW,ROW --json

A table has the form of poplibs_benchmarks_mk1.csv, which is compared by default. Each program is
rebuilt, compiled without IPU code and run without values, in a process of its own, so that its
memory is given back. `--json` prints a list of objects with `name`, `kind`, `cycles_error`,
`memory_error` and `tile_error`: signed shares of the published figure. `--write` puts the tables of
a file in benchmarks/ into docs/accuracy.md. With `--results FILE` rows are kept there, so that
kinds can be compared one at a time: the table is then of all rows in the file. What cannot be read
or measured is one line, and the status is not 0.
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

from benchmarks.poplibs_programs import BUILDERS, build, device_of
from benchmarks.poplibs_table import (
    DEFAULT_TARGET,
    TABLE,
    Benchmark,
    Figures,
    TableError,
    chosen_rows,
    read_table,
)
from pva.report import Report, openReport
from simulator import poplar
from simulator.graph.errors import PoplarError

PAGE = Path(__file__).parents[1] / "docs" / "accuracy.md"
# The part of the page for each table, measured on the machine that its figures are of.
PARTS = {
    TABLE.name: "poplibs_accuracy",
    "poplibs_layers_mk1.csv": "poplibs_layers",
    "poplibs_solvers_mk1.csv": "poplibs_solvers",
}
OPTIONS = {
    "autoReport.outputGraphProfile": "true",
    "autoReport.outputExecutionProfile": "true",
    "simulator.computeValues": "false",
}
NAMES = ("cycles", "total memory", "largest tile")
ERRORS = ("cycles_error", "memory_error", "tile_error")
WORST = 12  # rows that are listed with their errors
# Why rows are far away, by the pattern of their names; the first that fits counts.
REASONS = (
    (
        "fc_layer_*_1000_5_*",
        "5 channels are filled up to whole groups there, with zeros that take memory and copies",
    ),
    (
        "fc_layer_*_1000_1000_half",
        "1,000 channels are filled up to whole groups there, by copies on all tiles",
    ),
    ("bert_ff*", "largest tile: messages that fit in no gap"),
    ("mobilenet_depthwise*", "which pass uses SLIC, and how groups are rearranged for it"),
    ("conv_5x200*", "the gradient has one output channel, its planning is not public in full"),
    ("inception_*pool*", "largest tile: that messages lie in the next memory element is a guess"),
    (
        "gemm_1000x256x30000",
        "slices of 250 rows; where what does not fit in a tile lies is not known",
    ),
    (
        "inception_tr_bs1_i9_*",
        "channels lie one by one; rearranged at greater cost in the published run",
    ),
    (
        "triangular_solve_*_1_64_*",
        "memory: the code of the vertices, which these programs are compiled without",
    ),
    ("cholesky_*", "memory: the code of the vertices, which these programs are compiled without"),
    (
        "triangular_solve_*_64_float_*",
        "each row's product with what is solved takes about 1,000 cycles more there; not explained",
    ),
    ("*_1024_*_train*", "the weights' update is copied on the tile before it is added"),
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
        """Return how far each figure is from the published one, as a share of that."""
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


def measure(benchmark: Benchmark, target: str = DEFAULT_TARGET) -> Figures:
    """Build, compile and run the program of a row; raises PoplarError, or TableError."""
    device = device_of(benchmark, target)
    graph, built = build(benchmark, device)
    with tempfile.TemporaryDirectory() as folder:
        options = OPTIONS | {"autoReport.directory": folder}
        engine = poplar.Engine(graph, built.programs, options)
        engine.load(device)
        for number in range(built.run):
            engine.run(number)
        return figures_of(openReport(folder))


def compare(benchmark: Benchmark, target: str, table: Path) -> Comparison:
    """Measure a row in a process of its own."""
    begin = time.perf_counter()
    command = [sys.executable, "-m", "benchmarks.poplibs_accuracy", "--measure"]
    command += ["--names", benchmark.name, "--target", target, "--table", str(table)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - begin
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"ended with status {done.returncode}"]
        return Comparison(benchmark, None, seconds, lines[-1][:LONGEST])
    return Comparison(benchmark, Figures(**json.loads(done.stdout)), seconds)


def compare_all(rows: Iterable[Benchmark], options: argparse.Namespace) -> Iterator[Comparison]:
    """Compare rows, so many at a time; each is given when it is done."""
    with ThreadPoolExecutor(options.jobs) as pool:
        waits = [pool.submit(compare, row, options.target, options.table) for row in rows]
        for future in as_completed(waits):
            yield future.result()


def object_of(done: Comparison) -> dict[str, object]:
    """Return a measured row as `--json` prints it."""
    errors = dict(zip(ERRORS, done.errors(), strict=True))
    return {"name": done.benchmark.name, "kind": done.benchmark.kind, **errors}


def keep(done: Comparison, path: Path) -> None:
    """Append a row to a file of results."""
    ours = None if done.ours is None else asdict(done.ours)
    fields = {"name": done.benchmark.name, "ours": ours, "seconds": done.seconds}
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps({**fields, "reason": done.reason}) + "\n")


def kept(path: Path, table: Path = TABLE) -> list[Comparison]:
    """Read a file of results: the last of each row, in the order of the table."""
    lines = path.read_text(encoding="utf-8").splitlines()
    found = {row["name"]: row for row in map(json.loads, lines)}
    rows = ((benchmark, found.get(benchmark.name)) for benchmark in read_table(table))
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


def markers(part: str) -> tuple[str, str]:
    """Return the lines between which a part of the page stands."""
    return f"<!-- {part}: begin -->", f"<!-- {part}: end -->"


def write_page(text: str, part: str, page: Path = PAGE) -> None:
    """Replace what stands between the markers of a part of the page."""
    begin, end = markers(part)
    before, _, rest = page.read_text(encoding="utf-8").partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise TableError(f"{page.name}: the lines {begin} and {end} are not there")
    page.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")


def arguments(words: list[str]) -> argparse.Namespace:
    """Read the command line."""
    given = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    given.add_argument("--target", default=DEFAULT_TARGET, help="machine, as mk1 or mk2")
    given.add_argument("--table", type=Path, default=TABLE, help="published figures, CSV")
    given.add_argument("--names", default="", help="names of rows, with commas between")
    given.add_argument("--kind", default="", help="kinds, with commas between")
    given.add_argument("--name", default="*", help="pattern of the rows' names")
    given.add_argument("--json", action="store_true", help="print the errors of all rows as JSON")
    given.add_argument("--jobs", type=int, default=1, help="rows at a time")
    given.add_argument("--write", action="store_true", help="put the tables into docs/accuracy.md")
    given.add_argument("--results", type=Path, help="file of results that is added to")
    given.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    options = given.parse_args(words)
    if options.jobs < 1:
        raise TableError(f"--jobs is {options.jobs}; at least 1 is needed")
    if options.write and (options.table.name not in PARTS or options.target != DEFAULT_TARGET):
        tables = " or ".join(PARTS)
        raise TableError(f"--write is for {tables} on {DEFAULT_TARGET}, of which the page tells")
    return options


def rows_of(options: argparse.Namespace) -> list[Benchmark]:
    """Choose the rows to compare, and check what can be checked at once; raises TableError."""
    poplar.IPUModel(options.target)
    rows = chosen_rows(options.table, options.names)
    kinds = options.kind.split(",") if options.kind else list({row.kind for row in rows})
    for kind in kinds:
        if kind not in BUILDERS:
            raise TableError(f"{options.table}: kind {kind!r}; known are {', '.join(BUILDERS)}")
    rows = [row for row in rows if row.kind in kinds and fnmatch(row.name, options.name)]
    if not rows:
        raise TableError(f"{options.table}: no row of kind {options.kind} named {options.name}")
    return rows


def run(options: argparse.Namespace) -> bool:
    """Compare the rows that were asked for, print and keep them; tell if all were measured."""
    rows = rows_of(options)
    if options.measure:
        print(json.dumps(asdict(measure(rows[0], options.target))))
        return True
    done = []
    for comparison in compare_all(rows, options):
        if comparison.ours is None:
            print(f"{comparison.benchmark.name}: {comparison.reason}", file=sys.stderr, flush=True)
        elif not options.json:
            print(line_of(comparison), flush=True)
        done.append(comparison)
        if options.results:
            keep(comparison, options.results)
    done.sort(key=lambda comparison: rows.index(comparison.benchmark))
    text = document(kept(options.results, options.table) if options.results else done)
    errors = json.dumps([object_of(row) for row in done if row.ours], indent=1)
    print(errors if options.json else f"\n{text}")
    if options.write:
        write_page(text, PARTS[options.table.name])
    return all(row.ours is not None for row in done)


def main(words: list[str]) -> None:
    """Compare, or end with one line that says what is wrong."""
    try:
        measured = run(arguments(words))
    except (TableError, PoplarError) as error:
        sys.exit(f"poplibs_accuracy: {error}")
    sys.exit(not measured)


if __name__ == "__main__":
    main(sys.argv[1:])
