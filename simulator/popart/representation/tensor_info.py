"""Types and shapes of a model's tensors: ONNX's names, the host's arrays, the device's elements."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from operator import index
from typing import Any, NamedTuple

import numpy as np
import onnx

from simulator.graph.types import (
    BOOL,
    CHAR,
    FLOAT,
    HALF,
    INT,
    SHORT,
    UNSIGNED_CHAR,
    UNSIGNED_INT,
    UNSIGNED_SHORT,
    Array,
    Type,
    element_count,
)
from simulator.popart.errors import popart_exception


class ElementType(NamedTuple):
    """An element type: its number in ONNX, and the types of the host and of the device.

    `bits` are those of a number for which both have wider ones.
    """

    onnx: int
    host: str
    device: Type
    bits: int = 0


# Numbers of TensorProto.DataType. As in PopART, the device holds 64-bit numbers in 32 bits.
ELEMENT_TYPES = {
    "FLOAT": ElementType(1, "<f4", FLOAT),
    "UINT8": ElementType(2, "u1", UNSIGNED_CHAR),
    "INT8": ElementType(3, "i1", CHAR),
    "UINT16": ElementType(4, "<u2", UNSIGNED_SHORT),
    "INT16": ElementType(5, "<i2", SHORT),
    "INT32": ElementType(6, "<i4", INT),
    "INT64": ElementType(7, "<i8", INT),
    "BOOL": ElementType(9, "?", BOOL),
    "FLOAT16": ElementType(10, "<f2", HALF),
    "DOUBLE": ElementType(11, "<f8", FLOAT),
    "UINT32": ElementType(12, "<u4", UNSIGNED_INT),
    "UINT64": ElementType(13, "<u8", UNSIGNED_INT),
    # Files pack these; host and device hold one in the least type that has all of its numbers.
    "UINT4": ElementType(21, "u1", UNSIGNED_CHAR, 4),
    "FLOAT4E2M1": ElementType(23, "<f2", HALF, 4),
    "UINT2": ElementType(25, "u1", UNSIGNED_CHAR, 2),
    "INT2": ElementType(26, "i1", CHAR, 2),
}
_BY_NUMBER = {row.onnx: name for name, row in ELEMENT_TYPES.items()}
_BY_HOST = {np.dtype(row.host): name for name, row in ELEMENT_TYPES.items() if not row.bits}
_NARROW = {  # by the name of the array's type: onnx has arrays of them by ml_dtypes
    onnx.helper.tensor_dtype_to_np_dtype(row.onnx).name: name
    for name, row in ELEMENT_TYPES.items() if row.bits
}  # fmt: skip


def type_name(number: int, subject: str) -> str:
    """Return the name of ONNX's number of a type; raises popart_exception naming `subject`."""
    if number not in _BY_NUMBER:
        types = onnx.TensorProto.DataType
        name = types.Name(number) if number in types.values() else f"number {number}"
        type_names = ", ".join(ELEMENT_TYPES)
        raise popart_exception(f"{subject}: element type {name} of ONNX; known are {type_names}")
    return _BY_NUMBER[number]


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """The type and shape of a tensor: TensorInfo("FLOAT", [1, 2]), or of a NumPy array.

    >>> info = TensorInfo("FLOAT16", [2, 3])
    >>> info.shape(), info.data_type()
    ([2, 3], 'FLOAT16')
    """

    type: str
    dims: tuple[int, ...]

    def __init__(self, type: str | Array, shape: Iterable[int] | None = None) -> None:
        name = type
        if isinstance(type, np.ndarray):
            name, shape = array_type(type, "TensorInfo"), type.shape
        if not isinstance(name, str) or name not in ELEMENT_TYPES:
            type_names = ", ".join(ELEMENT_TYPES)
            raise popart_exception(f"TensorInfo: type {name!r}; known are {type_names}")
        object.__setattr__(self, "type", name)
        object.__setattr__(self, "dims", _sizes(shape))

    def shape(self) -> list[int]:
        """Return the sizes of the dimensions.

        >>> TensorInfo("FLOAT16", [2, 3]).shape()
        [2, 3]
        """
        return list(self.dims)

    def data_type(self) -> str:
        """Return the type in the words of ONNX: FLOAT.

        >>> TensorInfo("FLOAT16", [2, 3]).data_type()
        'FLOAT16'
        """
        return self.type

    def data_type_lcase(self) -> str:
        """Return the type in NumPy's words: float32.

        >>> TensorInfo("FLOAT16", [2, 3]).data_type_lcase()
        'float16'
        """
        return self.host.name

    def nelms(self) -> int:
        """Count the elements.

        >>> TensorInfo("FLOAT16", [2, 3]).nelms()
        6
        """
        return element_count(self.dims)

    def nbytes(self) -> int:
        """Count the bytes on the host.

        >>> TensorInfo("FLOAT16", [2, 3]).nbytes()
        12
        """
        return self.nelms() * self.host.itemsize

    def stored_bytes(self) -> int:
        """Count the bytes in a file, which packs what is narrower than a byte.

        >>> TensorInfo("UINT4", [3]).stored_bytes()
        2
        """
        return -(-self.nelms() * self.bits // 8) if self.bits else self.nbytes()

    @property
    def host(self) -> np.dtype[Any]:
        """Return the type of the host's arrays.

        >>> TensorInfo("FLOAT16", [2, 3]).host
        dtype('float16')
        """
        return np.dtype(ELEMENT_TYPES[self.type].host)

    @property
    def device(self) -> Type:
        """Return the type of the device's elements.

        >>> TensorInfo("FLOAT16", [2, 3]).device.name
        'half'
        """
        return ELEMENT_TYPES[self.type].device

    @property
    def bits(self) -> int:
        """Return how many bits a number has for which host and device have wider ones, else 0.

        >>> TensorInfo("UINT4", [3]).bits
        4
        """
        return ELEMENT_TYPES[self.type].bits

    @property
    def packed(self) -> np.dtype[np.generic]:
        """Return the type of the arrays that onnx has of the type: `host`, or a narrow one.

        >>> TensorInfo("FLOAT16", [2, 3]).packed
        dtype('float16')
        """
        row = ELEMENT_TYPES[self.type]
        return np.dtype(onnx.helper.tensor_dtype_to_np_dtype(row.onnx) if row.bits else row.host)

    @property
    def limits(self) -> tuple[int, int]:
        """Return the least and the largest number of a type of whole numbers.

        >>> TensorInfo("INT8", [3]).limits
        (-128, 127)
        """
        kind = self.host
        bits = self.bits or 8 * kind.itemsize
        return (-(1 << bits - 1), (1 << bits - 1) - 1) if kind.kind == "i" else (0, (1 << bits) - 1)

    def __str__(self) -> str:
        return f"{self.type} {list(self.dims)}"


def _sizes(shape: object) -> tuple[int, ...]:
    try:
        sizes = tuple(map(index, shape))  # type: ignore[call-overload]
    except TypeError:
        raise popart_exception(f"TensorInfo: shape {shape!r}; a list of sizes is needed") from None
    if min(sizes, default=0) < 0:
        raise popart_exception(f"TensorInfo: shape {list(sizes)}; sizes cannot be negative")
    return sizes


def array_type(array: Array, subject: str) -> str:
    """Return the name of an array's type; raises popart_exception naming `subject`."""
    if array.dtype.name in _NARROW:
        return _NARROW[array.dtype.name]
    plain = array.dtype.newbyteorder("<")
    if plain not in _BY_HOST:
        type_names = ", ".join(ELEMENT_TYPES)
        raise popart_exception(f"{subject}: an array of {array.dtype}; known are {type_names}")
    return _BY_HOST[plain]


def to_host(values: Array, info: TensorInfo, subject: str) -> Array:
    """Take 64-bit numbers for what the model holds in less, as Python's own numbers come.

    Raises popart_exception for a whole number that the type of the model does not hold.
    """
    if values.dtype.name in _NARROW:
        values = values.astype(info.host)
    if values.dtype == info.host or not {values.dtype.kind, info.host.kind} <= set("iu"):
        return values.astype(info.host) if values.dtype.kind == info.host.kind else values
    least, most = info.limits
    for value in (int(values.min()), int(values.max())) if values.size else ():
        if not least <= value <= most:
            raise popart_exception(f"{subject}: value {value}; {info.type} is needed")
    return values.astype(info.host)


def to_device(values: Array, info: TensorInfo, subject: str) -> Array:
    """Return values as the device holds them; raises popart_exception for what it cannot hold."""
    dtype = info.device.numpy
    if values.dtype.name in _NARROW:
        values = values.astype(dtype)
    if values.dtype == dtype:
        return values
    if values.dtype.kind not in ("biuf" if dtype.kind == "f" else "biu"):
        raise popart_exception(f"{subject}: values of type {values.dtype}; {info} is needed")
    if dtype.kind in "iu" and values.dtype.kind in "iu" and values.size:
        least, most = int(values.min()), int(values.max())
        limits = np.iinfo(dtype)
        if least < limits.min or most > limits.max:
            value = least if least < limits.min else most
            raise popart_exception(f"{subject}: value {value}; the device holds 32 bits")
    return values.astype(dtype)


@dataclass(slots=True)
class InputShapeInfo:
    """Types and shapes of inputs that a model leaves open.

    >>> infos = InputShapeInfo().add("x", TensorInfo("FLOAT", [2]))
    >>> infos.get("x").shape()
    [2]
    """

    _infos: dict[str, TensorInfo] = field(default_factory=dict)

    def add(self, name: str, info: TensorInfo) -> InputShapeInfo:
        """Return what an input is; gives itself, so that calls can be chained.

        >>> infos = InputShapeInfo().add("x", TensorInfo("FLOAT", [2]))
        >>> infos.has("x")
        True
        """
        if not isinstance(info, TensorInfo):
            raise popart_exception(f"InputShapeInfo: {name!r} is {info!r}; a TensorInfo is needed")
        self._infos[name] = info
        return self

    def get(self, name: str) -> TensorInfo:
        """Return what was said of an input; raises popart_exception.

        >>> infos = InputShapeInfo().add("x", TensorInfo("FLOAT", [2]))
        >>> infos.get("x").shape()
        [2]
        """
        if name not in self._infos:
            input_names = ", ".join(self._infos) or "none"
            raise popart_exception(f"InputShapeInfo: no input {name!r}; there are {input_names}")
        return self._infos[name]

    def has(self, name: str) -> bool:
        """Return whether anything was said of an input.

        >>> infos = InputShapeInfo().add("x", TensorInfo("FLOAT", [2]))
        >>> infos.has("x"), infos.has("y")
        (True, False)
        """
        return name in self._infos

    def getAllTensorIds(self) -> list[str]:
        """Name the inputs that something was said of.

        >>> infos = InputShapeInfo().add("x", TensorInfo("FLOAT", [2]))
        >>> infos.getAllTensorIds()
        ['x']
        """
        return list(self._infos)
