"""What stands around every page: header, navigation, skip link, and where the page goes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

import dash_mantine_components as dmc
from dash import dcc, html

from dashboard import address
from dashboard.address import Address
from dashboard.components import Element
from dashboard.store import Store
from dashboard.theme import FONT, Theme
from pva.errors import PvaError

WATCH_MILLISECONDS = 5000  # how often the files of the report are looked at


class Page(Protocol):
    """What a module in `dashboard.pages` has."""

    PATH: str
    TITLE: str

    def available(self, store: Store, report: str) -> bool:
        """Tell whether the report has what the page shows."""

    def layout(self, store: Store, chosen: Address) -> Element:
        """Lay the page out; raises PvaError."""

    def register(self, app: Any, store: Store) -> None:
        """Add the callbacks of the page."""


def shell(store: Store, theme: Theme) -> Element:
    """Lay out the whole window; the router fills `page`, `navigation` and `target`."""
    return dmc.MantineProvider(
        [
            dcc.Location(id="address", refresh=False),
            dcc.Store(id="theme", data=theme),
            dcc.Store(id="shown"),
            dcc.Interval(id="watch", interval=WATCH_MILLISECONDS),
            html.A("Skip to the page", href="#page", className="skip"),
            _header(store),
            html.Div(
                [
                    html.Div(
                        html.Nav(
                            id="navigation", className="navigation", **{"aria-label": "Pages"}
                        ),
                        className="side",
                    ),
                    html.Main(id="page", className="page", tabIndex="-1"),
                ],
                className="body",
            ),
        ],
        id="provider",
        forceColorScheme=theme,
        theme={"fontFamily": FONT, "primaryColor": "blue", "defaultRadius": "sm"},
    )


def _header(store: Store) -> Element:
    keys = store.keys
    choice: Element = dmc.Select(
        id="report-choice",
        data=keys,
        allowDeselect=False,
        size="xs",
        searchable=len(keys) > 8,
        className="report-choice",
        **{"aria-label": "Report"},
    )
    return html.Header(
        [
            html.Span([html.Span(className="mark"), "tilescope"], className="brand"),
            html.Div(choice, className="report-choices" if len(keys) > 1 else "hidden"),
            html.Span(id="report-name", className="report-name"),
            html.Span(id="target", className="target"),
            html.Button(
                html.Span(className="theme-icon"),
                id="theme-switch",
                className="icon-button",
                title="Light or dark",
                **{"aria-label": "Switch between light and dark"},
            ),
        ],
        className="header",
    )


def navigation(pages: Sequence[Page], store: Store, chosen: Address) -> list[Element]:
    """List the pages that this report can fill; the link keeps the report and the tile."""
    kept = Address(report=chosen.report, tile=chosen.tile)
    return [
        dcc.Link(
            page.TITLE,
            href=address.write(replace(kept, path=page.PATH)),
            className="nav-link active" if chosen.path == page.PATH else "nav-link",
        )
        for page in pages
        if chosen.path == page.PATH or _can_fill(page, store, chosen.report)
    ]


def _can_fill(page: Page, store: Store, report: str) -> bool:
    try:
        return page.available(store, report)
    except PvaError:
        return False
