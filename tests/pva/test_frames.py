"""Every table and array comes as a DataFrame that says what the report says."""

from typing import Any

import numpy as np
import pytest

from pva import schema
from pva.errors import NotRecordedError
from pva.frames import DTYPES, Frames
from tests.builders import TILES, small_report

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


def test_the_schema_lists_every_column_and_what_was_recorded() -> None:
    frame = Frames(small_report().select("graph")).schema()
    assert len(frame) == sum(len(t.columns) for t in schema.TABLES) + len(schema.ARRAYS)
    recorded = frame.groupby("name")["recorded"].first()
    assert (recorded["programs"], recorded["steps"]) == (True, False)
    row: Any = frame[(frame["name"] == "runs") & (frame["column"] == "cycles")].iloc[0]
    assert (row["dtype"], row["unit"]) == ("int64", "cycles")


def test_what_was_not_recorded_names_its_option() -> None:
    with pytest.raises(NotRecordedError, match="autoReport.outputExecutionProfile"):
        Frames(small_report().select("graph")).steps()


def test_a_frame_that_does_not_exist_is_an_attribute_error() -> None:
    assert not hasattr(FRAMES, "foo")
    assert {"programs", "exchange_cycles"} <= set(dir(FRAMES))


def test_numbers_missing_from_a_table_stay_missing() -> None:
    balances = FRAMES.steps()["thread_balance"]
    assert np.isnan(balances[0])
