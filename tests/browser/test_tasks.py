"""Tasks of a user on real reports: so many clicks at most, and what the screen then holds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import HEIGHT, WIDTH, serving
from tests.browser.names import Opener
from tests.browser.reports import ROOT
from tests.browser.waiting import settled

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]


@pytest.fixture
def pipeline(contexts: dict[str, Any]) -> Iterator[Any]:
    """Open the summary of a pipeline over two IPUs."""
    with serving(ROOT / "sample_reports" / "newton_pipeline_replicas") as url:
        page = contexts["light"].new_page()
        page.set_viewport_size({"width": WIDTH, "height": HEIGHT})
        page.goto(f"{url}/summary")
        yield page
        page.close()


class Clicks:
    """A page on which clicks are counted."""

    def __init__(self, page: Any, most: int) -> None:
        self.page, self._left = settled(page), most

    def on(self, place: Any) -> None:
        """Click, where there are clicks left."""
        assert self._left > 0
        self._left -= 1
        place.click()
        settled(self.page)

    def menu(self, words: str) -> None:
        """Click an entry of the menu."""
        self.on(self.page.locator("#navigation").get_by_role("link", name=words, exact=True))


def test_why_is_an_ipu_idle(pipeline: Any) -> None:
    clicks = Clicks(pipeline, 1)
    clicks.menu("Execution")
    reasons = clicks.page.locator("#execution-reasons")
    expect(reasons).to_contain_text(re.compile(r"IPU 0 computes [\d.]+\s% of the time"))
    expect(reasons).to_contain_text("It waits for IPU 1 most, which runs Newton/LargestChange.")


def test_where_is_the_critical_path(pipeline: Any) -> None:
    clicks = Clicks(pipeline, 1)
    clicks.menu("Execution")
    expect(clicks.page.locator("#execution-reasons")).to_contain_text(
        re.compile(r"The critical path goes through IPU 1 .* is longest in Newton/LargestChange")
    )


def test_does_it_fit_and_what_lacks_where(open_page: Opener) -> None:
    clicks = Clicks(open_page("/summary?report=full"), 1)
    clicks.menu("Insights")
    expect(clicks.page.locator(".headline")).to_contain_text("Does not fit")
    findings = clicks.page.locator("#insights-findings")
    expect(findings).to_contain_text("440 B must go from tile 0; the findings save at most")


def test_which_variable_is_the_largest_at_the_peak_and_where_was_it_created(
    open_page: Opener,
) -> None:
    clicks = Clicks(open_page("/summary?report=demo"), 2)
    clicks.menu("Liveness")
    row = clicks.page.locator("#liveness-variables .ag-center-cols-container .ag-row").first
    expect(row.locator(".ag-cell").first).to_have_text(re.compile(r"\w"))
    name = row.locator(".ag-cell").first.inner_text()
    clicks.on(row.locator(".ag-cell").first)
    drawer = clicks.page.locator(".drawer")
    expect(drawer.locator(".subject")).to_have_text(name)
    expect(drawer).to_contain_text(re.compile(r"Created at\s*\w+\.py:\d+"))
    expect(drawer).to_contain_text(re.compile(r"Read by\s*\d+ programs?, last"))


def test_the_drawer_is_in_the_address_and_is_closed_by_the_keyboard(open_page: Opener) -> None:
    page = settled(open_page("/liveness?report=demo&variable=3"))
    close = page.locator(".drawer").get_by_role("link", name="Close")
    close.focus()
    page.keyboard.press("Enter")
    expect(page.locator(".drawer")).to_have_count(0)
    assert "variable=" not in page.url


def test_which_findings_are_worth_most(pipeline: Any) -> None:
    clicks = Clicks(pipeline, 1)
    clicks.menu("Insights")
    first = clicks.page.locator(".first-findings > li")
    expect(first).to_have_count(3)
    expect(first.first).to_contain_text("at most")
    expect(clicks.page.locator("#insights-findings")).to_contain_text(
        re.compile("IPU 1 bounds the runs: IPU 0 waits")
    )
