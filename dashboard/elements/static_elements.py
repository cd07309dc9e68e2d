"""Elements that no callback changes: they go to the browser as plain ones, in one component.

Dash mounts a component of its own for every element of a layout and asks each of them at every step
of every callback whether it changed. Most of what a page shows changes as a whole or not at all:
`with_static_parts` puts those parts into `StaticElements` (assets/parts.js), which makes plain
elements of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import cast, overload

from dash.development.base_component import Component

from dashboard.elements.components import Element
from pva.json_types import Json

HTML, LINK = "dash_html_components", ("dash_core_components", "Link")
LINK_PROPERTIES = frozenset(("children", "href", "className", "title", "style"))
Node = Json  # text, or [tag, properties, node, ...]


class StaticElements(Component):  # type: ignore[misc]  # Dash has no types
    """Elements, each as its tag, its properties and what is in it."""

    _type, _namespace = "StaticElements", "tilescope_parts"
    _prop_names = ("nodes",)
    _valid_wildcard_attributes: tuple[str, ...] = ()
    _children_props: tuple[str, ...] = ()
    _base_nodes = ("children",)

    def __init__(self, nodes: list[Node]) -> None:
        """Take the elements, in their order.

        Dash's own `__init__` looks for a Python package of the name of the namespace each time.
        """
        self.nodes = nodes


@overload
def with_static_parts(element: list[Element]) -> list[Element]: ...
@overload
def with_static_parts(element: Element) -> Element: ...
def with_static_parts(element: Element) -> Element:
    """Put what no callback can change into `StaticElements`; the rest keeps its place."""
    if isinstance(element, list | tuple):
        return _grouped([_as_node(child) for child in element])
    return _grouped([_as_node(element)])[0]


def _grouped(parts: Iterable[tuple[bool, object]]) -> list[Element]:
    """Put neighbours that are nodes into one `StaticElements`; text alone needs none."""
    groups: list[Element] = []
    for still, run in groupby(parts, key=lambda part: part[0]):
        nodes = [part for _, part in run]
        plain = not still or all(isinstance(part, str) for part in nodes)
        groups += nodes if plain else [StaticElements(cast(list[Node], nodes))]
    return groups


def _as_node(element: Element) -> tuple[bool, object]:
    """Return an element as a node, or, when Dash has to know it, with the static parts in it."""
    if not isinstance(element, Component):
        is_text = element is None or isinstance(element, str | int | float)
        return is_text, "" if element is None else str(element) if is_text else element
    if isinstance(element, StaticElements) and len(element.nodes) == 1:
        return True, element.nodes[0]
    tag = _tag(element)
    inside = getattr(element, "children", None)
    children = inside if isinstance(inside, list | tuple) else [] if inside is None else [inside]
    if not tag and element._namespace != HTML:
        return False, element
    parts = [_as_node(child) for child in children]
    if tag and all(still for still, _ in parts):
        properties = element.to_plotly_json()["props"]
        properties.pop("children", None)
        return True, [tag, properties, *(node for _, node in parts)]
    if inside is not None:
        element.children = _grouped(parts)
    return False, element


def _tag(element: Component) -> str:
    """Return the tag of an element that no callback names; empty for others."""
    if getattr(element, "id", None) is not None:
        return ""
    if element._namespace == HTML:
        return str(element._type).lower()
    is_link = (element._namespace, element._type) == LINK
    return "link" if is_link and set(element.to_plotly_json()["props"]) <= LINK_PROPERTIES else ""
