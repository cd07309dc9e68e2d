"""Slices of a tensor put together (popops/Gather.hpp)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import overload

import numpy as np

from simulator.graph import program
from simulator.graph.errors import poplibs_error
from simulator.graph.graph import Graph
from simulator.graph.option_table import OptionValue
from simulator.graph.tensors.tensor import Tensor, concat
from simulator.graph.types import INT, UNSIGNED_INT, Type, checked_shape, checked_type
from simulator.logging import library_call
from simulator.poplibs.popops.operators import bitwiseAnd, eq, select, shiftRight
from simulator.poplibs.popops.overloads import NEEDED, arguments_of
from simulator.poplibs.popops.regions import debug_name
from simulator.poplibs.popops.slicing.index_bounds import (
    checked_indices,
    gather_options,
    with_padding,
)
from simulator.poplibs.popops.slicing.multi_slice import NO_PLAN, multiSlice
from simulator.poplibs.popops.slicing.planned.slice_layout import joined_ranges
from simulator.poplibs.popops.slicing.planned.slice_plan import Options, check_slices, slice_order
from simulator.poplibs.popops.slicing.sliceable import add_sliceable, sliceable_partition


@dataclass(frozen=True, slots=True)
class GatherParams:
    """How a gather is shared: an axis with more elements is gathered in pairs of them."""

    maxElementsPerTile: int = 65535


DEFAULT = GatherParams()


# Inputs
@overload
def createGatherInput(
    graph: Graph,
    type: Type,
    operandShape: Sequence[int],
    axis: int,
    params: GatherParams = DEFAULT,
    debugContext: str = "",
) -> Tensor: ...
@overload
def createGatherInput(
    graph: Graph,
    type: Type,
    inputShape: Sequence[int],
    sliceSizes: Sequence[int],
    startIndexMap: Sequence[int],
    debugContext: str = "",
) -> Tensor: ...
@library_call("POPOPS")
def createGatherInput(graph: Graph, type: Type, *arguments: object, **named: object) -> Tensor:
    """Add a variable out of which a gather, of one axis or in general, takes slices at low cost.

    >>> from simulator import poplar, popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> popops.createGatherInput(trial.graph, poplar.FLOAT, [8, 4], 0).shape
    (8, 4)
    """
    function = "createGatherInput"
    form: dict[str, object] = {"inputShape": NEEDED, "sliceSizes": NEEDED, "startIndexMap": NEEDED}
    one_axis = "axis" in named or (
        len(arguments) > 1 and isinstance(arguments[1], int | np.integer)
    )
    if one_axis:
        form = {"operandShape": NEEDED, "axis": NEEDED, "params": DEFAULT}
    call_args = arguments_of(function, {**form, "debugContext": ""}, arguments, named)
    name = debug_name(call_args["debugContext"], function)
    dtype = checked_type(type, name)
    if one_axis:
        shape = checked_shape(call_args["operandShape"], name)
        _check_axis(name, shape, call_args["axis"])
        return _axis_input(
            graph, dtype, shape, call_args["axis"], call_args["params"] or DEFAULT, name
        )
    shape = checked_shape(call_args["inputShape"], name)
    dims = sorted(call_args["startIndexMap"])
    if len(call_args["sliceSizes"]) != len(shape):
        raise poplibs_error(f"{name}: sliceSizes {call_args['sliceSizes']}; one for each dimension")
    sizes = [call_args["sliceSizes"][dim] for dim in dims]
    check_slices(name, shape, dims, sizes)
    order = [dims[place] for place in slice_order(shape, dims, sizes)]
    return add_sliceable(graph, dtype, shape, order, name)


def _axis_input(
    graph: Graph, dtype: Type, shape: tuple[int, ...], axis: int, params: GatherParams, name: str
) -> Tensor:
    """Add the input of a gather of one axis; a long axis is laid out in pairs, again and again."""
    size = shape[axis]
    if size <= params.maxElementsPerTile:
        return add_sliceable(graph, dtype, shape, [axis], name)
    even = size + size % 2
    pairs = (*shape[:axis], even // 2, 2, *shape[axis + 1 :])
    pair_input = _axis_input(graph, dtype, pairs, axis, params, name)
    return pair_input.reshape([*shape[:axis], even, *shape[axis + 1 :]]).slice(0, size, axis)


# Gathers
@overload
def gather(
    graph: Graph,
    input: Tensor,
    indices: Tensor,
    axis: int,
    prog: program.Sequence,
    params: GatherParams = DEFAULT,
    debugContext: str = "",
    optionFlags: Options = None,
) -> Tensor: ...
@overload
def gather(
    graph: Graph,
    input: Tensor,
    indices: Tensor,
    indexVectorDim: int,
    offsetDims: Sequence[int],
    sliceSizes: Sequence[int],
    collapsedSliceDims: Sequence[int],
    startIndexMap: Sequence[int],
    prog: program.Sequence,
    debugContext: str = "",
    optionFlags: Options = None,
) -> Tensor: ...
@library_call("POPOPS")
def gather(
    graph: Graph, input: Tensor, indices: Tensor, *arguments: object, **named: object
) -> Tensor:
    """Return the slices of an input at indices: of one axis as NumPy's take, or as XLA's Gather.

    Indices are of unsigned int or int, none negative. The options are those of slices, and
    `remapOutOfBoundIndices`: an index that is too large is taken as 0, `paddingIndexUsed`: one that
    is the size of the dimension gives zeros.

    >>> from simulator import poplar, popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> x = trial.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    >>> rows = trial.tensor([2, 0], poplar.UNSIGNED_INT)
    >>> trial.values(popops.gather(trial.graph, x, rows, 0, trial.prog))
    [[5.0, 6.0], [1.0, 2.0]]
    """
    needed = ("indexVectorDim", "offsetDims", "sliceSizes", "collapsedSliceDims", "startIndexMap")
    one_axis = "axis" in named or (
        len(arguments) > 1 and isinstance(arguments[1], program.Sequence)
    )
    last = {"debugContext": "", "optionFlags": None}
    form = {**dict.fromkeys(needed, NEEDED), "prog": NEEDED, **last}
    if one_axis:
        form = {"axis": NEEDED, "prog": NEEDED, "params": DEFAULT, **last}
    call_args = arguments_of("gather", form, arguments, named)
    name, prog = debug_name(call_args["debugContext"], "gather"), call_args["prog"]
    if indices.dtype not in (UNSIGNED_INT, INT):
        raise poplibs_error(f"{name}: indices {indices!r}; unsigned int or int is needed")
    indices = indices.reinterpret(UNSIGNED_INT)
    bounds, options = gather_options(call_args["optionFlags"], name)
    call = _Call(graph, prog, name, bounds, options)
    with graph.debug_scope(name, "popops"):
        if one_axis:
            return _of_axis(call, input, indices, call_args["axis"], call_args["params"] or DEFAULT)
        return _gather(call, input, indices, _Form(name, *(call_args[key] for key in needed)))


@dataclass(frozen=True, slots=True)
class _Call:
    """Where a gather is added, what it is called, and its options."""

    graph: Graph
    prog: program.Sequence
    name: str
    bounds: Mapping[str, OptionValue]
    options: Mapping[str, object]


def _check_axis(name: str, shape: tuple[int, ...], axis: int) -> None:
    if not 0 <= axis < len(shape):
        raise poplibs_error(f"{name}: axis {axis} of shape {list(shape)}")


def _of_axis(
    call: _Call, input: Tensor, indices: Tensor, axis: int, params: GatherParams
) -> Tensor:
    """Return slices of one axis, which the dimensions of the indices take the place of."""
    _check_axis(call.name, input.shape, axis)
    limits, columns = [input.dim(axis)], indices.flatten().expand([1])
    where = (limits, call.bounds, call.prog, call.name)
    columns = checked_indices(call.graph, columns, *where)
    slices = _take(call, input, columns.flatten(), axis, params).dimRoll(axis, 0)
    slices = with_padding(call.graph, slices, columns, *where).dimRoll(0, axis)
    return slices.reshapePartial(axis, axis + 1, list(indices.shape))


def _take(call: _Call, input: Tensor, indices: Tensor, axis: int, params: GatherParams) -> Tensor:
    """Return slices of one axis, at a list of indices."""
    if input.dim(axis) > params.maxElementsPerTile:
        return _take_of_pairs(call, input, indices, axis, params)
    order = list(range(input.rank()))
    order[0], order[axis] = axis, 0
    slices = _slices(call, input.dimShuffle(order), indices.expand([1]), [1])
    return slices.squeeze([1]).dimShuffle(order)


def _take_of_pairs(
    call: _Call, input: Tensor, indices: Tensor, axis: int, params: GatherParams
) -> Tensor:
    """Take pairs of elements of a long axis, and choose one of each."""
    graph, prog, name = call.graph, call.prog, call.name
    if input.dim(axis) % 2:
        last = input.slice(input.dim(axis) - 1, input.dim(axis), axis)
        input = concat([input, last], axis)  # no index is that of the element more
    pairs = input.reshapePartial(axis, axis + 1, [input.dim(axis) // 2, 2])
    halved = shiftRight(graph, indices, 1, prog, f"{name}/half")
    odd = eq(graph, bitwiseAnd(graph, indices, 1, prog, f"{name}/rest"), 1, prog, f"{name}/odd")
    slices = _take(replace(call, name=f"{name}/halved"), pairs, halved, axis, params)
    low, high = (slices.slice(part, part + 1, axis + 1).squeeze([axis + 1]) for part in (0, 1))
    shape = [-1 if place == axis else 1 for place in range(low.rank())]
    shape[axis] = indices.numElements()
    return select(graph, high, low, odd.reshape(shape), prog, f"{name}/choose")


@dataclass(frozen=True, slots=True)
class _Form:
    """Which dimensions of input, indices and output of a general gather belong together."""

    name: str
    index_vector_dim: int
    offset_dims: Sequence[int]
    slice_sizes: Sequence[int]
    collapsed: Sequence[int]
    start_index_map: Sequence[int]

    def check(self, input: Tensor, indices: Tensor) -> None:
        """Raise poplibs_error where they do not fit."""
        check_slices(self.name, input.shape, range(input.rank()), self.slice_sizes)
        starts = list(self.start_index_map)
        wrong = not 0 <= self.index_vector_dim <= indices.rank() or (
            len(starts) != index_columns(indices, self.index_vector_dim).dim(1)
        )
        if wrong or len(set(starts)) != len(starts) or not set(starts) <= {*range(input.rank())}:
            raise poplibs_error(
                f"{self.name}: startIndexMap {starts} and indexVectorDim {self.index_vector_dim} "
                f"do not fit indices {indices!r} of {input!r}"
            )
        collapsed = [0 <= dim < input.rank() for dim in self.collapsed]
        if not all(collapsed) or any(self.slice_sizes[dim] != 1 for dim in self.collapsed):
            raise poplibs_error(
                f"{self.name}: collapsedSliceDims {list(self.collapsed)} of slices "
                f"{list(self.slice_sizes)}; dimensions of size 1 are needed"
            )
        slice_rank = input.rank() - len(self.collapsed)
        rank = indices.rank() - (self.index_vector_dim < indices.rank()) + slice_rank
        dims = list(self.offset_dims)
        if len(dims) != slice_rank or dims != sorted(set(dims)) or not {*dims} <= {*range(rank)}:
            raise poplibs_error(
                f"{self.name}: offsetDims {dims}; {slice_rank} ascending ones of {rank} dimensions "
                "of the output are needed"
            )


def index_columns(indices: Tensor, index_vector_dim: int) -> Tensor:
    """View indices as [slice][coordinate]; of one coordinate where there is no such dimension."""
    if index_vector_dim == indices.rank():
        return indices.reshape([indices.numElements(), 1])
    last = indices.dimRoll(index_vector_dim, indices.rank() - 1)
    count = last.dim(last.rank() - 1)
    return last.reshape([prod(last.shape[:-1]), count])


def _gather(call: _Call, input: Tensor, indices: Tensor, form: _Form) -> Tensor:
    """Return slices as XLA's Gather does: sliced dimensions come first while they are taken."""
    form.check(input, indices)
    columns = index_columns(indices, form.index_vector_dim)
    places = sorted(range(columns.dim(1)), key=lambda place: form.start_index_map[place])
    columns = concat([columns.slice(place, place + 1, 1) for place in places], 1)
    sliced = sorted(form.start_index_map)
    order = [*sliced, *(dim for dim in range(input.rank()) if dim not in sliced)]
    front = input.dimShuffle(order)
    for place, dim in list(enumerate(order))[len(sliced) :]:
        front = front.slice(0, form.slice_sizes[dim], place)
    sizes = [form.slice_sizes[dim] for dim in sliced]
    where = ([input.dim(dim) for dim in sliced], call.bounds, call.prog, call.name)
    columns = checked_indices(call.graph, columns, *where)
    windows = _slices(call, front, columns, sizes)
    windows = with_padding(call.graph, windows, columns, *where)
    back = [order.index(dim) + 1 for dim in range(input.rank())]
    windows = windows.dimShuffle([0, *back]).squeeze([dim + 1 for dim in form.collapsed])
    batch = [n for dim, n in enumerate(indices.shape) if dim != form.index_vector_dim]
    windows = windows.reshape([*batch, *windows.shape[1:]])
    offset, batch_dims = iter(range(len(batch), windows.rank())), iter(range(len(batch)))
    dims = range(windows.rank())
    return windows.dimShuffle(
        [next(offset if dim in form.offset_dims else batch_dims) for dim in dims]
    )


def _slices(call: _Call, input: Tensor, indices: Tensor, sizes: Sequence[int]) -> Tensor:
    """Return slices of the first dimensions, at rows of indices, as a first dimension.

    As in PopLibs lib/popops/GatherInternal.cpp: the input is first spread out for it.
    """
    graph, prog, name = call.graph, call.prog, call.name
    count = len(sizes)
    source = input
    if not _lies_sliceable(graph, input, count):
        order = slice_order(input.shape, range(count), sizes)
        source = add_sliceable(graph, input.dtype, input.shape, order, f"{name}/inputTemp")
        prog.add(program.Copy(input, source, name=name))
    rank = input.rank()
    turned = source.dimShuffle([*range(count, rank), *range(count)])
    dims = list(range(rank - count, rank))
    slices = multiSlice(
        graph, turned, indices, dims, list(sizes), prog, NO_PLAN, call.options, name
    )
    return slices.dimShuffle([0, *(1 + dim for dim in dims), *range(1, rank - count + 1)])


def _lies_sliceable(graph: Graph, input: Tensor, count: int) -> bool:
    """Return whether elements lie on the tiles where slices of the first dimensions want them."""
    rows, columns = prod(input.shape[:count]), prod(input.shape[count:])
    if not rows * columns:
        return True
    bounds = sliceable_partition(graph.target, input.dtype, (rows, columns)).bounds(1)
    first = np.arange(rows, dtype=np.int64)[:, None] * columns
    low, high = (first + bounds[:-1]).reshape(-1), (first + bounds[1:]).reshape(-1)
    tile = np.tile(np.arange(len(bounds) - 1, dtype=np.int64), rows)
    planned, actual = joined_ranges(low, high, tile), joined_ranges(*graph.tile_ranges(input))
    return all(
        np.array_equal(one, actual_part) for one, actual_part in zip(planned, actual, strict=True)
    )
