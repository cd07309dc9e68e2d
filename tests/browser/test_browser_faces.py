"""The same number on all faces: what the browser shows is what command line and notebook give."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from pva import units
from tests.browser.conftest import serving
from tests.browser.names import Opener
from tests.builders import write_report
from tests.faces.test_same_numbers import FIGURES, REPORTS, SAMPLES, Faces

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

# What headlines show beside `Figure.pages`; the programs of a long tree are named by their share.
MORE = {"insights": ("bytes of the worst tile", "worst tile"), "programs": ("cycles",)}
# Figures in tables: the table, its rows by how they begin, and the column.
COMPARED = {
    "Fullest tile": "bytes of the worst tile",
    "All tiles": "total bytes",
    "Always live": "always-live bytes",
    "Live at the peak": "peak bytes",
    "Recorded runs": "runs",
    "Executed steps": "executed steps",
    "Cycles": "cycles",
    "Tiles computing": "balance",
}
OPERATIONS = {"Cycles": "cycles", "Memory at the peak": "peak bytes"}
BEFORE, AFTER, WHOLE = 0, 1, 3
COUNTED = ("cycles", "runs")  # written in tables without their unit


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    made = write_report(tmp_path_factory.mktemp("reports") / "hand-made")
    return {name: made if name == made.name else SAMPLES / name for name in REPORTS}


@pytest.fixture(scope="module")
def all_faces(paths: dict[str, Path]) -> dict[str, Faces]:
    return {name: Faces(path) for name, path in paths.items()}


@pytest.fixture(scope="module")
def address(paths: dict[str, Path]) -> Iterator[str]:
    with serving(*paths.values()) as url:
        yield url


def figures_by_page() -> dict[str, set[tuple[str, str]]]:
    """Return (label of a card or "" for the headline, figure) by page."""
    found = {page: {("", name) for name in names} for page, names in MORE.items()}
    for name, figure in FIGURES.items():
        for page, label in figure.pages:
            found.setdefault(page, set()).add((label, name))
    return found


def words(faces: Faces, key: str, write: Callable[[float], str] | None = None) -> set[str]:
    """Write a figure as the notebook and the command line have it."""
    figure = FIGURES[key]
    assert figure.show
    name, take = figure.show
    found = (figure.frames(faces.report.frames), take(faces.rows("show", name, str(faces.path))))
    return {(write or figure.words)(value) for value in found}


def go_to(page: Any, name: str) -> None:
    """Follow the link of the menu to a page, which is quicker than to load it."""
    link = page.locator(f".nav-link[href^='/{name}?']")
    link.click()
    expect(link).to_have_class(re.compile("active"))


def rows_show(page: Any, table: str, rows: dict[str, str], column: int, faces: Faces) -> None:
    """Wait until a column of a table has the figures of a report."""
    for label, key in rows.items():
        row = page.locator(f"{table} tbody tr").filter(has_text=re.compile(f"^{label}"))
        for each in words(faces, key, units.count if key in COUNTED else None):
            expect(row.locator("td").nth(column)).to_have_text(each)


@pytest.mark.parametrize("report", REPORTS)
def test_pages_show_the_numbers_of_command_line_and_notebook(
    open_page: Opener, all_faces: dict[str, Faces], report: str
) -> None:
    faces, other = all_faces[report], REPORTS[REPORTS.index(report) - 1]
    page = open_page(f"/summary?report={report}&against={other}")
    for name, wanted in figures_by_page().items():
        go_to(page, name)
        for label, key in sorted(wanted):
            heads = page.get_by_text(re.compile(f"^{label}"))  # "All tiles" also "of a replica"
            card = page.locator(".card").filter(has=heads)
            place = card.first if label else page.locator(".headlines").first
            for each in words(faces, key):
                expect(place).to_contain_text(each)
    go_to(page, "operations")
    rows_show(page, "#operation-totals", OPERATIONS, WHOLE, faces)
    go_to(page, "compare")
    rows_show(page, "#compare-both", COMPARED, BEFORE, faces)
    rows_show(page, "#compare-both", COMPARED, AFTER, all_faces[other])
    go_to(page, "graph")
    page.get_by_role("tab", name="Compute sets").click()
    for each in words(faces, "compute sets"):
        expect(page.locator("#graph-nodes-note")).to_have_text(each)
