"""Arguments of the wrong kind: what Python raises about them, told as one line of PoplarError.

It costs nothing until something is raised; then the arguments are held against the annotations.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from functools import wraps
from traceback import walk_tb
from types import FunctionType
from typing import ParamSpec, TypeVar

import numpy as np

from simulator.graph.errors import PoplarError, one_line

WRONG = (TypeError, ValueError, AttributeError, LookupError, ArithmeticError, MemoryError)
SHOWN = 60  # characters of an argument in a message
OWN = {"simulator", "pva", "pvti", "numpy", *sys.stdlib_module_names}
UNNAMED = ("Graph", "Sequence", "ComputeSet")  # what all functions take goes without saying
# What may be given besides an object of the class that an annotation names.
TAKEN_FOR: dict[str, tuple[type, ...]] = {
    "int": (np.integer,),
    "float": (int, np.number),
    "bool": (np.bool_,),
    "None": (type(None),),
    **dict.fromkeys(("IntArray", "BoolArray", "Array"), (np.ndarray,)),
}
_P = ParamSpec("_P")
_R = TypeVar("_R")
_C = TypeVar("_C", bound=type)


def refusing(function: Callable[_P, _R], name: str = "") -> Callable[_P, _R]:
    """Make a function raise PoplarError, and name the argument, where Python refuses one.

    A wrong number of arguments stays a TypeError, and what a program's own code raises, when it is
    called back, stays what it is.
    """

    @wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return function(*args, **kwargs)
        except WRONG as error:
            if error.__traceback__ is None or not _is_ours(error):
                raise
            called = name or function.__name__
            raise PoplarError(f"{called}: {_fault(function, args, kwargs, error)}") from error

    return call


def refuse_in(cls: _C, *, making: bool = True) -> _C:
    """Make all public methods of a class that take arguments refuse wrong ones.

    So does its making, except for what is made too often to be held up.
    """
    special = ("__init__", "__getitem__") if making else ("__getitem__",)
    members = {
        name: item for base in reversed(cls.__mro__[:-1]) for name, item in vars(base).items()
    }
    for name, item in members.items():
        if name.startswith("_") and name not in special:
            continue
        kind = type(item) if isinstance(item, staticmethod | classmethod) else None
        function = item.__func__ if kind else item
        if isinstance(function, FunctionType) and _takes_arguments(function, kind):
            called = cls.__name__ if name == "__init__" else f"{cls.__name__}.{name}"
            guarded = refusing(function, called)
            setattr(cls, name, kind(guarded) if kind else guarded)
    return cls


def _takes_arguments(function: FunctionType, kind: type | None) -> bool:
    """Return whether a function has arguments besides the object, and is not guarded already."""
    code = function.__code__
    implicit = 0 if kind is staticmethod else 1
    takes = (
        code.co_argcount + code.co_kwonlyargcount > implicit or code.co_flags & inspect.CO_VARARGS
    )
    return bool(takes) and not hasattr(function, "__wrapped__")


def _is_ours(error: BaseException) -> bool:
    """Return whether an error was raised inside, and not by the call itself or a user's code."""
    frames = [frame for frame, _ in walk_tb(error.__traceback__)][1:]
    modules = {str(frame.f_globals.get("__name__", "")).partition(".")[0] for frame in frames}
    return bool(frames) and modules <= OWN


def _fault(
    function: Callable[..., object],
    args: tuple[object, ...],
    kwargs: dict[str, object],
    error: BaseException,
) -> str:
    """Return which argument is of another kind than its annotation, else what Python said."""
    if isinstance(error, MemoryError):
        return f"the host has not enough memory. {error}".rstrip(". ")
    signature = inspect.signature(function)
    arguments = signature.bind(*args, **kwargs).arguments
    for name, value in arguments.items():
        parameter = signature.parameters[name]
        variadic = parameter.kind is parameter.VAR_POSITIONAL
        for one in value if variadic else [value]:
            if not _fits(one, str(parameter.annotation)):
                type_names = str(parameter.annotation).replace(" | ", " or ")
                return f"{name} is {_shown(one)}; {type_names} is needed"
    named = {name: value for name, value in arguments.items() if name != "self"}
    shown = [f"{n}={_shown(v)}" for n, v in named.items() if type(v).__name__ not in UNNAMED]
    prefix = f"cannot take {', '.join(shown)}: " if shown else ""
    return f"{prefix}{type(error).__name__}: {error}"


def _fits(value: object, annotation: str) -> bool:
    """Check a value by an annotation; one that says more than names of classes fits all."""
    names = annotation.split(" | ")
    bases = {base.__name__ for base in type(value).__mro__}
    if not all(name.isidentifier() for name in names) or {"Any", "object"} & {*names}:
        return True
    also = tuple(kind for name in names for kind in TAKEN_FOR.get(name, ()))
    return bool(bases & {*names}) or isinstance(value, also)


def _shown(value: object) -> str:
    text = one_line(repr(value))
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."
