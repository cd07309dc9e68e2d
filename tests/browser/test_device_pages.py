"""Liveness, Insights, Compare and the computation graph in a real browser: tabs, clicks, keys."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.names import VARIABLE, Opener
from tests.browser.waiting import at, hover, in_address, named, not_in_address, settled, whole

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

TABS = {
    "Always live": "Always live",
    "Vertices": "step 12",
    "Cycle estimates": "Estimated, once each",
    "Lifetimes": "5 of 5 variables",
    "Steps": "14 steps; click one",
}


def click_node(page: Any, text: str, *keys: Any) -> None:
    """Click a box of the computation graph by its text, once it is seen to be meant."""
    box = page.locator("#graph-plot .textpoint text", has_text=text).first
    x, y = hover(page, at(box, 0.5), f"#graph-plot .hovertext >> text={text}")
    for key in keys:
        page.keyboard.down(key)
    page.mouse.click(x, y)
    for key in keys:
        page.keyboard.up(key)


def test_tabs_of_liveness_are_reached_by_click_and_by_key(open_page: Opener) -> None:
    page = open_page("/liveness?step=5,12")
    details = page.locator("#liveness-details")
    expect(named(page, "liveness-variables").first).not_to_be_empty()
    expect(named(page, "liveness-variables").filter(has_text="<letter>")).to_have_count(0)
    expect(details).to_contain_text("▼ −84 B")
    for tab, text in TABS.items():
        page.get_by_role("tab", name=tab, exact=True).click()
        expect(details).to_contain_text(text)
    settled(page)
    page.keyboard.press("Escape")
    page.locator("h1").click()
    page.keyboard.press("[")
    expect(details).to_contain_text("5 of 5 variables")
    in_address(page, "tab=lifetimes")


def test_steps_are_chosen_by_typing_and_a_row_of_the_table(open_page: Opener) -> None:
    page = open_page("/liveness?tab=steps&find=mult")
    steps = named(page, "liveness-steps")
    expect(steps).to_have_text(["multiply/ExchangePre", "multiply"])
    steps.filter(has_text="ExchangePre").click()
    in_address(page, "step=5")
    box = settled(page).get_by_label("One tile, e.g. 3")
    box.fill("5")
    box.press("Enter")
    expect(page.locator(".headline")).to_contain_text("Tile 5: at most")


def test_finding_leads_to_the_view_that_shows_it(open_page: Opener) -> None:
    page = open_page("/insights")
    expect(page.locator(".finding", has_text="Saves at most 566")).to_have_count(1)
    page.locator(".finding", has_text="Gaps take").get_by_role("link").click()
    expect(page).to_have_url(re.compile(r"/memory\?.*tile=0"))


def test_second_report_is_chosen_on_the_page(open_page: Opener) -> None:
    page = open_page("/compare?report=small")
    expect(page.get_by_text("Choose the report to compare with.")).to_be_visible()
    page.get_by_label("Report to compare with").first.click()
    page.get_by_role("option", name="demo", exact=True).click()
    expect(page.locator(".headline")).to_contain_text("demo takes")
    in_address(page, "against=demo")
    rows = settled(page).locator("#compare-rows")
    for tab in ("Liveness", "Operations", "Execution"):
        settled(page).get_by_role("tab", name=tab, exact=True).click()
        in_address(page, f"tab={tab.lower()}")
        expect(rows.locator(".ag-floating-top")).to_contain_text("Total")
    settled(page).get_by_role("tab", name="Target and options").click()
    expect(rows).to_contain_text("bytes per tile")


def test_a_filter_of_the_timeline_is_that_of_figures_table_and_list(open_page: Opener) -> None:
    page = open_page("/execution?report=small")
    bar, field = page.locator(".timeline-bar"), page.get_by_label("Show only steps whose name")
    field.fill("mult")
    field.press("Enter")
    in_address(page, "filter=name~mult")
    expect(bar).to_contain_text("10 of 29")  # two programs twice in two runs, and two blocks
    expect(page.locator("#execution-range")).to_contain_text("whose name contains “mult”: 8 steps")
    expect(page.get_by_label("Filter programs")).to_have_value("mult")
    page.locator(".timeline .exports > summary").click()
    page.get_by_role("button", name="Table of what is in view").click()
    listed = page.locator(".timeline-list")
    expect(listed).to_contain_text("the filter leaves 10 of 29")
    expect(listed.get_by_role("button", name="multiply").first).to_be_visible()
    expect(listed.get_by_role("button", name="Sync")).to_have_count(0)
    field.press("Escape")
    not_in_address(page, "filter=")
    expect(listed.get_by_role("button", name="Sync").first).to_be_visible()


def test_steps_of_a_second_report_take_time_by_its_own_clock(open_page: Opener) -> None:
    page = open_page("/execution?report=small&against=demo")
    expect(page.locator(".timeline-bar")).to_contain_text(re.compile(r"[\d,]+ cycles in view"))
    page.locator(".timeline .exports > summary").click()
    page.get_by_role("button", name="Table of what is in view").click()
    expect(page.locator(".timeline-list")).to_contain_text("cycles (")
    told = re.compile(r"([\d,]+) cycles \(([\d.,]+) ([mµn]?s)\)")
    clocks = set()
    for cycles, time, unit in told.findall(page.locator(".timeline-list").inner_text()):
        seconds = float(time.replace(",", "")) * {"s": 1, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}[unit]
        if len(cycles) > 3 and seconds:
            clocks.add(round(int(cycles.replace(",", "")) / seconds / 1e9, 2))
    assert clocks == {1.0, 1.33}  # GHz


def test_node_is_put_in_the_middle_by_a_click_and_opened_by_shift(open_page: Opener) -> None:
    page = open_page("/graph")
    headline = page.locator(".headline")
    click_node(page, "message")
    expect(headline).to_contain_text("message (40")
    expect(page).to_have_url(re.compile("node=v3&object=variable%3A3$"))
    click_node(settled(page), "280 B", "Shift")
    expect(headline).to_contain_text("multiply reads 3 variables")
    expect(page.locator("#graph-plot .textpoint", has_text=VARIABLE[-7:]).first).to_be_attached()
    expect(page).to_have_url(re.compile("node=v3(,|%2C)p6&object=program%3A6$"))
    settled(page).keyboard.press("p")
    page.keyboard.press("ArrowRight")
    not_in_address(page, "v3,p6")


def test_node_is_found_by_its_name(open_page: Opener) -> None:
    page = open_page("/graph?tab=variables&filter=name~script")
    expect(named(page, "graph-nodes")).to_have_text([VARIABLE])
    named(page, "graph-nodes").first.click()
    expect(page.locator(".headline")).to_contain_text(f"{VARIABLE} (80")


def test_magnification_is_typed_and_its_panel_stays_open(open_page: Opener) -> None:
    page = open_page("/memory")
    fold = page.locator(".magnifier-fold")
    expect(fold).to_be_visible()
    page.keyboard.press("z")
    expect(page.locator(".magnification")).to_be_focused()
    page.keyboard.type("200")
    page.keyboard.press("Enter")
    in_address(page, "range=3-8")  # half of ten tiles, in the middle
    expect(fold).to_have_text("200 %")
    settled(page).get_by_role("button", name="Show all").click()
    not_in_address(page, "range")
    page.locator(".nav-link", has_text="Computation graph").click()
    expect(page.locator("#graph-plot .textpoint").first).to_be_attached()
    settled(page).locator(".magnification").fill("150 %")
    page.keyboard.press("Enter")
    expect(fold).to_have_text("150 %")
    in_address(page, "seen=")
    page.reload()
    expect(fold).to_have_text("150 %")
    settled(page).get_by_role("button", name="Show all").click()
    expect(fold).to_have_text("100 %")
    page.locator("#graph-plot").dblclick(position={"x": 15, "y": 15})
    page.get_by_role("button", name="To the right").click()
    in_address(page, "seen=")
    expect(fold).to_have_text("100 %")
    fold.click()
    expect(page.locator(".magnification")).to_be_hidden()


def test_section_stays_closed_and_a_path_is_completed(open_page: Opener) -> None:
    page = open_page("/summary")
    target = page.locator("details[data-kept=target]")
    target.locator("summary").click()
    expect(target).not_to_have_attribute("open", "")
    page.reload()
    expect(target).not_to_have_attribute("open", "")
    settled(page).locator("details[data-kept=target] summary").click()
    expect(target).to_have_attribute("open", "")
    page.locator(".nav-link", has_text="Start").click()
    box = whole(page).locator("#start-path")
    box.press_sequentially("prof")
    expect(page.locator("[role=option]:visible")).to_have_text(["profile.pop"])
    settled(page)
    box.press("ArrowDown")
    box.press("Enter")
    expect(box).to_have_value("profile.pop")


def test_menu_leads_back_to_a_page_as_it_was_left(open_page: Opener) -> None:
    page = open_page("/summary?report=small")
    summary = page.locator(".nav-link", has_text="Summary")
    page.get_by_role("tab", name="Engine options").click()
    in_address(page, "tab=options")
    settled(page).locator(".nav-link", has_text="Start").click()
    not_in_address(page, "tab=")
    settled(page)
    summary.click()
    in_address(page, "tab=options")
    expect(page.locator("#summary-details")).to_contain_text("autoReport")
    settled(page)
    summary.click()
    not_in_address(page, "tab=")


def test_an_ipu_is_chosen_by_its_row_and_has_its_lane_and_tiles_alone(open_page: Opener) -> None:
    page = open_page("/execution?report=demo&arrows=on")
    view = "document.querySelector('.timeline').timeline"
    page.wait_for_function(f"() => {view}.arrows && {view}.arrows.data.step.length > 0")
    rows = page.locator("#execution-idle .ag-center-cols-container .ag-row")
    rows.nth(1).locator(".ag-cell").first.click()
    in_address(page, "ipu=1")
    page.wait_for_function(
        f"() => new Set({view}.placed.entries.map(entry => entry.laneName)).size === 1"
        f" && {view}.placed.entries[0].laneName === 'IPU 1'"
    )
    expect(page.locator(".timeline-tiles-bar")).to_contain_text("Tiles 32 to 63")
