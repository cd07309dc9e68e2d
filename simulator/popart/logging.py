"""Log lines of PopART: "[2019-10-16 13:55:05.359] [popart:devicex] [debug] Creating ...".

POPART_LOG_LEVEL chooses TRACE, DEBUG, INFO, WARN (the default), ERR, CRITICAL or OFF for all
modules, POPART_LOG_DEST stderr (the default), stdout or a file, and POPART_LOG_CONFIG names a JSON
file of module: level pairs, which win. In a program: logger.setLevel("popart", "DEBUG").
"""

from __future__ import annotations

import json
import os
from datetime import datetime
from functools import cache
from pathlib import Path

from pva.errors import PvaError
from pva.plain_file import contents
from simulator.logging import write_lines
from simulator.popart.errors import popart_exception

LEVELS = ("TRACE", "DEBUG", "INFO", "WARN", "ERR", "CRITICAL", "OFF")
# Those of PopART; scripts may name any of them, also those that have no lines here.
MODULES = ("popart", "session", "ir", "devicex", "pattern", "builder", "transform", "op", "opx",
           "ces", "python", "none")  # fmt: skip
MAX_BYTES = 1 << 20  # of a file of levels
ALL = "popart"  # the name that stands for all modules
_WORDS = {"WARN": "warning", "ERR": "error"}
_CHOSEN: dict[str, str] = {}  # what the program has set


def _level(name: object, subject: str) -> str:
    level = str(name).upper()
    if level not in LEVELS:
        raise popart_exception(f"{subject}: level {name!r}; it must be one of {', '.join(LEVELS)}")
    return level


def _module(name: object, subject: str) -> str:
    if name not in MODULES:
        raise popart_exception(f"{subject}: module {name!r}; known are {', '.join(MODULES)}")
    return str(name)


@cache
def _configured(path: str) -> dict[str, str]:
    """Read the file of module: level pairs; raises popart_exception."""
    subject = f"POPART_LOG_CONFIG {path}"
    try:
        levels = json.loads(contents(Path(path), "module: level pairs", MAX_BYTES))
    except PvaError as error:
        raise popart_exception(f"{subject}: {error.found}; {error.wanted}") from None
    except (ValueError, RecursionError):
        raise popart_exception(f"{subject}: not JSON; module: level pairs are needed") from None
    if not isinstance(levels, dict):
        raise popart_exception(f"{subject}: no object; module: level pairs are needed")
    return {_module(module, subject): _level(level, subject) for module, level in levels.items()}


def level_of(module: str) -> str:
    """Return the level of a module: the program's, the file's, the variable's, WARN."""
    path = os.environ.get("POPART_LOG_CONFIG")
    file = _configured(path) if path else {}
    for table in (_CHOSEN, file):
        for name in (module, ALL):
            if name in table:
                return table[name]
    variable = os.environ.get("POPART_LOG_LEVEL")
    return _level(variable, "POPART_LOG_LEVEL") if variable else "WARN"


def enabled(module: str, level: str) -> bool:
    """Return whether lines of a level are wanted; to be asked before a line is put together."""
    return LEVELS.index(level) >= LEVELS.index(level_of(module)) and level_of(module) != "OFF"


def log(module: str, level: str, message: str) -> None:
    """Write a line, if its level is wanted."""
    if not enabled(module, level):
        return
    now = datetime.now().isoformat(sep=" ", timespec="milliseconds")
    name = ALL if module == ALL else f"{ALL}:{module}"
    line = f"[{now}] [{name}] [{_WORDS.get(level, level.lower())}] {message}"
    write_lines("POPART_LOG_DEST", os.environ.get("POPART_LOG_DEST") or "stderr", line)


class Logger:
    """The programming interface: popart.getLogger("session").setLevel("DEBUG").

    >>> Logger("session").trace("below WARN, so not written")
    """

    def __init__(self, module: str = ALL) -> None:
        self._module = _module(module, "getLogger")

    def setLevel(self, *arguments: object) -> None:
        """Set the level of this module, or of one by its name: setLevel("session", "OFF").

        >>> logger = Logger("session")
        >>> logger.setLevel("WARN")
        >>> level_of("session")
        'WARN'
        """
        if len(arguments) not in (1, 2):
            raise popart_exception("setLevel: a level is needed, or a module and a level")
        module = self._module if len(arguments) == 1 else _module(arguments[0], "setLevel")
        _set(module, _level(arguments[-1], "setLevel"))

    def log(self, level: str, message: str) -> None:
        """Write a line of this module.

        >>> logger = Logger("session")
        >>> logger.log("DEBUG", "below WARN, so not written")
        """
        log(self._module, _level(level, "log"), message)

    def trace(self, message: str) -> None:
        """Write a line at level TRACE.

        >>> Logger("session").trace("below WARN, so not written")
        """
        log(self._module, "TRACE", message)

    def debug(self, message: str) -> None:
        """Write a line at level DEBUG.

        >>> Logger("session").debug("below WARN, so not written")
        """
        log(self._module, "DEBUG", message)

    def info(self, message: str) -> None:
        """Write a line at level INFO.

        >>> Logger("session").info("below WARN, so not written")
        """
        log(self._module, "INFO", message)

    def warn(self, message: str) -> None:
        """Write a line at level WARN.

        >>> Logger("session").warn("to standard error")
        """
        log(self._module, "WARN", message)

    def error(self, message: str) -> None:
        """Write a line at level ERR.

        >>> Logger("session").error("to standard error")
        """
        log(self._module, "ERR", message)

    def critical(self, message: str) -> None:
        """Write a line at level CRITICAL.

        >>> Logger("session").critical("to standard error")
        """
        log(self._module, "CRITICAL", message)


def _set(module: str, level: str) -> None:
    """Set a level; that of all modules takes the place of what was set for each."""
    if module == ALL:
        _CHOSEN.clear()
    _CHOSEN[module] = level


def getLogger(module: str = ALL) -> Logger:
    """Return the logger of a module, "popart" for all of them.

    >>> from simulator import popart
    >>> popart.getLogger("session").setLevel("WARN")
    """
    return Logger(module)
