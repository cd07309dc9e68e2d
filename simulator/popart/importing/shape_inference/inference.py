"""Types and shapes of what a node makes, as ONNX infers them."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import onnx
import onnx.checker
from onnx.shape_inference import InferenceError, infer_node_outputs

from simulator.popart.errors import popart_exception
from simulator.popart.importing.shape_inference import shape_inference_exceptions
from simulator.popart.importing.shape_inference.misfits import check_elements, misfit
from simulator.popart.importing.state import Import
from simulator.popart.operators.control_flow import loops, scans
from simulator.popart.operators.elements.reductions import names_no_axis
from simulator.popart.operators.graphcore_table import infer_graphcore
from simulator.popart.operators.table import OPERATORS
from simulator.popart.representation.ir import GRAPHCORE, ONNX, Ir, Node
from simulator.popart.representation.tensor_info import ELEMENT_TYPES, TensorInfo, type_name

_FAULTS = (InferenceError, onnx.checker.ValidationError, ValueError, RuntimeError)
FEW = 4096  # elements of a constant that shape inference is told


def inferred(
    state: Import, ir: Ir, proto: onnx.NodeProto, node: Node, subject: str
) -> dict[str, TensorInfo]:
    """Return the types and shapes of a node's outputs; none where it is not known what it does."""
    if node.domain == GRAPHCORE and node.key in OPERATORS:
        infos = infer_graphcore(node, [ir.infos.get(i) for i in node.inputs], subject)
        return dict(zip(node.outputs, infos, strict=False))
    if isinstance(node.attributes.get("then_branch"), Ir):
        branch: Ir = node.attributes["then_branch"]
        return {
            output: branch.infos[inner]
            for output, inner in zip(node.outputs, branch.outputs, strict=True)
            if inner in branch.infos
        }
    if isinstance(node.attributes.get("body"), Ir):
        within = scans.inferred if node.operator == "Scan" else loops.inferred
        return within(node, ir)
    if names_no_axis(node.operator, node.attributes):
        return {node.outputs[0]: ir.infos[node.inputs[0]]}
    domain = "" if node.domain == ONNX else node.domain
    if not onnx.defs.has(node.operator, state.opsets[node.domain], domain):
        return {}
    schema = onnx.defs.get_schema(node.operator, state.opsets[node.domain], domain)
    if not schema.has_type_and_shape_inference_function and node.key in OPERATORS:
        return {node.outputs[0]: ir.infos[node.inputs[0]]}  # as GroupNormalization
    types = _inferred_types(
        state, ir, shape_inference_exceptions.as_inferred(proto, ir), node, schema, subject
    )
    output_infos = {
        name: info for name, kind in types.items() if (info := _info(kind, subject)) is not None
    }
    check_elements(node, ir, output_infos, subject)
    return shape_inference_exceptions.with_places(node, output_infos, ir)


def _inferred_types(
    state: Import,
    ir: Ir,
    proto: onnx.NodeProto,
    node: Node,
    schema: onnx.defs.OpSchema,
    subject: str,
) -> dict[str, onnx.TypeProto]:
    """Return what ONNX infers; where it lacks a type that PopART has, another stands in for it."""
    infos = shape_inference_exceptions.types_of(node, ir)
    values = {i: v for i in infos if (v := _few(ir, i, infos[i])) is not None}

    def infer(infos: dict[str, TensorInfo]) -> dict[str, onnx.TypeProto]:
        types = {i: type_proto(info) for i, info in infos.items()}
        return dict(
            infer_node_outputs(
                schema, proto, types, values, opset_imports=state.imports,
                ir_version=state.ir_version,
            )
        )  # fmt: skip

    try:
        return infer(infos)
    except _FAULTS as error:
        for kind, stand_in in shape_inference_exceptions.stand_ins(node, infos):
            with suppress(*_FAULTS):
                return _typed_again(
                    infer(shape_inference_exceptions.standing_in(infos, node, stand_in)),
                    stand_in,
                    kind,
                )
        shown = ", ".join(f"{i!r} {ir.infos[i]}" for i in node.inputs if i)
        reason = misfit(node, ir) or error
        raise popart_exception(f"{subject}: inputs {shown} do not fit: {reason}") from None


def _typed_again(
    types: dict[str, onnx.TypeProto], stand_in: str, kind: str
) -> dict[str, onnx.TypeProto]:
    """Return outputs of the type that another stood in for."""
    for type_proto in types.values():
        if type_proto.tensor_type.elem_type == ELEMENT_TYPES[stand_in].onnx:
            type_proto.tensor_type.elem_type = ELEMENT_TYPES[kind].onnx
    return types


def _few(ir: Ir, name: str, info: TensorInfo) -> onnx.TensorProto | None:
    value = ir.known(name)
    if value is None or value.size > FEW:
        return None
    return onnx.numpy_helper.from_array(np.asarray(value).astype(info.packed), name)


def typed(ir: Ir, name: str) -> onnx.TypeProto:
    """Return the type of an input as ONNX has it; empty for one that is not given."""
    if name in ir.sequences:
        kinds = [ir.infos[item] for item in ir.sequences[name]] or [TensorInfo("FLOAT", [])]
        element = onnx.helper.make_tensor_type_proto(ELEMENT_TYPES[kinds[0].type].onnx, None)
        return onnx.helper.make_sequence_type_proto(element)
    return type_proto(ir.infos[name]) if name in ir.infos else onnx.TypeProto()


def type_proto(info: TensorInfo) -> onnx.TypeProto:
    return onnx.helper.make_tensor_type_proto(ELEMENT_TYPES[info.type].onnx, info.dims)


def _info(kind: onnx.TypeProto, subject: str) -> TensorInfo | None:
    """Return type and shape; None when the shape is not known."""
    if kind.WhichOneof("value") != "tensor_type" or not kind.tensor_type.HasField("shape"):
        return None
    sizes = kind.tensor_type.shape.dim
    shown = [size.dim_value for size in sizes]
    if min(shown, default=0) < 0:
        raise popart_exception(f"{subject}: comes out with shape {shown}; its inputs are too small")
    if not all(size.HasField("dim_value") for size in sizes):
        return None
    return TensorInfo(
        type_name(kind.tensor_type.elem_type, subject), [size.dim_value for size in sizes]
    )
