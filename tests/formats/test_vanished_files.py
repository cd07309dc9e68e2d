"""Files that go away, or become something else, while they are opened."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pva.errors import PvaError, UnknownFormatError
from pva.formats import parquet, registry
from pva.formats.database import sqlite_outside
from pva.formats.traces import pvti_trace
from pva.plain_file import contents
from pva.trace import openTrace
from tests.builders import small_report
from tests.fuzz.seeds import write_trace


def removed_after(function: Callable[..., Any], path: Path) -> Callable[..., Any]:
    """Let a function remove a file when it has done its work."""

    def call(*given: Any) -> Any:
        made = function(*given)
        path.unlink(missing_ok=True)
        return made

    return call


def test_trace_that_goes_away_while_it_is_opened_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.pvti"
    write_trace(path)
    opening = removed_after(pvti_trace.open_read_only, path)
    monkeypatch.setattr(pvti_trace, "open_read_only", opening)
    with pytest.raises(PvaError, match=r"a.pvti: No such file or directory; a host trace"):
        openTrace(path)


def test_table_that_goes_away_while_it_is_opened_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyarrow")
    registry.write(small_report(), tmp_path / "t.parquet")
    removing = removed_after(parquet._named, tmp_path / "t.parquet" / "target.parquet")
    monkeypatch.setattr(parquet, "_named", removing)
    with pytest.raises(PvaError, match=r"No such file or directory"):
        registry.read(tmp_path / "t.parquet")


def test_journal_whose_commit_has_ended_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "profile.pop"
    registry.write(small_report(), path)
    there = sqlite_outside._is_there
    journal = sqlite_outside.journal_of(path)
    monkeypatch.setattr(sqlite_outside, "_is_there", lambda p: p == journal or there(p))
    assert registry.read(path) == small_report()


def test_pipe_in_the_place_of_a_file_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.setattr(Path, "is_file", lambda path: True)  # it was one a moment ago
    for read in (registry.read, lambda path: contents(path, "a text")):
        with pytest.raises(UnknownFormatError, match="pipe: no file"):
            read(tmp_path / "pipe")
