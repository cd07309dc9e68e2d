"""How the figures of an analysis that gives no rows are shown: in a notebook, one a line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields

from pva.analysis.columns import COLUMNS

_WORD = re.compile(r"(?<!^)(?=[A-Z])")


class Facts:
    """A dataclass named for its analysis; its units are those of the catalogue."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        from html import escape  # only notebooks need it

        units = COLUMNS[_WORD.sub("_", type(self).__name__).lower()]
        lines = [
            "".join(f"<td>{escape(text)}</td>" for text in (name, _written(value), units[field]))
            for field, name, value in self._lines()
        ]
        return f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"

    def _lines(self) -> Iterator[tuple[str, str, object]]:
        """Return the field, the name and the value of each figure, those of a dict one by one."""
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if isinstance(value, dict):
                yield from ((field.name, f"{field.name}: {part}", of) for part, of in value.items())
            else:
                yield field.name, field.name, value


def _written(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.6g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
