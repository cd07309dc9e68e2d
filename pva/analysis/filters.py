"""A filter is data: a column, an operator and a value, read by one function, never evaluated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pva import units
from pva.errors import PvaError, nearest
from pva.lazy import pandas as pd

OPERATORS = ("!~", "~", "!=", ">=", "<=", "==", "=", ">", "<")
TRUTH = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}


class FilterError(PvaError):
    """A filter that says nothing, or does not fit the column that it names."""


@dataclass(frozen=True, slots=True)
class Filter:
    """Keep the rows whose column stands to the value as the operator says; `~` is "contains"."""

    column: str
    operator: str
    value: str

    def __str__(self) -> str:
        return f"{self.column}{self.operator}{self.value}"


def parse_filter(text: str) -> Filter:
    """Read `name~conv`: the first operator counts, the longest where two begin at one place.

    Spaces around the operator are passed over when one stands before it. Raises FilterError.
    """
    places = {operator: text.find(operator) for operator in OPERATORS}
    candidates = [
        (place, -len(operator), operator) for operator, place in places.items() if place > 0
    ]
    if not candidates:
        raise FilterError(
            text, "no filter", f"write a column, one of {' '.join(OPERATORS)} and a value, as in "
            "name~conv"
        )  # fmt: skip
    place, _, operator = min(candidates)
    column, value = text[:place], text[place + len(operator) :]
    if column.endswith(" "):
        return Filter(column.strip(), operator, value.strip())
    return Filter(column, operator, value)


def column_of(frame: pd.DataFrame, name: str) -> Any:
    """Return a column by name; raises PvaError with the nearest names."""
    if name not in frame.columns:
        raise PvaError(name, "no such column", nearest(name, map(str, frame.columns)))
    return frame[name]


def matching(frame: pd.DataFrame, filters: Iterable[Filter]) -> pd.DataFrame:
    """Keep the rows that all filters let through; text is compared whole, `~` without capitals.

    Numbers may have commas, underscores and a unit of `pva.units.number`. What is missing equals
    nothing. Raises FilterError, and PvaError for an unknown column.
    """
    for condition in filters:
        values = column_of(frame, condition.column)
        frame = frame[_compare(values, condition)]
    return frame


def texts_matching(texts: Sequence[str], condition: Filter) -> npt.NDArray[np.bool_]:
    """Return which texts a filter lets through, as if they were its column; raises FilterError."""
    column = pd.Series(list(texts), dtype=object)
    return np.asarray(_compare(column, condition), dtype=np.bool_)


def _compare(values: Any, condition: Filter) -> Any:
    if condition.operator in _OF_TEXT:
        return _OF_TEXT[condition.operator](values.astype(str), condition.value)
    compare = _COMPARISONS[condition.operator]
    if pd.api.types.is_bool_dtype(values):
        return compare(values, _truth(condition))
    if pd.api.types.is_numeric_dtype(values):
        return compare(values, _number(condition))
    if condition.operator in ("<", ">", "<=", ">="):
        remedy = f"{condition.column} holds text: use =, != or ~"
        raise FilterError(condition, "cannot be compared so", remedy)
    return compare(values.astype(str), condition.value)


def _number(condition: Filter) -> float:
    try:
        return units.number(condition.value)
    except ValueError:
        problem = f"{condition.value!r} is no number"
        remedy = f"{condition.column} holds numbers, such as 1000, 64 kB or 25 %"
        raise FilterError(condition, problem, remedy) from None


def _truth(condition: Filter) -> bool:
    if condition.value.lower() not in TRUTH:
        remedy = f"{condition.column} is yes or no"
        raise FilterError(condition, f"{condition.value!r} is neither", remedy)
    return TRUTH[condition.value.lower()]


_OF_TEXT: dict[str, Callable[[Any, str], Any]] = {
    "~": lambda values, text: values.str.contains(text, case=False, regex=False),
    "!~": lambda values, text: ~values.str.contains(text, case=False, regex=False),
}
_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "=": lambda values, value: values == value,
    "==": lambda values, value: values == value,
    "!=": lambda values, value: values != value,
    ">": lambda values, value: values > value,
    "<": lambda values, value: values < value,
    ">=": lambda values, value: values >= value,
    "<=": lambda values, value: values <= value,
}
