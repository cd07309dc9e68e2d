"""Other forms of a convolution, which give the same and may suit the tiles better.

Source: PopLibs lib/poplin/ConvTransforms.cpp, lib/poplin/ConvPlan.cpp (candidates).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import gcd

import numpy as np

from simulator.codelets.costs import ceil_div
from simulator.codelets.products.block_layout import Layout
from simulator.codelets.products.convolution_cycles import input_group
from simulator.graph.graph import Graph
from simulator.graph.machine.target import Target
from simulator.graph.program import Copy, Sequence
from simulator.graph.tensor import Tensor, concat
from simulator.graph.types import FLOAT, HALF
from simulator.poplibs.poplin.problem import Axis, Problem, total
from simulator.poplibs.poputil import mapTensorLinearly

MAX_CHANNELS = {FLOAT: 1, HALF: 2}  # of groups that are combined


@dataclass(frozen=True)
class Transform:
    """What is done to a problem before it is cut into parts.

    `swap` lets input and weights change places, batch and outputs with them; `combined` makes one
    group of several, whose weights are zero between channels of different ones.
    """

    swap: bool = False
    combined: int = 1

    def describe(self) -> str:
        """Name what is done."""
        combined = f"{self.combined} groups combined; " if self.combined > 1 else ""
        return "operands swapped; " * self.swap + combined

    def problem(self, problem: Problem) -> Problem:
        """Return the problem that is computed."""
        if self.swap:
            axes = tuple(_swapped(axis) for axis in problem.axes)
            return replace(problem, batch=problem.outputs, outputs=problem.batch, axes=axes)
        return replace(
            problem,
            groups=problem.groups // self.combined,
            inputs=problem.inputs * self.combined,
            outputs=problem.outputs * self.combined,
        )

    def cycles(self, target: Target, problem: Problem, tiles: int) -> int:
        """Return the cycles to spread the weights of combined groups, zeros and all, over tiles."""
        if self.combined == 1:
            return 0
        kernel = total([axis.kernel for axis in problem.axes])
        weights = problem.groups * problem.inputs * problem.outputs * kernel * self.combined
        share = ceil_div(weights, tiles) * problem.dtype.size
        return ceil_div(share, target.exchange_bytes_per_cycle) + target.getMaxIPUSyncDelay()

    def operands(
        self, graph: Graph, left: Tensor, right: Tensor, prog: Sequence, name: str
    ) -> tuple[Tensor, Tensor]:
        """Return both operands in the form that is computed."""
        if self.swap:
            return right.dimShufflePartial([1], [2]), left.dimShufflePartial([1], [2])
        if self.combined == 1:
            return left, right
        channels = self.combined * left.shape[1]
        merged = left.reshape((left.shape[0] // self.combined, channels, *left.shape[2:]))
        return merged, _combined(graph, right, self.combined, prog, name)

    def result(self, out: Tensor) -> Tensor:
        """Return [g][co][n][*field] as the problem before has it."""
        if self.swap:
            for axis in range(3, out.rank()):
                out = out.reverse(axis)
            return out.dimShufflePartial([1], [2])
        outputs = out.shape[1] // self.combined
        return out.reshape((out.shape[0] * self.combined, outputs, *out.shape[2:]))


def transforms_of(target: Target, problem: Problem) -> Iterator[Transform]:
    """List the forms that are worth a plan."""
    yield Transform()
    if not problem.axes or problem.grain > 1:
        return
    units = target.getNumConvUnits(problem.dtype, FLOAT)
    if problem.outputs < units and problem.outputs < problem.batch:
        yield Transform(swap=True)
    if problem.groups > 1 and problem.inputs <= MAX_CHANNELS[problem.dtype]:
        combined = gcd(problem.groups, input_group(target, problem.dtype) // problem.inputs)
        if combined > 1:
            yield Transform(combined=combined)


def _swapped(axis: Axis) -> Axis:
    """Let an axis slide its input over its kernel; its outputs come in the reverse order.

    Output o reads input i with kernel element k where i * input_step = o * stride + k * kernel_step
    - padding: that is solved for k.
    """
    return Axis(
        axis.kernel,
        axis.input,
        axis.output,
        axis.stride,
        axis.input_step,
        axis.kernel_step,
        (axis.output - 1) * axis.stride - axis.padding,
    )


def _combined(graph: Graph, weights: Tensor, count: int, prog: Sequence, name: str) -> Tensor:
    """Copy [g][co][ci][*kernel] with so many groups as one, on the diagonal of channels."""
    groups, outputs, inputs, *kernel = weights.shape
    apart = weights.reshape((groups // count, count, outputs, inputs, *kernel))
    zero = graph.addConstant(weights.dtype, [1], 0, f"{name}/zero")
    graph.setTileMapping(zero, 0)
    shape = (groups // count, 1, outputs, inputs, *kernel)
    both = concat([apart, zero.broadcast(total(shape), 0).reshape(shape)], 1)
    order = np.where(np.eye(count, dtype=bool), np.arange(count)[:, None], count)
    square = both.taken(order.reshape(-1), 1)
    pairs = square.reshape((groups // count, count, count, outputs, inputs, *kernel))
    sizes = (groups // count, count * outputs, count * inputs, *kernel)
    view = pairs.dimShufflePartial([3], [2]).reshape(sizes)
    layout = Layout(tuple(range(len(sizes))), 2, count * inputs)
    memory = graph.addVariable(weights.dtype, layout.sizes(sizes), f"{name}/weightsCombined")
    mapTensorLinearly(graph, memory)
    combined = memory.dimShuffle(layout.permutation()).reshape(sizes)
    prog.add(Copy(view, combined, name=f"{name}/CombineGroups"))
    return combined
