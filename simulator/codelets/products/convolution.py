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
from math import prod

import numpy as np
from numpy.lib.stride_tricks import as_strided

from simulator.codelets.costs import runs_of_equals
from simulator.codelets.products import convolution_cycles, transpose_cycles
from simulator.codelets.products.block_layout import Layout
from simulator.codelets.products.reduction import accumulator
from simulator.codelets.vertex_type import POPLIN_ESTIMATES, VertexTypes, supervisor, worker
from simulator.graph.geometry.intervals import offsets_of
from simulator.graph.types import Array, IntArray, Type
from simulator.graph.vertices.vertex import Apart, Codelet, Operands, VertexGroup

TYPES = VertexTypes(
    (
        supervisor(
            "poplin::ConvPartial1x1Out<in,out,worklist16,128bit>, 2019",
            "in weights out",
            convolution_cycles.conv_cycles,
            f"{POPLIN_ESTIMATES} of 2019",
            (28, 400),
        ),
        supervisor(
            "poplin::ConvPartial1x1Out<in,out,worklist16,128bit>",
            "in weights out",
            convolution_cycles.conv_1x1,
            POPLIN_ESTIMATES,
            (28, 400),
        ),
        supervisor(
            "poplin::ConvPartialnx1<in,out,worklist16,128bit>",
            "in weights out",
            convolution_cycles.conv_nx1,
            POPLIN_ESTIMATES,
            (44, 500),
        ),
        supervisor(
            "poplin::ConvPartialHorizontalMac<in,out,worklist16>",
            "in weights out",
            convolution_cycles.conv_hmac,
            POPLIN_ESTIMATES,
            (36, 400),
        ),
        supervisor(
            "poplin::ConvPartialVerticalMac<in,out,worklist16,groups>",
            "in weights out partials",
            convolution_cycles.conv_vmac,
            POPLIN_ESTIMATES,
            (36, 450),
        ),
        supervisor(
            "poplin::ConvPartial1x4SLIC<in,out,stride,groups>",
            "in weights out outFieldBuffer",
            convolution_cycles.conv_slic,
            POPLIN_ESTIMATES,
            (36, 700),
        ),
        worker(
            "poplin::OuterProduct<type>",
            "in weights out",
            convolution_cycles.outer_product,
            POPLIN_ESTIMATES,
            (16, 150),
        ),
        worker(
            "poplin::DotProduct<in,out>",
            "a b out",
            convolution_cycles.dense_dot,
            f"{POPLIN_ESTIMATES}, the inner loop of other vertices",
            (12, 100),
        ),
        worker(
            "DotProductVertex, tutorial 7",
            "a b out",
            convolution_cycles.tutorial_dot,
            "the public tutorial 6 (7 of the user guide), its own codelet",
            (12, 100),
        ),
        supervisor(
            "popops::Transpose1D<type>",
            "src dst",
            transpose_cycles.transpose,
            "PopLibs lib/popsparse/PerformanceEstimation.hpp",
            (16, 200),
        ),
        worker(
            "poplin::Transpose2d<type>, 2019",
            "src dst",
            transpose_cycles.transpose_2d,
            "PopLibs lib/poplin/poplinCycleEstimators.cpp of 2019",
            (16, 150),
        ),
    )
)

WORKLIST_ENTRIES = 3  # offset of the output, positions, offset of the input; of 2 bytes each
# Whose operands lie in memory elements of their own (PopLibs lib/poplin/codelets, constraints).
APART: dict[str, Apart] = {
    "poplin::ConvPartial1x1Out": "in",
    "poplin::ConvPartialnx1": "in",
    "poplin::ConvPartial1xNSLIC": "in",
    "poplin::ConvPartialHorizontalMac": "inputs",
    "poplin::ConvPartialVerticalMac": "inputs",
    "poplin::OuterProduct": "weights",
}
CHANNELS = ("groups", "batch", "outputs", "inputs")  # parameters, and by dimension AXIS
AXIS = ("input", "output", "kernel", "shift")
AT_ONCE = 1 << 19  # elements on the left of a matrix product, so that it stays near the processor
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
        axis_numbers = numbers[len(CHANNELS) :]
        axes = tuple(zip(*[iter(axis_numbers)] * len(AXIS), strict=True))
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

    @property
    def positions(self) -> int:
        return self.batch * prod(self.field)

    @property
    def products(self) -> int:
        return self.groups * self.positions * self.inputs * prod(self.kernel)


def worklists(positions: IntArray, workers: int) -> Array:
    """Assign each worker's share of the positions: offset out, count, offset in; by vertex."""
    worker = np.arange(workers)[None, :]
    share = positions[:, None] // workers + (worker < positions[:, None] % workers)
    first = np.cumsum(share, axis=1) - share
    return np.stack([first, share, first], axis=2).astype(np.uint16)


def row_worklists(
    positions: IntArray, rows: IntArray, width: IntArray, workers: int
) -> tuple[Array, IntArray]:
    """Assign each worker its positions for each of `rows` rows of a kernel of a width; by vertex.

    An entry has offsets out, in the kernel and in, and how many elements are multiplied: a row, or
    a part of one where workers share a position. Gives the entries of each vertex too.
    """
    split = workers // np.gcd(workers, positions)
    full_entries, part = np.divmod(positions * split // workers, split)
    entries = full_entries + (part > 0)
    counts = workers * rows * entries
    vertex = np.repeat(np.arange(len(counts)), counts)
    number = np.arange(len(vertex)) - offsets_of(counts)[vertex]
    worker, remainder = np.divmod(number, (rows * entries)[vertex])
    row, place = np.divmod(remainder, entries[vertex])
    out = worker * positions[vertex] // workers + place
    kernel = row * width[vertex]
    elements = np.where(
        place < full_entries[vertex], width[vertex], -(-part * width // split)[vertex]
    )
    return np.stack([out, kernel, out + kernel, elements], axis=1).astype(np.uint16), counts


def _names(dimensions: int) -> list[str]:
    return [*CHANNELS, *(f"{name}{axis}" for axis in range(dimensions) for name in AXIS)]


def _runs(
    operands: Operands, fields: tuple[str, ...]
) -> Iterator[tuple[Block, int, dict[str, slice]]]:
    """Return the parts, so many neighbours of one shape together, and where their fields are."""
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
    """Return the codelet of parts of convolutions; `layouts` are of `in`, `weights`, `out`."""

    def operations(group: VertexGroup) -> IntArray:
        p = group.parameters
        flops = 2 * p["groups"] * p["batch"] * p["outputs"] * p["inputs"]
        for axis in range(len(steps)):
            flops = flops * p[f"output{axis}"] * p[f"kernel{axis}"]
        return flops

    def compute(operands: Operands) -> dict[str, Array]:
        wide = accumulator(dtype)
        out = np.empty(int(operands.counts["out"].sum()), dtype=partials.numpy)
        for block, count, part in _runs(operands, ("in", "weights", "out")):
            arrays = {name: operands.arrays[name][part[name]] for name in ("in", "weights")}
            rows = {name: values.reshape(count, -1) for name, values in arrays.items()}
            out_rows = out[part["out"]].reshape(count, -1)
            chunk = max(1, AT_ONCE // max(1, block.products))
            for first in range(0, count, chunk):
                some = slice(first, first + chunk)
                inputs = layouts["in"].unpack(rows["in"][some], block.input_sizes)
                weights = layouts["weights"].unpack(rows["weights"][some], block.weight_sizes)
                sums = _convolve(inputs, weights, block, steps, wide)
                out_rows[some] = layouts["out"].pack(sums).reshape(len(sums), -1)
        return {"out": out}

    apart = APART.get(vertex.partition("<")[0], "")
    return TYPES.codelet(vertex, compute, operations, apart=apart)


def _convolve(
    inputs: Array, weights: Array, block: Block, steps: Steps, wide: np.dtype[np.generic]
) -> Array:
    """Convolve [vertex][g][ci][n][i] with [vertex][g][co][ci][k]: one matrix product a group."""
    vertices, dims = len(inputs), len(steps)
    products, added = vertices * block.groups, block.inputs * prod(block.kernel)
    read = _windows(inputs, block, steps).transpose(0, 1, 3, *range(4, 4 + 2 * dims), 2)
    by_output = weights.transpose(0, 1, 2, *range(4, 4 + dims), 3)
    left = read.astype(wide, order="C", copy=False).reshape(products, block.positions, added)
    right = by_output.astype(wide, order="C", copy=False).reshape(products, block.outputs, added)
    sums: Array = np.matmul(left, right.transpose(0, 2, 1))  # [vertex and g][n and o][co]
    result = sums.reshape(vertices, block.groups, block.batch, *block.field, block.outputs)
    return result.transpose(0, 1, 3 + dims, *range(2, 3 + dims))


def arrange_codelet(dtype: Type, layout: Layout, steps: Steps, *, weights: bool) -> Codelet:
    """Return the codelet that lays out a part as [g][n][o][ci][k], or weights as [g][co][ci][k].

    `layout` is that of what it reads, `in`; it writes `out`.
    """

    def compute(operands: Operands) -> dict[str, Array]:
        out = np.empty(int(operands.counts["out"].sum()), dtype=dtype.numpy)
        for block, count, part in _runs(operands, ("in", "out")):
            sizes = block.weight_sizes if weights else block.input_sizes
            values = operands.arrays["in"][part["in"]].reshape(count, -1)
            source = layout.unpack(values, sizes)
            if not weights:
                dims = len(steps)
                order = (0, 1, 3, *range(4, 4 + dims), 2, *range(4 + dims, 4 + 2 * dims))
                source = _windows(source, block, steps).transpose(order)
            out[part["out"]].reshape(source.shape)[...] = source
        return {"out": out}

    return TYPES.codelet(f"popops::Transpose1D<{dtype}>", compute)


def transpose_codelet(dtype: Type, rows: int, columns: int) -> Codelet:
    """Return the codelet that transposes blocks of rows by columns, one after another."""

    def compute(operands: Operands) -> dict[str, Array]:
        blocks = operands.arrays["in"].reshape(-1, rows, columns)
        return {"out": blocks.transpose(0, 2, 1).reshape(-1)}

    return TYPES.codelet(f"popops::Transpose1D<{dtype}>", compute)


def _windows(source: Array, block: Block, steps: Steps) -> Array:
    """Return what each output reads: [vertex][g][ci][n][o...][k...], a zero where no input lies.

    It is a view that cannot be written.
    """
    for dim, (axis, (stride, kernel_step, step)) in enumerate(zip(block.axes, steps, strict=True)):
        _, outputs, taps, shift = axis
        span = max(0, (outputs - 1) * stride + (taps - 1) * kernel_step + 1)
        source = _stretched(source, 4 + dim, step, shift, span)
    by_input = source.strides[4:]
    strides = (
        *source.strides[:4],
        *(size * stride for size, (stride, _, _) in zip(by_input, steps, strict=True)),
        *(size * kernel_step for size, (_, kernel_step, _) in zip(by_input, steps, strict=True)),
    )
    sizes = (*source.shape[:4], *block.field, *block.kernel)
    return as_strided(source, sizes, strides, writeable=False)


def _stretched(source: Array, axis: int, step: int, first: int, span: int) -> Array:
    """Return places of a dimension whose elements lie at multiples of `step`; else zeros."""
    before = (slice(None),) * axis
    size = source.shape[axis]
    if step == 1 and first >= 0 and first + span <= size:
        return source[(*before, slice(first, first + span))]
    low = max(0, -(-first // step))
    high = max(low, min(size, -(-(first + span) // step)))
    zeros = np.zeros((*source.shape[:axis], span, *source.shape[axis + 1 :]), source.dtype)
    if high > low:
        places = slice(low * step - first, (high - 1) * step - first + 1, step)
        zeros[(*before, places)] = source[(*before, slice(low, high))]
    return zeros
