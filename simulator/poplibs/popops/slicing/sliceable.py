"""Tensors that can be sliced, their slices and offsets, on the tiles where slices cost least.

As in PopLibs lib/popops/DynamicSlice.cpp: the elements that are not sliced are spread over the
tiles, each with all rows of its columns; a plan may split the rows and the offsets, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, overload

import numpy as np

from simulator.codelets.costs import ceil_div
from simulator.graph.errors import poplibs_error
from simulator.graph.geometry.intervals import offsets_of, spread
from simulator.graph.graph import Graph
from simulator.graph.machine.target import Target
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import UNSIGNED_INT, Type, checked_shape, checked_type
from simulator.logging import library_call
from simulator.poplibs import poputil
from simulator.poplibs.popops.overloads import NEEDED, arguments_of
from simulator.poplibs.popops.regions import debug_name
from simulator.poplibs.popops.slicing.planned.partitioned import Partition, add_partitioned
from simulator.poplibs.popops.slicing.planned.slice_layout import (
    INDICES_PER_TILE,
    check_planned,
    planned_base,
    planned_slices,
)
from simulator.poplibs.popops.slicing.planned.slice_plan import (
    Options,
    SlicePlan,
    check_slices,
    slice_options,
    slice_order,
)


@overload
def createSliceableTensor(
    graph: Graph,
    type: Type,
    shape: Sequence[int],
    dims: Sequence[int],
    sizes: Sequence[int],
    minGrainSize: int = 0,
    debugContext: str = "",
) -> Tensor: ...
@overload
def createSliceableTensor(
    graph: Graph,
    type: Type,
    shape: Sequence[int],
    dims: Sequence[int],
    sizes: Sequence[int],
    plan: SlicePlan,
    options: Options = None,
    debugContext: str = "",
) -> Tensor: ...
@library_call("POPOPS")
def createSliceableTensor(
    graph: Graph,
    type: Type,
    shape: Sequence[int],
    dims: Sequence[int],
    sizes: Sequence[int],
    *arguments: object,
    **named: object,
) -> Tensor:
    """Add a variable out of which slices of `sizes` of the dimensions `dims` can be taken.

    It is spread over as many tiles as there are elements outside `dims`, with at least
    `minGrainSize` of them on each; or as a plan has it.

    >>> from simulator import poplar, popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> popops.createSliceableTensor(trial.graph, poplar.FLOAT, [8, 4], [0], [1]).shape
    (8, 4)
    """
    function = "createSliceableTensor"
    planned = "plan" in named or isinstance(next(iter(arguments), None), SlicePlan)
    form: dict[str, object] = {"minGrainSize": 0}
    if planned:
        form = {"plan": NEEDED, "options": None}
    call_args = arguments_of(function, {**form, "debugContext": ""}, arguments, named)
    name, context = debug_name(call_args["debugContext"], function), call_args["debugContext"]
    sizes_of, dtype = checked_shape(shape, name), checked_type(type, name)
    check_slices(name, sizes_of, dims, sizes)
    plan = call_args.get("plan", SlicePlan())
    if plan.isNull:
        tensor_name = debug_name(context, "sliceable" + "x".join(map(str, sizes_of)))
        order = slice_order(sizes_of, dims, sizes)
        ordered = [dims[place] for place in order]
        return add_sliceable(
            graph, dtype, sizes_of, ordered, tensor_name, call_args.get("minGrainSize", 0)
        )
    slice_options(call_args["options"], name)
    check_planned(name, plan, sizes_of, dims, sizes, 1, graph.target)
    return planned_base(graph, dtype, (1, *sizes_of), plan, context)[0].squeeze([0])


def add_sliceable(
    graph: Graph,
    dtype: Type,
    shape: Sequence[int],
    dims: Sequence[int],
    name: str,
    min_grain: int = 0,
) -> Tensor:
    """Add a variable of which each tile has all of the dimensions `dims` of some elements.

    In memory `dims` come first, in their order.
    """
    if not dims or not prod(shape):
        tensor = graph.addVariable(dtype, shape, name)
        poputil.mapTensorLinearly(graph, tensor)
        return tensor
    other_axes = [axis for axis in range(len(shape)) if axis not in dims]
    sizes = tuple(shape[dim] for dim in dims)
    elements = prod(shape[axis] for axis in other_axes)
    partition = sliceable_partition(graph.target, dtype, (*sizes, elements), min_grain)
    tensor, memory = add_partitioned(graph, dtype, partition, name)
    starts = partition.starts().reshape(-1)
    ends = np.append(starts[1:], memory.numElements())
    graph.map_ranges(memory, starts, ends, np.arange(len(starts), dtype=np.int64))
    return _in_order(tensor, [*dims, *other_axes], [shape[axis] for axis in other_axes])


def sliceable_partition(
    target: Target, dtype: Type, shape: tuple[int, ...], least: int = 0
) -> Partition:
    """Spread the last dimension over the tiles, in whole words when so many elements are asked for.

    The other dimensions are those that are sliced.
    """
    grain = max(ceil_div(shape[-1], target.num_tiles), least)
    word = max(target.getAtomicStoreGranularity() // dtype.size, 1)
    if len(shape) == 2 and least > 1 and least >= word:
        grain = ceil_div(grain, word) * word
    return Partition(shape, (*(1 for _ in shape[1:]), ceil_div(shape[-1], grain)))


def _in_order(tensor: Tensor, axes: Sequence[int], last: Sequence[int]) -> Tensor:
    """Split the last dimension of a tensor and put its dimensions, which are `axes`, in order."""
    split = tensor.reshape((*tensor.shape[:-1], *last))
    if list(axes) == sorted(axes):
        return split
    return split.dimShuffle([list(axes).index(axis) for axis in range(len(axes))])


# Slices and offsets
@overload
def createSliceTensor(
    graph: Graph,
    t: Tensor,
    dims: Sequence[int],
    sizes: Sequence[int],
    numIndices: int,
    debugContext: str = "",
) -> Tensor: ...
@overload
def createSliceTensor(
    graph: Graph,
    type: Type,
    shape: Sequence[int],
    dims: Sequence[int],
    sizes: Sequence[int],
    numIndices: int,
    plan: SlicePlan,
    options: Options = None,
    debugContext: str = "",
) -> Tensor: ...
@library_call("POPOPS")
def createSliceTensor(graph: Graph, *arguments: object, **named: object) -> Tensor:
    """Add a variable [numIndices][sizes in place of `dims`] for slices of a tensor or of a plan.

    >>> from simulator import popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> x = trial.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    >>> popops.createSliceTensor(trial.graph, x, [0], [1], 5).shape
    (5, 1, 2)
    """
    function = "createSliceTensor"
    slices = {"dims": NEEDED, "sizes": NEEDED, "numIndices": NEEDED}
    if "t" in named or isinstance(next(iter(arguments), None), Tensor):
        form = {"t": NEEDED, **slices, "debugContext": ""}
        call_args = arguments_of(function, form, arguments, named)
        tensor: Tensor = call_args["t"]
        call_args |= {
            "type": tensor.dtype,
            "shape": tensor.shape,
            "plan": SlicePlan(),
            "options": None,
        }
    else:
        form = {"type": NEEDED, "shape": NEEDED, **slices, "plan": NEEDED, "options": None}
        call_args = arguments_of(function, {**form, "debugContext": ""}, arguments, named)
    return _slice_tensor(graph, call_args)


def _slice_tensor(graph: Graph, call_args: Mapping[str, Any]) -> Tensor:
    name = debug_name(call_args["debugContext"], "createSliceTensor")
    dims, sizes, count = call_args["dims"], call_args["sizes"], call_args["numIndices"]
    shape, dtype = checked_shape(call_args["shape"], name), checked_type(call_args["type"], name)
    check_slices(name, shape, dims, sizes)
    slice_options(call_args["options"], name)
    plan: SlicePlan = call_args["plan"]
    if not plan.isNull:
        check_planned(name, plan, shape, dims, sizes, 1, graph.target)
        return planned_slices(
            graph, dtype, (1, count, 1, shape[1]), plan, call_args["debugContext"]
        ).squeeze([0])
    if count == 1 and "t" in call_args:
        part: Tensor = call_args["t"]
        for dim, size in zip(dims, sizes, strict=True):
            part = part.slice(0, size, dim)
        suffix = "".join(f"_d{dim}" for dim in dims)
        return graph.clone(part, debug_name(call_args["debugContext"], f"slice{suffix}")).expand(
            [0]
        )
    return unplanned_slices(graph, dtype, shape, dims, sizes, count, call_args["debugContext"])


def unplanned_slices(
    graph: Graph,
    dtype: Type,
    shape: Sequence[int],
    dims: Sequence[int],
    sizes: Sequence[int],
    count: int,
    context: str,
) -> Tensor:
    """Add a variable for `count` slices of a tensor that `createSliceableTensor` made."""
    one = dict(zip(dims, sizes, strict=True))
    order = [1 + dims[place] for place in slice_order(shape, dims, sizes)]
    slices_shape = (count, *(one.get(axis, size) for axis, size in enumerate(shape)))
    name = debug_name(context, f"slices{count}")
    return add_sliceable(graph, dtype, slices_shape, [*order, 0], name)


@library_call("POPOPS")
def createIndicesTensor(
    graph: Graph,
    dims: Sequence[int],
    numIndices: int,
    plan: SlicePlan | Options = None,
    options: Options | str = None,
    debugContext: str = "",
) -> Tensor:
    """Add a variable [numIndices][dims] of offsets, mapped for slices; the plan may be left out.

    >>> from simulator import popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> popops.createIndicesTensor(trial.graph, [0], 5).shape
    (5, 1)
    """
    if not isinstance(plan, SlicePlan) and plan is not None:  # the form without a plan
        debugContext = options if isinstance(options, str) else debugContext
        options = plan
    name = debug_name(debugContext, "createIndicesTensor")
    slice_options(None if isinstance(options, str) else options, name)
    tensor = graph.addVariable(
        UNSIGNED_INT, [numIndices, len(dims)], debug_name(debugContext, "indices")
    )
    poputil.mapTensorLinearly(graph, tensor, INDICES_PER_TILE, 1)
    return tensor


@library_call("POPOPS")
def createSliceableTensorFromSlice(
    graph: Graph,
    s: Tensor,
    dims: Sequence[int],
    numSlices: Sequence[int],
    debugContext: str = "",
) -> Tensor:
    """Add a variable of which `s` is one slice: each dimension of `dims` is so many times longer.

    It lies on the tiles of the slice, on each of which all that it has of one slice lies together,
    and one slice after another (PopLibs: DUPLICATE_BY_TILE_CONTIGUOUS_REGION).

    >>> from simulator import popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> row = trial.tensor([[1.0, 2.0]])
    >>> popops.createSliceableTensorFromSlice(trial.graph, row, [0], [8]).shape
    (8, 2)
    """
    name = debug_name(debugContext, "createSliceableTensorFromSlice")
    check_slices(name, s.shape, dims, [0] * len(dims))
    if len(dims) != len(numSlices) or min(numSlices, default=1) < 1:
        raise poplibs_error(f"{name}: {list(numSlices)} slices of dimensions {list(dims)}")
    flat, count = s.flatten(), prod(numSlices)
    elements = flat.elements()
    by_place = np.argsort(elements, kind="stable")
    low, high, tile = graph.tile_ranges(flat.view(elements[by_place]))
    if int((high - low).sum()) != s.numElements():
        raise poplibs_error(f"{name}: slice {s!r} is not wholly mapped to tiles")
    by_tile = np.argsort(tile, kind="stable")
    order = by_place[spread(low[by_tile], (high - low)[by_tile])]
    tiles, first = np.unique(tile[by_tile], return_index=True)
    width = np.add.reduceat((high - low)[by_tile], first) if len(first) else first
    bounds = offsets_of(width)
    memory = graph.addVariable(
        s.dtype, [count * s.numElements()], debug_name(debugContext, "sliceable")
    )
    graph.map_ranges(memory, bounds[:-1] * count, bounds[1:] * count, tiles)
    start = np.empty(len(order), dtype=np.int64)
    start[order] = np.arange(len(order)) + np.repeat(bounds[:-1] * (count - 1), width)
    step = np.empty(len(order), dtype=np.int64)
    step[order] = np.repeat(width, width)
    places = start + np.arange(count, dtype=np.int64)[:, None] * step
    axes_of = [[len(dims) + axis] for axis in range(s.rank())]
    for place, dim in enumerate(dims):
        axes_of[dim].insert(0, place)
    axes = [axis for pair in axes_of for axis in pair]
    times = dict(zip(dims, numSlices, strict=True))
    shape = [size * times.get(axis, 1) for axis, size in enumerate(s.shape)]
    origin = int(memory.begins[0]) if len(memory.begins) else 0
    spread_out = places.reshape(*numSlices, *s.shape).transpose(axes).reshape(shape)
    return memory.view(origin + spread_out)
