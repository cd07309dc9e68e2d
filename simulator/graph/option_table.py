"""Options as Poplar has them: by name, declared in a table, refused when unknown."""

from __future__ import annotations

import difflib
import json
import os
import re
from collections import UserDict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Literal, NamedTuple

from simulator.graph.arguments import refuse_in
from simulator.graph.errors import InvalidOptionError

OptionValue = bool | int | str
_QUOTED = 200  # characters of a value in a message
_LARGEST = 2**63 - 1
# What reading a value raises; of a regular expression that repeats too often OverflowError.
_WRONG = (KeyError, ValueError, TypeError, RecursionError, OverflowError, MemoryError, re.error)


class Option(NamedTuple):
    """One option.

    `follows` names the option (earlier in the table) whose value is its default; `allowed` lists
    the texts that it may be. Of form `json` it is an object, given as text or as a mapping, of form
    `pattern` a regular expression.
    """

    default: OptionValue
    meaning: str
    follows: str = ""
    allowed: tuple[str, ...] = ()
    form: Literal["plain", "json", "pattern"] = "plain"


@refuse_in
class OptionFlags(UserDict[str, str]):
    """Poplar's options: a mapping of names to texts.

    `OptionFlags({"debug.instrument": True}).set("autoReport.directory", "report")`

    >>> OptionFlags({"debug.instrument": True})
    {'debug.instrument': 'true'}
    """

    def __init__(self, given: Mapping[str, object] | Iterable[tuple[str, object]] = ()) -> None:
        super().__init__()
        self.set(dict(given))

    def __setitem__(self, name: str, value: object) -> None:
        super().__setitem__(name, _text(value))

    def set(self, name: str | Mapping[str, object], value: object = None) -> OptionFlags:
        """Set one option, or all of a mapping; gives itself, so that calls can be chained.

        >>> OptionFlags().set("opt.a", 1).set({"opt.b": False})
        {'opt.a': '1', 'opt.b': 'false'}
        """
        options = name if isinstance(name, Mapping) else {name: value}
        for option, to in options.items():
            self[option] = to
        return self

    def at(self, name: str) -> str:
        """Return the text of an option; raises InvalidOptionError when it is not set.

        >>> OptionFlags({"debug.instrument": True}).at("debug.instrument")
        'true'
        """
        if name not in self:
            names = ", ".join(self) or "none"
            raise InvalidOptionError(f"OptionFlags: {name!r} is not set; set are {names}")
        return self[name]


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(dict(value)) if isinstance(value, Mapping) else str(value)


def checked(
    table: Mapping[str, Option], options: Mapping[str, object], source: str
) -> dict[str, OptionValue]:
    """Return the values of options in their types.

    Raises InvalidOptionError for an option that is not in the table, with near names, or a value
    that it cannot have; `source` says where the options stand.
    """
    if not isinstance(options, Mapping):
        raise InvalidOptionError(f"{source}: {quoted(options)}; a mapping of options is needed")
    values = {}
    for name, value in options.items():
        if name not in table:
            near = difflib.get_close_matches(str(name)[:_QUOTED], table, n=3, cutoff=0.5)
            hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(table)}"
            raise InvalidOptionError(f"{source}: no option {quoted(name)}; {hint}")
        values[name] = _parsed(table[name], name, value, source)
    return values


def from_environment(table: Mapping[str, Option], variable: str) -> dict[str, OptionValue]:
    """Return the options of an environment variable that holds a JSON object of them."""
    return checked(table, object_of(variable), variable)


def object_of(variable: str) -> dict[str, object]:
    """Read the JSON object of a variable, empty where it is unset; raises InvalidOptionError."""
    text = os.environ.get(variable, "")
    if not text.strip():
        return {}
    try:
        data = json.loads(text)
    except RecursionError:
        raise InvalidOptionError(f"{variable}: not JSON: nested too deeply") from None
    except ValueError as error:
        reason = (
            error if isinstance(error, json.JSONDecodeError) else "a number of over 4,300 digits"
        )
        raise InvalidOptionError(f"{variable}: not JSON: {reason}") from None
    if not isinstance(data, dict):
        raise InvalidOptionError(f"{variable}: {quoted(text)}; a JSON object of options is needed")
    return data


def quoted(value: object) -> str:
    """Quote a value in a message, cut where it is long or deep."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a number of over 4,300 digits, or tables in tables
        return f"a {type(value).__name__} that is too large to be shown"
    return text if len(text) <= _QUOTED else f"{text[:_QUOTED]}... ({len(text):,} characters)"


def defaults(
    table: Mapping[str, Option], choices: Mapping[str, OptionValue]
) -> dict[str, OptionValue]:
    """Assign every option of the table its value: the chosen one, else its default."""
    values: dict[str, OptionValue] = {}
    for name, option in table.items():
        default = values[option.follows] if option.follows else option.default
        values[name] = choices.get(name, default)
    return values


def _parsed(option: Option, name: str, value: object, source: str) -> OptionValue:
    if option.allowed:
        by_lower = {text.lower(): text for text in option.allowed}
        with suppress(ValueError, RecursionError, KeyError):
            return by_lower[str(value).lower()]
        raise InvalidOptionError(
            f"{source}: {name} is {quoted(value)}; it must be one of {', '.join(option.allowed)}"
        )
    parse, expected = _FORMS.get(option.form) or _KINDS[type(option.default)]
    try:
        return parse(value)
    except _WRONG as error:
        if isinstance(error, OverflowError) and parse is _count:
            expected = "a number below 2^63"
        shown = f"{source}: {name} is {quoted(value)}; {expected} is needed"
        raise InvalidOptionError(shown) from None


def _boolean(value: object) -> bool:
    return {"true": True, "false": False}[str(value).lower()]


def _count(value: object) -> int:
    text = str(value)
    number = int(text, 16 if text.lower().startswith("0x") else 10)
    if number < 0:
        raise ValueError(value)
    if number > _LARGEST:
        raise OverflowError(value)
    return number


def _object(value: object) -> str:
    """Return a JSON object as text; of no object the empty text."""
    if value == "":
        return ""
    mapping = value if isinstance(value, Mapping) else json.loads(str(value))
    if not isinstance(mapping, Mapping):
        raise ValueError(value)
    return json.dumps(dict(mapping), allow_nan=False)


_Parser = Callable[[object], OptionValue]
_KINDS: dict[type, tuple[_Parser, str]] = {
    bool: (_boolean, "true or false"),
    int: (_count, "a number that is 0 or more"),
    str: (str, "text"),
}
_FORMS: dict[str, tuple[_Parser, str]] = {
    "json": (_object, "a JSON object"),
    "pattern": (lambda value: re.compile(str(value)).pattern, "a regular expression"),
}
