"""An exported file opened from disk, the network cut: its numbers, timelines, tables, themes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from cli.main import tilescope
from tests.browser.waiting import expect
from tests.builders import small_report, write_report

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

SAMPLE = Path(__file__).parents[2] / "sample_reports" / "mlp_digits_tiny"
OTHER = SAMPLE.with_name("matmul_chain_tiny")
HOSTILE = "<img src=x onerror=document.title='owned'><script>document.title='owned'</script>"
TIMELINE = "document.querySelector('.timeline').timeline"
PLOT = "document.querySelector('.exported-plot')"
OpenFile = Callable[..., Any]


def run(*arguments: object) -> str:
    result = CliRunner().invoke(tilescope, list(map(str, arguments)))
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Export a sample, and a report whose names are HTML."""
    folder = tmp_path_factory.mktemp("exported")
    programs = small_report().table("programs") | {"name": [HOSTILE] * 14}
    hostile = write_report(folder / "hostile", small_report(programs=programs))
    made = {name: folder / f"{name}.html" for name in ("sample", "hostile", "both")}
    run("export", SAMPLE, "-o", made["sample"])
    run("export", hostile, "-o", made["hostile"])
    run("export", SAMPLE, OTHER, "-o", made["both"])
    return made


@pytest.fixture
def open_file(contexts: dict[str, Any], files: dict[str, Path]) -> Iterator[OpenFile]:
    """Return a function that opens a page of a file; nothing may go wrong or be asked for."""
    wrong: list[str] = []
    pages: list[Any] = []

    def opened(name: str, place: str, *, theme: str = "light") -> Any:
        contexts[theme].set_offline(True)
        page = contexts[theme].new_page()
        pages.append(page)
        address = files[name].as_uri()
        page.on("console", lambda m: wrong.append(m.text) if m.type in {"error", "warning"} else 0)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on(
            "request", lambda r: None if r.url.partition("#")[0] == address else wrong.append(r.url)
        )
        page.goto(f"{address}#{place}")
        page.wait_for_selector("html[data-ready]")
        return page

    yield opened
    for page in pages:
        page.close()
    for context in contexts.values():
        context.set_offline(False)
    assert wrong == []


def until(page: Any, expression: str) -> None:
    """Wait until an expression holds; `wait_for_function` would break the policy of the file."""
    for _ in range(200):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"{expression} never held")


def column(page: Any, heading: str, title: str, rows: int) -> list[float]:
    """Read the numbers of the first rows of a column, in the section of a heading."""
    table = page.locator("main:visible .exported-table table").filter(
        has=page.locator("thead button", has_text=re.compile(f"^{heading}$"))
    )
    place = table.first.locator("thead button").all_inner_texts().index(title)
    cells = table.first.locator(f"tbody tr:not(.pinned) td:nth-child({place + 1})")
    expect(cells.first).to_be_visible()
    return [float(cells.nth(row).get_attribute("data-value")) for row in range(rows)]


def told(analysis: str, field: str, rows: int) -> list[float]:
    """Read the same of the command line."""
    lines = json.loads(run("show", analysis, SAMPLE, "--format", "json", "--limit", rows))
    return [line[field] for line in lines]


def test_twelve_numbers_are_those_of_the_command_line(open_file: OpenFile) -> None:
    page = open_file("sample", "/operations")
    assert column(page, "Operation", "Cycles", 3) == told("operation_costs", "cycles", 3)
    page.goto(page.url.replace("/operations", "/execution"))
    assert column(page, "Program", "Cycles", 3) == told("range_by_program", "cycles", 3)
    page.goto(page.url.replace("/execution", "/insights"))
    assert column(page, "Variable or category", "Bytes", 3) == told("live_at_peak", "bytes", 3)
    page.goto(page.url.replace("/insights", "/trace"))
    assert column(page, "Label", "Self", 3) == told("label_statistics", "self_ns", 3)


def test_the_timeline_zooms_finds_and_selects_without_a_server(open_file: OpenFile) -> None:
    page = open_file("sample", "/execution")
    until(page, "document.querySelector('.timeline').dataset.drawn > 0")
    steps = json.loads(run("show", "execution_overview", SAMPLE, "--format", "json"))["steps"]
    assert re.search(r"All [\d,]+ events are in this file", page.inner_text(".exported-limit"))
    page.fill(".timeline-search", "sync")
    found = page.locator(".timeline-found").first
    expect(found).to_have_text(re.compile(r"^[\d,]+$"))
    query = "select count(*) as n from steps where type = 'Sync'"
    syncs = json.loads(run("sql", SAMPLE, query, "--format", "json"))[0]["n"]
    assert int(found.inner_text().replace(",", "")) == syncs < steps
    page.press(".timeline-search", "Enter")
    expect(page.locator(".exported-selected h2")).to_have_text(re.compile(r"^Selected step \d+$"))
    expect(page.locator(".exported-selected .facts")).to_contain_text("Kind")
    assert "step=" in page.url
    begin, end = page.evaluate(f"[{TIMELINE}.view.begin, {TIMELINE}.view.end]")
    assert end - begin < page.evaluate(f"{TIMELINE}.layout.extent[1]") / 9
    expect(page.locator(".exported-range h2")).to_have_text("In view")


def test_each_of_two_reports_has_its_own_timeline(open_file: OpenFile) -> None:
    page = open_file("both", "/execution")
    shown = "document.querySelector('main:not([hidden]) .timeline')"
    extents = []
    for report in (SAMPLE, OTHER, SAMPLE):
        page.select_option(".exported-source", report.name)
        until(page, f"{shown}?.dataset.drawn > 0")
        page.wait_for_timeout(100)  # what a change of size would ask for
        extents.append(page.evaluate(f"{shown}.timeline.layout.extent[1]"))
        assert page.evaluate(f"{shown}.timeline.data.window[1]") == extents[-1]
    steps = [json.loads(run("show", "execution_overview", report, "--format", "json"))["cycles"]
             for report in (SAMPLE, OTHER)]  # fmt: skip
    assert extents == [steps[0], steps[1], steps[0]]


def test_tables_sort_and_filter(open_file: OpenFile) -> None:
    page = open_file("sample", "/operations")
    table = page.locator("main .exported-table").first
    cycles = table.locator("thead button", has_text="Cycles")
    cycles.click()
    largest = column(page, "Operation", "Cycles", 3)
    cycles.click()
    assert column(page, "Operation", "Cycles", 3) == sorted(column(page, "Operation", "Cycles", 3))
    assert largest == sorted(largest, reverse=True)
    table.locator(".exported-filter").fill("layer1")
    names = table.locator("tbody tr:not(.pinned) td:first-child").all_inner_texts()
    assert names and all("Layer1" in name for name in names)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_plots_follow_choice_and_theme(open_file: OpenFile, theme: str) -> None:
    page = open_file("sample", "/memory", theme=theme)
    plot = page.locator(".exported-plot[data-drawn=yes]")
    expect(plot).to_be_visible()
    inks = ["#1d232b", "#e8ebef"] if theme == "light" else ["#e8ebef", "#1d232b"]
    assert page.evaluate(f"{PLOT}.layout.font.color") == inks[0]
    page.get_by_role("button", name="Tile map").click()
    until(page, f"{PLOT}?.data?.[0].type === 'heatmap'")
    assert "graph=map" in page.url
    page.get_by_role("button", name="Light or dark").click()
    until(page, f"{PLOT}?.layout?.font.color === '{inks[1]}'")


def test_paper_has_every_page(open_file: OpenFile) -> None:
    page = open_file("sample", "/summary")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    expect(page.locator("main:visible")).to_have_count(7)
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    expect(page.locator("main:visible")).to_have_count(1)


def test_names_are_data(open_file: OpenFile) -> None:
    page = open_file("hostile", "/execution")
    expect(page.locator("main:visible")).to_contain_text("<script>document.title")
    for place in ("/summary", "/liveness", "/operations"):
        page.goto(page.url.partition("#")[0] + f"#{place}")
        expect(page.locator("main:visible h1")).to_be_visible()
    assert page.locator("main img, main script").count() == 0
    assert "owned" not in page.title()
