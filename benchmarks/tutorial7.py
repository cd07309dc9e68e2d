"""Measure tutorial 7 at 10,000 x 1,000: 60,000 vertices, each added by a call of its own.

The tutorial runs as a process of its own and records a host trace, from which the phases are read.
Goals on two cores: all under 10 s and 1.5 GB.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from pva.trace import Trace, openTrace

TUTORIAL = Path(__file__).parents[1] / "examples" / "tutorials" / "tut7_matrix_vector_opt.py"
SIZE = ("10000", "1000")


def run_tutorial(folder: Path) -> tuple[int, int, list[str]]:
    """Run the tutorial.

    Gives when it began and ended (nanoseconds since the epoch), and the lines that tell its result.
    """
    options = json.dumps({"enable": "true", "directory": str(folder)})
    environment = os.environ | {"PVTI_OPTIONS": options}
    command = [sys.executable, str(TUTORIAL), *SIZE, "--out", str(folder / "report")]
    begin = time.time_ns()
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    end = time.time_ns()
    lines = done.stdout.splitlines()
    return begin, end, [line for line in lines if line.startswith(("Multiplication", "Program"))]


def phases(trace: Trace, begin: int, end: int) -> list[tuple[str, float]]:
    """Find the phases of the process and their seconds, each indented below what it is part of."""
    thread = trace.threads[0].columns
    rows = zip(
        thread.begin_ns.tolist(),
        thread.end_ns.tolist(),
        thread.depth.tolist(),
        [trace.labels[label] for label in thread.label.tolist()],
        strict=True,
    )
    found = [("  " * depth + label, (to - since) / 1e9) for since, to, depth, label in rows]
    first = trace.anchor.wall_ns + int(thread.begin_ns[0])
    last = trace.anchor.wall_ns + int(thread.end_ns.max())
    before, after = (first - begin) / 1e9, (end - last) / 1e9
    return [
        ("start Python, build the graph", before),
        *found,
        ("check the result, print the summary", after),
    ]


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        begin, end, printed = run_tutorial(folder)
        size = sum(file.stat().st_size for file in (folder / "report").iterdir())
        for label, duration in phases(openTrace(folder), begin, end):
            print(f"{label:<36}{duration:8.2f} s")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{'all, from start to end of Python':<36}{(end - begin) / 1e9:8.2f} s   goal 10 s")
    print(f"{'  on a processor':<36}{used.ru_utime + used.ru_stime:8.2f} s")
    print(f"{'peak memory':<36}{used.ru_maxrss * 1024 / 1e6:8.0f} MB  goal 1500 MB")
    print(f"{'report':<36}{size / 1e6:8.2f} MB")
    print(*printed, sep="\n")


if __name__ == "__main__":
    main()
