"""What a report that cannot be written leaves, and what is said of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pva.errors import DamagedFileError, PvaError
from pva.formats import registry
from pvti import schema
from tests.builders import small_report


@pytest.fixture()
def disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let SQLite find the disk full after five pages of a file."""
    pragmas = (*schema.WRITER_PRAGMAS, "PRAGMA max_page_count = 5")
    monkeypatch.setattr(schema, "WRITER_PRAGMAS", pragmas)


@pytest.mark.usefixtures("disk")
def test_a_report_that_finds_no_room_says_so_and_leaves_no_empty_report(tmp_path: Path) -> None:
    with pytest.raises(PvaError, match="disk is full; a place with room for a report") as told:
        registry.ReportWriter(tmp_path / "profile.pop", small_report())
    assert not isinstance(told.value, DamagedFileError)
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_is_no_file_is_told_as_one_to_write(tmp_path: Path) -> None:
    (tmp_path / "profile.pop").mkdir()
    with pytest.raises(PvaError, match="a place where a report .* can be written"):
        registry.ReportWriter(tmp_path / "profile.pop", small_report())
