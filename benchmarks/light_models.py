"""The models that onnx ships, with seeded random weights in place of constant ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.backend.test
import onnx.version_converter
from onnx.reference import ReferenceEvaluator

FOLDER = Path(onnx.backend.test.__file__).parent / "data" / "light"
NAMES = tuple(sorted(path.stem.removeprefix("light_") for path in FOLDER.glob("light_*.onnx")))
SEED = 7


def light_model(name: str) -> onnx.ModelProto:
    """Read a model; every weight that it fills with one number gets random numbers.

    Kernels and matrices are scaled by their inputs, so that activations keep their size;
    variances are those of a normal layer, around 1.
    """
    model = onnx.load(FOLDER / f"light_{name}.onnx")
    shapes = {
        tensor.name: tuple(onnx.numpy_helper.to_array(tensor).tolist())
        for tensor in model.graph.initializer
    }
    variances = {node.input[4] for node in model.graph.node if node.op_type == "BatchNormalization"}
    random = np.random.default_rng(SEED)
    kept = []
    for node in model.graph.node:
        if node.op_type != "ConstantOfShape":
            kept.append(node)
            continue
        shape = shapes[node.input[0]]
        values = random.normal(size=shape) / np.sqrt(max(np.prod(shape[1:]), 1))
        if node.output[0] in variances:
            values = np.abs(values) + 0.5
        array = values.astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, node.output[0]))
    del model.graph.node[:]
    model.graph.node.extend(kept)
    model.ir_version = max(model.ir_version, 4)  # from which on weights are not inputs, too
    return model


def of_any_batch(model: onnx.ModelProto) -> onnx.ModelProto:
    """Let a model's shapes that begin with a batch of one begin with any."""
    shapes = {node.input[1] for node in model.graph.node if node.op_type == "Reshape"}
    for tensor in model.graph.initializer:
        if tensor.name in shapes:
            sizes = onnx.numpy_helper.to_array(tensor).copy()
            sizes[:1] = np.where(sizes[:1] == 1, -1, sizes[:1])
            tensor.CopyFrom(onnx.numpy_helper.from_array(sizes, tensor.name))
    return model


def image(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    """Make a random image for the one input that has no values."""
    stored = {tensor.name for tensor in model.graph.initializer}
    (value,) = (v for v in model.graph.input if v.name not in stored)
    shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
    values = np.random.default_rng(SEED + 1).normal(size=shape)
    return {value.name: values.astype(np.float32)}


def expected(model: onnx.ModelProto, inputs: dict[str, np.ndarray]) -> np.ndarray:
    """Return the output that the reference evaluator computes.

    It has Softmax and BatchNormalization of old versions by the rules of new ones (1.23), so that
    the model is converted first.
    """
    converted = onnx.version_converter.convert_version(model, 15)
    (found,) = ReferenceEvaluator(converted).run(None, inputs)
    return np.asarray(found)
