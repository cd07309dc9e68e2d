"""What the planner of PopLibs pays for operands of a product that have to be rearranged.

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
from simulator.poplibs.poplin.plan import Method
from simulator.poplibs.poplin.problem import Problem

LAYER = "FC_"  # begins the names of passes of fully connected layers
PRODUCTS = ("NONE_MATMUL", LAYER)


class Moved(NamedTuple):
    """What is rearranged; `regrouped` is the output, in blocks of a group of channels."""

    input: bool
    weights: bool
    output: bool
    regrouped: bool


def moved(target: Target, problem: Problem, method: Method, purpose: str, *, joint: bool) -> Moved:
    """Return what of a product is rearranged; operands are named as the vertex takes them."""
    stationary = method.sides(problem.batch, problem.outputs)[1]
    vertex_as_given = not method.swapped
    uneven, outputs_uneven = problem.inputs % method.in_group > 0, stationary % method.out_group > 0
    alone = not joint
    update, backward = purpose == "FC_TRAINING_WU", purpose == "FC_TRAINING_BWD"
    grouped = method.out_group == input_group(target, problem.dtype)
    return Moved(
        vertex_as_given or uneven or update or (backward and alone),
        vertex_as_given or uneven or outputs_uneven,
        vertex_as_given or outputs_uneven or (update and alone),
        not purpose.startswith(LAYER) and not grouped,
    )


def rearranging_cycles(
    target: Target,
    problem: Problem,
    method: Method,
    purpose: str,
    tiles: IntArray,
    *,
    joint: bool = False,
) -> IntArray:
    """Return the cycles to rearrange operands and result on so many tiles: none but of products."""
    cycles = np.zeros_like(tiles)
    if not purpose.startswith(PRODUCTS) or problem.axes:
        return cycles
    parts_moved = moved(target, problem, method, purpose, joint=joint)
    moving, stationary = method.sides(problem.batch, problem.outputs)
    inputs, full_size = (
        ceil_div(size, group) * group
        for size, group in ((problem.inputs, method.in_group), (stationary, method.out_group))
    )
    operand_elements = (
        problem.groups * inputs * (parts_moved.input * moving + parts_moved.weights * full_size)
    )
    output_elements = problem.groups * moving * full_size
    channels = problem.inputs * stationary
    size = problem.out_type.size
    if operand_elements:
        cycles = cycles + _copied(
            target, problem, operand_elements, channels, size, size, tiles, sent=True
        )
    partial = method.partials.size
    if parts_moved.output:
        cycles = cycles + _copied(
            target, problem, output_elements, stationary, partial, partial, tiles, sent=True
        )
    elif parts_moved.regrouped:
        block = method.out_group * partial
        cycles = cycles + _copied(
            target, problem, output_elements, stationary, partial, block, tiles, sent=False
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
