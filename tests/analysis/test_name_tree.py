"""Trees of names: by hand, and against plain sums over all programs and variables."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from pva.analysis.operations.costs import operation_costs
from pva.analysis.operations.name_tree import code_by_name, cycles_by_name, memory_by_name, tree_of
from pva.analysis.table import arrays_of
from tests.analysis.samples import NAMES, executed, opened, rows


def test_names_are_branches_by_their_slashes() -> None:
    tree = arrays_of(tree_of(["a/b", "a/c", "d", "a", "e"], np.array([1, 2, 4, 8, 0])))
    assert dict(zip(tree["path"], tree["total"], strict=True)) == {
        "a": 11, "a/b": 1, "a/c": 2, "d": 4,
    }  # fmt: skip
    assert dict(zip(tree["path"], tree["own"], strict=True)) == {
        "a": 8, "a/b": 1, "a/c": 2, "d": 4,
    }  # fmt: skip
    assert tree["path"][tree["parent"][1:3]].tolist() == ["a", "a"]


@pytest.mark.parametrize("name", NAMES)
def test_a_layer_takes_the_cycles_of_all_names_that_begin_with_it(name: str) -> None:
    report = opened(name)
    programs, spent = rows(report, "programs"), Counter[str]()
    for _, step, _ in executed(report):
        program = programs[step["program"]]
        words = program["name"] or f"({program['type']})"
        spent[words] += max(step["cycles_to"] - step["cycles_from"], 0)
    frame = cycles_by_name(report)
    assert int(frame["own"].sum()) == sum(spent.values())
    for row in frame.to_dict("records"):
        begin = f"{row['path']}/"
        inside = sum(
            n for text, n in spent.items() if text == row["path"] or text.startswith(begin)
        )
        assert row["total"] == inside


@pytest.mark.parametrize("name", [name for name in NAMES if name != "small"])
def test_memory_adds_up_to_what_is_live_at_the_peak(name: str) -> None:
    data = opened(name).dataset
    peak = int(data.column("liveness_steps", "bytes").argmax())
    begin, end = (data.column("variable_intervals", end) for end in ("begin", "end"))
    live = set(data.column("variable_intervals", "variable")[(begin <= peak) & (peak < end)])
    live |= set(np.flatnonzero(data.column("variables", "always_live")))
    sizes = data.column("variables", "bytes")
    assert int(memory_by_name(opened(name))["own"].sum()) == sum(int(sizes[row]) for row in live)


def test_code_adds_up_to_that_of_operations() -> None:
    report = opened("mlp_digits_tiny")
    costs = operation_costs(report)[["control_code", "exchange_code"]].to_numpy()
    assert 0 < int(costs.sum()) == int(code_by_name(report)["own"].sum())
