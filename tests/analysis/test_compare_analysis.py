"""Two reports compared: matched by name, signed, adding up."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pytest

from pva.analysis import CATALOGUE, COMPARISONS
from pva.analysis.whole_report import comparison as compare
from pva.analysis.whole_report.comparison import total_of
from pva.errors import NotRecordedError
from pva.report import Report
from tests.analysis.samples import never_run, opened, small
from tests.builders import small_report

SAMPLES = ("matmul_chain_tiny", "matmul_chain_mk2", "mlp_digits_tiny", "newton_pipeline_replicas")


def figure(frame: object, name: str, column: str) -> float:
    rows = frame.set_index("figure")  # type: ignore[attr-defined]
    return float(rows.loc[name, column])


@pytest.mark.parametrize("after", SAMPLES)
def test_changes_add_up_to_the_change_of_the_total(after: str) -> None:
    first, second = opened("matmul_chain_tiny"), opened(after)
    figures = compare.compare_figures(first, second)
    by_cycles = (
        compare.compare_causes, compare.compare_layers, compare.compare_operations,
        compare.compare_programs,
    )  # fmt: skip
    for compared in by_cycles:
        before, now, change = total_of(compared(first, second))
        assert (before, now) == (
            figure(figures, "total_cycles", "before"), figure(figures, "total_cycles", "after"),
        )  # fmt: skip
        assert change == now - before
    memory = total_of(compare.compare_categories(first, second))
    assert memory[2] == figure(figures, "total_memory", "change")


OF_REPORTS = [name for name in COMPARISONS if name not in ("compare_labels", "compare_settings")]


@pytest.mark.parametrize("name", OF_REPORTS)
def test_a_report_and_itself_have_no_change(name: str) -> None:
    report = opened("mlp_digits_tiny")
    frame = COMPARISONS[name](report, report)
    assert (frame["change"] == 0).all() and len(frame)


WHERE = {(True, True): "both", (True, False): "before", (False, True): "after"}
# comparison: the analysis of one report whose rows it matches, by what, and what it sums.
MATCHED = {
    "tiles": ("memory_by_tile", ["tile"], "total_including_gaps"),
    "vertex_types": ("memory_by_vertex_type", ["vertex_type"], "total"),
    "compute_sets": ("memory_by_compute_set", ["name"], "state"),
    "always_live": ("always_live_variables", ["name"], "bytes"),
    "live_at_peak": ("live_variables", ["name"], "bytes"),
    "causes": ("cycles_by_cause", ["cause"], "cycles"),
    "phases": ("cycles_by_phase", ["phase"], "cycles"),
    "layers": ("cycles_by_layer", ["layer"], "cycles"),
    "operations": ("cycles_by_operation", ["operation"], "cycles"),
    "operation_memory": ("memory_by_operation", ["operation"], "bytes"),
    "programs": ("cycles_by_program", ["type", "name"], "cycles"),
}


@pytest.mark.parametrize("of", MATCHED)
@pytest.mark.parametrize("after", SAMPLES)
def test_a_comparison_is_the_sums_by_key_of_both_reports(of: str, after: str) -> None:
    name, keys, value = MATCHED[of]
    sums: tuple[Counter[Any], Counter[Any]] = (Counter(), Counter())
    pair = (opened("matmul_chain_tiny"), opened(after))
    for report, counter in zip(pair, sums, strict=True):
        steps = report.dataset.column("liveness_steps", "bytes").tolist()
        options = {"step": steps.index(max(steps))} if of == "live_at_peak" else {}
        arrays = CATALOGUE[name](report, **options).arrays
        for row in zip(*(arrays[key] for key in (*keys, value)), strict=True):
            counter[row[:-1]] += int(row[-1])
    rows = [(*key, sums[0][key], sums[1][key]) for key in sums[0].keys() | sums[1].keys()]
    rows = sorted(
        (row for row in rows if any(row[-2:])), key=lambda row: (-abs(row[-1] - row[-2]), row)
    )
    table = COMPARISONS[f"compare_{of}"](*pair).arrays
    columns = [table[column].tolist() for column in (*keys, "before", "after")]
    assert list(zip(*columns, strict=True)) == rows
    assert table["change"].tolist() == [after - before for *_, before, after in rows]
    wanted = [WHERE[row[:-2] in sums[0], row[:-2] in sums[1]] for row in rows]
    assert table["in"].tolist() == wanted


def test_rows_are_matched_by_name_and_the_largest_change_is_first() -> None:
    more = small_report().table("variables")
    names = [*more["name"]]
    sizes = more["bytes"].copy()
    names[names.index("message")] = "letter"
    sizes[names.index("w")] -= 50
    frame = compare.compare_variables(
        small(), small(variables=dict(more) | {"name": names, "bytes": sizes})
    )
    rows = frame.set_index("name")
    assert rows.loc["w", ["before", "after", "change"]].tolist() == [80, 30, -50]
    assert rows.loc["letter", ["before", "after", "change", "in"]].tolist() == [0, 40, 40, "after"]
    assert math.isnan(rows.loc["letter", "ratio"]) and rows.loc["message", "in"] == "before"
    assert frame["name"].tolist()[:3] == ["w", "letter", "message"]


def test_names_that_occur_twice_are_added_up() -> None:
    more = small_report().table("variables")
    names = ["x" if name == "w" else name for name in more["name"]]
    frame = compare.compare_variables(small(), small(variables=dict(more) | {"name": names}))
    assert frame.set_index("name").loc["x", ["before", "after"]].tolist() == [80, 160]


def test_figures_that_one_report_lacks_are_left_out() -> None:
    gone = Report.of(small_report().select("graph"))
    names = compare.compare_figures(small(), gone)["figure"].tolist()
    assert names == [
        "largest_tile",
        "total_memory",
        "tiles_out_of_memory",
        "always_live",
        "max_live",
    ]


@pytest.mark.parametrize("of", ["phases", "layers", "operations", "programs"])
def test_cycles_of_a_program_that_never_ran_are_not_compared(of: str) -> None:
    comparison = COMPARISONS[f"compare_{of}"]
    for pair in ((small(), never_run()), (never_run(), small())):
        with pytest.raises(NotRecordedError, match="no run was recorded"):
            comparison(*pair)
        assert "total_cycles" not in compare.compare_figures(*pair)["figure"].tolist()


@pytest.mark.parametrize("of", ["layers", "operations", "operation_memory"])
def test_report_without_debug_contexts_has_the_operations_of_the_same_with_them(of: str) -> None:
    report = opened("mlp_digits_tiny")
    bare = Report.of(report.dataset.select("graph", "execution"))
    assert (COMPARISONS[f"compare_{of}"](report, bare)["change"] == 0).all()
    assert (COMPARISONS[f"compare_{of}"](bare, report)["change"] == 0).all()


@pytest.mark.parametrize("after", SAMPLES)
def test_changes_of_what_is_live_add_up_to_those_of_the_figures(after: str) -> None:
    first, second = opened("matmul_chain_tiny"), opened(after)
    figures = compare.compare_figures(first, second)
    always = total_of(compare.compare_always_live(first, second))
    moving = total_of(compare.compare_live_at_peak(first, second))
    for place, column in enumerate(("before", "after", "change")):
        assert always[place] == figure(figures, "always_live", column)
        assert always[place] + moving[place] == figure(figures, "max_live", column)


@pytest.mark.parametrize("after", SAMPLES)
def test_changes_of_phases_and_tiles_add_up(after: str) -> None:
    first, second = opened("matmul_chain_tiny"), opened(after)
    figures = compare.compare_figures(first, second)
    phases = total_of(compare.compare_phases(first, second))
    assert phases[2] == figure(figures, "total_cycles", "change")
    gaps = [r.dataset.column("memory_by_tile", "total_including_gaps").sum()
            for r in (first, second)]  # fmt: skip
    assert total_of(compare.compare_tiles(first, second)) == (*gaps, gaps[1] - gaps[0])


def test_tiles_that_one_report_has_are_told() -> None:
    rows = compare.compare_tiles(small(), opened("matmul_chain_mk2")).set_index("tile")
    assert rows.loc[10, "in"] == "after" and rows.loc[9, "in"] == "both"
    assert rows.loc[0, "before"] == 1040


def test_vertices_are_matched_by_type_and_by_compute_set() -> None:
    names = ["multiply", "reduce", "sum"]
    other = small(compute_sets=dict(small_report().table("compute_sets")) | {"name": names})
    rows = compare.compare_compute_sets(small(), other).set_index("name")
    # add is called sum in the other report: 5 vertices of 8 bytes
    assert rows.loc["add", ["before", "after", "change", "in"]].tolist() == [40, 0, -40, "before"]
    assert rows.loc["sum", ["before", "after", "change", "in"]].tolist() == [0, 40, 40, "after"]
    assert (compare.compare_vertex_types(small(), other)["change"] == 0).all()


def test_settings_that_differ_come_first() -> None:
    target = dict(small_report().table("target")) | {"bytes_per_tile": [4096]}
    options = {"name": ["autoReport.all", "debug.instrument"], "value": ["true", "false"]}
    frame = compare.compare_settings(small(), small(target=target, engine_options=options))
    assert frame[frame["differs"]].drop(columns="differs").to_numpy().tolist() == [
        ["target", "bytes per tile", "2,048", "4,096"],
        ["option", "debug.instrument", "", "false"],
    ]
    rows = frame.set_index("name")
    assert rows.loc["type", "before"] == "IPU_MODEL" and rows.loc["version", "after"] == "1.2.3"


@pytest.mark.parametrize("count", [0, 2, 100])
@pytest.mark.parametrize("after", SAMPLES)
def test_a_waterfall_leads_from_total_to_total(after: str, count: int) -> None:
    frame = compare.compare_programs(opened("matmul_chain_tiny"), opened(after))
    before, now, change = total_of(frame)
    way = compare.waterfall(frame, count=count)
    assert way["change"].sum() == change
    assert [before, *way["end"]][-1] == now
    assert way["begin"].tolist() == [before, *way["end"]][:-1]
    assert len(way) <= count + 1


def test_a_waterfall_has_the_rest_last_and_without_a_name() -> None:
    frame = compare.compare_categories(opened("matmul_chain_tiny"), opened("matmul_chain_mk2"))
    way = compare.waterfall(frame, count=1)
    assert way["name"].tolist() == [frame["category"][0], ""]
    assert way["change"][1] == frame["change"][1:].sum()
