"""Time `tilescope summary` on the report of `benchmarks.large_report`; print goal and figure.

    python -m benchmarks.summary_speed

Each figure is the least of several processes, from their start on: until the first line is read
from a pipe, and until all lines are written to /dev/null. `--keep FILE` keeps the report for reuse.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
REPEATS = 5
ALL = ("--liveness", "--steps", "--per-ipu", "--optimizations", "--exchange-instructions")
# What is printed, the options, whether only the first line is waited for, the goal in seconds.
LINES: tuple[tuple[str, tuple[str, ...], bool, float], ...] = (
    ("first line, all options", ALL, True, 0.5),
    ("no options", (), False, 3.0),
    ("--steps", ("--steps",), False, 3.0),
    ("--liveness", ("--liveness",), False, 3.0),
    ("all options", ALL, False, 3.0),
)


def summarise(report: Path, options: tuple[str, ...], first: bool) -> float:
    """Return the seconds until the first or the last line of the summary."""
    command = [sys.executable, "-m", "cli.main", "summary", str(report), *options]
    # Bytecode is kept as that of an installed package is.
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    kept["PYTHONPYCACHEPREFIX"] = str(Path(tempfile.gettempdir()) / "summary-speed-bytecode")
    begin = time.perf_counter()
    if not first:
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL, env=kept)
        return time.perf_counter() - begin
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, env=kept) as process:
        assert process.stdout is not None
        process.stdout.readline()
        return time.perf_counter() - begin


def main() -> None:
    """Print the table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", type=Path, help="where the report is, or will be: a .pop file")
    with tempfile.TemporaryDirectory() as directory:
        report = (parser.parse_args().keep or Path(directory) / "large.pop").absolute()
        if not report.exists():
            module = ("-m", "benchmarks.large_report")
            subprocess.run([sys.executable, *module, report], cwd=ROOT, check=True)
        print(f"| summary of the large report ({os.cpu_count()} cores) | s | goal | |")
        print("| --- | ---: | ---: | --- |")
        for what, options, first, goal in LINES:
            figure = min(summarise(report, options, first) for _ in range(REPEATS))
            verdict = "pass" if figure <= goal else "FAIL"
            print(f"| {what} | {figure:.2f} | <= {goal:g} | {verdict} |", flush=True)


if __name__ == "__main__":
    main()
