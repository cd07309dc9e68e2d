"""Vertices that add many values into one.

Sources: PopLibs lib/popops/reduction/CycleEstimationFunctions.cpp (Reduce), lib/poplin/
PerformanceEstimation.hpp (ReduceAdd of partial convolution results).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from simulator.codelets.costs import ceil_div, runs_of_equals, sum_by_vertex
from simulator.codelets.vertex_type import POPLIN_ESTIMATES, VertexTypes, supervisor, worker
from simulator.graph.errors import PoplarError
from simulator.graph.geometry.intervals import offsets_of, spread
from simulator.graph.machine.target import Target
from simulator.graph.types import (
    BOOL,
    FLOAT,
    HALF,
    INT,
    UNSIGNED_INT,
    Array,
    IntArray,
    Type,
)
from simulator.graph.vertices.vertex import Codelet, Operands, VertexGroup


@dataclass(frozen=True, slots=True)
class Reduction:
    """An operation: how values become one, and what is left when there are none.

    `short` is PopLibs' name of it in vertex names. `then` is the operation that reduces what it
    has reduced. Sums and products of halves are kept as floats until the end (`widens`), and sums
    can be scaled and added to what the output holds (`scales`).
    """

    short: str
    function: np.ufunc
    types: tuple[Type, ...]
    empty: float
    then: str = ""
    widens: bool = False
    scales: bool = False
    squares: bool = False


NUMBERS = (FLOAT, HALF, INT, UNSIGNED_INT)
REAL = (FLOAT, HALF)
REDUCTIONS = {
    "ADD": Reduction("Add", np.add, NUMBERS, 0, widens=True, scales=True),
    "MUL": Reduction("Mul", np.multiply, NUMBERS, 1, widens=True),
    "MAX": Reduction("Max", np.maximum, NUMBERS, -np.inf),
    "MIN": Reduction("Min", np.minimum, NUMBERS, np.inf),
    "LOGICAL_AND": Reduction("And", np.logical_and, (BOOL,), 1),
    "LOGICAL_OR": Reduction("Or", np.logical_or, (BOOL,), 0),
    "SQUARE_ADD": Reduction(
        "SquareAdd", np.add, NUMBERS, 0, then="ADD", widens=True, scales=True, squares=True
    ),
    "LOG_ADD": Reduction("LogAdd", np.logaddexp, REAL, -np.inf, widens=True),
}

_SCALAR = {"LOGICAL_AND": 1, "LOGICAL_OR": 1, "LOG_ADD": 12}  # cycles of the operation itself

# PopLibs' numbers of the specialisations of popops::Reduce.
GENERAL, CONTINUOUS, ONE_INPUT_TO_ONE_OUTPUT, STRIDED = 0, 1, 2, 3


class Steps(NamedTuple):
    """Where a region of outputs finds its values in the field `partials` of its vertex.

    Output j of the region is made of the values first + j + stride * i, for i below `rows`.
    """

    first: IntArray
    outs: IntArray
    rows: IntArray
    stride: IntArray


def accumulator(dtype: Type) -> np.dtype[np.generic]:
    """Return the type in which a vertex adds up: PopLibs sums halves as floats and rounds once."""
    return FLOAT.numpy if dtype == HALF else dtype.numpy


def _operations(group: VertexGroup) -> IntArray:
    partials, outs = (group.fields[name].counts() for name in ("partials", "out"))
    operations: IntArray = np.maximum(partials - outs, 0)
    return operations


def reduce_codelet(
    operation: str,
    dtype: Type,
    specialisation: int,
    out_type: Type | None = None,
    *,
    update: bool = False,
    scaled: bool = False,
) -> Codelet:
    """Return popops::Reduce: fields `partials`, `out` and, when it is scaled, one `scale` a vertex.

    The parameters `first`, `outs`, `rows`, `stride` are the `Steps` of all regions of outputs,
    vertex by vertex; `regions` is how many of them each vertex has.
    """
    if operation not in REDUCTIONS:
        raise PoplarError(f"reduce: operation {operation}; known are {', '.join(REDUCTIONS)}")
    kind, result = REDUCTIONS[operation], out_type or dtype
    wide = accumulator(dtype) if kind.widens else dtype.numpy

    def compute(operands: Operands) -> dict[str, Array]:
        values = operands.arrays["partials"].astype(wide, copy=False)
        reduced = _reduce(operands, kind.function, values * values if kind.squares else values)
        if scaled:
            outs = operands.counts["out"]
            reduced = reduced * np.repeat(operands.arrays["scale"].astype(wide), outs)
        if update:
            reduced = reduced + operands.arrays["out"].astype(wide)
        return {"out": reduced.astype(result.numpy, copy=False)}

    family = "ScaledReduce" if scaled else "Reduce"
    types = f"{dtype},{result},{str(update).lower()}"
    name = f"popops::{family}<popops::Reduce{kind.short},{types},{specialisation}>"
    return TYPES.codelet(name, compute, _operations)


def _reduce(operands: Operands, function: np.ufunc, values: Array) -> Array:
    """Reduce the values of each output; where they lie is worked out once and kept."""
    if "order" not in operands.prepared:
        parameters = operands.group.parameters
        steps = Steps(*(parameters[name] for name in Steps._fields))
        begins = offsets_of(operands.counts["partials"])[:-1]
        placed = steps._replace(first=steps.first + np.repeat(begins, parameters["regions"]))
        operands.prepared["order"], operands.prepared["starts"] = _order(placed)
    order, starts = operands.prepared["order"], operands.prepared["starts"]
    reduced: Array = function.reduceat(values[order], starts, dtype=values.dtype)
    return reduced


def _order(steps: Steps) -> tuple[IntArray, IntArray]:
    """List the places of all values, output by output, and where each output begins."""
    first = spread(steps.first, steps.outs)
    rows, stride = np.repeat(steps.rows, steps.outs), np.repeat(steps.stride, steps.outs)
    starts = offsets_of(rows)
    number = spread(np.zeros_like(rows), rows)
    return np.repeat(first, rows) + np.repeat(stride, rows) * number, starts[:-1]


def lanes(dtype: Type) -> int:
    """Return how many elements 64 bits of a register hold; only floating point goes by vectors."""
    return {"float": 2, "half": 4}.get(dtype.name, 1)


def scalar_reduce_cycles(
    n: IntArray, dtype: Type, out_type: Type | None = None, *, operation: str = "ADD"
) -> IntArray:
    """17 + 2 for 4 floats or 8 halves + 1 for each left (+ 5 if not to float), a worker.

    Without accumulators (not a sum) a cycle for 2 floats or 4 halves.
    """
    sums = REDUCTIONS[operation].scales
    width, loads = (2 * lanes(dtype), 2) if sums else (lanes(dtype), 1)
    narrowed = 5 if (out_type or FLOAT) != FLOAT else 0
    return 17 + loads * n // width + n % width + narrowed


def strided_reduce_cycles(
    outs: IntArray,
    partials: IntArray,
    dtype: Type,
    out_type: Type | None = None,
    *,
    operation: str = "ADD",
    update: bool = False,
) -> IntArray:
    """16 + (11 + a cycle a further partial) for each vector of outputs, a worker; strided.

    The 11 are of sums of floats; 10 of other operations, 13 or 14 of halves, some more to update.
    LOG_ADD takes 23 cycles a partial (halves: 13). Lines 212-290 of the source.
    """
    sums, to = REDUCTIONS[operation].scales, out_type or dtype
    if dtype == HALF:
        post = 1 + (6 if sums and to == FLOAT else 7)
        update_cycles = (5 if to == FLOAT else 2) if sums else 3
    else:
        post = (3 if sums else 2) + 2
        update_cycles = 2 if to == HALF else 3
    partial_cycles = (13 if dtype == HALF else 23) if operation == "LOG_ADD" else 1
    one_pass = 3 + post + update * update_cycles + 3 + partial_cycles * (partials - 1)
    return 16 + ceil_div(outs, lanes(dtype)) * one_pass


GENERAL_START = 7 + 26


def general_reduce_cycles(
    outs: IntArray,
    regions: IntArray,
    partials: IntArray,
    dtype: Type,
    update: bool = False,
    *,
    operation: str = "ADD",
    out_type: Type | None = None,
) -> IntArray:
    """Cycles of one region of outputs of a vertex that has several; `GENERAL_START` comes once.

    Its `partials` values an output lie in so many `regions`. Whole registers of outputs are
    followed by one of each power of two that is left. Sums go through accumulators, twice as wide;
    logical operations and LOG_ADD are C++ codelets, value by value. Lines 64-205 of the source.
    """
    if operation in _SCALAR:
        converts = (out_type or dtype) != dtype
        value_cycles = 24 + _SCALAR[operation] + converts
        return 8 + 22 * regions + value_cycles * partials * outs
    sums = REDUCTIONS[operation].scales
    vector = lanes(dtype)
    width = 2 * vector if sums and vector > 1 else vector
    stored = lanes(out_type or dtype)
    checks = width.bit_length() - 1

    def store(values: int) -> int:
        return (2 + update) * min(values, stored) + sums

    def one_pass(begin: int, load: int) -> IntArray:
        return begin + regions * 10 + partials * (load + 3)

    whole_load = 2 * sums + 2 + width // vector
    full_pass = one_pass((5 if sums else 3) + store(width) + 1, whole_load)
    total: IntArray = 24 + 2 * checks + outs // width * full_pass
    for size in (1 << bit for bit in range(checks)):
        tail_pass = one_pass((4 if sums else 2) + store(size), 2 + max(size // vector, 1))
        total = total + tail_pass * (outs // size & 1)
    return total


def reduce_add_codelet(dtype: Type, out_type: Type | None = None) -> Codelet:
    """Return poplin::ReduceAdd: out = sum of the equally long rows of `partials`.

    Parameter `splits` is the number of rows of each vertex; the same for the whole group.
    """

    def compute(operands: Operands) -> dict[str, Array]:
        if "runs" not in operands.prepared:
            outs = operands.counts["out"]
            operands.prepared["runs"] = (runs_of_equals(outs[:, None]), offsets_of(outs))
        runs, starts = operands.prepared["runs"]
        splits = int(operands.group.parameters["splits"][0])
        partials = operands.arrays["partials"]
        out = np.empty(int(starts[-1]), dtype=accumulator(dtype))
        for first, end, (outs,) in runs:
            low, high = starts[first], starts[end]
            rows = partials[low * splits : high * splits].reshape(-1, splits, outs)
            out[low:high] = rows.sum(axis=1, dtype=accumulator(dtype)).reshape(-1)
        return {"out": out.astype(result.numpy, copy=False)}

    result = out_type or dtype
    return TYPES.codelet(f"poplin::ReduceAdd<{result},{dtype}>", compute, _operations)


def general_reduce(
    outs: IntArray, regions: IntArray, partials: IntArray, ranges: IntArray, dtype: Type
) -> IntArray:
    """33 + 28 (half 30) a region of outputs + its passes: 11, 10 a piece, 9 a partial, a worker.

    lib/popops/reduction/CycleEstimationFunctions.cpp 64-205. `outs`, `regions` (pieces of the
    input) and `partials` (of an output) are by region of outputs, `ranges` counts these by vertex.
    A pass of a sum of floats fills an accumulator of 4 (halves: 8); what is left of the outputs
    takes a shorter pass for each power of two.
    """
    region_cycles = general_reduce_cycles(outs, regions, partials, dtype)
    return GENERAL_START + sum_by_vertex(region_cycles, ranges)


def scalar_reduce_2019(n: IntArray, dtype: Type, out_type: Type = FLOAT) -> IntArray:
    """26 + (6 for fewer than 6 elements, else 2 a wide vector and 1 for each left), a worker.

    The form of April 2019 of lib/popops/reduction/CycleEstimationFunctions.cpp: it gives the 32
    cycles of each small reduction of the user guide's sample.
    """
    width = 16 // dtype.size
    body = np.where(n < 6, 6, 2 * (n // width) + n % width)
    cycles: IntArray = 26 + body + (5 if out_type != FLOAT else 0)
    return cycles


def continuous_reduce(
    outs: IntArray, partials: IntArray, dtype: Type, update: bool = False
) -> IntArray:
    """17 + 12 an output + a cycle a vector of its partials (+ 2 if their number is odd), a worker.

    One more to update.

    Source: lib/popops/reduction/CycleEstimationFunctions.cpp (ReduceAllRegionsContinuous).
    """
    cycles: IntArray = 17 + outs * (partials // (8 // dtype.size) + 12) + 2 * (partials & 1)
    return cycles + update


def _bits(values: IntArray) -> IntArray:
    """Count the ones of small numbers."""
    ones: IntArray = (values & 1) + (values >> 1 & 1) + (values >> 2 & 1)
    return ones


def reduce_add(
    outs: IntArray, partials: IntArray, dtype: Type, target: Target, out_type: Type = FLOAT
) -> IntArray:
    """W * (32 + (3d + 6 to 9) a loop of a worker + the loop left over), of the tile; 930-975."""
    width, workers, single = 16 // dtype.size, target.workers, dtype == FLOAT
    loop, over = 3 * partials + (6 if single else 8) + (out_type == FLOAT), outs % width
    loops = outs // width + _bits(over)
    turns = loops // workers
    last = np.where(over, 2 * partials + (13 if single else 11), loop)
    left_over = np.where(loops == workers * turns, 0, last)
    total: IntArray = workers * (32 + loop * turns + left_over)
    return total


def reduce_add_single_input(
    outs: IntArray,
    partials: IntArray,
    dtype: Type,
    target: Target,
    step: int = 2,
    out_type: Type = FLOAT,
) -> IntArray:
    """33 + W * (20 + (step * d + 7 to 10) a vector of a worker), of the tile; lines 901-928.

    All partials but one lie in one region, of which d is the rows. `step` is the cycles to load a
    vector of accumulators: 2, or 1 from interleaved memory.
    """
    vectors = ceil_div(outs // (16 // dtype.size), target.workers)
    end = (7 if dtype == FLOAT else 9) + (out_type == FLOAT)
    cycles: IntArray = 33 + target.workers * (20 + (step * partials + end) * vectors)
    return cycles


_SOURCE = "PopLibs lib/popops/reduction/CycleEstimationFunctions.cpp"
TYPES = VertexTypes(
    (
        worker(
            "popops::Reduce<op,in,out,update,0>",
            "partials out",
            general_reduce,
            _SOURCE,
            (16, 150),
        ),
        worker(
            "popops::Reduce<op,in,out,update,1>",
            "partials out",
            continuous_reduce,
            _SOURCE,
            (12, 150),
            scaled=2,
        ),
        worker(
            "popops::Reduce<op,in,out,update,2>",
            "partials out",
            scalar_reduce_cycles,
            _SOURCE,
            (10, 150),
            scaled=1,
        ),
        worker(
            "popops::Reduce<op,in,out,update,2>, 2019",
            "partials out",
            scalar_reduce_2019,
            f"{_SOURCE} of 2019",
            (10, 150),
            scaled=1,
        ),
        worker(
            "popops::Reduce<op,in,out,update,3>",
            "partials out",
            strided_reduce_cycles,
            _SOURCE,
            (14, 150),
            scaled=2,
        ),
        worker(
            "popops::ScaledReduce<op,in,out,update,0>",
            "partials out scale",
            general_reduce,
            _SOURCE,
            (20, 150),
        ),
        supervisor(
            "poplin::ReduceAdd<out,in>", "partials out", reduce_add, POPLIN_ESTIMATES, (16, 150)
        ),
        supervisor(
            "poplin::ReduceAdd<out,in,true,interleaved>",
            "partials out",
            reduce_add_single_input,
            POPLIN_ESTIMATES,
            (16, 150),
        ),
    )
)
