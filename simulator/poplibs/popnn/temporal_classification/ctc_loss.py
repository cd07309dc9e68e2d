"""The connectionist temporal classification loss (popnn/CTCLoss.hpp)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from simulator.codelets.costs import ceil_div
from simulator.graph.errors import poplibs_error
from simulator.graph.graph import Graph
from simulator.graph.option_table import Option, checked, defaults
from simulator.graph.program import Copy, Sequence
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import FLOAT, HALF, INT, UNSIGNED_INT, Type
from simulator.logging import library_call
from simulator.poplibs import popops
from simulator.poplibs.popnn.nonlinearities.softmax import logSoftmax
from simulator.poplibs.popnn.temporal_classification.ctc_classes import BLANK, LabelClasses
from simulator.poplibs.popnn.temporal_classification.ctc_loss_plan import Plan, best_plan, bounds
from simulator.poplibs.popnn.temporal_classification.ctc_loss_steps import Tables
from simulator.poplibs.popops.elementwise.cast import cast
from simulator.poplibs.popops.expr import Const, Exp, PlaceHolder, Select
from simulator.poplibs.popops.regions import debug_name

_1, _2, _3 = (PlaceHolder(number) for number in (1, 2, 3))

Options = Mapping[str, object] | None
_TAKEN = "taken, and without effect here"
PLAN_OPTIONS = {
    "partialsType": Option("float", "type of the sums", allowed=("float", "half")),
    "availableMemoryProportion": Option("0.6", "most of a tile for temporary data"),
    "planConstraints": Option("", "parts that the plan has to have", form="json"),
    "enableReducedClassesInLabel": Option(False, "only the classes of labels are computed"),
}
OPTIONS = PLAN_OPTIONS | {
    "includeSoftmaxGradient": Option(True, "the gradient is that of the softmax's input"),
    "zeroInfinity": Option(False, "infinite losses are zero, and so are their gradients"),
    "zeroInfinityRelTolerance": Option("0.01", _TAKEN),
    "returnReducedCodeletGradient": Option(False, _TAKEN),
}


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
    """Plan a loss: into how many parts samples, steps and labels are cut.

    `planConstraints` are an object: {"parallel": {"batch", "time", "label",
    "lastBlankOnSeparateTile"}}. Raises poplibs_error and InvalidOptionError.

    >>> from simulator import poplar, popnn
    >>> from simulator.trial import Trial
    >>> trial, kind = Trial(), poplar.FLOAT
    >>> sizes = 1, 1, 1, 2  # samples, steps, labels, classes
    >>> plan = popnn.ctc.plan(trial.graph, kind, kind, *sizes)
    >>> plan.numClasses
    2
    """
    values = defaults(PLAN_OPTIONS, checked(PLAN_OPTIONS, options or {}, "ctc::plan"))
    sizes = (batchSize, maxTime, maxLabelLength, numClasses)
    if min(sizes) < 1:
        raise poplibs_error(
            f"ctc::plan: batch {batchSize}, time {maxTime}, labels {maxLabelLength}, classes "
            f"{numClasses}; at least 1 of each is needed"
        )
    partials = HALF if values["partialsType"] == "half" else FLOAT
    constraints = json.loads(str(values["planConstraints"]) or "{}")
    proportion = float(str(values["availableMemoryProportion"]))
    reduced = bool(values["enableReducedClassesInLabel"])
    if reduced:
        sizes = (batchSize, maxTime, maxLabelLength, maxLabelLength + 1)
    problem = Plan(inType, outType, *sizes, partials, reducedClasses=reduced)
    return best_plan(problem, graph.target, constraints, proportion)


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
    """Add log probabilities [time, batch, classes]: steps over the tiles of their samples.

    >>> from simulator import poplar, popnn
    >>> from simulator.trial import Trial
    >>> trial, kind = Trial(), poplar.FLOAT
    >>> sizes = 1, 1, 1, 2  # samples, steps, labels, classes
    >>> plan = popnn.ctc.plan(trial.graph, kind, kind, *sizes)
    >>> popnn.ctc.createDataInput(trial.graph, kind, 1, 1, 2, plan).shape
    (1, 1, 2)
    """
    _check_kind("createDataInput", plan)
    shape = [batchSize, maxTime, numClasses]
    data = graph.addVariable(type, shape, debug_name(debugContext, "data"))
    parts = min(plan.time * plan.label_parts, maxTime)
    steps = ceil_div(maxTime, parts)
    while steps * numClasses * type.size % 4:  # a part is of whole words
        steps += 1
    first = np.arange(0, maxTime, steps)
    sample = np.arange(batchSize)[:, None] * maxTime
    low = (sample + first) * numClasses
    high = (sample + np.minimum(first + steps, maxTime)) * numClasses
    part = np.arange(batchSize)[:, None] // ceil_div(batchSize, plan.batch)
    tile = part * (plan.time * plan.label_parts) + np.arange(len(first))
    graph.map_ranges(data, low.ravel(), high.ravel(), tile.ravel())
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
    """Add labels [batch, longest], each part with the first steps of its sample.

    >>> from simulator import poplar, popnn
    >>> from simulator.trial import Trial
    >>> trial, kind = Trial(), poplar.FLOAT
    >>> sizes = 1, 1, 1, 2  # samples, steps, labels, classes
    >>> plan = popnn.ctc.plan(trial.graph, kind, kind, *sizes)
    >>> popnn.ctc.createLabelsInput(trial.graph, poplar.UNSIGNED_INT, 1, 1, plan).shape
    (1, 1)
    """
    _check_kind("createLabelsInput", plan)
    name = debug_name(debugContext, "labels")
    labels = graph.addVariable(type, [batchSize, maxLabelLength], name)
    cuts = bounds(maxLabelLength, plan.label)
    sample = np.arange(batchSize)[:, None] * maxLabelLength
    part = np.arange(batchSize)[:, None] // ceil_div(batchSize, plan.batch)
    tile = part * (plan.time * plan.label_parts) + np.arange(plan.label)
    low, high = (sample + cuts[:-1]).ravel(), (sample + cuts[1:]).ravel()
    graph.map_ranges(labels, low, high, tile.ravel())
    return labels


def _check_kind(name: str, plan: object) -> None:
    """Raise poplibs_error for what is no plan of a loss."""
    if not isinstance(plan, Plan):
        raise poplibs_error(f"{name}: plan is {plan!r}; one of ctc::plan is needed")


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
    `labelLengths` labels.

    >>> from simulator import poplar, popnn
    >>> from simulator.trial import Trial
    >>> trial, kind = Trial(), poplar.FLOAT
    >>> sizes = 1, 1, 1, 2  # samples, steps, labels, classes
    >>> plan = popnn.ctc.plan(trial.graph, kind, kind, *sizes)
    >>> labels, steps, length = (trial.tensor(n, poplar.UNSIGNED_INT) for n in ([[1]], [1], [1]))
    >>> log_probs = trial.tensor([[[-0.6931472, -0.6931472]]])  # either class, as likely
    >>> operands = log_probs, labels, steps, length, trial.prog, 0, plan
    >>> trial.values(popnn.ctc.calcCTCLossLogProbabilities(trial.graph, kind, *operands))  # ln 2
    [0.693...]
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
    """Return the losses of the log softmax of `logits`.

    >>> from simulator import poplar, popnn
    >>> from simulator.trial import Trial
    >>> trial, kind = Trial(), poplar.FLOAT
    >>> sizes = 1, 1, 1, 2  # samples, steps, labels, classes
    >>> plan = popnn.ctc.plan(trial.graph, kind, kind, *sizes)
    >>> labels, steps, length = (trial.tensor(n, poplar.UNSIGNED_INT) for n in ([[1]], [1], [1]))
    >>> logits = trial.tensor([[[0.0, 0.0]]])  # either class, as likely
    >>> operands = logits, labels, steps, length, trial.prog, 0, plan
    >>> trial.values(popnn.ctc.calcCTCLossLogits(trial.graph, kind, *operands))  # ln 2
    [0.693...]
    """
    call = _Call.of(plan, debugContext, options, gradient=False)
    probs = logSoftmax(graph, logits, prog, debug_name(debugContext, "CTCLossLogits"))
    operands = (probs, labels, dataLengths, labelLengths)
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

    >>> from simulator import poplar, popnn
    >>> from simulator.trial import Trial
    >>> trial, kind = Trial(), poplar.FLOAT
    >>> sizes = 1, 1, 1, 2  # samples, steps, labels, classes
    >>> plan = popnn.ctc.plan(trial.graph, kind, kind, *sizes)
    >>> labels, steps, length = (trial.tensor(n, poplar.UNSIGNED_INT) for n in ([[1]], [1], [1]))
    >>> log_probs = trial.tensor([[[-0.6931472, -0.6931472]]])  # either class, as likely
    >>> operands = log_probs, labels, steps, length, trial.prog, 0, plan
    >>> loss, gradient = popnn.ctc.calcLossAndGradientLogProbabilities(trial.graph, kind, *operands)
    >>> trial.values(loss, gradient)  # ln 2; 0.5 of each class, less 1 of the label
    [[0.693...], [[[0.5, -0.5]]]]
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
    """Return the losses of the log softmax of `logits`, and their gradient by `logits`.

    >>> from simulator import poplar, popnn
    >>> from simulator.trial import Trial
    >>> trial, kind = Trial(), poplar.FLOAT
    >>> sizes = 1, 1, 1, 2  # samples, steps, labels, classes
    >>> plan = popnn.ctc.plan(trial.graph, kind, kind, *sizes)
    >>> labels, steps, length = (trial.tensor(n, poplar.UNSIGNED_INT) for n in ([[1]], [1], [1]))
    >>> logits = trial.tensor([[[0.0, 0.0]]])  # either class, as likely
    >>> operands = logits, labels, steps, length, trial.prog, 0, plan
    >>> loss, gradient = popnn.ctc.calcLossAndGradientLogits(trial.graph, kind, *operands)
    >>> trial.values(loss, gradient)  # ln 2; 0.5 of each class, less 1 of the label
    [[0.693...], [[[0.5, -0.5]]]]
    """
    call = _Call.of(plan, debugContext, options, gradient=True)
    probs = logSoftmax(graph, logits, prog, debug_name(debugContext, "CTCLossLogits"))
    operands = (probs, labels, dataLengths, labelLengths)
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
        if not isinstance(plan, str) and plan is not None:
            _check_kind(name, plan)
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
    """Add the loss and, if it is wanted, its gradient."""
    name = call.name
    probs, labels = operands[:2]
    _check(name, dtype, operands, blank)
    _check_plan(name, call.plan, operands)
    steps, batch, classes = probs.shape
    sizes = (probs.dtype, dtype, batch, steps, labels.dim(1), classes)
    cut = call.plan or best_plan(Plan(*sizes), graph.target, {}, 0.6)
    if min(batch, steps, labels.dim(1)) < 1:
        raise poplibs_error(f"{name}: {probs!r} with labels {labels!r}; there are none")
    with graph.debug_scope(name, "popnn"):
        classes_of = None
        if cut.reducedClasses:
            classes_of = LabelClasses.of(graph, probs, labels, blank, prog, f"{name}/PreProcess")
            operands = (classes_of.probs, classes_of.labels, *operands[2:])
            blank = BLANK
        tables = Tables(graph, prog, cut, operands, blank, name)
        loss, joint = tables.run(gradient=call.gradient)
        losses = popops.neg(graph, loss, prog, f"{name}/loss")
        if losses.dtype != dtype:
            losses = cast(graph, losses, dtype, prog, f"{name}/loss")
        results = [losses]
        if joint is not None:
            rows = operands[0].dimShuffle([1, 0, 2])
            slope = _gradient(graph, rows, joint, loss, operands[2], call, prog, dtype)
            if classes_of:
                label, every = f"{name}/PostProcess", probs.dimShuffle([1, 0, 2])
                others = graph.clone(every, label, dtype)
                popops.zero(graph, others, prog, label)
                if call.softmax:
                    _add_softmax(graph, others, every, operands[2], prog, label)
                slope = classes_of.spread(graph, slope, others, prog, label)
            results.append(slope)
        if call.zero_infinity:
            _zero_infinite(graph, results, prog, name)
    return results


def _gradient(
    graph: Graph,
    rows: Tensor,
    joint: Tensor,
    loss: Tensor,
    times: Tensor,
    call: _Call,
    prog: Sequence,
    dtype: Type,
) -> Tensor:
    """Return what each class of a step adds: exp(joint - loss), taken off the softmax if wanted.

    An infinite loss has none of it; behind the last step there is no softmax.
    """
    name, batch = f"{call.name}/gradient", rows.dim(0)
    finite = popops.isFinite(graph, loss, prog, name)
    known = popops.map(
        graph, Select(_1, Const(0.0), _2), [loss, finite], prog, f"{name}/known"
    ).reshape([batch, 1, 1])
    shape = finite.reshape([batch, 1, 1])
    slope = popops.map(
        graph, -Select(Exp(_1 - _2), Const(0.0), _3), [joint, known, shape], prog, name
    )
    if slope.dtype != dtype:
        slope = cast(graph, slope, dtype, prog, name)
    if call.softmax:
        _add_softmax(graph, slope, rows, times, prog, name)
    return slope


def _add_softmax(
    graph: Graph, slope: Tensor, rows: Tensor, times: Tensor, prog: Sequence, name: str
) -> None:
    """Add exp of log probabilities [batch, steps, classes] up to the last step of each sample."""
    batch, steps, _ = rows.shape
    number = graph.addConstant(times.dtype, [1, steps, 1], np.arange(steps), f"{name}/steps")
    graph.setTileMapping(number, 0)
    live = popops.lt(graph, number, times.reshape([batch, 1, 1]), prog, f"{name}/live")
    near = graph.clone(slope, f"{name}/logProbs", rows.dtype)
    prog.add(Copy(rows, near, name=f"{name}/logProbs"))
    if rows.dtype != slope.dtype:
        near = cast(graph, near, slope.dtype, prog, name)
    expression = _1 + Select(Exp(_2), Const(0.0), _3)
    popops.mapInPlace(graph, expression, [slope, near, live], prog, f"{name}/softmax")


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
    """Raise poplibs_error for a plan of tensors of other sizes."""
    if plan is None:
        return
    sizes = (*operands[0].shape, operands[1].dim(1))
    classes = operands[0].dim(2) if plan.reducedClasses else plan.numClasses
    most = (plan.maxTime, plan.batchSize, classes, plan.maxLabelLength)
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
