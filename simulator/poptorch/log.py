"""Log lines of PopTorch: POPTORCH_LOG_LEVEL or setLogLevel; warnings and errors otherwise."""

from __future__ import annotations

import logging
import os

from simulator.poptorch.errors import Error

LEVELS = {
    "TRACE": 5, "DEBUG": logging.DEBUG, "INFO": logging.INFO, "WARN": logging.WARNING,
    "ERR": logging.ERROR, "OFF": logging.CRITICAL + 1,
}  # fmt: skip
_WORDS = {5: "trace", 10: "debug", 20: "info", 30: "warning", 40: "error", 50: "critical"}

logger = logging.getLogger("poptorch::python")


class _Lines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        stamp = f"{self.formatTime(record, '%H:%M:%S')}.{int(record.msecs):03d}"
        word = _WORDS.get(record.levelno, record.levelname.lower())
        return f"[{stamp}] [{record.name}] [{word}] {record.getMessage()}"


def setLogLevel(level: str | int) -> None:
    """Set which lines are written: TRACE, DEBUG, INFO, WARN, ERR or OFF.

    >>> from simulator import poptorch
    >>> poptorch.setLogLevel("WARN")
    """
    name = str(level).upper()
    if name not in LEVELS:
        raise Error(f"setLogLevel: {level!r}; it must be one of {', '.join(LEVELS)}")
    logger.setLevel(LEVELS[name])


def _begin() -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(_Lines())
    logger.addHandler(handler)
    logger.propagate = False
    setLogLevel(os.environ.get("POPTORCH_LOG_LEVEL") or "WARN")


_begin()
