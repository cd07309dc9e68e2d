"""Builds ONNX models: inputs, weights, and a method for each operator of the domains.

builder.aiOnnx.conv([x, w], strides=[1, 1], debugPrefix="first")
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum
from typing import Any

import numpy as np
import onnx
from onnx import helper

from simulator.popart.errors import popart_exception
from simulator.popart.ir import GRAPHCORE, IPU_ATTRIBUTE, ONNX
from simulator.popart.operators.signatures import Signature, signatures
from simulator.popart.tensor_info import ELEMENT_TYPES, TensorInfo, array_type

OPSETS = {ONNX: 10, GRAPHCORE: 1}  # those that PopART's builder begins with
NEWEST = 11  # the last that the user guide lists
IR_VERSION = 7


class Domain:
    """The operators of a domain as methods: inputs, attributes by name, a name for the node."""

    def __init__(self, builder: Builder, domain: str) -> None:
        self._builder, self._domain = builder, domain
        self._methods = signatures(domain, builder.opset(domain))

    def __getattr__(self, method: str) -> Any:
        if method.startswith("_") or method not in self._methods:
            near = difflib.get_close_matches(method, self._methods, n=1)
            hint = f"did you mean {near[0]}?" if near else "see dir()"
            raise AttributeError(f"{self._domain} has no operator {method!r}; {hint}")
        signature = self._methods[method]

        def add(
            args: Sequence[str],
            *positional: Any,
            debugPrefix: str = "",
            debugContext: str = "",
            **attributes: Any,
        ) -> str | list[str]:
            names = [*signature.positional, "debugPrefix"]
            if len(positional) > len(names):
                found = f"{len(positional)} arguments after the inputs"
                raise popart_exception(f"{method}: {found}; by position it takes {names}")
            given = dict(zip(names, positional, strict=False)) | attributes
            name = str(given.pop("debugPrefix", "") or debugPrefix or debugContext)
            asked = given.pop("num_outputs", None)  # then there is a list, also of one
            made = self._builder.add(
                self._domain, signature, list(args), given, name, _count(asked, method)
            )
            return [made] if asked is not None and isinstance(made, str) else made

        return add

    def constant(self, value: Any, debugPrefix: str = "") -> str | list[str]:
        """Add a constant with its values; give its name."""
        signature = Signature("Constant", ("value",))
        given = {"value": np.asarray(value)}
        return self._builder.add(ONNX, signature, [], given, debugPrefix)

    def __dir__(self) -> list[str]:
        return sorted(self._methods)


class Builder:
    """A model that is being built; tensors are their names."""

    def __init__(self, opsets: Mapping[str, int] | None = None) -> None:
        self._opsets = {**OPSETS, **(opsets or {})}
        self._graph = onnx.GraphProto(name="graph")
        self._nodes: dict[str, onnx.NodeProto] = {}  # by what they make
        self._names: set[str] = set()
        self._where: list[dict[str, int]] = []
        self.aiOnnx = Domain(self, ONNX)
        self.aiGraphcore = Domain(self, GRAPHCORE)
        self.aiGraphcoreOpset1 = self.aiGraphcore

    def opset(self, domain: str) -> int:
        """Give the version of a domain's operator set."""
        return self._opsets[domain]

    def __getattr__(self, name: str) -> Domain:
        """Give the operators of an operator set of ONNX, the model's from then on: aiOnnxOpset9.

        Raises popart_exception where nodes of another one are there already.
        """
        version = name.removeprefix("aiOnnxOpset")
        if version == name or not version.isdecimal() or not 6 <= int(version) <= NEWEST:
            raise AttributeError(f"Builder has no {name!r}")
        if int(version) != self._opsets[ONNX]:
            if any(not node.domain for node in self._graph.node):
                raise popart_exception(
                    f"{name}: the model has nodes of operator set {self._opsets[ONNX]}; one is "
                    "needed for all"
                )
            self._opsets[ONNX] = int(version)
            self.aiOnnx = Domain(self, ONNX)
        return self.aiOnnx

    # Tensors
    def addInputTensor(
        self, info: TensorInfo | str, shape: Sequence[int] | str = (), debugPrefix: str = ""
    ) -> str:
        """Add an input that comes with every batch; give its name."""
        sizes: Sequence[int] = ()
        if isinstance(shape, str):
            debugPrefix = shape
        else:
            sizes = shape
        if isinstance(info, str):
            info = TensorInfo(info, sizes)
        if not isinstance(info, TensorInfo):
            raise popart_exception(f"addInputTensor: {info!r}; a TensorInfo is needed")
        name = self._new(debugPrefix or "input")
        self._graph.input.append(_value(name, info))
        return name

    def addUntypedInputTensor(self, debugPrefix: str = "") -> str:
        """Add an input whose type InputShapeInfo gives; give its name."""
        name = self._new(debugPrefix or "input")
        self._graph.input.append(helper.make_value_info(name, onnx.TypeProto()))
        return name

    def addInitializedInputTensor(self, values: Any, debugPrefix: str = "") -> str:
        """Add a weight with its values; give its name."""
        array = np.asarray(values)
        array_type(array, "addInitializedInputTensor")
        name = self._new(debugPrefix or "init_input")
        self._graph.initializer.append(onnx.numpy_helper.from_array(array, name))
        return name

    def addOutputTensor(self, name: str) -> None:
        """Make a tensor an output of the model."""
        self._known(name, "addOutputTensor")
        if name not in self.getOutputTensorIds():
            self._graph.output.append(helper.make_value_info(name, onnx.TypeProto()))

    def getInputTensorIds(self) -> list[str]:
        return [value.name for value in self._graph.input]

    def getOutputTensorIds(self) -> list[str]:
        return [value.name for value in self._graph.output]

    def _new(self, wanted: str) -> str:
        """Give a name that no tensor has."""
        name, count = wanted, 0
        while name in self._names:
            count += 1
            name = f"{wanted}/{count}"
        self._names.add(name)
        return name

    def _known(self, name: str, what: str) -> None:
        if name not in self._names:
            raise popart_exception(f"{what}: no tensor {name!r} in the builder")

    # Operators
    def add(
        self,
        domain: str,
        signature: Signature,
        inputs: Sequence[str],
        attributes: Mapping[str, Any],
        name: str,
        outputs: int = 1,
    ) -> str | list[str]:
        """Add a node; give the name of its output, or of all if it has several."""
        what = f"{domain}.{signature.operator}"
        for tensor in filter(None, inputs):
            self._known(tensor, what)
        signature.check(attributes, len(inputs), what)
        count = max(outputs, signature.outputs)
        made = [self._new(f"{name}/{signature.operator}" if name else signature.operator)]
        made += [self._new(f"{made[0]}:{place}") for place in range(1, count)]
        if signature.operator == "Cast":
            attributes = {**attributes, "to": _type_number(attributes.get("to"))}
        node = helper.make_node(
            signature.operator,
            list(inputs),
            made,
            name or made[0],
            domain="" if domain == ONNX else domain,
            **{key: _attribute(value) for key, value in attributes.items() if value is not None},
        )
        for where in self._where:
            for key, value in where.items():
                _annotate(node, key, value)
        self._graph.node.append(node)
        for tensor in made:
            self._nodes[tensor] = self._graph.node[-1]
        return made[0] if count == 1 else made

    def customOp(
        self,
        opName: str,
        opVersion: int,
        domain: str,
        inputs: Sequence[str],
        attributes: Mapping[str, Any] | None = None,
        numOutputs: int = 1,
        name: str = "",
    ) -> list[str]:
        """Add a node of any operator; give the names of its outputs."""
        self._opsets[domain] = max(opVersion, self._opsets.get(domain, 0))
        signature = Signature(opName, tuple(attributes or ()), numOutputs)
        made = self.add(domain, signature, inputs, attributes or {}, name, numOutputs)
        return [made] if isinstance(made, str) else made

    # Annotations
    def virtualGraph(self, *arguments: Any) -> Any:
        """Place nodes on an IPU: virtualGraph(tensors, ipu), or `with virtualGraph(ipu):`."""
        return self._placed(IPU_ATTRIBUTE, "virtualGraph", arguments)

    def _placed(self, key: str, what: str, arguments: Sequence[Any]) -> Any:
        number = arguments[-1] if len(arguments) in (1, 2) else None
        if not isinstance(number, int) or isinstance(number, bool) or number < 0:
            raise popart_exception(f"{what}: {arguments!r}; [tensors and] a number is needed")
        if len(arguments) == 1:
            return self._within({key: number})
        tensors = arguments[0]
        for tensor in [tensors] if isinstance(tensors, str) else tensors:
            if tensor not in self._nodes:
                raise popart_exception(f"{what}: {tensor!r} is made by no node of the builder")
            _annotate(self._nodes[tensor], key, number)
        return None

    @contextmanager
    def _within(self, annotations: Mapping[str, int]) -> Iterator[None]:
        self._where.append(dict(annotations))
        try:
            yield
        finally:
            self._where.pop()

    # The model
    def getModelProto(self) -> bytes:
        """Give the model as a serialised ModelProto."""
        opsets = [
            helper.make_opsetid("" if domain == ONNX else domain, version)
            for domain, version in self._opsets.items()
        ]
        model = helper.make_model(self._graph, opset_imports=opsets, ir_version=IR_VERSION)
        return bytes(model.SerializeToString())

    def saveModelProto(self, path: str) -> None:
        """Write the model to a file."""
        with open(path, "wb") as file:
            file.write(self.getModelProto())


def _count(asked: Any, method: str) -> int:
    """Give the number of outputs that are asked for; 1 where none is."""
    if asked is None:
        return 1
    if not isinstance(asked, int) or isinstance(asked, bool) or asked < 1:
        raise popart_exception(f"{method}: num_outputs is {asked!r}; at least 1 is needed")
    return asked


def _value(name: str, info: TensorInfo) -> onnx.ValueInfoProto:
    number = ELEMENT_TYPES[info.type].onnx
    return helper.make_tensor_value_info(name, number, info.dims)


def _type_number(name: Any) -> int:
    """Give ONNX's number of the type that a Cast names."""
    if isinstance(name, int):
        return name
    if name not in ELEMENT_TYPES:
        raise popart_exception(f"cast: type {name!r}; known are {', '.join(ELEMENT_TYPES)}")
    return ELEMENT_TYPES[name].onnx


def _attribute(value: Any) -> Any:
    """Give an attribute's value as ONNX takes it."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, np.ndarray):
        return onnx.numpy_helper.from_array(value)
    if isinstance(value, str | bytes):
        return value
    if isinstance(value, Iterable):
        return list(value)
    return value


def _annotate(node: onnx.NodeProto, key: str, value: int) -> None:
    kept = [attribute for attribute in node.attribute if attribute.name != key]
    del node.attribute[:]
    node.attribute.extend([*kept, helper.make_attribute(key, value)])
