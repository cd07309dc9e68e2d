"""Which laws of `pva.check` a report breaks: a mark on the pages whose figures they are about.

The laws of a large report take a second: they are checked when its first page has been shown, or
before, where `dashboard.prefetch` has come to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from dash import Dash, Input, Output, State, dcc, html
from dash.exceptions import PreventUpdate

from dashboard import view
from dashboard.address import Address
from dashboard.declared import page_at
from dashboard.elements import components
from dashboard.elements.components import Element
from dashboard.pages.headlines import counted
from dashboard.store import Store
from pva.check import LAWS, Law, Violation
from pva.plot.axes import shortened
from pva.plot.theme import THEMES, Theme

PANEL, LATER = "broken-laws", "broken-laws-later"
SOON = 1500  # milliseconds after a page was shown
MAX_LISTED, LONGEST = 12, 160  # laws below the mark, letters of a place or a value


def laws_of(path: str) -> tuple[str, ...]:
    """Return the beginnings of the tables and arrays whose figures a page shows."""
    page = page_at(path)
    return page.laws if page else ()


def place(store: Store, state: Address) -> list[Element]:
    """Show the mark on a page that shows figures of a report, or make room for it."""
    if not laws_of(state.path) or not store.has_report(state.report):
        return []
    if store.knows(state.report, PANEL):
        return [mark(store, state, THEMES[0])]
    return [view.panel(PANEL, state.path, ())]


def concerns(law: Law, path: str) -> bool:
    """Return whether a law is about a figure that the page at this path shows."""
    return any(need.startswith(laws_of(path)) for need in law.needs)


def breaches(store: Store, key: str) -> list[tuple[Law, list[Violation]]]:
    """Return the laws that a report breaks, each with its breaches; raises PvaError."""

    def find() -> list[tuple[Law, list[Violation]]]:
        pairs = ((law, _breaches_of(store, key, law)) for law in LAWS)
        return [(law, broken) for law, broken in pairs if broken]

    return store.derived(key, PANEL, find)


def _breaches_of(store: Store, key: str, law: Law) -> list[Violation]:
    """Check a report by a law, once; raises PvaError."""
    name = f"law {law.name}"
    return store.derived(key, name, lambda: law.broken_by(store.report(key).dataset))


def parts(store: Store, key: str) -> Iterator[Callable[[], object]]:
    """Return what makes `breaches`, a part for each law."""
    for law in LAWS:
        yield partial(_breaches_of, store, key, law)
    yield partial(breaches, store, key)


def mark_or_wait(store: Store, state: Address, theme: Theme) -> Element:
    """Show the mark where the laws were checked before; else have the browser ask for it soon."""
    if store.has_report(state.report) and not store.knows(state.report, PANEL):
        return dcc.Interval(id=LATER, interval=SOON)
    return mark(store, state, theme)


def mark(store: Store, state: Address, theme: Theme) -> Element:
    """Return which laws the figures of this page break; nothing where all hold."""
    del theme
    if not store.has_report(state.report) or not laws_of(state.path):
        return None
    pairs = breaches(store, state.report)
    broken = [(law, breach) for law, breach in pairs if concerns(law, state.path)]
    if not broken:
        return None
    words = counted(len(broken), "law") + (" is" if len(broken) == 1 else " are")
    remainder = len(broken) - MAX_LISTED
    tail = [html.Li(f"and {counted(remainder, 'more law')}")] if remainder > 0 else []
    return html.Details(
        [
            html.Summary(f"Figures of this page contradict others of the report: {words} broken."),
            html.Ul([*(_row(*pair) for pair in broken[:MAX_LISTED]), *tail]),
            html.P(["All of them: ", html.Code("tilescope check REPORT")], className="quiet"),
        ],
        className="broken-laws",
    )


def _row(law: Law, broken: list[Violation]) -> Element:
    first, places = broken[0], sum(one.count for one in broken)
    actual, expected, where = (
        shortened(text, LONGEST) for text in (first.found, first.wanted, first.place)
    )
    tail = f" ({places:,} places)" if places > 1 else ""
    return html.Li([html.Strong(law.meaning), f" {where}: {actual}, expected {expected}{tail}."])


def register(app: Dash, store: Store, awaits: Callable[[str], bool]) -> None:
    """Add the callbacks of the mark; the browser asks again for a source that something awaits."""

    def mark_later(store: Store, state: Address, theme: Theme) -> Element:
        key = state.report or store.keys[0]
        if awaits(key) and not store.knows(key, PANEL):
            raise PreventUpdate
        return mark(store, state, theme)

    view.fill(app, store, PANEL, mark_or_wait, keep=False)
    later = components.or_fault(view.following(store, mark_later))

    def asked_later(_: object, seen: dict[str, object] | None) -> object:
        return view.or_empty(later(seen))

    app.callback(
        Output(PANEL, "children", allow_duplicate=True),
        Input(LATER, "n_intervals"),
        State({"view": PANEL}, "data"),
        prevent_initial_call=True,
    )(asked_later)
