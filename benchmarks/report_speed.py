"""Read the reports of `benchmarks.large_report` every way that a user does; print goal and figure.

Each figure is found in a process of its own, the files being in the page cache: the least of
several times, or the most memory that the process held. Times are of the processor, user and
system, so that nothing else that the machine does is in them; one thread does all the work.
`--keep DIR` keeps and reuses the reports.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
REPEATS = 5
FILES = {"large.pop": (), "large.json": (), "large.cbor": (), "long.pop": ("--steps", "1000000")}
MB = 1e6
Job = Callable[[Path], float]


def best(action: Callable[[], object], repeats: int = REPEATS) -> float:
    """Return the least of several times, in seconds."""
    times = []
    for _ in range(repeats):
        gc.collect()
        begin = time.process_time()
        action()
        times.append(time.process_time() - begin)
    return min(times)


def first_array(folder: Path) -> float:
    """Time opening a report and its first array by tile, [500][5888], in ms."""
    import pva

    def read() -> None:
        report = pva.openReport(folder / "large.pop")
        report.dataset.array("compute_set_cycles_by_tile")

    return best(read, 9) * 1e3


def memory_frame(folder: Path) -> float:
    """Time opening a report and its memory by tile as a frame, in ms."""
    import pva

    return best(lambda: pva.openReport(folder / "large.pop").frames.memory_by_tile(), 9) * 1e3


def category_frame(folder: Path) -> float:
    """Time opening a report and its memory by category, region and tile as a frame, in ms."""
    import pva

    return best(lambda: pva.openReport(folder / "large.pop").frames.memory_by_category(), 9) * 1e3


def walk(folder: Path) -> float:
    """Return the most memory, in MB, of a process that looks at all tables, arrays and objects."""
    import pva
    from pva import schema

    report = pva.openReport(folder / "large.pop")
    data = report.dataset
    for table in data.tables:
        for column in schema.TABLE[table].columns:
            data.column(table, column.name)
    for array in data.arrays:
        data.array(array).sum()
    _visit(report)
    sum(step.ipus[0].cycles for step in report.execution.steps)
    sum(tile.memory.total.includingGaps for tile in report.compilation.tiles)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / MB


def cbor(folder: Path) -> float:
    """Time reading the report as CBOR with typed arrays, in s."""
    import pva

    return best(lambda: pva.openReport(folder / "large.cbor"))


def json_load(folder: Path) -> float:
    """Time `json.load` of the same report, in s."""

    def load() -> None:
        with (folder / "large.json").open() as stream:
            json.load(stream)

    return best(load, 3)


def json_read(folder: Path) -> float:
    """Time reading the report as JSON, in s."""
    import pva

    return best(lambda: pva.openReport(folder / "large.json"), 3)


def json_msgspec(folder: Path) -> float:
    """Time msgspec's decode of the same report and making its arrays, in s."""
    import msgspec
    import numpy as np

    def load() -> None:
        gc.disable()
        root = msgspec.json.decode((folder / "large.json").read_bytes())
        arrays: list[Any] = []
        todo = [root]
        while todo:
            value = todo.pop()
            if isinstance(value, dict):
                todo += value.values()
            elif value and isinstance(value, list) and isinstance(value[0], list | int | float):
                try:
                    arrays.append(np.asarray(value))
                except ValueError:  # rows of different lengths
                    continue
        gc.enable()

    return best(load, 3)


def steps_walked(folder: Path) -> float:
    """Count the steps a second whose cycles on IPU 0 are added up by libpva's objects."""
    import pva

    report = pva.openReport(folder / "large.pop")
    count = len(report.execution.steps)
    return count / best(lambda: sum(s.ipus[0].cycles for s in report.execution.steps), 200)


def steps_walked_once(folder: Path) -> float:
    """Count the same in the long report, the first time that it is walked."""
    import pva

    report = pva.openReport(folder / "long.pop")
    count = len(report.execution.steps)
    return count / best(lambda: sum(s.ipus[0].cycles for s in report.execution.steps), 1)


def _visit(report: Any) -> int:
    import pva

    class Count(pva.ProgramVisitor):
        def __init__(self) -> None:
            self.found = 0

        def visitOnTileExecute(self, program: pva.OnTileExecuteProgram) -> None:
            self.found += 1

    visitor = Count()
    for program in report.compilation.programs:
        program.accept(visitor)
    return visitor.found


def programs_visited(folder: Path) -> float:
    """Count the programs a second that a visitor is handed."""
    import pva

    report = pva.openReport(folder / "large.pop")
    return len(report.compilation.programs) / best(lambda: _visit(report))


def _imported(statement: str) -> float:
    code = (
        f"import numpy, sys, time; begin = time.process_time(); {statement}; "
        "end = time.process_time(); assert 'pandas' not in sys.modules; print(end - begin)"
    )
    return min(fresh("-c", code) for _ in range(9)) * 1e3


def import_pva(_: Path) -> float:
    """Time `import pva` behind `import numpy`, in ms."""
    return _imported("import pva")


def import_reader(_: Path) -> float:
    """Time the same with all that `pva.openReport` needs, in ms."""
    return _imported("import pva; pva.openReport")


def info_process(_: Path) -> float:
    """Time the whole process of `tilescope info` on a sample, in ms by the clock."""
    sample = ROOT / "sample_reports" / "mlp_digits_tiny"
    command = [sys.executable, "-m", "cli.main", "info", str(sample)]
    times = []
    for _repeat in range(9):
        begin = time.perf_counter()
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - begin)
    return min(times) * 1e3


def long_size(folder: Path) -> float:
    """Return the size of the report of a million steps, in MB."""
    return (folder / "long.pop").stat().st_size / MB


def long_frame(folder: Path) -> float:
    """Time opening a report of a million steps and its steps as a frame, pandas imported, in s."""
    import pandas  # noqa: F401

    import pva

    return best(lambda: pva.openReport(folder / "long.pop").frames.steps(), 3)


def long_frame_at_once(folder: Path) -> float:
    """Time the same once in a fresh process, with all imports, in s."""
    begin = time.process_time()
    import pva

    pva.openReport(folder / "long.pop").frames.steps()
    return time.process_time() - begin


@dataclass(frozen=True, slots=True)
class Line:
    """A figure and its goal, if any; with `against`, that job's figure divided by this one's."""

    what: str
    unit: str
    goal: float | None
    job: Job
    against: Job | None = None
    more_is_better: bool = False


LINES = (
    Line("profile.pop: open, first array by tile", "ms", 20, first_array),
    Line("profile.pop: open, frame of memory by tile", "ms", 100, memory_frame),
    Line("profile.pop: open, frame of memory by category", "ms", 100, category_frame),
    Line("profile.pop: peak memory of a walk through all", "MB", 300, walk),
    Line("CBOR, times faster than json.load", "x", 5, cbor, json_load, True),
    Line("JSON, times as fast as msgspec and arrays", "x", 1, json_read, json_msgspec, True),
    Line("steps walked, 3,500", "/s", 500_000, steps_walked, more_is_better=True),
    Line("steps walked, 1 million, first time", "/s", 500_000, steps_walked_once,
         more_is_better=True),
    Line("programs visited, 20,000", "/s", 500_000, programs_visited, more_is_better=True),
    Line("import pva, above numpy", "ms", 40, import_pva),
    Line("import pva, with what openReport needs, above numpy", "ms", 30, import_reader),
    Line("tilescope info, whole process", "ms", 250, info_process),
    Line("1 million steps: size of profile.pop", "MB", 200, long_size),
    Line("1 million steps: open, frame of steps", "s", 1.5, long_frame),
    Line("1 million steps: the same with all imports", "s", 1.5, long_frame_at_once),
)  # fmt: skip
JOBS = {job.__name__: job for line in LINES for job in (line.job, line.against) if job}


def fresh(*arguments: str) -> float:
    """Run Python in a process of its own, with bytecode kept as that of an installed package is."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    kept["PYTHONPYCACHEPREFIX"] = str(Path(tempfile.gettempdir()) / "report-speed-bytecode")
    # Threads of OpenBLAS that wait for work after `import numpy` would be counted, too.
    kept["OPENBLAS_NUM_THREADS"] = "1"
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, env=kept)
    return float(done.stdout)


def measured(job: Job, folder: Path) -> float:
    """Run a job in a process of its own."""
    return fresh("-m", "benchmarks.report_speed", "--job", job.__name__, "--keep", str(folder))


def figures(folder: Path) -> list[tuple[str, str, str, str, str]]:
    """Measure every line: what, figure, goal, figure / goal, and whether it holds."""
    rows = []
    for line in LINES:
        figure = measured(line.job, folder)
        if line.against:
            figure = measured(line.against, folder) / figure
        shown = f"{figure:,.4g}" if figure < 1e4 else f"{figure:,.0f}"
        rows.append((f"{line.what}, {line.unit}", shown, *_judged(line, figure)))
    return rows


def _judged(line: Line, figure: float) -> tuple[str, str, str]:
    if line.goal is None:
        return "", "", ""
    ratio = figure / line.goal
    holds = ratio >= 1 if line.more_is_better else ratio <= 1
    goal = f"{'>=' if line.more_is_better else '<='} {line.goal:,.6g}"
    return goal, f"{ratio:.2f}", "pass" if holds else "FAIL"


def make(folder: Path) -> None:
    """Write the reports that are not there."""
    for name, options in FILES.items():
        if not (folder / name).exists():
            module = ("-m", "benchmarks.large_report")
            subprocess.run([sys.executable, *module, folder / name, *options], cwd=ROOT, check=True)


def main() -> None:
    """Print the table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", type=Path, help="where the reports are, or will be")
    parser.add_argument("--job", choices=JOBS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.job:
        print(JOBS[arguments.job](arguments.keep))
        return
    with tempfile.TemporaryDirectory() as directory:
        folder = arguments.keep or Path(directory)
        folder.mkdir(parents=True, exist_ok=True)
        make(folder)
        print("| figure | measured | goal | measured / goal | |")
        print("| --- | ---: | ---: | ---: | --- |")
        for row in figures(folder):
            print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
