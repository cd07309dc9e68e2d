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
from simulator.popart.errors import popart_exception
from simulator.popart.importing.bodies.unrolled import graphs_of
from simulator.popart.importing.bounded import chosen, with_roots
from simulator.popart.importing.composites.table import COMPOSITES
from simulator.popart.importing.from_onnx import import_model
from simulator.popart.importing.functions import captured
from simulator.popart.importing.model_files.input_values import with_known
from simulator.popart.operators.table import OPERATORS
from simulator.popart.representation.ir import Ir
from simulator.popart.representation.tensor_info import InputShapeInfo, TensorInfo
from simulator.popart.session import InferenceSession
from simulator.popart.settings.dataflow import DataFlow, PyStepIO
from simulator.popart.settings.devices import DeviceManager

# Operators that are computed on the host, and the inputs that are the size of what they make.
SIZES = {
    "AffineGrid": [1], "BlackmanWindow": [0], "ConstantOfShape": [0], "HammingWindow": [0],
    "CenterCropPad": [1], "HannWindow": [0], "MelWeightMatrix": [0, 1, 2, 3, 4],
    "Range": [0, 1, 2], "SequenceAt": [1], "SequenceErase": [1], "SequenceInsert": [2],
    "SplitToSequence": [1], "Unique": [0],
}  # fmt: skip
_PARTS = {"CPU": "tiny", "IPU": "mk2"}


class PopartRep(BackendRep):  # type: ignore[misc]
    """A model that is compiled when it is first run: some inputs may have to be constants."""

    def __init__(self, model: onnx.ModelProto, part: str) -> None:
        self._model, self._part = model, part
        self.nodes: int | None = None  # that ran on the device; others were folded

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Run the model on arrays, lists of them or None, in the order of its inputs or by name."""
        names = [value.name for value in self._model.graph.input]
        stored = {tensor.name for tensor in self._model.graph.initializer}
        free = [name for name in names if name not in stored]
        feeds = inputs if isinstance(inputs, Mapping) else dict(zip(free, inputs, strict=False))
        arrays = _arrays(self._model, feeds)
        model = with_constants(self._model, arrays)
        shapes = InputShapeInfo()
        for name in set(arrays) - set(names):
            shapes.add(name, TensorInfo(arrays[name]))
        for value in model.graph.input:
            sizes = value.type.tensor_type.shape.dim
            is_open = not all(size.HasField("dim_value") for size in sizes)
            if value.name in arrays and (is_open or value.type.HasField("optional_type")):
                shapes.add(value.name, TensorInfo(arrays[value.name]))
        ir, wrong = import_model(model, "model", None, shapes)
        if wrong:
            raise popart_exception("; ".join(wrong[:1]))
        self.nodes = len(ir.nodes)
        device = DeviceManager().createIpuModelDevice(
            {"ipuVersion": self._part, "compileIPUCode": False}  # values alone are asked for
        )
        flow = DataFlow(1, with_roots(ir.outputs, ir.bounds))
        session = InferenceSession(model, flow, device, shapes)
        session.prepareDevice()
        session.weightsFromHost()
        anchors = session.initAnchorArrays()
        fed = {name: values for name, values in arrays.items() if name in ir.inputs}
        session.run(PyStepIO(fed, anchors))
        results = chosen(anchors, ir.bounds)
        outputs_made = [_output(value, ir, results) for value in model.graph.output]
        outputs = [value.name for value in model.graph.output]
        return tuple(namedtupledict("Outputs", outputs)(*outputs_made))


def _output(value: onnx.ValueInfoProto, ir: Ir, results: Mapping[str, Array]) -> object:
    """Return an output in the type that the model declares; PopART's may be narrower."""
    if value.name in ir.absent:
        return None
    if value.name in ir.sequences:
        kind = value.type.optional_type.elem_type if value.type.HasField("optional_type") else (
            value.type)  # fmt: skip
        element = kind.sequence_type.elem_type.tensor_type.elem_type
        count = len(ir.sequences[value.name])
        return [_of_type(results[f"{value.name}/{n}"], element) for n in range(count)]
    return _of_type(results[value.name], value.type.tensor_type.elem_type)


def _of_type(values: Array, kind: int) -> Array:
    return values.astype(onnx.helper.tensor_dtype_to_np_dtype(kind)) if kind else values


def _arrays(model: onnx.ModelProto, feeds: Mapping[str, Any]) -> dict[str, Array]:
    """Return the inputs as arrays: element n of a sequence x is `x/n`, None is not there."""
    types = {value.name: value.type for value in model.graph.input}
    arrays = {}
    for name, values in feeds.items():
        kind = types[name].WhichOneof("value") if name in types else "tensor_type"
        is_sequence = isinstance(values, list | tuple) and kind in (
            "sequence_type",
            "optional_type",
        )
        if is_sequence:
            arrays.update({f"{name}/{n}": _array(v, name) for n, v in enumerate(values)})
        elif values is not None:
            arrays[name] = _array(values, name)
    return arrays


def _array(values: object, name: str) -> Array:
    """Return an input as an array; ONNX's own tests have some as TensorProto."""
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
    if node.op_type in ("If", "Loop"):
        return _deciding(node)
    key = node.domain or "ai.onnx", node.op_type
    composite, row = COMPOSITES.get(key), OPERATORS.get(key)
    static = () if row is None else row.static
    return static if composite is None else composite.static


def _deciding(node: onnx.NodeProto) -> Sequence[int]:
    """List the inputs that decide how many tensors or slices a Loop or an If makes."""
    outputs = [value for graph in graphs_of(node) for value in graph.output]
    has_sequences = any(v.type.WhichOneof("value") not in (None, "tensor_type") for v in outputs)
    if node.op_type == "If":
        return (0,) if has_sequences else ()
    return (0, 1) if has_sequences or len(outputs) > len(node.input) - 1 else ()


def with_constants(model: onnx.ModelProto, arrays: Mapping[str, Array]) -> onnx.ModelProto:
    """Make constants of the inputs that operators have to know when they are compiled."""
    makers = {name: node for node in model.graph.node for name in node.output}
    static = [(node, place) for node in model.graph.node for place in _static(node)]
    pending = [node.input[place] for node, place in static if place < len(node.input)]
    seen: set[str] = set()
    while pending:  # what they are computed from has to be known, too
        name = pending.pop()
        maker = makers.get(name)
        if name in seen or maker is None or maker.op_type in ("Shape", "Size"):
            seen.add(name)
            continue
        seen.add(name)
        pending += [*maker.input, *(n for graph in graphs_of(maker) for n in captured(graph))]
    static_inputs = seen & set(arrays)
    if not static_inputs:
        return model
    return with_known(model, {name: arrays[name] for name in sorted(static_inputs)})


class PopartBackend(Backend):  # type: ignore[misc]
    """onnx.backend.base.Backend over the simulator."""

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: object) -> PopartRep:
        """Return a model that can be run; raises popart_exception for an unknown device."""
        if not cls.supports_device(device):
            raise popart_exception(f"backend: device {device!r}; known are {', '.join(_PARTS)}")
        return PopartRep(model, _PARTS[device])

    @classmethod
    def run_model(
        cls, model: onnx.ModelProto, inputs: object, device: str = "CPU", **kwargs: object
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
        """Return whether a device is known."""
        return device in _PARTS

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: object) -> bool:
        """Return whether all operators of a model are supported."""
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
