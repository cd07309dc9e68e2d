"""Which inputs a pooling reads for which outputs: one relation for each dimension of the field.

Output o and position k of the kernel meet at the input i with i * dilation = o * stride + k -
padding, where there is one. The forward pass has dilation 1, its gradient stride 1: the gradient's
outputs are the inputs of the forward pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from simulator.graph.types import Array, IntArray

NOWHERE = -1


@dataclass(frozen=True, slots=True)
class Window:
    """How one dimension of the field is pooled."""

    inputs: int
    outputs: int
    kernel: int
    stride: int = 1
    dilation: int = 1
    padding: int = 0

    @classmethod
    def forward(cls, inputs: int, kernel: int, stride: int, lower: int, upper: int) -> Window:
        """Return the forward pass over a dimension; negative paddings leave inputs out."""
        outputs = max((inputs + lower + upper - kernel) // stride + 1, 0)
        return cls(inputs, outputs, kernel, stride, 1, lower)

    def gradient(self) -> Window:
        """Return the pass back, from the outputs to the inputs; the kernel is turned round."""
        padding = self.kernel - 1 - self.padding
        return Window(self.outputs, self.inputs, self.kernel, 1, self.stride, padding)

    def input_of(self) -> IntArray:
        """Return the input of each [position of the kernel][output]; NOWHERE for none."""
        position = np.arange(self.kernel, dtype=np.int64)[:, None]
        output = np.arange(self.outputs, dtype=np.int64)
        place = output * self.stride + position - self.padding
        is_input = (place % self.dilation == 0) & (place >= 0)
        is_input &= place < self.inputs * self.dilation
        inputs: IntArray = np.where(is_input, place // self.dilation, NOWHERE)
        return inputs

    def counts(self) -> IntArray:
        """Count the positions of the kernel that have an input, for each output."""
        counts: IntArray = (self.input_of() != NOWHERE).sum(axis=0, dtype=np.int64)
        return counts

    def input_range(self, begin: IntArray, end: IntArray) -> tuple[IntArray, IntArray]:
        """Return the inputs [low, high) that the outputs [begin, end) read; none are [0, 0)."""
        inputs = self.input_of()
        used = inputs != NOWHERE
        low = np.where(used, inputs, self.inputs).min(axis=0, initial=self.inputs)
        high = np.where(used, inputs + 1, 0).max(axis=0, initial=0)
        bounds = np.stack([begin, end], axis=1).reshape(-1)
        lowest = _reduced(np.minimum, low, bounds, self.inputs)
        highest = _reduced(np.maximum, high, bounds, 0)
        first: IntArray = np.where(highest > 0, lowest, 0)
        return first, highest


def _reduced(function: np.ufunc, values: IntArray, bounds: IntArray, empty: int) -> IntArray:
    """Reduce the values of each range [bounds[2r], bounds[2r + 1])."""
    result: IntArray = function.reduceat(np.append(values, empty), bounds)[::2]
    return np.where(bounds[1::2] > bounds[::2], result, empty)


@dataclass(frozen=True, slots=True)
class PoolShape:
    """A pooling: of how many samples and channels, and how each dimension of the field is done."""

    batch: int
    channels: int
    windows: tuple[Window, ...]

    @property
    def inputs(self) -> tuple[int, ...]:
        return tuple(window.inputs for window in self.windows)

    @property
    def outputs(self) -> tuple[int, ...]:
        return tuple(window.outputs for window in self.windows)

    @property
    def positions(self) -> int:
        """Count the positions of the kernel."""
        return prod(window.kernel for window in self.windows)

    def gradient(self) -> PoolShape:
        """Return the pass back."""
        return PoolShape(
            self.batch, self.channels, tuple(window.gradient() for window in self.windows)
        )

    def used_positions(self) -> IntArray:
        """Count the inputs of each output of the field."""
        counts: Array = np.ones((), dtype=np.int64)
        for window in self.windows:
            counts = np.multiply.outer(counts, window.counts())
        return counts
