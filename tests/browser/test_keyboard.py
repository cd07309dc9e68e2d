"""Someone without a pointer: the focus is never lost or held, and everything has a name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

import pva
from pva.analysis.memory import tile_series
from tests.browser.names import Opener
from tests.browser.waiting import in_address, settled, whole

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

IN_CELL = "() => Boolean(document.activeElement.closest('.ag-cell'))"
OUTSIDE = """() =>
  document.activeElement.closest(".table") !== document.querySelector(".table")"""
HAS_VALUE = "value => document.activeElement.value === value"
IS_TILE = "tile => new URLSearchParams(location.search).get('tile') === tile"
# Ids that tabs name and no element has, and separators without a value.
BROKEN = """() => [
  ...[...document.querySelectorAll("[role=tab][aria-controls]")].filter(
    (tab) => !document.getElementById(tab.getAttribute("aria-controls"))),
  ...document.querySelectorAll("[role=tab][aria-selected=true]:not([aria-controls])"),
  ...document.querySelectorAll("[role=separator]:not([aria-valuenow])"),
].map((element) => element.outerHTML)"""
PAGES = ("/summary", "/memory", "/liveness", "/programs?program=6", "/operations?operation=add",
         "/graph", "/insights", "/compare?report=small&against=full", "/trace")  # fmt: skip


def into_the_rows(page: Any) -> None:
    """Go from the first heading of the first table to the cell below it, once rows come no more."""
    page.locator(".table .ag-cell").first.wait_for()
    whole(page).locator(".table .ag-header-cell").first.focus()
    page.keyboard.press("ArrowDown")
    page.wait_for_function(IN_CELL)


@pytest.mark.parametrize("link", ["/memory?tab=variables", "/programs", "/execution"])
def test_tab_passes_a_table_by_in_one_step(open_page: Opener, link: str) -> None:
    page = open_page(link)
    into_the_rows(page)
    settled(page).keyboard.press("Tab")
    page.wait_for_function(OUTSIDE)


def test_enter_chooses_the_row_of_a_table_and_keeps_the_focus_there(open_page: Opener) -> None:
    page = open_page("/liveness?tab=steps")
    into_the_rows(page)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    in_address(page, "step=1")
    settled(page).wait_for_function(IN_CELL)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    in_address(page, "step=2")


def test_choice_keeps_the_focus_when_what_holds_it_is_made_anew(open_page: Opener) -> None:
    page = open_page("/memory")
    page.locator("#memory-tools input[value=total]").focus()
    for graph in ("variables", "map"):
        page.keyboard.press("ArrowRight")
        in_address(page, f"graph={graph}")
        settled(page).wait_for_function(HAS_VALUE, arg=graph)


def test_arrows_choose_the_tile_beside_on_a_map(open_page: Opener, reports_folder: Path) -> None:
    page = open_page("/memory?report=digits&graph=map")
    plan = tile_series.floor_plan(pva.openReport(str(reports_folder / "digits")))
    tiles = {(row, column): tile for tile, row, column in zip(
        plan["tile"], plan["row"], plan["column"], strict=True)}  # fmt: skip
    page.locator("#memory-plot .heatmaplayer image").first.wait_for()
    page.keyboard.press("p")
    steps = (
        ("Right", (0, 0)),
        ("Right", (1, 0)),
        ("Down", (1, 1)),
        ("Left", (0, 1)),
        ("Up", (0, 0)),
    )
    for key, place in steps:
        page.keyboard.press(f"Arrow{key}")
        page.wait_for_function(IS_TILE, arg=str(tiles[place]))


def test_menu_closes_by_escape_and_when_it_is_left(open_page: Opener) -> None:
    page = open_page("/memory")
    menu = page.locator("#memory-tools details.exports")
    menu.locator("summary").press("Enter")
    menu.locator(".menu > *").first.focus()
    page.keyboard.press("Escape")
    expect(menu).not_to_have_attribute("open", "")
    expect(menu.locator("summary")).to_be_focused()
    page.keyboard.press("Enter")
    expect(menu).to_have_attribute("open", "")
    page.keyboard.press("Shift+Tab")
    expect(menu).not_to_have_attribute("open", "")


@pytest.mark.parametrize("link", PAGES)
def test_tabs_name_their_panels_and_grips_their_place(open_page: Opener, link: str) -> None:
    page = open_page(link)
    page.locator("[role=tab][aria-controls]").first.wait_for()
    assert page.evaluate(BROKEN) == []


def test_entries_of_a_timeline_are_told_apart_by_their_names(open_page: Opener) -> None:
    page = open_page("/execution")
    page.locator(".timeline .exports summary").click()
    names = [
        button.get_attribute("aria-label") or button.inner_text()
        for button in page.locator(".timeline .exports button").all()
    ]
    assert "Events as CSV" in names
    assert len(set(names)) == len(names)
