"""Every page in a real browser: it loads, answers, and follows clicks, keys and links."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from dashboard import pages
from tests.browser.names import LABEL, VARIABLE, Opener
from tests.browser.waiting import (
    at,
    box_of,
    hover,
    in_address,
    named,
    not_in_address,
    settled,
    whole,
)

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

# Of a report with its trace, of an instance of a run, of served requests, of an exploration.
OF_OTHERS = ("report and trace", "run", "served", "exploration")
PAGES = {
    "/": "9 reports and 1 host trace under the paths given.",
    "/summary": "Fits: the fullest tile (tile 0) uses 1.0 kB of 2.0 kB (50.8 %).",
    "/memory": "Fits: the fullest tile (tile 0) uses 1.0 kB of 2.0 kB (50.8 %).",
    "/insights": "Fits: the fullest tile (tile 0) uses 1.0 kB of 2.0 kB (50.8 %).",
    "/liveness": "At most 3.5 kB are live at once, at step 6 (multiply); 3.3 kB of it always.",
    "/programs": "takes all 1,024 cycles",
    "/operations": "multiply takes the most cycles, 638 (62.3 %)",
    "/graph": "multiply reads 3 variables (200 B) and writes 1 variable (80 B).",
    "/execution": "2 recorded runs took",
    "/exchange": "moves most:",
    "/flames": "takes most: 638 cycles",
    "/compare?report=small&against=demo": "demo takes",
    "/trace": "40 events on 1 thread.",
}
DEMO_ANSWERS = {
    "/summary": "Fits: the fullest tile (tile 0) uses",
    "/memory": "Fits: the fullest tile (tile 0) uses",
    "/insights": "Fits: the fullest tile (tile 0) uses",
    "/liveness": "are live at once, at step",
    "/programs": "cycles",
    "/operations": "takes the most cycles",
    "/execution": "2 recorded runs took",
    "/flames": "takes most",
    "/trace": "took the most by itself",
    "/together": "the device runs for",
}

IS_PAINTED = """() => {
  const canvas = document.querySelector(".timeline-canvas");
  if (!canvas || !document.querySelector(".timeline[data-drawn]")) return false;
  const context = canvas.getContext("2d");
  const pixels = context.getImageData(0, 0, canvas.width, canvas.height);
  return new Set(new Uint32Array(pixels.data.buffer)).size > 3;
}"""
ROW_TOP = """wanted => {
  const { placed, data, busy } = document.querySelector(".timeline").timeline;
  const entry = placed && data && !busy && placed.entries.find(({ row }) => row === wanted);
  return entry && { top: entry.top };
}"""
RANGE_IN_NOTE = """() => {
  const range = (new URLSearchParams(location.search).get("range") || "").split("-").map(Number);
  const note = document.querySelector("#execution-range .note");
  return note && note.textContent.includes(`${range[1] - range[0]} cycles`);
}"""
FITS = "() => document.documentElement.scrollWidth <= window.innerWidth"


def click_plot(page: Any, plot: str, share: float) -> None:
    """Click a plot at a share of its width, once the pointer is seen to be on its lines."""
    expect(page.locator(f"#{plot} .scatterlayer .js-line").first).to_be_attached()
    point = at(page.locator(f"#{plot} .nsewdrag").first, share)
    seen = f"#{plot} .hoverlayer .hovertext, #{plot} .hoverlayer .legend"
    page.mouse.click(*hover(page, point, seen))


def ready_canvas(page: Any) -> Any:
    """Return the canvas of the timeline once something is drawn on it."""
    page.wait_for_function(IS_PAINTED)
    return page.locator(".timeline-canvas")


def row_top(page: Any, row: int) -> float:
    """Return where a row of the timeline stands below the ruler."""
    top: float = page.wait_for_function(ROW_TOP, arg=row).json_value()["top"]
    return top


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("path", PAGES)
def test_page_opens_and_answers_its_question(open_page: Opener, path: str, theme: str) -> None:
    page = open_page(path, theme=theme)
    expect(page.locator(".headline")).to_contain_text(PAGES[path])
    whole(page)
    expect(page.locator(".fault")).to_have_count(0)
    expect(page.locator("html")).to_have_attribute("data-mantine-color-scheme", theme)
    # The trace was made without this report: none of its runs is in it.
    titles = [page.TITLE for page in pages.PAGES if page.PAGE.subject not in OF_OTHERS]
    expect(page.locator(".nav-link")).to_have_text(titles)


@pytest.mark.parametrize("path", DEMO_ANSWERS)
def test_page_answers_its_question_on_the_demo_report(open_page: Opener, path: str) -> None:
    page = open_page(f"{path}?report=demo")
    expect(page.locator(".headline")).to_contain_text(DEMO_ANSWERS[path])
    whole(page)


@pytest.mark.parametrize("path", PAGES)
def test_page_fits_a_narrow_window(open_page: Opener, path: str) -> None:
    page = open_page(path, width=800)
    whole(page)
    page.wait_for_function(FITS)
    page.set_viewport_size({"width": 390, "height": 844})  # of a telephone
    page.wait_for_function(FITS)


def test_click_on_a_step_shows_its_variables(open_page: Opener) -> None:
    page = open_page("/liveness")
    click_plot(page, "liveness-plot", 0.25)  # 14 steps: a quarter of the way is step 3
    expect(page.get_by_text("All tiles at step 3").first).to_be_visible()
    in_address(page, "step=3")
    expect(named(page, "liveness-variables")).to_have_text(["x"])


def test_copied_link_opens_the_same_view(open_page: Opener) -> None:
    page = open_page("/liveness?step=6&filter=name~script")
    expect(named(page, "liveness-variables")).to_have_text([VARIABLE])
    expect(page.get_by_label("Steps, e.g. 3, 12")).to_have_value("6")
    expect(page.get_by_label("Filter variables by name")).to_have_count(0)
    expect(page.get_by_label("Filter variables")).to_have_value("script")


@pytest.mark.parametrize("path", ["/execution", "/trace"])
def test_timeline_follows_the_keyboard(open_page: Opener, path: str) -> None:
    page = open_page(path)
    canvas = ready_canvas(page)
    row_top(page, 0)
    canvas.press("w")
    in_address(page, "range=")
    canvas.press("Home")
    not_in_address(page, "range=")
    key = {"/execution": "step", "/trace": "event"}[path]
    row_top(settled(page), 0)
    canvas.press("n")
    expect(page).to_have_url(re.compile(rf"[?&]{key}=0&object={key}%3A0$"))
    canvas.press("n")
    expect(page).to_have_url(re.compile(rf"[?&]{key}=([1-9]\d*)&object={key}%3A\1$"))
    canvas.press("Escape")
    not_in_address(page, f"{key}=")


def test_click_on_the_timeline_shows_the_step(open_page: Opener) -> None:
    page = open_page("/execution?show=flat")
    canvas = ready_canvas(page)
    top = row_top(page, 3)
    box = box_of(canvas)
    page.mouse.click(box["x"] + 0.3 * box["width"], box["y"] + 30 + top + 10)
    in_address(page, "step=")
    step = page.url.split("step=")[1].split("&")[0]
    expect(page.locator("h2", has_text=f"Step {step}").first).to_be_visible()


def test_pointer_over_the_timeline_names_what_is_there(open_page: Opener) -> None:
    page = open_page("/trace")
    canvas = ready_canvas(page)
    top = row_top(page, 1)

    def point() -> tuple[float, float]:
        box = box_of(canvas)
        return box["x"] + 0.5 * box["width"], box["y"] + 30 + top + 10

    hover(page, point, ".timeline-tip:visible")
    expect(page.locator(".timeline-tip")).to_contain_text(LABEL)


def test_wheel_zooms_and_the_range_tells_what_is_in_view(open_page: Opener) -> None:
    page = open_page("/execution")
    box = box_of(ready_canvas(page))
    expect(page.locator("#execution-range .note").first).to_contain_text("1,024 cycles")
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 60)
    page.mouse.wheel(0, -400)
    in_address(page, "range=")
    page.wait_for_function(RANGE_IN_NOTE)


def test_search_leads_to_the_next_match(open_page: Opener) -> None:
    page = open_page("/trace")
    ready_canvas(page)
    page.fill(".timeline-search", "batch")
    expect(page.locator(".timeline-found")).to_have_text("20")
    page.press(".timeline-search", "Enter")
    expect(page).to_have_url(re.compile(r"event=0\b"))
    page.press(".timeline-search", "Shift+Enter")
    expect(page).to_have_url(re.compile(r"event=19\b"))


def test_a_range_is_chosen_with_shift(open_page: Opener) -> None:
    page = open_page("/execution")
    canvas = ready_canvas(page)
    row_top(page, 0)
    box = box_of(canvas)
    page.keyboard.down("Shift")
    page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.7 * box["width"], box["y"] + 60, steps=4)
    page.mouse.up()
    page.keyboard.up("Shift")
    in_address(page, "selection=")
    expect(page.locator("#execution-range h2").first).to_contain_text("Chosen range")


def test_axis_of_device_and_host_is_switched_by_a_key(open_page: Opener) -> None:
    page = open_page("/together?report=demo")
    ready_canvas(page).press("x")
    in_address(page, "axis=simulated")
    expect(page.locator("#together-axis .note").first).to_contain_text("stretched")


def test_theme_is_switched_and_kept(open_page: Opener) -> None:
    page = open_page("/memory", theme="light")
    scheme = "data-mantine-color-scheme"
    page.click("#theme-switch")
    expect(page.locator("html")).to_have_attribute(scheme, "dark")
    page.reload()
    expect(page.locator("#memory-plot .scatterlayer").first).to_be_attached()
    expect(page.locator("html")).to_have_attribute(scheme, "dark")


def test_names_that_look_like_markup_are_shown_as_they_are(open_page: Opener) -> None:
    page = open_page("/liveness?step=7")
    expect(page.locator("#liveness-variables")).to_contain_text(VARIABLE)
    page = open_page("/trace")
    expect(page.locator("#trace-label-table")).to_contain_text(LABEL)
    expect(page.locator(".key").first).to_have_text("<anon>")


@pytest.mark.parametrize(
    ("link", "words"),
    [
        ("/nowhere", "/nowhere: no such page"),
        ("/summary?report=other", "report=other: not there; known: small, torn, trace.pvti"),
        ("/liveness?step=99", "step 99: not there; the report has steps 0 to 13"),
        ("/memory?tile=x", "tile=x: no tile; write a whole number"),
        ("/execution?step=99", "step 99: not there"),
        ("/programs?stage=x", "stage=x: not there"),
        ("/operations?layer=x", "layer x: not there"),
        ("/summary?report=torn", "profile.pop"),
    ],
)
def test_wrong_link_is_answered_with_one_line(open_page: Opener, link: str, words: str) -> None:
    page = open_page(link)
    expect(page.locator(".fault").first).to_contain_text(words)
    expect(page.locator("body")).not_to_contain_text("Traceback")
    expect(page.locator("#page h1")).to_have_count(1)


@pytest.mark.parametrize("link", ["/nowhere", "/summary?report=other", "/memory?report=torn"])
def test_page_that_cannot_be_shown_leads_to_those_that_can(open_page: Opener, link: str) -> None:
    page = open_page(link)
    page.locator("#page").get_by_text("All reports and traces").click()
    expect(page.locator(".headline")).to_contain_text(PAGES["/"])


def test_another_report_is_chosen_in_the_header(open_page: Opener) -> None:
    page = open_page("/summary")
    page.get_by_label("Report").first.click()
    page.click("[role=option] >> text=torn")
    expect(page.locator(".fault").first).to_be_visible()
    in_address(page, "report=torn")


def test_trace_without_report_leads_to_its_page(open_page: Opener) -> None:
    page = open_page("/summary?report=trace.pvti")
    page.click("text=Open the host trace")
    ready_canvas(page)
    expect(page.locator(".nav-link")).to_have_text(
        ["Start", "Flame graphs", "Host trace", "Documentation"]
    )


@pytest.mark.parametrize(
    ("path", "label", "text", "wanted"),
    [
        ("/liveness", "Steps, e.g. 3, 12", "3", "step=3"),
        ("/liveness", "Filter variables", "part", "filter=name~part"),
        ("/execution", "Filter programs", "mult", "filter=name~mult"),
        ("/trace", "Filter labels", "batch", "filter=label~batch"),
    ],
)
def test_what_is_entered_in_a_box_goes_into_the_address_and_out_again(
    open_page: Opener, path: str, label: str, text: str, wanted: str
) -> None:
    page = open_page(path)
    box = page.get_by_label(label, exact=True)
    box.fill(text)
    box.press("Enter")
    in_address(page, wanted)
    settled(page)  # the boxes follow the address, and would write over what is typed meanwhile
    box.fill("")
    box.blur()
    page.wait_for_function("() => location.search === ''")
