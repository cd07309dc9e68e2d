"""Record calls of functions and methods without touching their source, or by a decorator."""

from __future__ import annotations

import functools
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterable
from types import ModuleType, coroutine
from typing import Any, ParamSpec, TypeVar, overload

from pvti.channel import TraceChannel, createTraceChannel
from pvti.tracepoint import Activity, Tracepoint

Function = TypeVar("Function", bound=Callable[..., object])
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
Yielded = TypeVar("Yielded")
Sent = TypeVar("Sent")

# Of a code object's flags (module `inspect`, which is dear to import).
_GENERATOR, _COROUTINE, _ITERABLE_COROUTINE, _ASYNC_GENERATOR = 0x20, 0x80, 0x100, 0x200

OWN_CHANNEL = "Program"  # of `trace`, when none is given


def instrument_fn(channel: TraceChannel) -> Callable[[Function], Function]:
    """Decorate a function or method: each call is an event `module.Class.function`.

    A coroutine's event lasts until it is done, waiting included; that of a generator or an
    asynchronous generator from its first value to its end.

    >>> @instrument_fn(createTraceChannel("loader"))
    ... def read(batch):
    ...     return batch * 2
    >>> read(4)
    8
    """

    def decorate(function: Function) -> Function:
        traced: Function = _wrapped(function, Tracepoint(channel, _name(function)))
        return traced

    return decorate


def instrument(obj: object, methods: Iterable[str], channel: TraceChannel) -> None:
    """Record calls of the methods named, of one object, of all objects of a class, or of a module.

    Names with two underscores are looked up on the class by Python itself, so that these are
    recorded for all objects of the class. Raises AttributeError for a method that is not there,
    TypeError for what is no method, such as a property.

    >>> class Loader:
    ...     def read(self, batch):
    ...         return batch * 2
    >>> instrument(Loader, ["read"], createTraceChannel("loader"))
    >>> Loader().read(4)
    8
    """
    kind = obj if isinstance(obj, type) else type(obj)
    prefix = f"{kind.__module__}.{kind.__qualname__}"
    if isinstance(obj, ModuleType):
        prefix = obj.__name__
    for name in methods:
        special = name.startswith("__") and name.endswith("__")
        target = kind if special and not isinstance(obj, ModuleType) else obj
        _replace(target, name, Tracepoint(channel, f"{prefix}.{name}"))


class Block(Tracepoint):
    """A tracepoint that also decorates functions."""

    __slots__ = ()

    def __call__(self, function: Function) -> Function:
        """Record each call of the function."""
        traced: Function = _wrapped(function, self)
        return traced


@overload
def trace(label: str, channel: TraceChannel | None = None, metadata: object = None) -> Block: ...
@overload
def trace(label: Function) -> Function: ...
def trace(
    label: str | Callable[..., object],
    channel: TraceChannel | None = None,
    metadata: object = None,
) -> Block | Callable[..., object]:
    """Record a block, `with trace("label"):`, or a function, `@trace("label")` or `@trace`.

    The channel is "Program" unless one is given.

    >>> @trace("double")
    ... def double(value):
    ...     return 2 * value
    >>> double(21)
    42
    """
    if channel is None:
        channel = createTraceChannel(OWN_CHANNEL)
    if callable(label) or isinstance(label, classmethod):
        return instrument_fn(channel)(label)
    return Block(channel, label, metadata)


def _name(function: object) -> str:
    named = getattr(function, "__func__", function)
    module = getattr(named, "__module__", None) or "builtins"
    return f"{module}.{getattr(named, '__qualname__', None) or type(named).__qualname__}"


def _replace(target: object, name: str, tracepoint: Tracepoint) -> None:
    method = getattr(target, name)
    if hasattr(method, "__pvti__"):
        return
    if isinstance(target, type):
        owners = [base for base in target.__mro__ if name in vars(base)]
        # What `type` or another metaclass has is called otherwise; `object.__new__` takes arguments
        # only where no class has one of its own.
        if not owners or (name == "__new__" and owners[0] is object):
            raise AttributeError(f"{target.__qualname__} has no method {name} of its own")
        member = vars(owners[0])[name]
        method = member if isinstance(member, staticmethod | classmethod) else method
    setattr(target, name, _wrapped(method, tracepoint))


def _wrapped(function: object, tracepoint: Tracepoint) -> Any:
    if isinstance(function, staticmethod | classmethod):
        return type(function)(_wrapped(function.__func__, tracepoint))
    if not callable(function):
        kind = type(function).__qualname__
        raise TypeError(f"{tracepoint.label}: a function or method was expected, not {kind}")
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    flags = code.co_flags if code is not None else 0
    ways = (
        (_COROUTINE, _coroutine),
        (_GENERATOR, _generator),
        (_ASYNC_GENERATOR, _async_generator),
    )
    way = next((way for flag, way in ways if flags & flag), _call)
    inner: Any = functools.update_wrapper(way(function, tracepoint), function)
    if flags & _ITERABLE_COROUTINE:  # a generator that may be awaited
        inner = coroutine(inner)
    inner.__pvti__ = tracepoint  # marks what is wrapped already
    return inner


def _call(
    function: Callable[Arguments, Result], tracepoint: Tracepoint
) -> Callable[Arguments, Result]:
    def inner(*arguments: Arguments.args, **named: Arguments.kwargs) -> Result:
        with tracepoint:
            return function(*arguments, **named)

    return inner


def _coroutine(
    function: Callable[Arguments, Awaitable[Result]], tracepoint: Tracepoint
) -> Callable[Arguments, Awaitable[Result]]:
    async def inner(*arguments: Arguments.args, **named: Arguments.kwargs) -> Result:
        with Activity(tracepoint):
            return await function(*arguments, **named)

    return inner


def _generator(
    function: Callable[Arguments, Generator[Yielded, Sent, Result]], tracepoint: Tracepoint
) -> Callable[Arguments, Generator[Yielded, Sent, Result]]:
    def inner(
        *arguments: Arguments.args, **named: Arguments.kwargs
    ) -> Generator[Yielded, Sent, Result]:
        with Activity(tracepoint):
            return (yield from function(*arguments, **named))

    return inner


def _async_generator(
    function: Callable[Arguments, AsyncGenerator[Yielded, Any]], tracepoint: Tracepoint
) -> Callable[Arguments, AsyncGenerator[Yielded, Any]]:
    async def inner(
        *arguments: Arguments.args, **named: Arguments.kwargs
    ) -> AsyncGenerator[Yielded, Any]:
        generator = function(*arguments, **named)
        step, argument = generator.asend, None
        activity = Activity(tracepoint)
        activity.__enter__()
        try:
            # What `yield from` does for generators has no such word for asynchronous ones.
            while True:
                value = await step(argument)
                try:
                    step, argument = generator.asend, (yield value)
                except GeneratorExit:
                    raise
                except BaseException as error:
                    step, argument = generator.athrow, error
        except StopAsyncIteration:
            return
        finally:
            try:
                await generator.aclose()
            finally:
                activity.__exit__()

    return inner
