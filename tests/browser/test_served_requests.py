"""The page Serving in a real browser: its answer, a delay typed, a click on a batch, axe."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import HEIGHT, serving
from tests.browser.test_accessibility import check_page
from tests.browser.waiting import in_address

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]
SERVED = Path(__file__).parents[1] / "traces" / "served.json"


def test_a_delay_is_replayed_and_a_batch_leads_to_its_time(contexts: dict[str, Any]) -> None:
    with serving(SERVED) as url:
        page = contexts["light"].new_page()
        wrong: list[str] = []
        page.on("console", lambda m: wrong.append(m.text) if m.type == "error" else None)
        page.set_viewport_size({"width": 1440, "height": HEIGHT})
        page.emulate_media(reduced_motion="reduce")
        page.goto(f"{url}/serving")
        expect(page.locator("#serving-answer .headline")).to_contain_text("A request takes")
        check_page(page)
        page.get_by_role("textbox", name="Delays").fill("2ms")
        page.keyboard.press("Enter")
        in_address(page, "delay=2ms")
        expect(page.locator("#serving-choices")).to_contain_text("2.0 ms delay, 1 instance")
        page.locator("#serving-batches").get_by_text("digits 1, batch 0", exact=True).click()
        in_address(page, "batch=0")
        page.locator("#serving-chosen").get_by_role("link", name="Host trace").click()
        in_address(page, "range=100000-1700000")
        expect(page.locator(".headline")).to_contain_text("events on")
        page.close()
    assert wrong == []
