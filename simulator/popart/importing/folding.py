"""What is known before a model runs: nodes whose inputs are constants, and shapes.

Float weights are no constants: they can be loaded anew, so that what is made of them is computed
on the device.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import onnx

from simulator.graph.types import Array
from simulator.popart.representation.tensor_info import TensorInfo

_RANDOM = ("Random", "Bernoulli", "Multinomial")


def _constant(attributes: dict[str, object]) -> Array | None:
    """Return the value of a Constant node; texts and sparse tensors are none."""
    kinds: dict[str, Any] = {
        "value_float": np.float32,
        "value_floats": np.float32,
        "value_int": np.int64,
        "value_ints": np.int64,
    }
    if "value" in attributes:
        return np.asarray(attributes["value"])
    name = next((name for name in kinds if name in attributes), None)
    return None if name is None else np.asarray(attributes[name], dtype=kinds[name])


def _filled(attributes: dict[str, Any], shape: Array) -> Array:
    """Return what ConstantOfShape makes, without room for each element."""
    value = np.asarray(attributes.get("value", np.zeros(1, dtype=np.float32)))
    return np.broadcast_to(value.reshape(-1)[0], tuple(shape.tolist()))


def of_shape(operator: str, attributes: dict[str, Any], info: TensorInfo | None) -> Array | None:
    """Return what is known of a tensor by its shape alone: Shape, Size and EyeLike, else None."""
    if info is None or operator not in ("EyeLike", "Shape", "Size"):
        return None
    if operator == "EyeLike":
        kind, (rows, columns) = attributes.get("dtype"), info.dims
        dtype = info.host if kind is None else onnx.helper.tensor_dtype_to_np_dtype(kind)
        return np.eye(rows, columns, attributes.get("k", 0)).astype(dtype)
    if operator == "Size":
        return np.asarray(info.nelms(), dtype=np.int64)
    first, end = attributes.get("start", 0), attributes.get("end", len(info.dims))
    return np.asarray(info.dims[first:end], dtype=np.int64)


def fold(
    proto: onnx.NodeProto,
    attributes: dict[str, object],
    values: Sequence[Array | None],
    opsets: Sequence[onnx.OperatorSetIdProto],
) -> list[Array] | None:
    """Compute a node of constants; None when it cannot be done before the program runs.

    The operator's lowering, or the inference of shapes, then has the last word.
    """
    if proto.op_type.startswith(_RANDOM) or any(a.HasField("g") for a in proto.attribute):
        return None
    if proto.op_type == "Constant":
        value = _constant(attributes)
        return None if value is None else [value]
    if proto.op_type == "ConstantOfShape" and values and values[0] is not None:
        return [_filled(attributes, values[0])]
    return _evaluated(proto, values, opsets)


def _evaluated(
    proto: onnx.NodeProto,
    values: Sequence[Array | None],
    opsets: Sequence[onnx.OperatorSetIdProto],
) -> list[Array] | None:
    # Many models fold nothing: the evaluator takes longer to import than the rest of this module.
    from onnx.reference import ReferenceEvaluator

    feeds = {
        name: value for name, value in zip(proto.input, values, strict=True) if value is not None
    }
    inputs = [onnx.helper.make_value_info(name, onnx.TypeProto()) for name in feeds]
    outputs = [onnx.helper.make_value_info(name, onnx.TypeProto()) for name in proto.output if name]
    graph = onnx.helper.make_graph([proto], "folded", inputs, outputs)
    model = onnx.helper.make_model(graph, opset_imports=opsets)
    try:
        results = cast("list[Array]", ReferenceEvaluator(model).run(None, feeds))
        return [np.asarray(value) for value in results]
    except Exception:  # the reference lacks operators and has faults of its own (GatherElements)
        return None
