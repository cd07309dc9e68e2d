"""Vertices of convolutions: parts of them on matrix units, and the rearrangement before.

A vertex adds up in[g][ci][n][i] * weights[g][co][ci][k] for out[g][co][n][o] of its part. Which
input an output reads follows from what each vertex knows of every dimension of the field: `input`,
`output`, `kernel` (how many of them its part has) and `shift`: its output o with its kernel element
k reads input (o * stride + k * kernel_step + shift) / input_step of the part, or a zero.
Cycles: `convolution_cycles`, `transpose_cycles`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from simulator.codelets.block_layout import Layout
from simulator.codelets.costs import runs_of_equals
from simulator.codelets.reduction import accumulator
from simulator.graph.intervals import offsets_of
from simulator.graph.types import Array, IntArray, Type
from simulator.graph.vertex import Codelet, Operands, VertexGroup

WORKLIST_ENTRIES = 3  # offset of the output, positions, offset of the input; of 2 bytes each
SIZES = {  # bytes of state and of code of each vertex type
    "poplin::ConvPartial1x1Out": (28, 400),
    "poplin::ConvPartialnx1": (44, 500),
    "poplin::ConvPartialHorizontalMac": (36, 400),
    "poplin::ConvPartialVerticalMac": (36, 450),
    "poplin::ConvPartial1x4SLIC": (36, 700),
}
CHANNELS = ("groups", "batch", "outputs", "inputs")  # parameters, and by dimension AXIS
AXIS = ("input", "output", "kernel", "shift")
EVERYTHING: tuple[Any, ...] = (slice(None),) * 4
Steps = tuple[tuple[int, int, int], ...]  # stride, kernel_step and input_step of each dimension


@dataclass(frozen=True, slots=True)
class Block:
    """The sizes of the part of a vertex."""

    groups: int
    batch: int
    outputs: int
    inputs: int
    axes: tuple[tuple[int, int, int, int], ...]

    @classmethod
    def of(cls, numbers: tuple[int, ...]) -> Block:
        """Read what `parameters_of` wrote."""
        rest = numbers[len(CHANNELS) :]
        axes = tuple(zip(*[iter(rest)] * len(AXIS), strict=True))
        groups, batch, outputs, inputs = numbers[: len(CHANNELS)]
        return cls(groups, batch, outputs, inputs, axes)

    @property
    def field(self) -> tuple[int, ...]:
        return tuple(axis[1] for axis in self.axes)

    @property
    def kernel(self) -> tuple[int, ...]:
        return tuple(axis[2] for axis in self.axes)

    @property
    def input_sizes(self) -> tuple[int, ...]:
        return (self.groups, self.inputs, self.batch, *(axis[0] for axis in self.axes))

    @property
    def weight_sizes(self) -> tuple[int, ...]:
        return (self.groups, self.outputs, self.inputs, *self.kernel)

    def reads(self, steps: Steps) -> list[IntArray]:
        """Give for each dimension which input [output][kernel] reads; -1 for a zero."""
        found = []
        for (inputs, outputs, taps, shift), (stride, kernel_step, input_step) in zip(
            self.axes, steps, strict=True
        ):
            place = np.arange(outputs)[:, None] * stride + np.arange(taps) * kernel_step + shift
            number, rest = np.divmod(place, input_step)
            found.append(np.where((rest == 0) & (number >= 0) & (number < inputs), number, -1))
        return found


def worklists(positions: IntArray, workers: int) -> Array:
    """Give each worker's share of the positions: offset out, count, offset in; by vertex."""
    worker = np.arange(workers)[None, :]
    share = positions[:, None] // workers + (worker < positions[:, None] % workers)
    first = np.cumsum(share, axis=1) - share
    return np.stack([first, share, first], axis=2).astype(np.uint16)


def row_worklists(
    positions: IntArray, rows: IntArray, width: IntArray, workers: int
) -> tuple[Array, IntArray]:
    """Give each worker its positions for each of `rows` rows of a kernel of a width; by vertex.

    An entry has offsets out, in the kernel and in, and how many elements are multiplied: a row, or
    a part of one where workers share a position. Gives the entries of each vertex too.
    """
    split = workers // np.gcd(workers, positions)
    whole, part = np.divmod(positions * split // workers, split)
    each = whole + (part > 0)
    counts = workers * rows * each
    vertex = np.repeat(np.arange(len(counts)), counts)
    number = np.arange(len(vertex)) - offsets_of(counts)[vertex]
    worker, rest = np.divmod(number, (rows * each)[vertex])
    row, place = np.divmod(rest, each[vertex])
    out = worker * positions[vertex] // workers + place
    kernel = row * width[vertex]
    elements = np.where(place < whole[vertex], width[vertex], -(-part * width // split)[vertex])
    return np.stack([out, kernel, out + kernel, elements], axis=1).astype(np.uint16), counts


def _names(dimensions: int) -> list[str]:
    return [*CHANNELS, *(f"{name}{axis}" for axis in range(dimensions) for name in AXIS)]


def _runs(
    operands: Operands, fields: tuple[str, ...]
) -> Iterator[tuple[Block, int, dict[str, slice]]]:
    """Give the parts, so many neighbours of one shape together, and where their fields are."""
    if "runs" not in operands.prepared:
        p = operands.group.parameters
        dimensions = (len(p) - len(CHANNELS)) // len(AXIS)
        shapes = np.stack([p[name] for name in _names(dimensions)], axis=1)
        starts = {name: offsets_of(operands.counts[name]) for name in fields}
        operands.prepared["runs"] = [
            (
                Block.of(values),
                end - first,
                {n: slice(s[first], s[end]) for n, s in starts.items()},
            )
            for first, end, values in runs_of_equals(shapes)
        ]
    yield from operands.prepared["runs"]


def conv_codelet(
    vertex: str, dtype: Type, partials: Type, layouts: dict[str, Layout], steps: Steps
) -> Codelet:
    """Give the codelet of parts of convolutions; `layouts` are those of `in`, `weights`, `out`."""

    def operations(group: VertexGroup) -> IntArray:
        p = group.parameters
        found = 2 * p["groups"] * p["batch"] * p["outputs"] * p["inputs"]
        for axis in range(len(steps)):
            found = found * p[f"output{axis}"] * p[f"kernel{axis}"]
        return found

    def compute(operands: Operands) -> dict[str, Array]:
        fields = ("in", "weights", "out")
        wide = accumulator(dtype)
        out = np.empty(int(operands.counts["out"].sum()), dtype=wide)
        for block, count, part in _runs(operands, fields):
            left = layouts["in"].unpack(operands.arrays["in"][part["in"]], count, block.input_sizes)
            right = layouts["weights"].unpack(
                operands.arrays["weights"][part["weights"]], count, block.weight_sizes
            )
            made = _convolve(block, left.astype(wide), right.astype(wide), block.reads(steps))
            out[part["out"]] = layouts["out"].pack(made)
        return {"out": out.astype(partials.numpy, copy=False)}

    return Codelet(vertex, compute, True, *SIZES[vertex.partition("<")[0]], operations)


def _convolve(block: Block, inputs: Array, weights: Array, reads: list[IntArray]) -> Array:
    """Convolve [vertex][g][ci][n][i] with [vertex][g][co][ci][k], a kernel element at a time."""
    vertices = len(inputs)
    whole = (vertices * block.groups, block.outputs, block.batch, *block.field)
    made = np.zeros(whole, dtype=inputs.dtype)
    left = inputs.reshape(vertices * block.groups, *block.input_sizes[1:])
    right = weights.reshape(vertices * block.groups, *block.weight_sizes[1:])
    for tap in product(*(range(size) for size in block.kernel)):
        read = [axis[:, k] for axis, k in zip(reads, tap, strict=True)]
        outputs = [np.flatnonzero(numbers >= 0) for numbers in read]
        sources = [numbers[found] for numbers, found in zip(read, outputs, strict=True)]
        here = left[np.ix_(*(np.arange(s) for s in left.shape[:3]), *sources)]
        flat = here.reshape(*here.shape[:2], here[0, 0].size)
        here_weights = right[(*EVERYTHING[:3], *tap)]
        product_of_tap = np.matmul(here_weights, flat)
        target = np.ix_(*(np.arange(s) for s in whole[:3]), *outputs)
        made[target] += product_of_tap.reshape(*whole[:2], *here.shape[2:])
    return made.reshape(vertices, block.groups, *whole[1:])


def arrange_codelet(dtype: Type, layout: Layout, steps: Steps, *, weights: bool) -> Codelet:
    """Give the codelet that lays out a part as [g][n][o][ci][k], or weights as [g][co][ci][k].

    `layout` is that of what it reads, `in`; it writes `out`.
    """

    def compute(operands: Operands) -> dict[str, Array]:
        out = np.empty(int(operands.counts["out"].sum()), dtype=dtype.numpy)
        for block, count, part in _runs(operands, ("in", "out")):
            sizes = block.weight_sizes if weights else block.input_sizes
            source = layout.unpack(operands.arrays["in"][part["in"]], count, sizes)
            if not weights:
                source = _windows(source, block.reads(steps))
            out[part["out"]] = source.reshape(-1)
        return {"out": out}

    return Codelet(f"popops::Transpose1D<{dtype}>", compute, True, 16, 200)


def transpose_codelet(dtype: Type, rows: int, columns: int) -> Codelet:
    """Give the codelet that transposes blocks of rows by columns, one after another."""

    def compute(operands: Operands) -> dict[str, Array]:
        blocks = operands.arrays["in"].reshape(-1, rows, columns)
        return {"out": blocks.transpose(0, 2, 1).reshape(-1)}

    return Codelet(f"popops::Transpose1D<{dtype}>", compute, True, 16, 200)


def _windows(source: Array, reads: list[IntArray]) -> Array:
    """Lay the inputs of each output side by side: [vertex][g][n][o...][ci][k...]."""
    padded = np.pad(source, [(0, 0)] * 4 + [(0, 1)] * len(reads))  # index -1 is a zero
    dims = len(reads)
    index: list[IntArray] = []
    for axis, numbers in enumerate(reads):
        shape = [1] * (2 * dims)
        shape[axis], shape[dims + axis] = numbers.shape
        index.append(numbers.reshape(shape))
    taken = padded[(*EVERYTHING, *index)]  # [vertex][g][ci][n][o...][k...]
    order = (0, 1, 3, *range(4, 4 + dims), 2, *range(4 + dims, 4 + 2 * dims))
    windows: Array = taken.transpose(order)
    return windows
