"""What reading a file may take is counted: what is held makes way, too much is refused."""

import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from pva import openReport
from pva.data.sources import Room
from pva.errors import DamagedFileError
from pva.formats import parquet, registry
from pva.formats.database import pop
from pva.formats.database.chunks import chunks_of
from tests.builders import small_report
from tests.fuzz.bombs import KINDS, in_place

NUMBERS = np.arange(1200)


@pytest.fixture
def many_chunks(tmp_path: Path) -> Path:
    """Write a report with an array of a chunk a row, every seventh packed."""
    path = tmp_path / "report.pop"
    registry.write(small_report(tile_clock=None), path)
    with closing(sqlite3.connect(path)) as database, database:
        for number in NUMBERS.tolist():
            row = np.zeros((1, 10), int) if number % 7 == 0 else np.arange(10)[None] * number
            chunk = chunks_of("tile_clock", row, number)
            database.executemany("INSERT INTO arrays VALUES (?, ?, ?, ?, ?, ?, ?, ?)", chunk)
    return path


def test_what_is_held_makes_way_for_what_is_read() -> None:
    room = Room(100, "file")
    held = room.keep(1.0)
    held.hold("old", NUMBERS[:3], 30)
    held.hold("new", NUMBERS[:5], 50)
    with room.spending() as spend:
        spend(40, "array")
        assert list(held) == ["new"]
        with pytest.raises(DamagedFileError, match="other: 61 bytes; at most 60 more"):
            spend(61, "other")
    room.check(50, "array")
    assert list(held) == ["new"]


def test_the_largest_is_let_go_first_where_it_can_be_read_again() -> None:
    room = Room(1000, "file")
    columns, arrays = room.keep(1.0), room.keep(1.0)
    columns.hold("small", NUMBERS[:3].copy(), 30)
    arrays.hold("large", NUMBERS[:5].copy(), 50)
    columns.hold("middle", NUMBERS[:4].copy(), 40)
    assert (room.held, room.largest) == (120, 50)
    room.let_go_of_largest()
    assert (list(columns), list(arrays), room.held) == (["small", "middle"], [], 70)
    room.let_go_of_largest()
    assert (list(columns), room.held, room.largest) == (["small"], 30, 30)
    arrays.hold("empty", NUMBERS[:0], 0)
    room.let_go_of_largest()
    room.let_go_of_largest()  # what takes nothing stays
    assert (list(columns), list(arrays), room.held) == ([], ["empty"], 0)


def test_what_two_places_share_is_counted_once_and_let_go_of_in_both() -> None:
    room = Room(1000, "file")
    stored, wide = room.keep(1.0), room.keep(1.0)
    stored.hold("shared", NUMBERS[:5], 50)
    wide.hold("shared", NUMBERS[:5].view(), 50)
    wide.hold("own", NUMBERS[:4].copy(), 40)
    assert room.held == 90
    room.let_go_of_largest()
    assert (list(stored), list(wide), room.held) == ([], ["own"], 40)


@pytest.mark.parametrize("format", [pop, parquet])
def test_a_table_that_is_too_large_may_be_read_by_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: object
) -> None:
    path = tmp_path / ("report.pop" if format is pop else "tables")
    registry.write(small_report(), path, "pop" if format is pop else "parquet")
    monkeypatch.setattr(format, "reading_limit", lambda _: 24 * 14 * 8 - 1)  # 24 steps, 14 columns
    data = openReport(path).dataset
    assert len(data.column("steps", "cycles")) == 24
    with pytest.raises(DamagedFileError, match="table steps: 2688 bytes; at most 2687 more"):
        data.table("steps")


def test_texts_are_counted_over_all_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "report.pop"
    in_place("debug_contexts", "i + 1000000", bytes_each=1)(path, 1000)
    monkeypatch.setattr(pop, "reading_limit", lambda _: 200_000)
    data = openReport(path).dataset
    assert data.column("debug_contexts", "name")[-1] == "1001000"
    with pytest.raises(DamagedFileError, match="table debug_contexts, column .*: .* more"):
        data.table("debug_contexts")


def test_a_text_told_often_is_held_once(tmp_path: Path) -> None:
    path = tmp_path / "report.pop"
    in_place("compute_sets", "'a text'", bytes_each=1)(path, 1000)
    names = openReport(path).dataset.source.column("compute_sets", "name", lambda *_: None)
    assert len(names) == 1003 and len(set(map(id, names[3:]))) == 1


def test_chunks_of_a_row_each_are_read_as_one_array(many_chunks: Path) -> None:
    data = openReport(many_chunks).dataset
    expected = np.where(NUMBERS % 7 == 0, 0, NUMBERS)[:, None] * np.arange(10)
    assert (data.array("tile_clock") == expected).all()
    assert (data.rows("tile_clock", 499, 1003) == expected[499:1003]).all()
    assert data.rows("tile_clock", 5, 5).shape == (0, 10)
    assert (data.rows("tile_clock", -2, None) == expected[-2:]).all()


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ("crc32 = crc32 + 1", "rows from 700: checksum"),
        ("data = zeroblob(300)", "rows from 700: checksum"),
        ("first_row = 699", "chunk at row 699"),
        ("rows = 'x'", "'x' rows"),
        ("shape = '[1, 9]'", r"shape '\[1, 9\]'"),
        ("dtype = 'i2'", "'i2'"),
        ("encoding = 'gzip'", "'gzip'"),
    ],
)
def test_the_one_chunk_of_many_that_is_wrong_is_named(
    many_chunks: Path, change: str, found: str
) -> None:
    with closing(sqlite3.connect(many_chunks)) as database, database:
        where = "name = 'tile_clock' AND first_row = 700"
        database.execute(f"UPDATE arrays SET {change} WHERE {where}")
    with pytest.raises(DamagedFileError, match=f"arrays, tile_clock.*{found}"):
        openReport(many_chunks).dataset.array("tile_clock")


def test_a_long_list_of_tables_is_refused_before_sqlite_reads_it(tmp_path: Path) -> None:
    KINDS["tables.pop"](tmp_path / "report.pop", 1 << 20)
    with pytest.raises(DamagedFileError, match="a list of tables of more than 64 pages"):
        openReport(tmp_path / "report.pop")
