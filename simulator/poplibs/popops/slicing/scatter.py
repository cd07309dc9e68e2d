"""Updates of slices of a tensor (popops/Scatter.hpp), as XLA's Scatter has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, overload

from simulator.graph import program
from simulator.graph.errors import poplibs_error
from simulator.graph.graph import Graph
from simulator.graph.option_table import checked
from simulator.graph.tensors.tensor import Tensor, concat
from simulator.graph.types import INT, UNSIGNED_INT
from simulator.logging import library_call
from simulator.poplibs.popops.loop import countedLoop
from simulator.poplibs.popops.overloads import NEEDED, arguments_of
from simulator.poplibs.popops.regions import debug_name
from simulator.poplibs.popops.slicing.dynamic_slice import dynamicSlice, dynamicUpdate
from simulator.poplibs.popops.slicing.gather import index_columns
from simulator.poplibs.popops.slicing.planned.slice_plan import GATHER_OPTIONS, Options

UpdateComputation = Callable[[Graph, Tensor, Tensor, program.Sequence], Tensor]
DIMENSIONS = (
    "indexVectorDim",
    "updateWindowDims",
    "insertWindowDims",
    "scatterDimsToOperandDims",
)


@overload
def scatter(
    graph: Graph,
    operand: Tensor,
    indices: Tensor,
    updates: Tensor,
    indexVectorDim: int,
    updateWindowDims: Sequence[int],
    insertWindowDims: Sequence[int],
    scatterDimsToOperandDims: Sequence[int],
    prog: program.Sequence,
    debugContext: str = "",
    optionFlags: Options = None,
) -> None: ...
@overload
def scatter(
    graph: Graph,
    operand: Tensor,
    indices: Tensor,
    updates: Tensor,
    indexVectorDim: int,
    updateWindowDims: Sequence[int],
    insertWindowDims: Sequence[int],
    scatterDimsToOperandDims: Sequence[int],
    updateComputation: UpdateComputation,
    prog: program.Sequence,
    debugContext: str = "",
    optionFlags: Options = None,
) -> None: ...
@library_call("POPOPS")
def scatter(
    graph: Graph,
    operand: Tensor,
    indices: Tensor,
    updates: Tensor,
    *arguments: object,
    **named: object,
) -> None:
    """Write each window of `updates` into `operand` at its indices, one after another.

    With an `updateComputation` what it makes of the slice that is there and of the update.

    >>> from simulator import poplar, popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> x, row = trial.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), trial.tensor([[8.0, 9.0]])
    >>> at = trial.tensor([[1]], poplar.UNSIGNED_INT)
    >>> popops.scatter(trial.graph, x, at, row, 1, [1], [0], [0], trial.prog)
    >>> trial.values(x)
    [[1.0, 2.0], [8.0, 9.0], [5.0, 6.0]]
    """
    call_args = _arguments(arguments, named)
    compute = call_args.get("updateComputation")
    name, prog = debug_name(call_args["debugContext"], "scatter"), call_args["prog"]
    checked(GATHER_OPTIONS, call_args["optionFlags"] or {}, name)
    if indices.dtype not in (INT, UNSIGNED_INT) or operand.dtype != updates.dtype:
        raise poplibs_error(
            f"{name}: indices {indices!r} and updates {updates!r} of {operand!r}; int or unsigned "
            f"int and {operand.dtype} are needed"
        )
    columns, windows = _canonical(name, operand, indices, updates, call_args)
    if not updates.numElements():
        return
    starts = {dim: place for place, dim in enumerate(call_args["scatterDimsToOperandDims"])}
    # Of dimensions without an index a smaller window is at the begin.
    sizes = {
        dim: n for dim, n in enumerate(windows.shape[1:]) if dim in starts or n < operand.dim(dim)
    }
    zero = graph.addConstant(UNSIGNED_INT, [1], 0, f"{name}/zero")
    graph.setTileMapping(zero, 0)

    def body(number: Tensor) -> program.Sequence:
        steps = program.Sequence(name=name)
        at = dynamicSlice(graph, columns, number, [0], [1], steps, f"{name}/index").flatten()
        one = dynamicSlice(graph, windows, number, [0], [1], steps, f"{name}/update").squeeze([0])
        place = [at.slice(starts[d], starts[d] + 1) if d in starts else zero for d in sizes]
        offsets, slices = concat(place), (list(sizes), list(sizes.values()))
        if compute:
            slice_held = dynamicSlice(graph, operand, offsets, *slices, steps, f"{name}/held")
            one = compute(graph, slice_held, one, steps)
        dynamicUpdate(graph, operand, one, offsets, *slices, steps, f"{name}/write")
        return steps

    with graph.debug_scope(name, "popops"):
        prog.add(countedLoop(graph, columns.dim(0), body, f"{name}/loop"))


def _arguments(arguments: tuple[object, ...], named: dict[str, object]) -> dict[str, Any]:
    """Sort the arguments behind the updates: of the form with a computation, or without."""
    computed = "updateComputation" in named or (
        len(arguments) > 4 and not isinstance(arguments[4], program.Sequence)
    )
    form: dict[str, object] = dict.fromkeys(DIMENSIONS, NEEDED)
    if computed:
        form["updateComputation"] = NEEDED
    return arguments_of(
        "scatter",
        {**form, "prog": NEEDED, "debugContext": "", "optionFlags": None},
        arguments,
        named,
    )


def _canonical(
    name: str, operand: Tensor, indices: Tensor, updates: Tensor, dimensions: Mapping[str, Any]
) -> tuple[Tensor, Tensor]:
    """View indices as [window][coordinate] and updates as [window][dimensions of the operand].

    Raises poplibs_error where they do not fit.
    """
    index_dim, window_dims, inserted, to_operand = (dimensions[key] for key in DIMENSIONS)
    # As in PopLibs, a window dimension that the updates lack is none: all are scalars then.
    window_dims = [dim for dim in window_dims if dim != updates.rank()]
    named = {"updateWindowDims": window_dims, "insertWindowDims": inserted}
    for key, dims in {**named, "scatterDimsToOperandDims": to_operand}.items():
        limit = updates.rank() if key == "updateWindowDims" else operand.rank()
        if len(set(dims)) != len(dims) or not {*dims} <= {*range(limit)}:
            raise poplibs_error(f"{name}: {key} {list(dims)}; different ones of {limit} are needed")
    if not 0 <= index_dim <= indices.rank():
        raise poplibs_error(f"{name}: indexVectorDim {index_dim} of {indices!r}")
    columns = index_columns(indices.reinterpret(UNSIGNED_INT), index_dim)
    outer = [dim for dim in range(updates.rank()) if dim not in window_dims]
    shape = [n for dim, n in enumerate(indices.shape) if dim != index_dim]
    windows = updates.dimShuffle([*outer, *sorted(window_dims)])
    window = list(windows.shape[len(outer) :])
    for dim in sorted(inserted):
        window.insert(dim, 1)
    fits = (
        [updates.dim(dim) for dim in outer] == shape
        and columns.dim(1) == len(to_operand)
        and len(window) == operand.rank()
        and all(size <= full_size for size, full_size in zip(window, operand.shape, strict=True))
    )
    if not fits:
        raise poplibs_error(
            f"{name}: updates {updates!r} at indices {indices!r} do not fit {operand!r}, with "
            + ", ".join(f"{key} {dimensions[key]}" for key in DIMENSIONS)
        )
    return columns, windows.reshape([prod(shape), *window])
