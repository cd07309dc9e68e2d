"""The facts of the headline of programs, on trees of a few lines counted by hand."""

from __future__ import annotations

import pandas as pd
import pytest

from pva.analysis.programs.headline import (
    compilation_totals,
    longest_program,
    stage_order,
    tree_size,
    widest_stages,
)


def stages(*parts: tuple[str, int]) -> pd.DataFrame:
    """Make stages of 10,000 cycles in all, in order, from name and cycles."""
    frame = pd.DataFrame(parts, columns=["name", "cycles"])
    return frame.assign(role="part", line=range(len(parts)), share=frame["cycles"] / 10_000)


def test_a_program_with_parts_or_a_call_is_not_the_longest() -> None:
    tree = pd.DataFrame(
        {"name": ["all", "a", "b", "call"], "end": [4, 2, 3, 4], "function": [-1, -1, -1, 0],
         "cycles": [10, 2, 3, 5]}
    )  # fmt: skip
    longest = longest_program(tree, "cycles")
    assert longest is not None
    assert (longest["name"], longest["cycles"]) == ("b", 3)


@pytest.mark.parametrize("cycles", [0, -1])
def test_programs_without_cycles_have_no_longest(cycles: int) -> None:
    tree = pd.DataFrame({"end": [1], "function": [-1], "cycles": [cycles]})
    assert longest_program(tree, "cycles") is None


def test_what_the_compiler_added_is_told_apart_from_what_was_written() -> None:
    types = pd.DataFrame(
        [("Execute", "OnTileExecute", 3), ("Copy", "DoExchange", 2), ("Copy", "OnTileExecute", 4),
         ("", "Sync", 5)],
        columns=["written", "compiled", "programs"],
    )  # fmt: skip
    totals = compilation_totals(pd.DataFrame(index=range(6)), types)
    assert (totals.written, totals.compiled, totals.added) == (6, 9, 5)
    assert totals.by_kind == (("OnTileExecute", 7), ("DoExchange", 2))


def test_functions_are_roots_that_are_no_control_programs() -> None:
    tree = pd.DataFrame({"parent": [-1, 0, -1, -1], "part": ["control", "", "function", "control"]})
    size = tree_size(tree)
    assert (size.programs, size.control_programs, size.functions) == (4, 2, 1)


def test_the_longest_stages_stand_in_the_order_in_which_they_run() -> None:
    order = stage_order(stages(("a", 500), ("b", 6000), ("c", 400), ("d", 3000)), 2, 0.04)
    assert [row["name"] for row in order.rows] == ["b", "d"]
    assert (order.count, order.remainder) == (4, 2)
    assert order.share == pytest.approx(0.09)


def test_stages_below_the_notable_share_are_named_only_when_all_are() -> None:
    parts = stages(("a", 9000), ("b", 399), ("c", 300))
    assert [row["name"] for row in stage_order(parts, 3, 0.04).rows] == ["a", "b", "c"]
    assert [row["name"] for row in stage_order(parts, 2, 0.04).rows] == ["a"]
    assert [row["name"] for row in stage_order(parts, 2, 0.0399).rows] == ["a", "b"]


@pytest.mark.parametrize(("cycles", "share"), [(4, 0.0), (5, 0.0005)])
def test_syncs_of_a_share_that_is_written_as_nothing_are_none(cycles: int, share: float) -> None:
    order = stage_order(stages(("a", 9000), ("(Sync)", cycles)), 2, 0.04)
    assert (order.count, order.syncs) == (1, share)


def test_the_widths_of_stages_are_shares_of_all_of_them() -> None:
    rows = widest_stages(stages(("a", 1000), ("b", 0), ("c", 2000), ("d", 1000)), 2)
    assert [(row["name"], row["width"]) for row in rows] == [("a", 0.25), ("c", 0.5)]
