"""Budgets: limits on figures of a report, kept in a TOML file for use in CI.

    largest_tile = "560 kB"          # a figure of `pva.analysis.whole_report.key_figures`; at most
    total_cycles = 2_100_000
    tile_balance = {min = "10 %"}    # at least
    run_cycles = "+2 %"              # at most so much more than in the baseline, another report

    [[budget]]                       # any number of the catalogue
    analysis = "cycles_by_layer"
    column = "cycles"
    where = ["layer = Layer1"]       # rows, as in `tilescope show`
    take = "sum"                     # of the rows: sum, max (unless told), min or mean
    max = 700_000

Of an analysis that gives a dataclass `column` is a field; `time_shares.sync` is one inside a field.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pva import units
from pva.analysis.columns import table
from pva.analysis.filters import column_of, matching, parse_filter
from pva.analysis.table import Columns
from pva.analysis.whole_report.key_figures import FIGURES
from pva.errors import NotFoundError, NotRecordedError, PvaError, nearest
from pva.plain_file import contents

if TYPE_CHECKING:
    from pva.report import Report

TAKES = ("max", "min", "sum", "mean")
KEYS = ("analysis", "column", "where", "take", "options", "max", "min", "name")
SECTION = "budget"
MAX_BYTES, LONGEST_LINE = 1 << 16, 4000  # bytes of a file, of a line
DEEPEST, LONGEST, LARGEST = 8, 1000, 2**63 - 1  # levels, characters of a text, number
QUOTED = 40  # characters of a text that is too long
NO_WORSE = ("largest_tile", "total_memory", "max_live", "run_cycles")
_TOLERANCE = re.compile(r"([+-]\d{1,4}(?:\.\d{1,6})?) ?%")  # of a baseline
SUFFIXES = {"bytes": "B", "fraction": "%"}  # of limits of figures, by the figure's unit
# What an option of an analysis takes, by the first word of its type; others take a list.
_OPTIONS: dict[str, tuple[type, str]] = {
    "int": (int, "a whole number"), "str": (str, "a text in quotes"),
}  # fmt: skip
_LIST: tuple[type, str] = (list, "a list of whole numbers")
_SHOWN = 'a number, a text such as "64 kB", "25 %" or "+2 %", or {min = ..., max = ...}'


class BudgetError(PvaError):
    """A file of budgets that says nothing, or names what is not there."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """A limit by what a baseline has: the part of it that may be added, or with - be taken."""

    part: float


Limit = float | Tolerance | None


@dataclass(frozen=True, slots=True)
class Budget:
    """A figure by name, or a number of an analysis, and the limits that it must keep."""

    name: str
    most: Limit
    least: Limit
    analysis: str = ""
    column: str = ""
    where: tuple[str, ...] = ()
    take: str = ""  # the first of TAKES, unless told
    options: Mapping[str, Any] = field(default_factory=dict)


def read_budgets(path: str | PathLike[str]) -> list[Budget]:
    """Read a file of budgets; raises NotFoundError, BudgetError and PvaError."""
    file = Path(path)
    try:
        data = contents(file, "a file of budgets", MAX_BYTES)
        if max(map(len, data.splitlines()), default=0) > LONGEST_LINE:  # tomllib takes its square
            raise BudgetError(file, "a very long line", f"at most {LONGEST_LINE:,} bytes")
        document = tomllib.loads(data.decode("utf-8-sig"))
    except NotFoundError:
        raise NotFoundError(file, "no such file", "give a file of budgets") from None
    except UnicodeDecodeError:
        raise PvaError(file, "not a text", "a TOML file") from None
    except RecursionError:
        raise BudgetError(file, "nested too deeply", f"tables of {DEEPEST} levels") from None
    except tomllib.TOMLDecodeError as error:
        reason = str(error)[:LONGEST]
        raise BudgetError(file, f"not TOML: {reason}", "see docs/cli.md for a sample") from None
    except ValueError:
        allowed = f"a number up to {LARGEST:,}"
        raise BudgetError(file, "a number of thousands of digits", allowed) from None
    _check_sizes(file, document)
    budgets = list(_budgets(file, document))
    if not budgets:
        raise BudgetError(file, "no budget", f"write one, such as {next(iter(FIGURES))} = ...")
    return budgets


def _check_sizes(file: Path, document: Mapping[str, object]) -> None:
    """Refuse what no budget is: deep tables, long texts and numbers; messages quote the others."""
    level: list[Any] = [document]
    for _ in range(DEEPEST):
        names = [key for one in level if isinstance(one, dict) for key in one]
        inside = [v for one in level if isinstance(one, dict | list)
                  for v in (one.values() if isinstance(one, dict) else one)]  # fmt: skip
        long = [text for text in (*names, *inside) if isinstance(text, str) and len(text) > LONGEST]
        if long:
            problem = f"a text of {len(long[0]):,} characters, {long[0][:QUOTED]!r}..."
            raise BudgetError(file, problem, f"at most {LONGEST} characters")
        large = [v for v in inside if isinstance(v, int) and abs(v) > LARGEST]
        if large:
            problem = f"a number of {large[0].bit_length():,} bits"
            raise BudgetError(file, problem, f"a number up to {LARGEST:,}")
        level = [value for value in inside if isinstance(value, dict | list)]
    if level:
        raise BudgetError(file, "nested too deeply", f"tables of {DEEPEST} levels")


def no_worse() -> list[Budget]:
    """Return the budgets of a report that may not be larger or slower than its baseline."""
    return [Budget(name, Tolerance(0.0), None) for name in NO_WORSE]


@table(
    "budget found least most kept rows baseline",
    budget="figure or table that the budget limits",
    found="value in the report",
    least="lower limit",
    most="upper limit",
    kept="true if the value is within both",
    rows="rows that the value was taken of",
    baseline="value in the other report, where a limit goes by it",
)
def check_budgets(report: Report, budgets: list[Budget], baseline: Report | None = None) -> Columns:
    """Compare a report with budgets: budget, found, least, most, kept, rows, baseline.

    Limits may be missing; `rows` are those that the number was taken of, `baseline` is the number
    in the other report, where the limit goes by it. Raises NotRecordedError where a report lacks a
    figure, BudgetError where there is none, or a baseline is missing.
    """
    rows = []
    for budget in budgets:
        value, count = _held(report, budget)
        old = math.nan
        if isinstance(budget.most, Tolerance) or isinstance(budget.least, Tolerance):
            if baseline is None:
                remedy = "give the report that it is compared with, by --baseline"
                raise BudgetError(budget.name, "its limit goes by a baseline", remedy)
            old = _held(baseline, budget)[0]
        least, most = (_resolved(limit, old) for limit in (budget.least, budget.most))
        is_kept = (least is None or least <= value) and (most is None or value <= most)
        rows.append((budget.name, value, least, most, is_kept and value == value, count, old))
    types = {"budget": "O", "found": "f8", "least": "f8", "most": "f8", "kept": "?", "rows": "i8",
             "baseline": "f8"}  # fmt: skip
    return {
        name: np.array([row[place] for row in rows], dtype)
        for place, (name, dtype) in enumerate(types.items())
    }


def _resolved(limit: Limit, old: float) -> float | None:
    return old + abs(old) * limit.part if isinstance(limit, Tolerance) else limit


def _held(report: Report, budget: Budget) -> tuple[float, int]:
    try:
        return _measured(report, budget)
    except (BudgetError, NotRecordedError):
        raise
    except PvaError as error:
        raise BudgetError(budget.name, str(error)) from None


def _budgets(file: Path, document: Mapping[str, object]) -> Iterator[Budget]:
    for name, value in document.items():
        if name == SECTION:
            continue
        if name not in FIGURES:
            raise BudgetError(file, f"no figure {name!r}", nearest(name, FIGURES))
        limits = value if isinstance(value, dict) else {"max": value}
        unit = FIGURES[name].unit
        yield Budget(name, *_limits(file, name, limits, ("max", "min"), unit))
    sections = document.get(SECTION, [])
    if not isinstance(sections, list) or not all(isinstance(one, dict) for one in sections):
        raise BudgetError(file, f"{SECTION} is no list of tables", f"write [[{SECTION}]]")
    for number, section in enumerate(sections, start=1):
        yield _of_section(file, f"{SECTION} {number}", section)


def _of_section(file: Path, place: str, section: Mapping[str, Any]) -> Budget:
    from pva.analysis import CATALOGUE

    analysis, column = (_text(file, place, section, key) for key in ("analysis", "column"))
    analyses = [
        name for name, one in CATALOGUE.items() if "report" in inspect.signature(one).parameters
    ]
    if analysis not in analyses:
        problem = f"no analysis {analysis!r} of a report"
        raise BudgetError(file, problem, nearest(analysis, analyses), place=place)
    take, where = section.get("take", ""), section.get("where", [])
    if "take" in section and take not in TAKES:
        raise BudgetError(file, f"take = {take!r}", f"one of {', '.join(TAKES)}", place=place)
    filters = [where] if isinstance(where, str) else where
    if not isinstance(filters, list) or not all(isinstance(one, str) for one in filters):
        raise BudgetError(file, f"where = {where!r}", "a list of filters", place=place)
    options = section.get("options", {})
    if not isinstance(options, dict):
        raise BudgetError(file, f"options = {options!r}", "{ name = value }", place=place)
    named = f"{analysis}.{column}" + "".join(f" where {one}" for one in filters)
    name = str(section.get("name", named))
    limits = _limits(file, place, section, KEYS, None)
    return Budget(name, *limits, analysis, column, tuple(filters), take, options)


def _text(file: Path, place: str, section: Mapping[str, Any], key: str) -> str:
    value = section.get(key)
    if not isinstance(value, str):
        raise BudgetError(file, f"{key} = {value!r}", "a name in quotes", place=place)
    return value


def _limits(
    file: Path, place: str, section: Mapping[str, object], keys: tuple[str, ...], unit: str | None
) -> tuple[Limit, Limit]:
    """Read the limits `max` and `min`, at least one of them; `unit` is the figure's, if known."""
    unknown = [key for key in section if key not in keys]
    if unknown:
        raise BudgetError(file, f"no key {unknown[0]!r}", nearest(unknown[0], keys), place=place)
    if not {"max", "min"} & set(section):
        raise BudgetError(file, "no limit", "give max or min", place=place)
    most, least = (_number(file, place, section.get(key), unit) for key in ("max", "min"))
    if isinstance(most, float) and isinstance(least, float) and most < least:
        raise BudgetError(file, "max is less than min", "no number keeps both", place=place)
    return most, least


def _number(file: Path, place: str, value: object, unit: str | None) -> Limit:
    if value is None:
        return None
    if isinstance(value, str) and (change := _TOLERANCE.fullmatch(value.strip())):
        return Tolerance(float(change[1]) / 100)
    suffix = str(value).strip()[-1:] if isinstance(value, str) else ""
    if unit is not None and suffix in SUFFIXES.values() and suffix != SUFFIXES.get(unit):
        kind = f"it is in {unit}" if unit not in ("", "fraction") else f"it is a {unit or 'count'}"
        raise BudgetError(file, f"{value!r} is no limit", kind, place=place)
    try:
        number = math.nan
        if isinstance(value, str):
            number = units.number(value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            number = float(value)
        if unit == "fraction" and number > 1:
            remedy = 'it is a fraction of 1: write 0.25 or "25 %"'
            raise BudgetError(file, f"{value!r} is no limit", remedy, place=place)
        if math.isfinite(number):
            return number
    except ValueError:
        pass
    raise BudgetError(file, f"{value!r} is no limit", f"write {_SHOWN}", place=place)


def _measured(report: Report, budget: Budget) -> tuple[float, int]:
    """Return the number of a budget, and of how many rows it was taken."""
    if not budget.analysis:
        return float(FIGURES[budget.name].of(report)), 1
    from pva.analysis import CATALOGUE

    analysis = CATALOGUE[budget.analysis]
    _check_options(budget, dict(list(inspect.signature(analysis).parameters.items())[1:]))
    result = analysis(report, **budget.options)
    if dataclasses.is_dataclass(result):
        if budget.where or budget.take:
            problem = f"{budget.analysis} has no rows"
            raise BudgetError(budget.name, problem, "leave out where and take")
        return _field(dataclasses.asdict(result), budget), 1  # type: ignore[arg-type]
    frame = matching(result.reset_index() if result.index.name else result,
                     map(parse_filter, budget.where))  # fmt: skip
    values = column_of(frame, budget.column)
    if not len(values):
        return (0.0 if budget.take == "sum" else math.nan), 0
    try:
        return float(getattr(values, budget.take or TAKES[0])()), len(values)
    except (TypeError, ValueError):
        raise BudgetError(budget.name, "holds no numbers", "name a column of numbers") from None


def _check_options(budget: Budget, parameters: Mapping[str, inspect.Parameter]) -> None:
    """Refuse options that an analysis has not, does not take so, or cannot do without."""
    for name, value in budget.options.items():
        if name not in parameters:
            raise BudgetError(budget.name, f"no option {name!r}", nearest(name, parameters))
        kind, words = _OPTIONS.get(str(parameters[name].annotation).partition(" ")[0], _LIST)
        if not isinstance(value, kind) or isinstance(value, bool):
            raise BudgetError(budget.name, f"option {name} = {value!r}", words)
    missing = [key for key, one in parameters.items()
               if one.default is one.empty and key not in budget.options]  # fmt: skip
    if missing:
        problem = f"{budget.analysis} needs the option {missing[0]!r}"
        raise BudgetError(budget.name, problem, f"write options = {{ {missing[0]} = ... }}")


def _field(values: Mapping[str, object], budget: Budget) -> float:
    value: Any = values
    for name in budget.column.split("."):
        if not isinstance(value, Mapping) or name not in value:
            fields = value if isinstance(value, Mapping) else values
            raise BudgetError(budget.name, f"no field {name!r}", nearest(name, fields))
        value = value[name]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BudgetError(budget.name, f"is {value!r}", "name a field that is a number")
    return float(value)
