"""Counted loops whose start, end and step may be known at run time only (popops/Loop.hpp)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

import numpy as np

from simulator.codelets.system.copies import loop_counter
from simulator.codelets.system.loops import for_loop_counter
from simulator.graph.errors import PoplarError, poplibs_error
from simulator.graph.geometry.intervals import as_int64
from simulator.graph.graph import Graph
from simulator.graph.program import Copy, Execute, Program, RepeatWhileTrue, Sequence
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import BOOL, INT, UNSIGNED_INT, Type
from simulator.graph.vertices.vertex import VertexGroup, cut_field
from simulator.logging import library_call
from simulator.poplibs.popops.operators import sub
from simulator.poplibs.popops.regions import debug_name

Count = int | Tensor
Body = Callable[[Tensor], Program]


@overload
def countedLoop(graph: Graph, count: Count, body: Body, /, debugContext: str = "") -> Sequence: ...
@overload
def countedLoop(
    graph: Graph, begin: Count, end: Count, step: Count, body: Body, /, debugContext: str = ""
) -> Sequence: ...
@library_call("POPOPS")
def countedLoop(graph: Graph, /, *arguments: Any, debugContext: str = "") -> Sequence:
    """Run `body(count)` with count from `begin` (0) to below `end` by `step` (1).

    The count is a tensor of one unsigned int that the body may read.

    >>> from simulator import poplar, popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> total = trial.tensor([0], poplar.UNSIGNED_INT)
    >>> def body(count):
    ...     step = poplar.program.Sequence()
    ...     popops.addInPlace(trial.graph, total, count, step)
    ...     return step
    >>> trial.prog.add(popops.countedLoop(trial.graph, 5, body))
    >>> trial.values(total)  # 0 + 1 + 2 + 3 + 4
    [10]
    """
    arguments, debugContext = _without_name(arguments, debugContext)
    if len(arguments) not in (2, 4):
        raise PoplarError("countedLoop: takes a count and a body, or begin, end, step and a body")
    begin, end, step = (0, arguments[0], 1) if len(arguments) == 2 else arguments[:3]
    _check_bounds(begin, end, step)
    name = debug_name(debugContext, "countedLoop")
    count = graph.addVariable(UNSIGNED_INT, [1], f"{name}/count")
    graph.setTileMapping(count, 0)
    body = arguments[-1](count)
    return countedForLoop(graph, count, begin, end, step, body, debugContext=name)


def _check_bounds(begin: Count, end: Count, step: Count) -> None:
    """Raise poplibs_error, in PopLibs' words, where a loop of known bounds would not run."""
    for name, bound in (("begin", begin), ("end", end), ("step", step)):
        if not isinstance(bound, int | np.integer | Tensor):
            raise poplibs_error(f"countedLoop: {name} is {bound!r}; a whole number is needed")
        if not isinstance(bound, Tensor) and bound >= 1 << 32:
            raise poplibs_error(f"countedLoop: {name} is {bound}; an unsigned int is needed")
    numbers = [not isinstance(bound, Tensor) for bound in (begin, end, step)]
    if numbers[2] and step < 1:  # type: ignore[operator]
        raise poplibs_error(f"countedLoop: step must be greater than zero. It is {step}")
    if numbers[0] and begin < 0:  # type: ignore[operator]
        raise poplibs_error(f"countedLoop: begin is {begin}; 0 or more is needed")
    if numbers[0] and numbers[1] and begin >= end:  # type: ignore[operator]
        raise poplibs_error(f"countedLoop: begin must be less than end: they are {begin} and {end}")


@overload
def countedForLoop(
    graph: Graph,
    count: Tensor,
    initialCount: Count,
    countLimit: Count,
    countStep: Count,
    body: Program,
    /,
    debugContext: str = "",
) -> Sequence: ...
@overload
def countedForLoop(
    graph: Graph,
    initialCount: Count,
    countLimit: Count,
    countStep: Count,
    body: Program,
    /,
    debugContext: str = "",
) -> Sequence: ...
@library_call("POPOPS")
def countedForLoop(graph: Graph, /, *arguments: Any, debugContext: str = "") -> Sequence:
    """Run a program with `count` from `initialCount` to below `countLimit` by `countStep`.

    A negative step counts down to above the limit. Each of the three numbers may be a tensor of
    one element of the type of `count`. A count that is not given is made, of the type of the
    tensors, else of int.

    >>> from simulator import poplar, popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> total, count = trial.tensor([0]), trial.tensor([0])
    >>> body = poplar.program.Sequence()
    >>> popops.addInPlace(trial.graph, total, count, body)
    >>> trial.prog.add(popops.countedForLoop(trial.graph, count, 1, 5, 1, body))
    >>> trial.values(total)  # 1 + 2 + 3 + 4
    [10]
    """
    arguments, debugContext = _without_name(arguments, debugContext)
    name = debug_name(debugContext, "countedForLoop")
    if len(arguments) not in (4, 5):
        raise PoplarError(f"{name}: takes [count,] initialCount, countLimit, countStep and a body")
    initial, limit, step, body = arguments[-4:]
    if len(arguments) == 5:
        count = arguments[0]
    else:
        numbers = (limit, step, initial)
        dtype = next((one.dtype for one in numbers if isinstance(one, Tensor)), INT)
        count = graph.addVariable(dtype, [1], f"{name}/count")
        graph.setTileMapping(count, 0)
    if not isinstance(count, Tensor) or count.numElements() != 1:
        raise PoplarError(f"{name}: counts in {count!r}; a tensor of one element is needed")
    program, check = Sequence(name=name), Sequence()
    with graph.debug_scope(name, "popops"):
        tile = int(graph.tile_ranges(count)[2][0])
        limit_, step_ = (_number(graph, n, count.dtype, tile, name) for n in (limit, step))
        program.add(Copy(_before(graph, initial, step, step_, count, program), count))
        proceed = addForLoopCounterVertex(graph, count, limit_, step_, tile, check)
        program.add(RepeatWhileTrue(check, proceed, body, name=name))
    return program


@library_call("POPOPS")
def addForLoopCounterVertex(
    graph: Graph,
    count: Tensor,
    countLimit: Tensor,
    countStep: Count,
    tile: int,
    prog: Sequence,
    debugContext: str = "",
) -> Tensor:
    """Add a step that advances `count`; give the tensor that tells whether the loop goes on.

    >>> from simulator import poplar, popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> count, limit = trial.tensor([2]), trial.tensor([5])
    >>> popops.addForLoopCounterVertex(trial.graph, count, limit, 3, 0, trial.prog).dtype
    Type(name='bool', ...)
    >>> trial.values(count)
    [5]
    """
    name = debug_name(debugContext, "loopCounter")
    dtype = count.dtype
    if dtype not in (INT, UNSIGNED_INT):
        raise PoplarError(f"{name}: count of type {dtype}; int or unsigned int is needed")
    increment = _number(graph, countStep, dtype, tile, name)
    proceed = graph.addVariable(BOOL, [1], f"{name}/comparisonResult")
    graph.setTileMapping(proceed, tile)
    compute_set = graph.addComputeSet(name)
    joined = {
        "count": ("inout", count),
        "limit": ("input", countLimit),
        "increment": ("input", increment),
        "comparisonResult": ("output", proceed),
    }
    graph.add_vertices(
        VertexGroup(
            compute_set=compute_set.id,
            codelet=for_loop_counter(dtype),
            tile=as_int64(tile),
            fields={n: cut_field(n, way, t, 0, 1) for n, (way, t) in joined.items()},  # type: ignore[arg-type]
            parameters={},
            cycles=loop_counter(as_int64(tile)),
        )
    )
    prog.add(Execute(compute_set))
    return proceed


def _without_name(arguments: tuple[object, ...], name: str) -> tuple[tuple[Any, ...], str]:
    """Take the name from the end of the arguments, where it stands in Poplar."""
    if arguments and isinstance(arguments[-1], str):
        return arguments[:-1], arguments[-1]
    return arguments, name


def _number(graph: Graph, value: Count, dtype: Type, tile: int, name: str) -> Tensor:
    """Return a number as a tensor: the one that was given, or a constant on the tile."""
    if isinstance(value, Tensor):
        if value.dtype != dtype or value.numElements() != 1:
            raise PoplarError(f"{name}: {value!r}; one element of type {dtype} is needed")
        return value.flatten()
    wrapped = np.array([value], dtype=np.int64).astype(dtype.numpy)
    constant = graph.addConstant(dtype, [1], wrapped)
    graph.setTileMapping(constant, tile)
    return constant


def _before(
    graph: Graph, initial: Count, step: Count, increment: Tensor, count: Tensor, prog: Sequence
) -> Tensor:
    """Return the value before the first count, as the loop advances before it compares."""
    if isinstance(step, int) and step == 0:
        raise PoplarError("countedForLoop: a step of 0 never ends")
    tile = int(graph.tile_ranges(count)[2][0])
    if isinstance(initial, int) and isinstance(step, int):
        return _number(graph, initial - step, count.dtype, tile, "countedForLoop")
    first = _number(graph, initial, count.dtype, tile, "countedForLoop")
    return sub(graph, first, increment, prog, "initialCount")
