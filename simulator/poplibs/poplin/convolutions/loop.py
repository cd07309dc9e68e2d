"""Slices of a convolution in a loop: each is taken, convolved, and put into its place or added.

As in PopLibs (lib/poplin/Convolution.cpp, convolutionImpl): operands whose slices lie on other
tiles are rearranged before the loop, so that slices are taken where they lie.
"""

from __future__ import annotations

from collections.abc import Callable

from simulator.graph.graph import Graph
from simulator.graph.program import Copy, Repeat, Sequence, WriteUndef
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import UNSIGNED_INT
from simulator.poplibs import popops
from simulator.poplibs.poplin.convolutions.create import (
    INPUT_AXES,
    WEIGHT_AXES,
    add_input_slices,
    add_weight_slices,
    sliced_together,
)
from simulator.poplibs.poplin.planning.plan import Plan
from simulator.poplibs.poplin.planning.problem import Problem

Operands = tuple[Tensor, Tensor]
OUTPUT_AXES = {"outputs": 1, "batch": 2}


def in_loop(
    graph: Graph,
    plan: Plan,
    problem: Problem,
    operands: Operands,
    convolve: Callable[[Operands, Sequence], Tensor],
    prog: Sequence,
    name: str,
) -> Tensor:
    """Return [g][co][n][*field] of a problem whose slices a loop convolves."""
    dimension, count = plan.serial.dimension, plan.slices
    counter = graph.addVariable(UNSIGNED_INT, [1], f"{name}/loopCounter")
    zero, one = (graph.addConstant(UNSIGNED_INT, [1], n, f"{name}/{n}") for n in (0, 1))
    for scalar in (counter, zero, one):
        graph.setTileMapping(scalar, 0)
    body = Sequence()
    parts = [
        _slice_taken(graph, plan, tensor, axis, which, counter, (prog, body), name)
        for tensor, which, axis in zip(
            operands,
            ("input", "weights"),
            (INPUT_AXES.get(dimension), WEIGHT_AXES.get(dimension)),
            strict=True,
        )
    ]
    prog.add(Copy(zero, counter, name=name))
    out = convolve((parts[0], parts[1]), body)
    if dimension == "inputs":
        result = _summed(graph, out, prog, body, name)
    else:
        apart = popops.createSliceableTensorFromSlice(
            graph, out.expand([0]), [0], [count], f"{name}/serialOut"
        )
        prog.add(WriteUndef(apart))  # each turn of the loop writes a part, all of them the whole
        popops.dynamicUpdate(
            graph, apart, out.expand([0]), counter, [0], [1], body, f"{name}/serialUpdate"
        )
        result = sliced_together(apart, OUTPUT_AXES[dimension])
    popops.addInPlace(graph, counter, one, body, f"{name}/loopIncrement")
    prog.add(Repeat(count, body, name=name))
    if result.dtype == problem.out_type:
        return result
    return popops.cast(graph, result, problem.out_type, prog, f"{name}/CastSerialOut")


def _slice_taken(
    graph: Graph,
    plan: Plan,
    tensor: Tensor,
    axis: int | None,
    which: str,
    counter: Tensor,
    programs: tuple[Sequence, Sequence],
    name: str,
) -> Tensor:
    """Return an operand, or the slice of it that the loop's body takes.

    Before the loop an operand is rearranged whose slices do not lie alike.
    """
    if axis is None:
        return tensor
    before, body = programs
    size = tensor.shape[axis] // plan.slices
    apart = tensor.reshapePartial(axis, axis + 1, [plan.slices, size]).dimRoll(axis, 0)
    if _split_over_tiles(graph, apart):
        label = f"{name}/{which}Rearranged"
        if which == "input":
            arranged = add_input_slices(graph, apart.shape, plan, plan.problem, label)
        else:
            arranged = add_weight_slices(graph, apart.shape, plan, label)
        before.add(Copy(apart, arranged, name=f"{name}/{which}RegroupBeforeSlice"))
        apart = arranged
    label = f"{name}/{which}SerialSlice"
    return popops.dynamicSlice(graph, apart, counter, [0], [1], body, label).squeeze([0])


def _split_over_tiles(graph: Graph, apart: Tensor) -> bool:
    """Return whether slices, the first dimension, lie otherwise on the tiles than the first one."""
    first = graph.getTileMapping(apart[0])
    return any(graph.getTileMapping(apart[n]) != first for n in range(1, apart.dim(0)))


def _summed(graph: Graph, out: Tensor, prog: Sequence, body: Sequence, name: str) -> Tensor:
    """Add a slice's result to the sum of those before, which is zero at first."""
    total = graph.clone(out, f"{name}/serialOut")
    popops.zero(graph, total, prog, f"{name}/zero")
    popops.addInPlace(graph, total, out, body, f"{name}/serialOut")
    return total
