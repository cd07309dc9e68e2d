"""ONNX's backend interface: models are compiled for a machine of 4 tiles and run there.

Device "CPU" is that machine ("tiny"); "IPU" is an Mk2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx.backend.base import Backend, BackendRep, namedtupledict

from simulator.graph.types import Array
from simulator.popart.dataflow import DataFlow, PyStepIO
from simulator.popart.devices import DeviceManager
from simulator.popart.errors import popart_exception
from simulator.popart.importing import import_model
from simulator.popart.operators.table import OPERATORS
from simulator.popart.session import InferenceSession

# Operators that are computed on the host, and the inputs that are the size of what they make.
SIZES = {
    "AffineGrid": [1], "BlackmanWindow": [0], "ConstantOfShape": [0], "HammingWindow": [0],
    "HannWindow": [0], "Range": [0, 1, 2],
}  # fmt: skip
_PARTS = {"CPU": "tiny", "IPU": "mk2"}


class PopartRep(BackendRep):  # type: ignore[misc]
    """A model that is compiled when it is first run: some inputs may have to be constants."""

    def __init__(self, model: onnx.ModelProto, part: str) -> None:
        self._model, self._part = model, part

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Array, ...]:
        """Run the model on arrays, in the order of its inputs or by name."""
        names = [value.name for value in self._model.graph.input]
        stored = {tensor.name for tensor in self._model.graph.initializer}
        free = [name for name in names if name not in stored]
        given = inputs if isinstance(inputs, Mapping) else dict(zip(free, inputs, strict=False))
        arrays = {name: _array(values, name) for name, values in given.items()}
        model = with_constants(self._model, arrays)
        outputs = [value.name for value in model.graph.output]
        device = DeviceManager().createIpuModelDevice(
            {"ipuVersion": self._part, "compileIPUCode": False}  # values alone are asked for
        )
        session = InferenceSession(model, DataFlow(1, outputs), device)
        session.prepareDevice()
        session.weightsFromHost()
        anchors = session.initAnchorArrays()
        kept = {value.name for value in model.graph.input}
        fed = {name: values for name, values in arrays.items() if name in kept}
        session.run(PyStepIO(fed, anchors))
        types = [value.type.tensor_type.elem_type for value in model.graph.output]
        found = [_of_type(anchors[name], kind) for name, kind in zip(outputs, types, strict=True)]
        return tuple(namedtupledict("Outputs", outputs)(*found))


def _of_type(values: Array, kind: int) -> Array:
    """Return an output in the type that the model declares; PopART's may be narrower."""
    return values.astype(onnx.helper.tensor_dtype_to_np_dtype(kind)) if kind else values


def _array(values: Any, name: str) -> Array:
    """Give an input as an array; ONNX's own tests have some as TensorProto."""
    if isinstance(values, onnx.TensorProto):
        return np.asarray(onnx.numpy_helper.to_array(values))
    try:
        return np.asarray(values)
    except ValueError:
        sequence = f"model: input {name!r}: is a sequence of several shapes; tensors are known"
        raise popart_exception(sequence) from None


def _static(node: onnx.NodeProto) -> Sequence[int]:
    """List the inputs of a node that it has to know: those of the size of what it makes."""
    if node.op_type in SIZES:
        return SIZES[node.op_type]
    row = OPERATORS.get((node.domain or "ai.onnx", node.op_type))
    return row.static if row is not None else ()


def with_constants(model: onnx.ModelProto, arrays: Mapping[str, Array]) -> onnx.ModelProto:
    """Make constants of the inputs that operators have to know when they are compiled."""
    wanted = {
        node.input[place]
        for node in model.graph.node
        for place in _static(node)
        if place < len(node.input)
    } & set(arrays)
    if not wanted:
        return model
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    kept = [value for value in changed.graph.input if value.name not in wanted]
    del changed.graph.input[:]
    changed.graph.input.extend(kept)
    for name in sorted(wanted):
        changed.graph.initializer.append(onnx.numpy_helper.from_array(arrays[name], name))
    return changed


class PopartBackend(Backend):  # type: ignore[misc]
    """onnx.backend.base.Backend over the simulator."""

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> PopartRep:
        """Give a model that can be run; raises popart_exception for an unknown device."""
        if not cls.supports_device(device):
            raise popart_exception(f"backend: device {device!r}; known are {', '.join(_PARTS)}")
        return PopartRep(model, _PARTS[device])

    @classmethod
    def run_model(
        cls, model: onnx.ModelProto, inputs: Any, device: str = "CPU", **kwargs: Any
    ) -> tuple[Array, ...]:
        """Compile and run a model."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Any = None,
        **kwargs: Any,
    ) -> tuple[Array, ...]:
        """Compile and run one node; `opset_version` says of which operator set it is."""
        names = [name for name in node.input if name]
        arrays = [_array(values, name) for name, values in zip(names, inputs, strict=True)]
        values = [
            onnx.helper.make_tensor_value_info(
                name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
            )
            for name, array in zip(names, arrays, strict=True)
        ]
        outputs = [onnx.helper.make_value_info(o, onnx.TypeProto()) for o in node.output if o]
        graph = onnx.helper.make_graph([node], "node", values, outputs)
        version = kwargs.get("opset_version", onnx.defs.onnx_opset_version())
        opset = onnx.helper.make_opsetid(node.domain, version)
        model = onnx.helper.make_model(graph, opset_imports=[opset])
        return cls.run_model(model, arrays, device)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Tell whether a device is known."""
        return device in _PARTS

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """Tell whether all operators of a model are supported."""
        try:
            _, wrong = import_model(model, "model", None)
        except popart_exception:
            return False
        return not wrong


prepare = PopartBackend.prepare
run_model = PopartBackend.run_model
run_node = PopartBackend.run_node
supports_device = PopartBackend.supports_device
is_compatible = PopartBackend.is_compatible
