"""Every table and array comes as a DataFrame that says what the report says."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from pva import schema
from pva.data.dataset import Dataset
from pva.errors import NotRecordedError
from pva.frames import DTYPES, NAMES, Frames
from pva.report import Report
from tests.builders import TILES, small_report
from tests.strategies import datasets

FRAMES = Frames(small_report())


@pytest.mark.parametrize("table", schema.TABLES, ids=lambda table: table.name)
def test_a_frame_has_the_declared_columns_types_and_rows(table: schema.Table) -> None:
    frame = getattr(FRAMES, table.name)()
    assert list(frame.columns) == [column.name for column in table.columns]
    assert [str(dtype) for dtype in frame.dtypes] == [DTYPES[c.kind] for c in table.columns]
    assert len(frame) == small_report().length(table.name)


@pytest.mark.parametrize("array", schema.ARRAYS, ids=lambda array: array.name)
def test_a_frame_of_an_array_sums_to_the_array(array: schema.Array) -> None:
    frame = getattr(FRAMES, array.name)()
    assert list(frame.columns) == [*array.index, array.unit or "value"]
    assert frame.iloc[:, -1].sum() == small_report().array(array.name).sum()


def test_memory_by_category_has_a_row_for_what_is_not_zero() -> None:
    frame = FRAMES.memory_by_category()
    message = frame[frame["category"] == "message"]
    assert message[["tile", "overlap", "bytes"]].values.tolist()[-1] == [0, "overlapped", 4]
    assert len(message) == TILES


def test_codes_are_the_texts_that_they_stand_for() -> None:
    frame = FRAMES.programs()
    assert frame["type"].tolist()[:2] == ["Sequence", "Sync"]
    assert frame["type"].cat.categories.tolist() == list(schema.PROGRAM_TYPES)


def test_an_array_of_one_index_has_every_row() -> None:
    assert FRAMES.relative_sync_delay()["cycles"].tolist() == [0, 4, 8, 12, 16]


@settings(max_examples=40, deadline=None)
@given(data=datasets())
def test_every_frame_has_the_columns_and_types_of_the_schema_empty_or_not(data: Dataset) -> None:
    declared = Frames(data).schema()
    for name in (*data.tables, *data.arrays):
        frame, rows = getattr(Frames(data), name)(), declared[declared["name"] == name]
        assert list(frame.columns) == rows["column"].tolist()
        assert [str(dtype) for dtype in frame.dtypes] == rows["dtype"].tolist()
        assert rows["recorded"].all()


def test_the_schema_tells_what_was_recorded_and_in_which_unit() -> None:
    frame = Frames(small_report().select("graph")).schema()
    assert set(frame["name"]) == set(NAMES)
    recorded = frame.groupby("name")["recorded"].first()
    assert (recorded["programs"], recorded["steps"]) == (True, False)
    row: Any = frame[(frame["name"] == "runs") & (frame["column"] == "cycles")].iloc[0]
    assert (row["dtype"], row["unit"]) == ("int64", "cycles")


@pytest.mark.parametrize("name", NAMES)
def test_what_a_report_lacks_is_refused_with_the_option_that_records_it(name: str) -> None:
    declared = schema.TABLE.get(name) or schema.ARRAY[name]
    with pytest.raises(NotRecordedError, match=declared.option):
        getattr(Frames(Dataset.of({})), name)()


def test_a_frame_may_be_changed_without_changing_the_report() -> None:
    frame = FRAMES.programs()
    frame.loc[0, "count"] = 7
    assert FRAMES.programs()["count"][0] == -1


def test_a_frame_that_does_not_exist_is_an_attribute_error_with_near_names() -> None:
    with pytest.raises(AttributeError, match="no table or array step; did you mean steps"):
        _ = FRAMES.step
    assert {"programs", "exchange_cycles"} <= set(dir(FRAMES))


def test_help_of_a_frame_tells_columns_units_and_option() -> None:
    assert FRAMES.runs.__name__ == "runs"
    text = FRAMES.runs.__doc__ or ""
    assert "calls of Engine.run" in text and "cycles (int64, cycles): how long it took" in text
    assert "autoReport.outputExecutionProfile" in text


def test_frames_in_a_notebook_are_a_table_of_what_is_there() -> None:
    found = Frames(small_report(blocks=None))._repr_html_()
    assert "<td>steps</td>" in found and "<td>exchange_cycles</td>" in found
    assert "<td>blocks</td>" not in found
    assert repr(FRAMES.steps).startswith("<function frames.steps at")


def test_numbers_missing_from_a_table_stay_missing() -> None:
    balances = FRAMES.steps()["thread_balance"]
    assert np.isnan(balances[0])


@pytest.mark.parametrize("jedi", [False, True])
def test_tables_complete_in_a_notebook(jedi: bool) -> None:
    pytest.importorskip("IPython")
    from IPython.core.completer import IPCompleter, provisionalcompleter

    completer = IPCompleter(namespace={"report": Report.of(small_report())}, use_jedi=jedi)
    with provisionalcompleter():
        found = [c.text.lstrip(".") for c in completer.completions("report.frames.pro", 17)]
    assert {"programs", "program_children", "provenance"} <= set(found)
