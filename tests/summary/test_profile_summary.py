"""The whole text for the hand-made report, and what it says when something is missing.

The golden files were read line by line against the sample of the user guide. To write them again
after a change that is meant: `UPDATE_GOLDEN=1 pytest tests/summary`, then read the difference.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pva import schema
from pva.data.dataset import Dataset
from pva.report import Report, openReport
from pva.summary import execution_summary, graph_summary, profile_summary
from pva.summary.graph_summary import CATEGORY_ORDER
from tests.builders import replicated_report, small_report

GOLDEN = Path(__file__).parent / "golden"
SAMPLES = Path(__file__).parents[2] / "sample_reports"
STEP_CHARACTERS = 4_000


def report(**changes: Any) -> Any:
    return SimpleNamespace(dataset=small_report(**changes))


def changed(table: str, **columns: Any) -> dict[str, Any]:
    """Return a table of the hand-made report with other values in some columns."""
    return {table: dict(small_report().table(table)) | columns}


def golden(name: str, text: str) -> str:
    """Return the golden text of a name; write it first when that is asked for."""
    file = GOLDEN / f"{name}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        file.write_text(text, encoding="utf-8")
    return file.read_text(encoding="utf-8")


OPTIONS = {
    "plain": {},
    "liveness": {"show_var_storage": True},
    "steps": {"show_execution_steps": True},
    "per_ipu": {"show_per_ipu_memory_usage": True},
    "optimizations": {"show_optimizations": True},
    "exchange_instructions": {"show_exchange_instruction_breakdown": True},
    "colours": {"colours": True},
}
ALL = {name: True for options in OPTIONS.values() for name in options if name != "colours"}


@pytest.mark.parametrize("name", OPTIONS)
def test_summary_is_the_golden_text(name: str) -> None:
    text = profile_summary(report(), **OPTIONS[name])
    assert text == golden(name, text)


def overfull() -> Dataset:
    """Make the hand-made report with seven tiles that need more than they have."""
    needed = small_report().column("memory_by_tile", "total_including_gaps") + 1_600
    return small_report(**changed("memory_by_tile", total_including_gaps=needed))


CASES = {
    "replicas": lambda: replicated_report(2),
    "out_of_memory": overfull,
    "not_profiled": lambda: small_report(execution={"profiler_mode": [0], "cycles": [0]}),
}


@pytest.mark.parametrize("name", CASES)
def test_summary_of_a_case_is_the_golden_text(name: str) -> None:
    text = profile_summary(Report.of(CASES[name]()), **ALL)
    assert text == golden(name, text)


@pytest.mark.parametrize("name", sorted(f.parent.name for f in SAMPLES.glob("*/profile.pop")))
def test_summary_of_a_sample_report_is_the_golden_text(name: str) -> None:
    # With all options, and of the steps the first lines.
    text = profile_summary(openReport(SAMPLES / name), **ALL)
    text = "".join(text[: text.index("\nSteps\n") + STEP_CHARACTERS].splitlines(keepends=True)[:-1])
    assert text == golden(name, text)


def test_summary_is_the_graph_summary_and_the_execution_summary() -> None:
    parts = graph_summary(report()) + execution_summary(report())
    assert parts == profile_summary(report())


def test_target_of_the_sample() -> None:
    target = changed(
        "target", num_ipus=[1], tiles_per_ipu=[1216], num_tiles=[1216], bytes_per_tile=[262_144],
        total_memory=[1216 * 262_144], clock_frequency=[1.6e9],
    )  # fmt: skip
    nothing = dict.fromkeys(schema.ARRAY)
    text = graph_summary(report(**target, **nothing)).splitlines()
    assert text[:11] == [
        "Target:",
        "  Number of IPUs:         1",
        "  Tiles per IPU:          1,216",
        "  Total Tiles:            1,216",
        "  Memory Per-Tile:        256.0 kB",
        "  Total Memory:           304.0 MB",
        "  Clock Speed (approx):   1,600.0 MHz",
        "  Number of Replicas:     1",
        "  IPUs per Replica:       1",
        "  Tiles per Replica:      1,216",
        "  Memory per Replica:     304.0 MB",
    ]


def test_cycles_of_the_sample_have_their_time_beside_them() -> None:
    tables = changed("target", clock_frequency=[1.6e9]) | changed("execution", cycles=[54_202])
    lines = execution_summary(report(**tables)).splitlines()
    assert lines[3] == (
        "  Total cycles:                                  54,202 (approx 33.9 microseconds)"
    )


def test_balances_of_the_sample() -> None:
    cycles = changed("tile_cycles", compute=[1_933_324], active_compute=[1_769_242])
    target = changed("target", num_tiles=[1216], num_ipus=[1], tiles_per_ipu=[1216])
    tables = cycles | target | changed("execution", cycles=[54_202]) | dict.fromkeys(schema.ARRAY)
    text = execution_summary(report(**tables))
    assert "\n  Total tile balance:                            2.9%\n" in text
    assert "\n  Total thread balance:                          91.5%\n" in text


def test_missing_totals_of_the_execution_are_said_in_one_line() -> None:
    text = execution_summary(report(tile_cycles=None))
    assert text.strip() == (
        "Execution: no tile_cycles in this report; "
        f"the program has none, or its writer does not tell; {schema.EXECUTION_OPTION} was on"
    )


def test_steps_and_runs_are_not_needed_for_the_totals() -> None:
    text = execution_summary(report(steps=None, runs=None), show_execution_steps=True)
    assert text.startswith("\nExecution:\n\n  Total cycles: ")
    assert text.splitlines()[-2] == "  Cycles by vertex type: this report has no cycle estimates"
    assert text.splitlines()[-1].startswith("Steps: no steps in this report; ")


@pytest.mark.parametrize("execution", [None, {"profiler_mode": [0], "cycles": [0]}])
def test_execution_that_was_not_profiled_is_said_in_one_line(execution: Any) -> None:
    assert schema.PROFILER_MODES[0] == "NONE"
    text = execution_summary(report(execution=execution), show_execution_steps=True)
    assert text == "\nExecution profiling not enabled\n"


def test_missing_memory_and_liveness_are_said_in_one_line_each() -> None:
    text = profile_summary(
        report(memory_by_tile=None, always_live_bytes=None), show_var_storage=True
    )
    assert "\nMemory on all IPUs: no memory_by_tile in this report; the program has none" in text
    assert "\n  Variable Storage Liveness: no always_live_bytes in this report; " in text


def test_a_section_names_the_option_of_what_it_lacks() -> None:
    data = small_report().select("execution")
    text = execution_summary(SimpleNamespace(dataset=data))  # type: ignore[arg-type]
    assert text.strip() == (
        f"Execution: no target in this report; run the program with the engine option "
        f"{schema.GRAPH_OPTION}"
    )


def test_missing_details_are_said_within_their_section() -> None:
    text = profile_summary(
        report(
            memory_by_vertex_type_total=None,
            variable_intervals=None,
            compute_set_active_cycles_by_vertex_type=None,
        ),
        show_var_storage=True,
        show_execution_steps=True,
    )
    assert "\n      Vertex Data: this report has no memory by vertex type\n" in text
    assert "\n    Live Vars: this report does not say when each variable is live\n" in text
    assert "\n  Cycles by vertex type: this report has no cycle estimates\n" in text


@pytest.mark.parametrize("name", [*schema.TABLE, *schema.ARRAY])
def test_whatever_is_missing_the_other_sections_are_written(name: str) -> None:
    text = profile_summary(report(**{name: None}), **ALL)
    titles = ("Target", "Graph", "Memory on all", "  Variable Storage", "Execution")
    assert [title for title in titles if f"\n{title}" not in f"\n{text}"] == []
    if not name.startswith(("target", "memory_by_tile", "memory_by_category")):
        assert text.count(" tile(s) out of memory\n") == 3


def test_every_category_has_its_place() -> None:
    assert sorted(CATEGORY_ORDER) == sorted(schema.CATEGORIES)


def test_tiles_out_of_memory_are_shown_with_what_fills_them() -> None:
    needed = small_report().column("memory_by_tile", "total_including_gaps").copy()
    needed[[3, 6]] = 2_500, 3_000
    text = graph_summary(report(**changed("memory_by_tile", total_including_gaps=needed)))
    lines = text[text.index("    2 tile(s) out of memory") :].splitlines()
    assert lines[1] == "      Tile 6: 3,000 B, 952 B too many"
    assert lines[2].split() == ["Vertex", "Code", "100", "B"]
    assert lines[5] == "      Tile 3: 2,500 B, 452 B too many"


def test_memory_of_a_replicated_graph_is_that_of_one_replica() -> None:
    text = graph_summary(SimpleNamespace(dataset=replicated_report(2)))
    assert "\nMemory of one of 2 replicas:\n" in text
    assert "\n  Total Tiles:            20\n" in text
    assert "\n  Tiles per Replica:      10\n" in text
    assert "\n  IPUs per Replica:       2\n" in text
    total = small_report().column("memory_by_tile", "total").sum()
    assert f"\n      Total:{total:>26,} B\n" in text


def test_runs_without_steps_are_counted() -> None:
    text = execution_summary(report(**changed("runs", first_step=[0, 12], end_step=[12, 12])))
    assert "\n  Runs recorded in full, of all runs:            1 of 2\n" in text


def test_names_that_are_not_unique_or_not_given_are_added_up() -> None:
    names = np.array(["x", "w", "", "", "partials", "y", "step"], dtype=object)
    text = graph_summary(report(**changed("variables", name=names)), show_var_storage=True)
    # Step 6: product (80) and message (40) have no name, and what they are is told instead.
    assert "\n".join((
        "              <anon>                    80",
        "              <message:anon>            40",
        "              x                         80",
    )) in text  # fmt: skip
