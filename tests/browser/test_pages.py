"""Every page in a real browser: it loads, answers, and follows clicks, keys and links."""

from __future__ import annotations

from typing import Any

import pytest

from dashboard import pages
from tests.browser.names import LABEL, VARIABLE, Opener

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

PAGES = {
    "/": "4 reports under the paths given.",
    "/summary": "Fits: the fullest tile (tile 0) uses 1.0 kB of 2.0 kB (50.8 %).",
    "/memory": "Fits: the fullest tile (tile 0) uses 1.0 kB of 2.0 kB (50.8 %).",
    "/insights": "Fits: the fullest tile (tile 0) uses 1.0 kB of 2.0 kB (50.8 %).",
    "/liveness": "At most 3.5 kB are live at once, at step 6 (multiply); 3.3 kB of it always.",
    "/programs": "takes all 1,024 cycles",
    "/operations": "multiply takes the most cycles, 638 (62.3 %)",
    "/graph": "multiply reads 3 variables (200 B) and writes 1 variable (80 B).",
    "/execution": "2 recorded runs took",
    "/compare?report=small&against=demo": "demo takes",
    "/trace": "40 events on 1 thread.",
}
DEMO_ANSWERS = {
    "/summary": "Fits: the fullest tile (tile 0) uses",
    "/memory": "Fits: the fullest tile (tile 0) uses",
    "/insights": "Fits: the fullest tile (tile 0) uses",
    "/liveness": "at step 12 (Layer1/Fwd/Conv_1/Convolve)",
    "/programs": "epoch, run 178 times, takes 99.9 % of all 2,045,444 cycles",
    "/operations": "Layer1/Fwd/Conv_1 takes the most cycles, 174,974 (8.6 %)",
    "/execution": "2 recorded runs took 2,045,444 cycles",
    "/trace": "took the most by itself",
    "/together": "the device runs for",
}

COUNT_COLOURS = """() => {
  const canvas = document.querySelector(".timeline-canvas");
  const context = canvas.getContext("2d");
  const pixels = context.getImageData(0, 0, canvas.width, canvas.height);
  return new Set(new Uint32Array(pixels.data.buffer)).size;
}"""


def click_plot(page: Any, plot: str, share: float) -> None:
    """Click a plot at a share of its width, once its lines are there."""
    page.wait_for_selector(f"#{plot} .scatterlayer .js-line", state="attached")
    box = page.locator(f"#{plot} .nsewdrag").first.bounding_box()
    page.mouse.move(box["x"] + share * box["width"], box["y"] + box["height"] / 2)
    page.wait_for_selector(f"#{plot} .hoverlayer .hovertext, #{plot} .hoverlayer .legend")
    page.mouse.click(box["x"] + share * box["width"], box["y"] + box["height"] / 2)


def ready_canvas(page: Any) -> Any:
    """Give the canvas of the timeline once something is drawn on it."""
    page.wait_for_selector(".timeline[data-drawn]", state="attached")
    assert page.evaluate(COUNT_COLOURS) > 3
    return page.locator(".timeline-canvas")


def row_top(page: Any, row: int) -> float:
    """Give where a row of the timeline stands below the ruler."""
    entries = "document.querySelector('.timeline').timeline.placed.entries"
    top: float = page.evaluate(f"{entries}.find(entry => entry.row === {row}).top")
    return top


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("path", PAGES)
def test_page_opens_and_answers_its_question(open_page: Opener, path: str, theme: str) -> None:
    page = open_page(path, theme=theme)
    answer = page.locator(".headline").inner_text().replace("\u00a0", " ")
    assert PAGES[path] in answer
    page.wait_for_load_state("networkidle")
    assert page.locator(".fault").count() == 0
    assert page.locator("html").get_attribute("data-mantine-color-scheme") == theme
    # The trace of this report was made without it: none of its runs is in it.
    titles = [page.TITLE for page in pages.PAGES if page.PATH != "/together"]
    assert page.locator(".nav-link").all_inner_texts() == titles


@pytest.mark.parametrize("path", DEMO_ANSWERS)
def test_page_answers_its_question_on_the_demo_report(open_page: Opener, path: str) -> None:
    page = open_page(f"{path}?report=demo")
    answer = page.locator(".headline").inner_text().replace("\u00a0", " ")
    assert DEMO_ANSWERS[path] in answer
    page.wait_for_load_state("networkidle")


@pytest.mark.parametrize("path", PAGES)
def test_page_fits_a_narrow_window(open_page: Opener, path: str) -> None:
    page = open_page(path, width=800)
    page.wait_for_load_state("networkidle")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_click_on_a_step_shows_its_variables(open_page: Opener) -> None:
    page = open_page("/liveness")
    click_plot(page, "liveness-plot", 0.25)  # 14 steps: a quarter of the way is step 3
    page.wait_for_selector("text=All tiles at step 3")
    assert "step=3" in page.url
    names = page.locator(
        "#liveness-variables .ag-center-cols-viewport [col-id=name].ag-cell"
    ).all_inner_texts()
    assert names == ["x"]


def test_copied_link_opens_the_same_view(open_page: Opener) -> None:
    page = open_page("/liveness?step=6&filter=name~script")
    page.wait_for_selector("#liveness-variables .ag-cell")
    assert page.get_by_label("Steps, e.g. 3, 12").input_value() == "6"
    assert page.get_by_label("Filter variables by name").count() == 0
    assert page.get_by_label("Filter variables").input_value() == "script"
    names = page.locator(
        "#liveness-variables .ag-center-cols-viewport [col-id=name].ag-cell"
    ).all_inner_texts()
    assert names == [VARIABLE]


@pytest.mark.parametrize("path", ["/execution", "/trace"])
def test_timeline_follows_the_keyboard(open_page: Opener, path: str) -> None:
    page = open_page(path)
    canvas = ready_canvas(page)
    canvas.focus()
    canvas.press("w")
    page.wait_for_url("**range=*")
    canvas.press("Home")
    page.wait_for_url(lambda url: "range=" not in url)
    key = {"/execution": "step", "/trace": "event"}[path]
    canvas.press("n")
    page.wait_for_url(f"**{key}=0")
    canvas.press("n")
    page.wait_for_url(lambda url: f"{key}=" in url and f"{key}=0" not in url)
    canvas.press("Escape")
    page.wait_for_url(lambda url: f"{key}=" not in url)


def test_click_on_the_timeline_shows_the_step(open_page: Opener) -> None:
    page = open_page("/execution?show=flat")
    box = ready_canvas(page).bounding_box()
    page.mouse.click(box["x"] + 0.3 * box["width"], box["y"] + 30 + row_top(page, 3) + 10)
    page.wait_for_url("**step=*")
    step = page.url.split("step=")[1].split("&")[0]
    page.wait_for_selector(f"h2:has-text('Step {step}')")


def test_pointer_over_the_timeline_names_what_is_there(open_page: Opener) -> None:
    page = open_page("/trace")
    box = ready_canvas(page).bounding_box()
    page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 30 + row_top(page, 1) + 10)
    page.wait_for_selector(".timeline-tip:visible")
    assert LABEL in page.locator(".timeline-tip").inner_text()


def test_wheel_zooms_and_the_range_tells_what_is_in_view(open_page: Opener) -> None:
    page = open_page("/execution")
    box = ready_canvas(page).bounding_box()
    page.wait_for_selector("#execution-range .note >> text=1,024 cycles")
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 60)
    page.mouse.wheel(0, -400)
    page.wait_for_url("**range=*")
    begin, end = page.url.split("range=")[1].split("&")[0].split("-")
    page.wait_for_selector(f"#execution-range .note >> text={int(end) - int(begin)} cycles")


def test_search_leads_to_the_next_match(open_page: Opener) -> None:
    page = open_page("/trace")
    ready_canvas(page)
    page.fill(".timeline-search", "batch")
    page.wait_for_selector(".timeline-found >> text=20")
    page.press(".timeline-search", "Enter")
    page.wait_for_url("**event=0*")
    page.press(".timeline-search", "Shift+Enter")
    page.wait_for_url("**event=19*")


def test_a_range_is_chosen_with_shift(open_page: Opener) -> None:
    page = open_page("/execution")
    box = ready_canvas(page).bounding_box()
    page.keyboard.down("Shift")
    page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.7 * box["width"], box["y"] + 60, steps=4)
    page.mouse.up()
    page.keyboard.up("Shift")
    page.wait_for_url("**selection=*")
    page.wait_for_selector("#execution-range h2:has-text('Chosen range')")


def test_axis_of_device_and_host_is_switched_by_a_key(open_page: Opener) -> None:
    page = open_page("/together?report=demo")
    canvas = ready_canvas(page)
    canvas.focus()
    canvas.press("x")
    page.wait_for_url("**axis=simulated*")
    page.wait_for_selector("#together-axis .note >> text=stretched")


def test_theme_is_switched_and_kept(open_page: Opener) -> None:
    page = open_page("/memory", theme="light")
    page.wait_for_selector("#memory-plot .scatterlayer")
    page.click("#theme-switch")
    page.wait_for_selector("html[data-mantine-color-scheme=dark]")
    page.reload()
    page.wait_for_selector("#memory-plot .scatterlayer")
    assert page.locator("html").get_attribute("data-mantine-color-scheme") == "dark"


def test_names_that_look_like_markup_are_shown_as_they_are(open_page: Opener) -> None:
    page = open_page("/liveness?step=7")
    page.wait_for_selector("#liveness-variables .ag-cell")
    assert VARIABLE in page.locator("#liveness-variables").inner_text()
    page = open_page("/trace")
    page.wait_for_selector("#trace-label-table .ag-cell")
    assert LABEL in page.locator("#trace-label-table").inner_text()
    assert page.locator(".key").first.inner_text().strip() == "<anon>"


@pytest.mark.parametrize(
    ("link", "words"),
    [
        ("/nowhere", "/nowhere: no such page"),
        ("/summary?report=other", "report=other: not there; known: small, torn, trace.pvti"),
        ("/liveness?step=99", "step 99: not there; the report has steps 0 to 13"),
        ("/memory?tile=x", "tile=x: no tile; write a whole number"),
        ("/execution?step=99", "step 99: not there"),
        ("/summary?report=torn", "profile.pop"),
    ],
)
def test_wrong_link_is_answered_with_one_line(open_page: Opener, link: str, words: str) -> None:
    page = open_page(link)
    page.wait_for_selector(".fault")
    text = page.locator(".fault").first.inner_text()
    assert words in text
    assert "Traceback" not in page.content()


def test_another_report_is_chosen_in_the_header(open_page: Opener) -> None:
    page = open_page("/summary")
    page.get_by_label("Report").first.click()
    page.click("[role=option] >> text=torn")
    page.wait_for_selector(".fault")
    assert "report=torn" in page.url


def test_trace_without_report_leads_to_its_page(open_page: Opener) -> None:
    page = open_page("/summary?report=trace.pvti")
    page.click("text=Open the host trace")
    ready_canvas(page)
    assert page.locator(".nav-link").all_inner_texts() == ["Start", "Host trace"]


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
    page.wait_for_function(
        "wanted => decodeURIComponent(location.search).includes(wanted)", arg=wanted
    )
    box.fill("")
    box.blur()
    page.wait_for_function("location.search === ''")
