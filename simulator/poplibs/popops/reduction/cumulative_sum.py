"""Sums of all elements up to each one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np

from simulator.codelets.costs import ceil_div
from simulator.codelets.indexing.cumulative_sum import (
    add_carry_codelet,
    cumulative_sum_codelet,
    cumulative_sum_cycles,
    partials_of,
)
from simulator.graph import program
from simulator.graph.errors import poplibs_error
from simulator.graph.graph import Graph
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import FLOAT, HALF, INT, UNSIGNED_INT, IntArray
from simulator.graph.vertices.vertex import VertexGroup, cut_field
from simulator.logging import library_call
from simulator.poplibs.popops.overloads import NEEDED, arguments_of
from simulator.poplibs.popops.regions import debug_name
from simulator.poplibs.popops.slicing.dynamic_slice import rows_of
from simulator.poplibs.popops.slicing.planned.lookup_vertices import cut_rows
from simulator.poplibs.popops.slicing.planned.partitioned import Partition, add_partitioned

LEAST_ROWS = 64  # of a block; with fewer the stage that adds what came before takes longer


@overload
def cumSum(
    graph: Graph,
    input: Tensor,
    axis: int | Sequence[int],
    prog: program.Sequence,
    debugContext: str = "",
    exclusive: bool = False,
    reverse: bool = False,
) -> Tensor: ...
@overload
def cumSum(
    graph: Graph,
    input: Tensor,
    axis: int | Sequence[int],
    exclusive: bool,
    reverse: bool,
    prog: program.Sequence,
    debugContext: str = "",
    /,
) -> Tensor: ...
@library_call("POPOPS")
def cumSum(
    graph: Graph, input: Tensor, axis: int | Sequence[int], *arguments: object, **named: object
) -> Tensor:
    """Return the sum of the elements of one axis, or of several, up to each of them.

    An `exclusive` sum leaves out the element itself, a `reverse` one begins at the end.

    >>> from simulator import popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> a = trial.tensor([1.0, 2.0, 3.0])
    >>> trial.values(popops.cumSum(trial.graph, a, 0, False, False, trial.prog))
    [1.0, 3.0, 6.0]
    """
    flags: dict[str, object] = {"exclusive": False, "reverse": False}
    form = {"prog": NEEDED, "debugContext": "", **flags}
    if isinstance(next(iter(arguments), None), bool):
        form = {**flags, "prog": NEEDED, "debugContext": ""}
    call_args = arguments_of("cumSum", form, arguments, named)
    name = debug_name(call_args["debugContext"], "cumSum")
    axes = [axis] if isinstance(axis, int | np.integer) else list(axis)
    if len(set(axes)) != len(axes) or not {*axes} <= {*range(input.rank())} or not axes:
        raise poplibs_error(f"{name}: axes {axes} of {input!r}; different ones are needed")
    if input.dtype not in (FLOAT, HALF, INT, UNSIGNED_INT):
        raise poplibs_error(f"{name}: {input!r}; known for float, half, int, unsigned int")
    result = input
    with graph.debug_scope(name, "popops"):
        for place in axes:
            matrix = rows_of(result, place)
            way = _Way(graph, call_args["prog"], name, call_args["exclusive"], call_args["reverse"])
            sums = _sums(way, matrix, name)
            front = [result.dim(place), *result.shape[:place], *result.shape[place + 1 :]]
            result = sums.reshape(front).dimRoll(0, place)
    return result


@dataclass(frozen=True, slots=True)
class _Way:
    """Where sums go, and which they are."""

    graph: Graph
    prog: program.Sequence
    name: str
    exclusive: bool
    reverse: bool


def _sums(way: _Way, matrix: Tensor, name: str) -> Tensor:
    """Sum up the rows of a matrix: in each block, then over the blocks, whose totals are added.

    A worker has a block of rows and of whole vectors of columns.
    """
    graph, columns = way.graph, matrix.dim(1)
    partition = _blocks(graph, matrix)
    sums, memory = add_partitioned(graph, matrix.dtype, partition, f"{name}/out")
    if not matrix.numElements():
        return sums
    parts = partition.parts
    totals = graph.addVariable(partials_of(matrix.dtype), [parts[0], columns], f"{name}/totals")
    starts = partition.starts()
    ends = np.append(starts.reshape(-1)[1:], memory.numElements())
    height, width = np.diff(partition.bounds(0)), np.diff(partition.bounds(1))
    row, column = np.indices(parts, dtype=np.int64).reshape(2, -1)
    tiles = _tiles_of(graph, len(row))
    graph.map_ranges(memory, starts.reshape(-1), ends, tiles)
    low = row * columns + partition.bounds(1)[column]
    graph.map_ranges(totals, low, low + width[column], tiles)
    compute_set = graph.addComputeSet(name)
    first = partition.bounds(0)[row] * columns + partition.bounds(1)[column]
    graph.add_vertices(
        VertexGroup(
            compute_set=compute_set.id,
            codelet=cumulative_sum_codelet(matrix.dtype, way.exclusive, way.reverse),
            tile=tiles,
            fields={
                "in": cut_rows(matrix.flatten(), first, height[row], columns, width[column]).field(
                    "in", "input"
                ),
                "out": cut_field("out", "output", memory, starts.reshape(-1), ends),
                "total": cut_field("total", "output", totals.flatten(), low, low + width[column]),
            },
            parameters={"rows": height[row], "columns": width[column]},
            cycles=cumulative_sum_cycles(height[row], width[column], matrix.dtype, graph.target),
        )
    )
    way.prog.add(program.Execute(compute_set))
    if parts[0] > 1:
        before = _Way(graph, way.prog, way.name, True, way.reverse)
        carry = _sums(before, totals, f"{name}/carry")
        _add_carry(
            way, (memory, starts.reshape(-1), ends), carry, (height[row], width[column]), low
        )
    return sums


def _blocks(graph: Graph, matrix: Tensor) -> Partition:
    """Cut a matrix into blocks, at most one a worker: first into columns, then into rows."""
    target, (rows, columns) = graph.target, matrix.shape
    workers = target.num_tiles * target.workers
    across = min(ceil_div(columns, max(target.getVectorWidth(matrix.dtype), 1)), workers)
    down = min(max(workers // max(across, 1), 1), ceil_div(rows, LEAST_ROWS))
    return Partition((rows, columns), (max(down, 1), max(across, 1)))


def _tiles_of(graph: Graph, blocks: int) -> IntArray:
    """Spread blocks over the tiles; those of a tile go to its workers."""
    tiles = min(graph.target.num_tiles, blocks)
    return np.arange(blocks, dtype=np.int64) * tiles // blocks


def _add_carry(
    way: _Way,
    out: tuple[Tensor, IntArray, IntArray],
    carry: Tensor,
    size: tuple[IntArray, IntArray],
    low: IntArray,
) -> None:
    """Add to each block the sum of the blocks before it."""
    graph, (memory, starts, ends), (height, width) = way.graph, out, size
    compute_set = graph.addComputeSet(f"{way.name}/add")
    graph.add_vertices(
        VertexGroup(
            compute_set=compute_set.id,
            codelet=add_carry_codelet(memory.dtype),
            tile=_tiles_of(graph, len(starts)),
            fields={
                "out": cut_field("out", "inout", memory, starts, ends),
                "carry": cut_field("carry", "input", carry.flatten(), low, low + width),
            },
            parameters={"rows": height, "columns": width},
            cycles=cumulative_sum_cycles(height, width, memory.dtype, graph.target),
        )
    )
    way.prog.add(program.Execute(compute_set))
