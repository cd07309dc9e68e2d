"""Sessions that train: losses, gradients and changes of the weights in every batch."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from simulator.graph.program import Copy
from simulator.graph.program import Sequence as Program
from simulator.graph.tensors.regions import variables_of
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import Array
from simulator.popart.backpropagation.gradients import (
    PREFIX,
    asked_for,
    backward_nodes,
    check_trainable,
    dependent,
    direct_ways,
    lower_backward,
    seeded,
)
from simulator.popart.backpropagation.loss_scaling import FIRST, AutomaticScaling, check_automatic
from simulator.popart.backpropagation.loss_scaling import INFOS as SCALING_INFOS
from simulator.popart.backpropagation.losses import Loss
from simulator.popart.backpropagation.updates import OPTIMIZER_FROM_HOST, Kept, Updates, numbers_of
from simulator.popart.errors import popart_exception
from simulator.popart.lowering import Lowering
from simulator.popart.optimizers import Optimizer
from simulator.popart.optimizers.change_nodes import change_nodes
from simulator.popart.representation.ir import Node
from simulator.popart.representation.mandatory_patterns import check_gradients
from simulator.popart.representation.patterns import SOFTMAX
from simulator.popart.representation.tensor_info import ELEMENT_TYPES, TensorInfo
from simulator.popart.scheduling.off_chip import STATE, SUM
from simulator.popart.scheduling.recompute import Again, recomputed
from simulator.popart.session import InferenceSession
from simulator.popart.settings.names import reservedAccumPrefix, reservedLossScalingPrefix


class TrainingSession(InferenceSession):
    """A model whose weights a loss and an optimiser change in every batch.

    TrainingSession(fnModel, dataFlow, loss, optimizer, deviceInfo, inputShapeInfo, userOptions). A
    loss is the name of a scalar, or losses=[NllLoss(...)] are added to the model. Weights that are
    `fixed` stay as they are.

    >>> import numpy as np
    >>> from simulator import popart
    >>> builder = popart.Builder()
    >>> x = builder.addInputTensor("FLOAT", [1, 2])
    >>> w = builder.addInitializedInputTensor(np.float32([[3.0], [4.0]]))
    >>> y = builder.aiOnnx.matmul([x, w])
    >>> loss = builder.aiGraphcore.l1loss([y], 1.0)
    >>> device = popart.DeviceManager().createIpuModelDevice({"numIPUs": 1, "tilesPerIPU": 4})
    >>> flow, step = popart.DataFlow(1, [loss]), popart.ConstSGD(0.5)
    >>> session = popart.TrainingSession(builder.getModelProto(), flow, loss, step, device)
    >>> session.prepareDevice()
    >>> session.weightsFromHost()
    >>> anchors = session.initAnchorArrays()
    >>> session.run(popart.PyStepIO({x: np.float32([[1.0, 2.0]])}, anchors))
    >>> float(anchors[loss])  # |1 * 3 + 2 * 4|
    11.0
    >>> session.weightsToHost()
    >>> weights = {w: np.zeros([2, 1], np.float32)}
    >>> session.readWeights(popart.PyWeightsIO(weights))
    >>> weights[w].tolist()  # less 0.5 times x
    [[2.5], [3.0]]
    """

    training, default_name = True, "training"
    _trained = False

    def __init__(
        self,
        fnModel: Any,
        dataFlow: Any = None,
        loss: Loss | str | Sequence[Loss | str] = (),
        optimizer: Optimizer | None = None,
        deviceInfo: Any = None,
        inputShapeInfo: Any = None,
        userOptions: Any = None,
        patterns: Any = None,
        *,
        losses: Sequence[Loss | str] = (),
        fixed: Collection[str] = (),
        **named: Any,
    ) -> None:
        if not isinstance(optimizer, Optimizer):
            raise popart_exception(
                f"TrainingSession: optimizer is {optimizer!r}; SGD, Adam or Adaptive is needed"
            )
        if not loss and not losses:
            raise popart_exception("TrainingSession: without losses there is nothing to train")
        self._optimizer, self._fixed = optimizer, frozenset(fixed)
        self._rows: dict[str, Sequence[Any]] = {}  # of what the optimiser keeps, see _keep_rows
        options = {"inputShapeInfo": inputShapeInfo, "userOptions": userOptions, **named}
        super().__init__(
            fnModel, dataFlow, deviceInfo, losses=loss or losses, patterns=patterns, **options
        )
        self._asked = asked_for(self._flow.anchors())
        check_trainable(self._ir, self._losses, self._asked, self._trainable, self._what)
        moving = dependent(self._ir, {*self._trainable, *self._asked})
        check_gradients(self._ir, self._patterns, self._losses, moving, self._what)
        self._check_optimizer(optimizer)
        self._tracked: dict[str, list[str]] = {}
        if self._options.automaticLossScalingSettings.enabled:
            self._tracked = check_automatic(self._ir, self._options, optimizer, self._trainable)
        self._trained = True
        self._write_dot("BWD0")

    def _added_infos(self) -> dict[str, TensorInfo]:
        """Return type and shape of gradients, and of their sums over micro-batches."""
        infos, kind = self._ir.infos, self._optimizer.accumulator_type()
        sums = {
            f"{reservedAccumPrefix()}{name}": TensorInfo(kind or infos[name].type, infos[name].dims)
            for name in self._ir.weights
        }
        numbers = numbers_of(self._optimizer, self._ir.weights, self._options)
        sums |= dict.fromkeys(numbers, TensorInfo("FLOAT", []))
        sums[f"{reservedLossScalingPrefix()}FLOAT"] = TensorInfo("FLOAT", [])
        added = {f"{PREFIX}{name}": info for name, info in infos.items()} | sums
        return added | (SCALING_INFOS if self._options.automaticLossScalingSettings.enabled else {})

    def _check_optimizer(self, optimizer: Optimizer) -> None:
        """Raise popart_exception for weights that are not there, and norms that cannot be."""
        named = [
            *optimizer.specific(),
            *(w for clip in optimizer.clips for w in clip.getWeightIds()),
        ]
        unknown = [name for name in named if name not in self._ir.weights]
        if unknown:
            raise popart_exception(
                f"{self._what}: {type(optimizer).__name__}: {unknown[0]!r} is no weight"
            )
        if optimizer.clips and self._options.enablePipelining and self._options.factor == 1:
            raise popart_exception(
                f"{self._what}: ClipNormSettings in a pipeline whose weights change at different "
                "times; gradient accumulation, by 2 at least, would be needed"
            )

    @property
    def _trainable(self) -> list[str]:
        """Name the weights that the optimiser changes, in the order of the model."""
        return [name for name in self._ir.weights if name not in self._fixed]

    def _backward(self) -> list[Node]:
        """Return the nodes of the backward pass, once they are known."""
        return backward_nodes(self._ir, self._losses, self._asked) if self._trained else []

    def _changes(self) -> list[Node]:
        reached = {name for node in self._backward() for name in node.outputs}
        trained = [name for name in self._trainable if f"{PREFIX}{name}" in reached]
        return change_nodes(self._optimizer, trained)

    # Compiling
    def _lower(self, lowering: Lowering, prog: Program) -> Mapping[str, Tensor]:
        """Add forward and backward pass, and the changes of the weights."""
        lowering.lower(prog, self._progress)
        self._keep_anchors(lowering, prog)
        lowering.turn()
        if lowering.off_chip and self._options.phased:
            lowering.off_chip.loaded.clear()  # each phase loads what it reads
        scaling = self._scaling(lowering, prog) if self._tracked else None
        distances = self._distances()
        updates = Updates(
            self._optimizer, lowering, self._options, self._around, scaling, distances
        )
        seeds = seeded(lowering, self._losses, updates.loss_scaling(), prog)
        direct = self._patterns.isPatternEnabled(SOFTMAX)
        ways = direct_ways(self._ir, self._asked) if direct else {}
        recomputed_nodes = recomputed(self._ir, self._options.autoRecomputation, lowering.placed)
        again = Again(lowering, recomputed_nodes) if recomputed_nodes else None
        moving = {*self._trainable, *self._asked}
        track = scaling.track if scaling else None
        lower_backward(lowering, seeds, prog, moving, ways, again, track)
        if scaling:
            scaling.track_totals(seeds, prog)
        updates.add(seeds, self._trainable, prog)
        if scaling:
            scaling.finish()
        self._streams = updates.handles
        self._programs.programs[OPTIMIZER_FROM_HOST] = updates.from_host
        if scaling:
            updates.kept |= {name: Kept("", "", tensor) for name, tensor in scaling.carried.items()}
        self._begin_kept(updates)
        gradients = {f"{PREFIX}{name}": gradient for name, gradient in seeds.items()}
        scaled = scaling.anchors(updates.loss_scaling()[0]) if scaling else {}
        return {**gradients, **updates.sums, **updates.anchors(), **scaled}

    def _off_chip_elements(self) -> dict[str, tuple[str, int]]:
        kept = {}
        for name in self._trainable:
            inside, elements = self._optimizer.accumulates_in(name), self._ir.infos[name].nelms()
            for key in self._optimizer.kept(name):
                kind = SUM if key == inside and self._options.factor > 1 else STATE
                kept[f"{key}___{name}"] = kind, 1 if key == "Step" else elements
        return {**super()._off_chip_elements(), **kept}

    def _scaling(self, lowering: Lowering, prog: Program) -> AutomaticScaling:
        """Return what scales the losses, with its programs around a change of the weights."""
        if self._options.factor > 1 or self._options.enablePipelining:
            return AutomaticScaling(lowering, self._options, self._tracked, *self._around)
        begin = Program(name="lossScaling")
        prog.children.insert(0, begin)
        return AutomaticScaling(lowering, self._options, self._tracked, begin, prog)

    def _keep_anchors(self, lowering: Lowering, prog: Program) -> None:
        """Copy the anchors that view weights, before these change."""
        stored = [lowering.stored[name] for name in self._ir.weights if name in lowering.stored]
        weights = {number for tensor in stored for number in variables_of(tensor)}
        for name in self._flow.anchors():
            tensor = lowering.made.get(name)
            if tensor is not None and weights.intersection(variables_of(tensor)):
                copy = lowering.graph.clone(tensor, f"{name}/Anchor")
                at = lowering.program(lowering.maker_home(name), prog)
                at.add(Copy(tensor, copy, name=f"{name}/Anchor"))
                lowering.made[name] = copy

    def _begin_kept(self, updates: Updates) -> None:
        """Set the optimiser's state to its first values, except what the model has of it."""
        rows = {}
        self._kept = {}
        for label, (key, name, tensor) in updates.kept.items():
            kind = next(k for k, row in ELEMENT_TYPES.items() if row.device == tensor.dtype)
            rows[label], self._kept[label] = (key, name, kind, list(tensor.shape)), tensor
        self._keep_rows(rows)

    def _more_tensors(self) -> dict[str, Array]:
        """Return the optimiser's numbers that may change, and the seed."""
        numbers = numbers_of(self._optimizer, self._ir.weights, self._options)
        numbers_now = {name: np.array(numbers[name], dtype=np.float32) for name in self._streams}
        return numbers_now | self._seed_tensors()

    def _kept_rows(self) -> Mapping[str, Sequence[object]]:
        return self._rows

    def _keep_rows(self, rows: Mapping[str, Sequence[Any]]) -> None:
        """Take what the optimiser keeps: label -> its key, the weight, type and shape."""
        self._rows = dict(rows)
        for label, (key, name, kind, shape) in rows.items():
            info, stored = TensorInfo(kind, shape), self._weights.get(label)
            if stored is None:
                stored = self._ir.constants.get(label)  # whole numbers of a model that was written
            if stored is not None and stored.shape != info.dims:
                raise popart_exception(
                    f"{self._what}: {label!r} is of shape {list(stored.shape)}; "
                    f"{list(info.dims)} is needed"
                )
            self._ir.infos[label] = info
            weight = self._weights.get(name)
            if stored is None and label in FIRST:
                self._weights[label] = np.full(info.dims, FIRST[label], dtype=info.host)
            elif stored is None and weight is not None:
                first = self._optimizer.at_first(name, weight, key)
                self._weights[label] = np.full(info.dims, first, dtype=info.host)
            else:
                self._weights[label] = stored

    def _distances(self) -> dict[str, list[int]]:
        """Return, for each weight of groups, how far the replicas are apart that add up."""
        replicas = self._options.total_replicas
        return {name: settings.distances(replicas) for name, settings in self._shared.items()}

    def _more_fingerprint(self) -> list[object]:
        optimizer = self._optimizer
        kind = type(optimizer).__name__
        return [kind, optimizer.compiled(), sorted(self._fixed), self._distances()]

    # Running
    def updateOptimizer(self, optimizer: Optimizer) -> None:
        """Set other values of what may change; `optimizerFromHost` copies them to the device.

        >>> import numpy as np
        >>> from simulator import popart
        >>> from simulator.popart import trial
        >>> session, x, w, loss = trial.training()
        >>> session.prepareDevice()
        >>> session.weightsFromHost()
        >>> session.updateOptimizer(popart.SGD({"defaultLearningRate": (0.25, False)}))
        >>> session.optimizerFromHost()
        >>> session.run(popart.PyStepIO({x: np.float32([[1.0]])}, session.initAnchorArrays()))
        >>> session.weightsToHost()
        >>> weights = {w: np.zeros([1, 1], np.float32)}
        >>> session.readWeights(popart.PyWeightsIO(weights))
        >>> weights[w].item()  # 3 - 0.25 * 1
        2.75
        """
        if not isinstance(optimizer, Optimizer):
            raise popart_exception(f"updateOptimizer: {optimizer!r} is no optimiser")
        reason = optimizer.cannot_follow(self._optimizer)
        if reason:
            raise popart_exception(f"updateOptimizer: {reason}")
        self._optimizer = optimizer

    def optimizerFromHost(self) -> None:
        """Copy what may change of the optimiser to the device.

        >>> import numpy as np
        >>> from simulator import popart
        >>> from simulator.popart import trial
        >>> session, x, w, loss = trial.training()
        >>> session.prepareDevice()
        >>> session.weightsFromHost()
        >>> session.updateOptimizer(popart.SGD({"defaultLearningRate": (0.25, False)}))
        >>> session.optimizerFromHost()
        >>> session.run(popart.PyStepIO({x: np.float32([[1.0]])}, session.initAnchorArrays()))
        >>> session.weightsToHost()
        >>> weights = {w: np.zeros([1, 1], np.float32)}
        >>> session.readWeights(popart.PyWeightsIO(weights))
        >>> weights[w].item()  # 3 - 0.25 * 1
        2.75
        """
        engine = self._loaded("optimizerFromHost")
        if not self._streams:
            return
        if self._values:
            numbers = numbers_of(self._optimizer, self._ir.weights, self._options)
            for name, handle in self._streams.items():
                engine.connectStream(handle, np.array([numbers[name]], dtype=np.float32))
        self._programs.run_apart(engine, OPTIMIZER_FROM_HOST)

    def updateOptimizerFromHost(self, optimizer: Optimizer) -> None:
        """Set other values of what may change, and copy them to the device.

        >>> import numpy as np
        >>> from simulator import popart
        >>> from simulator.popart import trial
        >>> session, x, w, loss = trial.training()
        >>> session.prepareDevice()
        >>> session.weightsFromHost()
        >>> session.updateOptimizerFromHost(popart.SGD({"defaultLearningRate": (0.25, False)}))
        >>> session.run(popart.PyStepIO({x: np.float32([[1.0]])}, session.initAnchorArrays()))
        >>> session.weightsToHost()
        >>> weights = {w: np.zeros([1, 1], np.float32)}
        >>> session.readWeights(popart.PyWeightsIO(weights))
        >>> weights[w].item()  # 3 - 0.25 * 1
        2.75
        """
        self.updateOptimizer(optimizer)
        self.optimizerFromHost()

    def loadEngineAndConnectStreams(self) -> None:
        """Load what is compiled onto the device, with the optimiser's values.

        >>> import numpy as np
        >>> from simulator import popart
        >>> from simulator.popart import trial
        >>> session, x, w, loss = trial.training()
        >>> session.prepareDevice(loadEngine=False)
        >>> session.loadEngineAndConnectStreams()
        >>> session.weightsFromHost()
        >>> session.run(popart.PyStepIO({x: np.float32([[1.0]])}, session.initAnchorArrays()))
        >>> session.weightsToHost()
        >>> weights = {w: np.zeros([1, 1], np.float32)}
        >>> session.readWeights(popart.PyWeightsIO(weights))
        >>> weights[w].item()  # 3 - 0.5 * 1
        2.5
        """
        super().loadEngineAndConnectStreams()
        self.optimizerFromHost()
