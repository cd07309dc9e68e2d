"""The place on a page that assets/timeline.js fills."""

from __future__ import annotations

from dash import ClientsideFunction, Dash, Input, Output, html

from dashboard.elements.components import Element

KEYS_HELP = (
    "Wheel, two fingers or W and S zoom, drag or A and D pan, double click zooms to an event, "
    "Shift and drag choose a range, F fits what is chosen, M marks, / searches, N and P choose the "
    "next and the previous."
)
# What of the address a click sets, and what the events of a source are called.
SELECTS = {
    "device": ("step", "steps and spans"),
    "host": ("event", "events"),
    "together": ("at", "events and steps"),
}


def canvas(source: str, words: str, *, tiles: int = 0) -> Element:
    """Make room for the timeline of `device`, `host` or `together`, and an image of `tiles`."""
    selects, events = SELECTS[source]
    attributes = {"data-tiles": str(tiles)} if tiles else {}
    attributes |= {"data-axes": "yes"} if source == "together" else {}
    return html.Div(
        [
            html.Div(
                id=f"{source}-timeline",
                className="timeline",
                **{
                    "data-source": source,
                    "data-selects": selects,
                    "data-events": events,
                    "data-words": f"{words}. {KEYS_HELP}",
                    **attributes,
                },
            ),
            html.P(KEYS_HELP, className="keys-help"),
        ]
    )


def follow(app: Dash, source: str) -> None:
    """Register what attaches the canvas when its place appears, and follows address and theme.

    The output is on the page, so that Dash runs this nowhere else.
    """
    app.clientside_callback(
        ClientsideFunction("tilescope", "timeline"),
        Output(f"{source}-timeline", "data-shows"),
        Input(f"{source}-timeline", "id"),
        Input("address", "search"),
        Input("theme", "data"),
        Input("shown", "data"),
    )
