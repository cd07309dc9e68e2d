"""Analyses by name, as they are listed: a line each in a terminal, a table in a notebook."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from os import PathLike
from typing import Any

from pva.errors import PvaError, nearest

Analysis = Callable[..., Any]

# What analyses are asked of, by the annotation of the parameter.
OPENED_BY = {
    "Report": "pva.openReport",
    "Trace": "pva.openTrace",
    "SeveralInstances": "pva.openRun",
}


class Catalogue(dict[str, Analysis]):
    """Analyses by name, each with the first line of what it tells."""

    @classmethod
    def of(cls, analyses: Iterable[Analysis]) -> Catalogue:
        """Make the catalogue of functions."""
        return cls((analysis.__name__, _asked(analysis)) for analysis in analyses)

    def __missing__(self, name: object) -> Analysis:
        raise KeyError(f"no analysis {name}; {nearest(str(name), self, 'CATALOGUE')}")

    def __repr__(self) -> str:
        width = max(map(len, self), default=0)
        return "\n".join(
            f"{name:{width}}  {question_of(analysis)}" for name, analysis in self.items()
        )

    def _repr_html_(self) -> str:
        from html import escape  # only notebooks need it

        rows = (
            f"<tr><th>{escape(name)}</th><td>{escape(question_of(analysis))}</td></tr>"
            for name, analysis in self.items()
        )
        return f'<div style="max-height:24em;overflow:auto"><table>{"".join(rows)}</table></div>'


def question_of(analysis: Analysis) -> str:
    """Return the first line of an analysis' docstring: the question that it answers."""
    return (inspect.getdoc(analysis) or "").partition("\n")[0]


def _asked(analysis: Analysis) -> Analysis:
    """Let an analysis refuse what is no report, trace or run in one line."""

    @functools.wraps(analysis)
    def answer(*arguments: object, **named: object) -> object:
        parameters = inspect.signature(analysis).parameters
        for name, value in (*zip(parameters, arguments, strict=False), *named.items()):
            if name in parameters and parameters[name].annotation in OPENED_BY:
                _check(analysis.__name__, parameters[name], value)
        return analysis(*arguments, **named)

    return answer


def _check(analysis: str, parameter: inspect.Parameter, argument: object) -> None:
    if isinstance(argument, _type(parameter.annotation)):
        return
    kind = "path" if isinstance(argument, str | bytes | PathLike) else type(argument).__name__
    remedy = f"give what {OPENED_BY[parameter.annotation]}(path) gives"
    raise PvaError(analysis, f"a {kind}", remedy, place=parameter.name)


def _type(annotation: str) -> type:
    from pva.analysis.distributed.events import SeveralInstances
    from pva.report import Report
    from pva.trace import Trace

    return {"Report": Report, "Trace": Trace, "SeveralInstances": SeveralInstances}[annotation]
