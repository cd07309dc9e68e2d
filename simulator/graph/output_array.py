"""The arrays that a codelet gets for its Output fields: they can be written, not read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import numpy as np

from simulator.graph.errors import PoplarError
from simulator.graph.types import Array


class OutputReadError(PoplarError):
    """A codelet read an Output."""

    def __init__(self, array: Array) -> None:
        super().__init__("an Output cannot be read; a field that is read and written is an InOut")
        self.array = array


class OutputArray(np.ndarray[Any, Any]):
    """Part of an Output; assignment, slices to assign to and `out=` arguments are what it allows.

    What takes the memory of any array (`np.asarray`, `memoryview`, `other[:] = out`) is not seen.
    """

    def __getitem__(self, key: Any) -> Any:
        part = super().__getitem__(key)
        if isinstance(part, OutputArray) and (part.base is self or part.base is self.base):
            return part  # a view, which can be written in turn; NumPy itself asks for one
        raise OutputReadError(self)

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None, **options: Any
    ) -> Any:
        _refuse_outputs((*inputs, *options.values()))
        getattr(ufunc, method)(*inputs, out=tuple(map(_plain, out)), **options)
        return out[0] if len(out) == 1 else out

    def __array_function__(
        self, func: Callable[..., Any], types: Iterable[type], args: Any, kwargs: Any
    ) -> Any:
        if func not in _SHAPES:
            read = {name: value for name, value in kwargs.items() if name not in ("out", "dst")}
            _refuse_outputs((*args[func in _WRITERS :], *read.values()))
        return func(*map(_plain, args), **{name: _plain(v) for name, v in kwargs.items()})

    def __repr__(self) -> str:
        return f"<Output of {self.size} elements>"

    __str__ = __repr__


_SHAPES = frozenset({np.shape, np.ndim, np.size, np.empty_like, np.zeros_like, np.ones_like})
_WRITERS = frozenset({np.copyto, np.put, np.putmask, np.place})  # their first argument

# What NumPy does without asking a subclass.
_READERS = (
    *("__bool__", "__complex__", "__copy__", "__deepcopy__", "__float__", "__index__", "__int__"),
    *("argmax", "argmin", "argpartition", "argsort", "astype", "byteswap", "choose", "compress"),
    *("copy", "diagonal", "dot", "item", "nonzero", "partition", "repeat", "searchsorted", "sort"),
    *("take", "tobytes", "tofile", "tolist", "trace"),
)


def _reader(self: OutputArray, *args: object, **kwargs: object) -> NoReturn:
    raise OutputReadError(self)


for _name in _READERS:
    setattr(OutputArray, _name, _reader)


def _plain(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, OutputArray) else value


def _refuse_outputs(values: Iterable[Any]) -> None:
    """Raise OutputReadError for the first Output among values, or in a list among them."""
    for value in values:
        for item in value if isinstance(value, list | tuple) else (value,):
            if isinstance(item, OutputArray):
                raise OutputReadError(item)
