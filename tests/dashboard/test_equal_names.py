"""Rows of variables of equal names: joined, opened, and in the order of their sums."""

from __future__ import annotations

import pandas as pd

from dashboard.address import parse
from dashboard.pages.liveness.equal_names import grouped, opened

FRAME = pd.DataFrame(
    {
        "variable": [3, 1, 7, 4],
        "name": ["a", "b", "b", "c"],
        "category": ["Variables"] * 4,
        "step 2": [50, 40, 30, 20],
        "change": [0, 0, 0, 0],
    }
)


def test_equal_names_are_one_row_as_large_as_all_of_them() -> None:
    frame = grouped(FRAME, ["step 2"], set())
    assert frame["name"].tolist() == ["▸ b (2 of this name)", "a", "c"]
    assert frame["step 2"].tolist() == [70, 50, 20]
    assert frame["variable"].tolist() == [None, 3, 4]
    assert frame["opens"].tolist() == ["b", None, None]


def test_rows_of_an_open_name_stand_below_it() -> None:
    frame = grouped(FRAME, ["step 2"], {"b"})
    assert [name.strip() for name in frame["name"]] == ["▾ b (2 of this name)", "b", "b", "a", "c"]
    assert frame["variable"].tolist()[1:3] == [1, 7]
    assert frame["step 2"].tolist()[1:3] == [40, 30]


def test_names_that_are_not_equal_stay_as_they_are() -> None:
    alone = FRAME.drop(index=2).reset_index(drop=True)
    assert grouped(alone, ["step 2"], set())["name"].tolist() == ["a", "b", "c"]


def test_open_names_are_read_from_the_address() -> None:
    assert opened(parse("/liveness", "?open=a%2Cb%2Fc,d%252Ce")) == {"a", "b/c", "d,e"}
