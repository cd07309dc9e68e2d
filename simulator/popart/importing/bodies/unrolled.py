"""Bodies that are laid out run by run, and branches whose condition is known.

They are those that carry sequences, whose length differs from run to run, and those whose nodes
have to know the number of the run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import onnx

from simulator.popart.importing.bodies.sequences import alias, joined
from simulator.popart.importing.composites.body import Unsupported
from simulator.popart.importing.functions import captured, renamed_node
from simulator.popart.importing.model_files.model_file import tensor_info, tensor_values
from simulator.popart.importing.ordering import names_of
from simulator.popart.representation.ir import Ir
from simulator.popart.representation.tensor_info import TensorInfo

MAX_RUNS = 256

Add = Callable[[onnx.NodeProto, str], None]


def graphs_of(proto: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """Return the graphs within a node."""
    return (attribute.g for attribute in proto.attribute if attribute.HasField("g"))


def has_sequences(ir: Ir, proto: onnx.NodeProto) -> bool:
    """Return whether a Loop or an If reads, makes or carries something that is no tensor."""
    values_apart = {*ir.sequences, *ir.absent}
    values = [v for graph in graphs_of(proto) for v in (*graph.input, *graph.output)]
    kinds = {value.type.WhichOneof("value") for value in values}
    read = {*proto.input}.union(*(captured(graph) for graph in graphs_of(proto)))
    return bool(kinds - {None, "tensor_type"} or values_apart & read)


def lay_out(ir: Ir, proto: onnx.NodeProto, name: str, add: Add, add_own: Add) -> None:
    """Add the nodes of all runs of a Loop, or of the branch of an If that is taken.

    `add` adds a node of the model, `add_own` one of ours, in the newest operator set.
    Raises Unsupported where the number of runs, or the condition, is computed.
    """
    (_lay_out_loop if proto.op_type == "Loop" else _lay_out_branch)(ir, proto, name, add, add_own)


def _lay_out_branch(ir: Ir, proto: onnx.NodeProto, name: str, add: Add, add_own: Add) -> None:
    condition = _truth(ir, proto.input[0])
    if condition is None:
        raise Unsupported(
            f"input 0 ({proto.input[0]!r}) is computed or fed when the program runs and its "
            "branches have sequences; a constant would be needed"
        )
    branch_name = "then_branch" if condition else "else_branch"
    graph = next(a.g for a in proto.attribute if a.name == branch_name)
    results = _run(ir, graph, {}, name, add)
    _call(ir, results, list(proto.output), name, add_own)


def _lay_out_loop(ir: Ir, proto: onnx.NodeProto, name: str, add: Add, add_own: Add) -> None:
    body = next(graphs_of(proto))
    trips = ir.constants.get(proto.input[0]) if proto.input[0] else None
    most = MAX_RUNS if trips is None else int(trips.reshape(-1)[0])
    goes = _truth(ir, proto.input[1]) if len(proto.input) > 1 and proto.input[1] else True
    if (proto.input[0] and trips is None) or goes is None or most > MAX_RUNS:
        raise Unsupported(
            f"its body is laid out run by run; a constant number of runs, at most {MAX_RUNS}, "
            "would be needed"
        )
    carried = list(proto.input[2:])
    slices: list[list[str]] = [[] for _ in body.output[1 + len(carried) :]]
    for run in range(most if goes else 0):
        label = f"{name}/{run}"
        ir.constants[f"{label}:run"] = np.asarray(run, np.int64)
        ir.constants[f"{label}:goes"] = np.asarray(True)
        for flag in (f"{label}:run", f"{label}:goes"):
            ir.infos[flag] = TensorInfo(ir.constants[flag])
        names = [f"{label}:run", f"{label}:goes", *carried]
        bindings = dict(zip((value.name for value in body.input), names, strict=False))
        results = _run(ir, body, bindings, label, add)
        carried = results[1 : 1 + len(carried)]
        for stack, part in zip(slices, results[1 + len(carried) :], strict=True):
            stack.append(part)
        goes = _truth(ir, results[0])
        if goes is None:
            raise Unsupported("its body is laid out run by run; its condition is computed")
        if not goes:
            break
    outputs = list(proto.output)
    _call(ir, carried, outputs[: len(carried)], name, add_own)
    for stack, output in zip(slices, outputs[len(carried) :], strict=False):
        if not stack:
            raise Unsupported("it never runs; what shape its slices have is not known")
        _add_all(joined(stack, output, 0, apart=True), f"{name}/{output}", add_own)


def _truth(ir: Ir, name: str) -> bool | None:
    condition = ir.constants.get(name)
    return None if condition is None else bool(condition.reshape(-1)[0])


def _run(
    ir: Ir, graph: onnx.GraphProto, bindings: dict[str, str], label: str, add: Add
) -> list[str]:
    """Add the nodes of a graph within and return the names of its outputs."""
    renamed = {name: name for name in captured(graph)} | bindings
    for tensor in graph.initializer:
        name, subject = f"{label}:{tensor.name}", f"initialiser {tensor.name!r} of {label!r}"
        ir.infos[name] = tensor_info(tensor, subject)
        ir.constants[name] = tensor_values(tensor, None, subject)
    for node, node_name in zip(graph.node, names_of(graph.node), strict=True):
        add(renamed_node(node, renamed, {}, [], label), f"{label}/{node_name}")
    return [renamed.get(value.name, f"{label}:{value.name}") for value in graph.output]


def _call(ir: Ir, results: list[str], outputs: list[str], name: str, add: Add) -> None:
    """Call what was made as the node calls it."""
    for source, output in zip(results, outputs, strict=False):
        if output:
            _add_all(alias(ir, source, output), f"{name}/{output}", add)


def _add_all(nodes: list[onnx.NodeProto], label: str, add: Add) -> None:
    for place, node in enumerate(nodes):
        add(node, f"{label}:{place}" if len(nodes) > 1 else label)
