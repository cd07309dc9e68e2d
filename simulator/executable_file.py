"""An executable in a file: a line that says what made it, then a pickle of all it holds.

What is pickled is data. A function of the simulator, which a vertex type has for its values, is
kept as its place in the code of its module, so that the version that reads must be the one that
wrote; a codelet of the user's is kept by its name.
"""

from __future__ import annotations

import functools
import importlib
import io
import json
import pickle
import sys
import zlib
from collections.abc import Iterator
from enum import Enum, EnumType
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any, BinaryIO

import numpy as np

from simulator.graph.errors import PoplarError, one_line
from simulator.graph.vertex import Vertex

KIND = "simulator executable"
LONGEST_HEADER = 1000  # bytes
# What a pickle names beside the simulator's own, and NumPy's functions on arrays.
KNOWN = {
    "builtins": {"complex", "frozenset", "range", "set", "slice", "bytearray"},
    "collections": {"OrderedDict", "defaultdict", "deque"},
    "copyreg": {"_reconstructor"},
    "functools": {"partial"},
    "numpy": {"dtype", "ndarray"},
    "numpy.core.multiarray": {"_reconstruct", "scalar"},
    "numpy.core.numeric": {"_frombuffer"},
    "numpy._core.multiarray": {"_reconstruct", "scalar"},
    "numpy._core.numeric": {"_frombuffer"},
    "re": {"_compile"},
    "simulator.executable_file": {"_function"},
}


def write(stream: BinaryIO, executable: object) -> None:
    """Write an executable; raises PoplarError when something of it cannot be kept."""
    packed = io.BytesIO()
    try:
        _Pickler(packed, protocol=5).dump(executable)
    except RecursionError:
        raise PoplarError("executable: its programs are nested too deeply to be kept") from None
    except (pickle.PicklingError, AttributeError, TypeError, ValueError) as error:
        raise PoplarError(f"executable: it cannot be kept: {one_line(str(error))}") from error
    body = packed.getvalue()
    header = {**_made_by(), "bytes": len(body), "crc32": zlib.crc32(body)}
    try:
        stream.write(json.dumps(header).encode() + b"\n" + body)
    except (TypeError, AttributeError):
        raise PoplarError(f"executable: {stream!r} is no binary file to write to") from None


def read(stream: BinaryIO) -> object:
    """Read what `write` wrote, from where the stream stands; raises PoplarError."""
    try:
        line = stream.readline(LONGEST_HEADER)
        header = json.loads(line)
        kind, size, check = header.pop("kind"), int(header["bytes"]), header["crc32"]
    except (TypeError, AttributeError, ValueError, KeyError, OverflowError):
        raise PoplarError("executable: this is no file of an executable") from None
    if not isinstance(line, bytes) or kind != KIND:
        raise PoplarError("executable: this is no file of an executable")
    for what, ours in _made_by().items():
        if what != "kind" and header.get(what) != ours:
            raise PoplarError(
                f"executable: made with {what} {header.get(what)}, this is {ours}; compile it anew"
            )
    try:
        body = stream.read(size)
    except (MemoryError, OverflowError, ValueError):  # no size that a file can have
        body = b""
    if len(body) != size or zlib.crc32(body) != check:
        raise PoplarError(f"executable: the file is damaged; {len(body):,} of {size:,} bytes")
    try:
        return _Unpickler(io.BytesIO(body)).load()
    except PoplarError:
        raise
    except Exception as error:
        raise PoplarError(f"executable: it cannot be read: {one_line(str(error))}") from error


def _made_by() -> dict[str, str]:
    from simulator.profile.graph_profile import VERSION

    version = ".".join(map(str, VERSION))
    python = ".".join(map(str, sys.version_info[:2]))
    return {"kind": KIND, "version": version, "Python": python, "NumPy": np.__version__}


class _Pickler(pickle.Pickler):
    def reducer_override(self, item: Any) -> Any:
        if isinstance(item, FunctionType) and not _has_name(item):
            return _function, _place(item)
        if isinstance(item, type) and "<locals>" in item.__qualname__:
            raise pickle.PicklingError(f"{item.__qualname__} is defined inside a function")
        return NotImplemented


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("builtins", "getattr"):
            return _member
        if name in KNOWN.get(module, ()):
            return super().find_class(module, name)
        if module.startswith("simulator."):
            own = super().find_class(module, name)  # and not what the module has imported
            if str(getattr(own, "__module__", "")).startswith("simulator."):
                return own
        if module == "numpy" and isinstance(getattr(np, name, None), np.ufunc):
            return getattr(np, name)
        found = _find(sys.modules.get(module), name)
        if isinstance(found, type) and issubclass(found, Vertex):
            return found
        raise PoplarError(
            f"executable: {name} of {module} is not known; import what defines this codelet before"
        )


def _member(kind: object, name: str) -> Enum:
    """Give a member of an enumeration, which Python before 3.11.4 pickles by `getattr`."""
    if not isinstance(kind, EnumType):
        raise PoplarError(f"executable: {name} of {kind!r} is no member of an enumeration")
    member: Enum = kind[name]
    return member


def _find(found: object, name: str) -> object:
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _has_name(function: FunctionType) -> bool:
    """Tell whether a module has a function under its name, by which a pickle refers to it."""
    return _find(sys.modules.get(function.__module__), function.__qualname__) is function


def _place(function: FunctionType) -> tuple[Any, ...]:
    """Give a nested function as data: where its code stands, and the values that it refers to."""
    name = f"{function.__module__}.{function.__qualname__}"
    if not function.__module__.startswith("simulator."):
        raise pickle.PicklingError(f"{name} is no function of the simulator's")
    codes = _codes(function.__module__)
    if function.__code__ not in codes:
        raise pickle.PicklingError(f"{name} is not in the code of its module")
    held = [cell.cell_contents for cell in function.__closure__ or ()]
    number = codes.index(function.__code__)
    defaults = function.__defaults__, function.__kwdefaults__
    return function.__module__, number, function.__qualname__, *defaults, held


def _function(
    module: str,
    number: int,
    name: str,
    defaults: tuple[Any, ...] | None,
    named: dict[str, Any] | None,
    held: list[Any],
) -> FunctionType:
    """Make a nested function again from where its code stands."""
    codes = _codes(module)
    if number >= len(codes) or codes[number].co_qualname != name:
        raise PoplarError(f"executable: {module} has no function {name} as it had; compile it anew")
    code = codes[number]
    cells = tuple(CellType(value) for value in held)
    scope = vars(importlib.import_module(module))
    made = FunctionType(code, scope, code.co_name, defaults, cells)
    made.__kwdefaults__ = named
    made.__qualname__ = name
    return made


@functools.cache
def _codes(module: str) -> list[CodeType]:
    """List the code of all functions of a module, in their order."""
    found: ModuleType = importlib.import_module(module)
    if not module.startswith("simulator.") or found.__loader__ is None:
        raise PoplarError(f"executable: {module} is no module of the simulator's")
    whole = found.__loader__.get_code(module)  # type: ignore[attr-defined]
    return list(_below(whole))


def _below(code: CodeType) -> Iterator[CodeType]:
    for item in code.co_consts:
        if isinstance(item, CodeType):
            yield item
            yield from _below(item)
