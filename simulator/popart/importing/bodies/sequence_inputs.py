"""Inputs and outputs that are sequences or optional, as a model of tensors alone has them.

Element n of input x is an input `x/n`. As many as have a shape are there; so is an optional input.
"""

from __future__ import annotations

from collections.abc import Collection

import onnx
from onnx import helper

from simulator.popart.representation.tensor_info import InputShapeInfo


def elements(shapes: Collection[str], name: str) -> list[str]:
    """Name the elements of an input that shapes were given of."""
    names: list[str] = []
    while f"{name}/{len(names)}" in shapes:
        names.append(f"{name}/{len(names)}")
    return names


def tensors_of(model: onnx.ModelProto, shapes: Collection[str]) -> list[onnx.ValueInfoProto]:
    """Return the inputs, those that are no tensors as the tensors that shapes are given of."""
    return [tensor for value in model.graph.input for tensor in _tensors(value, shapes)]


def _tensors(value: onnx.ValueInfoProto, shapes: Collection[str]) -> list[onnx.ValueInfoProto]:
    kind = value.type
    if kind.HasField("optional_type"):
        if value.name not in shapes and not elements(shapes, value.name):
            return []
        kind = kind.optional_type.elem_type
    if not kind.HasField("sequence_type"):
        return [onnx.ValueInfoProto(name=value.name, type=kind)]
    inputs = []
    for name in elements(shapes, value.name):
        inputs.append(onnx.ValueInfoProto(name=name, type=kind.sequence_type.elem_type))
        inputs[-1].type.tensor_type.ClearField("shape")
    return inputs


def without_sequences(model: onnx.ModelProto, shapes: InputShapeInfo) -> onnx.ModelProto:
    """Return the model with an input for each element, and the node that makes a sequence of them.

    The model itself when all its inputs are tensors.
    """
    kinds = {value.type.WhichOneof("value") for value in model.graph.input}
    if not kinds & {"sequence_type", "optional_type"}:
        return model
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    del changed.graph.input[:]
    nodes, shape_ids = [], set(shapes.getAllTensorIds())
    for value in model.graph.input:
        tensors = _tensors(value, shape_ids)
        changed.graph.input.extend(tensors)
        names = [tensor.name for tensor in tensors]
        if value.type.HasField("optional_type") and not names:
            nodes.append(helper.make_node("Optional", [], [value.name]))
        elif names != [value.name]:
            operator = "SequenceConstruct" if names else "SequenceEmpty"
            nodes.append(helper.make_node(operator, names, [value.name]))
    nodes_after = [*nodes, *changed.graph.node]
    del changed.graph.node[:]
    changed.graph.node.extend(nodes_after)
    return changed
