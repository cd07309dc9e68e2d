"""The reports that analyses are compared with plain loops on, and the steps for those loops."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from pva import schema
from pva.report import Report, openReport
from tests.builders import small_report

SAMPLES = Path(__file__).parents[2] / "sample_reports"
NAMES = ("small", *sorted(f.parent.name for f in SAMPLES.glob("*/profile.pop")))
WITHOUT_CODE = ("matmul_chain_mk2", "matmul_chain_tiny", "newton_pipeline_replicas")
every_report = pytest.mark.parametrize("name", NAMES)
ARRAYS = {
    "OnTileExecute": ("compute_set", "compute_set"),
    "DoExchange": ("exchange", "exchange"),
    "GlobalExchange": ("exchange", "external_exchange"),
    "StreamCopy": ("exchange", "host_exchange"),
}


@cache
def opened(name: str) -> Report:
    """Open a sample, or make the small report."""
    return Report.of(small_report()) if name == "small" else openReport(SAMPLES / name)


def small(**changes: Any) -> Any:
    """Make the small report with some parts changed or dropped."""
    return Report.of(small_report(**changes))


def never_run() -> Report:
    """Make the small report of a program that was compiled, and never run."""
    empty = {
        name: {column: values[:0] for column, values in small_report().table(name).items()}
        for name in ("runs", "steps", "steps_by_ipu", "blocks")
    }
    execution = dict(small_report().table("execution")) | {"cycles": [0]}
    return Report.of(small_report(**empty, execution=execution))


def rows(report: Report, table: str) -> list[dict[str, Any]]:
    """Return the rows of a table one by one, codes as texts."""
    data = report.dataset
    columns = {
        column.name: (
            data.texts(table, column.name)
            if column.kind == "code"
            else data.column(table, column.name)
        ).tolist()
        for column in schema.TABLE[table].columns
    }
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def executed(report: Report) -> Iterator[tuple[str, dict[str, Any], int]]:
    """Return each executed step: its type, its row, and the row of its compute set or exchange."""
    programs = rows(report, "programs")
    for step in rows(report, "steps"):
        program = programs[step["program"]]
        column = ARRAYS[step["type"]][0] if step["type"] in ARRAYS else "exchange"
        yield step["type"], {**step, "name": program["name"]}, program[column]


def longer(step: dict[str, Any]) -> int:
    """Return by how many cycles a step made its run longer."""
    return int(step["cycles_to"] - step["cycles_from"])
