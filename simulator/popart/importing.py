"""From an ONNX model to the intermediate representation, checked before any work is done."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import onnx
import onnx.checker
import onnx.inliner
import onnx.version_converter
from onnx.shape_inference import InferenceError, infer_node_outputs

from simulator.graph.types import Array
from simulator.popart import folding, leniency
from simulator.popart import import_checks as checks
from simulator.popart.errors import popart_exception
from simulator.popart.functions import body_of, function_of
from simulator.popart.ir import GRAPHCORE, ONNX, Ir, Node
from simulator.popart.model_file import (
    attributes_of,
    opsets_of,
    tensor_info,
    tensor_values,
    value_info,
)
from simulator.popart.operators import loops, scans
from simulator.popart.operators.reductions import leaves_input
from simulator.popart.operators.table import OPERATORS, infer_graphcore, unsupported
from simulator.popart.ordering import in_order, names_of
from simulator.popart.tensor_info import ELEMENT_TYPES, InputShapeInfo, TensorInfo, type_name

GUIDE_OPSET = 11  # the newest that the user guide lists versions of
SIZED = ("Range",)  # operators whose inputs are the size of what they make: floats are constants
FEW = 4096  # elements of a constant that shape inference is told


@dataclass(slots=True)
class Import:
    """A model on its way: the graph that is made, and what could not be."""

    what: str
    folder: Path | None
    opsets: Mapping[str, int]
    ir_version: int
    shapes: InputShapeInfo
    values: bool = True  # whether weights have to be there
    wrong: list[str] = field(default_factory=list)

    @property
    def imports(self) -> list[onnx.OperatorSetIdProto]:
        """Give the operator sets as ONNX has them."""
        return [
            onnx.helper.make_opsetid("" if domain == ONNX else domain, version)
            for domain, version in self.opsets.items()
        ]


def import_graph(
    state: Import,
    graph: onnx.GraphProto,
    outer: Ir | None = None,
    given: Sequence[TensorInfo] = (),
) -> Ir:
    """Give the graph with types, shapes and constants; its faults go to `state.wrong`.

    A body within a node has inputs of the types and shapes that are `given`.
    """
    ir = Ir(graph.name or "graph")
    if outer is not None:  # a branch sees the tensors around it
        ir.infos.update(outer.infos)
        ir.constants.update(outer.constants)
        ir.weights.update(outer.weights)
    _add_stored(state, ir, graph, branch=outer is not None)
    if given:
        ir.inputs = [value.name for value in graph.input]
        ir.infos |= dict(zip(ir.inputs, given, strict=False))
    else:
        _add_inputs(state, ir, graph)
    ir.outputs = [value.name for value in graph.output]
    if outer is not None and state.wrong:
        return ir  # what it reads may be made by a node that is refused
    protos = in_order(graph, [*ir.infos], state.what)
    for proto, name in zip(protos, names_of(protos), strict=True):
        _add_node(state, ir, proto, name)
    missing = [name for name in ir.outputs if name not in ir.infos and not state.wrong]
    if missing:
        raise popart_exception(f"{state.what}: output {missing[0]!r} is made by no node")
    if outer is None and not state.wrong:
        checks.check_outputs(state.what, ir, graph)
    return ir


def _add_stored(state: Import, ir: Ir, graph: onnx.GraphProto, *, branch: bool) -> None:
    """Add the initialisers: float ones are weights, which can be loaded anew.

    Those of a branch are constants: another branch may call its own alike.
    """
    if graph.sparse_initializer:
        raise popart_exception(f"{state.what}: sparse initialisers; store them as dense ones")
    for tensor in graph.initializer:
        what = f"{state.what}: initialiser {tensor.name!r}"
        info = ir.infos[tensor.name] = tensor_info(tensor, what)
        if branch or info.device.numpy.kind != "f":
            ir.constants[tensor.name] = tensor_values(tensor, state.folder, what)
        elif state.values or tensor.data_location != onnx.TensorProto.EXTERNAL:
            ir.weights[tensor.name] = tensor_values(tensor, state.folder, what)
        else:
            ir.weights[tensor.name] = None


def _add_inputs(state: Import, ir: Ir, graph: onnx.GraphProto) -> None:
    """Add what comes with every batch."""
    for value in graph.input:
        what = f"{state.what}: input {value.name!r}"
        if value.name in ir.weights or value.name in ir.constants:
            checks.check_stored(value, ir.infos[value.name], what)
            continue
        if state.shapes.has(value.name):
            ir.infos[value.name] = state.shapes.get(value.name)
            checks.check_given(value, ir.infos[value.name], what)
        else:
            kind, sizes = value_info(value, what)
            if not value.type.tensor_type.HasField("shape") or None in sizes:
                shown = [d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim]
                raise popart_exception(
                    f"{what}: shape is open {shown}; give it with InputShapeInfo (--shape)"
                )
            ir.infos[value.name] = TensorInfo(kind, [size for size in sizes if size is not None])
        ir.inputs.append(value.name)


# Nodes
def _add_node(state: Import, ir: Ir, proto: onnx.NodeProto, name: str) -> None:
    domain = proto.domain or ONNX
    what = f"{state.what}: node {name!r} ({domain}.{proto.op_type})"
    if domain not in state.opsets:
        raise popart_exception(f"{what}: the model imports no operator set of {domain}")
    attributes = attributes_of(proto, what)
    noted, proto = proto, _without_annotations(proto)
    stored = ir.weights if proto.op_type in SIZED else {}
    known = [ir.constants.get(i, stored.get(i)) if i else None for i in proto.input]
    found = _known(state, ir, proto, attributes, known)
    if found is not None:
        for output, value in zip(proto.output, found, strict=False):
            ir.constants[output] = value
            ir.infos[output] = TensorInfo(value)
        return
    version = _version(domain, proto.op_type, state.opsets[domain])
    unknown = [name for name in proto.input if name and name not in ir.infos]
    if unknown and not state.wrong:
        raise popart_exception(f"{what}: reads {unknown[0]!r}, whose shape is not known")
    if unknown:
        return  # made by a node that is refused
    if _added_by_function(state, ir, noted, name, version):
        return
    node = Node(
        name, domain, proto.op_type, version, tuple(proto.input), tuple(proto.output), attributes
    )
    row = OPERATORS.get(node.key)
    bodies = domain == ONNX and proto.op_type in ("If", "Loop", "Scan")
    if bodies and row is not None and version in row.versions:
        node = _with_graphs(state, ir, node)
    reason = unsupported(node, ir)
    if reason:
        state.wrong.append(f"{what.removesuffix(')')}-{version}): {reason}")
    ir.infos.update(_inferred(state, ir, proto, node, what))
    first = next(filter(None, node.outputs), "")
    if first not in ir.infos and not state.wrong:
        raise popart_exception(
            f"{what}: what shape {first!r} has cannot be found; an attribute is missing or wrong"
        )
    # Older versions leave the shape of some optional outputs open, such as a Dropout's mask.
    made = tuple(name if name in ir.infos else "" for name in node.outputs)
    ir.nodes.append(replace(node, outputs=made))


def _added_by_function(
    state: Import, ir: Ir, proto: onnx.NodeProto, name: str, version: int
) -> bool:
    """Add what ONNX defines an operator by, if it has no lowering of its own; tell whether so."""
    row = OPERATORS.get((proto.domain or ONNX, proto.op_type))
    if row is not None and version in row.versions:
        return False
    types = [_type_proto(ir.infos[i]) if i else onnx.TypeProto() for i in proto.input]
    function = function_of(proto, state.opsets[proto.domain or ONNX], types)
    if function is None:
        return False
    newest = {ONNX: onnx.defs.onnx_opset_version()}
    opsets = {e.domain or ONNX: e.version for e in function.opset_import if e.version > 0}
    opsets = {**newest, **state.opsets, **opsets}
    for label, node in body_of(function, proto, name):
        _add_node(replace(state, opsets=opsets), ir, node, label)
    return True


def _without_annotations(proto: onnx.NodeProto) -> onnx.NodeProto:
    """Give a node as ONNX knows it: without what PopART's builder notes in it."""
    if not any(attribute.name.startswith("__") for attribute in proto.attribute):
        return proto
    plain = onnx.NodeProto()
    plain.CopyFrom(proto)
    del plain.attribute[:]
    plain.attribute.extend(a for a in proto.attribute if not a.name.startswith("__"))
    return plain


def _known(
    state: Import,
    ir: Ir,
    proto: onnx.NodeProto,
    attributes: dict[str, Any],
    known: list[Array | None],
) -> Iterable[Array] | None:
    """Give a node's outputs when they are known, else None."""
    if proto.domain not in ("", ONNX):
        return None
    first = ir.infos.get(proto.input[0]) if proto.input else None
    shape = folding.of_shape(proto.op_type, attributes, first)
    if shape is not None:
        return [shape]
    if any(i and value is None for i, value in zip(proto.input, known, strict=True)):
        return None
    if not proto.input and proto.op_type != "Constant":
        return None
    return folding.fold(proto, attributes, known, state.imports)


def _version(domain: str, operator: str, opset: int) -> int:
    """Give the first opset that has the operator as this one has it."""
    if domain != ONNX:
        return opset
    try:
        return int(onnx.defs.get_schema(operator, opset, "").since_version)
    except onnx.defs.SchemaError:
        return opset


def _with_graphs(state: Import, ir: Ir, node: Node) -> Node:
    """Replace the graphs within a node by their representations.

    Of an If whose condition is known the branch that is not taken is not looked at.
    """
    given: list[TensorInfo] = []
    condition = ir.constants.get(node.inputs[0]) if node.operator == "If" else None
    if condition is not None:
        taken = "then_branch" if bool(condition.reshape(-1)[0]) else "else_branch"
        chosen = import_graph(state, node.attributes[taken], ir)
        return replace(node, attributes={"then_branch": chosen, "else_branch": chosen})
    if node.operator == "Loop":
        carried = [ir.infos[name] for name in node.inputs[2:]]
        given = [TensorInfo("INT64", []), TensorInfo("BOOL", []), *carried]
    if node.operator == "Scan":
        given = scans.body_inputs(node, ir)
    graphs = {
        name: import_graph(state, value, ir, given) if isinstance(value, onnx.GraphProto) else value
        for name, value in node.attributes.items()
    }
    return replace(node, attributes=graphs)


def _inferred(
    state: Import, ir: Ir, proto: onnx.NodeProto, node: Node, what: str
) -> dict[str, TensorInfo]:
    """Give the types and shapes of a node's outputs; none where it is not known what it does."""
    if node.domain == GRAPHCORE and node.key in OPERATORS:
        made = infer_graphcore(node, [ir.infos.get(i) for i in node.inputs], what)
        return dict(zip(node.outputs, made, strict=False))
    if isinstance(node.attributes.get("then_branch"), Ir):
        branch: Ir = node.attributes["then_branch"]
        return {
            output: branch.infos[inner]
            for output, inner in zip(node.outputs, branch.outputs, strict=True)
            if inner in branch.infos
        }
    if isinstance(node.attributes.get("body"), Ir):
        found = scans.inferred if node.operator == "Scan" else loops.inferred
        return found(node, ir)
    if leaves_input(node.operator, node.attributes):
        return {node.outputs[0]: ir.infos[node.inputs[0]]}
    domain = "" if node.domain == ONNX else node.domain
    if not onnx.defs.has(node.operator, state.opsets[node.domain], domain):
        return {}
    schema = onnx.defs.get_schema(node.operator, state.opsets[node.domain], domain)
    if not schema.has_type_and_shape_inference_function and node.key in OPERATORS:
        return {node.outputs[0]: ir.infos[node.inputs[0]]}  # as GroupNormalization
    types = {i: _type_proto(info) for i, info in leniency.types_of(node, ir).items()}
    proto = leniency.with_size(proto, ir)
    values = {i: v for i in node.inputs if i and (v := _few(ir, i)) is not None}
    try:
        found = infer_node_outputs(
            schema, proto, types, values, opset_imports=state.imports, ir_version=state.ir_version
        )
    except (InferenceError, onnx.checker.ValidationError, ValueError, RuntimeError) as error:
        shown = ", ".join(f"{i!r} {ir.infos[i]}" for i in node.inputs if i)
        raise popart_exception(f"{what}: inputs {shown} do not fit: {error}") from None
    known = {name: info for name, kind in found.items() if (info := _info(kind, what)) is not None}
    return leniency.with_places(node, known)


def _few(ir: Ir, name: str) -> onnx.TensorProto | None:
    value = ir.known(name)
    if value is None or value.size > FEW:
        return None
    return onnx.numpy_helper.from_array(value, name)


def _type_proto(info: TensorInfo) -> onnx.TypeProto:
    return onnx.helper.make_tensor_type_proto(ELEMENT_TYPES[info.type].onnx, info.dims)


def _info(kind: onnx.TypeProto, what: str) -> TensorInfo | None:
    """Give type and shape; None when the shape is not known."""
    if kind.WhichOneof("value") != "tensor_type" or not kind.tensor_type.HasField("shape"):
        return None
    sizes = kind.tensor_type.shape.dim
    shown = [size.dim_value for size in sizes]
    if min(shown, default=0) < 0:
        raise popart_exception(f"{what}: comes out with shape {shown}; its inputs are too small")
    if not all(size.HasField("dim_value") for size in sizes):
        return None
    return TensorInfo(
        type_name(kind.tensor_type.elem_type, what), [size.dim_value for size in sizes]
    )


def import_model(
    model: onnx.ModelProto,
    what: str,
    folder: Path | None,
    shapes: InputShapeInfo | None = None,
    *,
    values: bool = True,
) -> tuple[Ir, list[str]]:
    """Give a model's representation, and what it has that is not supported.

    Raises popart_exception for what is wrong with the model.
    """
    if model.functions:
        try:
            model = onnx.inliner.inline_local_functions(model)
        except (onnx.checker.ValidationError, ValueError, RuntimeError) as error:
            shown = " ".join(str(error).split())
            raise popart_exception(f"{what}: its functions cannot be inlined: {shown}") from None
    found = _imported(model, what, folder, shapes, values)
    if not found[1]:
        return found
    converted = _converted(model)
    if converted is None:
        return found
    again = _imported(converted, what, folder, shapes, values)
    return found if again[1] else again


def known_infos(model: onnx.ModelProto) -> dict[str, TensorInfo]:
    """Give type and shape of the tensors of a model, as far as its nodes can be run."""
    return _imported(model, "model", None, None, False)[0].infos


def _imported(
    model: onnx.ModelProto, what: str, folder: Path | None, shapes: InputShapeInfo | None,
    values: bool,
) -> tuple[Ir, list[str]]:  # fmt: skip
    state = Import(
        what, folder, opsets_of(model), model.ir_version, shapes or InputShapeInfo(), values
    )
    _check_opsets(state)
    ir = import_graph(state, model.graph)
    return ir, state.wrong


def _converted(model: onnx.ModelProto) -> onnx.ModelProto | None:
    """Give the model in the operator set of the guide, for versions that have no lowering.

    None when onnx's converter cannot do it, or it is that operator set already.
    """
    batched = any(node.op_type == "Scan" and node.input[0] == "" for node in model.graph.node)
    if batched or opsets_of(model).get(ONNX) in (None, GUIDE_OPSET):
        return None  # of a Scan of version 8 the converter would drop the batch
    try:
        return onnx.version_converter.convert_version(model, GUIDE_OPSET)
    except Exception:  # whatever the converter finds; the first errors say what is needed
        return None


def _check_opsets(state: Import) -> None:
    newest = onnx.defs.onnx_opset_version()
    if not 1 <= state.opsets.get(ONNX, 1) <= newest:
        raise popart_exception(
            f"{state.what}: operator set {state.opsets[ONNX]} of {ONNX}; known are 1 to {newest}"
        )
