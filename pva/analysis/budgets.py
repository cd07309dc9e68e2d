"""Budgets: limits on figures of a report, kept in a TOML file for use in CI.

    largest_tile = "560 kB"          # a figure of `pva.analysis.figures`; at most
    total_cycles = 2_100_000
    tile_balance = {min = "10 %"}    # at least

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
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pva import units
from pva.analysis.figures import FIGURES
from pva.analysis.filters import column_of, matching, parse_filter
from pva.errors import NotFoundError, PvaError, nearest

if TYPE_CHECKING:
    import pandas as pd

    from pva.report import Report

TAKES = ("max", "min", "sum", "mean")
KEYS = ("analysis", "column", "where", "take", "options", "max", "min", "name")
SECTION = "budget"
_SHOWN = 'a number, a text such as "64 kB" or "25 %", or {min = ..., max = ...}'


class BudgetError(PvaError):
    """A file of budgets that says nothing, or names what is not there."""


@dataclass(frozen=True, slots=True)
class Budget:
    """A figure by name, or a number of an analysis, and the limits that it must keep."""

    name: str
    most: float | None
    least: float | None
    analysis: str = ""
    column: str = ""
    where: tuple[str, ...] = ()
    take: str = "max"
    options: Mapping[str, int] = field(default_factory=dict)


def read_budgets(path: str | PathLike[str]) -> list[Budget]:
    """Read a file of budgets; raises NotFoundError, BudgetError and PvaError."""
    file = Path(path)
    try:
        found = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise NotFoundError(file, "no such file", "give a file of budgets") from None
    except (OSError, UnicodeDecodeError) as error:
        raise PvaError(
            file, getattr(error, "strerror", None) or "not a text", "a TOML file"
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise BudgetError(file, f"not TOML: {error}", "see docs/cli.md for a sample") from None
    budgets = list(_budgets(file, found))
    if not budgets:
        raise BudgetError(file, "no budget", f"write one, such as {next(iter(FIGURES))} = ...")
    return budgets


def check_budgets(report: Report, budgets: list[Budget]) -> pd.DataFrame:
    """Hold a report against budgets: budget, found, least, most, kept; limits may be missing.

    Raises NotRecordedError where the report lacks a figure, BudgetError where there is none.
    """
    import pandas as pd

    rows = []
    for budget in budgets:
        found = _found(report, budget)
        least = -math.inf if budget.least is None else budget.least
        most = math.inf if budget.most is None else budget.most
        rows.append((budget.name, found, budget.least, budget.most, least <= found <= most))
    frame = pd.DataFrame(rows, columns=["budget", "found", "least", "most", "kept"])
    return frame.astype({"found": float, "least": float, "most": float, "kept": bool})


def _budgets(file: Path, found: Mapping[str, Any]) -> Iterator[Budget]:
    for name, value in found.items():
        if name == SECTION:
            continue
        if name not in FIGURES:
            raise BudgetError(file, f"no figure {name!r}", nearest(name, FIGURES))
        limits = value if isinstance(value, dict) else {"max": value}
        yield Budget(name, *_limits(file, name, limits, ("max", "min")))
    sections = found.get(SECTION, [])
    if not isinstance(sections, list) or not all(isinstance(one, dict) for one in sections):
        raise BudgetError(file, f"{SECTION} is no list of tables", f"write [[{SECTION}]]")
    for number, section in enumerate(sections, start=1):
        yield _of_section(file, f"{SECTION} {number}", section)


def _of_section(file: Path, place: str, section: Mapping[str, Any]) -> Budget:
    from pva.analysis import CATALOGUE

    analysis, column = (_text(file, place, section, key) for key in ("analysis", "column"))
    subject = next(iter(inspect.signature(CATALOGUE[analysis]).parameters)) if (
        analysis in CATALOGUE) else "report"  # fmt: skip
    if analysis not in CATALOGUE or subject != "report":
        found = f"no analysis {analysis!r} of a report"
        raise BudgetError(file, found, nearest(analysis, CATALOGUE), place=place)
    take, where = section.get("take", "max"), section.get("where", [])
    if take not in TAKES:
        raise BudgetError(file, f"take = {take!r}", f"one of {', '.join(TAKES)}", place=place)
    filters = [where] if isinstance(where, str) else where
    if not isinstance(filters, list) or not all(isinstance(one, str) for one in filters):
        raise BudgetError(file, f"where = {where!r}", "a list of filters", place=place)
    options = section.get("options", {})
    named = f"{analysis}.{column}" + "".join(f" where {one}" for one in filters)
    name = str(section.get("name", named))
    limits = _limits(file, place, section, KEYS)
    return Budget(name, *limits, analysis, column, tuple(filters), take, options)


def _text(file: Path, place: str, section: Mapping[str, Any], key: str) -> str:
    value = section.get(key)
    if not isinstance(value, str):
        raise BudgetError(file, f"{key} = {value!r}", "a name in quotes", place=place)
    return value


def _limits(
    file: Path, place: str, section: Mapping[str, Any], known: tuple[str, ...]
) -> tuple[float | None, float | None]:
    """Read the limits `max` and `min`, at least one of them."""
    unknown = [key for key in section if key not in known]
    if unknown:
        raise BudgetError(file, f"no key {unknown[0]!r}", nearest(unknown[0], known), place=place)
    if not {"max", "min"} & set(section):
        raise BudgetError(file, "no limit", "give max or min", place=place)
    most, least = (_number(file, place, section.get(key)) for key in ("max", "min"))
    return most, least


def _number(file: Path, place: str, value: object) -> float | None:
    if value is None:
        return None
    try:
        number = math.nan
        if isinstance(value, str):
            number = units.number(value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            number = float(value)
        if not math.isnan(number):
            return number
    except ValueError:
        pass
    raise BudgetError(file, f"{value!r} is no limit", f"write {_SHOWN}", place=place)


def _found(report: Report, budget: Budget) -> float:
    if not budget.analysis:
        return float(FIGURES[budget.name].of(report))
    from pva.analysis import CATALOGUE

    analysis = CATALOGUE[budget.analysis]
    known = dict(list(inspect.signature(analysis).parameters.items())[1:])
    wrong = [option for option in budget.options if option not in known]
    if wrong:
        raise BudgetError(budget.name, f"no option {wrong[0]!r}", nearest(wrong[0], known))
    missing = [key for key, one in known.items()
               if one.default is one.empty and key not in budget.options]  # fmt: skip
    if missing:
        found = f"{budget.analysis} needs the option {missing[0]!r}"
        raise BudgetError(budget.name, found, f"write options = {{ {missing[0]} = ... }}")
    result = analysis(report, **budget.options)
    if dataclasses.is_dataclass(result):
        return _field(dataclasses.asdict(result), budget)  # type: ignore[arg-type]
    frame = matching(result.reset_index() if result.index.name else result,
                     map(parse_filter, budget.where))  # fmt: skip
    values = column_of(frame, budget.column)
    if not len(values):
        return 0.0 if budget.take == "sum" else math.nan
    try:
        return float(getattr(values, budget.take)())
    except (TypeError, ValueError):
        raise BudgetError(budget.name, "holds no numbers", "name a column of numbers") from None


def _field(values: Mapping[str, Any], budget: Budget) -> float:
    found: Any = values
    for name in budget.column.split("."):
        if not isinstance(found, Mapping) or name not in found:
            known = found if isinstance(found, Mapping) else values
            raise BudgetError(budget.name, f"no field {name!r}", nearest(name, known))
        found = found[name]
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise BudgetError(budget.name, f"is {found!r}", "name a field that is a number")
    return float(found)
