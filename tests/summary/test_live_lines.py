"""What is live at each step is written from shares of names that stay: as if all were new."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from pva.report import Report
from pva.summary.layout import LONGEST_NAME
from pva.summary.liveness_summary import HEADS, live_lines
from tests.builders import small_report

STEPS = 14


def _report(seed: int, longest: int) -> Report:
    """Draw 300 variables of 200 names, each live for a while, one in ten of no bytes."""
    numbers = np.random.default_rng(seed)
    names = np.array([f"n{number}".ljust(1 + number % longest, "é") for number in range(200)])
    begin = numbers.integers(0, STEPS, 300)
    variables = dict(small_report().table("variables"))
    columns = {name: np.resize(values, 300) for name, values in variables.items()}
    columns["name"] = names[numbers.integers(0, 200, 300)].astype(object)
    columns["bytes"] = numbers.integers(1, 10_000_000, 300) * (numbers.random(300) < 0.9)
    lives = {"begin": begin, "end": np.minimum(begin + numbers.integers(0, 6, 300), STEPS)}
    intervals = {"variable": np.arange(300), **lives}
    return Report.of(small_report(variables=columns, variable_intervals=intervals))


def _written(report: Report, step: int, head: str) -> str:
    """Write one step by itself, name by name."""
    lives, variables = (report.dataset.table(n) for n in ("variable_intervals", "variables"))
    live: Counter[str] = Counter()
    for variable, begin, end in zip(*lives.values(), strict=True):
        if begin <= step < end and variables["bytes"][variable]:
            live[variables["name"][variable]] += int(variables["bytes"][variable])
    width = min(max(map(len, live), default=0), LONGEST_NAME)
    return "".join(f"{head}{n.ljust(width)}{live[n]:>14,}\n" for n in sorted(live))


@pytest.mark.parametrize("longest", [1, 30, LONGEST_NAME + 20])
@pytest.mark.parametrize("heads", [1, 3, HEADS, HEADS + 1])
def test_a_step_is_written_as_if_it_stood_alone(longest: int, heads: int) -> None:
    report = _report(heads, longest)
    indents = [" " * (2 * (step % heads)) for step in range(STEPS)]
    written = ["".join(block) for block in live_lines(report, indents)]
    assert written == [_written(report, step, indents[step]) for step in range(STEPS)]
    assert sum(text.count("\n") for text in written) > STEPS
