"""Small ONNX models in one expression."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from simulator import popart
from simulator.graph.types import Array

Shapes = Mapping[str, Sequence[Any]]


def node(operator: str, inputs: str, outputs: str, **attributes: Any) -> onnx.NodeProto:
    """Make a node of tensors named in texts: node("Add", "a b", "c")."""
    return helper.make_node(operator, inputs.split(), outputs.split(), **attributes)


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Shapes,
    outputs: Sequence[str],
    weights: Mapping[str, Any] | None = None,
    opset: int = 11,
) -> onnx.ModelProto:
    """Make a model of float inputs by their shapes."""
    values = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in inputs.items()
    ]
    made = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
    stored = [
        onnx.numpy_helper.from_array(np.asarray(values), name)
        for name, values in (weights or {}).items()
    ]
    graph = helper.make_graph(list(nodes), "small", values, made, stored)
    return helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid("ai.graphcore", 1)],
    )


def tiny(ipus: int = 1) -> popart.DeviceInfo:
    """Return a machine of 4 tiles an IPU, without code, which takes a while to lay out."""
    options = {"ipuVersion": "tiny", "numIPUs": ipus, "compileIPUCode": False}
    return popart.DeviceManager().createIpuModelDevice(options)


def prepared(proto: Any, anchors: Any, batches: int = 1, **engine: Any) -> popart.InferenceSession:
    """Compile a model for 4 tiles, and load its weights."""
    options = popart.SessionOptions(engineOptions=engine)
    flow = popart.DataFlow(batches, anchors)
    session = popart.InferenceSession(proto, flow, tiny(), userOptions=options)
    session.prepareDevice()
    session.weightsFromHost()
    return session


def outcome(proto: Any, inputs: Mapping[str, Array], *names: str) -> list[Array]:
    """Return the values of tensors after one batch."""
    session = prepared(proto, list(names))
    anchors = session.initAnchorArrays()
    session.run(popart.PyStepIO(inputs, anchors))
    return [anchors[name] for name in names]


def trained(
    nodes: Sequence[onnx.NodeProto],
    weights: dict[str, Array],
    loss: Any,
    *anchors: str,
    opset: int = 12,
) -> dict[str, Array]:
    """Train one batch at rate 0; give the anchors."""
    proto = model(nodes, {}, [], weights, opset=opset)
    flow = popart.DataFlow(1, list(anchors))
    given = {"losses": [loss], "optimizer": popart.ConstSGD(0.0), "deviceInfo": tiny()}
    session = popart.TrainingSession(proto, flow, **given)
    session.prepareDevice()
    session.weightsFromHost()
    found = session.initAnchorArrays()
    session.run(popart.PyStepIO({}, found))
    return found
