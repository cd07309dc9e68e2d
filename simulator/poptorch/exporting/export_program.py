"""Export by torch.export: nodes know their module and line, and shapes are static."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import onnx
import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind
from torch.utils import _pytree as trees

from simulator.popart.model_builder.notes import annotate
from simulator.popart.representation.origins import Origin
from simulator.poptorch.errors import Error
from simulator.poptorch.exporting import marks, refusals
from simulator.poptorch.exporting.exported import Constant, Exported, origin_of_node

FX_NODE = "pkg.torch.onnx.fx_node"
BATCH_NORM, NO_TRAINING = "batch_norm", "_no_training"


def export_program(
    module: torch.nn.Module, args: Sequence[object], kwargs: Mapping[str, object]
) -> Exported:
    """Export a module on example inputs; raises Error in one line for what cannot be."""
    with refusals.one_line(module), marks.being_exported():
        program = torch.export.export(module, tuple(args), dict(kwargs), strict=False)
    _check_shapes(program)
    with refusals.one_line(module, partial(refusals.in_program, program)):
        onnx_program = torch.onnx.export(program, dynamo=True, optimize=False, verbose=False)
    lowered, signature = onnx_program.exported_program, program.graph_signature
    leaves = trees.tree_leaves((tuple(args), dict(kwargs)))
    users = [spec for spec in signature.input_specs if spec.kind == InputKind.USER_INPUT]
    named = [getattr(spec.arg, "name", "") for spec in users]
    places = {name: at for at, name in enumerate(named) if isinstance(leaves[at], torch.Tensor)}
    model = onnx_program.model_proto
    _note_training(lowered, model)
    feeds = [value.name for value in model.graph.input]
    returned = [spec.arg for spec in signature.output_specs if spec.kind == OutputKind.USER_OUTPUT]
    return Exported(
        model=model,
        inputs={name: places[name] for name in feeds},
        outputs=_outputs(returned, [value.name for value in model.graph.output]),
        returned=program.call_spec.out_spec,
        weights=_weights(lowered, {tensor.name for tensor in model.graph.initializer}),
        marks=_marks(lowered, model),
        norms=sum(BATCH_NORM in str(node.target) for node in program.graph.nodes
                  if node.op == "call_function"),
        read=_read(program),
        changed=sorted(lowered.graph_signature.buffers_to_mutate.values()),
        origins=_origins(program),
    )  # fmt: skip


def _nodes_of(
    program: ExportedProgram, model: onnx.ModelProto
) -> Iterator[tuple[onnx.NodeProto, torch.fx.Node]]:
    """Pair the nodes of a model with those of torch.export that they come from."""
    by_name = {node.name: node for node in program.graph.nodes}
    for proto in model.graph.node:
        text = next((e.value for e in proto.metadata_props if e.key == FX_NODE), "")
        node = by_name.get(text.partition(" ")[0].lstrip("%"))
        if node is not None:
            yield proto, node


def _note_training(program: ExportedProgram, model: onnx.ModelProto) -> None:
    """Mark batch norms in training, which the exporter does not: the flag is an argument."""
    for proto, node in _nodes_of(program, model):
        if proto.op_type == "BatchNormalization":
            flags = [value for value in (*node.args, *node.kwargs.values()) if value is True]
            trained = bool(flags) and NO_TRAINING not in str(node.target)
            annotate(proto, "training_mode", int(trained))
            statistics = [f"{proto.output[0]}/{name}" for name in ("mean", "variance")]
            proto.output.extend(statistics[len(proto.output) - 1 :] if trained else ())


def _outputs(
    returned: Sequence[torch.fx.node.Argument], names: Sequence[str]
) -> list[str | Constant]:
    """Name the tensors that a module returns; the graph has each of them in order."""
    queue = iter(names)
    return [
        Constant(item.value) if hasattr(item, "value") else next(queue, item.name)
        for item in returned
    ]


def _weights(program: ExportedProgram, stored: set[str]) -> dict[str, str]:
    """Return the state_dict name of each initialiser that is a parameter or a buffer."""
    signature = program.graph_signature
    targets = {*signature.parameters, *signature.buffers}
    return {name: name for name in stored if name in targets}


def _read(program: ExportedProgram) -> frozenset[str]:
    """Name the parameters that a node reads."""
    names = program.graph_signature.inputs_to_parameters
    nodes = [node for node in program.graph.nodes if node.op == "placeholder" and node.users]
    return frozenset(names[node.name] for node in nodes if node.name in names)


def _origins(program: ExportedProgram) -> dict[str, Origin]:
    """Return where each module is called first, by its path."""
    places = [origin_of_node(n) for n in program.graph.nodes if n.op == "call_function"]
    return {origin.module: origin for origin in reversed(places)}


def _marks(program: ExportedProgram, model: onnx.ModelProto) -> dict[str, dict[str, object]]:
    """Return what the program has noted of each node of the model, by the node's name."""
    pairs = ((proto.name, marks.of_meta(node.meta)) for proto, node in _nodes_of(program, model))
    return {name: mark for name, mark in pairs if mark}


def _check_shapes(program: ExportedProgram) -> None:
    """Raise Error for a tensor whose shape is found when the program runs."""
    for node in program.graph.nodes:
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor) and not all(isinstance(n, int) for n in value.shape):
            sizes = ", ".join(str(size) for size in value.shape)
            raise Error(
                f"{origin_of_node(node)}: {refusals.short(node.target)} makes a tensor of"
                f" [{sizes}], whose size depends on the data; shapes are fixed on the device"
            )
