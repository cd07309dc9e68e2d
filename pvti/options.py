"""What `PVTI_OPTIONS` asks for, as JSON: `enable`, and the fields of `Options`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

VARIABLE = "PVTI_OPTIONS"
FILE, RING = MODES = ("file", "ring")


class Options(NamedTuple):
    """What to record, where and how long."""

    directory: str = ""  # empty: the working directory
    channels: tuple[str, ...] = ()  # empty: all
    duration: float = 0.0  # seconds; 0: until the program ends
    mode: str = FILE  # ring: hold the last `seconds` in memory, write them when asked for
    seconds: float = 30.0


def from_environment(environment: Mapping[str, str]) -> Options | None:
    """Read the options, or None when nothing is to be recorded.

    Unset: nothing. Text that does not parse, values of a wrong type: recording, with defaults.
    """
    text = environment.get(VARIABLE)
    if text is None:
        return None
    import json  # dear, and most programs are not traced

    try:
        options = json.loads(text)
    except (ValueError, RecursionError):
        return Options()
    if not isinstance(options, dict):
        return Options()
    if options.get("enable", True) in (False, "false", "False", 0, "0"):
        return None
    return Options(
        _directory(options.get("directory")),
        _channels(options.get("channels")),
        _seconds(options.get("duration"), Options().duration),
        RING if options.get("mode") == RING else FILE,
        _seconds(options.get("seconds"), Options().seconds),
    )


def _directory(value: object) -> str:
    return value if isinstance(value, str) else ""


def _channels(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    if isinstance(value, list):
        return tuple(name for name in value if isinstance(name, str))
    return ()


def _seconds(value: object, default: float) -> float:
    if isinstance(value, bool):
        return default
    try:
        seconds = float(value)  # type: ignore[arg-type]  # whatever it is, float says
    except (TypeError, ValueError, OverflowError):
        return default
    return seconds if 0 < seconds < math.inf else default
