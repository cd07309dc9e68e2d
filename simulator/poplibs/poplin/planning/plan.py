"""How a convolution is divided over the tiles."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import lcm
from typing import TypeVar

import numpy as np

from simulator.codelets.costs import ceil_div, even_bounds
from simulator.graph.types import IntArray, Type
from simulator.poplibs.poplin.planning.boxes import volumes
from simulator.poplibs.poplin.planning.problem import Problem
from simulator.poplibs.poplin.planning.serial_split import SerialSplit
from simulator.poplibs.poplin.planning.transforms import Transform

Side = TypeVar("Side")
# Of these dimensions a part has one grain.
ONE_GRAIN = {"SLIC": ("outputs", "inputs"), "VMAC": ("outputs",), "OuterProduct": ("inputs",)}


@dataclass(frozen=True)
class Method:
    """How a tile computes its part.

    `expanded` lays all inputs of an output side by side first, so that the sum over the kernel is a
    sum over channels; `swapped` lets the weights stream through the matrix units, in which the
    inputs are held. `in_group` channels are summed at once, `out_group` outputs made at once, in
    `conv_groups` groups at once. `units` of the matrix units are used, and dot products are of
    `dot` channels; 0 for all.
    """

    vertex: str
    partials: Type
    in_group: int
    out_group: int
    expanded: bool = False
    swapped: bool = False
    conv_groups: int = 1
    units: int = 0
    dot: int = 0

    def describe(self) -> str:
        """Name the way."""
        return self.vertex + " expanded" * self.expanded + " swapped" * self.swapped

    def grains(self, problem: Problem) -> tuple[int, ...]:
        """Return the steps in which each dimension of a problem is cut."""
        field = (1,) * len(problem.axes)
        least = problem.grain
        unit = lcm(self.out_group, least)
        batch, outputs = (unit, least) if self.swapped else (least, unit)
        return (self.conv_groups, batch, *field, outputs, *field, self.in_group)

    def sides(self, of_batch: Side, of_outputs: Side) -> tuple[Side, Side]:
        """Order what belongs to batch and outputs: what streams by first, then what is held."""
        return (of_outputs, of_batch) if self.swapped else (of_batch, of_outputs)

    def filter_rows(self, group: int) -> int:
        """Return the rows of a filter that are held at once, as a unit holds `group` weights."""
        return max(group // self.in_group, 1) if self.vertex == "AMP" else 1

    def innermost(self, channel: int) -> tuple[int, int]:
        """Return the dimension whose elements an operand should have together, and how many."""
        return (0, self.conv_groups) if self.conv_groups > 1 else (channel, self.in_group)


def tile_order(dims: int, *, swapped: bool) -> tuple[int, ...]:
    """Order the dimensions of a problem as tiles are numbered, the innermost last.

    That is the channel whose parts take the same inputs, so that the tiles of an exchange bus
    receive them together (PopLibs lib/poplin/Convolution.cpp, linearizeConvIndices).
    """
    field, kernel = range(2, 2 + dims), range(3 + dims, 3 + 2 * dims)
    batch, outputs = (2 + dims, 1) if swapped else (1, 2 + dims)
    return (0, 3 + 2 * dims, *kernel, batch, *field, outputs)


def row_length(parts: IntArray, rows: IntArray, bus: int, tiles: int) -> IntArray:
    """Return after how many tiles the next row of parts begins, each of which takes the same.

    A row of other than whole buses leaves tiles free behind it, if there are so many: else the
    tiles of a bus would take different operands, and every row would wait for these.
    """
    whole = ceil_div(parts, bus) * bus
    return np.where(whole * (rows - 1) + parts <= tiles, whole, parts)


@dataclass(frozen=True)
class Plan:
    """The parts into which each dimension of a problem is cut; `cycles` is what each stage takes.

    `temporary_bytes` is the most that a tile holds besides operands and result; `limit` what it
    was allowed. The problem may be the first of `slices` of a whole one, of its outputs or of its
    kernel's first dimension, which are computed one after another. Tiles are numbered in the
    `order` of dimensions, if not in the usual one; a row of parts that take the same operand begins
    every `row` tiles, 0 where none is left free, which saves `saved` cycles of a slice. `workers`
    share a part where a vertex is one worker's.
    """

    problem: Problem
    method: Method
    parts: tuple[int, ...]
    cycles: tuple[tuple[str, int], ...]
    temporary_bytes: int
    limit: int
    serial: SerialSplit = SerialSplit()
    once: tuple[tuple[str, int], ...] = ()
    whole: Problem | None = None
    transform: Transform = Transform()
    order: tuple[int, ...] = ()
    workers: int = 1
    row: int = 0
    saved: int = 0

    @property
    def slices(self) -> int:
        """Count the slices."""
        return self.serial.count

    @property
    def whole_problem(self) -> Problem:
        """Return the problem of all slices."""
        return self.whole or self.problem

    @property
    def total_cycles(self) -> int:
        """Add up the cycles of all stages and slices, and of what is done once for all of them."""
        of_slice, once = (
            sum(cycles for _, cycles in stages) for stages in (self.cycles, self.once)
        )
        return self.slices * of_slice + once

    @property
    def vertices(self) -> int:
        """Count the parts."""
        return int(np.prod(self.parts))

    @property
    def sums(self) -> int:
        """Count the parts of each sum."""
        return int(np.prod(self.parts[-1 - len(self.problem.axes) :]))

    def bounds(self, dimension: int) -> IntArray:
        """Return the bounds of the parts of a dimension."""
        size = self.problem.sizes()[dimension]
        grain = self.method.grains(self.problem)[dimension]
        return np.minimum(even_bounds(ceil_div(size, grain), self.parts[dimension]) * grain, size)

    @property
    def alike(self) -> int:
        """Count the parts of a row: those of the positions, or of the outputs, take the same."""
        dims = len(self.problem.axes)
        return (
            int(np.prod(self.parts[1 : 2 + dims])) if self.method.swapped else self.parts[2 + dims]
        )

    @cached_property
    def tiles(self) -> IntArray:
        """Return the tile of each part."""
        order = self.order or tile_order(len(self.problem.axes), swapped=self.method.swapped)
        numbers = np.arange(self.vertices)
        if self.row:
            alike = self.alike
            numbers = numbers // alike * self.row + numbers % alike
        numbers = numbers.reshape([self.parts[d] for d in order])
        back = sorted(range(len(order)), key=order.__getitem__)
        return numbers.transpose(back).reshape(-1)

    @cached_property
    def pieces(self) -> IntArray:
        """Return the part of each vertex: one a part, or one for each worker that has some of it.

        Workers share what streams by, where a vertex is one worker's.
        """
        if self.method.vertex != "OuterProduct":
            return np.arange(self.vertices)
        low, high = self.cells
        dimension = self.moving
        sizes = (high - low)[:, dimension]
        return np.repeat(np.arange(self.vertices), np.minimum(sizes, self.workers))

    @property
    def moving(self) -> int:
        """Return the dimension that streams by: batch or outputs."""
        moving: int = self.method.sides(1, 2 + len(self.problem.axes))[0]
        return moving

    @cached_property
    def shares(self) -> tuple[IntArray, IntArray]:
        """Return [low, high) of what each vertex computes, [vertex][dimension]."""
        low, high = (bound[self.pieces] for bound in self.cells)
        if self.method.vertex == "OuterProduct":
            counts = np.bincount(self.pieces, minlength=self.vertices)
            number = np.arange(len(self.pieces)) - (np.cumsum(counts) - counts)[self.pieces]
            begin, size = low[:, self.moving], (high - low)[:, self.moving]
            some = counts[self.pieces]
            high[:, self.moving] = begin + (number + 1) * size // some
            low[:, self.moving] = begin + number * size // some
        return low, high

    @cached_property
    def cells(self) -> tuple[IntArray, IntArray]:
        """Return [low, high) of each part, [part][dimension]; those of one sum are neighbours."""
        numbers = np.indices(self.parts).reshape(len(self.parts), -1)
        bounds = [self.bounds(dimension) for dimension in range(len(self.parts))]
        low = np.stack([b[n] for b, n in zip(bounds, numbers, strict=True)], axis=1)
        high = np.stack([b[n + 1] for b, n in zip(bounds, numbers, strict=True)], axis=1)
        return low, high

    def describe(self) -> str:
        """Print the plan."""
        names = self.problem.names()
        parts = ", ".join(
            f"{name} {count}"
            for name, count, size in zip(names, self.parts, self.problem.sizes(), strict=True)
            if size > 1
        )
        costs = (*self.cycles, *self.once)
        stages = ", ".join(f"{name} {cycles:,}" for name, cycles in costs if cycles)
        return (
            f"{self.transform.describe()}{self.method.describe()}, "
            f"groups of {self.method.in_group} x {self.method.out_group}, "
            f"partials {self.method.partials}; {self.vertices:,} tiles: {parts}; "
            f"{self.serial.describe()}"
            f"{self.total_cycles:,} cycles: {stages}; temporary "
            f"{self.temporary_bytes:,} of {self.limit:,} B a tile"
        )


@dataclass(frozen=True)
class Boxes:
    """Which elements of the input, weights and output each vertex takes, [vertex][dimension].

    Dimensions: input [g][ci][n][*field], weights [g][co][ci][*kernel], output [g][co][n][*field].
    """

    input: tuple[IntArray, IntArray]
    weights: tuple[IntArray, IntArray]
    output: tuple[IntArray, IntArray]

    def sizes(self, which: str) -> IntArray:
        """Count the elements of one of them for each part."""
        low, high = getattr(self, which)
        return volumes(low, high)


def boxes_of(plan: Plan) -> Boxes:
    """Work out the boxes of all vertices."""
    low, high = plan.shares
    dims = len(plan.problem.axes)
    group, batch, outputs, inputs = 0, 1, 2 + dims, 3 + 2 * dims
    field, kernel = range(2, 2 + dims), range(3 + dims, 3 + 2 * dims)
    windows = [
        axis.window(low[:, field[d]], high[:, field[d]], low[:, kernel[d]], high[:, kernel[d]])
        for d, axis in enumerate(plan.problem.axes)
    ]

    def box(*dimensions: int) -> tuple[IntArray, IntArray]:
        return low[:, dimensions], high[:, dimensions]

    in_low, in_high = box(group, inputs, batch)
    return Boxes(
        (
            np.column_stack([in_low, *(window[0] for window in windows)]),
            np.column_stack([in_high, *(window[1] for window in windows)]),
        ),
        box(group, outputs, inputs, *kernel),
        box(group, outputs, batch, *field),
    )
