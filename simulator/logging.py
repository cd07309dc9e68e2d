"""Log lines of the simulator (PO) and its libraries (PL), as the user guide's chapter has them.

POPLAR_LOG_LEVEL and POPLIBS_LOG_LEVEL choose OFF, ERR, WARN, INFO, DEBUG or TRACE; POPLAR_LOG_DEST
and POPLIBS_LOG_DEST choose stderr (the default), stdout or a file's name.
"""

from __future__ import annotations

import os
import sys
import threading
from datetime import UTC, datetime
from typing import Literal

from simulator.graph.errors import PoplarError

LEVELS = ("OFF", "ERR", "WARN", "INFO", "DEBUG", "TRACE")
Level = Literal["ERR", "WARN", "INFO", "DEBUG", "TRACE"]
_VARIABLES = {"PO": "POPLAR", "PL": "POPLIBS"}


def enabled(source: Literal["PO", "PL"], level: Level) -> bool:
    """Tell whether lines of this level are wanted."""
    variable = f"{_VARIABLES[source]}_LOG_LEVEL"
    chosen = os.environ.get(variable, "OFF").upper() or "OFF"
    if chosen not in LEVELS:
        raise PoplarError(f"{variable} is {chosen!r}; it must be one of {', '.join(LEVELS)}")
    return LEVELS.index(level) <= LEVELS.index(chosen)


def log(source: Literal["PO", "PL"], module: str, level: Level, message: str) -> None:
    """Write a line, if its level is wanted."""
    if not enabled(source, level):
        return
    now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    thread = f"{os.getpid()}.{threading.get_native_id()}"
    line = f"{now} {source}:{module:<9}{thread} {level[0]}: {message}"
    destination = os.environ.get(f"{_VARIABLES[source]}_LOG_DEST", "stderr")
    if destination in ("stderr", "stdout"):
        print(line, file=getattr(sys, destination))
        return
    try:
        with open(destination, "a", encoding="utf-8") as file:
            print(line, file=file)
    except OSError as error:
        variable = f"{_VARIABLES[source]}_LOG_DEST"
        raise PoplarError(f"{variable}: cannot write {destination}: {error.strerror}") from None
