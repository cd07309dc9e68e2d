"""Operands laid out and mapped as a plan wants them, so that nothing has to be rearranged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import gcd

import numpy as np

from simulator.codelets.products.block_layout import Layout
from simulator.graph.graph import Graph
from simulator.graph.program import Copy, Sequence
from simulator.graph.tensors.tensor import Tensor, concat
from simulator.graph.types import IntArray, Type
from simulator.poplibs.poplin.convolutions.operands import Operand, map_to_readers
from simulator.poplibs.poplin.planning.joint_plan import plan_of
from simulator.poplibs.poplin.planning.params import ConvParams
from simulator.poplibs.poplin.planning.plan import Plan
from simulator.poplibs.poplin.planning.planner import Settings
from simulator.poplibs.poplin.planning.problem import Problem, compact, flattened, problem_of, total
from simulator.poplibs.poputil import mapTensorLinearly

BATCH = 2
# The dimension of each operand and of the result that a serial split cuts.
INPUT_AXES = {"batch": BATCH, "inputs": 1}
WEIGHT_AXES = {"outputs": 1, "inputs": 2}


class PlanningCache:
    """PopLibs' store of plans; here plans are kept for the whole process."""


def create_input(graph: Graph, params: ConvParams, settings: Settings, name: str) -> Tensor:
    """Add [batch, groups * inputs, *field]."""
    problem = problem_of(params)
    plan = plan_of(graph.target, flattened(compact(problem)), settings)
    if _is_laid_out(plan, problem, params):
        innermost = 1, plan.method.in_group
        sizes = (problem.groups, problem.inputs, problem.batch, *params.inputFieldShape)
        apart = _in_a_line(graph, params.dataType, sizes, innermost, name)
        return apart.dimShufflePartial([2, 0, 1], [0, 1, 2]).reshape(params.input_shape())
    form, field = plan.transform.problem(problem), tuple(params.inputFieldShape)
    if plan.transform.swap:
        sizes = (form.groups, form.outputs, form.inputs, *field)
        apart = weights_of(graph, sizes, plan, name).dimShufflePartial([1, 0], [0, 1])
    else:
        read = _read(graph, plan, problem, field, name)
        apart = read.dimShufflePartial([2, 0, 1], [0, 1, 2])
    return apart.reshape(params.input_shape())


def create_weights(graph: Graph, params: ConvParams, settings: Settings, name: str) -> Tensor:
    """Add [groups, outputs, inputs, *kernel]."""
    problem = problem_of(params)
    plan = plan_of(graph.target, flattened(compact(problem)), settings)
    kernel = tuple(params.kernelShape)
    if plan.transform.combined > 1:
        innermost = 0, plan.transform.combined
        return _in_a_line(graph, params.dataType, params.weights_shape(), innermost, name)
    if _is_laid_out(plan, problem, params):
        innermost = 2, plan.method.in_group
        return _in_a_line(graph, params.dataType, params.weights_shape(), innermost, name)
    if plan.transform.swap:
        return _read(graph, plan, problem, kernel, name).dimShufflePartial([1], [2])
    return weights_of(graph, params.weights_shape(), plan, name)


def _is_laid_out(plan: Plan, problem: Problem, params: ConvParams) -> bool:
    """Return whether a plan reads operands that are laid out anew, or parts that are joined."""
    field = tuple(axis.input for axis in problem.axes)
    partly = compact(problem) != problem or field != tuple(params.inputFieldShape)
    partly |= tuple(axis.kernel for axis in problem.axes) != tuple(params.kernelShape)
    joined = plan.transform.joins(compact(problem))
    return bool(plan.transform.expanded) or (joined and partly)


def _read(graph: Graph, plan: Plan, problem: Problem, field: tuple[int, ...], name: str) -> Tensor:
    """Add what a plan streams by, [g][ci][n][*field]: the input, or the weights where they swap."""
    form, joined = plan.transform.problem(problem), plan.transform.joins(problem)
    if joined:
        field = tuple(axis.input for axis in form.axes)
    sizes = (form.groups, form.inputs, form.batch, *field)
    tensor = _input(graph, sizes, plan, form, name)
    if joined:
        return plan.transform.apart(tensor, problem, of_input=True)
    return tensor


def _in_a_line(
    graph: Graph, dtype: Type, shape: tuple[int, ...], innermost: tuple[int, int], name: str
) -> Tensor:
    """Add an operand that is laid out before it is used, evenly over the tiles."""
    operand = _add(graph, dtype, shape, innermost, name)
    mapTensorLinearly(graph, operand.memory)
    return _in_order(operand)


def rearranged(
    graph: Graph,
    plan: Plan,
    problem: Problem,
    operands: tuple[Tensor, Tensor],
    prog: Sequence,
    name: str,
) -> tuple[Tensor, Tensor]:
    """Copy both operands to where a plan reads them, as it reads them; not the weights of a slice.

    As in PopLibs (lib/poplin/Convolution.cpp, actsRearranged, weightsRearranged).
    """
    left, right = operands
    acts = _input(graph, left.shape, plan, problem, f"{name}/actsRearranged")
    _copy_channels(left, acts, 1, prog, name)
    if plan.slices > 1:
        return acts, right
    weights = weights_of(graph, right.shape, plan, f"{name}/weightsRearranged")
    _copy_channels(right, weights, 2, prog, name)
    return acts, weights


def _copy_channels(source: Tensor, copy: Tensor, channel: int, prog: Sequence, name: str) -> None:
    """Copy a tensor, channels that lie together in one go."""
    read, written = (t.dimRoll(channel, t.rank() - 1) for t in (source, copy))
    prog.add(Copy(read, written, name=f"{name}/Rearrange"))


def with_whole_groups(
    graph: Graph, plan: Plan, left: Tensor, right: Tensor, name: str
) -> tuple[Plan, Tensor, Tensor]:
    """View operands with channels that fill the plan's groups, with zeros; give the plan of these.

    As in PopLibs (lib/poplin/Convolution.cpp, convolutionPreprocess).
    """
    group = plan.method.in_group
    zero = graph.addConstant(left.dtype, [group], 0, f"{name}/zeroChannels")
    graph.setTileMapping(zero, 0)
    left, right = (_filled(tensor, d, group, zero) for tensor, d in ((left, 1), (right, 2)))
    return replace(plan, problem=replace(plan.problem, inputs=left.shape[1])), left, right


def _filled(tensor: Tensor, channel: int, group: int, zero: Tensor) -> Tensor:
    """View channels filled up to whole groups with zeros."""
    missing = -tensor.shape[channel] % group
    if not missing:
        return tensor
    others = (*tensor.shape[:channel], *tensor.shape[channel + 1 :])
    zeros = zero.slice(0, missing, 0).broadcast(total(others), 0).reshape((*others, missing))
    return concat([tensor, zeros.dimRoll(len(others), channel)], channel)


def _input(graph: Graph, sizes: tuple[int, ...], plan: Plan, problem: Problem, name: str) -> Tensor:
    """Add what a plan reads as its input, [g][ci][n][*in]."""
    axis, positions = INPUT_AXES.get(plan.serial.dimension), total(sizes[2:])
    if axis is None or (axis == BATCH and positions != plan.whole_problem.batch):
        return add_input_slices(graph, (1, *sizes), plan, problem, name).squeeze([0])
    flat = (*sizes[:2], positions) if axis == BATCH else sizes
    shape = (plan.slices, *_divided(flat, axis, plan.slices))
    return sliced_together(add_input_slices(graph, shape, plan, problem, name), axis).reshape(sizes)


def weights_of(graph: Graph, sizes: tuple[int, ...], plan: Plan, name: str) -> Tensor:
    """Add what a plan reads as its weights, [g][co][ci][*kernel]."""
    axis = WEIGHT_AXES.get(plan.serial.dimension)
    shape = (1, *sizes) if axis is None else (plan.slices, *_divided(sizes, axis, plan.slices))
    slices = add_weight_slices(graph, shape, plan, name)
    return slices.squeeze([0]) if axis is None else sliced_together(slices, axis)


def _divided(sizes: tuple[int, ...], axis: int, count: int) -> tuple[int, ...]:
    return (*sizes[:axis], sizes[axis] // count, *sizes[axis + 1 :])


def sliced_together(slices: Tensor, axis: int) -> Tensor:
    """View slices, the first dimension, as what was cut into them in a dimension."""
    return slices.dimRoll(0, axis).flatten(axis, axis + 2)


def add_input_slices(
    graph: Graph, shape: tuple[int, ...], plan: Plan, problem: Problem, name: str
) -> Tensor:
    """Add [slice][g][ci][n][*in], whose slices lie alike where a plan reads its input."""

    def put(memory: Operand) -> None:
        _map_input(graph, memory, plan, problem)

    return _add_slices(graph, problem.dtype, shape, plan.method.innermost(1), put, name)


def add_weight_slices(graph: Graph, shape: tuple[int, ...], plan: Plan, name: str) -> Tensor:
    """Add [slice][g][co][ci][*kernel], whose slices lie alike where a plan reads its weights."""

    def put(memory: Operand) -> None:
        _map_weights(graph, memory, plan)

    return _add_slices(graph, plan.problem.dtype, shape, plan.method.innermost(2), put, name)


def _add_slices(
    graph: Graph,
    dtype: Type,
    shape: tuple[int, ...],
    innermost: tuple[int, int],
    put: Callable[[Operand], None],
    name: str,
) -> Tensor:
    """Add [slice][*sizes], one slice after another in memory, each on the tiles where it is put."""
    count, *sizes = shape
    layout = _layout_of(tuple(sizes), innermost)
    memory = graph.addVariable(dtype, (count, *layout.sizes(tuple(sizes))), name)
    for number in range(count):
        put(Operand(memory[number], tuple(sizes), layout, layout.group))
    order = [0, *(1 + axis for axis in layout.permutation())]
    return memory.dimShuffle(order).reshape(shape)


def _layout(rank: int, channel: int, size: int, group: int) -> Layout:
    """Put groups of channels innermost, or all channels where groups would not be whole.

    The groups come first, so that the block of one group and some outputs lies together.
    """
    if size % group == 0:
        return Layout(tuple(dict.fromkeys((0, channel, *range(rank)))), channel, group)
    return Layout((*(axis for axis in range(rank) if axis != channel), channel))


def _layout_of(shape: tuple[int, ...], innermost: tuple[int, int]) -> Layout:
    axis, size = innermost
    return _layout(len(shape), axis, shape[axis], size if axis else gcd(size, shape[0]))


def _add(
    graph: Graph, dtype: Type, shape: tuple[int, ...], innermost: tuple[int, int], name: str
) -> Operand:
    """Add a variable whose channels, which are summed, or groups of channels lie together."""
    layout = _layout_of(shape, innermost)
    variable = graph.addVariable(dtype, layout.sizes(shape), name)
    return Operand(variable, shape, layout, layout.group)


def _in_order(operand: Operand) -> Tensor:
    return operand.memory.dimShuffle(operand.layout.permutation()).reshape(operand.sizes)


def _reshaped(operand: Operand, sizes: tuple[int, ...]) -> Operand:
    """View an operand with its last dimensions, those of the field, as one."""
    grouped, group = operand.layout.grouped, operand.layout.group
    layout = _layout(len(sizes), operand.layout.order[-1], 1, 2)
    if grouped >= 0:
        layout = _layout(len(sizes), grouped, sizes[grouped], group)
    memory = operand.memory.reshape(layout.sizes(sizes))
    return Operand(memory, sizes, layout, operand.run)


def _cells(
    plan: Plan, dimensions: list[int], other_dimensions: list[int]
) -> tuple[list[IntArray], IntArray]:
    """List the parts of some dimensions, and the tiles of all others' parts for each of them."""
    numbers = plan.tiles.reshape(plan.parts)
    tiles = numbers.transpose(*dimensions, *other_dimensions).reshape(
        int(np.prod([plan.parts[d] for d in dimensions])), -1
    )
    parts = np.indices([plan.parts[d] for d in dimensions]).reshape(len(dimensions), -1)
    return list(parts), tiles


def _align(bounds: list[IntArray], operand: Operand) -> None:
    """Move the bounds of the dimension that lies in groups to whole groups."""
    axis, group = operand.layout.grouped, operand.layout.group
    if axis >= 0:
        bounds[axis] = np.minimum(-(-bounds[axis] // group) * group, operand.sizes[axis])


def _map_input(graph: Graph, memory: Operand, plan: Plan, problem: Problem) -> None:
    """Put each part of [g][ci][n][*in] on the tiles whose outputs need it."""
    dims = len(plan.problem.axes)
    dimensions = [0, 2 * dims + 3, 1, *range(2, 2 + dims)]
    parts, tiles = _cells(
        plan, dimensions, [d for d in range(len(plan.parts)) if d not in dimensions]
    )
    sizes = memory.sizes
    if dims:
        bounds = [plan.bounds(d) for d in dimensions[:3]]
        for d, axis in enumerate(plan.problem.axes):
            first = plan.bounds(2 + d) * axis.stride - axis.padding
            middle = first + (axis.kernel - 1) * axis.kernel_step // 2
            inner = np.clip(-(-middle // axis.input_step), 0, axis.input)
            bounds.append(_stretched(inner * _step(problem, d), memory.sizes[3 + d]))
    else:
        bounds = [plan.bounds(d) for d in dimensions[:3]]
        field = int(np.prod(memory.sizes[3:], dtype=np.int64))
        scale = memory.sizes[2] * field
        sizes = (memory.sizes[0], memory.sizes[1], scale)
        bounds[2] = bounds[2] * scale // max(int(bounds[2][-1]), 1)
    _align(bounds, memory)
    flat = _reshaped(memory, sizes)
    low = np.stack([b[p] for b, p in zip(bounds, parts, strict=True)], axis=1)
    high = np.stack([b[p + 1] for b, p in zip(bounds, parts, strict=True)], axis=1)
    map_to_readers(graph, flat, (low, high), tiles)


def _stretched(bounds: IntArray, size: int) -> IntArray:
    """Let the first and the last part take in what is truncated or not read by any output."""
    result = np.minimum(bounds, size)
    result[0], result[-1] = 0, size
    return result


def _step(problem: Problem, axis: int) -> int:
    """Return how many inputs there are for each that is read, where a kernel of one skips some."""
    full_axis, read = problem.axes[axis], compact(problem).axes[axis]
    return 1 if full_axis.kernel > 1 else -(-full_axis.input // max(read.input, 1))


def _map_weights(graph: Graph, memory: Operand, plan: Plan) -> None:
    """Put each part of [g][co][ci][*kernel] on the tiles that multiply with it."""
    dims = len(plan.problem.axes)
    dimensions = [0, 2 + dims, 3 + 2 * dims, *range(3 + dims, 3 + 2 * dims)]
    parts, tiles = _cells(
        plan, dimensions, [d for d in range(len(plan.parts)) if d not in dimensions]
    )
    bounds = [plan.bounds(d) for d in dimensions]
    _align(bounds, memory)
    bounds[3:] = [_stretched(b, s) for b, s in zip(bounds[3:], memory.sizes[3:], strict=False)]
    sizes = memory.sizes
    if not dims:
        sizes = (*sizes[:3], int(np.prod(sizes[3:], dtype=np.int64)))
        bounds.append(np.array([0, sizes[3]]))
        parts.append(np.zeros_like(parts[0]))
    flat = _reshaped(memory, sizes)
    low = np.stack([b[p] for b, p in zip(bounds, parts, strict=True)], axis=1)
    high = np.stack([b[p + 1] for b, p in zip(bounds, parts, strict=True)], axis=1)
    map_to_readers(graph, flat, (low, high), tiles)
