"""What the planner of PopLibs pays for operands that have to be rearranged.

Source: PopLibs lib/poplin/ConvModel.cpp of March 2021 (addTransformCycleEstimate). Operands are
taken to lie as a product likes them whose weights stream through the matrix units, in whole groups
of channels; what is otherwise is moved once, evenly over the tiles, and copied there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from simulator.codelets.costs import ceil_div
from simulator.codelets.products.convolution_cycles import input_group
from simulator.graph.machine.target import Target
from simulator.graph.types import FLOAT, IntArray
from simulator.poplibs.poplin.planning.plan import Method
from simulator.poplibs.poplin.planning.problem import Problem, total

LAYER = "FC_"  # begins the names of passes of fully connected layers
PRODUCTS = ("NONE_MATMUL", LAYER)
TRAINING = "TRAINING_"  # begins the names of passes of convolutions that are trained


class Moved(NamedTuple):
    """What is rearranged; `regrouped` are output and weights, in blocks of a group of channels."""

    input: bool
    weights: bool
    output: bool
    regrouped: bool
    weights_regrouped: bool


def moved(
    target: Target,
    problem: Problem,
    method: Method,
    purpose: str,
    *,
    joint: bool,
    swap: bool = False,
    combined: bool = False,
    laid_out: bool = False,
) -> Moved:
    """Return what is rearranged; operands are named as the vertex takes them.

    `swap`, `combined` and `laid_out` tell what the form of the problem does already.
    """
    stationary = method.sides(problem.batch, problem.outputs)[1]
    product, updates = purpose.startswith(PRODUCTS), purpose == "TRAINING_WU"
    is_swapped = method.swapped != swap
    uneven = problem.inputs % method.in_group > 0
    outputs_uneven = stationary % method.out_group > 0
    otherwise = is_swapped != product or combined or laid_out or uneven or updates
    alone = not joint
    update, backward = purpose == "FC_TRAINING_WU", purpose == "FC_TRAINING_BWD"
    group = input_group(target, problem.dtype)
    grouped = method.out_group == group
    return Moved(
        otherwise or update or (backward and alone),
        otherwise or outputs_uneven,
        is_swapped != (product or updates) or combined or outputs_uneven or (update and alone),
        not purpose.startswith(LAYER) and not grouped,
        purpose == "TRAINING_FWD" and method.out_group % group > 0,
    )


def rearranging_cycles(
    target: Target,
    problem: Problem,
    method: Method,
    purpose: str,
    tiles: IntArray,
    *,
    joint: bool = False,
    swap: bool = False,
    combined: bool = False,
    laid_out: bool = False,
) -> IntArray:
    """Return the cycles to rearrange operands and result on so many tiles.

    None but of products and of convolutions that are trained. A kernel that is laid out as channels
    is rearranged, and priced, on each tile here.
    """
    cycles = np.zeros_like(tiles)
    priced = purpose.startswith(TRAINING) or (purpose.startswith(PRODUCTS) and not problem.axes)
    if method.expanded or not priced:
        return cycles
    form = {"swap": swap, "combined": combined, "laid_out": laid_out}
    parts_moved = moved(target, problem, method, purpose, joint=joint, **form)
    of_input, taps, field = (
        total([getattr(axis, side) for axis in problem.axes])
        for side in ("input", "kernel", "output")
    )
    held = problem.batch if method.swapped else problem.outputs
    full_size = ceil_div(held, method.out_group) * method.out_group
    inputs = ceil_div(problem.inputs, method.in_group) * method.in_group
    batch, outputs = (full_size, problem.outputs) if method.swapped else (problem.batch, full_size)
    streams, stays = method.sides(batch * of_input, outputs * taps)
    elements = problem.groups * inputs * (parts_moved.input * streams + parts_moved.weights * stays)
    output_elements = problem.groups * batch * outputs * field
    channels = problem.inputs * held
    size, partial = problem.out_type.size, method.partials.size
    if elements:
        cycles = cycles + _copied(target, problem, elements, channels, size, size, tiles, sent=True)
    if parts_moved.weights_regrouped and not parts_moved.weights:
        block = method.out_group * size
        weights = problem.groups * inputs * stays
        cycles = cycles + _copied(target, problem, weights, held, size, block, tiles, sent=False)
    block = partial if parts_moved.output else method.out_group * partial
    if parts_moved.output or parts_moved.regrouped:
        sent = parts_moved.output
        cycles = cycles + _copied(
            target, problem, output_elements, held, partial, block, tiles, sent=sent
        )
    return cycles


def _copied(
    target: Target,
    problem: Problem,
    elements: Any,
    channels: int,
    size: int,
    block: int,
    tiles: IntArray,
    *,
    sent: bool,
) -> IntArray:
    """Return the cycles to copy elements in blocks of so many bytes, exchanged first if `sent`.

    A quarter more than the bytes take, or two thirds where channels are no whole vectors.
    """
    share = ceil_div(elements, tiles) * size
    vector = 2 if problem.dtype == FLOAT else 4
    rate = min(target.getMemcpyBytesPerCycle(), block)
    copied = ceil_div(share * 5, rate * (4 if channels % vector == 0 else 3))
    exchanged = ceil_div(share, target.exchange_bytes_per_cycle) if sent else 0
    total: IntArray = copied + exchanged
    return total
