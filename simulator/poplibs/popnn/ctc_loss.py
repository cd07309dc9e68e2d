"""The connectionist temporal classification loss (popnn/CTCLoss.hpp)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from simulator.codelets.layers import ctc_loss as vertices
from simulator.graph.errors import poplibs_error
from simulator.graph.graph import Graph
from simulator.graph.option_table import Option, checked, defaults
from simulator.graph.program import Copy, Execute, Sequence
from simulator.graph.tensor import Tensor
from simulator.graph.types import FLOAT, HALF, INT, UNSIGNED_INT, Type
from simulator.graph.vertex import Direction, Field, VertexGroup, cut_field
from simulator.logging import library_call
from simulator.poplibs import popops
from simulator.poplibs.popnn.softmax import logSoftmax
from simulator.poplibs.popops.elementwise.cast import cast
from simulator.poplibs.popops.regions import debug_name

Options = Mapping[str, object] | None
_TAKEN = "taken, and without effect here"
PLAN_OPTIONS = {
    "partialsType": Option("float", "type of the sums", allowed=("float", "half")),
    "availableMemoryProportion": Option("0.6", _TAKEN),
    "planConstraints": Option("", _TAKEN, form="json"),
    "enableReducedClassesInLabel": Option(False, _TAKEN),
}
OPTIONS = PLAN_OPTIONS | {
    "includeSoftmaxGradient": Option(True, "the gradient is that of the softmax's input"),
    "zeroInfinity": Option(False, "infinite losses are zero, and so are their gradients"),
    "zeroInfinityRelTolerance": Option("0.01", _TAKEN),
    "returnReducedCodeletGradient": Option(False, _TAKEN),
}


@dataclass(frozen=True, slots=True)
class Plan:
    """What a loss is planned for: its samples are spread over the tiles, one tile a sample.

    PopLibs' plans cut steps and labels over tiles too.
    """

    inType: Type
    outType: Type
    batchSize: int
    maxTime: int
    maxLabelLength: int
    numClasses: int
    partialsType: Type = FLOAT


@library_call("POPNN")
def plan(
    graph: Graph,
    inType: Type,
    outType: Type,
    batchSize: int,
    maxTime: int,
    maxLabelLength: int,
    numClasses: int,
    options: Options = None,
) -> Plan:
    """Plan a loss; raises poplibs_error and InvalidOptionError."""
    values = defaults(PLAN_OPTIONS, checked(PLAN_OPTIONS, options or {}, "ctc::plan"))
    sizes = (batchSize, maxTime, maxLabelLength, numClasses)
    if min(sizes) < 1:
        raise poplibs_error(
            f"ctc::plan: batch {batchSize}, time {maxTime}, labels {maxLabelLength}, classes "
            f"{numClasses}; at least 1 of each is needed"
        )
    return Plan(inType, outType, *sizes, HALF if values["partialsType"] == "half" else FLOAT)


@library_call("POPNN")
def createDataInput(
    graph: Graph,
    type: Type,
    batchSize: int,
    maxTime: int,
    numClasses: int,
    plan: Plan,
    debugContext: str = "",
) -> Tensor:
    """Add log probabilities [time, batch, classes], each sample on its tile."""
    shape = [batchSize, maxTime, numClasses]
    data = graph.addVariable(type, shape, debug_name(debugContext, "data"))
    _map_samples(graph, data, batchSize)
    return data.dimShuffle([1, 0, 2])


@library_call("POPNN")
def createLabelsInput(
    graph: Graph,
    type: Type,
    batchSize: int,
    maxLabelLength: int,
    plan: Plan,
    debugContext: str = "",
) -> Tensor:
    """Add labels [batch, longest], each sample on its tile."""
    name = debug_name(debugContext, "labels")
    labels = graph.addVariable(type, [batchSize, maxLabelLength], name)
    _map_samples(graph, labels, batchSize)
    return labels


def _map_samples(graph: Graph, tensor: Tensor, batch: int) -> None:
    """Spread the samples of a tensor over the tiles."""
    size = tensor.numElements() // max(batch, 1)
    begins = np.arange(batch) * size
    graph.map_ranges(tensor, begins, begins + size, np.arange(batch) % graph.target.num_tiles)


@library_call("POPNN")
def calcCTCLossLogProbabilities(
    graph: Graph,
    outType: Type,
    logProbs: Tensor,
    labels: Tensor,
    probLengths: Tensor,
    labelLengths: Tensor,
    prog: Sequence,
    blankClass: int,
    plan: Plan | str | None = None,
    debugContext: str = "",
    options: Options = None,
) -> Tensor:
    """Return minus the log probability [batch] of labels [batch, longest].

    `logProbs` are [steps, batch, classes], of which each sample has `probLengths` steps and
    `labelLengths` labels. Each sample is computed on one tile.
    """
    operands = (logProbs, labels, probLengths, labelLengths)
    call = _Call.of(plan, debugContext, options, gradient=False)
    return _added(graph, outType, operands, prog, blankClass, call)[0]


@library_call("POPNN")
def calcCTCLossLogits(
    graph: Graph,
    outType: Type,
    logits: Tensor,
    labels: Tensor,
    dataLengths: Tensor,
    labelLengths: Tensor,
    prog: Sequence,
    blankClass: int,
    plan: Plan,
    debugContext: str = "",
    options: Options = None,
) -> Tensor:
    """Return the losses of the log softmax of `logits`."""
    probs = logSoftmax(graph, logits, prog, debug_name(debugContext, "CTCLossLogits"))
    operands = (probs, labels, dataLengths, labelLengths)
    call = _Call.of(plan, debugContext, options, gradient=False)
    return _added(graph, outType, operands, prog, blankClass, call)[0]


@library_call("POPNN")
def calcLossAndGradientLogProbabilities(
    graph: Graph,
    outType: Type,
    logProbs: Tensor,
    labels: Tensor,
    probLengths: Tensor,
    labelLengths: Tensor,
    prog: Sequence,
    blankClass: int,
    plan: Plan | str | None = None,
    debugContext: str = "",
    options: Options = None,
) -> tuple[Tensor, Tensor]:
    """Return the losses [batch], and their gradient [steps, batch, classes].

    With a plan it is the gradient by what `logProbs` are the log softmax of, unless the option
    includeSoftmaxGradient is false, as without a plan. Where labels cannot come out of so many
    steps, a loss is infinite; by the option zeroInfinity it and its gradient are zero.
    """
    operands = (logProbs, labels, probLengths, labelLengths)
    call = _Call.of(plan, debugContext, options, gradient=True)
    losses, gradient = _added(graph, outType, operands, prog, blankClass, call)
    return losses, gradient.dimShuffle([1, 0, 2])


@library_call("POPNN")
def calcLossAndGradientLogits(
    graph: Graph,
    outType: Type,
    logits: Tensor,
    labels: Tensor,
    dataLengths: Tensor,
    labelLengths: Tensor,
    prog: Sequence,
    blankClass: int,
    plan: Plan,
    debugContext: str = "",
    options: Options = None,
) -> tuple[Tensor, Tensor]:
    """Return the losses of the log softmax of `logits`, and their gradient by `logits`."""
    probs = logSoftmax(graph, logits, prog, debug_name(debugContext, "CTCLossLogits"))
    operands = (probs, labels, dataLengths, labelLengths)
    call = _Call.of(plan, debugContext, options, gradient=True)
    losses, gradient = _added(graph, outType, operands, prog, blankClass, call)
    return losses, gradient.dimShuffle([1, 0, 2])


@dataclass(frozen=True, slots=True)
class _Call:
    """What a loss is asked for besides its operands."""

    name: str
    plan: Plan | None
    gradient: bool
    softmax: bool
    zero_infinity: bool

    @classmethod
    def of(
        cls, plan: Plan | str | None, context: str, options: Options, *, gradient: bool
    ) -> _Call:
        """Read options; a debug context may stand in the place of a plan."""
        name = debug_name(plan if isinstance(plan, str) else context, "CTCLoss")
        loss_plan = plan if isinstance(plan, Plan) else None
        values = checked(OPTIONS, options or {}, name)
        softmax = bool(values.get("includeSoftmaxGradient", loss_plan is not None))
        return cls(name, loss_plan, gradient, softmax, bool(values.get("zeroInfinity", False)))


def _added(
    graph: Graph,
    dtype: Type,
    operands: tuple[Tensor, ...],
    prog: Sequence,
    blank: int,
    call: _Call,
) -> list[Tensor]:
    """Add a vertex for each sample, the samples spread over the tiles."""
    name, gradient = call.name, call.gradient
    probs, labels = operands[:2]
    _check(name, dtype, operands, blank)
    _check_plan(name, call.plan, operands)
    steps, batch, classes = probs.shape
    with graph.debug_scope(name, "popnn"):
        rows = cast(graph, probs, dtype, prog, name) if probs.dtype != dtype else probs
        # The data of each sample come to the tile that computes it.
        tiles = np.arange(batch) % graph.target.num_tiles
        results = {"loss": graph.addVariable(dtype, [batch], f"{name}/loss")}
        if gradient:
            results["grad"] = graph.addVariable(dtype, [batch, steps, classes], f"{name}/grad")
        for tensor in results.values():
            per_sample = tensor.numElements() // max(batch, 1)
            starts = np.arange(batch) * per_sample
            graph.map_ranges(tensor, starts, starts + per_sample, tiles)
        compute_set = graph.addComputeSet(name)
        begin = np.arange(batch)

        def field(label: str, direction: Direction, tensor: Tensor) -> Field:
            size = tensor.numElements() // max(batch, 1)
            return cut_field(label, direction, tensor.flatten(), begin * size, (begin + 1) * size)

        read = {"logProbs": rows.dimShuffle([1, 0, 2]), "labels": labels, "validTime": operands[2],
                "validLabel": operands[3]}  # fmt: skip
        fields = {label: field(label, "input", tensor) for label, tensor in read.items()}
        fields |= {label: field(label, "output", tensor) for label, tensor in results.items()}
        sizes = np.full(batch, steps), np.full(batch, labels.shape[1])
        cycles = vertices.cycles(*sizes, gradient=gradient)
        kind_of = vertices.codelet(classes, blank, gradient=gradient, softmax=call.softmax)
        graph.add_vertices(VertexGroup(compute_set.id, kind_of, tiles, fields, {}, cycles))
        prog.add(Execute(compute_set, name))
        if call.zero_infinity:
            _zero_infinite(graph, list(results.values()), prog, name)
    return list(results.values())


def _zero_infinite(graph: Graph, results: list[Tensor], prog: Sequence, name: str) -> None:
    """Replace infinite losses, and their gradients, by zeros."""
    losses = results[0]
    finite = popops.isFinite(graph, losses, prog, f"{name}/Compare")
    zero = graph.addConstant(losses.dtype, [], 0, f"{name}/zero")
    graph.setTileMapping(zero, 0)
    for tensor in reversed(results):
        mask = finite.reshape([finite.dim(0), *[1] * (tensor.rank() - 1)])
        label = f"{name}/zeroInfinity"
        prog.add(Copy(popops.select(graph, tensor, zero, mask, prog, label), tensor, name=label))


def _check_plan(name: str, plan: Plan | None, operands: tuple[Tensor, ...]) -> None:
    """Raise poplibs_error for a plan of smaller tensors."""
    if plan is None:
        return
    sizes = (*operands[0].shape, operands[1].dim(1))
    most = (plan.maxTime, plan.batchSize, plan.numClasses, plan.maxLabelLength)
    if any(size > limit for size, limit in zip(sizes, most, strict=True)):
        raise poplibs_error(
            f"{name}: {operands[0]!r} with labels {operands[1]!r}; the plan is for {most[0]} "
            f"steps, {most[1]} samples, {most[2]} classes, {most[3]} labels"
        )


def _check(name: str, dtype: Type, operands: tuple[Tensor, ...], blank: int) -> None:
    """Raise poplibs_error for types and shapes that do not fit."""
    probs, labels, times, lengths = operands
    integers = (INT, UNSIGNED_INT)
    if probs.rank() != 3 or probs.dtype not in (FLOAT, HALF) or dtype not in (FLOAT, HALF):
        raise poplibs_error(f"{name}: {probs!r}; float or half [steps, batch, classes] is needed")
    _, batch, classes = probs.shape
    if labels.rank() != 2 or labels.shape[0] != batch or labels.dtype not in integers:
        raise poplibs_error(f"{name}: labels {labels!r}; integers [{batch}, longest] are needed")
    for tensor in (times, lengths):
        if tensor.shape != (batch,) or tensor.dtype not in integers:
            raise poplibs_error(f"{name}: lengths {tensor!r}; integers [{batch}] are needed")
    if not 0 <= blank < classes:
        raise poplibs_error(f"{name}: blank class {blank}; there are {classes}")
