"""What a page declares of itself, once, in its own module; menu, keys, help and marks follow.

    PAGE = Declaration(PATH, TITLE, QUESTION, order=100, letter="x", icon="M2.5 2.5h11v11h-11z",
                       chapter="What the page shows, as Markdown.")

`dashboard.pages` imports the modules of its folder, and registers those that declare a page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from dashboard.elements.components import Column

# What must be open for a page to have something to show.
Subject = Literal[
    "anything", "report", "two reports", "trace", "report and trace", "run", "served", "exploration"
]
ALL_TABLES = ("",)  # of a page that shows figures of every table
ONE_IPU = ("IPU", "Shows one IPU instead of all")  # a control that several pages have
Table = tuple[str, Sequence[Column]]  # a heading of the documentation, and the columns of a table


@dataclass(frozen=True, slots=True)
class Declaration:
    """A page: where it is, what it answers, and all that other places show of it."""

    path: str
    title: str
    question: str
    order: int  # in the menu; those of others are 10 apart
    letter: str  # that opens it, after `g`
    icon: str  # the path of an SVG on a grid of 16 by 16
    chapter: str  # of the documentation, as Markdown
    subject: Subject = "report"
    # Name and meaning of each control, by the key of the address that it sets.
    controls: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    tables: Sequence[Table] = ()  # whose columns the documentation explains
    laws: tuple[str, ...] = ()  # beginnings of the tables and arrays whose figures it shows
    # What is chosen on it by a key of the address, and how an object of it is called: by what the
    # value begins with, as in {"node": {"v": "variable"}} (dashboard/details/objects.py).
    objects: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    docked: str = ""  # the one of these keys that opens the drawer by itself, without an object
    follows: bool = False  # its parts follow a file that grows; the page is not laid out anew

    @property
    def has_objects(self) -> bool:
        """Return whether an object of a report can be chosen on it."""
        return self.subject in ("report", "two reports", "trace", "report and trace")


_BY_PATH: dict[str, Declaration] = {}


def register(page: Declaration) -> None:
    """Add a page to the menu; raises ValueError when it has what another one has alone."""
    for peer in _BY_PATH.values():
        for name in ("path", "title", "letter", "order"):
            if getattr(peer, name) == getattr(page, name):
                raise ValueError(f"{page.path}: its {name} is also that of {peer.path}")
    _BY_PATH[page.path] = page


def declared() -> list[Declaration]:
    """Return the pages in the order of the menu."""
    return sorted(_BY_PATH.values(), key=lambda page: page.order)


def page_at(path: str) -> Declaration | None:
    """Return the page at a path; None when there is none."""
    return _BY_PATH.get(path)


def hint(path: str, key: str) -> str:
    """Return what a control of a page does; empty for one that says so itself."""
    page = _BY_PATH.get(path)
    return page.controls.get(key, ("", ""))[1] if page else ""
