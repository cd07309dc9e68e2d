"""The table that an analysis gives: NumPy columns that stay, and a DataFrame for who wants one."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pandas as pd
import pytest

from pva.analysis.columns import COLUMNS, analysis
from pva.analysis.table import Columns, Table, arrays_of, joined, whole_numbers

COUNTS = np.array([3, 1])


@analysis("name bytes:bytes *:cycles")
def measured() -> Columns:
    return {"name": ["a", "b"], "bytes": COUNTS, "0": [0.5, 1.0]}


@analysis("tile bytes:bytes", index="tile")
def indexed() -> Columns:
    return {"tile": np.array([4, 7]), "bytes": COUNTS}


@analysis("name cycles:cycles")
def incomplete() -> Columns:
    return {"name": [None, None], "cycles": whole_numbers([None, 1 << 60])}


for example in (measured, indexed, incomplete):
    del COLUMNS[example.__name__]  # they are of no catalogue


def test_columns_are_arrays_that_cannot_be_written() -> None:
    arrays = measured().arrays
    assert {name: values.dtype.kind for name, values in arrays.items()} == {
        "name": "O",
        "bytes": "i",
        "0": "f",
    }
    with pytest.raises(ValueError, match="read-only"):
        arrays["bytes"][0] = 1
    assert COUNTS.flags.writeable  # what it was computed from stays as it was


def test_columns_of_a_frame_become_arrays() -> None:
    values = arrays_of(pd.DataFrame({"bytes": COUNTS}))["bytes"]
    assert type(values) is np.ndarray and values.tolist() == [3, 1]


def test_units_are_those_declared() -> None:
    assert measured().units == {"name": "", "bytes": "bytes", "0": "cycles"}


def test_a_frame_may_be_changed_and_the_table_stays() -> None:
    table = measured()
    frame = table.frame()
    frame.loc[0, "bytes"] = 100
    frame["kb"] = frame["bytes"] / 1024
    assert table.arrays["bytes"].tolist() == table.frame()["bytes"].tolist() == [3, 1]
    assert list(table.frame()) == ["name", "bytes", "0"]


def test_what_a_frame_can_do_a_table_can() -> None:
    table = measured()
    assert table.sort_values("bytes")["name"].tolist() == ["b", "a"]
    assert table[table["bytes"] > 1]["name"].tolist() == ["a"]
    assert table.loc[1, "bytes"] == 1
    assert (len(table), "name" in table, list(table)[:2]) == (2, True, ["name", "bytes"])
    assert len(pd.concat([table, table])) == len(pd.merge(table, table, on="name")) + 2 == 4  # type: ignore[list-item, arg-type]
    assert table.equals(table.frame()) and bool((table == table).all().all())


def test_missing_values_are_none_in_arrays_and_na_in_a_frame() -> None:
    arrays, frame = incomplete().arrays, incomplete().frame()
    assert [values.tolist() for values in arrays.values()] == [[None, None], [None, 1 << 60]]
    assert arrays["cycles"].max() == frame["cycles"].max() == 1 << 60
    assert frame.isna().all(axis=1).tolist() == [True, False]
    assert frame.dtypes.astype(str).tolist() == ["str", "Int64"]
    both = joined([arrays, arrays])
    assert both["cycles"].tolist() == [None, 1 << 60] * 2


@pytest.mark.parametrize("value", [1, np.ma.masked])
def test_a_missing_number_cannot_be_written(value: object) -> None:
    with pytest.raises(ValueError, match="read-only"):
        incomplete().arrays["cycles"][0] = value


def test_a_table_cannot_be_assigned_to() -> None:
    with pytest.raises(TypeError):
        measured()["bytes"] = 0  # type: ignore[index]


def test_the_index_of_the_frame_is_a_column_of_the_table() -> None:
    assert list(indexed().arrays) == ["tile", "bytes"]
    assert indexed().frame()["bytes"].loc[7] == 1


@pytest.mark.parametrize("table", [measured(), indexed(), incomplete()])
def test_a_table_is_copied_and_sent(table: Table) -> None:
    for twin in (copy.copy(table), copy.deepcopy(table), pickle.loads(pickle.dumps(table))):
        assert table.equals(twin)
        assert twin.units == table.units


def test_a_notebook_shows_units_and_the_ends_of_what_is_long() -> None:
    html = Table({"step": np.arange(61)}, measured()._declared)._repr_html_()
    assert '<th title="bytes">bytes<br>bytes</th>' in measured()._repr_html_()
    assert "<td>4</td></tr><tr><td>56</td>" in html
    assert "61 rows" in html
    assert "rows" not in Table({"step": np.arange(60)}, measured()._declared)._repr_html_()


def test_names_are_shown_as_they_are() -> None:
    table = Table({"name": np.array(["<anon>"], dtype=object)}, measured()._declared)
    assert "&lt;anon&gt;" in table._repr_html_()


def test_parts_are_joined_row_behind_row() -> None:
    parts = (
        {"name": "a", "count": [1, 2]},
        {"name": ["b"], "count": [3]},
        {"name": [], "count": []},
    )
    columns = joined(parts[:2])
    assert (columns["name"].tolist(), columns["count"].tolist()) == (["a", "a", "b"], [1, 2, 3])
    assert joined(parts)["count"].tolist() == [1, 2, 3]
