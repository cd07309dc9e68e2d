"""Other forms of a convolution, which give the same and may suit the tiles better.

Source: PopLibs lib/poplin/ConvTransforms.cpp, lib/poplin/ConvPlan.cpp (candidates).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from math import gcd

import numpy as np

from simulator.codelets.costs import ceil_div
from simulator.codelets.products.block_layout import Layout
from simulator.codelets.products.convolution_cycles import input_group
from simulator.graph.graph import Graph
from simulator.graph.machine.target import Target
from simulator.graph.program import Copy, Sequence
from simulator.graph.tensors.tensor import Tensor, concat
from simulator.graph.types import FLOAT, HALF
from simulator.poplibs.poplin.planning.problem import (
    Axis,
    Problem,
    flattened,
    merged,
    merged_order,
    total,
)
from simulator.poplibs.poputil import mapTensorLinearly

MAX_CHANNELS = {FLOAT: 1, HALF: 2}  # of groups that are combined


@dataclass(frozen=True)
class Transform:
    """What is done to a problem before it is cut into parts.

    `swap` lets input and weights change places, batch and outputs with them; of the dimensions
    `expanded` the kernel is laid out as channels; samples and dimensions whose outputs read one
    input are counted as one, if `together`; `combined` makes one group of several, whose weights
    are zero between channels of different ones.
    """

    swap: bool = False
    combined: int = 1
    expanded: tuple[int, ...] = ()
    together: bool = False

    def describe(self) -> str:
        """Name what is done."""
        combined = f"{self.combined} groups combined; " if self.combined > 1 else ""
        numbers = ", ".join(map(str, self.expanded))
        expanded = f"kernel {numbers} as channels; " if self.expanded else ""
        return "operands swapped; " * self.swap + expanded + combined

    def problem(self, problem: Problem) -> Problem:
        """Return the problem that is computed."""
        viewed = self._laid_out(self.viewed(problem))
        if self.together:
            return replace(merged(flattened(viewed)), grain=1)
        if self.swap:
            return viewed
        return replace(
            problem,
            groups=problem.groups // self.combined,
            inputs=problem.inputs * self.combined,
            outputs=problem.outputs * self.combined,
        )

    def viewed(self, problem: Problem) -> Problem:
        """Return the problem before kernels are laid out and groups combined."""
        if not self.swap:
            return problem
        axes = tuple(_swapped(axis) for axis in problem.axes)
        return replace(problem, batch=problem.outputs, outputs=problem.batch, axes=axes)

    def _laid_out(self, problem: Problem) -> Problem:
        """Let kernels be channels, whose dimensions then read each input once."""
        if not self.expanded:
            return problem
        axes = list(problem.axes)
        for d in self.expanded:
            axes[d] = Axis(axes[d].output, 1, axes[d].output)
        taps = total([problem.axes[d].kernel for d in self.expanded])
        return replace(problem, inputs=problem.inputs * taps, axes=tuple(axes))

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

    def laid_out(
        self, graph: Graph, problem: Problem, left: Tensor, right: Tensor, name: str
    ) -> tuple[Tensor, Tensor]:
        """Return operands, swapped already, with kernels as channels, those of a tap together.

        What meets no input is a constant of zero.
        """
        viewed = self.viewed(problem)
        if self.expanded:
            group = gcd(left.shape[1], input_group(graph.target, problem.dtype))
            zero = graph.addConstant(problem.dtype, [group], 0, f"{name}/zero")
            graph.setTileMapping(zero, 0)
        for d in reversed(self.expanded):  # the innermost first
            left = _with_windows(left, viewed.axes[d], 3 + d, zero)
            right = right.dimRoll(3 + d, 2).flatten(2, 4).expand([3 + d])
        flat = self.problem(problem)
        if not flat.axes:
            return left.reshape((*left.shape[:2], flat.batch)), right.reshape(right.shape[:3])
        return self.merge(left, problem), right

    def joins(self, problem: Problem) -> bool:
        """Return whether samples and some dimensions, but not all, are counted as one."""
        viewed = self._laid_out(self.viewed(problem))
        return self.together and merged(viewed) != viewed

    def merge(self, tensor: Tensor, problem: Problem) -> Tensor:
        """Return an input [g][ci][n][*field], kernels laid out, with what is together as one."""
        viewed = self._laid_out(self.viewed(problem))
        if not self.joins(problem):
            return tensor
        sizes = (1, *(axis.input for axis in merged(viewed).axes))
        return tensor.dimShuffle(merged_order(viewed)).reshape((*tensor.shape[:2], *sizes))

    def apart(self, tensor: Tensor, problem: Problem, *, of_input: bool = False) -> Tensor:
        """Undo `merge` of an output, or of an input."""
        viewed = self._laid_out(self.viewed(problem))
        field = [axis.input if of_input else axis.output for axis in viewed.axes]
        sizes = (*tensor.shape[:2], viewed.batch, *field)
        if not self.joins(problem):
            return tensor.reshape(sizes)
        order = merged_order(viewed)
        back = sorted(range(len(order)), key=order.__getitem__)
        return tensor.reshape(tuple(sizes[d] for d in order)).dimShuffle(back)

    def result(self, out: Tensor, problem: Problem) -> Tensor:
        """Return [g][co][n][*field] as the problem before has it."""
        if self.together:
            out = self.apart(out, problem)
        if self.swap:
            for axis in range(3, out.rank()):
                out = out.reverse(axis)
            return out.dimShufflePartial([1], [2])
        outputs = out.shape[1] // self.combined
        return out.reshape((out.shape[0] * self.combined, outputs, *out.shape[2:]))


def transforms_of(target: Target, problem: Problem, *, trained: bool) -> Iterator[Transform]:
    """List the forms that are worth a plan; those of convolutions that are `trained` are priced."""
    if not problem.axes or not trained:
        yield Transform()
    if not problem.axes:
        return
    if trained:
        for swap in (False, True):
            for dims in ((), *_expandable(Transform(swap).viewed(problem))):
                yield Transform(swap, expanded=dims, together=True)
    if problem.grain > 1:
        return
    units = target.getNumConvUnits(problem.dtype, FLOAT)
    if problem.outputs < units and problem.outputs < problem.batch and not trained:
        yield Transform(swap=True)
    if problem.groups > 1 and problem.inputs <= MAX_CHANNELS[problem.dtype]:
        combined = gcd(problem.groups, input_group(target, problem.dtype) // problem.inputs)
        if combined > 1:
            yield Transform(combined=combined)


def _expandable(problem: Problem) -> Iterator[tuple[int, ...]]:
    """List the sets of dimensions whose kernel may be laid out (getExpandDimsCandidates)."""
    axes = problem.axes
    dims = [d for d, a in enumerate(axes) if not a.plain and a.input >= a.kernel]
    for size in range(1, len(dims) + 1):
        yield from combinations(dims, size)


def _with_windows(tensor: Tensor, axis: Axis, place: int, zero: Tensor) -> Tensor:
    """Return [g][ci]...[input]... as [g][taps * ci]...[output]...: what each tap reads."""
    reads = axis.reads
    if (reads < 0).any():
        shape = (*tensor.shape[:place], 1, *tensor.shape[place + 1 :])
        group, (groups, channels, *others) = zero.shape[0], shape
        zeros = zero.broadcast(total(shape) // group, 0).reshape(
            (groups, channels // group, *others, group)
        )
        tensor = concat([tensor, zeros.dimRoll(len(shape), 2).reshape(shape)], place)
    order = np.where(reads < 0, axis.input, reads)
    windows = tensor.taken(order.T.reshape(-1), place)  # [tap][output]
    split = windows.reshapePartial(place, place + 1, [axis.kernel, axis.output])
    return split.dimRoll(place, 1).flatten(1, 3)


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
