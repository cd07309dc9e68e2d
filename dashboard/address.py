"""The state of the view as a URL, and back: a copied link opens the same view.

    /liveness?report=training&step=18&filter=name~conv
    /memory?report=training&tile=3,17,100-120&tab=variables&breakdown=region

`report` is the key of a report in the store and `against` that of the one it is compared with,
`tile` and `step` are numbers and ranges of them, `ipu` and `event` are numbers, `range` is a
half-open window (cycles or nanoseconds), `filter` a column, an operator and a value. Every other
key is an option of the page (`tab`, `order`, ...), which reads it by `option`, with what it may be,
or by `text`. Nothing of it is evaluated.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from urllib.parse import parse_qsl, urlencode

from pva.analysis import filters
from pva.analysis.filters import OPERATORS, Filter

__all__ = [
    "OPERATORS",
    "Address",
    "AddressError",
    "Filter",
    "Range",
    "parse",
    "parse_range",
    "place",
    "ranges",
    "write",
]

MAX_CHOSEN = 20_000  # tiles or steps of one address
LONGEST_OPTION = 2000  # letters
_OPTION = re.compile(r"[a-z][a-z0-9_-]{0,31}")


class AddressError(ValueError):
    """An address that says nothing: one line with what was found and what would be right."""


@dataclass(frozen=True, slots=True)
class Range:
    """A half-open window, in the unit of the timeline it belongs to."""

    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Address:
    """What a link holds. None and the empty text or tuple stand for "not chosen"."""

    path: str = "/"
    report: str = ""
    against: str = ""
    tiles: tuple[int, ...] = ()
    ipu: int | None = None
    steps: tuple[int, ...] = ()
    event: int | None = None
    range: Range | None = None
    filter: Filter | None = None
    show: str = ""
    options: tuple[tuple[str, str], ...] = ()

    @property
    def tile(self) -> int | None:
        """Return the first of the chosen tiles."""
        return self.tiles[0] if self.tiles else None

    @property
    def step(self) -> int | None:
        """Return the first of the chosen steps."""
        return self.steps[0] if self.steps else None

    def numbers(self, key: str) -> tuple[int, ...]:
        """Return an option that holds numbers and ranges; raises AddressError."""
        return _numbers(key, self.text(key))

    def text(self, key: str, default: str = "") -> str:
        """Return an option of the page as it stands in the link."""
        return dict(self.options).get(key, default)

    def option(self, key: str, values: Sequence[str]) -> str:
        """Return an option, which is one of these, by default the first; raises AddressError."""
        value = self.text(key, values[0])
        if value not in values:
            raise AddressError(f"{key}={value}: not there; known: {', '.join(values)}")
        return value


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


def parse_range(text: str, key: str = "range") -> Range:
    """Read `0-34000`; raises AddressError."""
    begin, dash, end = text.partition("-")
    if not dash or not begin or not end:
        raise AddressError(f"{key}={text}: no range; write begin and end, as in {key}=0-34000")
    window = Range(_number(key, begin), _number(key, end))
    if window.begin >= window.end:
        raise AddressError(f"{key}={text}: empty; the end must be after the begin")
    return window


def _numbers(key: str, text: str) -> tuple[int, ...]:
    """Read numbers and ranges of them, both ends included, each number once, as in the text."""
    numbers: dict[int, None] = {}
    listed = re.sub(r"\s*-\s*", "-", text)
    for part in filter(None, re.split(r"[\s,]+", listed)):
        first, dash, last = part.partition("-")
        if not first:
            raise AddressError(f"{key}={text}: no {key}; write a whole number, as in {key}=12")
        begin = _number(key, first)
        end = _number(key, last) if dash else begin
        if end < begin:
            raise AddressError(f"{key}={part}: empty; write the smaller number first")
        if end - begin + len(numbers) >= MAX_CHOSEN:
            raise AddressError(f"{key}={part}: too many; choose at most {MAX_CHOSEN:,}")
        numbers.update(dict.fromkeys(range(begin, end + 1)))
    return tuple(numbers)


_READERS: dict[str, Callable[[str], object]] = {
    "report": str,
    "against": str,
    "tile": lambda text: _numbers("tile", text),
    "ipu": lambda text: _number("ipu", text),
    "step": lambda text: _numbers("step", text),
    "event": lambda text: _number("event", text),
    "range": parse_range,
    "filter": parse_filter,
    "show": str,
}
_FIELDS = {"tile": "tiles", "step": "steps"}  # where the name of the field is not the key
_KEYS = {field: key for key, field in _FIELDS.items()}


def parse(path: str | None, search: str | None) -> Address:
    """Read an address; empty values and what can be no key are passed over. Raises AddressError."""
    address, faults = parse_leniently(path, search)
    if faults:
        raise AddressError(faults[0])
    return address


def parse_leniently(path: str | None, search: str | None) -> tuple[Address, list[str]]:
    """Read an address without the keys whose values are wrong; a line for each of these."""
    pairs = parse_qsl((search or "").removeprefix("?"))
    fields: dict[str, object] = {}
    faults = []
    for key, text in pairs:
        if key in _READERS:
            try:
                fields[_FIELDS.get(key, key)] = _READERS[key](text)
            except AddressError as fault:
                faults.append(str(fault))
    options = {
        key: text[:LONGEST_OPTION]
        for key, text in pairs
        if key not in _READERS and _OPTION.fullmatch(key)
    }
    option_pairs = tuple(sorted(options.items()))
    return Address(path=path or "/", **fields, options=option_pairs), faults  # type: ignore[arg-type]


def place(path: str, search: str) -> dict[str, str | None]:
    """Return which page of which reports is asked for, as `placeOf` in assets/views.js does."""
    asked = dict(reversed(parse_qsl(search.removeprefix("?"), keep_blank_values=True)))
    return {"path": path, "report": asked.get("report"), "against": asked.get("against")}


def ranges(numbers: Sequence[int]) -> str:
    """Write numbers as `3,17,100-120`; neighbours that follow each other become a range."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def write(address: Address) -> str:
    """Write an address as a link within the dashboard."""
    pairs = []
    for field in fields(address)[1:-1]:
        value = getattr(address, field.name)
        if value in (None, "", ()):
            continue
        if isinstance(value, Range):
            value = f"{value.begin}-{value.end}"
        if isinstance(value, tuple):
            value = ranges(value)
        pairs.append((_KEYS.get(field.name, field.name), str(value)))
    pairs += address.options
    return address.path + ("?" + urlencode(pairs, safe=",") if pairs else "")
