"""Every command prints what its golden file holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.main import DECLARED
from tests.cli.golden_calls import CALLS, GOLDEN, answers, inputs

ELSEWHERE = {"summary"}  # its golden files are in tests/summary, one for each report and option


def test_every_command_has_a_golden_file() -> None:
    assert {declared.name for declared in DECLARED} - ELSEWHERE == set(CALLS)
    assert {file.stem for file in GOLDEN.glob("*.txt")} == set(CALLS)


@pytest.mark.parametrize("command", CALLS)
def test_command_prints_what_its_golden_file_holds(command: str, tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    with inputs(tmp_path):
        found = answers(command)
    wanted = (GOLDEN / f"{command}.txt").read_text(encoding="utf-8")
    assert found == wanted, "python -m tests.cli.golden_calls writes it again"
