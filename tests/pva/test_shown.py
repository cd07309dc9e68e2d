"""Each object has a short line in a terminal and a small table in a notebook."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import pva
from pva.model.host_trace.series import Heatmap, Instants, Series
from pva.model.views import Items
from pva.report import Report
from tests.builders import small_report
from tests.pva.test_libpva_names import OBJECTS, TRACE

HOSTILE = ["<script>alert(1)</script>", "poplin::Reduce<float,float>", 'a"b&amp;'] + ["x"] * 4


@pytest.fixture(scope="module")
def report() -> Report:
    return Report.of(small_report())


def cells(html: str) -> list[list[str]]:
    """Read the texts of a table, row by row; anything but a table is refused."""
    rows: list[list[str]] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: Any) -> None:
            assert tag in ("table", "tr", "th", "td")
            if tag == "tr":
                rows.append([])
            elif tag != "table":
                rows[-1].append("")

        def handle_data(self, data: str) -> None:
            rows[-1][-1] += data

    Reader().feed(html)
    return rows


# A report shows more of itself: tests/pva/test_plots.py.
@pytest.mark.parametrize("kind", [kind for kind in OBJECTS if kind != "Report"])
def test_an_object_is_one_short_line_and_one_small_table(report: Report, kind: str) -> None:
    found = OBJECTS[kind](report)
    if kind == "Interval":
        assert repr(found) == "Interval(start=2, end=10)"
        return
    line, table = repr(found), cells(found._repr_html_())
    assert line.startswith(f"<{type(found).__name__}")
    assert len(line) < 160
    assert len(table) == 2
    assert len({len(row) for row in table}) == 1


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        ("Report", "<Report report: IPUs 2, tiles 10, runs 2>"),
        ("Target", "<Target: type IpuModel, architecture Unknown, numIPUs 2, numTiles 10>"),
        ("Tile", "<Tile 0: bytes 1,040>"),
        ("ComputeSet", "<ComputeSet 0 'multiply': vertexTypes 1>"),
        ("DoExchangeProgram",
         "<DoExchangeProgram 5 'multiply/ExchangePre': type DoExchange, children 0>"),
        ("VariableSize", "<VariableSize 'controlCode': size 648>"),
        ("Operation", "<Operation 1 'x': programs 1, firstStepIndex 2, lastStepIndex 2>"),
        ("DebugContext", "<DebugContext 1 'x': id 2, file 'model.py', line 11>"),
        ("Run", "<Run 0 'main': steps 12, cycles 512>"),
        ("ExecutionReport", "<ExecutionReport: runs 2, steps 24, cycles 1,024>"),
    ],
)  # fmt: skip
def test_a_line_has_name_and_figures(report: Report, kind: str, line: str) -> None:
    assert repr(OBJECTS[kind](report)) == line


def test_names_are_shown_as_they_are_and_are_not_html() -> None:
    variables = small_report().table("variables") | {"name": HOSTILE}
    report = Report.of(small_report(variables=variables))
    lowered = report.compilation.loweredVariables.forTile(0)
    assert isinstance(lowered, Items)
    html = lowered._repr_html_()
    assert "<script>" not in html
    assert [row[0] for row in cells(html)[1:4]] == [
        f"{place} {name!r}" for place, name in zip((0, 10, 20), HOSTILE, strict=False)
    ]


def test_a_list_in_a_notebook_is_a_table_that_says_how_many_more(report: Report) -> None:
    table = cells(report.compilation.programs._repr_html_())
    assert (len(table), table[0], table[-1]) == (12, ["", "type", "children"], ["… and 4 more"])
    assert table[6] == ["5 'multiply/ExchangePre'", "DoExchange", "0"]
    assert cells(report.compilation.programs[:0]._repr_html_()) == [["none"]]


def test_what_was_not_recorded_is_left_out() -> None:
    report = Report.of(small_report().select("execution"))
    assert repr(report) == "<Report report: runs 2>"
    assert repr(report.compilation) == "<CompilationReport: programs 0, computeSets 0>"


def test_a_long_name_is_cut() -> None:
    names = small_report().table("programs") | {"name": ["long" * 100] * 14}
    program = Report.of(small_report(programs=names)).compilation.programs[3]
    assert len(repr(program)) < 120


def test_objects_of_a_trace_are_shown_too() -> None:
    trace = pva.openTrace(TRACE)
    thread = trace.processes[0].threads[0]
    assert repr(trace) == f"<Trace {TRACE.name}: processes 1>"
    assert repr(thread) == f"<Thread {thread.tid} {thread.name!r}: events {len(thread.events)}>"
    assert repr(thread.events[0]).startswith(f"<Event {thread.events[0].label!r}: channel ")
    for item in (trace, trace.processes[0], thread, thread.events[0], thread.events):
        assert len(cells(item._repr_html_())) >= 2


def test_what_a_trace_holds_beside_events_is_a_line_each() -> None:
    numbers = np.arange(3)
    series = Series("Loss", "nats", "train", numbers, numbers / 2)
    assert repr(series) == "<Series 'train': graph 'Loss', unit 'nats', values 3>"
    heatmap = Heatmap("weights", "", numbers / 2, numbers, np.zeros((3, 2), "u8"), numbers, numbers)
    assert repr(heatmap) == "<Heatmap 'weights': unit '', edges 3, times 3>"
    assert repr(Instants(numbers, numbers, numbers, numbers, None)) == "<Instants: instants 3>"
    assert cells(series._repr_html_())[1] == ["'train'", "'Loss'", "'nats'", "3"]


def test_a_dataset_tells_what_it_holds() -> None:
    data = small_report()
    line = f"<Dataset report: {len(data.tables)} tables, {len(data.arrays)} arrays>"
    assert repr(data) == line


def test_a_notebook_shows_the_users_line_of_an_error_and_one_line_for_the_rest(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from IPython.core.interactiveshell import InteractiveShell

    monkeypatch.delenv("VIRTUAL_ENV", raising=False)  # of another one IPython warns
    shell = InteractiveShell()
    shell.run_cell("import pva\ndef opened(path):\n    return pva.openReport(path)\n")
    shell.run_cell("opened('no/report')")
    shown = capsys.readouterr().out
    assert "return pva.openReport(path)" in shown
    assert shown.splitlines()[-1].startswith("NotFoundError: no/report: no such file or directory")
    assert "formats/registry.py" not in shown and "InteractiveShell" not in shown
