"""Datasets: columns by name, in declared types, checked as they are made and read."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pva.data.dataset import Dataset
from pva.errors import InconsistentDataError, NotRecordedError
from tests.builders import small_report


def test_columns_come_in_their_declared_types() -> None:
    data = small_report()
    dtypes = [data.column("programs", name).dtype for name in ("type", "name", "count")]
    assert dtypes == [np.int64, np.object_, np.int64]
    assert data.column("steps", "tile_balance").dtype == np.float64


def test_columns_and_arrays_cannot_be_changed() -> None:
    data = small_report()
    for values in (data.column("programs", "count"), data.array("exchange_cycles")):
        with pytest.raises(ValueError, match="read-only"):
            values[0] = 1


@pytest.mark.parametrize(
    "read",
    [
        lambda data: data.column("steps", "type"),
        lambda data: data.stored("steps", "type"),
        lambda data: data.rows_where("steps", "program", 1),
    ],
)
def test_what_was_not_recorded_is_told_by_one_error_alone(read: Callable[[Dataset], Any]) -> None:
    with pytest.raises(NotRecordedError) as caught:
        read(small_report(steps=None))
    assert caught.value.__context__ is None


def test_a_column_that_is_passed_over_is_read_anew_and_a_stored_one_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = small_report()
    read, reads = data.source.column, []

    def counting(table: str, column: str, spend: Any) -> Any:
        reads.append(column)
        return read(table, column, spend)

    monkeypatch.setattr(data.source, "column", counting)
    first, again = (data.passed("steps", "cycles_to")[:3].tolist() for _ in range(2))
    assert first == again == [36, 43, 92]
    assert len(reads) == 2
    assert data.stored("steps", "cycles_to")[-1] == data.passed("steps", "cycles_to")[-1] == 1024
    assert len(reads) == 3


def test_chosen_rows_of_an_array_come_in_their_declared_type_and_order() -> None:
    data = small_report()
    rows = data.chosen("compute_set_cycles_by_tile", np.array([1, 0, 1]))
    assert rows.dtype == np.int64
    assert rows.tolist() == data.array("compute_set_cycles_by_tile")[[1, 0, 1]].tolist()


@pytest.mark.parametrize("tiles", [1, np.array([1, 0, 1]), slice(1, None)])
def test_chosen_tiles_of_an_array_are_those_of_the_whole_in_its_declared_type(tiles: Any) -> None:
    few = small_report().on_tiles("memory_by_category", tiles)  # before the whole is widened
    assert few.dtype == np.int64 and not few.flags.writeable
    assert few.tolist() == small_report().array("memory_by_category")[..., tiles].tolist()


def test_numbers_of_rows_are_larger_than_the_type_of_the_file_and_found_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bytes_sent = np.array([[200, 100, 0, 255], [0, 0, 0, 0]], dtype=np.uint8)
    data = Dataset.of({}, {"exchange_bytes_sent": bytes_sent})
    assert data.row_sums("exchange_bytes_sent").tolist() == [555, 0]
    assert data.row_maxima("exchange_bytes_sent").tolist() == [255, 0]
    monkeypatch.setattr(data, "source", None)
    sums = data.row_sums("exchange_bytes_sent")
    assert sums.dtype == np.int64 and not sums.flags.writeable


def test_optional_columns_are_filled_in() -> None:
    data = Dataset.of({"programs": {"type": [0]}})
    assert data.value("programs", "compute_set") == -1
    assert data.value("programs", "name") == ""


@pytest.mark.parametrize(
    ("tables", "arrays", "text"),
    [
        ({"foo": {}}, {}, "no table foo is declared"),
        ({"graph": {"num_edges": [1]}}, {}, "graph lacks the column"),
        ({}, {"foo": [1]}, "no array foo is declared"),
        ({"programs": {"type": [99]}}, {}, r"programs.type: found 99; .* 0 to 21"),
        ({"programs": {"type": [0], "foo": [0]}}, {}, "programs has no column foo"),
        ({}, {"exchange_cycles": [1, 2]}, "array exchange_cycles is of shape"),
        ({}, {"memory_by_category": np.zeros((2, 3, 2, 1))}, "calls for"),
    ],
)
def test_what_does_not_fit_the_schema_is_refused(
    tables: dict[str, dict[str, list[int]]], arrays: dict[str, list[int]], text: str
) -> None:
    with pytest.raises(InconsistentDataError, match=text):
        Dataset.of(tables, arrays, name="some report")


def test_an_array_must_be_as_long_as_the_table_that_it_is_about() -> None:
    with pytest.raises(InconsistentDataError, match="compute_set_cycles_by_tile"):
        small_report(compute_set_cycles_by_tile=np.zeros((4, 10)))


def test_a_part_has_only_its_documents() -> None:
    graph = small_report().select("graph")
    assert (graph.has("programs"), graph.has("steps"), graph.has("tile_clock")) == (
        True,
        False,
        False,
    )
    with pytest.raises(NotRecordedError):
        graph.column("steps", "cycles")


def test_parts_join_to_the_whole() -> None:
    whole = small_report()
    parts = [whole.select(name) for name in ("graph", "execution", "debug")]
    assert Dataset.joined(parts) == whole


def test_one_figure_makes_two_datasets_unequal() -> None:
    assert small_report() == small_report()
    assert small_report() != small_report(liveness={"max_bytes": [1]})
    assert small_report() != small_report(liveness=None)


def test_rows_are_found_by_value_in_order() -> None:
    data = small_report()
    assert data.rows_where("program_children", "program", 4).tolist() == [8, 9, 10]
    assert data.rows_where("program_children", "program", 13).tolist() == []
