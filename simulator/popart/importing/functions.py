"""What ONNX defines an operator by: the nodes of its function, where it has no lowering."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx

from simulator.popart.errors import popart_exception
from simulator.popart.importing.einsum import einsum_function
from simulator.popart.representation.ir import ONNX

# Where ONNX itself has a function of later versions alone, whose operators are not there yet.
EARLIER = {
    "PRelu": """<domain: "", opset_import: ["": 7]> PRelu (X, slope) => (Y) {
        above = Relu (X)
        turned = Neg (X)
        below = Relu (turned)
        scaled = Mul (slope, below)
        Y = Sub (above, scaled)
    }"""
}


def function_of(
    proto: onnx.NodeProto, opset: int, types: Sequence[onnx.TypeProto]
) -> onnx.FunctionProto | None:
    """Return the function that ONNX defines a node by; None when it has none.

    `types` are those of its inputs, empty for one that is not given.
    """
    domain = "" if proto.domain == ONNX else proto.domain
    if not onnx.defs.has(proto.op_type, opset, domain):
        return None
    if proto.op_type == "Einsum":  # ONNX has none; its shapes make one
        shapes = [[d.dim_value for d in kind.tensor_type.shape.dim] for kind in types]
        einsum = einsum_function(proto, shapes)
        return einsum if einsum.node else None
    schema = onnx.defs.get_schema(proto.op_type, opset, domain)
    function = onnx.FunctionProto()
    versions = schema.function_opset_versions or schema.context_dependent_function_opset_versions
    if not versions:
        earlier = EARLIER.get(proto.op_type)
        return None if earlier is None else onnx.parser.parse_function(earlier)
    version = max((v for v in versions if v <= opset), default=min(versions))
    if schema.function_opset_versions:
        function.ParseFromString(schema.get_function_with_opset_version(version))
    else:
        type_texts = [kind.SerializeToString() for kind in types]
        definition = schema.get_context_dependent_function_with_opset_version(
            version, proto.SerializeToString(), type_texts
        )
        function.ParseFromString(definition)
    if not function.node:
        return None
    _give_defaults(function, schema)
    return function


def _give_defaults(function: onnx.FunctionProto, schema: onnx.defs.OpSchema) -> None:
    """Add the defaults of attributes, which the operator has and its function does not."""
    for name in function.attribute:
        default = schema.attributes[name].default_value
        if default.type:
            function.attribute_proto.append(default)


def called_graph(
    call: onnx.NodeProto,
) -> tuple[onnx.FunctionProto, onnx.NodeProto] | None:
    """Return the graph of a Call as a function, and the call of it; None where it has none.

    What the graph reads from around it are inputs, too; its initialisers are constants.
    """
    graph = next((a.g for a in call.attribute if a.name == "callee"), None)
    if graph is None:
        return None
    _check_call(call, graph)
    outer = sorted(captured(graph))
    nodes = [
        onnx.helper.make_node("Constant", [], [tensor.name], value=tensor)
        for tensor in graph.initializer
    ]
    nodes.extend(graph.node)
    produced = {name for node in nodes for name in node.output}
    names = [value.name for value in graph.output]
    outputs = [name if name in produced else f"{name}/out" for name in names]
    nodes.extend(
        onnx.helper.make_node("Identity", [name], [out])
        for name, out in zip(names, outputs, strict=True)
        if name != out
    )
    inputs = [*(value.name for value in graph.input), *outer]
    function = onnx.helper.make_function("", "Call", inputs, outputs, nodes, [])
    plain = onnx.NodeProto()
    plain.CopyFrom(call)
    plain.input.extend(outer)
    return function, plain


def _check_call(call: onnx.NodeProto, graph: onnx.GraphProto) -> None:
    """Raise popart_exception for a Call with other numbers of tensors than its graph has."""
    name = "" if call.name in call.output else call.name  # which the builder gives without one
    captured_count = len(captured(graph))  # of the graph around, which a call may name as well
    for side, call_count, within, captured_extra in (
        ("inputs", len(call.input), len(graph.input), captured_count),
        ("outputs", len(call.output), len(graph.output), 0),
    ):
        if call_count not in (within, within + captured_extra):
            raise popart_exception(
                f"For CallOp '{name}', number of {side} ({call_count}) does not match that of the "
                f"callee subgraph ({within})"
            )


def body_of(
    function: onnx.FunctionProto, call: onnx.NodeProto, name: str
) -> list[tuple[str, onnx.NodeProto]]:
    """Return the nodes that stand for a call of a function, with names: those that outputs need.

    Their own tensors are called NAME:TENSOR. All have the metadata of the call, and what PopART's
    builder noted of it.
    """
    renamed = dict.fromkeys(function.input, "") | dict(
        zip(function.input, call.input, strict=False)
    )
    renamed |= {i: o for i, o in zip(function.output, call.output, strict=False) if o}
    attributes = {a.name: a for a in [*function.attribute_proto, *call.attribute]}
    notes = [a for a in call.attribute if a.name.startswith("__")]
    needed = {i for i, o in zip(function.output, call.output, strict=False) if o}
    nodes = []
    for node in reversed(function.node):
        if not needed.intersection(node.output):
            continue
        needed.update(node.input)
        for attribute in node.attribute:
            needed.update(captured(attribute.g))
        label = f"{name}/{next(filter(None, node.output))}"
        nodes.append((label, renamed_node(node, renamed, attributes, notes, name)))
        nodes[-1][1].metadata_props.extend(call.metadata_props)
    return nodes[::-1]


def renamed_node(
    node: onnx.NodeProto,
    renamed: Mapping[str, str],
    attributes: Mapping[str, onnx.AttributeProto],
    notes: Sequence[onnx.AttributeProto],
    name: str,
) -> onnx.NodeProto:
    """Return a node of a function with the tensors and attributes of a call."""
    copy = onnx.NodeProto(op_type=node.op_type, domain=node.domain)
    for side, names in ((copy.input, node.input), (copy.output, node.output)):
        side.extend(renamed.get(tensor, f"{name}:{tensor}") if tensor else "" for tensor in names)
    for attribute in node.attribute:
        value = attributes.get(attribute.ref_attr_name) if attribute.ref_attr_name else attribute
        if value is not None:
            copy.attribute.add().CopyFrom(value)
            copy.attribute[-1].name = attribute.name
            if value.HasField("g"):
                _rename_captured(copy.attribute[-1].g, renamed, name)
    copy.attribute.extend(notes)
    return copy


def captured(graph: onnx.GraphProto) -> set[str]:
    """Name the tensors around a graph that it reads, itself or in graphs within."""
    local_names = {value.name for value in (*graph.input, *graph.initializer)}
    local_names |= {name for node in graph.node for name in node.output}
    read = {name for node in graph.node for name in node.input}
    read |= {value.name for value in graph.output}
    inner = (captured(a.g) for node in graph.node for a in node.attribute if a.HasField("g"))
    return (read.union(*inner) - local_names) - {""}


def _rename_captured(graph: onnx.GraphProto, renamed: Mapping[str, str], name: str) -> None:
    """Rename what a graph reads of the function around it, in place."""
    outer = captured(graph)
    for node in graph.node:
        for place, tensor in enumerate(node.input):
            if tensor in outer:
                node.input[place] = renamed.get(tensor, f"{name}:{tensor}")
        for attribute in node.attribute:
            if attribute.HasField("g"):
                unrenamed = {tensor: tensor for tensor in captured(attribute.g) - outer}
                _rename_captured(attribute.g, dict(renamed) | unrenamed, name)
    for value in graph.output:
        if value.name in outer:
            value.name = renamed.get(value.name, f"{name}:{value.name}")
