"""The same number on all faces: what the browser shows is what command line and notebook give."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import serving
from tests.browser.names import Opener
from tests.builders import write_report
from tests.faces.test_same_numbers import FIGURES, REPORTS, SAMPLES, Faces

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

# What headlines show beside `Figure.pages`; the programs of a long tree are named by their share.
MORE = {"insights": ("bytes of the worst tile", "worst tile"), "programs": ("cycles",)}


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    made = write_report(tmp_path_factory.mktemp("reports") / "hand-made")
    return {name: made if name == made.name else SAMPLES / name for name in REPORTS}


@pytest.fixture(scope="module")
def address(paths: dict[str, Path]) -> Iterator[str]:
    with serving(*paths.values()) as url:
        yield url


def figures_by_page() -> dict[str, set[tuple[str, str]]]:
    """Give (label of a card or "" for the headline, figure) by page."""
    found = {page: {("", name) for name in names} for page, names in MORE.items()}
    for name, figure in FIGURES.items():
        for page, label in figure.pages:
            found.setdefault(page, set()).add((label, name))
    return found


@pytest.mark.parametrize("report", REPORTS)
def test_pages_show_the_numbers_of_command_line_and_notebook(
    open_page: Opener, paths: dict[str, Path], report: str
) -> None:
    faces = Faces(paths[report])
    for name, wanted in figures_by_page().items():
        page = open_page(f"/{name}?report={report}")
        for label, key in sorted(wanted):
            figure = FIGURES[key]
            assert figure.show
            words = {
                figure.words(figure.frames(faces.report.frames)),
                figure.words(figure.show[1](faces.rows("show", figure.show[0], str(faces.path)))),
            }
            heads = page.get_by_text(re.compile(f"^{label}"))  # "All tiles" also "of a replica"
            card = page.locator(".card").filter(has=heads)
            place = card.first if label else page.locator(".headlines").first
            for each in words:
                expect(place).to_contain_text(each)
        page.close()
