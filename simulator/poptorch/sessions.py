"""A session of PopART for an exported module: device, options, outputs, notes in the nodes."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

import onnx
import torch
from onnx import TensorProto

from simulator import popart
from simulator.popart.model_builder.notes import annotate
from simulator.popart.representation.ir import MEMORY_ATTRIBUTE, RECOMPUTE_ATTRIBUTE
from simulator.popart.representation.origins import SCOPES
from simulator.poptorch.enums import OutputMode, ReductionType
from simulator.poptorch.errors import Error
from simulator.poptorch.exporting import marks
from simulator.poptorch.exporting.exported import Exported, class_of, place_of
from simulator.poptorch.options import Options
from simulator.poptorch.placement import PipelinedExecution, ShardedExecution, place_nodes
from simulator.runtime.without_values import OPTION as VALUES_OPTION

PRODUCTS = ("Conv", "Gemm", "MatMul")
FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE)
KINDS = {OutputMode.Final: "FINAL", OutputMode.All: "ALL", OutputMode.Sum: "SUM",
         OutputMode.EveryN: "EVERYN"}  # fmt: skip


def loss_of(exported: Exported, module: torch.nn.Module) -> str:
    """Name the loss: the output that identity_loss has made, else the last one, a scalar."""
    values = exported.model.graph.output
    marked = {
        name
        for node in exported.model.graph.node
        if marks.LOSS in exported.marks.get(node.name, {})
        for name in node.output
    }
    losses = [value for value in values if value.name in marked] or list(values[-1:])
    for value in losses:
        kind = value.type.tensor_type
        one = all(dim.dim_value == 1 for dim in kind.shape.dim)
        if one and kind.elem_type in FLOATS:
            return str(value.name)
    raise Error(
        f"{place_of(module, '', exported.origins)}: no loss to train by: the last output has to be"
        " a scalar of floats, such as (output, loss), or an output made by identity_loss"
    )


def note_marks(exported: Exported) -> None:
    """Put what the program noted of its operations into the nodes of the model."""
    graph = exported.model.graph
    makers = {name: node for node in graph.node for name in node.output}
    for node in graph.node:
        noted = exported.marks.get(node.name, {})
        maker = makers.get(node.input[0], node) if node.input else node
        if marks.MEMORY in noted:
            annotate(maker, MEMORY_ATTRIBUTE, noted[marks.MEMORY])
        if marks.CHECKPOINT in noted:
            annotate(maker, RECOMPUTE_ATTRIBUTE, popart.RecomputeType.Checkpoint.value)
        if marks.PRINT in noted and node.op_type == "Identity":
            node.op_type, node.domain = "PrintTensor", "ai.graphcore"
            annotate(node, "title", noted[marks.PRINT] or node.input[0])
        if marks.SCOPE in noted:
            _rename_scope(node, str(noted.pop(marks.SCOPE)))  # once
    domains = {entry.domain for entry in exported.model.opset_import}
    if "ai.graphcore" not in domains:
        exported.model.opset_import.add(domain="ai.graphcore", version=1)


def _rename_scope(node: onnx.NodeProto, name: str) -> None:
    """Put a name below the module's that a node is of."""
    for entry in node.metadata_props:
        if entry.key == SCOPES:
            *modules, operator = ast.literal_eval(entry.value)
            path = f"{modules[-1]}.{name}" if modules[-1] else name
            entry.value = repr([*modules, path, operator])


def session_options(
    options: Options, *, training: bool, ipus: int, blocks: bool
) -> popart.SessionOptions:
    """Return PopART's options for those of PopTorch."""
    factor, replicas = options.accumulation if training else 1, options.replication_factor
    strategy = options.value("strategy")
    pipelined = blocks and ipus > 1 and not isinstance(strategy, ShardedExecution)
    mean = options.Training.value("reduction") == ReductionType.Mean
    settings = popart.SessionOptions(
        maxPoolGradient="First",  # as in PyTorch
        enableOutlining=False,  # so that each layer has its own costs
        enablePipelining=pipelined,
        enableGradientAccumulation=factor > 1 or (pipelined and training),
        accumulationFactor=factor,
        enableReplicatedGraphs=replicas > 1,
        replicatedGraphCount=replicas,
        accumulationAndReplicationReductionType="Mean" if mean else "Sum",
        autoVirtualGraph=not blocks and ipus > 1,
        numIOTiles=options.TensorLocations.value("ioTiles"),
        instrumentWithHardwareCycleCounter=bool(options.value("logCycleCount")),
        logDir=options.value("logDir"),
        enableEngineCaching=bool(options.value("cache")),
        cachePath=options.value("cache"),
        enableLoadAndOffloadRNGState=True,
    )
    if options.value("totalReplicas") > replicas:  # of popdist.poptorch.Options
        settings.enableDistributedReplicatedGraphs = True
        settings.globalReplicationFactor = options.value("totalReplicas")
        settings.globalReplicaOffset = options.value("firstReplica")
    partials = options.Precision.value("partials")
    if partials:
        settings.partialsTypeMatMuls = partials
        settings.convolutionOptions = {"partialsType": partials}
    if options.value("synthetic"):
        settings.syntheticDataMode = popart.SyntheticDataMode.RandomNormal
    engine = profile_options(options)
    for key, value in options._Popart.value("options").items():
        if key == "engineOptions":
            engine |= value
            continue
        *group, name = key.split(".")
        setattr(getattr(settings, group[0]) if group else settings, name, value)
    settings.engineOptions = engine
    return settings


def profile_options(options: Options) -> dict[str, object]:
    """Return the engine options that enableProfiling stands for."""
    directory = options.value("profile")
    if directory is None:
        return {}
    return {"debug.allowOutOfMemory": True, "autoReport.directory": directory,
            "autoReport.all": True}  # fmt: skip


def anchor_name(name: str, exported: Exported) -> str:
    """Return an anchor's name here: PopTorch's has "model." before names of weights in training."""
    prefix, bars, weight = name.rpartition("___")
    inner = weight.removeprefix("model.")
    return f"{prefix}{bars}{inner}" if inner in exported.weights.values() else name


def flow_of(options: Options, exported: Exported, *, training: bool) -> popart.DataFlow:
    """Return which outputs come back, and of which micro-batches."""
    mode = options.value("outputMode")
    if mode == OutputMode.Default:
        mode = OutputMode.Final if training else OutputMode.All
    kind = _returned(mode, options.value("period"))
    names = [name for name in exported.outputs if isinstance(name, str)]
    anchors = dict.fromkeys(names, kind)
    for name, anchor_kind, period in options.value("anchors").values():
        anchors[anchor_name(name, exported)] = (
            kind if anchor_kind is None else _returned(anchor_kind, period)
        )
    return popart.DataFlow(options.device_iterations, anchors)


def _returned(mode: OutputMode, period: int) -> popart.AnchorReturnType:
    """Return how an output comes back; the period counts for EveryN alone."""
    return popart.AnchorReturnType(KINDS[mode], period if mode == OutputMode.EveryN else None)


def device_of(options: Options, ipus: int) -> popart.DeviceInfo:
    """Return a model of the machine with so many IPUs for each replica."""
    settings = {"numIPUs": ipus * options.replication_factor}
    part = options.part()
    return popart.DeviceManager().createIpuModelDevice(
        {**settings, **({"ipuVersion": part} if part else {})}
    )


def session_of(
    exported: Exported, module: torch.nn.Module, options: Options, optimizer: object,
    fixed: set[str], values: bool = True,
) -> tuple[popart.InferenceSession, str]:  # fmt: skip
    """Return the session of a module, in training when there is an optimiser, and its loss."""
    training = optimizer is not None
    strategy = options.value("strategy")
    placement = strategy if isinstance(strategy, PipelinedExecution | ShardedExecution) else None
    note_marks(exported)
    blocks = place_nodes(exported.model, exported.marks, module, placement)
    ipus = max(blocks, options.value("ipus"))
    _note_memory(exported.model, options.value("memory"))
    settings = session_options(options, training=training, ipus=ipus, blocks=bool(blocks))
    if not values:
        settings.engineOptions = {**settings.engineOptions, VALUES_OPTION: False}
    arguments: dict[str, Any] = {
        "userOptions": settings,
        "patterns": popart.Patterns(dict(options._Popart.value("patterns"))),
        "name": options.value("modelName"),
    }
    source = (exported.model, f"module {class_of(module).rpartition('.')[2]}", None)
    flow = flow_of(options, exported, training=training)
    device = device_of(options, ipus)
    if not training:
        return popart.InferenceSession(source, flow, device, **arguments), ""
    loss = loss_of(exported, module)
    arguments |= {"loss": loss, "optimizer": optimizer, "deviceInfo": device, "fixed": fixed}
    return popart.TrainingSession(source, flow, **arguments), loss


def _note_memory(model: onnx.ModelProto, shares: Mapping[int, float]) -> None:
    """Note the share of memory of products by their IPU, where none is noted."""
    for node in model.graph.node if shares else ():
        noted = {attribute.name: attribute for attribute in node.attribute}
        ipu = noted["__ipu_number"].i if "__ipu_number" in noted else 0
        if node.op_type in PRODUCTS and ipu in shares and MEMORY_ATTRIBUTE not in noted:
            annotate(node, MEMORY_ATTRIBUTE, shares[ipu])
