"""The arrays of a request, and what a program says that they have to be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from simulator.graph.errors import PoplarError
from simulator.graph.types import Array
from simulator.popef.declaration import DataType
from simulator.popef.structures import Anchor


class InputMemory(dict[str, Array]):
    """Arrays of a request, by the names of the inputs.

    >>> InputMemory(x=np.float32([1, 2]))["x"].tolist()
    [1.0, 2.0]
    """


class OutputMemory(dict[str, Array]):
    """Arrays of an answer, by the names of the outputs.

    `cycles` are those of the device for the step, or steps, that the request was part of;
    `padding` the rows of its last batch that nobody asked for.

    >>> OutputMemory(y=np.float32([1, 2]))["y"].tolist()
    [1.0, 2.0]
    """

    cycles: int = 0
    padding: int = 0


InputMemoryView, OutputMemoryView = InputMemory, OutputMemory


@dataclass(frozen=True, slots=True)
class DataDesc:
    """Name, shape and type of an input or output.

    >>> from simulator.popef import TensorInfo
    >>> anchor = Anchor(name="x", tensorInfo=TensorInfo(shape=[2]))
    >>> desc = DataDesc.of(anchor)
    >>> desc.name, desc.shape, desc.size_in_bytes
    ('x', (2,), 8)
    """

    name: str
    shape: tuple[int, ...]
    data_type: DataType
    dtype: np.dtype[Any]

    @classmethod
    def of(cls, anchor: Anchor) -> DataDesc:
        """Return what an anchor says.

        >>> from simulator.popef import TensorInfo
        >>> anchor = Anchor(name="x", tensorInfo=TensorInfo(shape=[2]))
        >>> desc = DataDesc.of(anchor)
        >>> desc.dtype.name
        'float32'
        """
        info = anchor.tensorInfo()
        return cls(anchor.name(), tuple(info.shape()), info.dataType(), info.dtype())

    @property
    def size_in_bytes(self) -> int:
        """Count the bytes.

        >>> from simulator.popef import TensorInfo
        >>> anchor = Anchor(name="x", tensorInfo=TensorInfo(shape=[2]))
        >>> desc = DataDesc.of(anchor)
        >>> desc.size_in_bytes
        8
        """
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize

    def numpy_data_type(self) -> np.dtype[np.generic]:
        """Return NumPy's type of the elements.

        >>> from simulator.popef import TensorInfo
        >>> anchor = Anchor(name="x", tensorInfo=TensorInfo(shape=[2]))
        >>> desc = DataDesc.of(anchor)
        >>> desc.numpy_data_type().name
        'float32'
        """
        return self.dtype

    def rows(self, batched: bool) -> DataDesc:
        """Return what a row is: all but the first dimension, or all where there is one row.

        >>> from simulator.popef import TensorInfo
        >>> anchor = Anchor(name="x", tensorInfo=TensorInfo(shape=[2]))
        >>> desc = DataDesc.of(anchor)
        >>> desc.rows(batched=True).shape
        ()
        """
        return replace(self, shape=self.shape[1:]) if batched else self

    def checked(self, given: object, what: str, any_rows: bool = False) -> Array:
        """Return an array of this shape and type; raises PoplarError.

        With `any_rows` the first size may be any but 0. A type whose values all fit is taken.

        >>> from simulator.popef import TensorInfo
        >>> anchor = Anchor(name="x", tensorInfo=TensorInfo(shape=[2]))
        >>> desc = DataDesc.of(anchor)
        >>> desc.checked(np.int8([1, 2]), "input").tolist()
        [1.0, 2.0]
        """
        array = np.asarray(given)
        shape = array.shape[1:] if any_rows else array.shape
        expected = self.shape[1:] if any_rows else self.shape
        rows_fit = not any_rows or (array.ndim == len(self.shape) and array.shape[0] > 0)
        if shape != expected or not rows_fit or not np.can_cast(array.dtype, self.dtype):
            sizes = ["any", *expected] if any_rows else list(expected)
            shown = f"{self.data_type.value} [{', '.join(map(str, sizes))}]"
            raise PoplarError(
                f"{what} {self.name!r} is {array.dtype} {list(array.shape)}; {shown} is needed"
            )
        return array.astype(self.dtype, copy=False)


def check_names(arrays: Mapping[str, object], expected: Mapping[str, object], kind: str) -> None:
    """Raise PoplarError for an array that is missing, or that nobody asked for."""
    missing = [name for name in expected if name not in arrays]
    unknown = [name for name in arrays if name not in expected]
    if missing:
        raise PoplarError(f"{kind} {missing[0]!r} is not given")
    if unknown:
        names = ", ".join(expected) or "none"
        raise PoplarError(f"no {kind} {unknown[0]!r}; there are {names}")
