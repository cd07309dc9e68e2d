"""Vertices that take or change one element of each row of a matrix, by its index.

Source: PopLibs lib/popops/popopsCycleEstimators.cpp, which counts 8 cycles a row, of halves 12.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from simulator.codelets.costs import sum_by_vertex
from simulator.codelets.vertex_type import POPOPS_CYCLES, VertexTypes, worker
from simulator.graph.geometry.intervals import offsets_of, spread
from simulator.graph.types import HALF, Array, IntArray, Type
from simulator.graph.vertices.vertex import Codelet, Operands

MASKED = 2**32 - 1  # MASKED_LABEL_CODE
START = 27


def one_interval(rows: IntArray, dtype: Type) -> IntArray:
    """27 + 8 a row, of halves 12 a row: a worker with one region; 2302-2367."""
    return START + (12 if dtype == HALF else 8) * rows


def several_intervals(rows: IntArray, ranges: IntArray, dtype: Type) -> IntArray:
    """27 + 8 a row of each region, of halves 12: a worker; 2325-2379, without a slip.

    PopLibs multiplies the rows of all regions by the number of regions.
    """
    return START + (12 if dtype == HALF else 8) * sum_by_vertex(rows, ranges)


TYPES = VertexTypes(
    tuple(
        worker(
            f"popops::{name}<type>",
            fields,
            cycles,
            POPOPS_CYCLES,
            sizes,
            exact=cycles is one_interval,
        )
        for name, fields, cycles, sizes in (
            ("SelectFromInterval", "params indices output", one_interval, (28, 170)),
            ("SelectFromIntervals", "params indices output", several_intervals, (32, 220)),
            ("UpdateIntervalDEC", "params indices", one_interval, (24, 160)),
            ("UpdateIntervalsDEC", "params indices", several_intervals, (28, 210)),
        )
    )
)


def _places(operands: Operands, width: int) -> tuple[IntArray, IntArray]:
    """Return each row's place in `params` by its index, -1 for one outside, and the indices.

    A region is described by `first`, the column of its first element, its `rows` and `lengths`.
    """
    parameters = operands.group.parameters
    rows, first = parameters["rows"], parameters["first"]
    begins = offsets_of(parameters["lengths"])
    number = spread(np.zeros_like(rows), rows)
    column = operands.arrays["indices"].astype(np.int64)
    place = np.repeat(begins[:-1] - first, rows) + number * width + column
    inside = (place >= np.repeat(begins[:-1], rows)) & (place < np.repeat(begins[1:], rows))
    return np.where(inside & (column < width), place, -1), column


@cache
def select_codelet(dtype: Type, width: int, *, several: bool) -> Codelet:
    """Return the worker that takes params[row][index]; 0 where another vertex has it.

    An index beyond the width gives NaN, and that of a masked label 0.
    """

    def compute(operands: Operands) -> dict[str, Array]:
        place, column = _places(operands, width)
        taken = np.where(place >= 0, operands.arrays["params"][place], 0)
        wrong = (column >= width) & (column != MASKED)
        return {"output": np.where(wrong, np.nan, taken).astype(dtype.numpy)}

    suffix = "s" if several else ""
    return TYPES.codelet(f"popops::SelectFromInterval{suffix}<{dtype}>", compute)


@cache
def decrement_codelet(dtype: Type, width: int, *, several: bool) -> Codelet:
    """Return the worker that subtracts 1 from params[row][index].

    An index beyond the width makes NaN of what it has of the row, that of a masked label nothing.
    """

    def compute(operands: Operands) -> dict[str, Array]:
        place, column = _places(operands, width)
        params = operands.arrays["params"]
        params[place[place >= 0]] -= 1
        wrong = (column >= width) & (column != MASKED)
        if wrong.any():
            params[_rows_of(operands, width, wrong)] = np.nan
        return {"params": params}

    suffix = "s" if several else ""
    return TYPES.codelet(f"popops::UpdateInterval{suffix}DEC<{dtype}>", compute)


def _rows_of(operands: Operands, width: int, which: Array) -> IntArray:
    """List the elements of some of the rows that regions have."""
    parameters = operands.group.parameters
    lengths, first = parameters["lengths"], parameters["first"]
    row_of = spread(first, lengths) // width
    starts = offsets_of(parameters["rows"])[:-1]
    return np.flatnonzero(which[np.repeat(starts, lengths) + row_of])
