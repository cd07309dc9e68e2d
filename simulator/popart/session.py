"""Sessions: a model compiled for a device, and run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx

from pva.collector import collector_paused
from simulator import options as engine_options
from simulator.engine import Engine
from simulator.executable import Executable, compile_programs
from simulator.executable_file import versions
from simulator.fingerprint import fingerprint
from simulator.graph.graph import Graph
from simulator.graph.program import Program as AnyProgram
from simulator.graph.program import Sequence as Program
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import Array
from simulator.heap import give_back_much, reused_memory
from simulator.popart import programs as parts
from simulator.popart.backpropagation.losses import Loss, add_losses, losses_of
from simulator.popart.errors import popart_exception
from simulator.popart.importing.from_onnx import import_model
from simulator.popart.importing.model_files.model_file import Model, load_model
from simulator.popart.indices import check_places, looked_up, static_inputs
from simulator.popart.logging import log
from simulator.popart.lowering import Lowering, Progress
from simulator.popart.optimizers import Optimizer
from simulator.popart.programs import Programs
from simulator.popart.representation.ir import Ir, Node
from simulator.popart.representation.patterns import Patterns, apply
from simulator.popart.representation.tensor_info import (
    InputShapeInfo,
    TensorInfo,
    to_device,
    to_host,
)
from simulator.popart.scheduling.io_tiles import ways_of
from simulator.popart.scheduling.off_chip import WEIGHT, moves_of, off_chip_of
from simulator.popart.scheduling.outlined import functions_of, outlining_of
from simulator.popart.scheduling.pipeline import Pipeline, pipeline_of, staged
from simulator.popart.scheduling.pipeline_steps import Cycles, cycles_of
from simulator.popart.scheduling.placement import place_nodes
from simulator.popart.scheduling.predicted_cost import planned_cycles
from simulator.popart.scheduling.recompute import check_recomputation
from simulator.popart.sessions import dot, report_texts
from simulator.popart.sessions.anchors import anchor_tensor, check_anchors
from simulator.popart.sessions.calls import LOADING, unprepared
from simulator.popart.sessions.files import Files
from simulator.popart.sessions.generators import Generators
from simulator.popart.sessions.instances import share_of, target_of_all
from simulator.popart.sessions.option_checks import checked_options
from simulator.popart.sessions.options import SessionOptions
from simulator.popart.sessions.report_folders import Folder
from simulator.popart.sessions.reports import Reports
from simulator.popart.sessions.serialised_ir import serialised
from simulator.popart.sessions.tile_map import write_tile_map
from simulator.popart.sessions.weights import Weights, flat
from simulator.popart.sessions.work import work_of
from simulator.popart.settings.dataflow import ONCE, DataFlow, PyStepIO, PyStepIOCallback
from simulator.popart.settings.devices import DeviceInfo
from simulator.popart.settings.input_settings import settings_of
from simulator.popart.settings.names import DeviceConnectionType, Instrumentation
from simulator.popart.variable_settings import of_one_group
from simulator.runtime.arrangement import arranged, restored
from simulator.runtime.without_values import OPTION as VALUES_OPTION


def _nothing(finished: int, total: int, stage: str) -> None:
    """Show no progress."""


class InferenceSession(Weights, Generators, Reports, Files):
    """A model that gives its anchors for inputs.

    `fnModel` is the path of an ONNX file, a serialised ModelProto or a ModelProto; or one that has
    been read already, with what errors call it and the folder of its external data; `ir` is the
    same imported, which is the session's from then on. Raises popart_exception for a model that
    cannot be run, before anything is compiled.
    Its report goes to the folder `name` (`inference`, `training`) below autoReport.directory.

    >>> import numpy as np
    >>> from simulator import popart
    >>> builder = popart.Builder()
    >>> x = builder.addInputTensor("FLOAT", [2])
    >>> y = builder.aiOnnx.relu([x])
    >>> builder.addOutputTensor(y)
    >>> device = popart.DeviceManager().createIpuModelDevice({"numIPUs": 1, "tilesPerIPU": 4})
    >>> session = popart.InferenceSession(builder.getModelProto(), popart.DataFlow(1, [y]), device)
    >>> session.prepareDevice()
    >>> anchors = session.initAnchorArrays()
    >>> session.run(popart.PyStepIO({x: np.float32([-1.0, 2.0])}, anchors))
    >>> anchors[y].tolist()
    [0.0, 2.0]
    """

    training, default_name = False, "inference"

    def __init__(
        self,
        fnModel: Model | tuple[onnx.ModelProto, str, Path | None],
        dataFlow: DataFlow | None = None,
        deviceInfo: DeviceInfo | None = None,
        inputShapeInfo: InputShapeInfo | None = None,
        userOptions: SessionOptions | None = None,
        losses: Loss | str | Sequence[Loss | str] = (),
        patterns: Patterns | None = None,
        *,
        dataFeed: DataFlow | None = None,
        progress: Progress = _nothing,
        name: str | None = None,
        ir: Ir | None = None,
    ) -> None:
        flow = dataFlow or dataFeed
        if flow is None or deviceInfo is None:
            raise popart_exception("session: a DataFlow and a device are needed")
        self._flow, self._device, self._progress = flow, deviceInfo, progress
        self._options = checked_options(userOptions, deviceInfo.numIpus, training=self.training)
        engine_settings = engine_options.resolve(self._options.engineOptions)
        self._profiled = report_texts.is_profiled(engine_settings)
        self._values = bool(engine_settings[VALUES_OPTION])
        self._folder = Folder(self.default_name if name is None else name, engine_settings)
        given_model = fnModel if isinstance(fnModel, tuple) else load_model(fnModel)
        self._model, subject, folder = given_model
        self._ir = ir or self._imported(subject, folder, inputShapeInfo)
        self._noted = settings_of(self._model)
        self._what, given_losses = subject, losses_of(losses, subject)
        self._patterns = patterns or Patterns()
        protected = set(flow.anchors())
        for loss in given_losses:
            protected.update((loss,) if isinstance(loss, str) else loss.inputs)
        self._stages = dot.wanted(self._options.dotChecks)
        log(
            "session",
            "INFO",
            f"{subject}: {len(self._ir.nodes)} nodes, {len(self._ir.weights)} weights",
        )
        self._write_dot("FWD0")
        apply(self._ir, self._patterns, protected, training=self.training)
        self._write_dot("FWD1")
        dot.dump_ir(self._ir)
        shape_info = inputShapeInfo or InputShapeInfo()
        named = {name: shape_info.get(name) for name in shape_info.getAllTensorIds()}
        self._losses = add_losses(self._ir, given_losses, named, subject)
        self._ir.infos |= self._added_infos()
        check_anchors(subject, self._flow.anchors(), self._ir, training=self.training)
        self._weights = dict(self._ir.weights)
        self._share_among_groups(folder)
        self._engine: Engine | None = None
        self._programs = Programs()
        self._uploaded = self._ran = self._connected = False
        self._in_flight = 1  # batches in a full pipeline
        self._around = Program(name="begin"), Program(name="end")  # of accumulated micro-batches
        self._kept: dict[str, Tensor] = {}  # what an optimiser keeps between batches
        self._check_choices()

    def _imported(self, subject: str, folder: Path | None, shapes: InputShapeInfo | None) -> Ir:
        """Return the graph of the model; raises popart_exception for nodes that cannot be run."""
        model = self._model
        if model is not None:
            model = of_one_group(model, self._options.total_replicas, folder)
        ir, wrong = import_model(model, subject, folder, shapes, values=self._values)
        if wrong:
            suffix = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
            raise popart_exception(f"{wrong[0]}{suffix}")
        return ir

    def _added_infos(self) -> dict[str, TensorInfo]:
        """Return type and shape of tensors beside those of the model."""
        return {}

    def _check_choices(self) -> None:
        """Raise popart_exception for replicas, stages or nodes to be made again that cannot be."""
        if self.training:
            check_recomputation(self._ir, self._options.autoRecomputation)
        replicas, ipus = self._options.replicas, self._device.numIpus
        if ipus % replicas or replicas & (replicas - 1):
            raise popart_exception(
                f"{self._what}: {replicas} replicas on a device of {ipus} IPUs; "
                "a power of two that divides them is needed"
            )
        if self._options.balances and len(self._ir.nodes) < ipus // replicas:
            raise popart_exception(
                f"[AutoVirtualGraph] Couldn't find enough splits: {len(self._ir.nodes)} nodes for "
                f"{ipus // replicas} IPUs"
            )
        if self._options.enablePipelining and not self._options.balances:
            ways = self._options.uses_virtual_graphs(ipus // replicas)
            placed = place_nodes(self._ir, ipus // replicas, self._what)
            staged(self._ir, placed if ways else {}, self._what)
        self._share = share_of(self._options, self._what)

    @property
    def _accumulates(self) -> bool:
        """Return whether a pipeline drains between updates of the weights, also with factor 1."""
        return self.training and self._options.enableGradientAccumulation

    @property
    def _micro_batches(self) -> int:
        """Count the micro-batches of a step, on all replicas."""
        return self._flow.batchesPerStep() * self._options.factor * self._options.replicas

    # Compiling
    def prepareDevice(self, loadEngine: bool = True) -> None:
        """Compile the model and load it onto the device, or leave that to a call of its own.

        >>> from simulator.popart import trial
        >>> session, x, y = trial.inference()
        >>> session.prepareDevice()
        """
        if not self._options.compileEngine:
            self._built()
            return
        with reused_memory(), collector_paused():
            source, programs = self._source()
            give_back_much()
            options, name = self._options.engineOptions, self._folder.claimed()
            self._engine = Engine(source, programs, options, name=name, share=self._share)
            self._executable = self._engine.executable
        log("devicex", "INFO", "Graph compiled")
        if loadEngine:
            self.loadEngineAndConnectStreams()

    def _source(self) -> tuple[Graph | Executable, list[AnyProgram] | None]:
        """Return the compiled program, or the graph and the programs that are to be compiled."""
        if self._executable is None:
            self._from_cache()
        if self._executable is not None:
            return self._executable, None
        return self._graph_and_programs()

    def _graph_and_programs(self) -> tuple[Graph, list[AnyProgram]]:
        """Return what is to be compiled."""
        log("devicex", "DEBUG", "Starting compilation")
        graph = self._built()  # and what that needed, the tensors of all nodes, is gone
        log("devicex", "INFO", f"compiling {len(graph.compute_sets)} compute sets")
        return graph, list(self._programs.programs.values())

    def _compile(self) -> None:
        """Compile the model, without an engine."""
        graph, programs = self._graph_and_programs()
        self._executable = compile_programs(graph, programs, self._options.engineOptions)

    def _fingerprint(self) -> str:
        """Return the hash of what the compiled program depends on; raises PoplarError.

        Of weights it is type and shape, and the values of those that nodes have to know.
        """
        ir = self._ir
        constants = {name: ir.known(name) for name in static_inputs(ir)}
        machine, row_names = target_of_all(self._device.target, self._options), self._kept_rows()
        infos = {name: info for name, info in ir.infos.items() if name not in row_names}
        return fingerprint(
            versions(), type(self).__name__, ir.name, ir.nodes, infos, ir.constants,
            list(ir.weights), constants, ir.inputs, ir.outputs, ir.bounds, ir.sequences, self._flow,
            self._losses, self._patterns, self._noted, self._values, self._options.compiled(),
            machine, *self._more_fingerprint(),
        )  # fmt: skip

    def _more_fingerprint(self) -> list[object]:
        """Return what else the program depends on."""
        return []

    def loadEngineAndConnectStreams(self) -> None:
        """Load what is compiled onto the device; streams are connected when they are needed.

        >>> import numpy as np
        >>> from simulator import popart
        >>> from simulator.popart import trial
        >>> session, x, y = trial.inference()
        >>> session.prepareDevice(loadEngine=False)
        >>> session.loadEngineAndConnectStreams()
        >>> anchors = session.initAnchorArrays()
        >>> session.run(popart.PyStepIO({x: np.float32([-1.0, 2.0])}, anchors))
        >>> anchors[y].tolist()
        [0.0, 2.0]
        """
        if self._device.connectionType is DeviceConnectionType.Never:
            raise popart_exception(
                "loadEngineAndConnectStreams: the device is one to compile for (offline); one that "
                "is acquired is needed"
            )
        self._loaded("loadEngineAndConnectStreams").load(self._device.device)
        self._connected = True
        log("devicex", "INFO", "Engine loaded")
        self._uploaded = False
        self._begin_generators()

    def _lowering(self, graph: Graph) -> Lowering:
        """Return what lowers the nodes to a graph, where each is placed and what shares code."""
        options = self._options
        lowering = Lowering(
            self._ir, graph, options.convolutionOptions, self._values, self.training
        )
        lowering.products = options.of_products
        lowering.pools = {"maxPoolGradient": options.maxPoolGradient}
        lowering.off_chip = None if self._device.isCpu else off_chip_of(graph, options)
        lowering.placed = {} if self._device.isCpu else self._placed(lowering)
        if options.enablePipelining:
            lowering.placed, lowering.ipus = staged(self._ir, lowering.placed, self._what)
            lowering.graphs = [lowering.graphs[ipu] for ipu in lowering.ipus]
        read = self._flow.anchors()
        lowering.outlining = outlining_of(self._ir, lowering.placed, read, options)
        return lowering

    def _built(self) -> Graph:
        """Build the graph, and the programs that run on it."""
        options, factor = self._options, self._options.factor
        graph_whole = self._empty_graph()
        ways = ways_of(graph_whole, self._options.io_tiles, self._noted, self._flow, self._what)
        graph = ways.compute
        lowering, read = self._lowering(graph), self._flow.anchors()
        if options.enablePipelining:
            lowering = pipeline_of(lowering)
        if not self._accumulates:
            stages = len(lowering.stages) if isinstance(lowering, Pipeline) else 1
            self._in_flight = stages + 2 * ways.overlap
        body, compute = Program(name="batch"), Program()
        programs = self._programs = Programs(depth=self._options.defaultPrefetchBufferingDepth)
        parts.add_float_control(
            programs, graph, checks=options.enableFloatingPointChecks,
            rounding=options.enableStochasticRounding,
        )  # fmt: skip
        self._around = Program(name="begin"), Program(name="end")
        extra_tensors = self._lower(lowering, compute)
        inner = self._measured_batch(graph, compute)
        begin = Program(name="begin")
        anchors = {name: anchor_tensor(lowering, extra_tensors, name) for name in read}
        used = {*read, *(name for node in self._ir.nodes for name in node.reads)}
        inputs = {name: lowering.tensor(name) for name in self._ir.inputs if name in used}
        if self._options.synthetic:
            mode = self._options.syntheticDataMode
            parts.fill(graph, inputs if self._values else {}, mode)
            inputs, anchors = {}, {}
        stored = lowering.stored
        weights = {name: stored[name] for name in self._ir.weights if name in stored}
        parts.add_weights(programs, graph, {**weights, **self._kept}, lowering.off_chip)
        if isinstance(lowering, Pipeline) or factor > 1 or ways.chosen:
            lowering.finish(begin)
            cycles = cycles_of(programs, ways, lowering, compute, (inputs, anchors), self._flow)
            over_loops = ways.over_loops and not isinstance(lowering, Pipeline)
            steps = self._steps(cycles, over_loops=over_loops)
            programs.programs[parts.RUN] = Program(
                begin, programs.begin, steps, programs.last, name=parts.RUN
            )
        else:
            parts.add_inputs(programs, graph, inputs, body)
            body.children.extend(compute.children)
            parts.add_run(programs, graph, body, anchors, self._flow)
        parts.add_seed(programs, graph, self._ir)
        if self._options.enableLoadAndOffloadRNGState:
            parts.add_rng_state(programs, graph)
        self._measure_steps(graph, inner)
        for stage in ("PREALIAS", "FINAL"):
            self._write_dot(stage)
        if outlining := functions_of(lowering):  # now that all is there that reads
            outlining.finish(graph_whole, programs.programs.values())
        write_tile_map(graph_whole, {**lowering.stored, **lowering.made, **extra_tensors})
        lowering.calls.clear()  # which hold the lowering
        return graph_whole

    def _steps(self, cycles: Cycles, *, over_loops: bool) -> list[AnyProgram]:
        """Return the programs of all batches of a step, accumulated or one after another."""
        batches = self._flow.batchesPerStep()
        if not self._accumulates:
            return cycles.of_batches(batches)
        accumulated = cycles.over_loops if over_loops else cycles.accumulated
        return accumulated(batches, self._options.factor, *self._around)

    def _empty_graph(self) -> Graph:
        """Return a graph for the replicas of all instances."""
        return Graph(
            target_of_all(self._device.target, self._options), self._options.total_replicas
        )

    def _placed(self, lowering: Lowering) -> dict[str, int]:
        """Return the IPU of each node."""
        ipus, auto = self._device.numIpus // self._options.replicas, self._options.balances
        noted = self._options.uses_virtual_graphs(ipus)
        if (self._device.isCpu or not noted) and not auto:
            return {}

        def cycles(node: Node) -> float:
            return planned_cycles(lowering.call(node, Program()))

        phased = self._options.phased
        return place_nodes(self._ir, ipus, self._what, cycles if auto else None, phased=phased)

    def _lower(self, lowering: Lowering, prog: Program) -> Mapping[str, Tensor]:
        """Add what a batch computes; give tensors beside those of the model."""
        lowering.lower(prog, self._progress)
        return {}

    def _serializeIr(self, format: object = None) -> str:
        """Return the nodes, those of the backward pass too, as a JSON text."""
        graph = self._empty_graph()
        placed = self._placed(Lowering(self._ir, graph, self._options.convolutionOptions, False))
        elements = self._off_chip_elements()
        loads, stores = moves_of(self._options, elements) if not self._device.isCpu else ([], [])
        backward = [*self._backward(), *self._changes()]
        return serialised(self._ir, [*loads, *backward, *stores], placed)

    def _changes(self) -> list[Node]:
        """Return the nodes that change weights; none without training."""
        return []

    def _off_chip_elements(self) -> dict[str, tuple[str, int]]:
        """Return, for each tensor that may lie off the chip, of which kind it is and how large."""
        return {name: (WEIGHT, self._ir.infos[name].nelms()) for name in self._ir.weights}

    def _write_dot(self, stage: str) -> None:
        """Write the graph as a DOT file, if this stage is asked for."""
        if stage in self._stages:
            path = dot.write_dot(self._ir, stage, Path(self._options.logDir), self._backward())
            log("ir", "INFO", f"{stage} written to {path}")

    def _backward(self) -> list[Node]:
        """Return the nodes of the backward pass; none without training."""
        return []

    def _loaded(self, caller: str) -> Engine:
        if self._engine is None:
            raise popart_exception(unprepared(caller))
        if not self._connected and caller in LOADING:
            self.loadEngineAndConnectStreams()
        return self._engine

    @property
    def inputs(self) -> list[str]:
        """Name the inputs that every batch needs.

        >>> from simulator.popart import trial
        >>> session, x, y = trial.inference()
        >>> session.inputs == [x]
        True
        """
        return list(self._ir.inputs)

    def getInfo(self, name: str) -> TensorInfo:
        """Return type and shape of a tensor of the model.

        >>> from simulator.popart import trial
        >>> session, x, y = trial.inference()
        >>> session.getInfo(y).shape()
        [2]
        """
        if name not in self._ir.infos:
            raise popart_exception(f"getInfo: no tensor {name!r}")
        return self._ir.infos[name]

    # Running
    def updateOptimizer(self, optimizer: Optimizer) -> None:
        """Refuse: without training there is no optimiser.

        >>> from simulator import popart
        >>> from simulator.popart import trial
        >>> session, x, y = trial.inference()
        >>> session.updateOptimizer(popart.ConstSGD(0.5))
        Traceback (most recent call last):
            ...
        simulator.popart.errors.popart_exception: updateOptimizer: only a training session...
        """
        raise popart_exception("updateOptimizer: only a training session has an optimiser")

    updateOptimizerFromHost = updateOptimizer

    def initAnchorArrays(self) -> dict[str, Array]:
        """Make an array for each anchor: [batches, micro-batches, replicas, *shape].

        Of these three there is none that is one; of a FINAL one and a SUM there are replicas alone.

        >>> from simulator.popart import trial
        >>> session, x, y = trial.inference()
        >>> session.initAnchorArrays()[y].tolist()
        [0.0, 0.0]
        """
        infos, names = self._ir.infos, self._flow.anchors()
        return {n: np.zeros(self._anchor_shape(n), dtype=infos[n].host) for n in names}

    def _anchor_shape(self, name: str) -> tuple[int, ...]:
        batches, kind = self._flow.batchesPerStep(), self._flow.art(name)
        final = kind.id() in ONCE
        of_batches = (kind.count(batches),) if batches > 1 and not final else ()
        copies = (1 if final else self._options.factor, self._options.replicas)
        return (*of_batches, *(n for n in copies if n > 1), *self._ir.infos[name].dims)

    def run(self, stepio: PyStepIO | PyStepIOCallback, debugName: str = "") -> None:
        """Run a step: take the inputs of all batches, and fill the arrays of the anchors.

        >>> import numpy as np
        >>> from simulator import popart
        >>> from simulator.popart import trial
        >>> session, x, y = trial.inference()
        >>> session.prepareDevice()
        >>> anchors = session.initAnchorArrays()
        >>> session.run(popart.PyStepIO({x: np.float32([-1.0, 2.0])}, anchors))
        >>> anchors[y].tolist()
        [0.0, 2.0]
        """
        engine = self._loaded("run")
        if self._programs.weights_in and not self._uploaded:
            if self.training or not self._options.constantWeights:
                raise popart_exception(
                    "Must call weightsFromHost before run as the weights are not on the device"
                )
            self.weightsFromHost()
        if isinstance(stepio, PyStepIOCallback):
            self._run_called(stepio, debugName)
            return
        outputs = self._connect(engine, stepio) if self._values else {}
        batches = self._flow.batchesPerStep()
        log("session", "DEBUG", f"run of {batches} batches")
        engine.enableExecutionProfiling()
        work = work_of(self._ir, self._micro_batches, batches, self._in_flight)
        engine.run(self._programs.number(parts.RUN), debugName or parts.RUN, work=work)
        self._ran = True
        for name, values in outputs.items():
            out, apart = stepio.outputs[name], self._programs.arranged.get(name)
            values = values if apart is None else restored(apart, values)
            out[...] = values.astype(out.dtype).reshape(out.shape)  # whatever its strides

    def _run_called(self, stepio: PyStepIOCallback, debugName: str) -> None:
        """Run a step whose arrays callbacks give, one for each micro-batch."""
        anchors = self.initAnchorArrays()
        names = self._programs.inputs if self._values else ()
        arrays = {name: stepio.taken(name, self._micro_batches) for name in names}
        self.run(PyStepIO(arrays, anchors), debugName)
        for name in self._programs.anchors if self._values else ():
            stepio.give(name, anchors[name], self._ir.infos[name].dims)

    def getCycleCount(self, id: str = "") -> int:
        """Return the cycles of the last run, if the options have it measured.

        >>> import numpy as np
        >>> from simulator import popart
        >>> from simulator.popart import trial
        >>> session, x, y = trial.inference(instrumentWithHardwareCycleCounter=True)
        >>> session.prepareDevice()
        >>> session.run(popart.PyStepIO({x: np.float32([-1.0, 2.0])}, session.initAnchorArrays()))
        >>> session.getCycleCount() > 0
        True
        """
        engine = self._loaded("getCycleCount")
        if parts.CYCLES_TO_HOST not in self._programs.programs:
            raise popart_exception(
                "SessionOption 'instrumentWithHardwareCycleCounter' must be True for getCycleCount"
            )
        if id not in self._programs.counts:
            names = ", ".join(map(repr, self._programs.counts))
            raise popart_exception(
                f"getCycleCount: {id!r} is not measured, but {names}. Make sure you have set "
                "SessionOption::hardwareInstrumentations correctly."
            )
        if not self._ran:
            raise popart_exception("Must call run before getCycleCount")
        every = {}
        for name in self._programs.counts:
            every[name] = np.zeros(2 * self._options.replicas, dtype=np.uint32)
            engine.connectStream(parts.cycles_handle(name), every[name])
        self._programs.run_apart(engine, parts.CYCLES_TO_HOST)
        words = every[id]
        return int(words[0]) + (int(words[1]) << 32)

    def _measured_batch(self, graph: Graph, batch: Program) -> dict[str, Tensor]:
        """Let a batch measure itself, where the options ask for it; return the counts."""
        options = self._options
        wanted = Instrumentation.Inner in options.hardwareInstrumentations
        if not wanted or not options.instrumentWithHardwareCycleCounter:
            return {}
        if options.enablePipelining:
            raise popart_exception(
                "SessionOptions: hardwareInstrumentations has Inner; a pipeline is measured as a "
                "whole (Outer)"
            )
        return parts.measured_batch(graph, batch)

    def _measure_steps(self, graph: Graph, inner: dict[str, Tensor]) -> None:
        """Bring the counts of batches to the host where they are measured, and that of a step."""
        options = self._options
        if options.instrumentWithHardwareCycleCounter:
            measured = options.hardwareInstrumentations or {Instrumentation.Outer}
            outer = Instrumentation.Outer in measured
            parts.add_cycle_counts(self._programs, graph, inner, outer=outer)

    def _connect(self, engine: Engine, stepio: PyStepIO) -> dict[str, Array]:
        """Connect the step's arrays; give those that the device writes anchors to."""
        batches, places = self._micro_batches, looked_up(self._ir)
        names = {*self._ir.inputs, *self._weights}  # arrays of weights are not read, as in PopART
        unknown = [name for name in stepio.inputs if name not in names]
        if unknown:
            inputs = ", ".join(self._ir.inputs) or "none"
            raise popart_exception(f"run: no input {unknown[0]!r}; the model has {inputs}")
        for name, handle in self._programs.inputs.items():
            info, array = self._ir.infos[name], stepio.inputs.get(name)
            if array is None:
                raise popart_exception(f"run: input {name!r} ({info}) is not given")
            if not stepio.checks and array.size:  # PopART begins anew at its end
                array = np.resize(array, info.nelms() * batches)
            if array.size != info.nelms() * batches:
                raise popart_exception(
                    f"run: input {name!r} has {array.size} elements; {batches} of {info} are needed"
                )
            typed = to_host(array, info, f"run: input {name!r}")
            if name in places and typed.dtype.kind in "iu":
                check_places(typed, places[name], f"run: input {name!r}")
            device_values = flat(to_device(typed, info, f"input {name!r}"))
            apart = self._programs.arranged.get(name)
            engine.connectStream(
                handle, device_values if apart is None else arranged(apart, device_values)
            )
        outputs = {}
        for name, handle in self._programs.anchors.items():
            info, shape = self._ir.infos[name], self._anchor_shape(name)
            out = stepio.outputs.get(name)
            if out is None or out.size != int(np.prod(shape)) or not out.flags.writeable:
                shape_text = "missing" if out is None else f"of shape {list(out.shape)}"
                raise popart_exception(
                    f"run: array of anchor {name!r} is {shape_text}; {info.host} {list(shape)} "
                    "is needed"
                )
            outputs[name] = np.zeros(out.size, dtype=info.device.numpy)
            engine.connectStream(handle, outputs[name])
        return outputs
