"""Options as Poplar has them: by name, declared in a table, refused when unknown."""

from __future__ import annotations

import difflib
import json
import os
import re
from collections import UserDict
from collections.abc import Callable, Iterable, Mapping
from typing import Literal, NamedTuple

from simulator.graph.arguments import refuse_in
from simulator.graph.errors import InvalidOptionError

OptionValue = bool | int | str


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
    """

    def __init__(self, given: Mapping[str, object] | Iterable[tuple[str, object]] = ()) -> None:
        super().__init__()
        self.set(dict(given))

    def __setitem__(self, name: str, value: object) -> None:
        super().__setitem__(name, _text(value))

    def set(self, name: str | Mapping[str, object], value: object = None) -> OptionFlags:
        """Set one option, or all of a mapping; gives itself, so that calls can be chained."""
        given = name if isinstance(name, Mapping) else {name: value}
        for option, to in given.items():
            self[option] = to
        return self

    def at(self, name: str) -> str:
        """Give the text of an option; raises InvalidOptionError when it is not set."""
        if name not in self:
            found = ", ".join(self) or "none"
            raise InvalidOptionError(f"OptionFlags: {name!r} is not set; set are {found}")
        return self[name]


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(dict(value)) if isinstance(value, Mapping) else str(value)


def checked(
    table: Mapping[str, Option], given: Mapping[str, object], source: str
) -> dict[str, OptionValue]:
    """Give the values of options in their types.

    Raises InvalidOptionError for an option that is not in the table, with near names, or a value
    that it cannot have; `source` says where the options stand.
    """
    if not isinstance(given, Mapping):
        raise InvalidOptionError(f"{source}: {given!r}; a mapping of options is needed")
    values = {}
    for name, value in given.items():
        if name not in table:
            near = difflib.get_close_matches(str(name), table, n=3, cutoff=0.5)
            hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(table)}"
            raise InvalidOptionError(f"{source}: no option {name!r}; {hint}")
        values[name] = _parsed(table[name], name, value, source)
    return values


def from_environment(table: Mapping[str, Option], variable: str) -> dict[str, OptionValue]:
    """Give the options of an environment variable that holds a JSON object of them."""
    text = os.environ.get(variable, "")
    if not text.strip():
        return {}
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidOptionError(f"{variable}: not JSON: {error}") from None
    if not isinstance(found, dict):
        raise InvalidOptionError(f"{variable}: {text!r}; a JSON object of options is needed")
    return checked(table, found, variable)


def defaults(
    table: Mapping[str, Option], chosen: Mapping[str, OptionValue]
) -> dict[str, OptionValue]:
    """Give every option of the table its value: the chosen one, else its default."""
    values: dict[str, OptionValue] = {}
    for name, option in table.items():
        default = values[option.follows] if option.follows else option.default
        values[name] = chosen.get(name, default)
    return values


def _parsed(option: Option, name: str, value: object, source: str) -> OptionValue:
    if option.allowed:
        by_lower = {text.lower(): text for text in option.allowed}
        found = by_lower.get(str(value).lower())
        if found is None:
            raise InvalidOptionError(
                f"{source}: {name} is {value!r}; it must be one of {', '.join(option.allowed)}"
            )
        return found
    parse, expected = _FORMS.get(option.form) or _KINDS[type(option.default)]
    try:
        return parse(value)
    except (KeyError, ValueError, TypeError, RecursionError, re.error):
        raise InvalidOptionError(f"{source}: {name} is {value!r}; {expected} is needed") from None


def _boolean(value: object) -> bool:
    return {"true": True, "false": False}[str(value).lower()]


def _count(value: object) -> int:
    text = str(value)
    number = int(text, 16 if text.lower().startswith("0x") else 10)
    if number < 0:
        raise ValueError(value)
    return number


def _object(value: object) -> str:
    """Give a JSON object as text; of no object the empty text."""
    if value == "":
        return ""
    found = value if isinstance(value, Mapping) else json.loads(str(value))
    if not isinstance(found, Mapping):
        raise ValueError(value)
    return json.dumps(dict(found), allow_nan=False)


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
