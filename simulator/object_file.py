"""Objects as data: a table of nodes in JSON, and the bytes of arrays behind it.

`packed` makes the two of a graph of objects, `unpacked` the graph again. A value is null, a number,
a text, or [n]: the node n, so that what is shared stays shared and cycles are kept. Nodes are those
of SHELLS, DICTIONARIES and WHOLE; which classes, functions and codelets a file may name is told in
`object_kinds`. Nothing of the file is run or depends on the versions of Python and NumPy.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable
from enum import Enum
from functools import lru_cache
from math import prod
from types import FunctionType
from typing import Any

import numpy as np
import numpy.typing as npt

from simulator.graph.deferred import Deferred, DeferredFields, defer
from simulator.graph.errors import PoplarError
from simulator.graph.types import Array
from simulator.graph.vertices.vertex import Vertex
from simulator.object_kinds import (
    checks,
    class_name,
    class_of,
    field_names,
    function_name,
    function_of,
    is_own,
    ufunc_of,
)

ARRAYS = "biufcSU"  # kinds of NumPy's types
FEW = 16  # elements of an array that is kept as it is
DEFERRED = 4096  # bytes of an array in a shorter form that is made when it is asked for
# Bytes of arrays in a shorter form: so many in any file, and for each byte of the file.
GROWN, RATIO = 64 << 20, 64
INLINE = 1 << 53  # whole numbers below stand as they are in any reader of JSON
_UNMADE = object()
ABSENT: dict[str, object] = {}
# A node of the table: its kind, then its parts, which are as the kind has them.
Node = list[Any]


def packed(root: object) -> tuple[bytes, bytes]:
    """Return the table and the bytes of all that an object leads to; raises PoplarError."""
    writer = _Writer()
    nodes = writer.nodes
    top = writer.value(root)
    while writer.open:
        number, value = writer.open.popleft()
        nodes[number] = writer.node(value)
    table = {"classes": writer.classes, "root": top, "nodes": nodes}
    return json.dumps(table, separators=(",", ":")).encode(), bytes(writer.data)


def unpacked(table: bytes, data: bytes | memoryview) -> object:
    """Return the object that was packed; raises PoplarError, or an error of what is wrong in it."""
    content = json.loads(table)
    reader = _Reader(content["classes"], content["nodes"], data)
    return reader.value(content["root"])


class _Writer:
    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.classes: list[tuple[str, str, tuple[str, ...]]] = []
        self.data = bytearray()
        self.open: deque[tuple[int, object]] = deque()
        self._numbers: dict[int, int] = {}
        self._classes: dict[type, int] = {}
        self._kept: list[object] = []  # so that no other object gets the id of one

    def value(self, value: object) -> object:
        """Return a value as it stands in the table; its node follows."""
        if value is None or type(value) in (bool, str, float):
            return value
        if type(value) is int and abs(value) < INLINE:
            return value
        number = self._numbers.get(id(value))
        if number is None:
            number = self._add(value)
        return [number]

    def _add(self, value: object) -> int:
        # A tuple is made whole, so that what it is made of has to come before.
        node = self.node(value) if isinstance(value, tuple | frozenset) else []
        number = self._numbers[id(value)] = len(self.nodes)
        self._kept.append(value)
        self.nodes.append(node)
        if not node:
            self.open.append((number, value))
        return number

    def node(self, value: object) -> Node:
        """Return the node of a value."""
        if isinstance(value, Enum):
            return ["enum", self._class(type(value)), value.name]
        if isinstance(value, type):
            return ["class", self._class(value)]
        if isinstance(value, FunctionType):
            return self._function(value)
        write = WRITERS.get(type(value))
        if write:
            return write(self, value)
        if isinstance(value, np.generic):
            return ["number", value.dtype.str, self._bytes(value.tobytes())]
        if isinstance(value, np.dtype):
            return ["dtype", value.str]
        kind = self._class(type(value))
        if isinstance(value, Vertex):
            raise PoplarError(f"executable: it cannot be kept: it has {value!r}")
        if isinstance(value, tuple):
            return ["named", kind, self.values(value)]
        fields = (getattr(value, name, ABSENT) for name in self.classes[kind][2])
        return ["object", kind, [v if v is ABSENT else self.value(v) for v in fields]]

    def values(self, values: Iterable[object]) -> list[object]:
        """Return values one after another."""
        return [self.value(value) for value in values]

    def array(self, value: npt.NDArray[np.generic]) -> Node:
        """Return the node of an array, and keep its bytes."""
        if value.dtype.kind not in ARRAYS:
            raise PoplarError(f"executable: it cannot be kept: an array of {value.dtype}")
        form, octets = _short(value)
        place = self._bytes(octets)
        return ["array", value.dtype.str, value.shape, place, value.flags.writeable, form]

    def octets(self, value: bytes) -> Node:
        """Return the node of bytes, and keep them."""
        return ["bytes", self._bytes(value), len(value)]

    def _bytes(self, value: bytes) -> int:
        place = len(self.data)
        self.data += value
        return place

    def _class(self, kind: type) -> int:
        number = self._classes.get(kind)
        if number is None:
            number = self._classes[kind] = len(self.classes)
            self.classes.append((*class_name(kind), field_names(kind)))
        return number

    def _function(self, value: FunctionType) -> Node:
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        defaults = [value.__defaults__, value.__kwdefaults__]
        names = value.__code__.co_freevars
        return ["function", *function_name(value), names, self.values([*defaults, *cells])]


WRITERS: dict[type, Callable[[_Writer, Any], Node]] = {
    list: lambda writer, value: ["list", writer.values(value)],
    tuple: lambda writer, value: ["tuple", writer.values(value)],
    set: lambda writer, value: ["set", writer.values(value)],
    frozenset: lambda writer, value: ["frozenset", writer.values(value)],
    dict: lambda writer, value: ["dict", writer.values(x for item in value.items() for x in item)],
    range: lambda writer, value: ["range", [value.start, value.stop, value.step]],
    slice: lambda writer, value: ["slice", [value.start, value.stop, value.step]],
    bytes: lambda writer, value: writer.octets(value),
    int: lambda writer, value: ["integer", hex(value)],
    complex: lambda writer, value: ["complex", value.real, value.imag],
    np.ndarray: lambda writer, value: writer.array(value),
    np.ufunc: lambda writer, value: ["ufunc", value.__name__],
}


class _Reader:
    """Makes what stands alone, then tuples in their order, then fills objects, at last dicts."""

    def __init__(
        self, classes: list[tuple[str, str, list[str]]], nodes: list[Node], data: bytes | memoryview
    ) -> None:
        self.data = memoryview(data)
        self._taken = self._grown = 0
        self.classes = [_class(*row) for row in classes]
        self._nodes = nodes
        self._made: list[object] = [_UNMADE] * len(nodes)
        self._linked: list[
            tuple[list[object], list[Node]]
        ] = []  # parts of a dictionary, their numbers
        numbers: dict[str, list[int]] = {}
        for number, node in enumerate(nodes):
            numbers.setdefault(node[0], []).append(number)
        unknown = [kind for kind in numbers if kind not in SHELLS | DICTIONARIES | WHOLE]
        if unknown:
            raise PoplarError(f"executable: a node has the kind {unknown[0]!r}")
        for kinds, act in (
            (SHELLS, self._make),
            (DICTIONARIES, self._make),
            (WHOLE, self._make),
            (FILLED, self._fill),
            (HASHED, self._fill),
        ):
            for number in sorted(n for kind in kinds for n in numbers.get(kind, ())):
                kind, *parts = nodes[number]
                act(number, kinds[kind], parts)
            if kinds is WHOLE:
                self._link()

    def _link(self) -> None:
        """Name the parts of deferred dictionaries, which are there now."""
        for parts, values in self._linked:
            parts.extend(map(self._node, values))

    def value(self, value: object) -> object:
        """Return a value of the table."""
        return _value(self._node(value)) if isinstance(value, list) else value

    def _node(self, value: Node) -> object:
        """Return what a node was made to, perhaps deferred; raises PoplarError."""
        (number,) = value
        if not 0 <= number < len(self._made) or self._made[number] is _UNMADE:
            raise PoplarError(f"executable: its table has no node {number} where it is needed")
        return self._made[number]

    def values(self, values: list[object]) -> list[object]:
        """Return values one after another."""
        return [self.value(value) for value in values]

    def bytes(self, place: int, size: int) -> memoryview:
        """Return some of the bytes of arrays, which all together are no more than the file has."""
        self._taken += size
        if self._taken > len(self.data):
            raise PoplarError("executable: its arrays have more bytes than the file")
        if not 0 <= place <= place + size <= len(self.data):
            raise PoplarError(f"executable: bytes {place} to {place + size} are not in the file")
        return self.data[place : place + size]

    def array(
        self, dtype: str, shape: list[int], place: int, writeable: bool, form: str | list[int] = ""
    ) -> Array | Deferred:
        """Return an array, of its own when it may be written."""
        kind, count = _dtype(dtype), prod(shape)
        if min(shape, default=0) < 0:
            raise PoplarError(f"executable: an array has the shape {shape}")
        if not form:
            array = np.frombuffer(self.bytes(place, count * kind.itemsize), kind).reshape(shape)
            return array.copy() if writeable else array
        self._take(count * kind.itemsize)
        if isinstance(form, list):
            make = _steps(kind, count, *form)
        else:
            make = self._widened(kind, count, place, _dtype(form))

        def shaped() -> Array:
            result = make()
            result.flags.writeable = bool(writeable)
            return result.reshape(shape)

        return Deferred(np.ndarray, shaped) if count * kind.itemsize >= DEFERRED else shaped()

    def dictionary(self, values: list[object]) -> object:
        """Return an empty dictionary that is filled later, or a deferred one.

        Deferred is one of arrays or tuples of arrays by text or by number.
        """
        keys, items = values[::2], values[1::2]
        if len(keys) != len(items) or not {*map(type, keys)} <= {str, int}:
            return {}
        if not items or not all(map(self._has_arrays, items)):
            return {}
        parts: list[object] = []  # the reader itself would stay for as long as the dictionary waits
        self._linked.append((parts, [item for item in items if isinstance(item, list)]))
        return Deferred(dict, lambda: dict(zip(keys, map(_value, parts), strict=True)))

    def _has_arrays(self, value: object) -> bool:
        """Return whether a value is an array or a tuple of arrays."""
        node = self._node_of(value)
        if node[0] != "tuple":
            return bool(node[0] == "array")
        return bool(node[1]) and all(self._node_of(part)[0] == "array" for part in node[1])

    def _node_of(self, value: object) -> Node:
        """Return the node that a value names, one of no kind for any other value."""
        if not isinstance(value, list) or len(value) != 1 or type(number := value[0]) is not int:
            return [""]
        return self._nodes[number] if 0 <= number < len(self._nodes) else [""]

    def tuple_of(self, values: list[object]) -> object:
        """Return a tuple; one of which a part is deferred is deferred itself."""
        parts = [self._node(value) if isinstance(value, list) else value for value in values]
        if not any(type(part) is Deferred for part in parts):
            return tuple(parts)
        return Deferred(tuple, lambda: tuple(map(_value, parts)))

    def _widened(
        self, kind: np.dtype[np.generic], count: int, place: int, stored: np.dtype[np.generic]
    ) -> Callable[[], Array]:
        """Return what makes an array of numbers of a wider type; raises PoplarError."""
        if {kind.kind, stored.kind} - {"i", "u"} or not np.can_cast(stored, kind):
            raise PoplarError(f"executable: numbers of {stored} are no {kind}")
        numbers = np.frombuffer(self.bytes(place, count * stored.itemsize), stored)
        return lambda: numbers.astype(kind)

    def _take(self, size: int) -> None:
        """Count bytes of arrays that stand in the file in a shorter form; raises PoplarError."""
        self._grown += size
        if self._grown > GROWN + RATIO * len(self.data):
            raise PoplarError("executable: its arrays have far more bytes than the file")

    def _make(self, number: int, make: Callable[..., object], parts: list[object]) -> None:
        self._made[number] = make(self, *parts)

    def _fill(self, number: int, fill: Callable[..., object], parts: list[object]) -> None:
        if type(self._made[number]) is not Deferred:
            fill(self, self._made[number], *parts)

    def fill_object(self, instance: object, kind: int, values: list[object]) -> None:
        """Set the fields of an object; raises PoplarError for an object of another kind."""
        cls = self.classes[kind]
        for name, accepted, value in zip(field_names(cls), checks(cls), values, strict=True):
            item = self._node(value) if isinstance(value, list) else value
            if isinstance(value, dict) and value == ABSENT:
                continue
            if type(item) is Deferred:
                if isinstance(instance, DeferredFields) and item.kind in (accepted or (item.kind,)):
                    defer(instance, name, item)
                    continue
                item = item.value()
            if accepted and not isinstance(item, accepted):
                raise PoplarError(
                    f"executable: {cls.__name__}.{name} is a {type(item).__name__}; "
                    f"{accepted[0].__name__} is needed"
                )
            object.__setattr__(instance, name, item)

    def fill_function(self, function: FunctionType, *parts: Any) -> None:
        """Set the defaults of a function and the values that it refers to."""
        *_, names, values = parts
        code = function.__code__
        if list(code.co_freevars) != names:
            raise PoplarError(f"executable: {function.__qualname__} refers to {names} in the file")
        defaults, named, *contents = self.values(values)
        if not isinstance(defaults, tuple | None) or not isinstance(named, dict | None):
            raise PoplarError(f"executable: {function.__qualname__} has no such defaults")
        if is_own(function):
            return
        function.__defaults__, function.__kwdefaults__ = defaults, named
        for cell, value in zip(function.__closure__ or (), contents, strict=True):
            cell.cell_contents = value


def _short(value: npt.NDArray[np.generic]) -> tuple[object, bytes]:
    """Return the form in which whole numbers take the least, and their bytes.

    The form is "" for the array as it is, the narrowest type that holds all, or first number and
    step where each is as much more than the one before.
    """
    kind = value.dtype
    if kind.kind not in "iu" or value.size <= FEW:
        return "", value.tobytes()
    flat = np.ascontiguousarray(value).reshape(-1)
    first, step = int(flat[0]), int(flat[1]) - int(flat[0])
    if int(flat[-1]) == first + step * (flat.size - 1) and (np.diff(flat) == step).all():
        return [first, step], b""
    dtype = np.result_type(np.min_scalar_type(flat.min()), np.min_scalar_type(flat.max()))
    if dtype.kind not in "iu" or dtype.itemsize >= kind.itemsize:
        return "", value.tobytes()
    return dtype.newbyteorder("<").str, flat.astype(dtype.newbyteorder("<")).tobytes()


def _value(item: object) -> object:
    """Return what a node was made to, made now if it was deferred."""
    return item.value() if type(item) is Deferred else item


def _steps(kind: np.dtype[np.generic], count: int, first: int, step: int) -> Callable[[], Array]:
    """Return what makes numbers each a step above the one before; raises PoplarError."""
    last = first + step * max(count - 1, 0)
    if kind.kind not in "iu" or not all(_fits(kind, number) for number in (first, last)):
        raise PoplarError(f"executable: numbers from {first} to {last} are no {kind}")
    if not step:
        return lambda: np.full(count, first, dtype=kind)
    return lambda: np.arange(first, last + (1 if step > 0 else -1), step, dtype=kind)


def _fits(kind: np.dtype[np.generic], number: int) -> bool:
    """Return whether a whole number is one of a whole-number type."""
    bits = 8 * kind.itemsize - (kind.kind == "i")
    return (-1 << bits if kind.kind == "i" else 0) <= number < 1 << bits


def _class(module: str, name: str, names: list[str]) -> type:
    kind = class_of(module, name)
    if list(field_names(kind)) != names:
        raise PoplarError(f"executable: {name} has other fields than here; compile it anew")
    return kind


@lru_cache
def _dtype(text: str) -> np.dtype[np.generic]:
    """Return the type of an array; raises PoplarError for one of objects."""
    kind = np.dtype(str(text))
    if kind.kind not in ARRAYS or not kind.itemsize:
        raise PoplarError(f"executable: an array is of the type {text!r}")
    return kind


def _object(reader: _Reader, kind: int, _: object) -> object:
    cls = reader.classes[kind]
    if issubclass(cls, Enum | tuple | Vertex):
        raise PoplarError(f"executable: {cls.__name__} stands where an object does")
    return object.__new__(cls)


def _named(reader: _Reader, kind: int, values: list[object]) -> object:
    cls = reader.classes[kind]
    if not issubclass(cls, tuple) or len(values) != len(field_names(cls)):
        raise PoplarError(f"executable: {cls.__name__} stands where a named tuple does")
    return tuple.__new__(cls, reader.values(values))


def _enum(reader: _Reader, kind: int, name: str) -> object:
    cls = reader.classes[kind]
    if not issubclass(cls, Enum):
        raise PoplarError(f"executable: {cls.__name__} is no enumeration")
    return cls[name]


# How a node is made, in the order in which they are; then how it is filled.
SHELLS: dict[str, Callable[..., object]] = {
    "list": lambda reader, _: [],
    "set": lambda reader, _: set(),
    "range": lambda reader, bounds: range(*bounds),
    "slice": lambda reader, bounds: slice(*bounds),
    "bytes": lambda reader, place, size: bytes(reader.bytes(place, size)),
    "array": _Reader.array,
    "number": lambda reader, dtype, place: reader.array(dtype, [], place, False)[()],
    "dtype": lambda reader, text: _dtype(text),
    "enum": _enum,
    "object": _object,
    "class": lambda reader, kind: reader.classes[kind],
    "function": lambda reader, module, name, number, *_: function_of(module, name, number),
    "ufunc": lambda reader, name: ufunc_of(name),
    "integer": lambda reader, text: int(text, 16),
    "complex": lambda reader, real, imaginary: complex(real, imaginary),
}
DICTIONARIES: dict[str, Callable[..., object]] = {
    "dict": lambda reader, values: reader.dictionary(values),
}
WHOLE: dict[str, Callable[..., object]] = {
    "tuple": lambda reader, values: reader.tuple_of(values),
    "frozenset": lambda reader, values: frozenset(reader.values(values)),
    "named": _named,
}
FILLED: dict[str, Callable[..., None]] = {
    "list": lambda reader, container, values: container.extend(reader.values(values)),
    "object": _Reader.fill_object,
    "function": _Reader.fill_function,
}
HASHED: dict[str, Callable[..., None]] = {
    "set": lambda reader, container, values: container.update(reader.values(values)),
    "dict": lambda reader, container, values: container.update(
        zip(*[iter(reader.values(values))] * 2, strict=True)
    ),
}
