"""A hash of objects by what they hold, the same in every process: what a compilation depends on.

Data is taken as it is, objects by the names and values of their attributes, in their order.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterable, Mapping
from enum import Enum
from functools import partial
from types import BuiltinFunctionType, CodeType, FunctionType

import numpy as np

from simulator.graph.errors import PoplarError

VERSIONED = ("simulator", "pva", "pvti", "numpy", "builtins")  # these stand by their versions
PLAIN = (type(None), bool, int, float, str, bytes, complex)


def fingerprint(*values: object) -> str:
    """Return the SHA-256 of values, as hexadecimal digits; raises PoplarError for what has none.

    An object that stands in several places, or in itself, is taken once and counted there.
    """
    digest = hashlib.sha256()
    seen: dict[int, int] = {}
    objects: list[object] = []  # so that no other object gets the id of one
    waiting: deque[object] = deque(values)
    while waiting:
        value = waiting.popleft()
        if isinstance(value, PLAIN) and not isinstance(value, Enum):
            _add(digest, type(value).__name__, repr(value) if type(value) is not bytes else value)
            continue
        number = seen.setdefault(id(value), len(seen))
        if number < len(objects):
            _add(digest, "again", str(number))
            continue
        objects.append(value)
        head, parts = _taken_apart(value)
        _add(digest, f"{type(value).__module__}.{type(value).__qualname__}", head)
        listed = list(parts)
        _add(digest, "parts", str(len(listed)))
        waiting.extendleft(reversed(listed))
    return digest.hexdigest()


def _add(digest: hashlib._Hash, kind: str, content: str | bytes | memoryview) -> None:
    data = content.encode(errors="surrogatepass") if isinstance(content, str) else content
    digest.update(f"{kind}:{memoryview(data).nbytes}:".encode())
    digest.update(data)


def _taken_apart(value: object) -> tuple[str | bytes | memoryview, Iterable[object]]:
    """Return what tells a value from others of its type, and what it is made of."""
    if isinstance(value, Enum):
        return value.name, ()
    if isinstance(value, np.ndarray | np.generic):
        array = np.ascontiguousarray(value)
        if array.dtype.hasobject:
            raise PoplarError("fingerprint: an array of objects has none")
        return array.data if array.size else b"", (array.dtype.str, *array.shape)
    if isinstance(value, np.dtype):
        return value.str, ()
    if isinstance(value, Mapping):
        return "", [part for item in value.items() for part in item]
    if isinstance(value, set | frozenset):
        return "", sorted(value, key=repr)
    if isinstance(value, list | tuple | deque):
        return "", value
    if isinstance(value, type | FunctionType | BuiltinFunctionType):
        return f"{value.__module__}.{value.__qualname__}", (*_held(value), *_written(value))
    if isinstance(value, CodeType):
        return value.co_code, (value.co_names, value.co_consts)
    if isinstance(value, partial):
        return "", (value.func, value.args, value.keywords)
    if hasattr(value, "SerializeToString"):  # a message of protobuf
        return bytes(value.SerializeToString(deterministic=True)), ()
    return "", _attributes(value)


def _held(value: object) -> list[object]:
    """Return what a function refers to of the functions around it."""
    return [cell.cell_contents for cell in getattr(value, "__closure__", None) or ()]


def _written(value: object) -> list[object]:
    """Return what a function or class does where it is the user's, who may change it."""
    if str(value.__module__).partition(".")[0] in VERSIONED:
        return []
    if isinstance(value, type):
        return [part for item in vars(value).items() if isinstance(item[1], FunctionType)
                for part in item]  # fmt: skip
    return [getattr(value, "__code__", None), getattr(value, "__defaults__", None)]


def _attributes(value: object) -> list[object]:
    """Return the names and values of an object's attributes; raises PoplarError without any."""
    names = [*getattr(value, "__dict__", {})]
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        names += [slots] if isinstance(slots, str) else list(slots)
    attributes = [n for n in dict.fromkeys(names) if hasattr(value, n) and n != "__weakref__"]
    if not attributes and not hasattr(value, "__dict__") and not hasattr(type(value), "__slots__"):
        raise PoplarError(f"fingerprint: a {type(value).__name__} has none")
    return [part for name in attributes for part in (name, getattr(value, name))]
