"""What the stages of a convolution take: estimates for many ways to cut it, as arrays.

As PopLibs' planner does (lib/poplin/ConvModel.cpp): every operand that a tile needs is exchanged,
rearranged where the matrix unit wants another order, multiplied, and the parts of sums are
exchanged and added up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from simulator.codelets.costs import ceil_div
from simulator.codelets.products import convolution_cycles as units
from simulator.codelets.products.transpose_cycles import transpose
from simulator.graph.machine.target import Target
from simulator.graph.types import FLOAT, IntArray
from simulator.poplibs.poplin.planning.plan import Method, row_length
from simulator.poplibs.poplin.planning.problem import Problem
from simulator.poplibs.poplin.planning.reduce_stages import received_bytes, reduction_cost

SLIC_WINDOW = 4  # elements of a row of the kernel
SLIC_WEIGHTS = 200  # bytes at most that it rearranges, with what keeps its buffer apart
SCRATCH = {"SLIC": "outFieldBuffer", "VMAC": "partials"}  # fields that a vertex works in


Shares = tuple["float | npt.NDArray[np.float64]", ...]


class Part(NamedTuple):
    """The largest part of every way to cut a problem: its sizes, as arrays."""

    groups: IntArray
    batch: IntArray
    field: tuple[IntArray, ...]
    outputs: IntArray
    kernel: tuple[IntArray, ...]
    inputs: IntArray

    @property
    def positions(self) -> IntArray:
        """Count the outputs of a channel."""
        positions: IntArray = self.batch * _product(self.field)
        return positions

    @property
    def taps(self) -> IntArray:
        """Count the elements of the kernel."""
        taps: IntArray = _product(self.kernel)
        return taps


class Split(NamedTuple):
    """Into how many parts every way cuts sums, outputs, and positions: of batch and field."""

    sums: IntArray
    outputs: IntArray
    positions: IntArray


def _product(sizes: tuple[Any, ...]) -> Any:
    result: Any = 1
    for size in sizes:
        result = result * size
    return result


def vertex_cycles(
    target: Target, problem: Problem, method: Method, part: Part, taps_used: Shares
) -> IntArray:
    """Return the cycles of a tile's vertex; `taps_used` is the share of taps that meet an input."""
    return VERTEX_CYCLES[method.vertex](target, problem, method, part, taps_used)


def _hmac(
    target: Target, problem: Problem, method: Method, part: Part, taps_used: Shares
) -> IntArray:
    moving, stationary = method.sides(part.positions, part.outputs)
    return units.conv_hmac(
        np.ceil(moving * _product(taps_used)).astype(np.int64),
        part.taps,
        part.inputs if not method.dot else np.array(method.dot),
        np.array(method.out_group),
        part.groups,
        ceil_div(part.inputs, method.dot or part.inputs),
        ceil_div(stationary, method.out_group),
        problem.dtype,
        method.partials,
        target,
    )


def _slic(
    target: Target, problem: Problem, method: Method, part: Part, taps_used: Shares
) -> IntArray:
    """Price windows of four that slide over rows; zeros of the padding are multiplied too."""
    kernels = ceil_div(part.kernel[-1], SLIC_WINDOW) * _product(part.kernel[:-1])
    return units.conv_slic(
        part.positions,
        kernels,
        ceil_div(part.groups, method.conv_groups),
        method.in_group,
        method.partials,
        target,
        problem.axes[-1].stride,
        part.field[-1],
    )


def _vmac(
    target: Target, problem: Problem, method: Method, part: Part, taps_used: tuple[Any, ...]
) -> IntArray:
    """Price rows of the kernel that are multiplied with rows of the input, where they meet."""
    return units.conv_vmac(
        part.positions,
        part.kernel[-1] * taps_used[-1],
        ceil_div(part.groups, method.conv_groups),
        part.inputs,
        method.partials,
        target,
        _product(part.kernel[:-1]) * _product(taps_used[:-1]),
    )


def _amp(
    target: Target, problem: Problem, method: Method, part: Part, taps_used: Shares
) -> IntArray:
    moving, still = method.sides(part.batch, part.outputs)
    passes = max(method.out_group // (method.units or method.out_group), 1)
    out_groups = ceil_div(still, method.out_group) * passes
    out_groups = out_groups * (_product(part.field) if method.swapped else 1)
    positions = moving if method.swapped else part.positions
    summed = part.inputs * part.taps if method.expanded else part.inputs
    in_groups = ceil_div(summed, method.in_group)
    kinds = (problem.dtype, method.partials, target)
    rows = method.filter_rows(units.input_group(target, problem.dtype))
    if rows > 1 and not problem.axes:  # of which all but one are zeros
        one = np.ones_like(positions)
        return units.conv_nx1(positions, one, part.groups, in_groups, out_groups, *kinds, rows)
    plain = not any(axis.kernel > 1 or axis.padding for axis in problem.axes)
    if rows == 1 and (method.expanded or plain):
        if problem.dtype == FLOAT and target.getNumConvUnits(FLOAT, method.partials) == 8:
            outputs, inputs = out_groups * method.out_group, in_groups * method.in_group
            one = units.conv_cycles(target, FLOAT, positions, outputs, inputs)
            cycles: IntArray = part.groups * one
            return cycles
        return units.conv_1x1(
            positions, part.groups, in_groups, out_groups, *kinds, units=method.units
        )
    used = np.ceil(positions * _product(taps_used)).astype(np.int64)
    step = problem.axes[-1].input_step
    width = ceil_div(part.field[-1], step)
    taps = ceil_div(part.kernel[0], rows) * _product(part.kernel[1:]) + 0 * positions
    sizes = part.groups, in_groups, out_groups
    return units.conv_nx1(used, taps, *sizes, *kinds, rows, width=width)


def _outer(
    target: Target, problem: Problem, method: Method, part: Part, taps_used: Shares
) -> IntArray:
    """Price the vertex of one worker."""
    moving, stationary = method.sides(part.batch, part.outputs)
    return units.outer_product(moving, stationary * part.groups, method.out_group, problem.dtype)


VERTEX_CYCLES: dict[str, Callable[..., IntArray]] = {
    "AMP": _amp,
    "HMAC": _hmac,
    "SLIC": _slic,
    "VMAC": _vmac,
    "OuterProduct": _outer,
}


def tile_cycles(
    target: Target, problem: Problem, method: Method, part: Part, taps_used: Shares
) -> IntArray:
    """Return the cycles of a tile, whose workers share what streams by where each has a vertex."""
    if method.vertex != "OuterProduct":
        return vertex_cycles(target, problem, method, part, taps_used)
    name = "outputs" if method.swapped else "batch"
    share = part._replace(**{name: ceil_div(getattr(part, name), target.workers)})
    return target.workers * vertex_cycles(target, problem, method, share, taps_used)


def scratch_elements(target: Target, method: Method, outputs: IntArray) -> IntArray:
    """Count what a vertex works in for so many outputs of the groups that it makes at once."""
    if method.vertex == "VMAC":
        return outputs * target.workers
    return outputs + SLIC_WEIGHTS // method.partials.size


def _zeros(problem: Problem, part: Part) -> IntArray:
    """Count the zeros that SLIC has around and between inputs and in rows of its kernel.

    As PopLibs estimates them (ConvModel.cpp, addTileLevelTransformEstimates): from the size of the
    output, as if it were that of the input.
    """
    filled = -part.kernel[-1] % SLIC_WINDOW
    kernel = filled * _product(part.kernel[:-1]) * part.outputs
    sizes = [*part.field[:-1], part.field[-1] + filled]
    padded = [
        (size - 1) * axis.input_step + 1 + axis.zeros_around
        for axis, size in zip(problem.axes, sizes, strict=True)
    ]
    field = part.batch * (_product(tuple(padded)) - _product(part.field))
    zeros: IntArray = part.groups * part.inputs * (kernel + field)
    return zeros


def _filter_zeros(
    problem: Problem, part: Part, rows: int, read: IntArray, weights: IntArray
) -> IntArray:
    """Count the zeros that fill a kernel up to whole filters of so many rows, and its input.

    As PopLibs estimates them (ConvModel.cpp, applyPadding): from the size of the output.
    """
    if not problem.axes:
        added: IntArray = (rows - 1) * (read + weights)
        return added
    filled = -part.kernel[0] % rows
    kernel = part.groups * part.inputs * part.outputs * filled * _product(part.kernel[1:])
    field = filled * problem.axes[0].kernel_step * _product(part.field[1:])
    zeros: IntArray = kernel + part.groups * part.batch * part.inputs * field
    return zeros


def arrange_cycles(
    target: Target, problem: Problem, positions: IntArray, summed: IntArray
) -> IntArray:
    """Return the cycles to lay out [positions][summed], by transposes of small blocks."""
    side = 2 if problem.dtype == FLOAT else 4
    columns = np.minimum(ceil_div(summed, side) * side, 16)
    rows = side * np.ones_like(columns)
    blocks = ceil_div(positions, side) * ceil_div(summed, columns)
    return transpose(blocks, rows, columns, problem.dtype, target)


def cast_cycles(target: Target, elements: IntArray) -> IntArray:
    """Return the cycles to make halves of so many floats on a tile, as PopLibs' planner has them.

    (lib/poplin/PerformanceEstimation.hpp, estimateCastCycles.)
    """
    share = ceil_div(elements, target.workers)
    cycles: IntArray = target.workers * (26 + ceil_div(share, target.getVectorWidth(FLOAT)))
    return cycles


class Estimate(NamedTuple):
    """Cycles by stage and bytes of a tile, for every way to cut."""

    cycles: dict[str, IntArray]
    bytes: IntArray


def _shared_rate(target: Target, row: IntArray) -> IntArray:
    """Return the bytes a cycle of what neighbours receive alike: all at once in whole buses.

    As in PopLibs (lib/poplin/ExchangeEstimator.hpp).
    """
    bus = target.getTilesPerSharedExchangeBus()
    return target.exchange_bytes_per_cycle * np.where(row % bus, 1, bus)


def row_of(
    target: Target, problem: Problem, method: Method, part: Part, split: Split, tiles: int
) -> IntArray:
    """Return after how many of the tiles the next row of parts begins that take the same.

    At once, if there are 0.
    """
    alike, others = split.outputs, split.positions
    if method.swapped:
        alike, others = others, alike
    rows = split.sums * others * ceil_div(problem.groups, part.groups)
    row: IntArray = row_length(alike, rows, target.getTilesPerSharedExchangeBus(), tiles)
    return row


def _exchange(
    target: Target,
    method: Method,
    sizes: tuple[IntArray, IntArray],
    split: Split,
    row: IntArray | None,
) -> IntArray:
    """Return the cycles in which so many bytes of input and weights arrive, but for a tile's own.

    As in PopLibs (lib/poplin/ConvModel.cpp, addExchangeCycleEstimates); of one of them, tiles take
    the same in rows.
    """
    tiles = split.outputs, split.positions  # that take the same of each
    rates = [np.full_like(split.sums, target.exchange_bytes_per_cycle)] * 2
    if row is not None:
        rates[int(method.swapped)] = _shared_rate(target, row)
    cycles = (ceil_div(b - b // t, r) for b, t, r in zip(sizes, tiles, rates, strict=True))
    total: IntArray = sum(cycles, np.zeros_like(split.sums))
    return total


def estimate(
    target: Target,
    problem: Problem,
    method: Method,
    part: Part,
    split: Split,
    taps_used: Shares,
    *,
    shared: bool = False,
) -> Estimate:
    """Price the ways to cut a problem whose largest parts are given, as PopLibs' planner does.

    `shared` tells that tiles are numbered so that those of an exchange bus take the same inputs.
    """
    cycles = stage_cycles(target, problem, method, part, split, taps_used, shared=shared)
    return Estimate(cycles, held_bytes(target, problem, method, part, split))


def stage_cycles(
    target: Target,
    problem: Problem,
    method: Method,
    part: Part,
    split: Split,
    taps_used: Shares,
    *,
    shared: bool = False,
    tiles: int = 0,
) -> dict[str, IntArray]:
    """Return the cycles of the stages of an estimate.

    On so many tiles rows of parts begin with a bus, of which PopLibs' planner does not know.
    """
    size = problem.dtype.size
    read, weights, outputs = _operands(problem, part)
    exchange, adding = reduction_cost(
        target, method.partials, outputs, split.sums, problem.out_type
    )
    row = row_of(target, problem, method, part, split, tiles) if shared else None
    summed = part.inputs * part.taps
    # PopLibs does not count on it that rows of VMAC leave zeros out.
    taps_met = (1.0,) * len(taps_used) if method.vertex == "VMAC" else taps_used
    stages = {
        "exchange": _exchange(target, method, (read * size, weights * size), split, row),
        "arrange": np.zeros_like(outputs),
        "multiply": tile_cycles(target, problem, method, part, taps_met),
        "reduce exchange": exchange,
        "reduce": adding,
        "cast": np.zeros_like(outputs),
    }
    rows = method.filter_rows(units.input_group(target, problem.dtype))
    if method.vertex == "SLIC" or rows > 1:
        slic = method.vertex == "SLIC"
        zeros = _zeros(problem, part) if slic else _filter_zeros(problem, part, rows, read, weights)
        stages["pad"] = ceil_div(zeros * size, target.exchange_bytes_per_cycle)
    if method.expanded:
        stages["arrange"] = arrange_cycles(
            target, problem, part.groups * part.positions, summed
        ) + arrange_cycles(target, problem, part.groups * part.outputs, summed)
    if problem.out_type != method.partials:
        stages["cast"] = np.where(split.sums > 1, 0, cast_cycles(target, outputs))
    return stages


def held_bytes(
    target: Target, problem: Problem, method: Method, part: Part, split: Split
) -> IntArray:
    """Return the bytes of a tile of an estimate."""
    size, partial_size = problem.dtype.size, method.partials.size
    read, weights, outputs = _operands(problem, part)
    bytes_held = (read + weights) * size + outputs * partial_size
    if method.vertex == "SLIC":
        bytes_held = bytes_held + _zeros(problem, part) * size
    rows = method.filter_rows(units.input_group(target, problem.dtype))
    if rows > 1 and problem.axes:
        bytes_held = bytes_held + _filter_zeros(problem, part, rows, read, weights) * size
    if method.vertex in SCRATCH:
        at_once = ceil_div(outputs, ceil_div(part.groups, method.conv_groups))
        bytes_held = bytes_held + scratch_elements(target, method, at_once) * partial_size
    if method.expanded:
        expanded = part.groups * part.positions * part.inputs * part.taps
        bytes_held = bytes_held + (expanded + weights) * size
    reducing = outputs * partial_size + received_bytes(target, method.partials, outputs, split.sums)
    most: IntArray = np.maximum(bytes_held, np.where(split.sums > 1, reducing, 0))
    return most


def _operands(problem: Problem, part: Part) -> tuple[IntArray, IntArray, IntArray]:
    """Count the elements of a part that are read, its weights, and its outputs."""
    windows = [
        axis.largest_window(outputs, taps)
        for axis, outputs, taps in zip(problem.axes, part.field, part.kernel, strict=True)
    ]
    read = part.groups * part.batch * part.inputs * _product(tuple(windows))
    weights = part.groups * part.outputs * part.inputs * part.taps
    return read, weights, part.groups * part.outputs * part.positions
