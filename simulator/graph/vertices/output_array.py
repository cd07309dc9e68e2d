"""The arrays that a codelet gets for its Output fields: it reads there only what it has written.

The guide "Programming with Poplar" (2.8) leaves undefined what else is read from an Output; its
tutorial 3 adds to an output that it has set to zero. Elements of floating point hold a mark until
they are written, a NaN that no arithmetic gives, so that writing them costs nothing more; arrays of
other types note what is assigned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from simulator.graph.errors import PoplarError
from simulator.graph.types import Array

# Quiet NaNs by size: arithmetic gives one without these low bits, or those of an operand.
MARKS = {2: 0x7EA5, 4: 0x7FC5A5A5, 8: 0x7FF8A5A5A5A5A5A5}


class OutputReadError(PoplarError):
    """A codelet read elements of an Output that it had not written."""

    def __init__(self, array: Array) -> None:
        super().__init__(
            "an Output cannot be read before it is written; "
            "a field that is read and written is an InOut"
        )
        self.array = array


class OutputArray(np.ndarray[Any, Any]):
    """Part of an Output of floating point, whose elements are marked until they are written.

    What takes the memory of any array (`np.asarray`, `memoryview`, `other[:] = out`) is not seen.
    """

    def readable(self) -> Array:
        """Return the values, which must all be written."""
        values = self.view(np.ndarray)
        if _marked(values).any():
            raise OutputReadError(self)
        return values

    def wrote(self) -> None:
        """Note that all elements were written."""

    def __getitem__(self, key: Any) -> Any:
        part = super().__getitem__(key)
        if not isinstance(part, OutputArray):
            if _marked(np.asarray(part)).any():
                raise OutputReadError(self)
            return part
        if part.base is self or part.base is self.base:
            return part  # a view, to be written or read in its turn
        return part.readable()

    def __array_ufunc__(
        self,
        ufunc: np.ufunc,
        method: str,
        *inputs: object,
        out: tuple[Any, ...] = (),
        **options: object,
    ) -> object:
        values = map(_readable, inputs)
        read = {name: _readable(value) for name, value in options.items()}
        targets = {"out": tuple(map(_plain, out))} if out else {}
        result = getattr(ufunc, method)(*values, **targets, **read)
        _note(out)
        return result if not out else out[0] if len(out) == 1 else out

    def __array_function__(
        self, func: Callable[..., object], types: Iterable[type], args: Any, kwargs: Any
    ) -> object:
        if func in _SHAPES:
            return func(*map(_plain, args), **kwargs)
        written = args[:1] if func in _WRITERS else ()
        values = [*map(_plain, written), *map(_readable, args[len(written) :])]
        named = {
            name: _plain(value) if name in _TARGETS else _readable(value)
            for name, value in kwargs.items()
        }
        result = func(*values, **named)
        targets = [*written, *(kwargs.get(name) for name in _TARGETS)]
        _note(targets)
        return result

    def __repr__(self) -> str:
        return f"<Output of {self.size} elements>"

    __str__ = __repr__


class NotedOutputArray(OutputArray):
    """Part of an Output of another type; `written` tells which elements were assigned."""

    written: Array | None = None

    def _notes(self) -> Array:
        if self.written is None:
            self.written = np.zeros(self.shape, dtype=bool)
        return self.written

    def readable(self) -> Array:
        if not self._notes().all():
            raise OutputReadError(self)
        return self.view(np.ndarray)

    def wrote(self) -> None:
        self._notes()[...] = True

    def fill(self, value: object) -> None:
        self[...] = value

    def __setitem__(self, key: Any, value: object) -> None:
        self.view(np.ndarray)[key] = value
        self._notes()[key] = True

    def __getitem__(self, key: Any) -> Any:
        part, notes = self.view(np.ndarray)[key], self._notes()[key]
        if part.base is not None and notes.base is not None:
            view = part.view(NotedOutputArray)
            view.written = notes
            return view
        if not notes.all():
            raise OutputReadError(self)
        return part


_SHAPES = frozenset({np.shape, np.ndim, np.size, np.empty_like, np.zeros_like, np.ones_like})
_WRITERS = frozenset({np.copyto, np.put, np.putmask, np.place})  # their first argument
_TARGETS = ("out", "dst")
# What NumPy does without asking a subclass.
_READERS = (
    *("__bool__", "__complex__", "__copy__", "__deepcopy__", "__float__", "__index__", "__int__"),
    *("argmax", "argmin", "argpartition", "argsort", "astype", "byteswap", "choose", "compress"),
    *("copy", "diagonal", "dot", "item", "nonzero", "partition", "repeat", "round", "searchsorted"),
    *("sort", "take", "tobytes", "tofile", "tolist", "trace"),
)


def _reader(method: Callable[..., object]) -> Callable[..., object]:
    def read(self: OutputArray, *args: object, **kwargs: object) -> object:
        return method(self.readable(), *args, **kwargs)

    return read


for _name in _READERS:
    setattr(OutputArray, _name, _reader(getattr(np.ndarray, _name)))


def as_output(values: Array) -> OutputArray:
    """View values as an Output."""
    return values.view(OutputArray if values.dtype.kind == "f" else NotedOutputArray)


def marked_outputs(values: Array) -> Array | None:
    """Mark all values as not written; give what they were, or None when they take no mark."""
    if values.dtype.kind != "f":
        return None
    before = values.copy()
    _bits(values)[...] = MARKS[values.itemsize]
    return before


def restore_unwritten(values: Array, before: Array | None) -> None:
    """Put back what was where nothing has been written."""
    if before is not None:
        marked = _marked(values)
        values[marked] = before[marked]


def _bits(values: Array) -> Array:
    return values.view(f"u{values.itemsize}")


def _marked(values: Array) -> Array:
    return np.asarray(_bits(values) == MARKS[values.itemsize])


def _plain(value: object) -> object:
    return value.view(np.ndarray) if isinstance(value, OutputArray) else value


def _readable(value: object) -> object:
    if isinstance(value, list | tuple):
        return type(value)(map(_readable, value))
    return value.readable() if isinstance(value, OutputArray) else value


def _note(targets: Iterable[object]) -> None:
    for target in targets:
        if isinstance(target, OutputArray):
            target.wrote()
