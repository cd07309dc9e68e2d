"""Warm the server up before the first visit: first answers, pages, findings and laws."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from dash import Dash

from dashboard.address import Address
from dashboard.app import show
from dashboard.details import drawer
from dashboard.pages import PAGES
from dashboard.pages.memory import page as memory
from dashboard.prefetch import LARGEST, Prefetcher, prefetcher_of
from dashboard.shell import Page
from dashboard.store import KEPT_OPEN, Store
from dashboard.view import makers
from pva.errors import PvaError
from pva.plot.theme import THEMES

FIRST = ("/", "/_dash-layout", "/_dash-dependencies")
# Of the files of the reports that are made ready. Of a larger one the first page is, up to LARGEST.
MAX_BYTES = 200_000_000
MAX_SECONDS = 5.0  # that a server's end waits for a view


@contextmanager
def ready(app: Dash, store: Store) -> Iterator[None]:
    """Make the first answers, the pages of the first report and what `prefetch` makes ready.

    That is done beside the server. At the end of the block nothing further is begun, and what was
    begun last is waited for.
    """
    stop = threading.Event()
    thread = threading.Thread(target=_make_ready, args=(app, store, stop.is_set), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        prefetcher_of(app).end(MAX_SECONDS)
        thread.join(MAX_SECONDS)


def _make_ready(app: Dash, store: Store, stopped: Callable[[], bool]) -> None:
    try:
        client = app.server.test_client()
        for path in FIRST:
            client.get(path, buffered=True)
        if store.keys and store.has_report() and (size := store.size()) <= LARGEST:
            pages = PAGES if size <= MAX_BYTES else [memory]
            make_pages(app, store, stopped, prefetcher_of(app).rest, pages)
        _make_reports_ready(prefetcher_of(app), store)
    except Exception:  # the page shows the error when it is opened
        logging.getLogger("tilescope").debug("no page is ready", exc_info=True)


def _make_reports_ready(prefetcher: Prefetcher, store: Store) -> None:
    """Begin the findings and laws of the reports that are kept open together, in their order."""
    size = 0
    for key in store.reports[:KEPT_OPEN]:
        size += store.size(key)
        if size > MAX_BYTES:
            return
        prefetcher.prepare(key)


def make_pages(
    app: Dash,
    store: Store,
    stopped: Callable[[], bool] = lambda: False,
    pause: Callable[[], None] = lambda: None,
    pages: Sequence[Page] = PAGES,
) -> None:
    """Lay out pages of the first report with their panels and plots; the store keeps them.

    Each but those of the first page waits for a rest.
    """
    registry = makers(app)
    for page in sorted(pages, key=lambda page: page is not memory):
        laid = [show(store, page.PATH, "", None)[0], drawer.place(Address(page.PATH))]
        views = _views(laid) if page.available(store, "") else ()
        for make in (registry[identifier] for identifier in views if identifier in registry):
            if page is not memory:
                pause()
            if stopped():
                return
            with suppress(PvaError):  # the page shows the error when it is opened
                make(store, Address(page.PATH), THEMES[0])


def _views(element: object) -> Iterator[str]:
    """Name the views in a layout."""
    if isinstance(element, list | tuple):
        for child in element:
            yield from _views(child)
        return
    identifier = getattr(element, "id", None)
    if isinstance(identifier, dict) and "view" in identifier:
        yield identifier["view"]
    yield from _views(getattr(element, "children", None) or ())
