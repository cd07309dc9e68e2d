"""The pages of the dashboard as data: elements, tables and figures, made by the pages themselves.

A page is laid out as for a browser; what its callbacks would fill is filled here (`view.makers`,
`tables.served`). Where a choice of the reader changes a part, the part is made for each of them. An
element is text or [tag, properties, child, ...], as in `elements.static_elements`; our own tags:

    @view      parts by what is chosen: {keys, made: {"tab=labels": [light, dark]}}
    @choice    buttons that set a key of the address: {key, options: [[value, words], ...]}
    @figure    a figure by its number; @table  a table by its number
    @timeline  a canvas: {source, ...}; @chosen  what is selected there: {source}
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any
from urllib.parse import urlencode

from dash import Dash
from dash.development.base_component import Component

from dashboard import address, tables, view
from dashboard.address import Address
from dashboard.elements import components
from dashboard.elements.static_elements import StaticElements
from dashboard.export import packed
from dashboard.pages import PAGES
from dashboard.shell import Page
from dashboard.store import Store
from pva.json_types import Json
from pva.plot.theme import THEMES, Theme

Node = Json  # text, or [tag, properties, node, ...]

MAX_ROWS = 1000  # of a table
# The pages, and the choices of each that the file has; none named: all that the page offers.
EXPORTED: dict[str, dict[str, tuple[str, ...]]] = {
    "/summary": {"tab": ()},
    "/insights": {"tab": ()},
    "/memory": {"graph": ("total", "map"), "breakdown": (), "tab": ()},
    "/liveness": {"show": (), "tab": ()},
    "/operations": {"layer": ()},
    "/execution": {"tab": ()},
    "/trace": {"tab": ()},
}
# Views that only a server can fill: what follows a drag, a click on a row, or a zoom.
LEFT_OUT = frozenset(
    ("memory-overview", "liveness-overview", "liveness-peak", "operations-details")
)
# What the page itself works out of the timeline.
CHOSEN = {"execution-range": "device", "trace-event": "host"}
NO_SERVER = ("exports", "grip", "preferences")  # classes of what downloads, drags or asks
# What clicks and drags do where a server answers them: clauses of notes that the file leaves out.
CLICKS = ("click a step", "click an IPU", "Shift-click", "drag to choose a range")
SWITCH = " The switch above draws it."  # the critical path, which the file does not have
CONTROLS = ("SegmentedControl", "Select")


@dataclass(slots=True)
class Kept:
    """Parts, figures and tables of a file, each once, by number."""

    parts: list[bytes] = field(default_factory=list)
    figures: list[bytes] = field(default_factory=list)
    tables: list[bytes] = field(default_factory=list)
    _places: dict[bytes, int] = field(default_factory=dict)

    def number(self, kind: str, data: bytes) -> int:
        """Return the number of a part, a new one where it was not seen before."""
        parts: list[bytes] = getattr(self, kind)
        key = kind.encode() + hashlib.sha256(data).digest()
        if key not in self._places:
            self._places[key] = len(parts)
            parts.append(data)
        return self._places[key]


def exported_pages(app: Dash, store: Store, key: str) -> Iterator[Page]:
    """Return the pages that a source has."""
    for page in PAGES:
        if page.PATH in EXPORTED and _is_there(page, store, key):
            yield page


def _is_there(page: Page, store: Store, key: str) -> bool:
    try:
        return bool(page.available(store, key))
    except components.EXPECTED:
        return False


def page_document(
    app: Dash, store: Store, page: Page, key: str, archive: Kept
) -> dict[str, object]:
    """Lay a page out and fill it, for each of its choices; raises PvaError."""
    making = _Making(app, store, page.PATH, key, archive)
    nodes = making.node(page.layout(store, making.state({})), THEMES[0], {})  # learns the choices
    making.learning = False
    nodes = making.node(page.layout(store, making.state({})), THEMES[0], {})
    return {"path": page.PATH, "title": page.TITLE, "choices": making.choices, "nodes": nodes}


class _Making:
    """A page in the making: the choices it offers, and on which keys its views depend."""

    def __init__(self, app: Dash, store: Store, path: str, key: str, archive: Kept) -> None:
        self.store, self.path, self.key, self.held = store, path, key, archive
        self.makers = view.makers(app)
        self.served = tables.served(app.server)
        self.varied = EXPORTED[path]
        self.choices: dict[str, list[tuple[str, str]]] = {}
        self.keys: dict[str, list[str]] = {}
        self.learning = True

    def state(self, choices: dict[str, str]) -> Address:
        """Return the address of this page with some choices."""
        state: Address = address.parse(self.path, urlencode({"report": self.key, **choices}))
        return state

    def node(self, element: object, theme: Theme, choices: dict[str, str]) -> Node:
        """Return an element as data; None for what the file leaves out."""
        if element is None or isinstance(element, str | int | float):
            return "" if element is None else str(element)
        if isinstance(element, list | tuple):
            return ["@parts", {}, *self._nodes(element, theme, choices)]
        if isinstance(element, StaticElements):
            return ["@parts", {}, *(node for node in map(_without_server, element.nodes) if node)]
        return self._component(element, theme, choices)

    def _nodes(self, elements: Any, theme: Theme, choices: dict[str, str]) -> list[Node]:
        nodes = (self.node(element, theme, choices) for element in elements)
        return [node for node in nodes if node not in (None, "")]

    def _component(self, element: Component, theme: Theme, choices: dict[str, str]) -> Node:
        properties = dict(element.to_plotly_json()["props"])
        inside = properties.pop("children", None)
        identity, kind = properties.pop("id", None), str(element._type)
        if isinstance(identity, dict):
            return self._control(element, identity, properties, inside)
        if identity in LEFT_OUT or _is_for_server(properties.get("className", "")):
            return None
        if identity in CHOSEN:
            return ["@chosen", {"source": CHOSEN[str(identity)]}]
        if identity in self.makers:
            return self._view(str(identity), choices, theme)
        if kind == "AgGrid":
            return self._table(str(identity), properties, choices)
        if kind == "Graph":
            return ["@figure", {"number": self._figure(properties["figure"])}]
        if "timeline" in str(properties.get("className", "")).split():
            properties.pop("data-tiles", None)
            return ["@timeline", properties]
        if element._namespace not in ("dash_html_components", "dash_core_components"):
            return None
        if properties.get("className") == "note" and isinstance(inside, str):
            inside = _without_clicks(inside)
        children = inside if isinstance(inside, list | tuple) else [inside]
        self._note_keys(children)
        nodes = self._nodes(children, theme, choices)
        if not nodes and inside is not None and kind != "Span" and identity is None:
            return None  # all that was in it is left out
        return [kind.lower(), properties, *nodes]

    def _note_keys(self, children: Any) -> None:
        """Note on which keys a view depends, which stands beside it."""
        for child in children:
            identity = getattr(child, "id", None)
            if isinstance(identity, dict) and "view" in identity:
                self.keys[identity["view"]] = [*child.data["keys"]]

    def _control(
        self, element: Component, identity: Any, properties: dict[str, Any], inside: Any
    ) -> Node:
        """Return the buttons of a choice that the file has; None for other controls."""
        key, kind = identity.get("address"), str(element._type)
        if key not in self.varied:
            return None
        if kind in CONTROLS:
            offered = [(option["value"], option["label"]) for option in properties["data"]]
        elif kind == "Tabs":
            offered = [
                (tab.value, _words(tab.children))
                for tab in inside.children
                if not getattr(tab, "disabled", False)
            ]
        else:
            return None
        values = self.varied[key]
        offered = [pair for pair in offered if not values or pair[0] in values]
        if self.learning:
            self.choices[key] = offered
        if len(offered) < 2:
            return None
        return ["@choice", {"key": key, "options": offered, "tabs": kind == "Tabs",
                            "label": properties.get("aria-label", key)}]  # fmt: skip

    def _view(self, identity: str, choices: dict[str, str], theme: Theme) -> Node:
        """Fill a view for each choice that it depends on."""
        depends = [key for key in self.choices if key in self.keys.get(identity, ())]
        if self.learning:
            self._filled(identity, choices, theme)
            return ["@view", {}]
        variants = {}
        for values in product(*([value for value, _ in self.choices[key]] for key in depends)):
            now = choices | dict(zip(depends, values, strict=True))
            name = "&".join(f"{key}={now[key]}" for key in depends)
            variants[name] = [
                self.held.number("parts", packed.document(self._filled(identity, now, scheme)))
                for scheme in THEMES
            ]
        return ["@view", {"id": identity, "keys": depends, "made": variants}]

    def _filled(self, identity: str, choices: dict[str, str], theme: Theme) -> Node:
        try:
            content = self.makers[identity](self.store, self.state(choices), theme)
        except components.EXPECTED as fault:
            return ["p", {"className": "note"}, str(fault)]
        if hasattr(content, "to_plotly_json") and not isinstance(content, Component):
            return ["@figure", {"number": self._figure(content)}]
        return self.node(content, theme, choices) or ""

    def _figure(self, figure: object) -> int:
        text = figure.to_json() if hasattr(figure, "to_json") else json.dumps(figure)
        return self.held.number("figures", str(text).encode(errors="replace"))

    def _table(self, identity: str, properties: dict[str, Any], choices: dict[str, str]) -> Node:
        """Keep the rows of a table, those that a server would send included."""
        rows, count = properties.get("rowData"), None
        if rows is None and identity in self.served and not self.learning:
            rows, count = self._rows(identity, properties["columnDefs"], choices)
        rows = rows or []
        pinned = properties.get("dashGridOptions", {}).get("pinnedTopRowData") or []
        heads = [
            _heading(definition)
            for definition in properties["columnDefs"]
            if not definition.get("hide")
        ]
        fields = [head["field"] for head in heads]
        extra = sorted({name for row in rows[:1] for name in row if _is_extra(name, fields)})
        document = {
            "columns": heads,
            "rows": [_cells(row, fields) for row in rows],
            "pinned": [_cells(row, fields) for row in pinned],
            "extra": {name: [row.get(name) for row in rows] for name in extra},
            "count": len(rows) if count is None else count,
        }
        return ["@table", {"number": self.held.number("tables", packed.document(document))}]

    def _rows(
        self, identity: str, definitions: list[dict[str, Any]], choices: dict[str, str]
    ) -> tuple[list[Any], int]:
        order = [
            {"colId": definition["field"], "sort": definition["sort"]}
            for definition in definitions
            if definition.get("sort")
        ]
        search = address.write(self.state(choices)).partition("?")[2]
        query = {"search": search, "startRow": 0, "endRow": MAX_ROWS, "sortModel": order}
        answer = json.loads(self.served[identity](query))
        return answer["rowData"], answer["rowCount"]


def _words(element: object) -> str:
    return str(getattr(element, "children", element))


def _heading(definition: dict[str, object]) -> dict[str, Any]:
    return {
        "field": definition["field"],
        "title": definition.get("headerName", ""),
        "note": definition.get("headerTooltip", ""),
        "right": definition.get("type") == "rightAligned",
        "share": "share" in str(definition.get("cellClass", "")),
        "branch": definition.get("cellRenderer") == "Branch",
    }


def _is_extra(name: str, fields: list[str]) -> bool:
    """Return whether a field of a row is for clicks and trees alone."""
    return name not in fields and not name.endswith("_text")


def _cells(row: dict[str, Any], fields: list[str]) -> list[Any]:
    """Return the cells of a row: a text, or a number with its text."""
    return [
        [row.get(name), row[f"{name}_text"]] if f"{name}_text" in row else row.get(name)
        for name in fields
    ]


def _without_clicks(note: str) -> str:
    """Leave out of a note what only a server answers."""
    parts = [part for clause in note.split("; ") for part in clause.split(", ")]
    if not any(part.startswith(CLICKS) for part in parts):
        return note
    return "; ".join(part for part in parts if not part.startswith(CLICKS))


def _is_for_server(classes: object) -> bool:
    return any(name in NO_SERVER for name in str(classes or "").split())


def _without_server(node: Node) -> Node:
    """Leave out of settled elements what needs a server."""
    if not isinstance(node, list):
        return str(node).replace(SWITCH, "")
    tag, properties, *inside = node
    if _is_for_server(properties.get("className")):
        return None
    return [tag, properties, *filter(None, map(_without_server, inside))]
