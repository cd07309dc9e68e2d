"""How objects are shown: a line in a terminal, a small table in a notebook.

A class names its figures in `_figures`, each a dotted attribute, or `label=attribute`. What was not
recorded is left out, so that an object of any report can be shown. Names are data, and escaped.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from pva.errors import PvaError
from pva.model.completion import complete

NAME_LENGTH = 60  # of a name in a line
NOTHING = object()


class Shown:
    """Something with a few figures that are worth seeing."""

    __slots__ = ()
    _figures: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        complete(cls)

    def _title(self) -> tuple[str, ...]:
        """Return which one it is: its number and its name, as far as it has them."""
        name = getattr(self, "name", "")
        return (_shortened(repr(str(name))),) if name else ()

    def __repr__(self) -> str:
        head = " ".join((type(self).__name__, *self._title()))
        pairs = [
            f"{_label(figure)} {_text(value)}"
            for figure in self._figures
            if (value := _value(self, figure)) is not NOTHING
        ]
        return f"<{head}: {', '.join(pairs)}>" if pairs else f"<{head}>"

    def _repr_html_(self) -> str:
        return table([self])


def table(objects: Iterable[Shown], hidden_count: int = 0) -> str:
    """Write objects of one kind as an HTML table; `hidden_count` are not shown."""
    rows = list(objects)
    if not rows:
        return "<table><tr><td>none</td></tr></table>"
    figures = rows[0]._figures
    heads = [type(rows[0]).__name__ if len(rows) == 1 else "", *map(_label, figures)]
    lines = [_row("th", heads)]
    for item in rows:
        values = (_value(item, figure) for figure in figures)
        title = " ".join(item._title()) or type(item).__name__
        lines.append(_row("td", [title, *("" if v is NOTHING else _text(v) for v in values)]))
    if hidden_count:
        lines.append(_row("td", [f"… and {hidden_count:,} more"]))
    return f"<table>{''.join(lines)}</table>"


def _row(cell: str, texts: Sequence[str]) -> str:
    from html import escape  # only notebooks need it

    return f"<tr>{''.join(f'<{cell}>{escape(text)}</{cell}>' for text in texts)}</tr>"


def _label(figure: str) -> str:
    return figure.partition("=")[0]


def _value(item: object, figure: str) -> Any:
    """Follow a dotted attribute; NOTHING when it was not recorded."""
    path = figure.rpartition("=")[2]
    try:
        for name in path.split("."):
            item = getattr(item, name)
    except PvaError:
        return NOTHING
    return item


def _text(value: object) -> str:
    """Write a figure: of a list or an array how many items it has."""
    match value:
        case bool() | None:
            return str(value)
        case int():
            return f"{value:,}"
        case float():
            return f"{value:,.4g}"
        case enum.Enum():
            return value.name
        case str():
            return _shortened(repr(value))
    return f"{len(value):,}" if hasattr(value, "__len__") else str(value)


def _shortened(text: str) -> str:
    return text if len(text) <= NAME_LENGTH else f"{text[: NAME_LENGTH - 1]}…"
