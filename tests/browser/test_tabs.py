"""Each tab of each page opens, and a copied link opens what it was copied from."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

import pva
from tests.browser.names import LABEL, PROGRAM, VARIABLE, Opener
from tests.browser.waiting import box_of, settled

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

MULTIPLY = "popops::Multiply<float>"
# page: (what the tabs fill, {tab: words that stand there alone}); liveness has a test of its own
TABS = {
    "/summary": ("#summary-details", {
        "Engine options": "autoReport", "Framework and application": "app.json",
        "Profile summary": "Target:", "Overview": "Memory per tile",
    }),
    "/memory?tile=3,7": ("#memory-details", {
        "Compute sets": "Code, shared", "Vertices": MULTIPLY, "Exchanges": "multiply/ExchangePre",
        "Variables": VARIABLE, "Details": "Physical tile",
    }),
    "/programs?program=6": ("#programs-details", {
        "Tiles": "One execution, by tile", "Vertices": MULTIPLY, "Variables": VARIABLE,
        "Debug": "model.py:12", "Details": "Number of the compute set",
    }),
    "/operations?operation=multiply": ("#operations-details", {
        "Program tree": "multiply/ExchangePre", "Code": "Exchange code", "Cycles": "Estimate, once",
        "FLOPs": "80 floating-point operations", "Debug": "model.py:12",
        "Summary": "Cycles by estimate",
    }),
    "/graph": ("#graph-details", {
        "Compute sets": "reduce", "Variables": "partials", "Copies": PROGRAM,
        "Details": "Bytes of its variables",
    }),
    "/insights": ("#insights-largest", {
        "Vertices": MULTIPLY, "Exchanges": "multiply/ExchangePre",
        "Variables at the peak": VARIABLE,
    }),
    "/compare?report=small&against=full": ("#compare-rows", {
        "Liveness": "What is not always live", "Operations": "6 are the same",
        "Execution": "7 are the same", "Target and options": "bytes per tile",
        "Memory": "11 are the same",
    }),
    "/trace": ("#trace-tables", {
        "Call tree": "batch", "Bottom up": "batch", "By label": LABEL,
    }),
}  # fmt: skip
GRAPH_TEXTS = """() => {
  const plot = document.querySelector("#graph-plot .js-plotly-plot"), { xaxis } = plot._fullLayout;
  const box = 0.76 * xaxis._length / (xaxis.range[1] - xaxis.range[0]);
  const widths = [...plot.querySelectorAll(".textpoint text")].map((text) => text.getBBox().width);
  return [widths.length, Math.max(...widths) <= box];
}"""
# link: what it must show, as selector and words
LINKS = {
    "/summary?tab=options&find=autoReport": ("#summary-details", "autoReport"),
    "/memory?graph=map&tile=3&tab=exchanges": ("#memory-details h2", "Tile 3"),
    "/liveness?show=moving&step=2,6&tab=lifetimes": ("#liveness-details h2", "Lifetimes"),
    "/programs?level=1&program=6&tab=vertices": ("#programs-details h2", "multiply"),
    "/operations?layer=poplibs&operation=add&tab=flops": ("#operations-details h2", "add"),
    "/graph?node=v3,p6&tab=copies": (".headline", "multiply reads 3"),
    "/insights?tab=exchanges&filter=name~mult": ("#insights-largest", "multiply/ExchangePre"),
    "/compare?report=small&against=full&tab=settings": ("#compare-rows", "bytes per tile"),
    "/execution?range=100-300&step=6": (".drawer h2", "Step 6"),
    "/trace?tab=callers&event=3": (".drawer .subject", "batch"),
    "/together?report=demo&axis=simulated": ("#together-axis", "stretched"),
}


@pytest.mark.parametrize("link", TABS)
def test_each_tab_opens(open_page: Opener, link: str) -> None:
    page = open_page(link)
    place, tabs = TABS[link]
    names = page.locator(".tabs [role=tab]")
    expect(names).to_have_count(len(tabs))
    for name, words in tabs.items():
        tab = settled(page).get_by_role("tab", name=name, exact=True)
        tab.click()
        expect(tab).to_have_attribute("aria-selected", "true")
        expect(page.locator(place)).to_contain_text(words)
        expect(page.locator(".fault")).to_have_count(0)


@pytest.mark.parametrize("link", LINKS)
def test_copied_link_opens_the_same_view(open_page: Opener, link: str) -> None:
    page = open_page(link, theme="dark")
    place, words = LINKS[link]
    expect(page.locator(place).first).to_contain_text(words)
    expect(page.locator(".fault")).to_have_count(0)
    settled(page)
    expect(page).to_have_url(re.compile(re.escape(link) + "$"))


@pytest.mark.parametrize("link", ["/trace?report=unrun", "/summary?report=trace.pvti"])
def test_help_does_not_lie_on_what_is_below(open_page: Opener, link: str) -> None:
    page = open_page(link)
    link_box, below = box_of(page.locator(".page-help")), box_of(page.locator("h1 + *").first)
    assert link_box["y"] + link_box["height"] < below["y"]


@pytest.mark.parametrize("node", ["", "&node=v10,p38"])
def test_names_of_the_graph_stay_in_their_boxes(open_page: Opener, node: str) -> None:
    page = open_page(f"/graph?report=digits{node}", width=1024)
    expect(page.locator("#graph-plot .textpoint text").first).to_be_visible()
    count, fits = settled(page).evaluate(GRAPH_TEXTS)
    assert count > 1 and fits


@pytest.mark.parametrize(
    ("seen", "name"),
    [("-1,1,-1,1", "Layer2/Fwd/Nonlinearity"), ("-2.5,2.5,-1,1", "…/Nonlinearity")],
)
def test_names_of_the_graph_are_as_long_as_their_boxes(
    open_page: Opener, reports_folder: Path, seen: str, name: str
) -> None:
    names = pva.openReport(str(reports_folder / "digits")).frames.programs()["name"]
    program = names[names == "Layer2/Fwd/Nonlinearity"].index[0]
    page = open_page(f"/graph?report=digits&node=p{program}&seen={seen}", width=1024)
    texts = page.locator("#graph-plot .textpoint text")
    expect(texts.filter(has_text=re.compile(f"^{re.escape(name)}\\d"))).to_have_count(1)
