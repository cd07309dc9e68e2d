"""The engine's options: names, defaults and meanings in one table."""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Callable, Mapping
from typing import NamedTuple

from simulator.graph.errors import PoplarError

OptionValue = bool | int | str
ENVIRONMENT = "POPLAR_ENGINE_OPTIONS"


class Option(NamedTuple):
    """One option; `follows` names the option whose value is its default."""

    default: OptionValue
    meaning: str
    follows: str = ""


OPTIONS: dict[str, Option] = {
    "autoReport.all": Option(False, "write every part of the report"),
    "autoReport.directory": Option(".", "where the report is written"),
    "autoReport.outputGraphProfile": Option(
        False, "write what the compiler knows: memory, liveness, programs", "autoReport.all"
    ),
    "autoReport.outputExecutionProfile": Option(
        False, "write what the runs did: steps and their cycles", "autoReport.all"
    ),
    "autoReport.outputDebugInfo": Option(
        False, "write debug.cbor: where variables and compute sets were made", "autoReport.all"
    ),
    "autoReport.executionProfileProgramRunCount": Option(
        2, "how many runs are recorded step by step"
    ),
    "debug.allowOutOfMemory": Option(
        True, "compile a program that does not fit, so that its report can be read"
    ),
    "debug.instrument": Option(False, "instrument compute and exchange", "autoReport.all"),
    "debug.instrumentCompute": Option(False, "instrument compute cycles", "debug.instrument"),
    "debug.instrumentExternalExchange": Option(
        False, "instrument exchange with the host and other IPUs", "debug.instrument"
    ),
    "debug.computeInstrumentationLevel": Option(
        "tile", "what cycle counts are kept: tile, vertex, ipu or device"
    ),
}
LEVELS = ("tile", "vertex", "ipu", "device")


def resolve(given: Mapping[str, object] | None) -> dict[str, OptionValue]:
    """Give every option its value: the environment's, else the program's, else the default.

    Raises PoplarError for an option that is not known, with near names, or a value that is not
    of its type.
    """
    chosen = {**_checked(given or {}, "engine options"), **_from_environment()}
    values: dict[str, OptionValue] = {}
    for name, option in OPTIONS.items():
        default = values[option.follows] if option.follows else option.default
        values[name] = chosen.get(name, default)
    if values["debug.computeInstrumentationLevel"] not in LEVELS:
        found = values["debug.computeInstrumentationLevel"]
        raise PoplarError(
            f"debug.computeInstrumentationLevel is {found!r}; it must be one of {', '.join(LEVELS)}"
        )
    return values


def _from_environment() -> dict[str, OptionValue]:
    text = os.environ.get(ENVIRONMENT, "")
    if not text.strip():
        return {}
    try:
        found = json.loads(text)
    except ValueError as error:
        raise PoplarError(f"{ENVIRONMENT}: not JSON: {error}") from None
    if not isinstance(found, dict):
        raise PoplarError(f"{ENVIRONMENT}: {text!r}; a JSON object of options is needed")
    return _checked(found, ENVIRONMENT)


def _checked(given: Mapping[str, object], source: str) -> dict[str, OptionValue]:
    values = {}
    for name, value in given.items():
        if name not in OPTIONS:
            near = difflib.get_close_matches(name, OPTIONS, n=3, cutoff=0.5)
            hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(OPTIONS)}"
            raise PoplarError(f"{source}: no option {name!r}; {hint}")
        values[name] = _parsed(source, name, value)
    return values


def _parsed(source: str, name: str, value: object) -> OptionValue:
    kind = type(OPTIONS[name].default)
    try:
        return _PARSERS[kind](value)
    except (KeyError, ValueError, TypeError):
        raise PoplarError(f"{source}: {name} is {value!r}; {_EXPECTED[kind]} is needed") from None


def _boolean(value: object) -> bool:
    return {"true": True, "false": False}[str(value).lower()]


def _count(value: object) -> int:
    number = int(str(value))
    if number < 0:
        raise ValueError(value)
    return number


_PARSERS: dict[type, Callable[[object], OptionValue]] = {bool: _boolean, int: _count, str: str}
_EXPECTED: dict[type, str] = {
    bool: "true or false",
    int: "a number that is 0 or more",
    str: "text",
}
