"""Serial splits: equal slices of a convolution that a loop computes one after another.

As in PopLibs (lib/poplin/ConvModel.cpp; Convolution.cpp, ConvProgramTree::lower): the channels that
the matrix units hold are cut, or those that are summed, into a number of slices that divides them.
A loop takes a slice of the operands, convolves it, and puts the result into its place or adds it
up. Slices of a kernel that is laid out as channels are ours: their number is a power of two.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from simulator.codelets.costs import ceil_div
from simulator.codelets.elementwise.operator_cycles import binary_1d
from simulator.codelets.indexing.cycles import dynamic_slice_1d
from simulator.graph.machine.target import Target
from simulator.graph.types import IntArray, Type
from simulator.poplibs.poplin.planning.plan import Method
from simulator.poplibs.poplin.planning.plan_cost import cast_cycles
from simulator.poplibs.poplin.planning.problem import Problem, slice_kernel, total
from simulator.poplibs.poplin.planning.serial_split import SerialSplit

MAX_SLICES = 64
RESULT_DIMENSIONS = ("outputs", "batch")  # whose slices have results apart; sums are of all
ONE = np.ones(1, dtype=np.int64)


class SerialCost(NamedTuple):
    """What a split takes besides its slices: cycles of each slice, cycles once, bytes of a tile."""

    by_slice: dict[str, IntArray]
    once: dict[str, IntArray]
    bytes: IntArray


def serial_splits(problem: Problem, method: Method) -> Iterator[SerialSplit]:
    """List the splits of a problem for a way to compute it, those of few slices first."""
    yield SerialSplit()
    channel = "batch" if method.swapped else "outputs"
    sizes = {channel: getattr(problem, channel), "inputs": problem.inputs}
    taps = problem.axes[0].kernel if method.expanded else 1
    for count in range(2, MAX_SLICES + 1):
        for dimension, size in sizes.items():
            if size % count == 0:
                yield SerialSplit(dimension, count)
        if count <= taps and count & (count - 1) == 0:
            yield SerialSplit("kernel", count)


def slice_of(problem: Problem, split: SerialSplit, method: Method) -> Problem:
    """Return the problem of one slice, the largest if they differ; sums stay partial results."""
    if split.count == 1:
        return problem
    if split.dimension == "kernel":
        part = slice_kernel(problem, 0, ceil_div(problem.axes[0].kernel, split.count))
        return replace(part, out_type=method.partials)
    size = getattr(problem, split.dimension) // split.count
    part = replace(problem, **{split.dimension: size})
    return replace(part, out_type=method.partials) if split.dimension == "inputs" else part


def serial_cost(
    target: Target,
    problem: Problem,
    method: Method,
    split: SerialSplit,
    used: IntArray,
    outputs: IntArray,
    *,
    of_layer: bool,
) -> SerialCost:
    """Price a split of a problem whose slices use so many tiles, each with so many outputs.

    Operands of a pass of a layer that is planned on its own, `of_layer`, may lie otherwise than
    slices need them, and are rearranged first.
    """
    if split.count == 1:
        return SerialCost({}, {}, np.zeros_like(used))
    left, right = _operand_elements(problem)
    moving, stationary = (ceil_div(elements, used) for elements in method.sides(left, right))
    size, count = method.partials.size, split.count
    by_slice, once = {}, {}
    extra_bytes = np.zeros_like(used)
    if split.dimension != "kernel":
        by_slice["slice"] = _slice_cycles(target, stationary, count, problem.dtype)
    if split.dimension in RESULT_DIMENSIONS:
        by_slice["update"] = _slice_cycles(target, outputs, count, problem.out_type)
    else:
        if split.dimension == "inputs":
            by_slice["slice"] += _slice_cycles(target, moving, count, problem.dtype)
        by_slice["update"] = binary_1d(outputs, "ADD", method.partials, target, in_place=True)
        vectors = ceil_div(outputs, target.workers * target.getVectorWidth(method.partials))
        once["zero"] = target.workers * vectors
        if problem.out_type != method.partials:
            once["cast"] = cast_cycles(target, outputs)
        extra_bytes = outputs * size
    if of_layer:
        bytes_moved = stationary * problem.dtype.size
        once["rearrange"] = ceil_div(bytes_moved, target.exchange_bytes_per_cycle) + stationary
        extra_bytes = extra_bytes + bytes_moved
    return SerialCost(by_slice, once, extra_bytes)


def _slice_cycles(target: Target, elements: IntArray, count: int, dtype: Type) -> IntArray:
    """Return the cycles to take one of so many slices of the elements of a tile, or to put it."""
    return dynamic_slice_1d(ceil_div(elements, count), ONE, dtype, target)


def _operand_elements(problem: Problem) -> tuple[int, int]:
    """Count the elements of the input and of the weights."""
    field = total([axis.input for axis in problem.axes])
    kernel = total([axis.kernel for axis in problem.axes])
    channels = problem.groups * problem.inputs
    return channels * problem.batch * field, channels * problem.outputs * kernel


def tile_products(target: Target, problem: Problem, method: Method) -> int:
    """Return the cycles of one tile that makes all products of a problem, at the least.

    That is what matrix units and vectors can make in a cycle, nothing filled up.
    """
    taps = total([int((axis.reads >= 0).sum()) for axis in problem.axes])
    products = problem.groups * problem.batch * problem.outputs * problem.inputs * taps
    width = target.getVectorWidth(problem.dtype)
    units = target.getNumConvUnits(problem.dtype, method.partials)
    return products // (units * width if method.vertex in ("AMP", "SLIC") else 2 * width)


def loop_cycles(
    target: Target, problem: Problem, method: Method, split: SerialSplit, tiles: int
) -> int:
    """Return what the results of all slices take at least: they are sent, and put into place."""
    if split.count == 1:
        return 0
    field = total([axis.output for axis in problem.axes])
    outputs = problem.groups * problem.batch * problem.outputs * field // tiles
    if split.dimension in RESULT_DIMENSIONS:
        outputs //= split.count
        updated = dynamic_slice_1d(ONE * (outputs // split.count), ONE, problem.out_type, target)
    else:
        updated = binary_1d(ONE * outputs, "ADD", method.partials, target, in_place=True)
    sent = outputs * method.partials.size // target.exchange_bytes_per_cycle
    return split.count * (int(updated[0]) + sent)
