"""The forms in which PopART's builder takes arguments, and those that a model stores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from itertools import chain
from typing import Any

import numpy as np
import onnx
from onnx import helper

from simulator.popart.errors import popart_exception, refused_call
from simulator.popart.representation.tensor_info import ELEMENT_TYPES

_Kind = onnx.AttributeProto
NUMBERS = {_Kind.INT: int, _Kind.FLOAT: float, _Kind.INTS: int, _Kind.FLOATS: float}
SEVERAL = (_Kind.INTS, _Kind.FLOATS, _Kind.STRINGS)
TYPED = ("to", "data_type", "dtype")  # attributes that name an element type
FEWEST, PER_CONVOLUTION = 2, 3  # inputs of each convolution of a MultiConv: data, weights, bias


def is_set(value: object) -> bool:
    """Return whether an attribute has a value; None, "" and an empty list stand for none.

    An empty array is one: a constant, as the region of a Resize, may be of no elements.
    """
    return value is not None and not (isinstance(value, list | tuple | str) and not value)


def type_number(name: object, subject: str) -> int:
    """Return ONNX's number of a type, which may be named."""
    name = getattr(name, "value", name)
    if isinstance(name, int):
        return name
    if name not in ELEMENT_TYPES:
        raise popart_exception(f"{subject}: type {name!r}; known are {', '.join(ELEMENT_TYPES)}")
    return ELEMENT_TYPES[name].onnx


def attribute_of(name: str, value: object, kind: int | None, subject: str) -> onnx.AttributeProto:
    """Return an attribute of a node; numbers become those of its kind: an int a float, ...

    Raises popart_exception for what is no such number.
    """
    value = _plain(value, kind)
    if kind in NUMBERS:
        try:
            numbers = [NUMBERS[kind](one) for one in _flat(value)]
        except (TypeError, ValueError):
            kind_name = _Kind.AttributeType.Name(kind)
            raise popart_exception(
                f"{subject}: {name} is {value!r}; {kind_name} is needed"
            ) from None
        value = numbers if kind in SEVERAL else numbers[0]
    return helper.make_attribute(name, value, attr_type=kind)


def _flat(value: Any) -> list[Any]:
    """Return all numbers of a number, a list or lists of lists."""
    if not isinstance(value, list | tuple) and np.ndim(value) == 0:
        return [value]
    return [number for one in value for number in _flat(one)]


def _plain(value: object, kind: int | None) -> object:
    """Return a value as ONNX takes it."""
    if isinstance(value, Enum):
        return value.value
    if hasattr(value, "graph_proto"):  # the builder of a graph within
        return value.graph_proto
    if isinstance(value, np.ndarray) and kind in (None, _Kind.TENSOR):
        return onnx.numpy_helper.from_array(value)
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, str | bytes | np.ndarray | onnx.GraphProto):
        return value
    return list(value) if isinstance(value, Iterable) else value


def by_name(
    names: Sequence[str], kinds: Mapping[str, int], positional: Sequence[object], method: str
) -> dict[str, object]:
    """Return arguments by their names; a text where a number is due names the node."""
    if len(positional) > len(names):
        raise refused_call(method, ", ".join(("args", *names)))
    arguments = dict(zip(names, positional, strict=False))
    for name, value in list(arguments.items()):
        number = kinds.get(name) in (_Kind.INT, _Kind.FLOAT) and name not in TYPED
        if isinstance(value, str) and number:
            arguments["debugPrefix"] = arguments.pop(name)
    return arguments


def of_convolutions(
    inputs: Sequence[Sequence[str]], attributes: Mapping[str, object]
) -> tuple[list[str], dict[str, object]]:
    """Return the inputs of several convolutions, and their settings, one behind another.

    Raises popart_exception where there are not as many settings as convolutions.
    """
    if not inputs:
        raise popart_exception("MultiConvOp has no input tensors. Provide at least one set")
    for tensors in inputs:
        if len(tensors) < FEWEST:
            raise popart_exception(
                f"A convolution of MultiConvOp has {len(tensors)} inputs; "
                "each must have at least two inputs - data and weights"
            )
        if len(tensors) > PER_CONVOLUTION:
            raise popart_exception(
                f"A convolution of MultiConvOp has {len(tensors)} inputs; "
                "each can have at most three inputs - data, weights, and bias"
            )
    for name, value in attributes.items():
        if isinstance(value, list | tuple) and value and len(value) != len(inputs):
            raise popart_exception(
                f"For MultiConvOp, number of {name} parameter sets ({len(value)}) "
                f"does not match the number of input sets ({len(inputs)})"
            )
    operands = [[*tensors, *[""] * (PER_CONVOLUTION - len(tensors))] for tensors in inputs]
    return list(chain.from_iterable(operands)), dict(attributes)
