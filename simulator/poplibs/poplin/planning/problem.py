"""A convolution as the planner and the vertices see it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from simulator.graph.geometry.intervals import heads_of
from simulator.graph.types import IntArray, Type
from simulator.poplibs.poplin.planning.params import ConvParams


@dataclass(frozen=True)
class Axis:
    """A dimension of the field.

    Output o with kernel element k reads input (o * stride + k * kernel_step - padding) / input_step
    where that is a whole number of the input; everything else is zero.
    """

    input: int
    kernel: int
    output: int
    stride: int = 1
    kernel_step: int = 1
    input_step: int = 1
    padding: int = 0

    @cached_property
    def reads(self) -> IntArray:
        """Return which input [output][kernel] reads; -1 for a zero."""
        place = (
            np.arange(self.output)[:, None] * self.stride
            + np.arange(self.kernel)[None, :] * self.kernel_step
            - self.padding
        )
        number, remainder = np.divmod(place, self.input_step)
        real = (remainder == 0) & (number >= 0) & (number < self.input)
        positions: IntArray = np.where(real, number, -1)
        return positions

    def window(
        self, first: IntArray, end: IntArray, tap: IntArray, tap_end: IntArray
    ) -> tuple[IntArray, IntArray]:
        """Return the inputs [low, high) of outputs [first, end) with kernel [tap, tap_end)."""
        low = first * self.stride + tap * self.kernel_step - self.padding
        high = (end - 1) * self.stride + (tap_end - 1) * self.kernel_step - self.padding
        begin = np.clip(-(-low // self.input_step), 0, self.input)
        return begin, np.clip(high // self.input_step + 1, begin, self.input)

    def largest_window(self, outputs: IntArray, taps: IntArray) -> IntArray:
        """Return at most how many inputs so many outputs read with so many kernel elements."""
        reach = (outputs - 1) * self.stride + (taps - 1) * self.kernel_step
        window: IntArray = np.minimum(reach // self.input_step + 1, self.input)
        return window

    @property
    def zeros_around(self) -> int:
        """Count the zeros that are read beside the input, on both sides together."""
        last = (self.output - 1) * self.stride + (self.kernel - 1) * self.kernel_step - self.padding
        return max(self.padding, 0) + max(last - (self.input - 1) * self.input_step, 0)

    @property
    def plain(self) -> bool:
        """Return whether output o reads input o, and nothing else."""
        return self == Axis(self.input, 1, self.input)


@dataclass(frozen=True)
class Problem:
    """A convolution: out[g][co][n][o] sums in[g][ci][n][i(o, k)] * w[g][co][ci][k] over ci and k.

    Batch and outputs are cut in steps of `grain` at least.
    """

    groups: int
    batch: int
    inputs: int
    outputs: int
    axes: tuple[Axis, ...]
    dtype: Type
    out_type: Type
    grain: int = 1

    def names(self) -> tuple[str, ...]:
        """Name the dimensions that are cut, those of sums last."""
        dims = range(len(self.axes))
        fields, kernels = (f"field{d}" for d in dims), (f"kernel{d}" for d in dims)
        return ("groups", "batch", *fields, "outputs", *kernels, "inputs")

    def sizes(self) -> tuple[int, ...]:
        """Return the sizes of these dimensions."""
        fields, kernels = (a.output for a in self.axes), (a.kernel for a in self.axes)
        return (self.groups, self.batch, *fields, self.outputs, *kernels, self.inputs)


def problem_of(params: ConvParams) -> Problem:
    """Bring all transforms into one form; padding of the output is left out."""
    dims = range(params.getNumFieldDims())
    axes = tuple(_axis(params, dim) for dim in dims)
    return Problem(
        params.numConvGroups,
        params.batchSize,
        params.inputChannelsPerConvGroup,
        params.outputChannelsPerConvGroup,
        axes,
        params.dataType,
        params.out_type,
    )


def _axis(params: ConvParams, d: int) -> Axis:
    """Return a dimension after truncation and flips, which views of the tensors do."""
    of_input, of_kernel, out = (
        params.inputTransform,
        params.kernelTransform,
        params.outputTransform,
    )
    in_pad = (of_input.paddingUpper if of_input.flip[d] else of_input.paddingLower)[d]
    tap_pad = (of_kernel.paddingUpper if of_kernel.flip[d] else of_kernel.paddingLower)[d]
    full = params.getOutputFieldShape()[d] - out.paddingLower[d] - out.paddingUpper[d]
    return Axis(
        params.inputFieldShape[d] - of_input.truncationLower[d] - of_input.truncationUpper[d],
        params.kernelShape[d] - of_kernel.truncationLower[d] - of_kernel.truncationUpper[d],
        full,
        out.stride[d],
        of_kernel.dilation[d],
        of_input.dilation[d],
        in_pad - tap_pad - out.truncationLower[d],
    )


def kept_of(axis: Axis) -> tuple[Axis, IntArray, IntArray]:
    """Leave out inputs that no output reads and outputs that read none, of a kernel of one element.

    Gives the dimension that is left, and which inputs and outputs it keeps.
    """
    inputs, outputs = np.arange(axis.input), np.arange(axis.output)
    if axis.kernel > 1 or (axis.reads < 0).all():
        return axis, inputs, outputs
    outputs = np.flatnonzero(axis.reads[:, 0] >= 0)
    inputs = axis.reads[outputs, 0]
    return Axis(len(inputs), 1, len(outputs)), inputs, outputs


def compact(problem: Problem) -> Problem:
    """Leave out of all dimensions what a kernel of one element does not meet."""
    return replace(problem, axes=tuple(kept_of(axis)[0] for axis in problem.axes))


def flattened(problem: Problem) -> Problem:
    """Count plain dimensions of the field as batch: their outputs are positions like any other."""
    if not all(axis.plain for axis in problem.axes):
        return problem
    field = int(np.prod([axis.output for axis in problem.axes] or [1]))
    return replace(problem, batch=problem.batch * field, axes=())


def merged(problem: Problem) -> Problem:
    """Count samples and plain dimensions of the field as the innermost of these.

    As in PopLibs (lib/poplin/ConvModel.cpp, calculateFlattenedParams); where all are plain, or
    none, nothing changes.
    """
    plain = [d for d, axis in enumerate(problem.axes) if axis.plain]
    if not plain or len(plain) == len(problem.axes):
        return problem
    axes, one = list(problem.axes), Axis(1, 1, 1)
    size = problem.batch * total([axes[d].output for d in plain])
    for d in plain:
        axes[d] = one
    axes[plain[-1]] = Axis(size, 1, size)
    return replace(problem, batch=1, axes=tuple(axes), grain=1)


def merged_order(problem: Problem) -> tuple[int, ...]:
    """Return the order of [g][c][n][*field] in which what `merged` joins stands together."""
    plain = [3 + d for d, axis in enumerate(problem.axes) if axis.plain]
    order = [0, 1]
    for d, axis in enumerate(problem.axes, 3):
        order += [2, *plain] if d == plain[-1] else [] if axis.plain else [d]
    return tuple(order)


def slice_kernel(problem: Problem, begin: int, end: int) -> Problem:
    """Return the problem that sums over some of the kernel's first dimension."""
    first = problem.axes[0]
    taps = min(end, first.kernel) - begin
    padding = first.padding - begin * first.kernel_step
    return replace(problem, axes=(replace(first, kernel=taps, padding=padding), *problem.axes[1:]))


def even_candidates(size: int, grain: int, most: int) -> list[int]:
    """List the numbers of parts up to `most` that differ in the size of the largest part."""
    grains = -(-size // grain)
    parts = np.arange(1, min(grains, most) + 1)
    candidates: list[int] = parts[heads_of(-(-grains // parts))].tolist()
    return candidates


def total(sizes: Sequence[int]) -> int:
    """Multiply sizes."""
    return int(np.prod(sizes, dtype=np.int64)) if len(sizes) else 1
