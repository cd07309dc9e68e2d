"""The page Instances in a real browser: its answer, a click on a row, axe, both themes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import HEIGHT, serving
from tests.browser.test_accessibility import check_page
from tests.browser.waiting import at, box_of, in_address
from tests.many.planted import Plan, write_planted

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the URL of a run of 16 instances, one of which is late."""
    run = write_planted(tmp_path_factory.mktemp("run"), Plan(culprit=11, late=1.0))
    with serving(run) as url:
        yield url


def test_the_page_answers_leads_on_and_has_no_fault(contexts: dict[str, Any], served: str) -> None:
    page = contexts["light"].new_page()
    wrong: list[str] = []
    page.on("console", lambda m: wrong.append(m.text) if m.type == "error" else None)
    page.set_viewport_size({"width": 1440, "height": HEIGHT})
    page.emulate_media(reduced_motion="reduce")
    page.goto(f"{served}/instances")
    answer = page.locator("#instances-answer .headline")
    expect(answer).to_contain_text("Instance 11 on h0 holds the others up for")
    expect(answer).to_contain_text("by late start at Engine::run")
    check_page(page)
    plot = page.locator("#instances-map .nsewdrag").first
    box_of(plot)
    page.mouse.click(*at(plot, 0.5, 2.5 / 16)())
    in_address(page, "instance=2")
    page.locator("#instances-chosen").get_by_text("Host trace").click()
    in_address(page, "report=instance_0002")
    expect(page.locator("h1")).to_have_text("What did the host do meanwhile?")
    page.close()
    assert wrong == []
