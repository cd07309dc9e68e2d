"""Engine options and JSON documents as trees that can be filtered and folded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from dashboard import tables
from dashboard.address import Address
from dashboard.elements import components
from dashboard.elements.components import Element
from dashboard.tables import Row

MAX_ROWS = 2000
DEEPEST = 4  # levels that fold; what lies deeper is named in one line
LONGEST_VALUE = 300  # letters

Leaf = tuple[tuple[str, ...], str]  # the names that lead to a value, and the value


def leaves(document: object, place: tuple[str, ...] = ()) -> Iterator[Leaf]:
    """Assign every value of a JSON document with the names that lead to it."""
    todo: list[tuple[tuple[str, ...], Any]] = [(place, document)]
    while todo:
        names, value = todo.pop(0)
        if isinstance(value, dict) and value:
            todo[:0] = [((*names, str(name)), inner) for name, inner in value.items()]
        elif isinstance(value, list) and any(isinstance(inner, dict | list) for inner in value):
            todo[:0] = [((*names, str(row)), inner) for row, inner in enumerate(value)]
        else:
            yield names, _text(value)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"


def dotted(pairs: Iterable[tuple[str, str]]) -> Iterator[Leaf]:
    """Take `autoReport.directory` apart: options of one group stand together."""
    for name, value in sorted(pairs):
        group, dot, tail = name.partition(".")
        yield ((group, tail) if dot else (name,)), value


def tree(leaves: Iterable[Leaf], state: Address, *, name: str, wanted: str = "") -> Element:
    """Show values by the names that lead to them; only those that have `wanted` in either."""
    rows: dict[tuple[str, ...], Row] = {}
    ids: dict[tuple[str, ...], str] = {}
    hidden = 0
    for path, value in leaves:
        names = path[:DEEPEST] + ((".".join(path[DEEPEST:]),) if path[DEEPEST:] else ())
        if wanted.lower() not in f"{'.'.join(names)} {value}".lower():
            continue
        if len(rows) >= MAX_ROWS:
            hidden += 1
            continue
        for depth in range(1, len(names) + 1):
            place = names[:depth]
            if place not in ids:
                parent = f"{ids[place[:-1]]}/" if depth > 1 else name
                ids[place] = f"{parent}{len(ids)}"
                rows[place] = Row(ids[place], place[-1], ("",))
        rows[names] = Row(ids[names], names[-1] if names else name, (_cut(value),))
    if not rows:
        return components.message("Nothing fits the filter." if wanted else "Nothing was recorded.")
    note = f"{hidden:,} more values; filter to see them" if hidden else ""
    return components.with_note(
        tables.tree(("Name", "Value"), list(rows.values()), state, texts=True), note
    )


def flat_pairs(document: object) -> list[tuple[str, str]]:
    """Write a JSON document as names, joined by dots, and values; what is empty is left out."""
    return [(".".join(names), value) for names, value in leaves(document) if value]
