"""A report without one of its parts opens; whoever asks for the part is told which and why.

Each table and array is left out in turn of a report that has all of them; the rest is walked, with
the analyses that ask for the part: the others answer as before (`tests.analysis.reads`).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from cli.main import tilescope
from pva import schema
from pva.analysis import CATALOGUE
from pva.errors import NotRecordedError
from pva.formats import registry
from pva.report import Report, openReport
from tests.analysis.reads import parts_read
from tests.builders import small_report
from tests.fuzz.walk import walk

PARTS = [*schema.TABLE, *schema.ARRAY]
OPTION = {item.name: item.option for item in (*schema.TABLES, *schema.ARRAYS)}
every_part = pytest.mark.parametrize("part", PARTS)


@pytest.fixture
def file_without(tmp_path: Path) -> Callable[[str], Path]:
    """Write the small report without a part."""

    def write(part: str) -> Path:
        path = tmp_path / "report.pop"
        registry.write(small_report(**{part: None}), path)
        return path

    return write


@every_part
def test_all_else_is_there_and_nothing_else_is_raised(
    part: str, file_without: Callable[[str], Path]
) -> None:
    readers = [name for name in CATALOGUE if part in parts_read(name)]
    found = walk(file_without(part), analyses=readers)
    assert found.opened
    assert found.faults == []
    missing = [message for message in found.messages if " not recorded" in message]
    assert missing and all(part in message for message in missing)


@every_part
def test_the_frame_of_a_missing_part_names_it_and_what_records_it(part: str) -> None:
    frames = Report.of(small_report(**{part: None})).frames
    with pytest.raises(NotRecordedError) as caught:
        getattr(frames, part)()
    assert f"{part} not recorded" in str(caught.value)
    assert OPTION[part] in str(caught.value)


@every_part
@pytest.mark.parametrize("command", ["summary", "info", "check"])
def test_the_command_line_has_an_answer_without_any_part(
    part: str, command: str, file_without: Callable[[str], Path]
) -> None:
    done = CliRunner().invoke(tilescope, [command, str(file_without(part))])
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize("part", ["target", "steps", "variable_pieces", "exchange_cycles"])
def test_an_analysis_on_the_command_line_names_the_missing_part(
    part: str, file_without: Callable[[str], Path]
) -> None:
    path = file_without(part)
    name = next(name for name in CATALOGUE if _lacks(openReport(path), name, part))
    done = CliRunner().invoke(tilescope, ["show", name, str(path)])
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert f"{part} not recorded" in done.stderr
    assert OPTION[part] in done.stderr


def _lacks(report: Report, name: str, part: str) -> bool:
    """Return whether an analysis that needs no more than the report asks for the part."""
    analysis: Any = CATALOGUE[name]
    try:
        analysis(report)
    except NotRecordedError as error:
        return f"{part} not recorded" in str(error)
    except (AttributeError, TypeError):  # of a trace, or with an option that must be given
        return False
    return False
