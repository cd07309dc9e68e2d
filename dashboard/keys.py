"""The keys, and the sheet that `?` shows; assets/controls.js acts on them."""

from __future__ import annotations

from collections.abc import Sequence

from dash import html

from dashboard.declared import Declaration
from dashboard.elements.components import Element

# Keys and what they do, by where they work.
SHORTCUTS: dict[str, tuple[tuple[str, str], ...]] = {
    "Everywhere": (
        ("1 … 9", "Open one of the first nine pages of the menu"),
        ("b", "Fold the menu to its icons, or unfold it"),
        ("[  ]", "Previous and next tab"),
        ("/", "Filter"),
        ("t", "Type tiles or steps, as in 3, 17, 100-120"),
        ("c", "Clear what is chosen"),
        ("Escape", "Close the drawer"),
        ("o", "Choose a report"),
        ("e", "Save data or plot"),
        ("u", "Units"),
        ("l", "Light or dark"),
        ("r", "Reload the files"),
        ("h", "Help on this page"),
        ("?", "Show or hide this sheet"),
    ),
    "In a plot": (
        ("p", "Go to the plot"),
        ("←  →", "Choose the previous or the next; on a map also ↑  ↓"),
        ("Shift ←  →", "Add it to what is chosen"),
        ("Click, Shift click", "Choose one, add one"),
        ("Drag", "Choose a range; with Shift, add it"),
        ("+  −  0", "Show it larger, smaller, in whole"),
        ("z", "Type a magnification"),
        ("Ctrl wheel", "Show it larger or smaller at the pointer"),
        ("Double click", "Show all again after zooming"),
    ),
    "On the strip above a plot": (
        ("←  →, +  −, 0", "Move what the plot shows, change it, show all"),
        ("Wheel, drag", "Change it; drag its ends or its middle"),
    ),
    "In a table": (
        ("↑  ↓, ←  →", "Go from cell to cell, from a heading to its column"),
        ("Enter", "Choose the row; on a heading, sort by it"),
        ("Tab", "Leave the table"),
    ),
    "In the program tree": (
        ("↑  ↓", "Go to the previous or the next line"),
        ("←  →", "Close or open what is in it"),
        ("Enter", "Choose it; in the search box, choose the next found"),
        ("Shift Enter", "In the search box, choose the one found before"),
        ("s", "Show the other stage: as compiled, as written"),
    ),
    "In the documentation": (
        ("Enter, Shift Enter", "In the search box, go to the next or the previous section found"),
        ("n  p", "The same, outside of the box"),
    ),
    "On the grip between two panes": (("↑  ↓", "Move it"),),
    "In a timeline": (
        ("w  s", "Zoom in and out at the pointer; so do the wheel and two fingers"),
        ("a  d, ←  →", "Move to earlier and later; so does dragging, also with a finger"),
        ("↑  ↓", "Scroll the lanes"),
        ("Home", "Show all"),
        ("f", "Fit what is chosen"),
        ("n  p", "Choose the next and the previous"),
        ("/, [  ]", "Search names, previous and next match"),
        ("Only steps named", "Draw only steps with this text, !~text without it, =name of it"),
        ("m", "Mark the place of the pointer, or take the mark away"),
        ("x", "Switch the axis of device and host"),
        ("Shift drag", "Choose a range"),
        ("Double click", "Zoom to an event"),
        ("Esc", "Let go of what is chosen"),
    ),
}


def sheet(pages: Sequence[Declaration]) -> Element:
    """Lay the keys out in a dialog, those that open pages first."""
    rows = [
        html.Tr(
            [
                html.Th([html.Kbd("g"), " ", html.Kbd(page.letter)], scope="row"),
                html.Td([page.title, " ", html.Code(page.path)]),
            ],
            **{"data-key": page.letter, "data-page": page.path},
        )
        for page in pages
    ]
    parts = [html.Div([html.H3("Pages"), html.Table(html.Tbody(rows), className="keys")])]
    for where, keys in SHORTCUTS.items():
        rows = [html.Tr([html.Th(html.Kbd(key), scope="row"), html.Td(does)]) for key, does in keys]
        parts.append(html.Div([html.H3(where), html.Table(html.Tbody(rows), className="keys")]))
    close = html.Button("Close", className="button", **{"data-sheet": "close"})
    head = html.Div([html.H2("Keys"), close], className="sheet-head")
    return html.Dialog(
        [head, html.Div(parts, className="sheet-body")], id="keys-sheet", className="sheet",
        **{"aria-label": "Keys"},
    )  # fmt: skip
