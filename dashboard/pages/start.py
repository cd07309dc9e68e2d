"""Which report do I want to see?"""

from __future__ import annotations

from dash import Dash, dcc, html

from dashboard import address, components
from dashboard.address import Address
from dashboard.components import Element, section
from dashboard.pages.words import counted
from dashboard.store import Store

PATH, TITLE = "/", "Start"


def available(store: Store, report: str) -> bool:
    """Tell that this page needs no report."""
    return True


def layout(store: Store, chosen: Address) -> Element:
    """Lay the page out."""
    store.scan()
    links = [html.Li(dcc.Link(key, href=summary_link(key))) for key in store.keys]
    return html.Div(
        [
            components.title("Which report do you want to see?"),
            components.headline(f"{counted(len(links), 'report')} under the paths given."),
            section("Reports", html.Ul(links, className="reports")),
        ]
    )


def summary_link(key: str) -> str:
    """Give the link to the first page of a report."""
    return address.write(Address("/summary", key))


def register(app: Dash, store: Store) -> None:
    """Nothing on this page changes by itself."""
