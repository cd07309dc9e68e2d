"""Variables of equal names together, by hand."""

from __future__ import annotations

import pandas as pd

from pva.analysis.memory.equal_names import joined_names

FRAME = pd.DataFrame(
    [(3, "a", "x", 50, 0), (1, "b", "x", 40, 0), (7, "b", "x", 30, 0), (4, "b", "y", 20, 0),
     (5, "c", "y", 5, -9)],
    columns=["variable", "name", "category", "step_2", "change"],
)  # fmt: skip


def test_variables_of_one_name_and_category_are_one_row() -> None:
    joined = joined_names(FRAME, ["step_2"])
    assert joined["name"].tolist() == ["c", "b", "a", "b"]  # the largest change first
    assert joined["count"].tolist() == [1, 2, 1, 1]
    assert joined["step_2"].tolist() == [5, 70, 50, 20]
    assert joined["variable"].tolist() == [5, None, 3, 4]


def test_the_variables_of_an_open_name_are_below_its_row() -> None:
    joined = joined_names(FRAME, ["step_2"], {"b", "c"})
    assert joined["variable"].tolist() == [5, None, 1, 7, 3, 4]
    assert joined["inside"].tolist() == [False, False, True, True, False, False]


def test_an_empty_table_stays_empty() -> None:
    assert len(joined_names(FRAME[:0], ["step_2"], {"b"})) == 0
