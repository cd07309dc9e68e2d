"""Slices of a tensor at many offsets, and updates of them (popops/DynamicSlice.hpp)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

from simulator.graph import program
from simulator.graph.errors import poplibs_error
from simulator.graph.graph import Graph
from simulator.graph.option_table import OptionValue
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import FLOAT, HALF, INT, UNSIGNED_INT
from simulator.logging import library_call
from simulator.poplibs.popops.overloads import NEEDED, arguments_of
from simulator.poplibs.popops.regions import debug_name
from simulator.poplibs.popops.slicing import multi_slice_unplanned as unplanned
from simulator.poplibs.popops.slicing.index_bounds import (
    checked_indices,
    gather_options,
    with_padding,
)
from simulator.poplibs.popops.slicing.planned import multi_slice_planned, multi_update_planned
from simulator.poplibs.popops.slicing.planned.lookup_vertices import Kind
from simulator.poplibs.popops.slicing.planned.slice_layout import check_planned
from simulator.poplibs.popops.slicing.planned.slice_plan import (
    Options,
    SlicePlan,
    check_offsets,
    check_slices,
    slice_options,
)
from simulator.poplibs.popops.slicing.static_slices import static_slice, static_update_add
from simulator.poplibs.popops.slicing.validate_indices import validate_indices

NO_PLAN = SlicePlan()
_LAST = {"prog": NEEDED, "plan": NO_PLAN, "options": None, "debugContext": ""}


@overload
def multiSlice(
    graph: Graph,
    t: Tensor,
    offsets: Tensor,
    dims: Sequence[int],
    sizes: Sequence[int],
    prog: program.Sequence,
    plan: SlicePlan = NO_PLAN,
    options: Options = None,
    debugContext: str = "",
) -> Tensor: ...
@overload
def multiSlice(
    graph: Graph,
    t: Tensor,
    offsets: Sequence[int],
    dim: int,
    prog: program.Sequence,
    debugContext: str = "",
) -> Tensor: ...
@library_call("POPOPS")
def multiSlice(
    graph: Graph, t: Tensor, offsets: Tensor | Sequence[int], *arguments: object, **named: object
) -> Tensor:
    """Return the slices [offset][sizes in place of `dims`] at each row of `offsets`.

    Offsets are [slices][dims] of unsigned int; one past the end leaves zeros when rows of a matrix
    are looked up, else it wraps around, unless options say else, as for `gather`. A list of numbers
    takes slices of 1 of one dimension.

    >>> from simulator import poplar, popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> x = trial.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    >>> rows = trial.tensor([[2], [0]], poplar.UNSIGNED_INT)
    >>> trial.values(popops.multiSlice(trial.graph, x, rows, [0], [1], trial.prog))
    [[[5.0, 6.0]], [[1.0, 2.0]]]
    """
    if not isinstance(offsets, Tensor):
        form = {"dim": NEEDED, "prog": NEEDED, "debugContext": ""}
        call_args = arguments_of("multiSlice", form, arguments, named)
        name = debug_name(call_args["debugContext"], "multiSlice")
        with graph.debug_scope(name, "popops"):
            return static_slice(graph, t, offsets, call_args["dim"], call_args["prog"], name)
    form = {"dims": NEEDED, "sizes": NEEDED, **_LAST}
    call_args = arguments_of("multiSlice", form, arguments, named)
    name, prog, plan = (call_args[key] for key in ("debugContext", "prog", "plan"))
    name, dims, sizes = debug_name(name, "multiSlice"), call_args["dims"], call_args["sizes"]
    bounds, of_slices = gather_options(call_args["options"], name)
    options = _checked(_Call(name, t, offsets, dims, sizes, plan, False), of_slices)
    with graph.debug_scope(name, "popops"):
        limits = [t.dim(dim) for dim in dims]
        inside = checked_indices(graph, offsets, limits, bounds, prog, name)
        if plan.isNull:
            slices = unplanned.multi_slice(graph, t, inside, dims, sizes, prog, options, name)
        else:
            slices = multi_slice_planned.multi_slice(
                graph, t.expand([0]), inside.expand([0]), prog, plan, name
            ).squeeze([0])
        return with_padding(graph, slices, offsets, limits, bounds, prog, name)


@library_call("POPOPS")
def groupedMultiSlice(
    graph: Graph,
    t: Tensor,
    offsets: Tensor,
    dims: Sequence[int],
    sizes: Sequence[int],
    prog: program.Sequence,
    plan: SlicePlan,
    options: Options = None,
    debugContext: str = "",
) -> Tensor:
    """Slice each of several matrices: tensors and offsets have a first dimension more.

    >>> from simulator import poplar, popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> x = trial.tensor([[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]])
    >>> rows = trial.tensor([[[1]], [[0]]], poplar.UNSIGNED_INT)
    >>> plan = popops.embedding.plan(trial.graph, poplar.FLOAT, 2, 2, 2, [1], {})
    >>> out = popops.groupedMultiSlice(trial.graph, x, rows, [0], [1], trial.prog, plan)
    >>> trial.values(out)
    [[[[3.0, 4.0]]], [[[5.0, 6.0]]]]
    """
    name = debug_name(debugContext, "groupedMultiSlice")
    settings = _checked(_Call(name, t, offsets, dims, sizes, plan, True), options)
    with graph.debug_scope(name, "popops"):
        if settings["validateIndices"]:
            validate_indices(graph, offsets, [t.dim(1)], prog, name)
        return multi_slice_planned.multi_slice(graph, t, offsets, prog, plan, name)


@library_call("POPOPS")
def multiUpdate(
    graph: Graph,
    t: Tensor,
    s: Tensor,
    offsets: Tensor,
    dims: Sequence[int],
    sizes: Sequence[int],
    prog: program.Sequence,
    plan: SlicePlan = NO_PLAN,
    options: Options = None,
    debugContext: str = "",
) -> None:
    """Replace the slices of `t` at each row of `offsets` by those of `s`; the last one stays.

    >>> from simulator import poplar, popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> x = trial.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    >>> row, at = trial.tensor([[[8.0, 9.0]]]), trial.tensor([[1]], poplar.UNSIGNED_INT)
    >>> popops.multiUpdate(trial.graph, x, row, at, [0], [1], trial.prog)
    >>> trial.values(x)
    [[1.0, 2.0], [8.0, 9.0], [5.0, 6.0]]
    """
    name = debug_name(debugContext, "multiUpdate")
    call = _Call(name, t, offsets, dims, sizes, plan, False)
    _update(graph, call, s, None, "", prog, options)


@overload
def multiUpdateAdd(
    graph: Graph,
    t: Tensor,
    s: Tensor,
    offsets: Tensor,
    scale: Tensor,
    dims: Sequence[int],
    sizes: Sequence[int],
    prog: program.Sequence,
    plan: SlicePlan = NO_PLAN,
    options: Options = None,
    debugContext: str = "",
) -> None: ...
@overload
def multiUpdateAdd(
    graph: Graph,
    t: Tensor,
    s: Tensor,
    offsets: Sequence[int],
    scale: Tensor,
    dim: int,
    prog: program.Sequence,
    debugContext: str = "",
) -> None: ...
@library_call("POPOPS")
def multiUpdateAdd(
    graph: Graph,
    t: Tensor,
    s: Tensor,
    offsets: Tensor | Sequence[int],
    scale: Tensor,
    *arguments: object,
    **named: object,
) -> None:
    """Add `scale` times the slices `s` to the rows of a matrix; those of one row add up.

    A list of numbers may stand for the offsets, in one dimension of any tensor.

    >>> from simulator import poplar, popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> x = trial.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    >>> row, at = trial.tensor([[[8.0, 9.0]]]), trial.tensor([[1]], poplar.UNSIGNED_INT)
    >>> scale = trial.tensor(10.0)
    >>> popops.multiUpdateAdd(trial.graph, x, row, at, scale, [0], [1], trial.prog)
    >>> trial.values(x)
    [[1.0, 2.0], [83.0, 94.0], [5.0, 6.0]]
    """
    if isinstance(offsets, Tensor):
        form = {"dims": NEEDED, "sizes": NEEDED, **_LAST}
        call_args = arguments_of("multiUpdateAdd", form, arguments, named)
        name = debug_name(call_args["debugContext"], "multiUpdateAdd")
        call = _Call(
            name, t, offsets, call_args["dims"], call_args["sizes"], call_args["plan"], False
        )
        _update(graph, call, s, scale, "ADD", call_args["prog"], call_args["options"])
        return
    form = {"dim": NEEDED, "prog": NEEDED, "debugContext": ""}
    call_args = arguments_of("multiUpdateAdd", form, arguments, named)
    name, dim = debug_name(call_args["debugContext"], "multiUpdateAdd"), call_args["dim"]
    with graph.debug_scope(name, "popops"):
        static_update_add(graph, t, s, offsets, scale, dim, call_args["prog"], name)


@library_call("POPOPS")
def multiUpdateMax(
    graph: Graph,
    t: Tensor,
    s: Tensor,
    offsets: Tensor,
    dims: Sequence[int],
    sizes: Sequence[int],
    prog: program.Sequence,
    plan: SlicePlan = NO_PLAN,
    options: Options = None,
    debugContext: str = "",
) -> None:
    """Keep the larger elements of the rows of a matrix and of the slices `s`.

    >>> from simulator import poplar, popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> x = trial.tensor([[1.0, 2.0], [3.0, 9.0], [5.0, 6.0]])
    >>> row, at = trial.tensor([[[8.0, 7.0]]]), trial.tensor([[1]], poplar.UNSIGNED_INT)
    >>> popops.multiUpdateMax(trial.graph, x, row, at, [0], [1], trial.prog)
    >>> trial.values(x)
    [[1.0, 2.0], [8.0, 9.0], [5.0, 6.0]]
    """
    name = debug_name(debugContext, "multiUpdateMax")
    call = _Call(name, t, offsets, dims, sizes, plan, False)
    _update(graph, call, s, None, "MAX", prog, options)


@library_call("POPOPS")
def multiUpdateMul(
    graph: Graph,
    t: Tensor,
    s: Tensor,
    offsets: Tensor,
    dims: Sequence[int],
    sizes: Sequence[int],
    prog: program.Sequence,
    plan: SlicePlan = NO_PLAN,
    options: Options = None,
    debugContext: str = "",
) -> None:
    """Multiply the rows of a matrix by the slices `s`; those of one row multiply up.

    >>> from simulator import poplar, popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> x = trial.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    >>> row, at = trial.tensor([[[10.0, 100.0]]]), trial.tensor([[1]], poplar.UNSIGNED_INT)
    >>> popops.multiUpdateMul(trial.graph, x, row, at, [0], [1], trial.prog)
    >>> trial.values(x)
    [[1.0, 2.0], [30.0, 400.0], [5.0, 6.0]]
    """
    name = debug_name(debugContext, "multiUpdateMul")
    call = _Call(name, t, offsets, dims, sizes, plan, False)
    _update(graph, call, s, None, "MUL", prog, options)


@library_call("POPOPS")
def groupedMultiUpdateMax(
    graph: Graph,
    t: Tensor,
    s: Tensor,
    offsets: Tensor,
    dims: Sequence[int],
    sizes: Sequence[int],
    prog: program.Sequence,
    plan: SlicePlan,
    options: Options = None,
    debugContext: str = "",
) -> None:
    """Keep the larger elements of rows of each of several matrices, and of the slices `s`.

    >>> from simulator import poplar, popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> x = trial.tensor([[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]])
    >>> new = trial.tensor([[[[0.0, 9.0]]], [[[9.0, 0.0]]]])
    >>> rows = trial.tensor([[[1]], [[0]]], poplar.UNSIGNED_INT)
    >>> plan = popops.embedding.plan(trial.graph, poplar.FLOAT, 2, 2, 2, [1], {})
    >>> popops.groupedMultiUpdateMax(trial.graph, x, new, rows, [0], [1], trial.prog, plan)
    >>> trial.values(x)
    [[[1.0, 2.0], [3.0, 9.0]], [[9.0, 6.0], [7.0, 8.0]]]
    """
    name = debug_name(debugContext, "groupedMultiUpdateMax")
    call = _Call(name, t, offsets, dims, sizes, plan, True)
    _update(graph, call, s, None, "MAX", prog, options)


@library_call("POPOPS")
def groupedMultiUpdateMul(
    graph: Graph,
    t: Tensor,
    s: Tensor,
    offsets: Tensor,
    dims: Sequence[int],
    sizes: Sequence[int],
    prog: program.Sequence,
    plan: SlicePlan,
    options: Options = None,
    debugContext: str = "",
) -> None:
    """Multiply rows of each of several matrices; tensors have a first dimension more.

    >>> from simulator import poplar, popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> x = trial.tensor([[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]])
    >>> new = trial.tensor([[[[0.0, 1.0]]], [[[10.0, 10.0]]]])
    >>> rows = trial.tensor([[[1]], [[0]]], poplar.UNSIGNED_INT)
    >>> plan = popops.embedding.plan(trial.graph, poplar.FLOAT, 2, 2, 2, [1], {})
    >>> popops.groupedMultiUpdateMul(trial.graph, x, new, rows, [0], [1], trial.prog, plan)
    >>> trial.values(x)
    [[[1.0, 2.0], [0.0, 4.0]], [[50.0, 60.0], [7.0, 8.0]]]
    """
    name = debug_name(debugContext, "groupedMultiUpdateMul")
    call = _Call(name, t, offsets, dims, sizes, plan, True)
    _update(graph, call, s, None, "MUL", prog, options)


@library_call("POPOPS")
def groupedMultiUpdate(
    graph: Graph,
    t: Tensor,
    s: Tensor,
    offsets: Tensor,
    dims: Sequence[int],
    sizes: Sequence[int],
    prog: program.Sequence,
    plan: SlicePlan,
    options: Options = None,
    debugContext: str = "",
) -> None:
    """Replace rows of each of several matrices; tensors have a first dimension more.

    >>> from simulator import poplar, popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> x = trial.tensor([[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]])
    >>> new = trial.tensor([[[[0.0, 0.0]]], [[[9.0, 9.0]]]])
    >>> rows = trial.tensor([[[1]], [[0]]], poplar.UNSIGNED_INT)
    >>> plan = popops.embedding.plan(trial.graph, poplar.FLOAT, 2, 2, 2, [1], {})
    >>> popops.groupedMultiUpdate(trial.graph, x, new, rows, [0], [1], trial.prog, plan)
    >>> trial.values(x)
    [[[1.0, 2.0], [0.0, 0.0]], [[9.0, 9.0], [7.0, 8.0]]]
    """
    name = debug_name(debugContext, "groupedMultiUpdate")
    call = _Call(name, t, offsets, dims, sizes, plan, True)
    _update(graph, call, s, None, "", prog, options)


@library_call("POPOPS")
def groupedMultiUpdateAdd(
    graph: Graph,
    t: Tensor,
    s: Tensor,
    offsets: Tensor,
    scale: Tensor,
    dims: Sequence[int],
    sizes: Sequence[int],
    prog: program.Sequence,
    plan: SlicePlan,
    options: Options = None,
    debugContext: str = "",
) -> None:
    """Add to rows of each of several matrices; tensors have a first dimension more.

    >>> from simulator import poplar, popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> x = trial.tensor([[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]])
    >>> new, scale = trial.tensor([[[[1.0, 1.0]]], [[[2.0, 2.0]]]]), trial.tensor(10.0)
    >>> rows = trial.tensor([[[1]], [[0]]], poplar.UNSIGNED_INT)
    >>> plan = popops.embedding.plan(trial.graph, poplar.FLOAT, 2, 2, 2, [1], {})
    >>> popops.groupedMultiUpdateAdd(trial.graph, x, new, rows, scale, [0], [1], trial.prog, plan)
    >>> trial.values(x)
    [[[1.0, 2.0], [13.0, 14.0]], [[25.0, 26.0], [7.0, 8.0]]]
    """
    name = debug_name(debugContext, "groupedMultiUpdateAdd")
    call = _Call(name, t, offsets, dims, sizes, plan, True)
    _update(graph, call, s, scale, "ADD", prog, options)


@dataclass(frozen=True, slots=True)
class _Call:
    """What slices and updates have in common."""

    name: str
    t: Tensor
    offsets: Tensor
    dims: Sequence[int]
    sizes: Sequence[int]
    plan: SlicePlan
    grouped: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape that is sliced, of one matrix of a group."""
        return self.t.shape[self.grouped :]


def _checked(call: _Call, options: Options) -> dict[str, OptionValue]:
    """Return the options; raises poplibs_error for tensors that do not go together."""
    settings = slice_options(options, call.name)
    if call.t.rank() <= call.grouped:
        raise poplibs_error(f"{call.name}: {call.t!r} has nothing to slice")
    check_slices(call.name, call.shape, call.dims, call.sizes)
    front = call.offsets.shape[: 1 + call.grouped]
    if call.offsets.rank() != 2 + call.grouped or (call.grouped and front[0] != call.t.dim(0)):
        raise poplibs_error(
            f"{call.name}: offsets {call.offsets!r} of {call.t!r}; "
            f"{'[matrices]' if call.grouped else ''}[slices][{len(call.dims)}] is needed"
        )
    check_offsets(call.name, call.offsets, (*front, len(call.dims)))
    if not call.plan.isNull:
        groups = call.t.dim(0) if call.grouped else 1
        check_planned(
            call.name, call.plan, call.shape, call.dims, call.sizes, groups, call.t.graph.target
        )
    elif call.grouped:
        raise poplibs_error(f"{call.name}: no plan; matrices of a group need one")
    return settings


def _update(
    graph: Graph,
    call: _Call,
    s: Tensor,
    scale: Tensor | None,
    kind: Kind,
    prog: program.Sequence,
    options: Options,
) -> None:
    settings = _checked(call, options)
    _check_update(call, s, scale, kind)
    t, offsets, plan, name = call.t, call.offsets, call.plan, call.name
    with graph.debug_scope(name, "popops"):
        if settings["validateIndices"]:
            limits = [call.shape[dim] for dim in call.dims]
            validate_indices(graph, offsets, limits, prog, name)
        if plan.isNull and kind == "":
            unplanned.multi_update(
                graph, t, s, offsets, call.dims, call.sizes, prog, settings, name
            )
        elif plan.isNull:
            rows = offsets.flatten()
            unplanned.add_rows(graph, kind, t, s, rows, call.dims[0], scale, prog, settings, name)
        else:
            if not call.grouped:
                t, s, offsets = t.expand([0]), s.expand([0]), offsets.expand([0])
            update = multi_update_planned.Update(graph, prog, plan, kind, scale, settings, name)
            multi_update_planned.multi_update(update, t, s, offsets)


def _check_update(call: _Call, s: Tensor, scale: Tensor | None, kind: Kind) -> None:
    """Raise poplibs_error when slices do not fit a tensor, or a sum of them cannot be made."""
    one = dict(zip(call.dims, call.sizes, strict=True))
    part = (one.get(axis, size) for axis, size in enumerate(call.shape))
    slices_shape = (*call.offsets.shape[:-1], *part)
    t = call.t
    if s.shape != slices_shape or s.dtype != t.dtype:
        raise poplibs_error(f"{call.name}: slices {s!r}; {t.dtype}{list(slices_shape)} is needed")
    if kind == "":
        return
    if len(call.shape) != 2 or list(call.sizes) != [1]:
        raise poplibs_error(
            f"{call.name}: slices {list(call.sizes)} of dimensions {list(call.dims)} of {t!r}; "
            "slices of 1 in one dimension of a matrix are needed"
        )
    if t.dtype not in (FLOAT, HALF, INT, UNSIGNED_INT):
        raise poplibs_error(f"{call.name}: {t!r}; known for float, half, int, unsigned int")
    types = {t.dtype, FLOAT} if t.dtype == HALF else {t.dtype}
    if scale is not None and (scale.rank() or scale.dtype not in types):
        type_names = " or ".join(sorted(map(str, types)))
        raise poplibs_error(
            f"{call.name}: scale {scale!r}; one {type_names}, of no dimension, is needed"
        )
