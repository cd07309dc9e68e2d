"""The parts of a page that were made before come with it, in one answer.

By itself the browser lays out a page, asks for each of its parts, and lays out each answer. What is
kept of an earlier visit, or was made before the first (dashboard/warm_up.py), needs none of that.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, quote_plus

from dash import dcc
from dash._utils import to_json
from orjson import Fragment

from dashboard import address, preferences
from dashboard.elements import components
from dashboard.elements.components import Element
from dashboard.store import Store
from dashboard.view import Make, is_kept, seen_theme

MAX_BYTES = 250_000  # of the parts that come with a page
View = dict[str, Any]  # the data of a view (dashboard/view.py)


@dataclass(frozen=True, slots=True)
class Parts:
    """Where the parts of a page come from: what makes them, and what the browser shows."""

    store: Store
    makers: dict[str, Make]
    search: str
    stamp: str
    lacking: list[str] = field(default_factory=list)  # parts that are not kept
    sizes: list[int] = field(default_factory=list)  # of the parts that come, as JSON

    def filled(self, element: Any) -> Any:
        """Return an element with its parts in it; the element itself stays as it is."""
        if isinstance(element, list | tuple):
            return self._filled_list(element)
        children = getattr(element, "children", None)
        if children is None or isinstance(children, str):
            return element
        inside = self.filled(children)
        if inside is children or _is_same(inside, children):
            return element
        element = copy(element)
        element.children = inside
        return element

    def _filled_list(self, elements: list[Any] | tuple[Any, ...]) -> list[Any]:
        parts = [self.filled(each) for each in elements]
        for place, each in enumerate(parts):
            identifier = getattr(each, "id", None)
            if not (isinstance(identifier, dict) and "view" in identifier):
                continue
            name = identifier["view"]
            view = follow(each.data, self.search, self.stamp)
            content = self._kept(name, view)
            if content is None and name in self.makers:
                self.lacking.append(name)
            if view is None or content is None:
                continue
            text = to_json(self.filled(content))
            if sum(self.sizes) + len(text) <= MAX_BYTES:  # else the browser asks for it beside them
                self.sizes.append(len(text))
                parts[place] = dcc.Store(id=identifier, data=view)
                parts = [_with(part, name, Fragment(text)) for part in parts]
        return parts

    def _kept(self, name: str, view: View | None) -> Element | None:
        """Return a part that is kept; None where it is not, or its address has a fault."""
        make = self.makers.get(name)
        if view is None or make is None:
            return None
        state, faults = address.parse_leniently(view["path"], view["search"])
        theme = seen_theme(view)
        try:
            if faults or not is_kept(self.store, state, (name, theme)):
                return None
            preferences.clocked(self.store, state.report)
            return make(self.store, state, theme)
        except components.EXPECTED:  # the part's own callback says what is wrong
            return None


def follow(view: View, search: str, stamp: str) -> View | None:
    """Return the data of a view once it follows an address, as `viewOf` of assets/views.js does.

    None where the address chooses an object that a key of the page may choose, too.
    """
    if view.get("fixed"):
        return view | {"told": True}
    asked = dict(reversed(parse_qsl(search.removeprefix("?"))))
    keys = view["keys"]
    if "object" in asked and "object!" in keys:
        return None
    names = [key.removesuffix("!") for key in keys]
    part = "&".join(f"{name}={_quoted(asked[name])}" for name in names if name in asked)
    data = view | {"search": part, "stamp": stamp}
    return data | {"theme": preferences.chosen_theme()} if view.get("themed") else data


def _quoted(text: str) -> str:
    """Write a value as URLSearchParams does (url.spec.whatwg.org, urlencoded serializing)."""
    return quote_plus(text, safe="*").replace("~", "%7E")


def _with(element: Element, name: str, content: Fragment) -> Element:
    """Return an element with its content where it is the place of this name."""
    if getattr(element, "id", None) != name:
        return element
    element = copy(element)
    setattr(element, "figure" if isinstance(element, dcc.Graph) else "children", content)
    return element


def _is_same(one: object, other: object) -> bool:
    """Return whether two lists hold the same elements."""
    return (
        isinstance(one, list)
        and isinstance(other, list)
        and len(one) == len(other)
        and all(a is b for a, b in zip(one, other, strict=True))
    )
