"""Read a host trace of ten million events every way that a user does; print goal and figure.

The trace is made here, the same bytes for the same seed: eight threads, 500 labels, blocks of
sixteen events three deep, chunks of 20,000 events as a program leaves that records 200,000 events a
second. Each figure is found in a process of its own, the file being in the page cache: the least of
several times, or the most memory that the process held. Times are of the processor, user and
system, so that nothing else that the machine does is in them. `--keep DIR` keeps and reuses the
files; `--events N` makes smaller ones.
"""

from __future__ import annotations

import argparse
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parent.parent
EVENTS, THREADS, LABELS, CHUNK, SEED = 10_000_000, 8, 500, 20_000, 7
JSON_EVENTS = 1_000_000  # of the files in other formats
TRACE, SMALL, CHROME = "trace.pvti", "small.pvti", "trace.json"
MB = 1e6
# Begin and end of the events of a block, in units of 8 ns.
BEGINS = np.array([0, 10, 20, 40, 60, 200, 210, 240, 300, 400, 410, 430, 450, 600, 620, 700])
ENDS = np.array([990, 190, 38, 55, 180, 290, 230, 280, 395, 590, 425, 445, 580, 980, 690, 970])
RECORD = np.dtype([("begin", "<u8"), ("duration", "<u4"), ("label", "<u4")])
Job = Callable[[Path, int], float]


def make(path: Path, events: int) -> None:
    """Write a trace."""
    from pvti import schema

    generator = np.random.default_rng(SEED)
    with closing(sqlite3.connect(path)) as database:
        for statement in schema.create_statements():
            database.execute(statement)
        rows: dict[str, list[tuple[Any, ...]]] = {
            "processes": [(1, 42, "program", 1000, 10**18, 1000 + 10**12, 1, 0)],
            "channels": [(number, f"channel {number}") for number in range(1, 9)],
            "labels": [
                (number, number % 8 + 1, f"module.Class.method_{number}")
                for number in range(1, LABELS + 1)
            ],
            "threads": [(number, 1, 999 + number, f"worker {number}")
                        for number in range(1, THREADS + 1)],
        }  # fmt: skip
        for table, some in rows.items():
            database.executemany(schema.insert_statement(table), some)
        for thread in range(1, THREADS + 1):
            records = _records(generator, events // THREADS)
            for first in range(0, len(records), CHUNK):
                part = records[first : first + CHUNK]
                data, begin = part.tobytes(), part["begin"]
                row = (None, thread, len(part), int(begin.min()),
                       int((begin + part["duration"]).max()), zlib.crc32(data), data)  # fmt: skip
                database.execute(schema.insert_statement("event_chunks"), row)
        database.commit()


def _records(generator: np.random.Generator, count: int) -> np.ndarray[Any, Any]:
    """Make the events of a thread, in the order of their end."""
    order = np.argsort(ENDS)
    blocks = count // len(order) + 1
    starts = 1000 + 8 * np.cumsum(generator.integers(1000, 1300, blocks))
    jitter = generator.integers(0, 8, (2, blocks, len(order)))
    begin = starts[:, None] + 8 * BEGINS[order] + jitter[0]
    end = starts[:, None] + 8 * ENDS[order] + jitter[1]
    label = generator.integers(0, LABELS, len(order)) + generator.integers(0, LABELS, (blocks, 1))
    records = np.empty(count, RECORD)
    records["begin"] = begin.ravel()[:count]
    records["duration"] = (end - begin).ravel()[:count]
    records["label"] = (label % LABELS + 1).ravel()[:count]
    return records


def _timed(action: Callable[[], object]) -> float:
    begin = time.process_time()
    action()
    return time.process_time() - begin


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _imports() -> None:
    """Load what reading, frames and pandas need, as any program has that uses them again."""
    import pandas as pd

    import pva.query
    import pva.trace

    frame = pd.DataFrame({"a": pd.Categorical.from_codes([0], categories=["x"]), "b": ["x"]})
    assert len(frame.sort_values("b")) and pva.trace and pva.query


def opened(folder: Path, _: int) -> float:
    """Time `pva.openTrace`, in s."""
    _imports()
    import pva

    return _timed(lambda: pva.openTrace(folder / TRACE))


def labels(folder: Path, _: int) -> float:
    """Time opening and `trace.frames.labels()`: counts, sums, self times, percentiles; in s."""
    _imports()
    import pva

    return _timed(lambda: pva.openTrace(folder / TRACE).frames.labels())


def window(folder: Path, _: int) -> float:
    """Time the slowest of some windows of one percent of the time, of a fresh trace, in ms."""
    _imports()
    import pva

    trace = pva.openTrace(folder / TRACE)
    length = _length(trace)
    starts = [length * share // 100 for share in (1, 17, 33, 50, 66, 83, 98)]
    took = [
        min(_timed(lambda at=at: trace.window(at, at + length // 100)) for _ in range(9))
        for at in starts
    ]
    return max(took) * 1e3


def _length(trace: Any) -> int:
    return int(trace._content._tables["event_chunks"]["end_ns"].max())


def memory(folder: Path, events: int) -> float:
    """Return the most memory of open, a window and labels above the imports, in bytes an event."""
    _imports()
    import pva

    before = _peak()
    trace = pva.openTrace(folder / TRACE)
    trace.window(0, _length(trace) // 100)
    trace.frames.labels()
    return (_peak() - before) / events


def nested(folder: Path, events: int) -> float:
    """Time depth, parent and self time of all events that were read, in ns an event."""
    _imports()
    import pva

    trace = pva.openTrace(folder / TRACE)
    lanes = [thread.columns for thread in trace.threads]
    return _timed(lambda: [lane.nesting for lane in lanes]) / events * 1e9


def nested_memory(folder: Path, events: int) -> float:
    """Return the most memory of all columns with depth, parent and self time, in bytes an event."""
    _imports()
    import pva

    before = _peak()
    trace = pva.openTrace(folder / TRACE)
    for thread in trace.threads:
        assert len(thread.columns.depth) == thread.count
    return (_peak() - before) / events


def chrome_import(folder: Path, _: int) -> float:
    """Return the speed at which Chrome JSON is opened, in MB/s."""
    _imports()
    import pva

    took = min(_timed(lambda: pva.openTrace(folder / CHROME)) for _ in range(3))
    return (folder / CHROME).stat().st_size / took / MB


def chrome_memory(folder: Path, _: int) -> float:
    """Return the most memory of that above the imports, as a multiple of the file."""
    _imports()
    import pva

    before = _peak()
    pva.openTrace(folder / CHROME)
    return (_peak() - before) / (folder / CHROME).stat().st_size


def chrome_export(folder: Path, _: int) -> float:
    """Return the speed at which Chrome JSON is written, in events a second."""
    return _export(folder, "chrome")


def perfetto_export(folder: Path, _: int) -> float:
    """Return the speed at which Perfetto's packets are written, in events a second."""
    return _export(folder, "perfetto")


def _export(folder: Path, form: str) -> float:
    _imports()
    import pva
    from pva.formats.traces.registry import write

    trace = pva.openTrace(folder / SMALL)
    count = sum(len(thread.columns.depth) for thread in trace.threads)

    def exported() -> None:
        with (folder / f"out.{form}").open("wb") as out:
            write(trace, out, form)

    return count / min(_timed(exported) for _ in range(2))


@dataclass(frozen=True, slots=True)
class Line:
    """A figure and its goal, if any; of times the least of several processes is taken."""

    what: str
    unit: str
    goal: float | None
    job: Job
    more_is_better: bool = False
    repeats: int = 1


LINES = (
    Line("open", "s", 0.5, opened, repeats=3),
    Line("open and labels", "s", 1, labels, repeats=9),
    Line("the slowest one-percent window", "ms", 20, window, repeats=3),
    Line("peak memory of open, window and labels", "B/event", 48, memory),
    Line("depth, parent and self time", "ns/event", None, nested, repeats=3),
    Line("peak memory with depth, parent and self time", "B/event", 48, nested_memory),
    Line("Chrome JSON, opened", "MB/s", 40, chrome_import, True),
    Line("Chrome JSON, peak memory", "x the file", 4, chrome_memory),
    Line("Chrome JSON, written", "events/s", None, chrome_export, True),
    Line("Perfetto, written", "events/s", None, perfetto_export, True),
)
JOBS = {line.job.__name__: line.job for line in LINES}


def measured(line: Line, folder: Path, events: int) -> float:
    """Run a job in processes of its own."""
    command = [sys.executable, "-m", "benchmarks.trace_speed", "--job", line.job.__name__]
    command += ["--keep", str(folder), "--events", str(events)]
    done = [
        float(subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout)
        for _ in range(line.repeats)
    ]
    return max(done) if line.more_is_better else min(done)


def row(line: Line, figure: float) -> str:
    """Write a line of the table."""
    shown = f"{figure:,.4g}" if figure < 1e4 else f"{figure:,.0f}"
    if line.goal is None:
        return f"| {line.what}, {line.unit} | {shown} |  |  |"
    holds = figure >= line.goal if line.more_is_better else figure <= line.goal
    goal = f"{'>=' if line.more_is_better else '<='} {line.goal:g}"
    return f"| {line.what}, {line.unit} | {shown} | {goal} | {'pass' if holds else 'FAIL'} |"


def prepare(folder: Path, events: int) -> None:
    """Write the files that are not there."""
    import pva
    from pva.formats.traces.registry import write

    if not (folder / TRACE).exists():
        make(folder / TRACE, events)
    if not (folder / SMALL).exists():
        make(folder / SMALL, min(JSON_EVENTS, events))
    if not (folder / CHROME).exists():
        with (folder / CHROME).open("wb") as out:
            write(pva.openTrace(folder / SMALL), out, "chrome")


def main() -> None:
    """Print the table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", type=Path, help="where the files are, or will be")
    parser.add_argument("--events", type=int, default=EVENTS)
    parser.add_argument("--job", choices=JOBS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.job:
        print(JOBS[arguments.job](arguments.keep, arguments.events))
        return
    with tempfile.TemporaryDirectory() as directory:
        folder = arguments.keep or Path(directory)
        folder.mkdir(parents=True, exist_ok=True)
        prepare(folder, arguments.events)
        print("| figure | measured | goal | |")
        print("| --- | ---: | ---: | --- |")
        for line in LINES:
            print(row(line, measured(line, folder, arguments.events)), flush=True)


if __name__ == "__main__":
    main()
