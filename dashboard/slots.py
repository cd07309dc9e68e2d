"""Where pages stand in the window: each in a slot of its own, which keeps it for the next visit.

A page that a reader comes back to is there at once, as it was left: with its plots, its tables and
their callbacks. What is not shown is no part of the document (assets/parts.js), so that nothing
looks for it, draws it or leads to it; what the address says goes to it when it is shown again.
"""

from __future__ import annotations

from typing import Any

from dash.development.base_component import Component

from dashboard.declared import declared

ELSEWHERE = ""  # the slot of what is no page, and of a page that cannot be shown
Place = dict[str, Any]  # what is shown: a page, of which reports and files


class Slot(Component):  # type: ignore[misc]  # Dash has no types
    """Room for the page at a path."""

    _type, _namespace = "Slot", "tilescope_parts"
    _prop_names = ("id", "children", "path")
    _valid_wildcard_attributes: tuple[str, ...] = ()
    _children_props: tuple[str, ...] = ()
    _base_nodes = ("children",)

    def __init__(self, path: str) -> None:
        """Take the path, once: Dash's own `__init__` looks for a package of the namespace."""
        self.id, self.path = name_of(path), path


class Shown(Component):  # type: ignore[misc]  # Dash has no types
    """What is shown, as `dcc.Store` has it; its slot comes into the document with it."""

    _type, _namespace = "Shown", "tilescope_parts"
    _prop_names = ("id", "data")
    _valid_wildcard_attributes: tuple[str, ...] = ()
    _children_props: tuple[str, ...] = ()
    _base_nodes = ("children",)

    def __init__(self) -> None:
        """Name it; see `Slot`."""
        self.id = "shown"


def paths() -> list[str]:
    """Return what there is a slot for."""
    return [ELSEWHERE, *(page.path for page in declared())]


def name_of(path: str) -> str:
    """Return the id of the slot of a path."""
    return f"slot-{path.strip('/')}" if path else "slot"


def slots() -> list[Component]:
    """Make room for all pages, and for what says which is shown: it has to come first."""
    return [Shown(), *map(Slot, paths())]


def is_kept(held: Place | None, now: Place, *, follows: bool) -> bool:
    """Return whether a slot holds what is to be shown; a page may follow its files by itself."""
    if not isinstance(held, dict):
        return False
    return (held | {"stamp": now["stamp"]} if follows else held) == now
