"""Sessions that train: losses, gradients and changes of the weights in every batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from simulator.graph.graph import Graph
from simulator.graph.program import Sequence as Program
from simulator.graph.tensor import Tensor
from simulator.graph.types import FLOAT
from simulator.popart import programs as parts
from simulator.popart.errors import popart_exception
from simulator.popart.gradients import (
    PREFIX,
    asked_for,
    backward_nodes,
    check_trainable,
    joined_gradients,
    lower_backward,
    lower_losses,
)
from simulator.popart.ir import Node
from simulator.popart.losses import Loss
from simulator.popart.lowering import Lowering
from simulator.popart.optimizers import SGD, update
from simulator.popart.patterns import SOFTMAX
from simulator.popart.placement import brought, lies_on
from simulator.popart.replicas import summed
from simulator.popart.session import InferenceSession
from simulator.poplibs import popops
from simulator.poplibs.popops.expr import _1

RATE, OPTIMIZER_FROM_HOST = "learningRate", "optimizerFromHost"


class TrainingSession(InferenceSession):
    """A model whose weights a loss and an optimiser change in every batch.

    TrainingSession(fnModel, dataFlow, losses, optimizer, deviceInfo, inputShapeInfo, userOptions)
    """

    training = True
    _trained = False

    def __init__(
        self,
        fnModel: Any,
        dataFlow: Any = None,
        losses: Sequence[Loss] = (),
        optimizer: SGD | None = None,
        deviceInfo: Any = None,
        inputShapeInfo: Any = None,
        userOptions: Any = None,
        **named: Any,
    ) -> None:
        if not isinstance(optimizer, SGD):
            raise popart_exception(f"TrainingSession: optimizer is {optimizer!r}; SGD is needed")
        if not losses:
            raise popart_exception("TrainingSession: without losses there is nothing to train")
        self._optimizer, self._rate = optimizer, np.zeros(1, dtype=np.float32)
        options = {"inputShapeInfo": inputShapeInfo, "userOptions": userOptions, **named}
        super().__init__(fnModel, dataFlow, deviceInfo, losses=losses, **options)
        self._asked = asked_for(self._flow.anchors())
        check_trainable(self._ir, self._losses, self._asked, self._what)
        self._trained = True
        self._write_dot("BWD0")

    def _backward(self) -> list[Node]:
        """Give the nodes of the backward pass, once they are known."""
        return backward_nodes(self._ir, self._losses, self._asked) if self._trained else []

    # Compiling
    def _lower(self, lowering: Lowering, prog: Program) -> Mapping[str, Tensor]:
        """Add forward and backward pass, and the changes of the weights."""
        lowering.lower(prog, self._progress)
        direct = self._patterns.isPatternEnabled(SOFTMAX)
        losses = lower_losses(lowering, self._losses, prog, direct=direct, asked=self._asked)
        lowering.turn()
        found = joined_gradients(lowering, losses)
        lower_backward(lowering, found, prog, {*self._ir.weights, *self._asked})
        rate = self._add_rate(lowering)
        for name in self._ir.weights:
            if name in found:
                self._change(lowering, name, found[name], rate, prog)
        return {f"{PREFIX}{name}": gradient for name, gradient in found.items()}

    def _change(
        self,
        lowering: Lowering,
        name: str,
        gradient: Tensor,
        rates: Sequence[Tensor | float],
        prog: Program,
    ) -> None:
        """Add the change of a weight, on the IPU where it is."""
        graph, weight = lowering.graph, lowering.stored[name]
        ipu = next(i for i in range(len(lowering.graphs)) if lies_on(graph, weight, i))
        prog = lowering.program(ipu, prog)
        kind = type(self._optimizer).__name__
        with graph.debug_scope(name, "popart", weight=name, operator=kind):
            near = lowering.carried(gradient, ipu, prog, f"{name}/Grad")
            graph, near = lowering.graphs[ipu], near.reshape(weight.shape)
            near, prog = self._reduced(graph, weight, near, prog, name)
            update(graph, weight, near, rates[ipu], self._optimizer.decay, prog, name)

    def _reduced(
        self, graph: Graph, weight: Tensor, gradient: Tensor, prog: Program, name: str
    ) -> tuple[Tensor, Program]:
        """Give the gradient of all micro-batches and replicas, and where the weight changes."""
        factor, replicas = self._options.factor, self._options.replicas
        if factor > 1:
            begin, end = self._around
            total = graph.clone(weight, f"{name}/Accumulated")
            popops.zero(graph, total, begin, f"{name}/Accumulated")
            popops.addInPlace(graph, total, gradient, prog, f"{name}/Accumulate")
            gradient, prog = total, end
        if replicas > 1:
            gradient = summed(graph, gradient, replicas, prog, name)
        if (
            factor * replicas > 1
            and self._options.accumulationAndReplicationReductionType == "Mean"
        ):
            share = 1 / (factor * replicas)
            gradient = popops.map(graph, _1 * share, [gradient], prog, f"{name}/Mean")
        return gradient, prog

    def _add_rate(self, lowering: Lowering) -> Sequence[Tensor | float]:
        """Give the learning rate on each IPU: a number, or a tensor that the host can write."""
        if self._optimizer.constant:
            return [self._optimizer.rate] * len(lowering.graphs)
        graph = lowering.graph
        rate = graph.addVariable(FLOAT, [1], RATE)
        graph.setTileMapping(rate, 0)
        handle, copy = parts.host_to_device(graph, "optimizer", RATE, rate)
        prog = Program(copy, name=OPTIMIZER_FROM_HOST)
        self._programs.programs[OPTIMIZER_FROM_HOST] = prog
        self._programs.rates = {RATE: handle}
        return [brought(graph, rate, ipu, prog, RATE) for ipu in range(len(lowering.graphs))]

    # Running
    def updateOptimizer(self, optimizer: SGD) -> None:
        """Set another learning rate; `optimizerFromHost` copies it to the device."""
        if not isinstance(optimizer, SGD) or optimizer.constant or self._optimizer.constant:
            raise popart_exception("updateOptimizer: only the rate of an SGD can be changed")
        if optimizer.decay != self._optimizer.decay:
            raise popart_exception("updateOptimizer: the weight decay is part of the program")
        self._optimizer = optimizer

    def optimizerFromHost(self) -> None:
        """Copy the learning rate to the device."""
        engine = self._loaded("optimizerFromHost")
        if self._optimizer.constant:
            return
        if self._values:
            self._rate[:] = self._optimizer.rate
            engine.connectStream(self._programs.rates[RATE], self._rate)
        engine.run(self._programs.number(OPTIMIZER_FROM_HOST), OPTIMIZER_FROM_HOST)

    def prepareDevice(self) -> None:
        """Compile the model and load it, with the optimiser's learning rate."""
        super().prepareDevice()
        self.optimizerFromHost()
