"""The nodes that an operator is computed by, as they are added."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from simulator.graph.types import Array
from simulator.popart.errors import popart_exception
from simulator.popart.representation.ir import Node
from simulator.popart.representation.tensor_info import TensorInfo

OPSET = 18  # of the nodes


class Unsupported(popart_exception):
    """What of a node cannot be computed, and what would be needed."""


class Body:
    """Nodes for one node: its inputs are `x0`, `x1`, ..., its outputs `y`, `y1`, ...

    A call adds a node and returns what it makes; arrays among its inputs become constants.
    `infos` and `known` are the types, shapes and constant values of the inputs, None where not
    given or not known; `declared` are the sizes that the model declares the output to have.
    `prefix` begins the names of tensors of a body within.
    """

    def __init__(
        self,
        node: Node,
        infos: Sequence[TensorInfo | None],
        constants: Sequence[Array | None],
        declared: Sequence[int | None] | None = None,
        prefix: str = "",
    ) -> None:
        self.node, self.infos, self.known, self.declared = node, infos, constants, declared
        self._prefix = prefix
        self.nodes: list[onnx.NodeProto] = []

    def __call__(self, operator: str, *inputs: object, out: str = "", **attributes: object) -> str:
        """Add a node and return the name of its output."""
        names = [value if isinstance(value, str) else self.constant(value) for value in inputs]
        output = out or f"{self._prefix}{operator.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, names, [output], **attributes))
        return output

    def several(self, operator: str, *inputs: Any, outputs: int, **attributes: Any) -> list[str]:
        """Add a node and return the names of all its outputs."""
        first = self(operator, *inputs, **attributes)
        extra_outputs = [f"{first}_{place}" for place in range(1, outputs)]
        self.nodes[-1].output.extend(extra_outputs)
        return [first, *extra_outputs]

    def constant(self, values: object) -> str:
        """Add a constant; Python's numbers are whole ones of 64 bits."""
        array = np.asarray(values) if hasattr(values, "dtype") else np.asarray(values, np.int64)
        output = f"{self._prefix}constant{len(self.nodes)}"
        proto = numpy_helper.from_array(array)
        self.nodes.append(helper.make_node("Constant", [], [output], value=proto))
        return output

    def float(self, values: object, place: int = 0) -> Array:
        """Return numbers in the type of an input."""
        return np.asarray(values, dtype=self.info(place).host)

    def has(self, place: int) -> bool:
        """Return whether an optional input is given."""
        return place < len(self.infos) and self.infos[place] is not None

    def info(self, place: int = 0) -> TensorInfo:
        """Return type and shape of an input; raises Unsupported where it is not given."""
        info = self.infos[place] if self.has(place) else None
        if info is None:
            raise Unsupported(f"input {place} is missing")
        return info

    def dims(self, place: int = 0) -> list[int]:
        """Return the shape of an input."""
        return list(self.info(place).dims)

    def value(self, place: int) -> Array | None:
        """Return the values of an input, None where it is not given; raises Unsupported."""
        if not self.has(place):
            return None
        value = self.known[place]
        if value is None:
            name = self.node.inputs[place]
            raise Unsupported(
                f"input {place} ({name!r}) is computed or fed when the program runs; "
                "a constant would be needed"
            )
        return value

    def attribute(self, name: str, default: object = None) -> Any:
        return self.node.attributes.get(name, default)

    def named(self, name: str) -> str:
        """Return the name of a tensor of this body."""
        return f"{self._prefix}{name}"

    def function(self) -> onnx.FunctionProto:
        """Return the nodes as a function of ONNX."""
        inputs = [f"x{place}" for place in range(len(self.infos))]
        opsets = [helper.make_opsetid("", OPSET)]
        outputs = ["y", *(f"y{place}" for place in range(1, len(self.node.outputs)))]
        return helper.make_function("", self.node.operator, inputs, outputs, self.nodes, opsets)
