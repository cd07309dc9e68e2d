"""Every number that the summary prints follows from the report: `recomputed` finds it again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pva import schema
from pva.data.dataset import Dataset
from pva.report import Report, openReport
from pva.summary import profile_summary
from tests.builders import replicated_report, small_report
from tests.summary import recomputed

SAMPLES = Path(__file__).parents[2] / "sample_reports"
NAMES = sorted(file.parent.name for file in SAMPLES.glob("*/profile.pop"))
ALL = {
    "show_var_storage": True, "show_optimizations": True, "show_execution_steps": True,
    "show_exchange_instruction_breakdown": True, "show_per_ipu_memory_usage": True,
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_every_line_of_a_sample_report_can_be_recomputed(name: str) -> None:
    report = openReport(SAMPLES / name)
    shown = recomputed.plain(profile_summary(report, **ALL))
    assert shown == list(recomputed.lines(report.dataset))


@pytest.mark.parametrize("replicas", [1, 2])
def test_every_line_of_a_replicated_report_can_be_recomputed(replicas: int) -> None:
    data = replicated_report(replicas)
    shown = recomputed.plain(profile_summary(Report.of(data), **ALL))
    assert shown == list(recomputed.lines(data))


def random_report(seed: int) -> Dataset:
    """Fill the hand-made report with sizes, cycles and lives that fit each other in part."""
    numbers = np.random.default_rng(seed)
    data = small_report()
    most = int(numbers.choice([3, 500, 5_000, 100_000]))

    def drawn(shape: Any) -> Any:
        return numbers.integers(0, most, shape) * (numbers.random(shape) < numbers.random())

    tables = {name: dict(data.table(name)) for name in data.tables}
    memory = tables["memory_by_tile"]
    for region in ("interleaved", "non_interleaved", "overflowed"):
        memory[region] = drawn(10)
    memory["total"] = memory["interleaved"] + memory["non_interleaved"] + memory["overflowed"]
    memory["total_including_gaps"] = memory["total"] + drawn(10)
    arrays = {"memory_by_category": drawn(data.array("memory_by_category").shape)}
    parts = [f"memory_by_vertex_type_{part}" for part, _, _ in schema.VERTEX_MEMORY_PARTS]
    arrays |= {part: drawn((3, 10)) for part in parts}
    arrays[parts[-1]] = sum(arrays[part] for part in parts[:-1])
    arrays["compute_set_active_cycles_by_vertex_type"] = drawn((3, 3))
    arrays["always_live_bytes"] = drawn(10)
    tables["variables"]["bytes"] = drawn(7)
    tables["variables"]["name"] = numbers.choice(["a", "b/c", "<anon>", "d" * 40], 7).astype(object)
    begin = numbers.integers(0, 14, 5)
    lives = {"begin": begin, "end": np.minimum(begin + numbers.integers(0, 6, 5), 14)}
    tables["variable_intervals"] = {"variable": np.arange(5), **lives}
    tables["tile_cycles"] = {name: [1 + int(drawn(1)[0])] for name in tables["tile_cycles"]}
    return small_report(**tables, **arrays)


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 2**32 - 1))
def test_every_line_of_a_random_report_can_be_recomputed(seed: int) -> None:
    data = random_report(seed)
    shown = recomputed.plain(profile_summary(Report.of(data), **ALL))
    assert shown == list(recomputed.lines(data))
