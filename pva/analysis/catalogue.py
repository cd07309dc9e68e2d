"""Analyses by name, as they are listed: a line each in a terminal, a table in a notebook."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from pva.errors import nearest

Analysis = Callable[..., Any]


class Catalogue(dict[str, Analysis]):
    """Analyses by name, each with the first line of what it tells."""

    def __missing__(self, name: object) -> Analysis:
        raise KeyError(f"no analysis {name}; {nearest(str(name), self, 'CATALOGUE')}")

    def __repr__(self) -> str:
        width = max(map(len, self), default=0)
        return "\n".join(f"{name:{width}}  {told(analysis)}" for name, analysis in self.items())

    def _repr_html_(self) -> str:
        from html import escape  # only notebooks need it

        rows = (
            f"<tr><th>{escape(name)}</th><td>{escape(told(analysis))}</td></tr>"
            for name, analysis in self.items()
        )
        return f'<div style="max-height:24em;overflow:auto"><table>{"".join(rows)}</table></div>'


def told(analysis: Analysis) -> str:
    """Give the first line of an analysis' docstring: the question that it answers."""
    return (inspect.getdoc(analysis) or "").partition("\n")[0]
