"""The program tree and the operations in a real browser: lines, keys, search, links, columns."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

import pva
from tests.browser.names import PROGRAM, Opener
from tests.browser.waiting import settled

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

LINES = "#programs-tree .program-line"


def line(page: Any, text: str) -> Any:
    """Return a line of the tree by its text."""
    return page.locator(LINES, has_text=text).first


def chosen(page: Any) -> Any:
    return page.locator("#programs-tree .ag-row.chosen .program-line")


def test_a_line_is_chosen_by_click_and_its_details_follow(open_page: Opener) -> None:
    page = open_page("/programs?report=small")
    line(page, "Compute").click()
    expect(page.locator("#programs-details h2")).to_have_text("Compute multiply")
    expect(page).to_have_url(re.compile("program=6"))
    expect(page.locator("#programs-tree .ag-row.related")).to_have_count(1)
    settled(page).locator(".tabs [role=tab]", has_text="Vertices").click()
    expect(page.locator("#program-vertices .ag-row").first).to_contain_text("popops::Multiply<fl")
    page.locator("#programs-details a", has_text="Live at this step").click()
    expect(page).to_have_url(re.compile("/liveness.*step=6"))
    page.go_back()
    expect(chosen(page)).to_contain_text("multiply")


def test_lines_fold_by_click_by_key_and_by_level(open_page: Opener) -> None:
    page = open_page("/programs?report=small")
    repeat = line(page, "Repeat 2 times")
    repeat.locator(".fold").click()
    expect(page.locator(LINES)).to_have_count(10)
    expect(page).not_to_have_url(re.compile("program="))
    repeat.click()
    expect(chosen(page)).to_contain_text("Repeat")
    settled(page).keyboard.press("ArrowRight")
    expect(page.locator(LINES)).to_have_count(14)
    page.reload()
    expect(chosen(page)).to_contain_text("Repeat")
    page.goto(page.url.split("?")[0] + "?report=small&level=1&turned=11")
    expect(page.locator(LINES)).to_have_count(3)


def test_search_goes_from_step_to_step(open_page: Opener) -> None:
    page = open_page("/programs?report=small&level=1")
    box = page.get_by_placeholder("Search for steps")
    box.fill("multiply")
    box.press("Enter")
    expect(chosen(page)).to_contain_text("multiply/ExchangePre")
    expect(page.locator("#programs-found")).to_have_text("1 of 2")
    settled(page)
    box.press("Enter")
    expect(page.locator("#programs-found")).to_have_text("2 of 2")
    settled(page)
    box.press("Shift+Enter")
    expect(page.locator("#programs-found")).to_have_text("1 of 2")


def test_a_stage_keeps_the_program_and_leads_to_what_it_became(open_page: Opener) -> None:
    page = open_page("/programs?report=small&program=9&part=function-0")
    page.locator("input[aria-label='Stage of the compilation']").click()
    page.locator("[role=option]", has_text="As written").click()
    expect(page.locator(LINES)).to_have_count(10)
    expect(page).to_have_url(re.compile("program=9&stage=written$"))
    expect(chosen(page)).to_contain_text("Execute")
    expect(page.locator("#programs-head")).to_contain_text("10 programs as written became 14")
    page.locator("#written-results a", has_text="Exchange between IPUs").click()
    expect(page.locator(LINES)).to_have_count(14)
    expect(chosen(page)).to_contain_text("reduce/GlobalPre")
    settled(page).keyboard.press("s")
    expect(page.locator("#programs-details h2")).to_have_text("Execute reduce")
    page.reload()
    expect(chosen(page)).to_contain_text("reduce")


def test_a_link_leads_to_a_line_far_down(open_page: Opener, reports_folder: Path) -> None:
    compute_sets = pva.openReport(str(reports_folder / "digits")).frames.programs()["compute_set"]
    last = compute_sets[compute_sets >= 0].index[-1]
    page = open_page(f"/programs?report=digits&program={last}&tab=tiles")
    expect(chosen(page)).to_be_in_viewport()
    expect(page.locator("#programs-details .js-plotly-plot").first).to_be_attached()


def opened_as(page: Any, report: str) -> Any:
    page.locator("input#report-choice").click()
    page.locator("[role=option]:visible", has_text=report).click()
    return page


def test_another_report_is_opened_without_what_was_chosen_in_this_one(open_page: Opener) -> None:
    page = opened_as(
        open_page("/programs?report=digits&program=103&turned=0:13&syncs=off"), "small"
    )
    expect(page.locator(LINES)).to_have_count(12)
    expect(page).to_have_url(re.compile(r"\?report=small&syncs=off$"))


def test_another_report_keeps_only_what_means_the_same_there(open_page: Opener) -> None:
    here = "variable=60&node=v60&selection=20-26&marks=5&tiles=3-4&category=x&of=ipu-0"
    link = f"/memory?report=digits&breakdown=region&tab=variables&{here}"
    page = opened_as(open_page(link), "small")
    expect(page).to_have_url(re.compile(r"\?report=small&breakdown=region&tab=variables$"))
    expect(page.locator(".fault")).to_have_count(0)


def test_the_report_compared_with_is_let_go_of_where_it_is_opened(open_page: Opener) -> None:
    page = opened_as(open_page("/compare?report=demo&against=small"), "small")
    expect(page).to_have_url(re.compile(r"/compare\?report=small$"))


def test_names_are_shown_as_they_are(open_page: Opener) -> None:
    page = open_page("/programs?report=small&program=10")
    expect(chosen(page)).to_contain_text(PROGRAM)
    expect(page.locator("#programs-details h2")).to_contain_text(PROGRAM)


def test_an_operation_is_chosen_and_shown_in_tabs(open_page: Opener) -> None:
    page = open_page("/operations?report=small")
    page.locator(
        "#operations-table .ag-center-cols-container .ag-row", has_text="multiply"
    ).locator(".ag-cell").first.click()
    expect(page.locator("#operations-details h2")).to_have_text("multiply")
    expect(page.locator("#operations-table .ag-row.chosen")).to_contain_text("multiply")
    for tab, found in (
        ("Program tree", "#operation-programs a"),
        ("Code", "#operation-code .js-plotly-plot"),
        ("Cycles", "#operation-cycles .js-plotly-plot"),
        ("FLOPs", "#operation-flops .ag-row"),
        ("Debug", "#operation-contexts .ag-row"),
    ):
        page.locator(".tabs [role=tab]", has_text=tab).click()
        expect(page.locator(found).first).to_be_attached()
    expect(page).to_have_url(re.compile("operation=multiply.*tab=debug"))
    page.reload()
    expect(page.locator("#operation-contexts .ag-row").first).to_contain_text("model.py:10")


def test_columns_layer_and_filter_stand_in_the_address(open_page: Opener) -> None:
    page = open_page("/operations?report=small&layer=poplibs&columns=cycles,code")
    heads = page.locator("#operations-table .ag-header-cell-text")
    expect(heads).to_have_text(["Operation", "Kind", "Cycles", "Code"])
    page.locator("summary", has_text="Columns").click()
    page.get_by_label("FLOPs").check()
    expect(heads).to_have_text(["Operation", "Kind", "Cycles", "FLOPs", "Code"])
    settled(page).get_by_placeholder("Filter operations").fill("add")
    page.keyboard.press("Enter")
    expect(page.locator("#operations-table .ag-center-cols-container .ag-row")).to_have_count(1)
    expect(page).to_have_url(re.compile("columns=cycles,flops,code.*filter=operation%7Eadd"))
