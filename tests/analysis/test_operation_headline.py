"""The facts of the headline of operations: which costs most, and what is in none."""

from __future__ import annotations

import pandas as pd

from pva.analysis.operations.headline import (
    Costliest,
    Unassigned,
    costliest,
    longest_operations,
    unassigned_cycles,
)

COSTS = pd.DataFrame(
    {
        "operation": ["conv", "(Sync)", "relu", "(outside)"],
        "cycles": [50, 30, 15, 5],
        "code": [-1, 60, 40, -1],
    }
)


def test_the_costliest_has_its_share_of_all_and_is_no_kind_of_program() -> None:
    assert costliest(COSTS, "cycles") == Costliest("conv", 50, 0.5)
    assert costliest(COSTS, "code") == Costliest("relu", 40, 0.4)
    assert costliest(COSTS.assign(code=-1), "code") is None
    assert costliest(COSTS[:0], "cycles") is None


def test_the_longest_operations_leave_out_those_without_cycles() -> None:
    rows = longest_operations(COSTS.assign(cycles=[50, 30, 0, 20]), 2)
    assert rows[["operation", "share"]].values.tolist() == [["conv", 0.5]]


def test_what_is_in_no_operation_has_its_share_and_its_largest_row() -> None:
    assert unassigned_cycles(COSTS) == Unassigned(0.35, "(Sync)")
    assert unassigned_cycles(COSTS[COSTS["operation"] == "conv"]) is None
