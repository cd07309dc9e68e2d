"""Measure `why_idle`, `waits` and `critical_path` on a million steps of four IPUs.

    python -m benchmarks.causes_speed [--steps 1000000] [--keep FILE]

Each is asked in a process of its own of the report of `benchmarks.large_report`. Goals: less than
5 s of the processor, opening the report included, and at its peak at most 200 bytes a step above
what the process has before it opens the report. `--keep FILE` keeps the report for reuse.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
ANALYSES = ("why_idle", "waits", "critical_path")
SECONDS, BYTES = 5.0, 200
ASK = """
import resource, sys, time
import pandas, pva
from pva.analysis import CATALOGUE
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
before, begin = peak(), time.process_time()
CATALOGUE[sys.argv[1]](pva.openReport(sys.argv[2]))
print(time.process_time() - begin, peak() - before)
"""


def measured(analysis: str, report: Path) -> tuple[float, float]:
    """Return the processor seconds and the bytes at the peak that an analysis takes."""
    command = [sys.executable, "-c", ASK, analysis, str(report)]
    answer = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    seconds, size = answer.stdout.split()
    return float(seconds), float(size)


def main() -> None:
    """Print the table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1_000_000, help="executed steps, at least")
    parser.add_argument("--keep", type=Path, help="where the report is, or will be: a .pop file")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        report = (arguments.keep or Path(directory) / "large.pop").absolute()
        if not report.exists():
            module = ("-m", "benchmarks.large_report", "--steps", str(arguments.steps))
            subprocess.run([sys.executable, *module, report], cwd=ROOT, check=True)
        print(f"| {arguments.steps:,} steps | s | goal | bytes a step | goal | |")
        print("| --- | ---: | ---: | ---: | ---: | --- |")
        for analysis in ANALYSES:
            seconds, size = measured(analysis, report)
            each = size / arguments.steps
            met = "met" if seconds < SECONDS and each <= BYTES else "missed"
            print(f"| {analysis} | {seconds:.2f} | {SECONDS:g} | {each:,.0f} | {BYTES} | {met} |")


if __name__ == "__main__":
    main()
