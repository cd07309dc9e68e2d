"""The reports that the browser tests serve."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from pva.data.dataset import Dataset
from tests.browser.names import LABEL, LONG, MARKUP, PROGRAM, VARIABLE
from tests.builders import small_report, write_report

ROOT = Path(__file__).parents[2]
SERVED = (
    "small", "torn", "trace.pvti", "demo", "demo-even", "digits", "full", "unrun", "hostile",
    "long",
)  # fmt: skip
# Reports of real programs: the demo's two after one epoch, and the two-layer network on an IPU.
DEMO = """
from pathlib import Path
from cli.programs.recording import claimed, recorded
from simulator.examples import digits_pipeline
out, even = Path("demo"), Path("demo-even")
with claimed(out), claimed(even):
    with recorded(out):
        digits_pipeline.train(out, epochs=1)
    digits_pipeline.measure(even, epochs=1)
"""
COMMANDS = (("-c", DEMO), ("-m", "cli.main", "simulate", "mlp_digits", "--out", "digits"))
TRACE = """
import json, sys
import pvti
names = json.load(sys.stdin)
channel = pvti.createTraceChannel(names["channel"])
for number in range(20):
    with pvti.Tracepoint(channel, names["outer"]):
        with pvti.Tracepoint(channel, names["inner"]):
            sum(range(20000))
"""
# Names that a reader must know: they stand for something.
KNOWN = {("report", "created"), ("provenance", "item"), ("provenance", "quality")}


def write_all(folder: Path) -> None:
    """Write small and its trace, a damaged report, real ones, one out of memory, one not run."""
    report = write_report(folder / "small", named())
    record(report, channel="<anon>", outer="batch", inner=LABEL)
    shutil.copy(next(report.glob("*.pvti")), folder / "trace.pvti")
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    for arguments in COMMANDS:
        command = [sys.executable, *arguments]
        subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
    (folder / "torn").mkdir()
    (folder / "torn" / "profile.pop").write_bytes((report / "profile.pop").read_bytes()[:5000])
    target = small_report().table("target") | {"bytes_per_tile": [600]}
    write_report(folder / "full", small_report(target=target))
    write_report(folder / "unrun", small_report().select("graph", "debug"))
    for name, text in (("hostile", MARKUP), ("long", LONG)):
        report = write_report(folder / name, hostile(text))
        (report / "app.json").write_text(json.dumps({text: text}))
        record(report, channel=text, outer=text, inner=text)


def named() -> Dataset:
    """Make the small report with a variable and a program whose names look like markup."""
    data = small_report()
    names = data.column("variables", "name").copy()
    names[np.flatnonzero(names == "product")] = VARIABLE
    programs = data.column("programs", "name").copy()
    programs[np.flatnonzero(programs == "y/StreamCopy")] = PROGRAM
    return small_report(
        variables=data.table("variables") | {"name": names},
        programs=data.table("programs") | {"name": programs},
    )


def hostile(added: str) -> Dataset:
    """Make the small report with a text added to every text that a program may choose."""
    data = small_report()
    changed: dict[str, Any] = {}
    for table in data.tables:
        for column, values in data.table(table).items():
            if values.dtype != object or (table, column) in KNOWN:
                continue
            texts = [f"{text}{added}" if text else "" for text in values]
            changed.setdefault(table, data.table(table) | {})[column] = texts
    return small_report(**changed)


def record(report: Path, **names: str) -> None:
    """Run a program that is traced into the folder of a report."""
    options = f'{{"enable":"true","directory":"{report}"}}'
    environment = os.environ | {"PVTI_OPTIONS": options, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", TRACE]  # names may be too long for a command
    subprocess.run(command, input=json.dumps(names), text=True, env=environment, check=True)
