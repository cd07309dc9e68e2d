"""Where in the user's program a variable or compute set was made."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Self, TypedDict

from simulator.graph.types import checked_name

_COMMANDS = os.path.join(Path(__file__).parents[2], "cli", "")  # their files


class Location(TypedDict):
    """A line of the user's program; of the file only its base name, never a path."""

    fileName: str
    functionName: str
    lineNumber: int


class DebugContext(TypedDict):
    """A named place in the program; `parentId` 0 for none."""

    id: int
    parentId: int
    name: str
    layer: str
    arguments: dict[str, str]
    location: Location


@contextmanager
def inside(scopes: list[int], context_id: int) -> Iterator[None]:
    """Append a debug context to the scopes of a program while the block runs."""
    scopes.append(context_id)
    try:
        yield
    finally:
        scopes.pop()


class DebugName(str):
    """A debug name, below another one when two are given: DebugName("a", "b") is "a/b".

    >>> DebugName("net", "layer")
    'net/layer'
    """

    def __new__(cls, parent: str = "", name: str = "") -> Self:
        parts = [checked_name(part, "debug context") for part in (parent, name) if part]
        return super().__new__(cls, "/".join(parts))

    def getPathName(self) -> str:
        """Return the whole name.

        >>> DebugName("net", "layer").getPathName()
        'net/layer'
        """
        return str(self)


class DebugInfo(DebugName):
    """The debug name that a function was given; the layer that it belongs to changes nothing."""

    def __new__(cls, debugContext: str = "", layer: str = "") -> Self:
        del layer
        return super().__new__(cls, debugContext)


def users_location() -> Location:
    """Return the innermost line that called the simulator; none where it is one of our commands."""
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_simulator(str(frame.f_globals.get("__name__", ""))):
        frame = frame.f_back
    code = frame.f_code
    if code.co_filename.startswith(_COMMANDS):
        return {"fileName": "", "functionName": "", "lineNumber": 0}
    name = code.co_filename.replace("\\", "/").rsplit("/", 1)[-1]
    return {"fileName": name, "functionName": code.co_name, "lineNumber": frame.f_lineno}


@cache
def _is_simulator(module: str) -> bool:
    """Return the simulator's modules, and the standard library's that runs its `with` blocks."""
    internal = module.startswith("simulator.") and not module.startswith("simulator.examples")
    return internal or module == "contextlib"
