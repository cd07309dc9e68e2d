"""Fields of an object that are made when they are first asked for: arrays, dictionaries of arrays.

A run without values reads few of the arrays of a compiled program, which take the most memory.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from threading import Lock
from typing import Any


class Deferred:
    """A value of a type that is made once, whoever asks for it."""

    __slots__ = ("_lock", "_make", "_value", "kind")

    def __init__(self, kind: type, make: Callable[[], object]) -> None:
        self.kind = kind
        self._make: Callable[[], object] | None = make
        self._value: object = None
        self._lock = Lock()

    def value(self) -> object:
        """Return the value."""
        with self._lock:
            if self._make is not None:
                self._value, self._make = self._make(), None
        return self._value


class DeferredFields:
    """The base of a class with slots, of which a field may be made when it is first asked for."""

    __slots__ = ("_deferred",)
    _deferred: dict[str, Deferred]

    def __getattr__(self, name: str) -> Any:
        """Make a field that was deferred; once all are, nothing is left of that."""
        deferred = {} if name == "_deferred" else getattr(self, "_deferred", {})
        if name not in deferred:
            return object.__getattribute__(self, name)  # made meanwhile, or an AttributeError
        value = deferred[name].value()
        object.__setattr__(self, name, value)
        deferred.pop(name, None)
        if not deferred:
            with suppress(AttributeError):
                object.__delattr__(self, "_deferred")
        return value


def defer(instance: DeferredFields, name: str, value: Deferred) -> None:
    """Let a field be made when it is first asked for."""
    if not hasattr(instance, "_deferred"):
        object.__setattr__(instance, "_deferred", {})
    instance._deferred[name] = value
