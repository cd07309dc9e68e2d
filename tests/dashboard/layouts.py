"""What the tests of pages read out of a layout: its texts, and its parts by id."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dashboard.elements.static_elements import StaticElements


def words(element: Any) -> str:
    """Collect the texts of a layout."""
    if element is None:
        return ""
    if isinstance(element, str):
        return element
    if isinstance(element, list | tuple):
        return _joined(map(words, element))
    if isinstance(element, StaticElements):
        return _joined(map(_words_of_node, element.nodes))
    return words(getattr(element, "children", None))


def _words_of_node(node: Any) -> str:
    if isinstance(node, str):
        return node
    return _joined(map(_words_of_node, node[2:]))


def _joined(texts: Iterator[str]) -> str:
    return " ".join(filter(None, texts))


def parts(element: Any) -> Iterator[Any]:
    """Return an element and all that lies in it."""
    if isinstance(element, list | tuple):
        for each in element:
            yield from parts(each)
    elif element is not None and not isinstance(element, str | int | float):
        yield element
        yield from parts(getattr(element, "children", None))


def grid(element: Any, identifier: str) -> Any:
    """Return the part of a layout that has an id."""
    return next(part for part in parts(element) if getattr(part, "id", None) == identifier)
