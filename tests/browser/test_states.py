"""Reports that are out of memory, were not run, or are full of markup; saving from each kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.names import MARKUP, Opener
from tests.browser.test_pages import ready_canvas
from tests.browser.waiting import settled

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

OPTION = "autoReport.outputExecutionProfile"
FULL = "Does not fit: 2 tiles out of memory"
NOT_RUN = {
    "/summary": f"Execution not known: run the program with the engine option {OPTION}.",
    "/programs": f"No steps: run the program with the engine option {OPTION}.",
    "/operations": "multiply takes the most cycles by estimate, 163 (47.2 %)",
    "/execution": f"Run the program with the engine option {OPTION}.",
    "/compare?against=small&tab=execution": f"run the program with the engine option {OPTION}",
    "/trace": "Set PVTI_OPTIONS and run again.",
    "/together": "Set PVTI_OPTIONS and run again.",
}
OUT_OF_MEMORY = {
    "/summary": FULL,
    "/memory": "Out of memory",
    "/insights": "Out of memory: 2 tiles have too little",
    "/compare?against=small": "small has 2 tiles fewer out of memory.",
}
# where names stand in headlines, tables, trees, drop-downs, axes and texts of plots
MARKED = {
    "/": "#page",
    "/summary?tab=options": "#summary-details",
    "/summary?tab=documents": "#summary-details",
    "/memory?tab=variables": "#memory-rows",
    "/memory?tab=variables&lies=address&tile=0": "#memory-details",
    "/liveness?step=6": ".headline",
    "/liveness?tab=lifetimes": "#liveness-details",
    "/programs?program=6": "#programs-tree",
    "/operations": "#operations-table",
    "/graph": ".headline",
    "/insights": "#insights-largest",
    "/compare?against=small&tab=operations": "#compare-rows",
    "/execution": "#execution-programs",
    "/trace": "#trace-tables",
}
INJECTED = "#page img, #page b, #page script, .main-svg [style*='font-weight: bold']"
SAVED = {
    ("/liveness", ".exports", "Plot as PNG"): ("liveness-plot.png", b"\x89PNG"),
    ("/liveness", ".exports", "Plot as SVG"): ("liveness-plot.svg", b"<svg"),
    ("/liveness", ".exports", "Data as Parquet"): ("liveness.parquet", b"PAR1"),
    ("/graph", ".exports", "Plot as PNG"): ("graph-plot.png", b"\x89PNG"),
    ("/graph", ".exports", "Plot as SVG"): ("graph-plot.svg", b"<svg"),
    ("/execution", ".timeline .exports", "View as PNG"): (".png", b"\x89PNG"),
    ("/execution", ".timeline .exports", "View as SVG"): (".svg", b"<svg"),
    ("/execution", ".timeline .exports", "Events as CSV"): (".csv", b"lane,row,label"),
}


def with_report(link: str, report: str) -> str:
    return f"{link}{'&' if '?' in link else '?'}report={report}"


@pytest.mark.parametrize("link", NOT_RUN)
def test_page_says_calmly_what_was_not_recorded(open_page: Opener, link: str) -> None:
    page = open_page(with_report(link, "unrun"))
    expect(page.locator("#page")).to_contain_text(NOT_RUN[link])
    expect(page.locator(".fault")).to_have_count(0)


@pytest.mark.parametrize("link", OUT_OF_MEMORY)
def test_page_tells_that_a_report_is_out_of_memory(open_page: Opener, link: str) -> None:
    page = open_page(with_report(link, "full"), theme="dark")
    expect(page.locator("#page")).to_contain_text(OUT_OF_MEMORY[link])
    expect(page.locator(".fault")).to_have_count(0)


@pytest.mark.parametrize("link", MARKED)
def test_names_like_markup_are_inert_on_every_page(open_page: Opener, link: str) -> None:
    page = open_page(with_report(link, "hostile"))
    expect(page.locator(MARKED[link])).to_contain_text(MARKUP)
    settled(page)
    expect(page.locator(INJECTED)).to_have_count(0)


@pytest.mark.parametrize(("link", "menu", "entry"), SAVED)
def test_view_is_saved(open_page: Opener, tmp_path: Path, link: str, menu: str, entry: str) -> None:
    page = open_page(link)
    if menu.startswith(".timeline"):
        ready_canvas(page)
    else:
        expect(page.locator(".js-plotly-plot .main-svg").first).to_be_visible()
    page.locator(f"{menu} > summary").first.click()
    with page.expect_download() as saved:
        page.locator(menu).first.get_by_text(entry).click()
    name, head = SAVED[link, menu, entry]
    assert saved.value.suggested_filename.endswith(name)
    saved.value.save_as(tmp_path / "saved")
    assert (tmp_path / "saved").read_bytes().startswith(head)


def test_a_saved_picture_says_what_it_shows_of_which_report(
    open_page: Opener, tmp_path: Path
) -> None:
    page = open_page("/liveness?report=demo")
    expect(page.locator("#liveness-plot .main-svg").first).to_be_visible()
    page.locator(".exports > summary").first.click()
    with page.expect_download() as saved:
        page.locator(".exports").first.get_by_text("Plot as SVG").click()
    saved.value.save_as(tmp_path / "saved.svg")
    picture = (tmp_path / "saved.svg").read_text(encoding="utf-8")
    assert "Live bytes by program step · demo" in picture
    assert ">Bytes<" in picture and ">Program step<" in picture


def test_a_page_is_shown_though_the_files_are_looked_at_while_it_is_made(
    open_page: Opener,
) -> None:
    page = open_page("/summary?report=small")
    held: list[Any] = []

    def hold(route: Any) -> None:
        """Keep the first answer to a click until another request has asked for the same."""
        asked = route.request.post_data or ""
        mine = "page-above.children" in asked
        if mine and not held:
            held.append(route)
            return
        route.continue_()
        if mine and len(held) == 1:
            held.append(route)

    page.route("**/_dash-update-component*", hold)
    page.locator(".nav-link[href^='/liveness']").click()
    while len(held) < 2:
        page.wait_for_timeout(100)
    held[0].continue_()
    expect(page.locator(".headlines").first).to_contain_text("live")
    expect(page.locator(".nav-link[href^='/liveness']")).to_have_class("nav-link active")
