"""Steps, runs and overlap in time, by hand on the small report and by loops on all."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pva.analysis.execution import timing
from pva.analysis.selection import SelectionError
from pva.analysis.spans import common, length, merged
from pva.errors import NotRecordedError
from tests.analysis.samples import every_report, executed, longer, opened, rows, small


def changed_steps(**columns: Any) -> Any:
    """Make the small report with other values in columns of its steps."""
    table = dict(small().dataset.table("steps"))
    for name, values in columns.items():
        table[name] = table[name].copy()
        for place, value in values.items():
            table[name][place] = value
    return small(steps=table)


@every_report
def test_longest_steps_are_those_that_sorting_finds(name: str) -> None:
    steps = [longer(step) for _, step, _ in executed(opened(name))]
    frame = timing.longest_steps(opened(name), count=7)
    assert frame["cycles"].tolist() == sorted(steps, reverse=True)[:7]
    assert [steps[step] for step in frame["step"]] == frame["cycles"].tolist()


def test_longest_steps_of_a_run_are_of_that_run_alone() -> None:
    frame = timing.longest_steps(small(), run=1, count=2)
    # The multiplications: 114 cycles, and 108 behind an exchange that ends later on some tiles.
    assert frame[["step", "run", "name"]].to_numpy().tolist() == [
        [15, 1, "multiply"], [18, 1, "multiply"],
    ]  # fmt: skip
    with pytest.raises(SelectionError, match="runs 0 to 1"):
        timing.longest_steps(small(), run=2)


@every_report
def test_varying_programs_are_those_of_a_loop(name: str) -> None:
    taken = defaultdict(list)
    for _, step, _ in executed(opened(name)):
        taken[step["program"]].append(step["cycles"])
    wanted = {p: of for p, of in taken.items() if min(of) < max(of)}
    frame = timing.varying_programs(opened(name)).set_index("program")
    assert set(frame.index) == set(wanted)
    for program, cycles in wanted.items():
        row = frame.loc[program]
        assert [row["min_cycles"], row["max_cycles"]] == [min(cycles), max(cycles)]
        assert row["spread_cycles"] == sum(cycles) - len(cycles) * min(cycles)


def test_the_longest_step_of_a_varying_program_is_named() -> None:
    frame = timing.varying_programs(changed_steps(cycles={6: 500}))
    row = frame.iloc[0]
    assert row[["name", "executions", "longest_step"]].tolist() == ["multiply", 4, 6]
    assert row[["min_cycles", "mean_cycles", "max_cycles"]].tolist() == [114, 210.5, 500]


def test_what_steps_took_above_their_estimate_is_told() -> None:
    row = timing.estimated_against_measured(changed_steps(cycles={6: 154, 3: 110})).iloc[0]
    assert row[["name", "executions", "estimated_cycles"]].tolist() == ["multiply", 4, 114]
    assert row[["min_cycles", "mean_cycles", "max_cycles"]].tolist() == [110, 123, 154]
    assert (row["measured_cycles"], row["excess_cycles"]) == (114, 40 - 4)


@pytest.mark.parametrize("level", ["", "_by_ipu", "_by_tile"])
def test_measurements_stand_in_where_no_steps_were_recorded(level: str) -> None:
    names = [f"measured_compute_set_cycles{each}" for each in ("", "_by_ipu", "_by_tile")]
    cycles = {"": [120, 0, 30], "_by_ipu": [[120, 9], [0, 0], [8, 30]],
              "_by_tile": [[*[7] * 9, 120], [0] * 10, [*[30] * 5, *[0] * 5]]}  # fmt: skip
    measured = dict.fromkeys(names) | {f"measured_compute_set_cycles{level}": cycles[level]}
    frame = timing.estimated_against_measured(small(steps=None, **measured))
    assert frame[["name", "estimated_cycles", "measured_cycles"]].to_numpy().tolist() == [
        ["multiply", 114, 120], ["add", 30, 30],
    ]  # fmt: skip
    assert frame["mean_cycles"].isna().all() and frame["excess_cycles"].tolist() == [6, 0]
    with pytest.raises(NotRecordedError, match=r"autoReport\.outputExecutionProfile"):
        timing.estimated_against_measured(small(steps=None, **dict.fromkeys(names)))


@every_report
def test_steps_of_the_simulator_take_what_was_estimated(name: str) -> None:
    frame = timing.estimated_against_measured(opened(name))
    steps = [row for kind, _, row in executed(opened(name)) if kind == "OnTileExecute"]
    assert frame["executions"].sum() == len(steps)
    assert (frame["excess_cycles"] == 0).all()


def test_the_longest_wait_between_runs_comes_first() -> None:
    runs = dict(small().dataset.table("runs"))
    three = {name: [*values, values[-1]] for name, values in runs.items()}
    three |= {"start_microseconds": [0.0, 110.0, 300.0], "end_microseconds": [100.0, 250.0, 400.0]}
    three["first_step"], three["end_step"] = [0, 12, 24], [12, 24, 24]
    frame = timing.time_between_runs(small(runs=three))
    assert frame["run"].tolist() == [2, 1, 0]
    assert frame["gap_microseconds"].tolist()[:2] == [50, 10]
    assert frame["gap_share"].tolist()[:2] == [50 / 190, 10 / 110]
    assert frame["device_microseconds"].tolist() == [0.512] * 3
    assert frame["gap_microseconds"].isna().tolist() == [False, False, True]


def test_the_time_of_runs_outside_the_profile_is_no_wait() -> None:
    runs = dict(small().dataset.table("runs"))
    runs |= {"start_microseconds": [0.0, 110.0], "end_microseconds": [100.0, 250.0]}
    others = {"name": ["weights"], "program": [1]} | {
        "start_microseconds": [101.0], "end_microseconds": [105.0]
    }  # fmt: skip
    frame = timing.time_between_runs(small(runs=runs, other_runs=others))
    assert frame["gap_microseconds"].tolist()[0] == 10 - 4


def test_exchange_with_the_host_behind_compute_is_hidden() -> None:
    columns = small().dataset.table("steps_by_ipu")
    # On IPU 1, step 3 computes from 100 to 200, and step 1 copies from 150 to 250.
    spans = {"step": [1, 3], "ipu": [1, 1], "from_min": [150, 100], "to_max": [250, 200]}
    frame = timing.overlap(small(steps_by_ipu={name: [0, 0] for name in columns} | spans))
    assert frame.to_numpy().tolist() == [[1, 100, 100, 50, 0.5], [0, 0, 0, 0, 0]]


@every_report
def test_overlap_is_that_of_single_cycles(name: str) -> None:
    steps = rows(opened(name), "steps")
    size = max(row["to_max"] for row in rows(opened(name), "steps_by_ipu"))
    words = {"StreamCopy": 0, "OnTileExecute": 1}
    busy: dict[int, Any] = defaultdict(lambda: np.zeros((2, size), dtype=bool))
    for row in rows(opened(name), "steps_by_ipu"):
        kind = steps[row["step"]]["type"]
        if kind in words:
            busy[row["ipu"]][words[kind], row["from_min"] : row["to_max"]] = True
    frame = timing.overlap(opened(name)).set_index("ipu")
    for ipu, (io, compute) in busy.items():
        wanted = [io.sum(), compute.sum(), (io & compute).sum()]
        assert frame.loc[ipu].tolist()[:3] == wanted
    exposed = timing.overlap(opened(name)).eval("io_cycles - both_cycles")
    assert exposed.is_monotonic_decreasing


spans = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)), max_size=12)


@settings(max_examples=80, deadline=None)
@given(spans, spans)
def test_what_spans_have_in_common_is_counted_once(
    left: list[tuple[int, int]], right: list[tuple[int, int]]
) -> None:
    sets = [{at for b, n in side for at in range(b, b + n)} for side in (left, right)]
    unions = [
        merged(pairs[:, 0], pairs.sum(axis=1))
        for pairs in (np.array(side, dtype=np.int64).reshape(-1, 2) for side in (left, right))
    ]
    assert [length(union) for union in unions] == [len(each) for each in sets]
    assert common(unions[0], unions[1]) == len(sets[0] & sets[1])
