"""The arrays that a codelet gets for its Output fields: they are written before they are read.

What an Output holds when a vertex begins is not known. The user guide's SumVertex sets its output
to 0 and then adds to it, so what a vertex has written itself it may read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from simulator.graph.errors import PoplarError
from simulator.graph.types import Array


class OutputReadError(PoplarError):
    """A codelet read an Output that it had not written."""

    def __init__(self, array: Array) -> None:
        found = "an Output cannot be read before it is written"
        super().__init__(f"{found}; a field that is read and written is an InOut")
        self.array = array


class OutputArray(np.ndarray[Any, Any]):
    """Part of an Output; assignment, slices to assign to and `out=` arguments are what it allows.

    Once something was written to the field it can also be read. What takes the memory of any array
    (`np.asarray`, `memoryview`, `other[:] = out`) is not seen.
    """

    written: list[bool]  # one entry, which all views of the field of one vertex share

    def __array_finalize__(self, source: Any) -> None:
        self.written = source.written if isinstance(source, OutputArray) else [False]

    def __getitem__(self, key: Any) -> Any:
        part = super().__getitem__(key)
        if isinstance(part, OutputArray) and (part.base is self or part.base is self.base):
            return part  # a view, which can be written in turn; NumPy itself asks for one
        _refuse_outputs((self,))
        return _plain(part)

    def __setitem__(self, key: Any, value: Any) -> None:
        _refuse_outputs((value,))
        super().__setitem__(key, value)
        self.written[0] = True

    def fill(self, value: Any) -> None:
        super().fill(value)
        self.written[0] = True

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None, **options: Any
    ) -> Any:
        _refuse_outputs((*inputs, *options.values()))
        plain = map(_plain, inputs)
        if out is None:
            return getattr(ufunc, method)(*plain, **options)
        getattr(ufunc, method)(*plain, out=tuple(map(_plain, out)), **options)
        _mark_written(out)
        return out[0] if len(out) == 1 else out

    def __array_function__(
        self, func: Callable[..., Any], types: Iterable[type], args: Any, kwargs: Any
    ) -> Any:
        if func not in _SHAPES:
            read = {name: value for name, value in kwargs.items() if name not in ("out", "dst")}
            _refuse_outputs((*args[func in _WRITERS :], *read.values()))
        plain = {name: _plain(value) for name, value in kwargs.items()}
        found = func(*map(_plain, args), **plain)
        _mark_written((*args[: func in _WRITERS], kwargs.get("out"), kwargs.get("dst")))
        return found

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


def _reader(name: str) -> Callable[..., Any]:
    """Give a method that reads, for an array that has been written."""

    def read(self: OutputArray, *args: object, **kwargs: object) -> Any:
        _refuse_outputs((self,))
        return getattr(self.view(np.ndarray), name)(*args, **kwargs)

    return read


for _name in _READERS:
    setattr(OutputArray, _name, _reader(_name))


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return type(value)(map(_plain, value))
    return value.view(np.ndarray) if isinstance(value, OutputArray) else value


def _mark_written(values: Iterable[Any]) -> None:
    for value in values:
        if isinstance(value, OutputArray):
            value.written[0] = True


def _refuse_outputs(values: Iterable[Any]) -> None:
    """Raise OutputReadError for the first unwritten Output among values or in a list of them."""
    for value in values:
        for item in value if isinstance(value, list | tuple) else (value,):
            if isinstance(item, OutputArray) and not item.written[0]:
                raise OutputReadError(item)
