"""Liveness, Insights, Compare and the computation graph in a real browser: tabs, clicks, keys."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser.names import VARIABLE, Opener

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

CELLS = ".ag-center-cols-viewport [col-id=name].ag-cell"


TABS = {
    "Always live": "Always live",
    "Vertices": "step 12",
    "Cycle estimates": "Estimated, once each",
    "Lifetimes": "5 of 5 variables",
    "Steps": "14 steps; click one",
}


def names(page: Any, table: str) -> list[str]:
    """Give the names in a table, once it has rows."""
    page.wait_for_selector(f"#{table} {CELLS} >> text=/./")
    return [text for text in page.locator(f"#{table} {CELLS}").all_inner_texts() if text]


def click_node(page: Any, text: str, *keys: Any) -> None:
    """Click a box of the computation graph by its text, once it is seen to be meant."""
    page.wait_for_selector("#graph-plot .textpoint text")
    box = page.locator("#graph-plot .textpoint text", has_text=text).first.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.wait_for_selector(f"#graph-plot .hovertext >> text={text}")
    for key in keys:
        page.keyboard.down(key)
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    for key in keys:
        page.keyboard.up(key)


def test_tabs_of_liveness_are_reached_by_click_and_by_key(open_page: Opener) -> None:
    page = open_page("/liveness?step=5,12")
    assert "<letter>" not in names(page, "liveness-variables")
    page.wait_for_selector("#liveness-details >> text=▼ −84 B")
    for tab, text in TABS.items():
        page.get_by_role("tab", name=tab, exact=True).click()
        page.wait_for_selector(f"#liveness-details >> text={text}")
    page.keyboard.press("Escape")
    page.locator("h1").click()
    page.keyboard.press("[")
    page.wait_for_selector("#liveness-details >> text=5 of 5 variables")
    assert "tab=lifetimes" in page.url


def test_steps_are_chosen_by_typing_and_a_row_of_the_table(open_page: Opener) -> None:
    page = open_page("/liveness?tab=steps&find=mult")
    assert names(page, "liveness-steps") == ["multiply/ExchangePre", "multiply"]
    page.locator(f"#liveness-steps {CELLS}", has_text="ExchangePre").click()
    page.wait_for_url("**step=5*")
    box = page.get_by_label("One tile, e.g. 3")
    box.fill("5")
    box.press("Enter")
    page.wait_for_selector(".headline >> text=Tile 5: at most")


def test_finding_leads_to_the_view_that_shows_it(open_page: Opener) -> None:
    page = open_page("/insights")
    page.wait_for_selector(".finding >> text=Saves at most 566")
    page.locator(".finding", has_text="Gaps take").get_by_role("link").click()
    page.wait_for_url("**/memory?*tile=0*")


def test_second_report_is_chosen_on_the_page(open_page: Opener) -> None:
    page = open_page("/compare?report=small")
    page.wait_for_selector("text=Choose the report to compare with.")
    page.get_by_label("Report to compare with").first.click()
    page.locator("[role=option]:visible", has_text="demo").click()
    page.wait_for_selector(".headline >> text=demo takes")
    assert "against=demo" in page.url
    for tab, row in (("Liveness", "Total"), ("Operations", "Total"), ("Execution", "Total")):
        page.get_by_role("tab", name=tab, exact=True).click()
        page.wait_for_selector(f"#compare-rows .ag-floating-top >> text={row}")
    page.get_by_role("tab", name="Target and options").click()
    page.wait_for_selector("#compare-rows >> text=bytes per tile")


def test_node_is_put_in_the_middle_by_a_click_and_opened_by_shift(open_page: Opener) -> None:
    page = open_page("/graph")
    click_node(page, "message")
    page.wait_for_selector(".headline >> text=message (40")
    assert page.url.endswith("node=v3")
    click_node(page, "280 B", "Shift")
    page.wait_for_selector(".headline >> text=multiply reads 3 variables")
    page.wait_for_selector(f"#graph-plot .textpoint text >> text={VARIABLE[:6]}")
    assert page.url.replace("%2C", ",").endswith("node=v3,p6")
    page.keyboard.press("p")
    page.keyboard.press("ArrowRight")
    page.wait_for_function("!location.search.includes('v3,p6')")


def test_node_is_found_by_its_name(open_page: Opener) -> None:
    page = open_page("/graph?tab=variables&filter=name~script")
    assert names(page, "graph-nodes") == [VARIABLE]
    page.locator(f"#graph-nodes {CELLS}").first.click()
    page.wait_for_selector(f".headline >> text={VARIABLE} (80")
