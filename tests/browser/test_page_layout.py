"""Someone on a small screen, a large one or paper: the room that is there is used, and no more."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.names import Opener
from tests.browser.test_pages import FITS, ready_canvas
from tests.browser.waiting import box_of

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

PAGES = ("/", "/summary?report=long", "/memory?report=long&breakdown=category",
         "/liveness?report=long", "/programs?report=long&program=6",
         "/operations?report=long", "/graph?report=long", "/insights?report=long",
         "/compare?report=long&against=small", "/execution?report=long&step=6",
         "/trace?report=long&event=3")  # fmt: skip
MANY = """list => {
  for (let n = 0; n < 100; n++) list.append(list.lastElementChild.cloneNode(true));
}"""


@pytest.mark.parametrize("link", PAGES)
def test_names_of_100_kilobytes_make_no_page_wider(open_page: Opener, link: str) -> None:
    page = open_page(link, width=1024)
    assert page.evaluate("document.documentElement.scrollWidth") == 1024
    page.set_viewport_size({"width": 390, "height": 844})
    page.wait_for_function(FITS)


@pytest.mark.parametrize("link", ["/memory", "/execution"])
def test_plots_take_the_width_of_a_large_screen(open_page: Opener, link: str) -> None:
    page = open_page(link, width=2560)
    assert box_of(page.locator("#page"))["width"] > 2300


def test_key_of_a_hundred_channels_leaves_room_for_the_timeline(open_page: Opener) -> None:
    key = open_page("/trace", width=1024).locator("#trace-channels .key")
    key.evaluate(MANY)
    assert box_of(key)["height"] < 120


def test_printed_page_is_the_view_without_menus(open_page: Opener) -> None:
    page = open_page("/insights", theme="dark")
    page.emulate_media(media="print")
    for part in (".header", ".side", ".page-help", ".exports"):
        expect(page.locator(part).first).to_be_hidden()
    assert box_of(page.locator("#page"))["x"] == 0


def test_rows_of_a_device_are_all_there_below_a_low_window(open_page: Opener) -> None:
    page = open_page("/execution?report=digits")
    page.set_viewport_size({"width": 1280, "height": 200})
    page.reload()
    ready_canvas(page)
    scroller = page.locator(".timeline-scroller")
    assert scroller.evaluate("place => place.scrollHeight <= place.clientHeight")
    assert box_of(scroller)["height"] > 160  # what the window alone would leave


def test_tables_of_a_telephone_keep_their_columns_and_scroll(open_page: Opener) -> None:
    page = open_page("/compare?report=small&against=demo", width=390)
    table = page.locator("table.compare-figures").first
    assert box_of(table.locator("thead tr"))["height"] < 60  # two lines
    assert table.evaluate("table => table.parentElement.clientWidth < table.clientWidth")
    page.wait_for_function(FITS)


def test_cards_of_a_telephone_stand_below_each_other(open_page: Opener) -> None:
    page = open_page("/", width=390)
    first, second = (box_of(page.locator(".run").nth(place)) for place in (0, 1))
    assert first["x"] == second["x"] and second["y"] >= first["y"] + first["height"]
    page.wait_for_function(FITS)


@pytest.mark.parametrize("link", ["/memory?report=demo", "/liveness?report=demo"])
def test_plots_of_a_telephone_are_high_enough_to_read(open_page: Opener, link: str) -> None:
    page = open_page(link, width=390)
    place = "document.querySelector('.pane-above .js-plotly-plot .nsewdrag')"
    page.wait_for_function(f"() => {place}?.getBoundingClientRect().height > 120")
