"""Two writers of one place, as the jobs of a CI system may be: each file is whole."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pva.data.dataset import Dataset
from pva.errors import PvaError
from pva.formats import registry
from pva.formats.database.pop import ReportWriter
from pva.formats.files import replacing
from pva.report import openReport
from tests.builders import small_report


@pytest.mark.parametrize("form", ["pop", "parquet"])
def test_report_that_another_writes_meanwhile_is_whole(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if form == "parquet":
        pytest.importorskip("pyarrow")
    out, names = tmp_path / f"out.{form}", Dataset.tables.fget

    def tables(self: Dataset) -> tuple[str, ...]:
        monkeypatch.undo()  # the other writer is not disturbed
        registry.write(small_report(), out)
        return names(self)

    monkeypatch.setattr(Dataset, "tables", property(tables))
    registry.write(small_report(), out)
    assert openReport(out).check()["holds"].all()
    assert list(tmp_path.iterdir()) == [out]


def test_file_that_another_writes_meanwhile_is_of_one_writer(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    with replacing(out, "a text") as first:
        first.write(b"first")
        with replacing(out, "a text") as second:
            second.write(b"2nd")
        assert out.read_bytes() == b"2nd"
        first.write(b" and more")
    assert out.read_bytes() == b"first and more"
    assert list(tmp_path.iterdir()) == [out]


def test_tables_that_cannot_be_put_in_place_leave_those_that_were_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyarrow")
    out, replace = tmp_path / "out.parquet", os.replace
    registry.write(small_report(), out)

    def refused(source: Path, target: Path) -> None:
        if source.suffix == ".part":
            raise PermissionError(13, "Permission denied")
        replace(source, target)

    monkeypatch.setattr(os, "replace", refused)
    with pytest.raises(PvaError, match="Permission denied"):
        registry.write(small_report(), out)
    assert openReport(out).check()["holds"].all()
    assert list(tmp_path.iterdir()) == [out]


def test_a_journal_without_its_database_is_kept(tmp_path: Path) -> None:
    (tmp_path / "x.pop-journal").write_text("mine")
    with pytest.raises(PvaError, match="x.pop-journal: there without its database; move it away"):
        registry.write(small_report(), tmp_path / "x.pop")
    assert [file.read_text() for file in tmp_path.iterdir()] == ["mine"]


@pytest.mark.parametrize("name", ["x.pop", "x.json", "x.parquet"])
def test_place_that_cannot_be_written_to_is_named_as_it_was_given(
    name: str, tmp_path: Path
) -> None:
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    out = tmp_path / "none" / name
    with pytest.raises(PvaError) as raised:
        registry.write(small_report(), out)
    assert str(raised.value).startswith(f"{out}: No such file or directory; a place where ")


def test_report_that_another_program_replaces_while_it_is_written_is_told(tmp_path: Path) -> None:
    writer = ReportWriter(tmp_path / "profile.pop", small_report())
    ReportWriter(tmp_path / "profile.pop", small_report()).close()
    with pytest.raises(PvaError, match="replaced while it was written; give each program a dir"):
        writer.append_run({"runs": small_report().table("runs")})
    writer.close()
    assert openReport(tmp_path / "profile.pop").check()["holds"].all()
