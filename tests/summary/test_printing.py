"""`pva.printProfileSummary` and its two halves: streams, profiles, options, colours."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import pytest

import pva
from pva.errors import OptionError
from pva.formats import registry
from pva.summary import execution_summary, graph_summary, profile_summary
from tests.builders import small_report, write_report


class Terminal(io.StringIO):
    """A stream that ends on a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(tmp_path_factory.mktemp("reports") / "run")


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CLICOLOR", "CLICOLOR_FORCE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")


def printed(function: Any, *arguments: Any, stream: io.StringIO | None = None) -> str:
    stream = stream or io.StringIO()
    function(stream, *arguments)
    return stream.getvalue()


def test_a_report_is_printed_whole_or_by_halves(run: Path) -> None:
    report = pva.openReport(run)
    assert printed(pva.printProfileSummary, run) == profile_summary(report)
    assert printed(pva.printProfileSummary, report) == profile_summary(report)
    assert printed(pva.printGraphSummary, run) == graph_summary(report)
    assert printed(pva.printExecutionSummary, run) == execution_summary(report)


def test_values_of_documents_are_printed_as_their_files(run: Path) -> None:
    data = small_report()
    graph, execution = (registry.value_of(data, name) for name in ("graph", "execution"))
    options = {"showVarStorage": "true", "showExecutionSteps": "true"}
    whole = printed(pva.printProfileSummary, graph, execution, options)
    assert whole == printed(pva.printProfileSummary, run, None, options)
    assert printed(pva.printExecutionSummary, graph, execution) in whole + "\n"
    assert printed(pva.printProfileSummary, {"graphProfile": graph, "executionProfile": execution})


@pytest.mark.parametrize("execution", [None, {}, {"profilerMode": "NONE"}, {"profilerMode": "CPU"}])
def test_no_execution_profile_is_said_in_one_line(execution: Any) -> None:
    graph = registry.value_of(small_report(), "graph")
    text = printed(pva.printProfileSummary, graph, execution, {"showExecutionSteps": True})
    assert text == printed(pva.printGraphSummary, graph) + "\nExecution profiling not enabled\n"


def test_options_of_the_other_half_change_nothing(run: Path) -> None:
    options = {"showExecutionSteps": "true", "showVarStorage": "false"}
    assert printed(pva.printGraphSummary, run, options) == printed(pva.printGraphSummary, run)


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"showSteps": "true"}, "no option 'showSteps'; known are showVarStorage, "),
        ({"colours": "yes"}, "colours is 'yes'; it must be true or false"),
    ],
)
def test_an_option_that_is_wrong_is_refused(run: Path, options: Any, fault: str) -> None:
    stream = io.StringIO()
    with pytest.raises(OptionError, match=re.escape(f"profile summary: {fault}")):
        pva.printProfileSummary(stream, run, options=options)
    assert stream.getvalue() == ""


def test_a_report_has_no_second_profile(run: Path) -> None:
    with pytest.raises(OptionError, match="a report and a profile; a report holds both"):
        pva.printProfileSummary(io.StringIO(), pva.openReport(run), run)


def test_without_a_stream_it_is_printed_to_stdout(run: Path, capsys: Any) -> None:
    pva.printGraphSummary(None, run)
    assert capsys.readouterr().out == printed(pva.printGraphSummary, run)


@pytest.mark.parametrize(
    ("environment", "option", "stream", "coloured"),
    [
        ({}, None, io.StringIO, False),
        ({}, None, Terminal, True),
        ({"TERM": "dumb"}, None, Terminal, False),
        ({}, "false", Terminal, False),
        ({}, "true", io.StringIO, True),
        ({"CLICOLOR": "0"}, "true", Terminal, False),
        ({"CLICOLOR": "0", "CLICOLOR_FORCE": "1"}, "false", io.StringIO, True),
    ],
)
def test_colours_follow_the_precedence_of_the_guide(
    environment: dict[str, str],
    option: str | None,
    stream: type[io.StringIO],
    coloured: bool,
    run: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    options = {} if option is None else {"colours": option}
    text = printed(pva.printGraphSummary, run, options, stream=stream())
    assert ("\x1b[" in text) is coloured
    assert re.sub(r"\x1b\[[\d;]*m", "", text) == graph_summary(pva.openReport(run))


def test_whatever_can_write_is_a_stream(run: Path) -> None:
    parts: list[str] = []

    class Tee:
        def write(self, text: str) -> None:
            parts.append(text)

    pva.printProfileSummary(Tee(), run)  # type: ignore[arg-type]
    assert "".join(parts) == printed(pva.printProfileSummary, run)


def test_a_path_in_place_of_the_stream_is_refused_in_one_line(run: Path) -> None:
    with pytest.raises(TypeError, match="the stream is 'out.txt'; give one with a method write"):
        pva.printProfileSummary("out.txt", run)  # type: ignore[arg-type]
