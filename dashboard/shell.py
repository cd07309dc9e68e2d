"""What stands around every page: header, navigation, skip link, and where the page goes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import dash_mantine_components as dmc
from dash import dcc, html

from dashboard import address, keys, preferences, slots
from dashboard.address import Address
from dashboard.declared import Declaration, declared
from dashboard.elements import static_elements
from dashboard.elements.components import Element
from dashboard.elements.icons import PATHS, icon
from dashboard.store import Store
from pva.errors import PvaError
from pva.plot.theme import FONT, Theme

WATCH_MILLISECONDS = 5000  # how often the files of the report are looked at
BUSY = "Opening the report"  # shown while an answer takes longer than a moment


class Page(Protocol):
    """What a module in `dashboard.pages` has."""

    PATH: str
    TITLE: str
    PAGE: Declaration

    def available(self, store: Store, report: str) -> bool:
        """Return whether the report has what the page shows."""

    def layout(self, store: Store, state: Address) -> Element:
        """Lay the page out; raises PvaError."""

    def register(self, app: object, store: Store) -> None:
        """Add the callbacks of the page."""


def shell(store: Store, theme: Theme) -> Element:
    """Lay out the whole window; the router fills slots, `navigation`, `target` and `notice`."""
    return dmc.MantineProvider(
        [
            dcc.Location(id="address", refresh=False),
            dcc.Store(id="theme", data=theme),
            dcc.Store(id="writing", data={"sizes": preferences.sizes(),
                                          "cycles": preferences.cycles(),
                                          "runs": preferences.runs()}),
            dcc.Store(id="place"),
            dcc.Store(id="kept", data={}),
            dcc.Store(id="stamped"),
            dcc.Store(id="recent", storage_type="local"),
            dcc.Interval(id="watch", interval=WATCH_MILLISECONDS),
            *static_elements.with_static_parts([
                html.A("Skip to the page", href="#page", className="skip"),
                _header(store),
                html.Div(html.Div(BUSY, className="busy-words"), id="busy", className="idle",
                         role="status"),
                html.Div([_side(), _main()], className="body"),
                html.Div(id="notice", className="notice", role="status"),
                keys.sheet(declared()),
            ]),
        ],
        id="provider",
        forceColorScheme=theme,
        theme={"fontFamily": FONT, "primaryColor": "blue", "defaultRadius": "sm"},
    )  # fmt: skip


def _main() -> Element:
    """Make room for the pages, for what stands above each of them, and for the drawer."""
    around = [html.Div(id=name, className="around") for name in ("page-above", "page-aside")]
    parts = [around[0], *slots.slots(), around[1]]
    return html.Main(parts, id="page", className="page", tabIndex="-1")


def _side() -> Element:
    """Lay out the menu and what is below it; assets/menu.js folds it to its icons."""
    menu = html.Nav(id="navigation", className="navigation", **{"aria-label": "Pages"})
    again = html.Button(
        [icon(PATHS["reload"]), "Reload"], id="reload", className="side-button",
        title="Read the files of the report again (r)",
    )  # fmt: skip
    fold = html.Button(
        [icon(PATHS["fold"]), "Fold the menu"], className="side-button fold-menu",
        title="Icons alone, or with their words (b)", **{"aria-controls": "navigation"},
    )  # fmt: skip
    return html.Div([menu, again, fold], className="side")


def _header(store: Store) -> Element:
    names = store.keys
    choice: Element = dmc.Select(
        id="report-choice",
        data=names,
        allowDeselect=False,
        size="xs",
        searchable=len(names) > 8,
        className="report-choice",
        **{"aria-label": "Report"},
    )
    return html.Header(
        [
            dcc.Link([html.Span(className="mark"), "tilescope"], href="/", className="brand",
                     title="Start"),
            html.Div(choice, className="report-choices" if len(names) > 1 else "hidden"),
            html.Span(id="report-name", className="report-name"),
            html.Span(id="target", className="target"),
            _counted_runs(),
            html.Div(
                [_preferences(),
                 _button("?", title="Keys (?)", **{"data-sheet": "open", "aria-label": "Keys"}),
                 _button(html.Span(className="theme-icon"), id="theme-switch",
                         title="Light or dark (l)",
                         **{"aria-label": "Switch between light and dark"})],
                className="header-tools",
            ),
        ],
        className="header",
    )  # fmt: skip


def _counted_runs() -> Element:
    """Choose which runs all pages count; shown where a report has runs of set-up."""
    options = [{"value": value, "label": words} for value, words in preferences.RUN_WORDS.items()]
    choice: Element = dmc.Select(
        id="runs-choice",
        data=options,
        value=preferences.runs(),
        allowDeselect=False,
        size="xs",
        w=130,
        **{"aria-label": "Runs that all pages count"},
    )
    return html.Div([html.Span("Counted"), choice], className="counted-runs")


def _button(words: Element, **properties: object) -> Element:
    return html.Button(words, className="icon-button", **properties)


def _preferences() -> Element:
    """Choose how all pages write bytes and cycles."""
    choices = (
        ("sizes-choice", "Bytes in", preferences.SIZE_WORDS, preferences.sizes()),
        ("cycles-choice", "Cycles as", preferences.CYCLE_WORDS, preferences.cycles()),
    )
    groups = [
        dmc.RadioGroup(
            [dmc.Radio(label=words, value=value, size="xs") for value, words in options.items()],
            id=identifier,
            label=label,
            value=now,
            size="xs",
            className="preference",
        )
        for identifier, label, options, now in choices
    ]
    summary = html.Summary("Units", title="How bytes and cycles are written (u)")
    return html.Details([summary, html.Div(groups, className="menu")], className="preferences")


def navigation(pages: Sequence[Page], store: Store, state: Address) -> list[Element]:
    """List the pages that this report can fill; the link keeps the reports and the tiles."""
    base = Address(report=state.report, against=state.against, tiles=state.tiles)
    return [
        dcc.Link(
            [icon(page.PAGE.icon), page.TITLE],
            href=address.write(replace(base, path=page.PATH)),
            className="nav-link active" if state.path == page.PATH else "nav-link",
            title=f"Keys: g {page.PAGE.letter}",
        )
        for page in pages
        if state.path == page.PATH or _can_fill(page, store, state.report)
    ]


def _can_fill(page: Page, store: Store, report: str) -> bool:
    try:
        return page.available(store, report)
    except PvaError:
        return False
