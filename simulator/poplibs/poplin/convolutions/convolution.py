"""Convolutions: forward, backward, and the gradient of the weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import ceil, gcd
from typing import Any

import numpy as np

from simulator.codelets.products.block_layout import Layout
from simulator.graph.errors import NoPlanError, poplibs_error
from simulator.graph.graph import Graph
from simulator.graph.machine.target import Target
from simulator.graph.program import Copy, Sequence
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import FLOAT, IntArray
from simulator.logging import library_call, log
from simulator.poplibs.poplin.convolutions.combine import combine
from simulator.poplibs.poplin.convolutions.create import (
    PlanningCache,
    create_input,
    create_weights,
    rearranged,
    with_whole_groups,
)
from simulator.poplibs.poplin.convolutions.loop import Operands, in_loop
from simulator.poplibs.poplin.convolutions.multiply import CHANNEL, multiply
from simulator.poplibs.poplin.convolutions.operands import run_of, ungrouped
from simulator.poplibs.poplin.convolutions.regroup import Regrouping, transposed_where_it_lies
from simulator.poplibs.poplin.planning.joint_plan import plan_of
from simulator.poplibs.poplin.planning.options import CONVOLUTION, settings_of
from simulator.poplibs.poplin.planning.params import (
    ConvParams,
    InputTransform,
    getWeightUpdateParams,
)
from simulator.poplibs.poplin.planning.plan import Plan
from simulator.poplibs.poplin.planning.planner import Settings, fixed_plan
from simulator.poplibs.poplin.planning.problem import (
    Problem,
    compact,
    flattened,
    kept_of,
    problem_of,
    slice_kernel,
    total,
)
from simulator.poplibs.popops.elementwise.cast import cast
from simulator.poplibs.popops.elementwise.fill import zero
from simulator.poplibs.popops.elementwise.scaled_add import scaledAddTo
from simulator.poplibs.popops.overloads import NEEDED, arguments_of
from simulator.poplibs.popops.regions import debug_name
from simulator.poplibs.poputil import mapTensorLinearly

Options = Mapping[str, object] | None
Padding = tuple[tuple[int, int], ...]
WEIGHT_UPDATE_GRAIN = 8  # channels: input channels are its batch, and lie together in groups


@library_call("POPLIN")
def convolution(
    graph: Graph,
    input: Tensor,
    weights: Tensor,
    params: ConvParams,
    transposeAndFlipWeights: bool,
    prog: Sequence,
    debugContext: str = "",
    options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor:
    """Convolve [batch, channels, *field] with [groups, outputs, inputs, *kernel].

    With `transposeAndFlipWeights` the weights are those of the forward pass, [groups, inputs,
    outputs, *kernel], and their kernel is turned round. Gives [batch, channels, *field].

    >>> from simulator import poplar, poplin
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> params = poplin.ConvParams(poplar.FLOAT, 1, [4], [2], 1, 1)
    >>> x, weights = trial.tensor([[[1.0, 2.0, 3.0, 4.0]]]), trial.tensor([[[[1.0, 10.0]]]])
    >>> out = poplin.convolution(trial.graph, x, weights, params, False, trial.prog)
    >>> trial.values(out)
    [[[21.0, 32.0, 43.0]]]
    """
    name = debug_name(debugContext, "Conv_1")
    settings = settings_of(graph.target, CONVOLUTION, options, name)
    kernel = weights
    if transposeAndFlipWeights:
        kernel = _swap_channels(weights, name)
        for axis in range(params.getNumFieldDims()):
            kernel = kernel.reverse(3 + axis)
    _check(name, input, params.input_shape(), params, "input")
    _check(name, kernel, params.weights_shape(), params, "weights")
    groups, batch = params.numConvGroups, params.batchSize
    apart = input.reshape(
        (batch, groups, params.inputChannelsPerConvGroup, *params.inputFieldShape)
    ).dimShufflePartial([1, 2, 0], [0, 1, 2])
    left = transformed(apart, params.inputTransform)
    right = transformed(kernel, params.kernelTransform)
    problem = problem_of(params)
    out = convolve(graph, problem, left, right, prog, name, settings, _padding(params))
    merged = out.dimShufflePartial([2, 0, 1], [0, 1, 2])
    return merged.reshape(params.output_shape())


def _swap_channels(weights: Tensor, name: str) -> Tensor:
    if weights.rank() < 3:
        raise poplibs_error(
            f"{name}: weights {weights!r}; [groups, outputs, inputs, *kernel] is needed"
        )
    return weights.dimShufflePartial([1], [2])


def _check(
    name: str, tensor: Tensor, shape: tuple[int, ...], params: ConvParams, operand_name: str
) -> None:
    if tensor.shape != shape or tensor.dtype != params.dataType:
        raise poplibs_error(
            f"{name}: {operand_name} {tensor!r}; {params.dataType}{list(shape)} is needed"
        )


def transformed(tensor: Tensor, transform: InputTransform) -> Tensor:
    """Cut off what is truncated, and turn round what is flipped; the rest is in the `Axis`."""
    for axis, size in enumerate(tensor.shape[3:]):
        low, high = transform.truncationLower[axis], transform.truncationUpper[axis]
        tensor = tensor.slice(low, size - high, 3 + axis)
        if transform.flip[axis]:
            tensor = tensor.reverse(3 + axis)
    return tensor


def convolve(
    graph: Graph,
    problem: Problem,
    left: Tensor,
    right: Tensor,
    prog: Sequence,
    name: str,
    settings: Settings,
    padding: Padding = (),
) -> Tensor:
    """Return [g][co][n][*field] for [g][ci][n][*input] and [g][co][ci][*kernel].

    `padding` are the zeros below and above in each dimension of the result.
    """
    axes_kept = [kept_of(axis) for axis in problem.axes]
    small = compact(problem)
    for place, (_, inputs, _) in enumerate(axes_kept):
        left = take(left, inputs, 3 + place)
    flat = flattened(small)
    if flat is not small:
        left = left.reshape((*left.shape[:2], flat.batch))
        right = right.reshape(right.shape[:3])
    elif small.axes and all(a.output == 1 and (a.reads >= 0).any() for a in small.axes):
        flat, left, right = _folded(small, left, right)
    plan = plan_of(graph.target, flat, settings)
    _say(graph, plan, name)
    around = padding or ((0, 0),) * len(axes_kept)
    places = [outputs + low for (_, _, outputs), (low, _) in zip(axes_kept, around, strict=True)]
    field = [a.output + sum(ends) for a, ends in zip(problem.axes, around, strict=True)]
    with graph.debug_scope(name, "poplin", plan=plan.describe()):
        left, right = plan.transform.operands(graph, left, right, prog, name)
        regrouping = Regrouping(graph, prog, name)
        left = _together(regrouping, plan, "input", left)
        if plan.transform.together:
            left, right = plan.transform.laid_out(graph, flat, left, right, name)
        if settings.purpose == "FC_TRAINING_BWD" and plan.method.swapped:
            right = transposed_where_it_lies(graph, plan, right, prog, name)
        right = _together(regrouping, plan, "weights", right)
        regrouping.run()
        form = plan.transform.problem(flat)
        if plan.transform.expanded:
            plan, left, right = with_whole_groups(graph, plan, left, right, name)
        out = _in_slices(graph, plan, form, left, right, prog, name, settings)
        out = plan.transform.result(out, flat)
        out = out.reshape((*out.shape[:2], small.batch, *(axis.output for axis in small.axes)))
        return _amid_zeros(graph, out, places, (*out.shape[:3], *field), prog, name)


def _padding(params: ConvParams) -> Padding:
    last = params.outputTransform
    return tuple(zip(last.paddingLower, last.paddingUpper, strict=True))


def _folded(problem: Problem, left: Tensor, right: Tensor) -> tuple[Problem, Tensor, Tensor]:
    """Count the kernel as channels, where there is one output: all that it reads is summed."""
    for place, axis in enumerate(problem.axes):
        taps = np.flatnonzero(axis.reads[0] >= 0)
        left = take(left, axis.reads[0, taps], 3 + place)
        right = take(right, taps, 3 + place)
    inputs = total(right.shape[2:])
    moved = left.dimRoll(2, left.rank() - 1)
    flat = replace(problem, inputs=inputs, axes=())
    return (
        flat,
        moved.reshape((problem.groups, inputs, problem.batch)),
        right.reshape((*right.shape[:2], inputs)),
    )


def _in_slices(
    graph: Graph,
    plan: Plan,
    problem: Problem,
    left: Tensor,
    right: Tensor,
    prog: Sequence,
    name: str,
    settings: Settings,
) -> Tensor:
    """Convolve slice by slice."""
    if plan.serial.dimension == "kernel":
        return _in_kernel_slices(graph, plan, problem, left, right, prog, name, settings)

    def convolve_slice(operands: Operands, program: Sequence) -> Tensor:
        if plan.transform.expanded:
            operands = rearranged(graph, plan, problem, operands, program, name)
        return combine(graph, plan, multiply(graph, plan, *operands, program, name), program, name)

    if plan.slices == 1:
        return convolve_slice((left, right), prog)
    return in_loop(graph, plan, problem, (left, right), convolve_slice, prog, name)


def _in_kernel_slices(
    graph: Graph,
    plan: Plan,
    problem: Problem,
    left: Tensor,
    right: Tensor,
    prog: Sequence,
    name: str,
    settings: Settings,
) -> Tensor:
    """Add up the results of slices of the kernel's first dimension."""
    size, step = right.shape[3], plan.problem.axes[0].kernel
    results = []
    for begin in range(0, size, step):
        end = min(begin + step, size)
        part = replace(slice_kernel(problem, begin, end), out_type=plan.method.partials)
        cut_plan = fixed_plan(graph.target, part, plan, settings)
        partials = multiply(graph, cut_plan, left, right.slice(begin, end, 3), prog, name)
        results.append(combine(graph, cut_plan, partials, prog, name))
        if begin:
            scaledAddTo(graph, results[0], results.pop(), 1.0, prog, f"{name}/AddSlice")
    if problem.out_type == results[0].dtype:
        return results[0]
    return cast(graph, results[0], problem.out_type, prog, name)


def _say(graph: Graph, plan: Plan, name: str) -> None:
    """Log the plan; raises NoPlanError if its temporary data fits on no tile."""
    log("PL", "POPLIN", "DEBUG", f"{name}: {plan.describe()}")
    needed = plan.temporary_bytes / graph.target.bytes_per_tile
    if needed > 1:
        raise NoPlanError(
            f"{name}: no plan fits: the smallest takes {plan.temporary_bytes:,} B of temporary "
            f"data a tile, which has {graph.target.bytes_per_tile:,} B; use more tiles"
        )
    if plan.temporary_bytes > plan.limit:
        text = (
            f"{name}: no plan keeps to {plan.limit:,} B of temporary data a tile; the best takes "
            f"{plan.temporary_bytes:,} B: availableMemoryProportion {ceil(100 * needed) / 100:.2f}"
        )
        log("PL", "POPLIN", "WARN", text)


def take(tensor: Tensor, numbers: IntArray, axis: int) -> Tensor:
    """View these indexes of a dimension, evenly spaced."""
    size = tensor.shape[axis]
    if len(numbers) == size:
        return tensor
    step = int(numbers[1] - numbers[0]) if len(numbers) > 1 else 1
    part = tensor.slice(int(numbers[0]), int(numbers[-1]) + 1, axis)
    return part.subSample(step, axis)


def _amid_zeros(
    graph: Graph,
    out: Tensor,
    places: list[IntArray],
    shape: tuple[int, ...],
    prog: Sequence,
    name: str,
) -> Tensor:
    """Put a result at these places of each dimension of a larger field that is zero elsewhere."""
    if out.shape == shape:
        return out
    group = gcd(shape[1], graph.target.getNumConvUnits(out.dtype, FLOAT))
    layout = Layout(tuple(range(out.rank())), 1, group)
    memory = graph.addVariable(out.dtype, layout.sizes(shape), f"{name}/out")
    mapTensorLinearly(graph, memory)
    zero(graph, memory, prog, f"{name}/Dilate")
    output = ungrouped(memory, 1)
    part = output
    for axis, numbers in enumerate(places):
        part = take(part, numbers, 3 + axis)
    prog.add(Copy(out, part, name=f"{name}/Dilate"))
    return output


def _together(regrouping: Regrouping, plan: Plan, which: str, tensor: Tensor) -> Tensor:
    """Bring the channels together that are summed, if they lie apart and nothing else does it."""
    channel, group_size = plan.method.innermost(CHANNEL[which])
    group_size = min(group_size, tensor.shape[channel])
    runs = [run_of(tensor, axis) for axis in range(tensor.rank())]
    old, run = int(np.argmax(runs)), runs[channel]
    near = old == channel or run % group_size == 0 or run == tensor.shape[channel]
    if plan.method.expanded or plan.method.vertex == "HMAC" or near:
        return tensor
    return regrouping.regroup(tensor, (old, runs[old]), (channel, group_size), which)


@library_call("POPLIN")
def calculateWeightDeltas(
    graph: Graph,
    zDeltas: Tensor,
    activations: Tensor,
    params: ConvParams,
    prog: Sequence,
    debugContext: str = "",
    options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor:
    """Return the gradient of the weights, [groups, outputs, inputs, *kernel].

    `params` are those of the forward pass.

    >>> from simulator import poplar, poplin
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> params = poplin.ConvParams(poplar.FLOAT, 1, [4], [2], 1, 1)
    >>> x, gradient = trial.tensor([[[1.0, 2.0, 3.0, 4.0]]]), trial.tensor([[[1.0, 0.0, 10.0]]])
    >>> deltas = poplin.calculateWeightDeltas(trial.graph, gradient, x, params, trial.prog)
    >>> trial.values(deltas)  # 1 + 30 and 2 + 40
    [[[[31.0, 42.0]]]]
    """
    name = debug_name(debugContext, "Conv_1")
    settings = settings_of(graph.target, CONVOLUTION, options, name)
    _check(name, activations, params.input_shape(), params, "activations")
    _check(name, zDeltas, params.output_shape(), params, "zDeltas")
    update = getWeightUpdateParams(params)
    groups, batch = params.numConvGroups, params.batchSize
    inputs, outputs = params.inputChannelsPerConvGroup, params.outputChannelsPerConvGroup
    # The batch takes the place of the input channels, the input channels that of the batch.
    moving = activations.reshape((batch, groups, inputs, *params.inputFieldShape))
    moving = moving.dimShufflePartial([1, 0, 2], [0, 1, 2])
    still = zDeltas.reshape((batch, groups, outputs, *params.getOutputFieldShape()))
    still = still.dimShufflePartial([1, 2, 0], [0, 1, 2])
    problem = problem_of(update)
    if inputs % WEIGHT_UPDATE_GRAIN == 0 and outputs % WEIGHT_UPDATE_GRAIN == 0:
        problem = replace(problem, grain=WEIGHT_UPDATE_GRAIN)
    left = transformed(moving, update.inputTransform)
    right = transformed(still, update.kernelTransform)
    return convolve(graph, problem, left, right, prog, name, settings, _padding(update))


@library_call("POPLIN")
def convolutionWeightUpdate(
    graph: Graph,
    zDeltas: Tensor,
    weights: Tensor,
    activations: Tensor,
    params: ConvParams,
    scale: Tensor | float,
    prog: Sequence,
    debugContext: str = "",
    options: Options = None,
    cache: PlanningCache | None = None,
) -> None:
    """Add `scale` times the gradient of the weights to the weights; `params` are forward.

    >>> from simulator import poplar, poplin
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> params = poplin.ConvParams(poplar.FLOAT, 1, [4], [2], 1, 1)
    >>> x, gradient = trial.tensor([[[1.0, 2.0, 3.0, 4.0]]]), trial.tensor([[[1.0, 0.0, 10.0]]])
    >>> weights = trial.tensor([[[[100.0, 100.0]]]])
    >>> poplin.convolutionWeightUpdate(trial.graph, gradient, weights, x, params, -1.0, trial.prog)
    >>> trial.values(weights)  # less 1 + 30 and 2 + 40
    [[[[69.0, 58.0]]]]
    """
    name = debug_name(debugContext, "Conv_1")
    deltas = calculateWeightDeltas(
        graph, zDeltas, activations, params, prog, debugContext, options, cache
    )
    scaledAddTo(graph, weights, deltas, scale, prog, f"{name}/UpdateWeights")


@library_call("POPLIN")
def createInput(
    graph: Graph,
    params: ConvParams,
    name: str = "",
    options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor:
    """Add an input laid out and mapped as its plan wants it.

    >>> from simulator import poplar, poplin
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> params = poplin.ConvParams(poplar.FLOAT, 1, [8, 8], [3, 3], 2, 4)
    >>> poplin.createInput(trial.graph, params).shape
    (1, 2, 8, 8)
    """
    label = name or "conv/input"
    return create_input(
        graph, params, settings_of(graph.target, CONVOLUTION, options, label), label
    )


@library_call("POPLIN")
def createWeights(
    graph: Graph,
    params: ConvParams,
    name: str = "",
    options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor:
    """Add weights laid out and mapped as their plan wants them.

    >>> from simulator import poplar, poplin
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> params = poplin.ConvParams(poplar.FLOAT, 1, [8, 8], [3, 3], 2, 4)
    >>> poplin.createWeights(trial.graph, params).shape
    (1, 4, 2, 3, 3)
    """
    label = name or "conv/weights"
    return create_weights(
        graph, params, settings_of(graph.target, CONVOLUTION, options, label), label
    )


def flattened_plan(target: Target, params: ConvParams, options: Options, name: str) -> Plan:
    """Return the plan of a convolution; raises poplibs_error and InvalidOptionError."""
    settings = settings_of(target, CONVOLUTION, options, name)
    return plan_of(target, flattened(compact(problem_of(params))), settings)


@library_call("POPLIN")
def reportPlanInfo(*arguments: Any, **named: Any) -> str:
    """Return the plan of a convolution as text: `[stream,] graph, params, options, cache`.

    It is written to a stream that comes first.

    >>> from simulator import poplar, poplin
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> params = poplin.ConvParams(poplar.FLOAT, 1, [4], [2], 1, 1)
    >>> print(poplin.reportPlanInfo(trial.graph, params))
    HMAC, groups of 1 x 1, partials float; 4 tiles: field0 2, kernel0 2; 895 cycles: ...
    """
    form: dict[str, object] = {"graph": NEEDED, "params": NEEDED, "options": None, "cache": None}
    if arguments and not isinstance(arguments[0], Graph):
        form = {"stream": NEEDED, **form}
    call_args = arguments_of("reportPlanInfo", form, arguments, named)
    graph, params, options = (call_args[key] for key in ("graph", "params", "options"))
    text = flattened_plan(graph.target, params, options, "reportPlanInfo").describe()
    if "stream" in form:
        call_args["stream"].write(text)
    return text
