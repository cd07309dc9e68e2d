"""Filters: read as data, fitted to the column that they name."""

from __future__ import annotations

import pandas as pd
import pytest

from pva.analysis.filters import Filter, FilterError, matching, parse_filter
from pva.errors import PvaError

FRAME = pd.DataFrame(
    {
        "name": ["Layer1/Conv", "Layer1/Reduce", "<anon>"],
        "bytes": [512, 2048, 0],
        "share": [0.2, 0.8, float("nan")],
        "recorded": [True, False, True],
    }
)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("name~layer1", [0, 1]),
        ("name !~ Layer1", [2]),
        ("name = <anon>", [2]),
        ("bytes >= 512", [0, 1]),
        ("bytes > 1 kB", [1]),
        ("bytes==2,048", [1]),
        ("share < 25 %", [0]),
        ("recorded = yes", [0, 2]),
        ("name=__import__('os').system('true')", []),
    ],
)
def test_filter_keeps_the_rows_it_says(text: str, kept: list[int]) -> None:
    assert matching(FRAME, [parse_filter(text)]).index.tolist() == kept


def test_all_filters_must_let_a_row_through() -> None:
    filters = [parse_filter("name~Layer1"), parse_filter("bytes>1000")]
    assert matching(FRAME, filters)["name"].tolist() == ["Layer1/Reduce"]


def test_spaces_around_the_operator_are_passed_over() -> None:
    assert parse_filter("cycles >= 10") == Filter("cycles", ">=", "10")
    assert parse_filter("name~ two words ") == Filter("name", "~", " two words ")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bytes=many", "bytes=many: 'many' is no number; bytes holds numbers"),
        ("name>3", "name>3: cannot be compared so; name holds text"),
        ("recorded=maybe", "recorded=maybe: 'maybe' is neither; recorded is yes or no"),
        ("bytes", "bytes: no filter; write a column, one of"),
    ],
)
def test_filter_that_does_not_fit_says_what_would(text: str, message: str) -> None:
    with pytest.raises(FilterError) as raised:
        matching(FRAME, [parse_filter(text)])
    assert str(raised.value).startswith(message)


def test_unknown_column_offers_the_nearest() -> None:
    with pytest.raises(PvaError, match="byte: no such column; did you mean bytes"):
        matching(FRAME, [parse_filter("byte>3")])
