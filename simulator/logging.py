"""Log lines of the simulator (PO) and its libraries (PL), as the user guide's chapter has them.

POPLAR_LOG_LEVEL and POPLIBS_LOG_LEVEL choose OFF, ERR, WARN, INFO, DEBUG or TRACE, and, for the
lines of one module alone, POPLAR_<MODULE>_LOG_LEVEL and POPLIBS_<MODULE>_LOG_LEVEL. POPLAR_LOG_DEST
and POPLIBS_LOG_DEST choose stderr (the default), stdout or a file's name.

INFO is for what the program asked for, DEBUG for figures of a graph, TRACE for figures of tiles.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import wraps
from typing import Literal, ParamSpec, TypeVar

from simulator.graph.arguments import refusing
from simulator.graph.errors import PoplarError

Source = Literal["PO", "PL"]
Level = Literal["ERR", "WARN", "INFO", "DEBUG", "TRACE"]
LEVELS = ("OFF", "ERR", "WARN", "INFO", "DEBUG", "TRACE")
_VARIABLES = {"PO": "POPLAR", "PL": "POPLIBS"}
_P = ParamSpec("_P")
_R = TypeVar("_R")


def enabled(source: Source, level: Level, module: str = "") -> bool:
    """Return whether lines of this level are wanted; to be asked before a line is put together."""
    family = _VARIABLES[source]
    variable = f"{family}_{module}_LOG_LEVEL"
    setting = os.environ.get(variable)
    if setting is None:
        variable = f"{family}_LOG_LEVEL"
        setting = os.environ.get(variable)
    if not setting:
        return False
    if setting.upper() not in LEVELS:
        raise PoplarError(f"{variable} is {setting!r}; it must be one of {', '.join(LEVELS)}")
    return LEVELS.index(level) <= LEVELS.index(setting.upper())


def log(source: Source, module: str, level: Level, message: str) -> None:
    """Write a message, each of its lines as one of the log, if its level is wanted."""
    if not enabled(source, level, module):
        return
    now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    thread = f"{os.getpid()}.{threading.get_native_id()}"
    prefix = f"{now} {source}:{module:<9}{thread} {level[0]}: "
    variable = f"{_VARIABLES[source]}_LOG_DEST"
    text = message.replace("\n", f"\n{prefix}")
    write_lines(variable, os.environ.get(variable) or "stderr", f"{prefix}{text}")


def write_lines(subject: str, destination: str, text: str) -> None:
    """Write lines to stdout, stderr or the end of a file; raises PoplarError naming `subject`."""
    if destination in ("stderr", "stdout"):
        print(text, file=getattr(sys, destination))
        return
    try:
        with open(destination, "a", encoding="utf-8", opener=_opened_at_once) as file:
            print(text, file=file)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise PoplarError(f"{subject}: cannot write {destination}: {reason}") from None


def _opened_at_once(path: str, flags: int) -> int:
    """Open a file; a pipe that nobody reads is refused, which would be waited for without end."""
    number = os.open(path, flags | getattr(os, "O_NONBLOCK", 0), 0o666)
    os.set_blocking(number, True)
    return number


def library_call(module: str) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Log each call of a library's function with its arguments: tensors by type and shape."""

    def decorate(function: Callable[_P, _R]) -> Callable[_P, _R]:
        guarded = refusing(function, f"{module.lower()}.{function.__name__}")

        @wraps(function)
        def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            if enabled("PL", "INFO", module):
                log("PL", module, "INFO", _called(function.__name__, args, kwargs))
            return guarded(*args, **kwargs)

        return call

    return decorate


def _called(name: str, args: Iterable[object], kwargs: dict[str, object]) -> str:
    """Put a call into words; the graph and the program that it adds to go without saying."""
    values = [text for arg in args if (text := _argument(arg))]
    values += [f"{key}={text}" for key, arg in kwargs.items() if (text := _argument(arg))]
    return f"{name}({', '.join(values)})"


def _argument(value: object) -> str:
    kind = type(value).__name__
    if kind == "Tensor":
        return str(value)
    if kind in ("Graph", "Sequence", "ComputeSet"):
        return ""
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
