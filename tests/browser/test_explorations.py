"""The page Explore in a real browser: its answer, a click on a point, two compared, axe."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import HEIGHT, serving
from tests.browser.test_accessibility import check_page
from tests.browser.waiting import in_address, whole
from tests.many.explored import write_explored

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]
POINT_PLACE = """key => {
  const plot = document.querySelector("#explore-plot .js-plotly-plot");
  for (const trace of plot._fullData) {
    const n = (trace.customdata || []).indexOf(key);
    if (n < 0) continue;
    const { xaxis, yaxis } = plot._fullLayout, box = plot.getBoundingClientRect();
    return [box.left + xaxis._offset + xaxis.d2p(trace.x[n]),
            box.top + yaxis._offset + yaxis.d2p(trace.y[n])];
  }
}"""


# A plot that is drawn anew loses a click.
RINGED = """() => document.querySelector("#explore-plot .js-plotly-plot")
  ._fullData.some(trace => trace.name === "chosen")"""


def click_point(page: Any, key: str) -> None:
    """Click on a point as a hand does, that rests on it first, once the page changes no more."""
    place = whole(page).evaluate(POINT_PLACE, key)
    page.mouse.move(*place)
    page.locator("#explore-plot .hoverlayer .hovertext").first.wait_for()
    page.mouse.click(*place)


def test_two_clicks_compare_and_the_page_has_no_fault(
    contexts: dict[str, Any], tmp_path: Any
) -> None:
    with serving(write_explored(tmp_path)) as url:
        page = contexts["light"].new_page()
        wrong: list[str] = []
        page.on("console", lambda m: wrong.append(m.text) if m.type == "error" else None)
        page.set_viewport_size({"width": 1440, "height": HEIGHT})
        page.emulate_media(reduced_motion="reduce")
        page.goto(f"{url}/explore")
        expect(page.locator("#explore-answer .headline")).to_contain_text("Run batch 2, ipus 1")
        check_page(page)
        click_point(page, "k0")
        in_address(page, "point=k0")
        page.wait_for_function(RINGED)
        page.keyboard.down("Shift")
        click_point(page, "k1")
        page.keyboard.up("Shift")
        in_address(page, "point=k0,k1")
        page.get_by_role("link", name="Compare both").click()
        in_address(page, "report=k0", "against=k1")
        page.close()
    assert wrong == []
