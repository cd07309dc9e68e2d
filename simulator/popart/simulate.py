"""What a model would cost: compiled and run once, with values of random inputs or without any."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from simulator.graph.errors import NoPlanError, PoplarError
from simulator.graph.types import Array
from simulator.heap import LITTLE, give_back_much, reused_memory
from simulator.popart.backpropagation.losses import IdentityLoss, Loss, NllLoss, ReductionType
from simulator.popart.errors import popart_exception
from simulator.popart.importing.bodies.sequence_inputs import tensors_of
from simulator.popart.importing.bounded import chosen, with_roots
from simulator.popart.importing.from_onnx import import_model
from simulator.popart.importing.model_files.input_values import fitted, shapes_of, with_inputs
from simulator.popart.importing.model_files.model_file import read_graph, value_info
from simulator.popart.importing.transformer import GraphTransformer
from simulator.popart.indices import looked_up
from simulator.popart.lowering import Progress
from simulator.popart.optimizers import SGD, Adam, Optimizer
from simulator.popart.representation.ir import ONNX, Ir
from simulator.popart.representation.tensor_info import InputShapeInfo, TensorInfo
from simulator.popart.session import InferenceSession
from simulator.popart.sessions.options import SessionOptions
from simulator.popart.sessions.report_folders import give_back
from simulator.popart.settings.dataflow import AnchorReturnType, DataFlow, PyStepIO
from simulator.popart.settings.devices import DeviceManager
from simulator.popart.settings.input_settings import (
    ExchangeStrategy,
    InputSettings,
    TileSet,
    note_settings,
)
from simulator.popart.settings.names import RecomputationType
from simulator.popart.training import TrainingSession
from simulator.popart.unplanned import report_tensors, tensors_at_ends
from simulator.runtime.without_values import OPTION as VALUES_OPTION

RATE, SEED = 0.01, 1
LOSS, LABELS = "loss", "labels"
STRATEGIES = {
    "just-in-time": ExchangeStrategy.JustInTime,
    "overlap-inner-loop": ExchangeStrategy.OverlapInnerLoop,
    "overlap-loops": ExchangeStrategy.OverlapLoops,
}
RECOMPUTATIONS = {
    "": RecomputationType.NoRecompute,
    "standard": RecomputationType.Standard,
    "all": RecomputationType.RecomputeAll,
}
OPTIMIZERS: dict[str, Callable[[], Optimizer]] = {
    "sgd": lambda: SGD(RATE),
    "momentum": lambda: SGD(
        {"defaultLearningRate": (RATE, False), "defaultMomentum": (0.9, False)}
    ),
    "adam": lambda: Adam({"defaultLearningRate": (RATE, False)}),
}


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked for: the machine, the batch (None for the model's own), and what is run.

    Several IPUs share the nodes; with `repeat` batches to run, they are stages of a pipeline.
    `optimizer` and `recompute` count when it trains. `constants` are inputs that are known when the
    model is compiled, `data` those that are fed in place of random ones. With `io_tiles` inputs and
    outputs go by that many tiles of each IPU, as `exchange_strategy` says. With `outlining` equal
    layers share their code. `partials` is the type of the partial results of convolutions and
    products: "half", "float", or "" for PopLibs' choice; `memory_proportion` the share of a tile
    that their temporary data may take. `recompute` is "", "standard" or "all". With the precision
    "half" a model's floats are halves. `cache` is a folder where compiled models are kept.
    """

    target: str = "mk2"
    ipus: int = 1
    batch: int | None = None
    shapes: Mapping[str, Sequence[int]] | None = None
    train: bool = False
    optimizer: str = "sgd"
    recompute: str = ""
    values: bool = True
    options: Mapping[str, object] | None = None
    constants: Mapping[str, Array] = field(default_factory=dict)
    data: Mapping[str, Array] = field(default_factory=dict)
    repeat: int = 1
    io_tiles: int = 0
    exchange_strategy: str = "overlap-inner-loop"
    outlining: bool = True
    partials: str = ""
    memory_proportion: float | None = None
    precision: str = "float"
    cache: Path | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """The values of the model's outputs (none without values), and the loss that was trained."""

    outputs: dict[str, Array]
    loss: str


def _fed(request: Request, ir: Ir, subject: str) -> dict[str, Array]:
    """Return the values that the user gives to inputs, in their types and shapes."""
    return {
        name: fitted(values, ir.infos[name], f"{subject}: input {name!r}")
        for name, values in request.data.items()
    }


def simulate_model(
    path: Path,
    out: Path,
    request: Request,
    progress: Progress = lambda finished, total, stage: None,
) -> Outcome:
    """Compile a model, run its batches of random inputs, and leave a report in `out`.

    Raises popart_exception for a model that cannot be run. Where a product has no plan, the report
    is of what the model holds.
    """
    model, subject, folder = opened_model(path, request)
    shapes = open_shapes(model, request, subject)
    device = DeviceManager().createIpuModelDevice(
        {"ipuVersion": request.target, "numIPUs": request.ipus}
    )
    options, batches = _options(request, out), request.repeat
    settings = settings_for(request)
    if request.io_tiles:
        for value in model.graph.input:
            note_settings(value, settings)
    ir, wrong = import_model(model, subject, folder, shapes, values=request.values)
    if wrong:
        raise popart_exception(f"{wrong[0]}; --list-unsupported names all {len(wrong)}")
    fed = _fed(request, ir, subject)
    outputs = [name for name in ir.outputs if ir.infos[name].nelms()]
    anchored = with_roots(outputs, ir.bounds)
    give_back(out)
    rows, bounds, ends = looked_up(ir), ir.bounds, tensors_at_ends(ir)
    losses = [loss_of(ir, shapes)] if request.train else []
    flow = flow_of(batches, [*anchored, LOSS] if request.train else anchored, settings)
    arguments = {
        "fnModel": (model, subject, folder),
        "dataFlow": flow,
        "deviceInfo": device,
        "inputShapeInfo": shapes,
        "userOptions": options,
        "progress": progress,
        "name": "",  # the report is in `out` itself
        "ir": ir,
    }
    session = _session(request, options, losses, arguments)
    # Nobody asks the session for the model.
    session.let_go_of_model()
    del model, ir, arguments

    def drawn() -> dict[str, Array]:
        return random_inputs(session, losses, rows, batches) if request.values else {}

    try:
        anchors = _run(session, drawn, fed, batches)
    except PoplarError as error:
        if isinstance(error.__cause__, NoPlanError):
            report_tensors(ends, device.target, options.engineOptions, str(error))
        raise
    kinds = ", ".join(f"{type(loss).__name__} of {loss.inputs[0]!r}" for loss in losses)
    counted = chosen(anchors, bounds) if batches == 1 else anchors
    results = {name: counted[name] for name in anchors if name in outputs or name == LOSS}
    return Outcome(results if request.values else {}, kinds)


def _session(
    request: Request, options: SessionOptions, losses: list[Loss], arguments: dict[str, Any]
) -> InferenceSession:
    """Return the session that trains a model, or only runs it."""
    if not request.train:
        return InferenceSession(**arguments)
    options.autoRecomputation = RECOMPUTATIONS[request.recompute]
    optimizer = OPTIMIZERS[request.optimizer]()
    return TrainingSession(**arguments, losses=losses, optimizer=optimizer)


def _run(
    session: InferenceSession,
    drawn: Callable[[], dict[str, Array]],
    fed: Mapping[str, Array],
    batches: int,
) -> dict[str, Array]:
    """Compile, run on drawn inputs and those that are fed to each batch; give the anchors."""
    with reused_memory():
        session.prepareDevice()
        give_back_much(LITTLE)
        session.hand_over_weights()
        give_back_much(LITTLE)
        anchors = session.initAnchorArrays()
        again = {n: np.broadcast_to(array, (batches, *array.shape)) for n, array in fed.items()}
        session.run(PyStepIO(drawn() | again, anchors))
    return anchors


def _options(request: Request, out: Path) -> SessionOptions:
    """Return the options of a session whose report goes to a folder."""
    report = {"autoReport.all": True, "autoReport.directory": str(out.resolve())}
    is_sharded = request.ipus > 1
    cache_options = {} if request.cache is None else {"cachePath": str(request.cache)}
    return SessionOptions(
        enableEngineCaching=request.cache is not None,
        **cache_options,
        engineOptions={**report, **(request.options or {}), VALUES_OPTION: request.values},
        autoVirtualGraph=is_sharded,
        enablePipelining=is_sharded and request.repeat > 1,
        enableOutlining=request.outlining,
        numIOTiles=request.io_tiles,
        convolutionOptions=_planning(request),
    )


def _planning(request: Request) -> dict[str, str]:
    """Return the options by which convolutions and products are planned."""
    options = {"partialsType": request.partials} if request.partials else {}
    if request.memory_proportion is not None:
        options["availableMemoryProportion"] = str(request.memory_proportion)
    return options


def settings_for(request: Request) -> InputSettings:
    """Return how the inputs and outputs go; raises popart_exception for an unknown strategy."""
    if request.exchange_strategy not in STRATEGIES:
        strategies = ", ".join(STRATEGIES)
        raise popart_exception(
            f"{request.exchange_strategy!r}: no strategy; there are {strategies}"
        )
    if not request.io_tiles:
        return InputSettings()
    return InputSettings(TileSet.IO, STRATEGIES[request.exchange_strategy])


def flow_of(batches: int, anchors: Sequence[str], settings: InputSettings) -> DataFlow:
    """Return a flow that gives all batches of some tensors."""
    art = AnchorReturnType("ALL", settings.tileSet(), settings.exchangeStrategy())
    return DataFlow(batches, dict.fromkeys(anchors, art))


def list_unsupported(path: Path, request: Request) -> list[str]:
    """Return of each node that cannot be lowered why, and what would be needed."""
    model, subject, folder = opened_model(path, request)
    shapes = open_shapes(model, request, subject)
    return import_model(model, subject, folder, shapes, values=False)[1]


def opened_model(path: Path, request: Request) -> tuple[onnx.ModelProto, str, Path | None]:
    """Read a model, with the inputs that are known as initialisers; raises popart_exception."""
    model, subject, folder = read_graph(path)
    if request.precision == "half":
        transformer = GraphTransformer(path)
        transformer.convertFloatsToHalfs()
        model = onnx.load_model_from_string(transformer.getModelProto())
    if not request.constants:
        return model, subject, folder
    inputs = {value.name: value for value in model.graph.input}
    shapes = shapes_of(model, request.constants, subject)
    infos = {
        name: TensorInfo(value_info(inputs[name], f"{subject}: input {name!r}")[0], shape)
        for name, shape in shapes.items()
    }
    return with_inputs(model, request.constants, infos), subject, folder


def open_shapes(model: onnx.ModelProto, request: Request, subject: str) -> InputShapeInfo:
    """Return the shapes of the inputs that the request changes; of outputs none stays declared."""
    shapes = InputShapeInfo()
    stored = {tensor.name for tensor in model.graph.initializer}
    wanted_shapes = dict(request.shapes or {})
    inputs = [value for value in tensors_of(model, wanted_shapes) if value.name not in stored]
    data_shapes = shapes_of(model, request.data, subject) | wanted_shapes
    unknown = sorted(set(data_shapes) - {value.name for value in inputs})
    if unknown:
        input_names = ", ".join(repr(value.name) for value in inputs)
        raise popart_exception(f"{subject}: no input {unknown[0]!r}; there are {input_names}")
    for value in inputs:
        kind, sizes = value_info(value, f"{subject}: input {value.name!r}")
        if value.name in data_shapes:
            sizes = list(data_shapes[value.name])
        if request.batch is not None and sizes:
            sizes[0] = request.batch
        if None not in sizes:
            shapes.add(value.name, TensorInfo(kind, [size for size in sizes if size is not None]))
    if request.batch is not None or data_shapes:
        for value in model.graph.output:
            value.type.tensor_type.ClearField("shape")
    return shapes


def loss_of(ir: Ir, shapes: InputShapeInfo) -> Loss:
    """Choose a loss: the likelihood of labels for a softmax, else the mean of the first output."""
    makers = {name: node for node in ir.nodes for name in node.outputs}
    for name in ir.outputs:
        maker, info = makers.get(name), ir.infos[name]
        if maker is not None and maker.key == (ONNX, "Softmax") and len(info.dims) == 2:
            labels = LABELS if LABELS not in ir.infos else f"{LABELS}/loss"
            shapes.add(labels, TensorInfo("INT32", info.dims[:1]))
            return NllLoss(name, labels, LOSS, ReductionType.Mean)
    floats = [name for name in ir.outputs if ir.infos[name].device.numpy.kind == "f"]
    if not floats:
        raise popart_exception(f"{ir.name}: no output of floats; there is no loss to train")
    return IdentityLoss(floats[0], LOSS, ReductionType.Mean)


def random_inputs(
    session: InferenceSession, losses: Sequence[Loss], rows: Mapping[str, int], batches: int = 1
) -> dict[str, Array]:
    """Make inputs: normal numbers for floats, labels of any class, indices of any row; else 0."""
    random = np.random.default_rng(SEED)
    limits = dict(rows) | {
        loss.labels: session.getInfo(loss.probs).dims[-1]
        for loss in losses
        if isinstance(loss, NllLoss)
    }
    arrays: dict[str, Array] = {}
    for name in session.inputs:
        info = session.getInfo(name)
        shape = (batches, *info.dims)
        if limits.get(name):
            most = min(limits[name], info.limits[1])
            arrays[name] = random.integers(0, most, shape).astype(info.host)
        elif info.host.kind == "f":
            arrays[name] = random.normal(size=shape).astype(info.host)
        else:
            arrays[name] = np.zeros(shape, dtype=info.host)
    return arrays
