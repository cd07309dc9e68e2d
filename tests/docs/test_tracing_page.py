"""What `docs/tracing.md` and `docs/tour.md` show of tracing runs, and costs what was measured."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from pva.trace import openTrace

ROOT = Path(__file__).parents[2]


def test_the_first_example_runs_and_records_what_it_names(tmp_path: Path) -> None:
    code = re.search(r"```python\n(.*?)```", (ROOT / "docs/tracing.md").read_text(), re.DOTALL)
    assert code
    program = f"{code[1]}\nvalidate()\nLoader().first()\n"
    options = {"PYTHONPATH": str(ROOT), "PVTI_OPTIONS": '{"enable": true}'}
    subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=os.environ | options, check=True
    )
    trace = openTrace(tmp_path)
    labels = set(trace.frames.labels()["label"])
    assert labels >= {"epoch", "upload", "validate"}
    assert any(label.endswith("Loader.first") for label in labels)
    assert trace.frames.series()["value"].tolist() == [0.3]
    assert trace.heatmaps[0].counts.sum() == 3
    assert len(trace.frames.instants()) == 1


def test_the_readme_tells_the_costs_that_were_measured() -> None:
    table = (ROOT / "docs/performance.md").read_text()
    figures = dict(re.findall(r"^\| (\w+: .+?) \| (-?[\d.]+) ns", table, re.MULTILINE))
    measured = []
    for way in ("C", "Python"):
        bare, traced, above = (
            float(figures[f"{way}: {what}"])
            for what in (
                "bare `with`",
                "cached tracepoint",
                "disabled, cached, above a bare `with`",
            )
        )
        measured += [f"{traced / 1000:.2f}", f"{(bare + above) / 1000:.2f}"]
    assert re.findall(r"(\d\.\d\d) µs", (ROOT / "docs" / "tour.md").read_text()) == measured
