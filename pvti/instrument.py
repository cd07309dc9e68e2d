"""Record calls of functions and methods without touching their source."""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator, Iterable
from typing import Any, TypeVar

from pvti.channel import TraceChannel
from pvti.tracepoint import Tracepoint

Function = TypeVar("Function", bound=Callable[..., Any])

# Of a code object's flags (module `inspect`, which is dear to import).
_GENERATOR, _COROUTINE = 0x20, 0x80


def instrument_fn(channel: TraceChannel) -> Callable[[Function], Function]:
    """Decorate a function or method: each call is an event `module.Class.function`.

    A coroutine's event lasts until it is done, waiting included; a generator's until its end.
    """

    def decorate(function: Function) -> Function:
        module = getattr(function, "__module__", None) or "builtins"
        name = getattr(function, "__qualname__", None) or type(function).__qualname__
        traced: Function = _traced(function, Tracepoint(channel, f"{module}.{name}"))
        return traced

    return decorate


def instrument(obj: Any, methods: Iterable[str], channel: TraceChannel) -> None:
    """Record calls of the methods named, of one object or of all objects of a class.

    Names with two underscores are looked up on the class by Python itself, so that these are
    recorded for all objects of the class. Raises AttributeError for a method that is not there.
    """
    kind = obj if isinstance(obj, type) else type(obj)
    for name in methods:
        special = name.startswith("__") and name.endswith("__")
        target = kind if special else obj
        label = f"{kind.__module__}.{kind.__qualname__}.{name}"
        _replace(target, name, Tracepoint(channel, label))


def _replace(target: Any, name: str, tracepoint: Tracepoint) -> None:
    method = getattr(target, name)
    if hasattr(method, "__pvti__"):
        return
    if not isinstance(target, type):
        setattr(target, name, _traced(method, tracepoint))
        return
    found = next(vars(base)[name] for base in target.__mro__ if name in vars(base))
    if isinstance(found, staticmethod | classmethod):
        setattr(target, name, type(found)(_traced(found.__func__, tracepoint)))
    else:
        setattr(target, name, _traced(method, tracepoint))


def _traced(function: Any, tracepoint: Tracepoint) -> Any:
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    flags = code.co_flags if code is not None else 0
    if flags & _COROUTINE:
        inner: Any = _traced_coroutine(function, tracepoint)
    elif flags & _GENERATOR:
        inner = _traced_generator(function, tracepoint)
    else:
        inner = _traced_call(function, tracepoint)
    functools.update_wrapper(inner, function)
    inner.__pvti__ = tracepoint  # marks what is wrapped already
    return inner


def _traced_coroutine(function: Any, tracepoint: Tracepoint) -> Callable[..., Any]:
    async def inner(*arguments: Any, **named: Any) -> Any:
        with tracepoint:
            return await function(*arguments, **named)

    return inner


def _traced_generator(function: Any, tracepoint: Tracepoint) -> Callable[..., Any]:
    def inner(*arguments: Any, **named: Any) -> Generator[Any, Any, Any]:
        with tracepoint:
            return (yield from function(*arguments, **named))

    return inner


def _traced_call(function: Any, tracepoint: Tracepoint) -> Callable[..., Any]:
    def inner(*arguments: Any, **named: Any) -> Any:
        with tracepoint:
            return function(*arguments, **named)

    return inner
