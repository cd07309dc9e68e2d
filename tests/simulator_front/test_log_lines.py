"""Log lines and the variables that ask for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from simulator.graph.errors import PoplarError
from simulator.logging import log


def test_a_line_is_written_from_its_level_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("POPLAR_LOG_LEVEL", "INFO")
    log("PO", "ENGINE", "INFO", "compiled")
    log("PO", "ENGINE", "DEBUG", "details")
    log("PL", "POPLIN", "ERR", "not asked for")
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert " PO:ENGINE   " in lines[0]
    assert lines[0].endswith(" I: compiled")


def test_lines_can_go_to_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("POPLIBS_LOG_LEVEL", "TRACE")
    monkeypatch.setenv("POPLIBS_LOG_DEST", str(tmp_path / "log"))
    for text in ("one", "two"):
        log("PL", "POPLIN", "TRACE", text)
    assert [line[-1:] for line in (tmp_path / "log").read_text().split()[4::5]] == ["e", "o"]


def test_an_unknown_level_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POPLAR_LOG_LEVEL", "LOUD")
    with pytest.raises(PoplarError, match="POPLAR_LOG_LEVEL is 'LOUD'; it must be one of OFF"):
        log("PO", "ENGINE", "ERR", "text")


def test_a_destination_that_cannot_be_written_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("POPLAR_LOG_LEVEL", "INFO")
    monkeypatch.setenv("POPLAR_LOG_DEST", str(tmp_path / "missing" / "log"))
    with pytest.raises(PoplarError, match="POPLAR_LOG_DEST: cannot write .*log: No such file"):
        log("PO", "ENGINE", "INFO", "text")
