"""The Memory page and what all pages share, in a real browser: picking, typing, saving, keys."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.names import VARIABLE, Opener
from tests.browser.test_pages import click_plot
from tests.browser.waiting import at, box_of, hover, in_address, named, settled, whole

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

TILES = "Tiles, e.g. 3, 17, 100-120"
PLOT = "#memory-plot .nsewdrag"
HOVERED = "#memory-plot .hoverlayer .hovertext, #memory-plot .hoverlayer .legend"
SHAPES = "#memory-plot .shapelayer path"


def heading(page: Any, words: str) -> None:
    """Wait until the lower pane is about these tiles."""
    expect(page.locator("#memory-details h2").first).to_have_text(words)


def test_tiles_are_chosen_by_click_shift_click_and_keys(open_page: Opener) -> None:
    page = open_page("/memory")
    click_plot(page, "memory-plot", 0.45)  # ten tiles: tile 4
    heading(page, "Tile 4")
    expect(page.get_by_label(TILES)).to_have_value("4")
    whole(page).keyboard.down("Shift")  # once the plot has been drawn with the tile marked
    click_plot(page, "memory-plot", 0.75)
    page.keyboard.up("Shift")
    heading(page, "2 tiles")
    expect(page).to_have_url(re.compile("tile=4,7&object=tile%3A7$"))  # the last of them
    expect(page.locator(".drawer .subject")).to_have_text("Tile 7")
    settled(page).keyboard.press("p")
    page.keyboard.press("ArrowRight")
    heading(page, "Tile 8")
    page.keyboard.press("c")
    heading(page, "All tiles")
    page.go_back()
    heading(page, "Tile 8")


def test_words_beside_the_pointer_stay_when_its_tile_is_chosen(open_page: Opener) -> None:
    page = open_page("/memory")
    hover(page, at(page.locator(PLOT).first, 0.45), HOVERED)
    words = whole(page).locator("#memory-plot .hoverlayer .legend")
    words.evaluate("it => it.dataset.drawn = 'once'")
    shapes = page.locator(SHAPES).count()
    page.mouse.down()
    page.mouse.up()
    heading(page, "Tile 4")
    expect(page.locator(SHAPES)).to_have_count(shapes + 1)
    expect(page.locator("#memory-plot .hoverlayer [data-drawn=once]")).to_have_count(1)


def is_about(request: Any, tile: int) -> bool:
    """Return whether a request asks what the Memory page says of a tile, or the drawer."""
    text = request.post_data or ""
    return f"tile={tile}" in text and ("memory-details.c" in text or '"drawer.c' in text)


def test_a_click_shows_what_was_asked_for_while_the_pointer_rested(open_page: Opener) -> None:
    page = open_page("/memory")
    asked: list[Any] = []
    page.on("request", lambda request: asked.append(request) if is_about(request, 4) else None)
    with page.expect_response(lambda response: is_about(response.request, 4)):
        hover(page, at(page.locator(PLOT).first, 0.45), HOVERED)
    assert len(settled(page) and asked) == 2
    page.mouse.down()
    page.mouse.up()
    heading(page, "Tile 4")
    expect(page.locator(".drawer .subject")).to_have_text("Tile 4")
    assert len(settled(page) and asked) == 2


def test_a_click_asks_again_what_had_no_answer_while_the_pointer_rested(open_page: Opener) -> None:
    page = open_page("/memory")
    empty: list[Any] = []

    def answer(route: Any) -> None:
        if is_about(route.request, 4) and len(empty) < 2:
            empty.append(route)
            return route.fulfill(status=204)
        return route.continue_()

    page.route("**/_dash-update-component*", answer)
    hover(page, at(page.locator(PLOT).first, 0.45), HOVERED)
    page.wait_for_timeout(300)
    assert len(empty) == 2
    page.mouse.down()
    page.mouse.up()
    heading(page, "Tile 4")
    expect(page.locator(".drawer .subject")).to_have_text("Tile 4")


def test_an_answer_that_is_late_does_not_take_the_place_of_a_later_one(open_page: Opener) -> None:
    page = open_page("/memory")
    heading(page, "All tiles")
    held: list[Any] = []

    def hold(route: Any) -> None:
        late = "tile=4" in (route.request.post_data or "")
        held.append(route) if late else route.continue_()

    settled(page).route("**/_dash-update-component*", hold)
    page.evaluate("tilescope.go({ tile: 4 }); tilescope.go({ tile: 7 })")
    heading(page, "Tile 7")
    with page.expect_event("requestfinished", lambda request: "tile=4" in request.post_data):
        for route in held:
            route.continue_()
    page.wait_for_timeout(300)
    heading(page, "Tile 7")
    expect(page.locator(".drawer .subject")).to_have_text("Tile 7")


def test_chosen_tiles_stay_when_the_theme_changes_and_go_with_the_history(
    open_page: Opener,
) -> None:
    page = open_page("/memory")
    page.evaluate("tilescope.go({ tile: '4,7' })")
    heading(page, "2 tiles")
    settled(page).get_by_role("tab", name="Variables", exact=True).click()
    expect(page.locator("#memory-rows .ag-cell").first).to_be_visible()
    settled(page).keyboard.press("l")
    heading(settled(page), "2 tiles")
    for words in ("2 tiles", "All tiles"):
        settled(page).go_back()
        expect(page.get_by_role("tab", name="Details")).to_have_attribute("aria-selected", "true")
        heading(page, words)


def test_tiles_are_chosen_by_dragging(open_page: Opener) -> None:
    page = open_page("/memory")
    hover(page, at(page.locator(PLOT).first, 0.15), HOVERED)  # the middle of tile 1
    box = box_of(page.locator(PLOT).first)
    places = [(box["x"] + share * box["width"], box["y"] + 60) for share in (0.12, 0.3, 0.48)]
    page.mouse.move(*places[0])
    page.mouse.down()
    page.mouse.move(*places[1], steps=4)
    page.mouse.move(*places[2], steps=4)
    page.mouse.up()
    heading(page, "4 tiles")
    expect(page).to_have_url(re.compile("tile=1-4$"))


def test_tiles_are_chosen_by_typing(open_page: Opener) -> None:
    page = open_page("/memory")
    heading(page, "All tiles")
    page.keyboard.press("t")
    expect(page.get_by_label(TILES)).to_be_focused()
    page.keyboard.type("3 7 - 8")
    page.keyboard.press("Enter")
    heading(page, "3 tiles")
    expect(page.get_by_label(TILES)).to_have_value("3, 7-8")
    in_address(page, "tile=3,7-8")
    settled(page).get_by_label(TILES).fill("99")
    page.get_by_label(TILES).press("Enter")
    words = "tile 99: not there; the report has tiles 0 to 9"
    expect(page.get_by_text(words).first).to_be_visible()


def test_plot_that_cannot_be_drawn_gives_its_place_to_the_reason(open_page: Opener) -> None:
    page = open_page("/memory?graph=map&scale=log")
    expect(page.locator(".plot .fault")).to_contain_text("scale=log: not there")
    expect(page.locator("#memory-plot")).to_be_hidden()
    page.get_by_text("Total", exact=True).first.click()
    expect(page.locator(".plot .fault")).to_have_count(0)
    settled(page)
    assert box_of(page.locator(PLOT).first)["width"] > 600


def test_every_place_of_a_wide_column_tells_its_bytes(open_page: Opener) -> None:
    plot = open_page("/memory?breakdown=category").locator("#memory-plot .nsewdrag")
    for across, tile in ((0.31, "Tile 3"), (0.39, "Tile 3"), (0.41, "Tile 4")):  # of ten
        told = f"#memory-plot .hoverlayer text:has-text('{tile}')"
        hover(plot.page, at(plot, across), told)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_map_is_clicked_and_marks_the_tile(open_page: Opener, theme: str) -> None:
    page = open_page("/memory?graph=map", theme=theme)
    image = "#memory-plot .hm image, #memory-plot .heatmaplayer image"
    expect(page.locator(image).first).to_be_attached()
    point = at(page.locator(PLOT).first, 0.2, 0.6)
    page.mouse.click(*hover(page, point, HOVERED))
    in_address(page, "tile=")
    expect(page.locator(SHAPES).first).to_be_attached()


def test_copied_link_opens_the_same_memory_view(open_page: Opener) -> None:
    link = "/memory?tile=3,7&breakdown=region&gaps=off&tab=variables&filter=name~script"
    page = open_page(link)
    heading(page, "2 tiles")
    expect(named(page, "memory-rows")).to_have_text([VARIABLE])
    expect(page.get_by_label(TILES)).to_have_value("3, 7")
    expect(page.get_by_label("Filter variables")).to_have_value("script")
    expect(page.get_by_label("Breakdown").first).to_have_value("By region")
    expect(page.get_by_label("Gaps")).not_to_be_checked()
    expect(page).to_have_url(re.compile(re.escape(link) + "$"))


@pytest.mark.parametrize(
    ("tab", "name"),
    [("Compute sets", "multiply"), ("Vertices", "Multiply"), ("Exchanges", "multiply/ExchangePre")],
)
def test_tab_shows_its_rows(open_page: Opener, tab: str, name: str) -> None:
    page = open_page("/memory")
    page.get_by_role("tab", name=tab, exact=True).click()
    expect(named(page, "memory-rows").filter(has_text=name).first).to_be_attached()
    in_address(page, "tab=")


def test_variable_is_plotted_when_its_row_is_clicked(open_page: Opener) -> None:
    page = open_page("/memory?graph=variables&tab=variables")
    expect(named(page, "memory-rows").first).not_to_be_empty()
    named(page, "memory-rows").first.click()
    in_address(page, "variable=")
    settled(page).get_by_text("By address").click()
    drawn = page.locator("#memory-address .scatterlayer path.js-fill").first
    expect(drawn).to_be_attached()
    in_address(page, "lies=address")


@pytest.mark.parametrize(("entry", "name"), [("Plot as PNG", "memory-plot.png"),
                                             ("Plot as SVG", "memory-plot.svg"),
                                             ("Data as CSV", "memory-total.csv")])  # fmt: skip
def test_plot_and_data_are_saved(open_page: Opener, tmp_path: Path, entry: str, name: str) -> None:
    page = open_page("/memory?breakdown=region")
    expect(page.locator("#memory-plot .scatterlayer .js-line").first).to_be_attached()
    page.keyboard.press("e")
    with page.expect_download() as saved:
        page.locator("#memory-tools").get_by_text(entry).click()
    assert saved.value.suggested_filename == name
    saved.value.save_as(tmp_path / name)
    data = (tmp_path / name).read_bytes()
    head = {"png": b"\x89PNG", "svg": b"<svg", "csv": b"tile,non_interleaved"}[name[-3:]]
    assert data.startswith(head)


def test_what_is_chosen_is_in_the_address_before_dash_tells_of_it(open_page: Opener) -> None:
    page = open_page("/memory")
    page.evaluate("for (const set of ['setChoice', 'setSwitch', 'setBox'])"
                  " window.dash_clientside.tilescope[set] = () => {}")  # fmt: skip
    for choice, text in (("Gaps", "gaps=on"), ("Maximum", "limit=on"), ("Tile map", "graph=map")):
        page.locator("label", has_text=re.compile(f"^{choice}$")).first.click()
        in_address(page, text)
    page.get_by_role("tab", name="Variables", exact=True).click()
    in_address(page, "tab=variables")
    page.get_by_label(TILES).fill("0")
    page.get_by_label(TILES).press("Enter")
    in_address(page, "tile=0")


def test_units_are_chosen_for_all_pages_and_kept(open_page: Opener) -> None:
    page = open_page("/memory")
    words = "uses 1,040 B of 2,048 B"
    page.keyboard.press("u")
    page.get_by_label("bytes", exact=True).check()
    expect(page.locator(".headline")).to_contain_text(words)
    page.reload()
    expect(page.locator(".headline")).to_contain_text(words)


def test_sheet_of_keys_opens_and_keys_lead_to_pages(open_page: Opener) -> None:
    page = open_page("/memory")
    sheet = page.locator("#keys-sheet")
    page.keyboard.press("?")
    expect(sheet).to_be_visible()
    page.keyboard.press("?")
    expect(sheet).to_be_hidden()
    page.keyboard.press("2")
    expect(page).to_have_url(re.compile("/summary"))


def test_grip_moves_by_the_keys(open_page: Opener) -> None:
    page = open_page("/memory")
    heading(page, "All tiles")
    before = box_of(page.locator(".pane-above"))["height"]
    page.locator(".grip").focus()
    page.keyboard.press("ArrowDown")
    page.wait_for_function(
        "wanted => Math.abs(document.querySelector('.pane-above').offsetHeight - wanted) <= 2",
        arg=before + 24,
    )
