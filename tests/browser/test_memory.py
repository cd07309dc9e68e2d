"""The Memory page and what all pages share, in a real browser: picking, typing, saving, keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.browser.names import VARIABLE, Opener
from tests.browser.test_pages import click_plot

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

TILES = "Tiles, e.g. 3, 17, 100-120"


def heading(page: Any, words: str) -> None:
    """Wait until the lower pane is about these tiles."""
    page.wait_for_selector(f"#memory-details h2:text-is('{words}')")


def rows(page: Any, column: str = "name") -> list[str]:
    """Give the texts of a column of the table, once it has rows."""
    page.wait_for_selector(f"#memory-rows [col-id={column}].ag-cell >> text=/./")
    return page.locator(f"#memory-rows [col-id={column}].ag-cell").all_inner_texts()


def test_tiles_are_chosen_by_click_shift_click_and_keys(open_page: Opener) -> None:
    page = open_page("/memory")
    click_plot(page, "memory-plot", 0.45)  # ten tiles: tile 4
    heading(page, "Tile 4")
    assert page.get_by_label(TILES).input_value() == "4"
    page.keyboard.down("Shift")
    box = page.locator("#memory-plot .nsewdrag").first.bounding_box()
    page.mouse.click(box["x"] + 0.75 * box["width"], box["y"] + box["height"] / 2)
    page.keyboard.up("Shift")
    heading(page, "2 tiles")
    assert page.url.endswith("tile=4,7")
    page.keyboard.press("p")
    page.keyboard.press("ArrowRight")
    heading(page, "Tile 8")
    page.keyboard.press("c")
    heading(page, "All tiles")
    page.go_back()
    heading(page, "Tile 8")


def test_tiles_are_chosen_by_dragging(open_page: Opener) -> None:
    page = open_page("/memory")
    page.wait_for_selector("#memory-plot .scatterlayer .js-line", state="attached")
    box = page.locator("#memory-plot .nsewdrag").first.bounding_box()
    at = [(box["x"] + share * box["width"], box["y"] + 60) for share in (0.12, 0.3, 0.48)]
    page.mouse.move(*at[0])
    page.mouse.down()
    page.mouse.move(*at[1], steps=4)
    page.mouse.move(*at[2], steps=4)
    page.mouse.up()
    heading(page, "4 tiles")
    assert page.url.endswith("tile=1-4")


def test_tiles_are_chosen_by_typing(open_page: Opener) -> None:
    page = open_page("/memory")
    heading(page, "All tiles")
    page.keyboard.press("t")
    page.keyboard.type("3, 7-8")
    page.keyboard.press("Enter")
    heading(page, "3 tiles")
    assert "tile=3,7-8" in page.url
    page.get_by_label(TILES).fill("99")
    page.get_by_label(TILES).press("Enter")
    page.wait_for_selector("text=tile 99: not there; the report has tiles 0 to 9")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_map_is_clicked_and_marks_the_tile(open_page: Opener, theme: str) -> None:
    page = open_page("/memory?graph=map", theme=theme)
    page.wait_for_selector("#memory-plot .hm image, #memory-plot .heatmaplayer image")
    box = page.locator("#memory-plot .nsewdrag").first.bounding_box()
    page.mouse.move(box["x"] + 0.2 * box["width"], box["y"] + 0.6 * box["height"])
    page.wait_for_selector("#memory-plot .hoverlayer .hovertext")
    page.mouse.click(box["x"] + 0.2 * box["width"], box["y"] + 0.6 * box["height"])
    page.wait_for_url("**tile=*")
    page.wait_for_selector("#memory-plot .shapelayer path", state="attached")


def test_copied_link_opens_the_same_memory_view(open_page: Opener) -> None:
    link = "/memory?tile=3,7&breakdown=region&gaps=off&tab=variables&filter=name~script"
    page = open_page(link)
    heading(page, "2 tiles")
    assert rows(page) == [VARIABLE]
    assert page.get_by_label(TILES).input_value() == "3, 7"
    assert page.get_by_label("Filter variables").input_value() == "script"
    assert page.get_by_label("Breakdown").first.input_value() == "By region"
    assert not page.get_by_label("Gaps").is_checked()
    assert page.url.endswith(link)


@pytest.mark.parametrize(
    ("tab", "name"),
    [("Compute sets", "multiply"), ("Vertices", "Multiply"), ("Exchanges", "multiply/ExchangePre")],
)
def test_tab_shows_its_rows(open_page: Opener, tab: str, name: str) -> None:
    page = open_page("/memory")
    page.click(f"[role=tab] >> text={tab}")
    assert any(name in found for found in rows(page))
    assert "tab=" in page.url


def test_variable_is_plotted_when_its_row_is_clicked(open_page: Opener) -> None:
    page = open_page("/memory?graph=variables&tab=variables")
    rows(page)
    page.locator("#memory-rows [col-id=name].ag-cell").first.click()
    page.wait_for_url("**variable=*")
    page.click("text=By address")
    page.wait_for_selector("#memory-address .scatterlayer path.js-fill", state="attached")
    assert "lies=address" in page.url


@pytest.mark.parametrize(("entry", "name"), [("Plot as PNG", "memory-plot.png"),
                                             ("Plot as SVG", "memory-plot.svg"),
                                             ("Data as CSV", "memory-total.csv")])  # fmt: skip
def test_plot_and_data_are_saved(open_page: Opener, tmp_path: Path, entry: str, name: str) -> None:
    page = open_page("/memory?breakdown=region")
    page.wait_for_selector("#memory-plot .scatterlayer .js-line", state="attached")
    page.keyboard.press("e")
    with page.expect_download() as saved:
        page.locator("#memory-tools").get_by_text(entry).click()
    assert saved.value.suggested_filename == name
    saved.value.save_as(tmp_path / name)
    data = (tmp_path / name).read_bytes()
    head = {"png": b"\x89PNG", "svg": b"<svg", "csv": b"tile,non_interleaved"}[name[-3:]]
    assert data.startswith(head)


def test_units_are_chosen_for_all_pages_and_kept(open_page: Opener) -> None:
    page = open_page("/memory")
    page.keyboard.press("u")
    page.get_by_label("bytes", exact=True).check()
    page.wait_for_selector(".headline:has-text('uses 1,040 B of 2,048 B')")
    page.reload()
    page.wait_for_selector(".headline:has-text('uses 1,040 B of 2,048 B')")


def test_sheet_of_keys_opens_and_keys_lead_to_pages(open_page: Opener) -> None:
    page = open_page("/memory")
    page.wait_for_selector("#memory-details h2")
    page.keyboard.press("?")
    page.wait_for_selector("#keys-sheet[open]")
    page.keyboard.press("?")
    page.wait_for_selector("#keys-sheet:not([open])", state="attached")
    page.keyboard.press("2")
    page.wait_for_url("**/summary*")


def test_grip_moves_by_the_keys(open_page: Opener) -> None:
    page = open_page("/memory")
    page.wait_for_selector("#memory-details h2")
    before = page.locator(".pane-above").bounding_box()["height"]
    page.locator(".grip").focus()
    page.keyboard.press("ArrowDown")
    assert page.locator(".pane-above").bounding_box()["height"] == pytest.approx(before + 24, abs=2)
