"""The changes of weights, by the gradients of all micro-batches and replicas, clipped or not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from simulator.graph.graph import Graph
from simulator.graph.program import Copy
from simulator.graph.program import Sequence as Program
from simulator.graph.tensors.tensor import Tensor, concat
from simulator.graph.types import FLOAT
from simulator.popart import programs as parts
from simulator.popart.backpropagation.loss_scaling import AutomaticScaling
from simulator.popart.lowering import Lowering
from simulator.popart.optimizers import ClipNormSettings, Optimizer
from simulator.popart.optimizers.step import Number, Step, Terms
from simulator.popart.optimizers.values import LOSS_SCALING, Scalar
from simulator.popart.representation.tensor_info import ELEMENT_TYPES
from simulator.popart.scheduling.off_chip import STATE, SUM, WEIGHT
from simulator.popart.scheduling.replicas import of_all, summed
from simulator.popart.sessions.options import SessionOptions
from simulator.popart.settings.names import reservedAccumPrefix, reservedLossScalingPrefix
from simulator.poplibs import popops
from simulator.poplibs.popops import Operation, expr
from simulator.poplibs.popops.expr import Expr, _1, _2

OPTIMIZER_FROM_HOST = "optimizerFromHost"


@dataclass(slots=True)
class Change:
    """A weight that is about to change: where, and by which gradient."""

    name: str
    home: int
    step: Step


class Kept(NamedTuple):
    """What is kept of a weight between batches: what it is called, the weight, the tensor."""

    key: str
    weight: str
    tensor: Tensor


@dataclass(slots=True)
class Updates:
    """What an optimiser adds to a graph: its numbers, what it keeps, and the changes.

    `around` are the programs before and after the micro-batches of a change.
    """

    optimizer: Optimizer
    lowering: Lowering
    options: SessionOptions
    around: tuple[Program, Program]
    scaling: AutomaticScaling | None = None
    distances: Mapping[str, Sequence[int]] = field(default_factory=dict)  # of a weight's partners
    from_host: Program = field(default_factory=lambda: Program(name=OPTIMIZER_FROM_HOST))
    handles: dict[str, str] = field(default_factory=dict)  # number that can change -> stream
    numbers: dict[str, list[Number]] = field(default_factory=dict)  # of each IPU
    kept: dict[str, Kept] = field(default_factory=dict)
    sums: dict[str, Tensor] = field(default_factory=dict)  # of the gradients of micro-batches

    # Numbers
    def number(self, scalar: Scalar) -> list[Number]:
        """Return a number on each IPU, by how much automatic loss scaling has changed it."""
        numbers = self._of_host(scalar)
        if self.scaling is None or not scalar.power:
            return numbers
        return self.scaling.number(scalar.tensor, numbers, scalar.power)

    def _of_host(self, scalar: Scalar) -> list[Number]:
        """Return a number on each IPU: part of the program, or a tensor that the host can write."""
        graphs = self.lowering.graphs
        if scalar.constant:
            return [scalar.number] * len(graphs)
        if scalar.tensor not in self.numbers:
            graph, name = self.lowering.graph, scalar.tensor
            tensor = graph.addVariable(FLOAT, [], name)
            graph.setTileMapping(tensor, 0)
            self.handles[name], copy = parts.host_to_device(graph, "optimizer", name, tensor)
            self.from_host.add(copy)
            self.numbers[name] = [
                self.lowering.brought(tensor, home, self.from_host, name)
                for home in range(len(graphs))
            ]
        return self.numbers[scalar.tensor]

    def anchors(self) -> dict[str, Tensor]:
        """Return the numbers that the host can change, as they are on the first IPU."""
        tensors = {n: one[0] for n, one in self.numbers.items() if isinstance(one[0], Tensor)}
        scaling = tensors.get(scaling_of(self.optimizer).tensor)
        named = {} if scaling is None else {f"{reservedLossScalingPrefix()}FLOAT": scaling}
        return tensors | named

    # Changes
    def add(self, gradients: Mapping[str, Tensor], weights: Iterable[str], prog: Program) -> None:
        """Add the changes of all weights that have a gradient."""
        names = [name for name in weights if name in gradients]
        changes: Iterable[Change] = (self._begun(name, gradients[name], prog) for name in names)
        if self.optimizer.clips:
            changes = self._clipped(list(changes), prog)
        for change in changes:
            with self._scope(change.name):
                self.optimizer.change(change.step, change.name)
                self._store(change.step)

    def _scope(self, name: str) -> Any:
        kind = type(self.optimizer).__name__
        return self.lowering.scope_of_weight(name, operator=kind)

    def _begun(self, name: str, gradient: Tensor, prog: Program) -> Change:
        """Return the gradient of all micro-batches and replicas, on the IPU where the weight is."""
        lowering, options, weight = self.lowering, self.options, self.lowering.stored[name]
        source, home = lowering.gradient_home(name), lowering.weight_home(name)
        prog, graph = lowering.program(home, prog), lowering.graphs[home]
        inside = self.optimizer.accumulates_in(name) if options.factor > 1 else ""
        replicas = options.total_replicas if inside else 1
        scalars = self.optimizer.scalars(name, options.share, replicas)
        numbers = {key: self.number(scalar)[home] for key, scalar in scalars.items()}
        with self._scope(name):
            near = lowering.carried(gradient, source, home, prog, f"{name}/Grad")
            near = near.reshape(weight.shape)
            step = Step(graph, prog, name, weight, near, numbers, self._kept(graph, name, weight))
            if inside:
                self._accumulate_inside(step, inside)
            elif options.factor > 1:
                self._accumulate(step)
            self._load(step, prog)
            if options.total_replicas > 1:
                partners = self.distances.get(name, of_all(options.total_replicas))
                total = summed(graph, step.gradient, partners, step.prog, name)
                if inside:
                    step.prog.add(Copy(total, step.gradient, name=f"{name}/AllReduce"))
                else:
                    step.gradient = total
        return Change(name, home, step)

    def _accumulate_inside(self, step: Step, key: str) -> None:
        """Add the gradient of a micro-batch to what the optimiser keeps."""
        total, off_chip = step.kept[key], self.lowering.off_chip
        label = f"{key}___{step.name}"
        moves = off_chip is not None and off_chip.holds(label, SUM, total)
        if off_chip and moves:
            off_chip.load(label, total, step.prog)
        self.optimizer.accumulate(step)
        if off_chip and moves:
            off_chip.store(label, total, step.prog)
        step.gradient, step.prog = total, self.around[1]

    # Off the chip
    def _kept_off_chip(self, step: Step) -> dict[str, Tensor]:
        """Return what is kept of a weight off the chip, by the names of its tensors."""
        off_chip, inside = self.lowering.off_chip, self.optimizer.accumulates_in(step.name)
        if off_chip is None:
            return {}
        kinds = {key: SUM if key == inside else STATE for key in step.kept}
        named = {key: f"{key}___{step.name}" for key in step.kept}
        return {
            named[key]: tensor
            for key, tensor in step.kept.items()
            if off_chip.holds(named[key], kinds[key], tensor)
        }

    def _load(self, step: Step, prog: Program) -> None:
        """Load what a change reads: what is kept, and behind micro-batches the weight again.

        `prog` is the program of the micro-batch.
        """
        off_chip = self.lowering.off_chip
        if off_chip is None:
            return
        for label, tensor in self._kept_off_chip(step).items():
            off_chip.load(label, tensor, step.prog)
        if step.prog is not prog:
            off_chip.loaded.discard(step.name)
        off_chip.load_weights({step.name: step.weight}, step.prog, len(step.prog.children))

    def _store(self, step: Step) -> None:
        """Store what a change has written off the chip."""
        off_chip = self.lowering.off_chip
        if off_chip is None:
            return
        if off_chip.holds(step.name, WEIGHT, step.weight):
            off_chip.store(step.name, step.weight, step.prog)
        for label, tensor in self._kept_off_chip(step).items():
            off_chip.store(label, tensor, step.prog)

    def _accumulate(self, step: Step) -> None:
        begin, end = self.around
        label, kind = f"{step.name}/Accumulate", self.optimizer.accumulator_type()
        dtype = ELEMENT_TYPES[kind].device if kind else step.weight.dtype
        total = step.graph.clone(step.weight, f"{label}d", dtype)
        name, off_chip = f"{reservedAccumPrefix()}{step.name}", self.lowering.off_chip
        moves = off_chip is not None and off_chip.holds(name, SUM, total)
        popops.zero(step.graph, total, begin, f"{label}d")
        if off_chip and moves:
            off_chip.store(name, total, begin)
            off_chip.load(name, total, step.prog)
        if dtype == step.gradient.dtype:
            popops.addInPlace(step.graph, total, step.gradient, step.prog, label)
        else:
            popops.scaledAddTo(step.graph, total, step.gradient, 1.0, step.prog, label)
        if off_chip and moves:
            off_chip.store(name, total, step.prog)
            off_chip.load(name, total, end)
        step.gradient, step.prog = total, end
        self.sums[name] = total

    def _kept(self, graph: Graph, name: str, weight: Tensor) -> dict[str, Tensor]:
        """Add what the optimiser keeps for a weight, which lies like it; a count is one number."""
        states = {}
        for key, kind in self.optimizer.kept(name).items():
            dtype = ELEMENT_TYPES[kind].device if kind else weight.dtype
            label = f"{key}___{name}"
            if key == "Step":
                states[key] = graph.addVariable(dtype, [], label)
                graph.setTileMapping(states[key], int(graph.tile_ranges(weight)[2][0]))
            else:
                states[key] = graph.clone(weight, label, dtype)
            self.kept[label] = Kept(key, name, states[key])
        return states

    # Clipping
    def _clipped(self, changes: Sequence[Change], prog: Program) -> Iterator[Change]:
        """Limit the norms of gradients, each of which one of the limits holds for."""
        for clip in self.optimizer.clips:
            covered = [change for change in changes if clip.covers(change.name)]
            if covered:
                self._clip(covered, clip)
        return iter(changes)

    def _clip(self, covered: Sequence[Change], clip: ClipNormSettings) -> None:
        lowering, first = self.lowering, covered[0]
        home, prog = first.home, first.step.prog
        graph, label = lowering.graphs[home], "ClipNorm"
        with lowering.graph.debug_scope(label, "popart", operator=label):
            squares = [self._square(change, home) for change in covered]
            total = popops.reduce(graph, concat(squares, 0), [0], Operation.ADD, prog, label)
            scaling = self.loss_scaling(self.options.share)[home]
            limit = clip.getMaxNorm()
            terms = Terms()
            norm, most = expr.Sqrt(terms(total)), terms(scaling) * terms(limit)
            factor = popops.map(graph, most / expr.Max(norm, most), terms.tensors, prog, label)
            for change in covered:
                step = change.step
                near = lowering.brought(factor, change.home, step.prog, label)
                cast: Expr = (
                    _2 if step.gradient.dtype == FLOAT else expr.Cast(_2, step.gradient.dtype)
                )
                step.gradient = popops.map(
                    step.graph, _1 * cast, [step.gradient, near], step.prog, f"{step.name}/{label}"
                )

    def _square(self, change: Change, home: int) -> Tensor:
        """Return the sum of the squares of a gradient, where the sum of all is made."""
        step, params = change.step, popops.ReduceParams(Operation.SQUARE_ADD)
        name, flat = f"{step.name}/ClipNorm", step.gradient.flatten()
        total = popops.reduce(step.graph, flat, FLOAT, [0], params, step.prog, name)
        return self.lowering.brought(total.reshape([1]), home, step.prog, name)

    def loss_scaling(self, share: float = 1.0) -> list[Number]:
        """Return the gradient of a loss on each IPU; of gradients by a share."""
        return self.number(scaling_of(self.optimizer, share))


def scaling_of(optimizer: Optimizer, share: float = 1.0) -> Scalar:
    """Return the loss scaling; of what is a sum that only a share counts of, as much more."""
    value = optimizer.of("")[LOSS_SCALING]
    name = "lossScaling" if share == 1 else "lossScalingOfSums"
    return Scalar(f"{name}___default___FLOAT", value.value / share, value.constant, 1)


def numbers_of(
    optimizer: Optimizer, weights: Iterable[str], options: SessionOptions
) -> dict[str, float]:
    """Return the numbers that a program may read, by the names of their tensors."""
    scalars = [scaling_of(optimizer), scaling_of(optimizer, options.share)]
    for name in weights:
        inside = options.factor > 1 and optimizer.accumulates_in(name)
        replicas = options.total_replicas if inside else 1
        scalars.extend(optimizer.scalars(name, options.share, replicas).values())
    return {scalar.tensor: scalar.number for scalar in scalars}
