"""The menu folds and is led by keys; the documentation is found, searched and linked."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.names import Opener
from tests.browser.waiting import in_address, settled

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

IS_HERE = "path => location.pathname === path"
WIDTH = """([low, high]) => {
  const side = document.querySelector(".side"); // not there at once after a reload
  const { width } = side ? side.getBoundingClientRect() : { width: -1 };
  return width >= low && width <= high;
}"""


def test_menu_is_folded_by_a_key_and_stays_so(open_page: Opener) -> None:
    page = open_page("/summary")
    page.wait_for_function(WIDTH, arg=[180, 225])
    page.keyboard.press("b")
    page.wait_for_function(WIDTH, arg=[40, 60])
    page.reload()
    page.wait_for_function(WIDTH, arg=[40, 60])
    link = settled(page).get_by_role("link", name="Computation graph")
    link.hover()
    page.wait_for_function("e => e.getBoundingClientRect().width > 120", arg=link.element_handle())
    page.get_by_role("button", name="Unfold the menu").click()
    page.wait_for_function(WIDTH, arg=[180, 225])
    page.keyboard.press("g")
    page.keyboard.press("e")
    page.wait_for_function(IS_HERE, arg="/execution")


def test_runs_that_count_are_in_the_address_of_every_page(open_page: Opener) -> None:
    page = open_page("/summary?runs=all")
    expect(page.locator("#runs-choice")).to_have_value("all runs")
    page.keyboard.press("g")
    page.keyboard.press("e")
    page.wait_for_function(IS_HERE, arg="/execution")
    in_address(page, "runs=all")
    other = open_page("/summary")  # a link of its own, as its reader sees it
    expect(other.locator("#runs-choice")).to_have_value("steady state")


@pytest.mark.parametrize("width", [1024, 1440])
def test_no_entry_of_the_menu_is_cut_when_its_page_is_shown(open_page: Opener, width: int) -> None:
    page = open_page("/graph", width=width)
    settled(page)
    room = page.locator(".nav-link, .side-button").evaluate_all(
        "entries => entries.map(entry => entry.clientWidth - entry.scrollWidth)"
    )
    assert len(room) > 10 and min(room) >= 0


def test_help_leads_to_the_chapter_and_a_search_from_hit_to_hit(open_page: Opener) -> None:
    page = open_page("/liveness", theme="dark")
    page.get_by_role("link", name="Help").click()
    in_address(page, "chapter=liveness")
    expect(page.locator(".manual-text h2")).to_have_text("Liveness")
    box = settled(page).get_by_label("Search the documentation")
    box.fill("overlapped")
    box.press("Enter")
    in_address(page, "find=overlapped")
    hits = page.locator(".manual-hits li")
    expect(hits.first).to_be_visible()
    settled(page)
    box.press("Enter")
    expect(page.locator(".manual-count")).to_contain_text("1 of")
    expect(page.locator(".manual-text mark").first).to_be_visible()
    box.press("Shift+Enter")
    expect(hits.last.locator("a.active")).to_be_visible()
    page.go_back()
    expect(hits.first.locator("a.active")).to_be_visible()


@pytest.mark.parametrize(("link", "place"), [("/memory?tab=variables", "section=tabs"),
                                             ("/memory", "chapter=memory")])  # fmt: skip
def test_help_leads_to_the_tabs_where_one_is_chosen(
    open_page: Opener, link: str, place: str
) -> None:
    page = open_page(link)
    page.locator(".page-help").click()
    in_address(page, "chapter=memory", place)
    assert ("section=" in page.url) == ("section" in place)
    expect(page.locator('[data-section="memory/tabs"]')).to_contain_text("Variables")
