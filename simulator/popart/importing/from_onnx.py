"""From an ONNX model to the intermediate representation, checked before any work is done."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx
import onnx.checker
import onnx.inliner
import onnx.version_converter

from simulator.graph.types import Array
from simulator.popart.errors import popart_exception
from simulator.popart.importing import checks, folding
from simulator.popart.importing.bodies import sequences, unrolled
from simulator.popart.importing.bodies.packed import packed_nodes
from simulator.popart.importing.bodies.sequence_inputs import without_sequences
from simulator.popart.importing.bounded import bounds_of
from simulator.popart.importing.composites.body import Unsupported
from simulator.popart.importing.composites.table import composite_of, nodes_of
from simulator.popart.importing.functions import body_of, called_graph, function_of
from simulator.popart.importing.model_files.model_file import (
    attributes_of,
    opsets_of,
    tensor_info,
    tensor_values,
    value_info,
)
from simulator.popart.importing.opsets import check_opsets, converted, version_of
from simulator.popart.importing.ordering import in_order, names_of
from simulator.popart.importing.shape_inference.inference import inferred, typed
from simulator.popart.importing.shape_inference.refusals import refusal
from simulator.popart.importing.state import Import
from simulator.popart.operators.control_flow import scans
from simulator.popart.operators.table import OPERATORS, unsupported
from simulator.popart.representation.ir import GRAPHCORE, ONNX, Bound, Ir, Node
from simulator.popart.representation.origins import origin_of
from simulator.popart.representation.tensor_info import InputShapeInfo, TensorInfo

# Operators whose inputs are the size of what they make: floats are constants.
SIZED = ("MelWeightMatrix", "Range", "Unique")
FEW = 1 << 10  # elements: so many an input can have that has to be known, as scales and limits


def import_graph(
    state: Import,
    graph: onnx.GraphProto,
    outer: Ir | None = None,
    input_infos: Sequence[TensorInfo] = (),
) -> Ir:
    """Return the graph with types, shapes and constants; its faults go to `state.wrong`.

    A body within a node has inputs of the types and shapes of `input_infos`.
    """
    ir = Ir(graph.name or "graph")
    state.declared |= checks.declared_sizes(graph)
    if outer is not None:  # a branch sees the tensors around it
        ir.infos.update(outer.infos)
        ir.bounds.update(outer.bounds)
        ir.sequences.update(outer.sequences)
        ir.absent.update(outer.absent)
        ir.constants.update(outer.constants)
        ir.weights.update(outer.weights)
    _add_stored(state, ir, graph, branch=outer is not None)
    if input_infos:
        ir.inputs = [value.name for value in graph.input]
        ir.infos |= dict(zip(ir.inputs, input_infos, strict=False))
    else:
        _add_inputs(state, ir, graph)
    ir.outputs = [value.name for value in graph.output]
    if outer is not None and state.wrong:
        return ir  # what it reads may be made by a node that is refused
    protos = in_order(graph, [*ir.infos, *ir.sequences, *ir.absent], state.what)
    for proto, name in zip(protos, names_of(protos), strict=True):
        _add_node(state, ir, proto, name)
    if outer is None:
        _take_outputs_apart(state, ir)
    missing = [name for name in ir.outputs if name not in ir.infos and not state.wrong]
    if missing:
        raise popart_exception(f"{state.what}: output {missing[0]!r} is made by no node")
    if outer is None and not state.wrong:
        checks.check_outputs(state.what, ir, graph)
    return ir


def _add_stored(state: Import, ir: Ir, graph: onnx.GraphProto, *, branch: bool) -> None:
    """Add the initialisers: float ones are weights, which can be loaded anew.

    Those of a branch are constants: another branch may call its own alike. Without values none is
    kept that is large and decides no size.
    """
    sizes = {name for node in graph.node if node.op_type in SIZED for name in node.input}
    if graph.sparse_initializer:
        raise popart_exception(f"{state.what}: sparse initialisers; store them as dense ones")
    for tensor in graph.initializer:
        subject = f"{state.what}: initialiser {tensor.name!r}"
        info = ir.infos[tensor.name] = tensor_info(tensor, subject)
        if branch or info.bits or info.device.numpy.kind != "f":
            ir.constants[tensor.name] = tensor_values(tensor, state.folder, subject)
        elif state.values or tensor.data_location != onnx.TensorProto.EXTERNAL:
            values = tensor_values(tensor, state.folder, subject)
            stores_values = state.values or values.size <= FEW or tensor.name in sizes
            ir.weights[tensor.name] = values if stores_values else None
        else:
            ir.weights[tensor.name] = None


def _add_inputs(state: Import, ir: Ir, graph: onnx.GraphProto) -> None:
    """Add what comes with every batch."""
    for value in graph.input:
        subject = f"{state.what}: input {value.name!r}"
        if value.name in ir.weights or value.name in ir.constants:
            checks.check_stored(value, ir.infos[value.name], subject)
            continue
        if state.shapes.has(value.name):
            ir.infos[value.name] = state.shapes.get(value.name)
            checks.check_given(value, ir.infos[value.name], subject)
        else:
            kind, sizes = value_info(value, subject)
            checks.check_known(value, sizes, subject)
            ir.infos[value.name] = TensorInfo(kind, [size for size in sizes if size is not None])
        ir.inputs.append(value.name)


# Nodes
def _add_node(state: Import, ir: Ir, proto: onnx.NodeProto, name: str) -> None:
    domain = proto.domain or ONNX
    origin = origin_of(proto)
    place = f"{origin}: " if origin else ""
    subject = f"{state.what}: {place}node {name!r} ({domain}.{proto.op_type})"
    if domain not in state.opsets:
        raise popart_exception(f"{subject}: the model imports no operator set of {domain}")
    unknown = [name for name in proto.input if name and not ir.has(name)]
    if unknown and not state.wrong:
        raise popart_exception(f"{subject}: reads {unknown[0]!r}, whose shape is not known")
    version = version_of(domain, proto.op_type, state.opsets[domain])
    kind = f"{subject.removesuffix(')')}-{version})"
    if unknown or _added_apart(state, ir, proto, name, kind):
        return
    attributes = attributes_of(proto, subject)
    noted, proto = proto, _without_annotations(proto)
    stored = ir.weights if proto.op_type in SIZED else {}
    constants = [ir.constants.get(i, stored.get(i)) if i else None for i in proto.input]
    folded = _folded_outputs(state, ir, proto, attributes, constants)
    if folded is not None:
        for output, value in zip(proto.output, folded, strict=False):
            ir.constants[output] = value
            ir.infos[output] = TensorInfo(value)
        return
    tensors = tuple(proto.input), tuple(proto.output)
    node = Node(name, domain, proto.op_type, version, *tensors, attributes, origin)
    try:
        if _added_by_function(state, ir, noted, node):
            return
    except Unsupported as error:
        state.wrong.append(f"{kind}: {error}")
        return
    if words := refusal(node, ir, kind):
        raise popart_exception(words)
    row = OPERATORS.get(node.key)
    bodies = domain == ONNX and proto.op_type in ("If", "Loop", "Scan")
    if bodies and row is not None and version in row.versions:
        before = len(state.wrong)
        node = _with_graphs(state, ir, node)
        if len(state.wrong) > before and _laid_out_after_all(state, ir, proto, name, before):
            return
    reason = unsupported(node, ir) or _bounded(node, ir)
    if reason:
        state.wrong.append(f"{kind}: {reason}")
    ir.infos.update(inferred(state, ir, proto, node, subject))
    if node.operator == "If" and _same_constants(node, ir):
        return
    first = next(filter(None, node.outputs), "")
    if first and first not in ir.infos and not state.wrong:
        raise popart_exception(
            f"{subject}: what shape {first!r} has cannot be found; an attribute is missing or wrong"
        )
    # Older versions leave the shape of some optional outputs open, such as a Dropout's mask.
    outputs = tuple(name if name in ir.infos else "" for name in node.outputs)
    ir.nodes.append(replace(node, outputs=outputs))


def _same_constants(node: Node, ir: Ir) -> bool:
    """Note what the one branch of an If makes whose condition is known, if that is constant."""
    branches = node.branches
    if not branches or any(branch is not branches[0] for branch in branches):
        return False
    values = [branches[0].constants.get(name) for name in branches[0].outputs]
    for name, value in zip(node.outputs, values, strict=False):
        if name and value is not None:
            ir.constants[name] = value
    return all(value is not None for value in values)


def _added_apart(state: Import, ir: Ir, proto: onnx.NodeProto, name: str, kind: str) -> bool:
    """Add the nodes of what is no operator of the device: of sequences, and bodies of them."""
    try:
        nodes = sequences.added(ir, proto)
        for place, node in enumerate(nodes or ()):
            label = f"{name}:{place}" if len(nodes or ()) > 1 else name
            _add_node(_newest(state), ir, node, label)
        if proto.domain == GRAPHCORE and proto.op_type == "PackedDataBlock":
            _add_packed(state, ir, proto, name)
            return True
        if nodes is None and proto.op_type in ("If", "Loop") and unrolled.has_sequences(ir, proto):
            _lay_out(state, ir, proto, name)
            return True
    except Unsupported as error:
        state.wrong.append(f"{kind}: {error}")
        return True
    return nodes is not None


def _add_packed(state: Import, ir: Ir, proto: onnx.NodeProto, name: str) -> None:
    """Add the nodes of a block of packed sequences, where it is; its graph is of this version."""
    notes = [attribute for attribute in proto.attribute if attribute.name.startswith("__")]
    for node in packed_nodes(ir, proto, name):
        node.attribute.extend(notes)
        node.metadata_props.extend(proto.metadata_props)
        within = state if node.op_type == "Call" else _newest(state)
        _add_node(within, ir, node, node.output[0] if node.output[0] != proto.output[0] else name)


def _newest(state: Import) -> Import:
    return replace(state, opsets={**state.opsets, ONNX: onnx.defs.onnx_opset_version()})


def _lay_out(state: Import, ir: Ir, proto: onnx.NodeProto, name: str) -> None:
    def adds(of: Import) -> unrolled.Add:
        return lambda node, label: _add_node(of, ir, node, label)

    unrolled.lay_out(ir, proto, name, adds(state), adds(_newest(state)))


def _laid_out_after_all(
    state: Import, ir: Ir, proto: onnx.NodeProto, name: str, before: int
) -> bool:
    """Lay a Loop out run by run whose body has to know the number of the run; tell whether so."""
    if proto.op_type != "Loop":
        return False
    faults = state.wrong[before:]
    del state.wrong[before:]
    try:
        _lay_out(state, ir, proto, name)
    except Unsupported:
        state.wrong[before:] = faults
    return not state.wrong[before:]


def _take_outputs_apart(state: Import, ir: Ir) -> None:
    """Make an output `y/n` of each element of a sequence, and none of what is not there."""
    names: list[str] = []
    for output in ir.outputs:
        items = ir.sequences.get(output)
        names_made = [output] if items is None else [f"{output}/{n}" for n in range(len(items))]
        for item, name in zip(items or (), names_made, strict=False):
            _add_node(state, ir, onnx.helper.make_node("Identity", [item], [name]), name)
        names += [] if output in ir.absent else names_made
    ir.outputs = names


def _added_by_function(state: Import, ir: Ir, proto: onnx.NodeProto, node: Node) -> bool:
    """Add the nodes that a node without a lowering is computed by; tell whether there are some.

    They are ours, or those that ONNX defines its operator by.
    """
    composite, row = composite_of(node), OPERATORS.get(node.key)
    opset = state.opsets[node.domain]
    if composite is not None:
        infos = [ir.infos.get(name) for name in node.inputs]
        constants = [
            ir.known(name) if n in composite.static else None for n, name in enumerate(node.inputs)
        ]
        function = nodes_of(composite, node, infos, constants, state.declared.get(node.outputs[0]))
    elif row is not None and node.version in row.versions:
        return False
    elif node.key == (GRAPHCORE, "Call") and (called := called_graph(proto)) is not None:
        function, proto = called
    else:
        types = [typed(ir, name) for name in node.inputs]
        defined = function_of(proto, opset, types)
        if defined is None:
            return False
        function = defined
    newest = {ONNX: onnx.defs.onnx_opset_version()}
    opsets = {e.domain or ONNX: e.version for e in function.opset_import if e.version > 0}
    opsets = {**newest, **state.opsets, **opsets}
    for label, inner in body_of(function, proto, node.name):
        _add_node(replace(state, opsets=opsets), ir, inner, label)
    first = node.outputs[0]
    if (
        composite is not None
        and composite.bounded is not None
        and None in state.declared.get(first, [None])
    ):
        ir.bounds[first] = Bound(first, composite.bounded, composite.bounded)
    return True


def _bounded(node: Node, ir: Ir) -> str:
    """Note what of the outputs counts; say why that cannot be known."""
    try:
        ir.bounds |= bounds_of(node, ir)
    except ValueError as error:
        return str(error)
    return ""


def _without_annotations(proto: onnx.NodeProto) -> onnx.NodeProto:
    """Return a node as ONNX knows it: without what PopART's builder notes in it."""
    if not any(attribute.name.startswith("__") for attribute in proto.attribute):
        return proto
    plain = onnx.NodeProto()
    plain.CopyFrom(proto)
    del plain.attribute[:]
    plain.attribute.extend(a for a in proto.attribute if not a.name.startswith("__"))
    return plain


def _folded_outputs(
    state: Import,
    ir: Ir,
    proto: onnx.NodeProto,
    attributes: dict[str, Any],
    constants: list[Array | None],
) -> Iterable[Array] | None:
    """Return a node's outputs when they are known, else None."""
    if proto.domain not in ("", ONNX):
        return None
    first = ir.infos.get(proto.input[0]) if proto.input else None
    shape = folding.of_shape(proto.op_type, attributes, first)
    if shape is not None:
        return [shape]
    if any(i and value is None for i, value in zip(proto.input, constants, strict=True)):
        return None
    if not proto.input and proto.op_type != "Constant":
        return None
    return folding.fold(proto, attributes, constants, state.imports)


def _with_graphs(state: Import, ir: Ir, node: Node) -> Node:
    """Replace the graphs within a node by their representations.

    Of an If whose condition is known the branch that is not taken is not looked at.
    """
    input_infos: list[TensorInfo] = []
    condition = ir.constants.get(node.inputs[0]) if node.operator == "If" else None
    if condition is not None:
        branch_name = "then_branch" if bool(condition.reshape(-1)[0]) else "else_branch"
        branch = import_graph(state, node.attributes[branch_name], ir)
        return replace(node, attributes={"then_branch": branch, "else_branch": branch})
    if node.operator == "Loop":
        carried = [ir.infos[name] for name in node.inputs[2:]]
        input_infos = [TensorInfo("INT64", []), TensorInfo("BOOL", []), *carried]
    if node.operator == "Scan":
        input_infos = scans.body_inputs(node, ir)
    graphs = {
        name: import_graph(state, value, ir, input_infos)
        if isinstance(value, onnx.GraphProto)
        else value
        for name, value in node.attributes.items()
    }
    return replace(node, attributes=graphs)


def import_model(
    model: onnx.ModelProto,
    subject: str,
    folder: Path | None,
    shapes: InputShapeInfo | None = None,
    *,
    values: bool = True,
) -> tuple[Ir, list[str]]:
    """Return a model's representation, and what it has that is not supported.

    Raises popart_exception for what is wrong with the model.
    """
    model = without_sequences(model, shapes or InputShapeInfo())
    if model.functions:
        try:
            model = onnx.inliner.inline_local_functions(model)
        except (onnx.checker.ValidationError, ValueError, RuntimeError) as error:
            shown = " ".join(str(error).split())
            raise popart_exception(f"{subject}: its functions cannot be inlined: {shown}") from None
    imported = _imported(model, subject, folder, shapes, values)
    if not imported[1]:
        return imported
    upgraded = converted(model)
    if upgraded is None:
        return imported
    again = _imported(upgraded, subject, folder, shapes, values)
    return imported if again[1] else again


def known_infos(model: onnx.ModelProto) -> dict[str, TensorInfo]:
    """Return type and shape of the tensors of a model, as far as its nodes can be run."""
    return _imported(model, "model", None, None, False)[0].infos


def _imported(
    model: onnx.ModelProto, subject: str, folder: Path | None, shapes: InputShapeInfo | None,
    values: bool,
) -> tuple[Ir, list[str]]:  # fmt: skip
    state = Import(
        subject, folder, opsets_of(model), model.ir_version, shapes or InputShapeInfo(), values
    )
    check_opsets(state)
    ir = import_graph(state, model.graph)
    return ir, state.wrong
