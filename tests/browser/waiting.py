"""What a test waits for: nothing on a page is read once, as a slow machine shows it later."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from playwright.sync_api import TimeoutError as NotYet
from playwright.sync_api import expect

TIMEOUT = 30_000  # milliseconds
LOOK = 400  # milliseconds until the pointer is moved again

# A page is at rest when Dash holds no callback in several frames, as a click before may be undone,
# and no panel waits for its answer.
AT_REST = """() => {
  const state = window.store && window.store.getState();
  if (!state || !document.querySelector("#page > *")) return false;
  const { stored, completed, ...open } = state.callbacks;
  const asks = state.isLoading || document.querySelector("[aria-busy=true]");
  const rests = !asks && Object.values(open).every((list) => !list.length);
  window.restedFrames = rests ? (window.restedFrames || 0) + 1 : 0;
  return window.restedFrames > 4;
}"""
# AG Grid comes after the answers, and has its cells a moment after its rows, of those below the
# window, too: a page is whole when nothing of it lacks and nothing has changed for a while.
WHOLE = """() => new Promise((done) => {
  const LACKS = ".ag-delay-render, .ag-header-row:empty, .ag-row-loading";
  let last = performance.now();
  const watch = new MutationObserver(() => { last = performance.now(); });
  watch.observe(document.body,
    { subtree: true, childList: true, attributes: true, characterData: true });
  const look = () => {
    if (document.querySelector(LACKS)) last = performance.now();
    if (performance.now() - last < 400) return setTimeout(look, 50);
    watch.disconnect();
    done(true);
  };
  look();
})"""
IN_ADDRESS = "text => decodeURIComponent(location.search).includes(text)"
NOT_IN_ADDRESS = "text => !decodeURIComponent(location.search).includes(text)"
SAME_PLACE = """element => new Promise((done) => {
  let last = "";
  const look = () => {
    const { x, y, width, height } = element.getBoundingClientRect();
    const now = [x, y, width, height].join();
    if (now === last && width && height) return done({ x, y, width, height });
    last = now;
    setTimeout(look, 60);
  };
  look();
})"""

expect.set_options(timeout=TIMEOUT)


def settled(page: Any) -> Any:
    """Wait until the page has answered all that it was asked; give the page."""
    page.wait_for_function(AT_REST)
    return page


def whole(page: Any) -> Any:
    """Wait until nothing of the page lacks, and nothing has changed for a while; give the page."""
    settled(page).evaluate(WHOLE)
    return page


def in_address(page: Any, *texts: str) -> None:
    """Wait until the address says this."""
    for text in texts:
        page.wait_for_function(IN_ADDRESS, arg=text)


def not_in_address(page: Any, text: str) -> None:
    """Wait until the address no longer says this."""
    page.wait_for_function(NOT_IN_ADDRESS, arg=text)


def box_of(locator: Any) -> dict[str, float]:
    """Return where an element stands, once it no longer moves."""
    box: dict[str, float] = locator.evaluate(SAME_PLACE)
    return box


def at(locator: Any, across: float, down: float = 0.5) -> Callable[[], tuple[float, float]]:
    """Return a function to a point of an element, as shares of its width and height."""

    def point() -> tuple[float, float]:
        box = box_of(locator)
        return box["x"] + across * box["width"], box["y"] + down * box["height"]

    return point


def hover(page: Any, point: Callable[[], tuple[float, float]], seen: str) -> tuple[float, float]:
    """Move the pointer to a point until what it calls up is there; give the point."""
    deadline = time.monotonic() + TIMEOUT / 1000
    while True:
        x, y = point()
        page.mouse.move(x + 3, y)
        page.mouse.move(x, y)
        try:
            page.locator(seen).first.wait_for(timeout=LOOK)
        except NotYet:
            if time.monotonic() > deadline:
                raise
            continue
        return x, y


def named(page: Any, table: str, column: str = "name") -> Any:
    """Return the cells of a column of a table; totals are not among them."""
    return page.locator(f"#{table} .ag-center-cols-viewport [col-id={column}].ag-cell")
