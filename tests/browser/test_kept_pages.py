"""A page that a reader comes back to is as he left it, follows the address, and is whole."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.names import Opener
from tests.browser.waiting import at, in_address, named, not_in_address, settled, whole

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

RANGE = "plot => plot && plot.closest('.js-plotly-plot')._fullLayout.xaxis.range.join()"
MARKED = "[...document.querySelector('#memory-plot .js-plotly-plot').layout.shapes || []].length"


def turn(page: Any, path: str) -> None:
    """Open a page by the menu."""
    page.locator(f".nav-link[href^='{path}']").click()
    expect(page.locator(f".nav-link[href^='{path}']")).to_have_class("nav-link active")
    settled(page)


def test_page_is_the_same_elements_and_no_other_page_is_in_the_document(open_page: Opener) -> None:
    page = open_page("/memory?report=small")
    plot = page.locator("#memory-plot .js-plotly-plot")
    plot.evaluate("plot => { plot.mine = true; }")
    turn(page, "/liveness")
    expect(page.locator("#page h1")).to_have_count(1)
    expect(page.locator("#memory-plot")).to_have_count(0)
    turn(page, "/memory")
    expect(page.locator("#liveness-plot")).to_have_count(0)
    assert plot.evaluate("plot => plot.mine")


def test_page_that_comes_back_shows_the_tile_that_was_chosen_elsewhere(open_page: Opener) -> None:
    page = open_page("/memory?report=small")
    turn(page, "/execution")
    page.evaluate("window.tilescope.go({ tile: '1' })")
    in_address(page, "tile=1")
    turn(page, "/memory")
    in_address(page, "tile=1")
    expect(page.locator("#memory-details h2").first).to_contain_text("Tile 1")
    assert page.evaluate(MARKED) >= 1
    page.go_back()
    page.go_back()
    not_in_address(page, "tile=1")


def test_plots_and_tables_that_come_back_still_tell_what_is_clicked(open_page: Opener) -> None:
    page = open_page("/memory?report=small")
    turn(page, "/execution")
    turn(page, "/memory")
    page.mouse.click(*at(page.locator("#memory-plot .nsewdrag").first, 0.3)())
    in_address(page, "tile=")
    turn(page, "/execution")
    named(page, "execution-programs-table", "name").first.click()
    in_address(page, "step=")
    turn(page, "/memory")
    turn(page, "/execution")
    page.keyboard.press("Escape")
    not_in_address(page, "step=")
    named(page, "execution-programs-table", "name").nth(1).click()
    in_address(page, "step=")


def test_controls_of_a_page_that_is_kept_do_not_follow_another_one(open_page: Opener) -> None:
    page = open_page("/memory?report=small&tab=variables")
    turn(page, "/execution")
    page.locator("#page [role=tab]").get_by_text("Waits").click()
    in_address(page, "tab=waits")
    turn(page, "/memory")
    in_address(page, "tab=variables")
    expect(page.locator("#page [role=tab][aria-selected=true]")).to_have_text("Variables")
    turn(page, "/execution")
    expect(page.locator("#page [role=tab][aria-selected=true]")).to_have_text("Waits")


def follow(page: Any, link: str) -> None:
    """Follow a link, as one in the drawer."""
    page.evaluate("link => history.pushState(null, '', link)", link)
    page.evaluate("window.dispatchEvent(new PopStateEvent('popstate'))")


def test_plot_that_comes_back_shows_the_part_that_the_address_says(open_page: Opener) -> None:
    page = open_page("/graph?report=small")
    whole(page)
    ranged = f"now => ({RANGE})(document.querySelector('#graph-plot .nsewdrag')) === now"
    area = page.locator("#graph-plot .nsewdrag").first
    before = area.evaluate(RANGE)
    page.mouse.move(*at(area, 0.3, 0.8)())
    page.mouse.down()
    page.mouse.move(*at(area, 0.5, 0.8)(), steps=4)
    page.mouse.up()
    in_address(page, "seen=")
    assert area.evaluate(RANGE) != before
    turn(page, "/summary")
    turn(page, "/graph")
    in_address(page, "seen=")
    page.wait_for_function(f"now => !({ranged})(now)", arg=before)
    turn(page, "/summary")
    follow(page, "/graph?report=small")
    page.wait_for_function(ranged, arg=before)


def test_strip_and_plot_that_come_back_show_all_where_the_address_says_no_range(
    open_page: Opener,
) -> None:
    page = open_page("/liveness?report=small")
    ranged = f"now => ({RANGE})(document.querySelector('#liveness-plot .nsewdrag')) === now"
    area = page.locator("#liveness-plot .nsewdrag").first
    before = area.evaluate(RANGE)
    page.evaluate("window.tilescope.go({ range: '1-4' })")
    page.wait_for_function(f"now => !({ranged})(now)", arg=before)
    turn(page, "/summary")
    follow(page, "/liveness?report=small")
    page.wait_for_function(ranged, arg=before)


def test_table_that_comes_back_stands_where_it_was(open_page: Opener) -> None:
    page = open_page("/programs?report=small")
    body = page.locator("#page .ag-body-viewport").first
    whole(page)
    body.evaluate("body => { body.scrollTop = 40; }")
    top = body.evaluate("body => body.scrollTop")
    page.wait_for_timeout(200)
    turn(page, "/summary")
    turn(page, "/programs")
    assert page.locator("#page .ag-body-viewport").first.evaluate("body => body.scrollTop") == top


def test_other_theme_is_that_of_all_pages(open_page: Opener) -> None:
    page = open_page("/memory?report=small")
    colour = "document.querySelector('#memory-plot .js-plotly-plot').layout.font.color"
    light = page.evaluate(colour)
    turn(page, "/summary")
    page.locator("#theme-switch").click()
    settled(page)
    turn(page, "/memory")
    page.wait_for_function(f"light => {colour} !== light", arg=light)


def test_units_are_those_of_all_pages(open_page: Opener) -> None:
    page = open_page("/memory?report=small")
    words = page.locator("#page .headline").first
    before = words.inner_text()
    turn(page, "/summary")
    page.locator(".preferences > summary").click()
    page.get_by_label("bytes", exact=True).click()
    settled(page)
    turn(page, "/memory")
    expect(words).not_to_have_text(before)


def test_page_that_was_made_before_is_there_with_the_window(open_page: Opener) -> None:
    open_page("/memory?report=small")
    page = open_page("/liveness?report=small")
    asked: list[str] = []
    page.on("request", lambda r: asked.append(r.post_data or ""))
    page.goto(page.url.replace("/liveness", "/memory"))
    expect(page.locator("#memory-plot .nsewdrag").first).to_be_visible()
    settled(page)
    assert not [body for body in asked if "page-above.children" in body[:200]]
    expect(page).to_have_title("small \u2013 tilescope")
    expect(page.locator("#report-name")).to_have_text("small")
    assert "small" in page.evaluate("localStorage.getItem('recent')")
    turn(page, "/liveness")
    turn(page, "/memory")
    expect(page.locator("#memory-plot .nsewdrag").first).to_be_visible()
