"""The state of the view as a URL, and back: a copied link opens the same view.

    /liveness?report=training&step=18&filter=name~conv

`report` is the key of a report in the store, `tile`, `step` and `event` are numbers, `range` is a
half-open window (cycles or nanoseconds), `filter` a column, an operator and a value, `show` an
option of the page. Nothing of it is evaluated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from urllib.parse import parse_qsl, urlencode

from pva.analysis import filters
from pva.analysis.filters import OPERATORS, Filter

__all__ = ["OPERATORS", "Address", "AddressError", "Filter", "Range", "parse", "write"]


class AddressError(ValueError):
    """An address that says nothing: one line with what was found and what would be right."""


@dataclass(frozen=True, slots=True)
class Range:
    """A half-open window, in the unit of the timeline it belongs to."""

    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Address:
    """What a link holds. None and the empty text stand for "not chosen"."""

    path: str = "/"
    report: str = ""
    tile: int | None = None
    step: int | None = None
    event: int | None = None
    range: Range | None = None
    filter: Filter | None = None
    show: str = ""


def parse_filter(text: str) -> Filter:
    """Read `name~conv`; raises AddressError."""
    try:
        return filters.parse_filter(text)
    except filters.FilterError as error:
        raise AddressError(f"filter={error}") from None


def _number(key: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise AddressError(f"{key}={text}: no {key}; write a whole number, as in {key}=12")
    return int(text)


def _range(text: str) -> Range:
    begin, dash, end = text.partition("-")
    if not dash or not begin or not end:
        raise AddressError(f"range={text}: no range; write begin and end, as in range=0-34000")
    window = Range(_number("range", begin), _number("range", end))
    if window.begin >= window.end:
        raise AddressError(f"range={text}: empty; the end must be after the begin")
    return window


_READERS: dict[str, Callable[[str], object]] = {
    "report": str,
    "tile": lambda text: _number("tile", text),
    "step": lambda text: _number("step", text),
    "event": lambda text: _number("event", text),
    "range": _range,
    "filter": parse_filter,
    "show": str,
}


def parse(path: str | None, search: str | None) -> Address:
    """Read an address; unknown keys and empty values are passed over. Raises AddressError."""
    pairs = parse_qsl((search or "").removeprefix("?"))
    known = {key: _READERS[key](text) for key, text in pairs if key in _READERS}
    return Address(path=path or "/", **known)  # type: ignore[arg-type]


def write(address: Address) -> str:
    """Write an address as a link within the dashboard."""
    pairs = []
    for field in fields(address)[1:]:
        value = getattr(address, field.name)
        if value in (None, ""):
            continue
        if isinstance(value, Range):
            value = f"{value.begin}-{value.end}"
        pairs.append((field.name, str(value)))
    return address.path + ("?" + urlencode(pairs) if pairs else "")
