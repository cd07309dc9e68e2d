"""The structures of a PopEF file: objects with a getter `x()` and a setter `setX(value)` a field.

Each is checked when it is set, written as JSON in the form of `popef_dump`, and read from it.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from enum import Enum
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from pva.errors import PvaError
from simulator.graph.types import Array
from simulator.popef import declaration
from simulator.popef.declaration import DataType, Field, TensorType

LARGEST = 1 << 63  # of whole numbers, and of the bytes of a tensor


class Structure:
    """Some fields, as `declaration` has them: Anchor(name="x") or anchor.setName("x")."""

    FIELDS: ClassVar[tuple[Field, ...]] = ()

    def __init_subclass__(cls) -> None:
        for field in cls.FIELDS:
            setattr(cls, field.name, _getter(field, cls.__name__))
            setattr(cls, _setter_name(field), _setter(field, cls.__name__))

    def __init__(self, **values: object) -> None:
        self._values = {field.name: _default(field) for field in self.FIELDS}
        by_name = {field.name: field for field in self.FIELDS}
        for name, value in values.items():
            if name not in by_name:
                raise PvaError(type(self).__name__, f"no field {name!r}", _field_names(by_name))
            self._values[name] = checked(type(self).__name__, by_name[name], value)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.values() == self.values()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({json.dumps(self.values())})"

    if TYPE_CHECKING:  # getters and setters come from the fields

        def __getattr__(self, name: str) -> Callable[..., Any]: ...

    def values(self) -> dict[str, Any]:
        """Return the fields as values of JSON: whole numbers as texts.

        >>> Option(name="x", value="1").values()
        {'name': 'x', 'value': '1'}
        """
        return {field.name: _value(self._values[field.name]) for field in self.FIELDS}

    @classmethod
    def of_values(cls, values: object, place: str = "") -> Self:
        """Read what `values` gives, passing over other fields; raises PvaError naming the field.

        >>> Option.of_values({"name": "x", "later": 1}).name()
        'x'
        """
        subject = place or cls.__name__
        if not isinstance(values, dict):
            raise PvaError(subject, f"{values!r:.100}", "an object is needed")
        result, by_name = cls(), {field.name: field for field in cls.FIELDS}
        for name, value in values.items():
            if name in by_name:  # a later version may have more
                result._values[name] = _read(f"{subject}.{name}", by_name[name], value)
        return result


# A value of each kind of field, as an example has it.
_SHOWN = {
    "text": "'x'",
    "number": "2",
    "flag": "True",
    "numbers": "[1, 2]",
    "named": "{1: 'load'}",
    "dataType": "DataType.F16",
    "tensorType": "TensorType.INPUT",
    "TensorInfo": "TensorInfo(shape=[2])",
    "ProgramFlow": "ProgramFlow(main=[1])",
    "Anchors": "[Anchor(name='x')]",
    "Options": "[Option(name='x')]",
}
_GET = """Return {meaning}.

        >>> {owner}({name}={value}).{name}() == {value}
        True
        """
_SET = """Set {meaning}.

        >>> item = {owner}()
        >>> item.{setter}({value})
        >>> item.{name}() == {value}
        True
        """


def _text(form: str, field: Field, owner: str) -> str:
    """Write the docstring of a getter or setter."""
    return form.format(
        meaning=field.meaning,
        owner=owner,
        name=field.name,
        setter=_setter_name(field),
        value=_SHOWN[field.kind],
    )


def _setter_name(field: Field) -> str:
    return f"set{field.name[0].upper()}{field.name[1:]}"


def _getter(field: Field, owner: str) -> Callable[[Structure], object]:
    def get(self: Structure) -> Any:
        return self._values[field.name]

    get.__name__, get.__doc__ = field.name, _text(_GET, field, owner)
    return get


def _setter(field: Field, owner: str) -> Callable[[Structure, object], None]:
    def put(self: Structure, value: object) -> None:
        self._values[field.name] = checked(type(self).__name__, field, value)

    put.__doc__ = _text(_SET, field, owner)
    return put


def _field_names(fields: Mapping[str, Field]) -> str:
    return f"there are {', '.join(fields)}"


class Option(Structure):
    """A name and a value.

    >>> Option(name="target.type", value="IPU").value()
    'IPU'
    """

    FIELDS = declaration.OPTION


class TensorInfo(Structure):
    """Shape and element type of a tensor.

    >>> info = TensorInfo(shape=[2, 3], dataType=DataType.F16)
    >>> info.shape(), info.dataType().name
    ([2, 3], 'F16')
    """

    FIELDS = declaration.TENSOR_INFO

    def numElements(self) -> int:
        """Count the elements.

        >>> info = TensorInfo(shape=[2, 3], dataType=DataType.F16)
        >>> info.numElements()
        6
        """
        return prod(self.shape())

    def sizeInBytes(self) -> int:
        """Count the bytes.

        >>> info = TensorInfo(shape=[2, 3], dataType=DataType.F16)
        >>> info.sizeInBytes()
        12
        """
        return self.numElements() * self.dtype().itemsize

    def dtype(self) -> np.dtype[Any]:
        """Return the type of a NumPy array of such elements.

        >>> info = TensorInfo(shape=[2, 3], dataType=DataType.F16)
        >>> info.dtype().name
        'float16'
        """
        return np.dtype(declaration.ARRAYS[self.dataType()])

    @classmethod
    def of(cls, array: Array) -> TensorInfo:
        """Return shape and type of an array; raises PvaError for a type that PopEF lacks.

        >>> TensorInfo.of(np.float32([[1, 2, 3]])).shape()
        [1, 3]
        """
        return cls(shape=array.shape, dataType=data_type(array.dtype))


class ProgramFlow(Structure):
    """Which programs load, run and save.

    >>> ProgramFlow(load=[0], main=[1], save=[2]).main()
    [1]
    """

    FIELDS = declaration.PROGRAM_FLOW


class Anchor(Structure):
    """A tensor that goes to the device or comes from it.

    >>> anchor = Anchor(name="x", type=TensorType.INPUT)
    >>> anchor.setPrograms([1])
    >>> anchor.name(), anchor.programs()
    ('x', [1])
    """

    FIELDS = declaration.ANCHOR


class Metadata(Structure):
    """How to run an executable.

    >>> metadata = Metadata(executable="net", numIpus=2)
    >>> metadata.executable(), metadata.numIpus(), metadata.replicationFactor()
    ('net', 2, 1)
    """

    FIELDS = declaration.METADATA

    def inputs(self) -> list[Anchor]:
        """List the anchors of the main programs that go to the device.

        >>> x = Anchor(name="x", type=TensorType.INPUT, programs=[1])
        >>> y = Anchor(name="y", type=TensorType.OUTPUT, programs=[1])
        >>> metadata = Metadata(anchors=[x, y], programFlow=ProgramFlow(main=[1]))
        >>> [anchor.name() for anchor in metadata.inputs()]
        ['x']
        """
        return self._of_main(TensorType.INPUT)

    def outputs(self) -> list[Anchor]:
        """List the anchors of the main programs that come from the device.

        >>> x = Anchor(name="x", type=TensorType.INPUT, programs=[1])
        >>> y = Anchor(name="y", type=TensorType.OUTPUT, programs=[1])
        >>> metadata = Metadata(anchors=[x, y], programFlow=ProgramFlow(main=[1]))
        >>> [anchor.name() for anchor in metadata.outputs()]
        ['y']
        """
        return self._of_main(TensorType.OUTPUT)

    def _of_main(self, kind: TensorType) -> list[Anchor]:
        main = set(self.programFlow().main())
        return [a for a in self.anchors() if a.type() is kind and main & set(a.programs())]


class ExecutableInfo(Structure):
    """What is known of an executable without reading it.

    >>> ExecutableInfo(name="net", tilesPerIpu=4).tilesPerIpu()
    4
    """

    FIELDS = declaration.EXECUTABLE_INFO


class TensorDataInfo(Structure):
    """The name of a tensor whose elements are kept, with shape and type.

    >>> TensorDataInfo(name="w", tensorInfo=TensorInfo(shape=[2, 3])).tensorInfo().shape()
    [2, 3]
    """

    FIELDS = declaration.TENSOR_DATA_INFO


class FeedDataInfo(Structure):
    """The name of tensors that are kept, with shape, type and number.

    >>> FeedDataInfo(name="x", numTensors=8).numTensors()
    8
    """

    FIELDS = declaration.FEED_DATA_INFO


class OpaqueInfo(Structure):
    """Whose bytes they are, and of which executable.

    >>> OpaqueInfo(name="torch", executable="net").name()
    'torch'
    """

    FIELDS = declaration.OPAQUE_INFO


LISTS: dict[str, type[Structure]] = {"Anchors": Anchor, "Options": Option}
INNER: dict[str, type[Structure]] = {"TensorInfo": TensorInfo, "ProgramFlow": ProgramFlow}
ENUMS: dict[str, type[Enum]] = {"dataType": DataType, "tensorType": TensorType}


def data_type(dtype: np.dtype[np.generic]) -> DataType:
    """Return PopEF's name of NumPy's type of elements; raises PvaError.

    >>> data_type(np.dtype("float16")).name
    'F16'
    """
    plain = dtype.newbyteorder("<")
    # The first of those that share a type of NumPy is the one that is meant.
    ways = {np.dtype(text): kind for kind, text in reversed(declaration.ARRAYS.items())}
    ways[np.dtype("u1")] = DataType.U8
    if plain not in ways:
        raise PvaError("popef", f"elements of {dtype}", "PopEF has no such type")
    return ways[plain]


def _default(field: Field) -> object:
    if field.kind in INNER:
        return INNER[field.kind]()
    if field.kind == "named":
        return {}
    return list(field.default) if isinstance(field.default, tuple) else field.default


def checked(subject: str, field: Field, value: Any) -> Any:
    """Return a value as it is held; raises PvaError for one of another kind."""
    kind = field.kind
    result: Any
    if kind in LISTS:
        good = isinstance(value, list | tuple) and all(isinstance(v, LISTS[kind]) for v in value)
        result = list(value) if good else None
    elif kind in INNER or kind in ENUMS:
        good, result = isinstance(value, (INNER | ENUMS)[kind]), value
    elif kind == "numbers":
        good = isinstance(value, list | tuple) and all(map(_is_number, value))
        result = [int(number) for number in value] if good else None
    elif kind == "named":
        good = isinstance(value, Mapping) and all(
            _is_number(key) and isinstance(text, str) for key, text in value.items()
        )
        result = dict(value) if good else None
    elif kind == "number":
        good = _is_number(value)
        result = int(value) if good else None
    else:
        good, result = isinstance(value, {"text": str, "flag": bool}[kind]), value
    if not good:
        raise PvaError(f"{subject}.{field.name}", f"{value!r:.100}", f"{_wanted(kind)} is needed")
    return copy.copy(result)


def _is_number(value: object) -> bool:
    is_integer = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return is_integer and 0 <= value < LARGEST  # type: ignore[operator]


def _wanted(kind: str) -> str:
    if kind in LISTS:
        return f"a list of {LISTS[kind].__name__}"
    if kind in INNER or kind in ENUMS:
        return f"a {(INNER | ENUMS)[kind].__name__}"
    words = {"number": "a whole number", "numbers": "a list of whole numbers", "text": "a text"}
    return words.get(kind, {"flag": "True or False"}.get(kind, "texts by number"))


def _value(value: object) -> Any:
    """Return what is held of a field as a value of JSON."""
    if isinstance(value, Structure):
        return value.values()
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, list):
        return [_value(item) for item in value]
    if isinstance(value, dict):
        return {str(key): text for key, text in value.items()}
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _read(place: str, field: Field, value: Any) -> Any:
    """Return what is held of a value of JSON; raises PvaError naming the place."""
    kind = field.kind
    try:
        if kind in LISTS and isinstance(value, list):
            rows = enumerate(value)
            return [LISTS[kind].of_values(row, f"{place}[{number}]") for number, row in rows]
        if kind in INNER:
            return INNER[kind].of_values(value, place)
        if kind in ENUMS:
            value = ENUMS[kind](value)
        elif kind == "number":
            value = _whole(value)
        elif kind == "numbers":
            value = [_whole(number) for number in value]
        elif kind == "named":
            value = {_whole(key): text for key, text in value.items()}
    except (TypeError, ValueError, AttributeError):
        raise PvaError(place, f"{value!r:.100}", f"{declaration.KINDS[kind]} is needed") from None
    owner, _, _ = place.rpartition(".")
    return checked(owner, field, value)


def _whole(value: object) -> int:
    """Return the number of a text of digits; raises ValueError and TypeError."""
    if not isinstance(value, str) or not value.isascii() or not value.isdigit() or len(value) > 19:
        raise ValueError(value)
    return int(value)
