"""Filling tensors with a value."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, overload

import numpy as np

from simulator.codelets.elementwise import cycles as elementwise_cycles
from simulator.codelets.elementwise.fill import fill_codelet
from simulator.graph.errors import poplibs_error
from simulator.graph.geometry.intervals import ascending, crossings, offsets_of, spread
from simulator.graph.graph import ComputeSet, Graph, TileIntervals
from simulator.graph.mapping import listed_pieces
from simulator.graph.program import Copy, Execute, Sequence
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import Array, IntArray, checked_values
from simulator.graph.vertices.vertex import VertexGroup, cut_field, cut_ranges
from simulator.logging import library_call
from simulator.poplibs.popops.overloads import NEEDED, arguments_of
from simulator.poplibs.popops.regions import (
    Regions,
    debug_name,
    in_memory_order,
    regions_of,
    split_among_workers,
)

COPIED_BYTES = 4  # so small a tensor gets its value by a copy; PopLibs lib/popops/Fill.cpp


@overload
def fill(
    graph: Graph, t: Tensor, prog: Sequence, fillValue: float, debugContext: str = ""
) -> None: ...
@overload
def fill(
    graph: Graph, t: Tensor, mapping: TileIntervals, fillCS: ComputeSet, fillValue: float
) -> None: ...
@overload
def fill(graph: Graph, t: Tensor, tile: int, fillCS: ComputeSet, fillValue: float) -> None: ...
@overload
def fill(
    graph: Graph,
    t: Tensor,
    tileRegions: Iterable[tuple[int, int]],
    tile: int,
    fillCS: ComputeSet,
    fillValue: float,
) -> None: ...
@library_call("POPOPS")
def fill(graph: Graph, t: Tensor, *arguments: object, **named: object) -> None:
    """Set every element of a tensor to a value, which its type must be able to hold.

    As in PopLibs the vertices may go to a given compute set: for the elements that a mapping puts
    on each tile, for those on one tile, or for some regions on it.

    >>> from simulator import popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> a = trial.tensor([1.0, 2.0])
    >>> popops.fill(trial.graph, a, trial.prog, 7.0)
    >>> trial.values(a)
    [7.0, 7.0]
    """
    _sort_out("fill", graph, t, arguments, named, {"fillValue": NEEDED})


@overload
def zero(graph: Graph, t: Tensor, prog: Sequence, debugContext: str = "") -> None: ...
@overload
def zero(graph: Graph, t: Tensor, mapping: TileIntervals, zeroCS: ComputeSet) -> None: ...
@overload
def zero(graph: Graph, t: Tensor, tile: int, zeroCS: ComputeSet) -> None: ...
@overload
def zero(
    graph: Graph,
    t: Tensor,
    tileRegions: Iterable[tuple[int, int]],
    tile: int,
    zeroCS: ComputeSet,
) -> None: ...
@library_call("POPOPS")
def zero(graph: Graph, t: Tensor, *arguments: object, **named: object) -> None:
    """Set every element of a tensor to zero, or those on some tiles in a compute set, as `fill`.

    >>> from simulator import popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> a = trial.tensor([1.0, 2.0])
    >>> popops.zero(trial.graph, a, trial.prog)
    >>> trial.values(a)
    [0.0, 0.0]
    """
    _sort_out("zero", graph, t, arguments, named, {})


def _sort_out(
    function: str,
    graph: Graph,
    t: Tensor,
    arguments: tuple[object, ...],
    named: dict[str, Any],
    value: dict[str, object],
) -> None:
    """Dispatch to the form of `fill` or `zero` that is called."""
    first = next(iter(arguments), None)
    where = f"{function}CS"
    if isinstance(first, Sequence) or "prog" in named:
        form = {"prog": NEEDED, **value, "debugContext": ""}
        call_args = arguments_of(function, form, arguments, named)
        name = debug_name(call_args["debugContext"], function.capitalize())
        _fill(graph, t, call_args["prog"], call_args.get("fillValue", 0), name)
        return
    if isinstance(first, int | np.integer) or (
        "tile" in named and "tileRegions" not in named and not arguments
    ):
        form = {"tile": NEEDED, where: NEEDED, **value}
    elif (
        len(arguments) > 1 and isinstance(arguments[1], int | np.integer) or "tileRegions" in named
    ):
        form = {"tileRegions": NEEDED, "tile": NEEDED, where: NEEDED, **value}
    else:
        form = {"mapping": NEEDED, where: NEEDED, **value}
    call_args = arguments_of(function, form, arguments, named)
    _fill_in(graph, t, call_args, call_args[where], call_args.get("fillValue", 0))


def _fill_in(
    graph: Graph, t: Tensor, call_args: dict[str, Any], compute_set: ComputeSet, value: float
) -> None:
    """Add vertices to a compute set for the elements on some tiles."""
    if not isinstance(compute_set, ComputeSet):
        raise poplibs_error(f"fill: {compute_set!r}; a compute set is needed")
    fill_value = _held(t, value, compute_set.name)
    if "mapping" in call_args:
        low, high, tile = listed_pieces(call_args["mapping"])
    elif "tileRegions" in call_args:
        low, high = np.array(list(call_args["tileRegions"]), dtype=np.int64).reshape(-1, 2).T
        tile = np.full_like(low, call_args["tile"])
    else:
        full_regions = regions_of(graph, t.flatten())
        on_tile = full_regions.tile == call_args["tile"]
        low, high, tile = (
            full_regions.low[on_tile],
            full_regions.high[on_tile],
            full_regions.tile[on_tile],
        )
    # A region that lies in several pieces is filled piece by piece.
    bounds = offsets_of(t.lengths)
    source, piece = crossings(low, high, bounds[:-1], bounds[1:])
    low, high = np.maximum(low[source], bounds[piece]), np.minimum(high[source], bounds[piece + 1])
    order = ascending(tile[source])
    regions = Regions(low[order], high[order], tile[source][order])
    _add_vertices(graph, compute_set, t.flatten(), regions, fill_value)


def _held(t: Tensor, value: float, name: str) -> Array:
    """Return a value in the type of a tensor; raises poplibs_error for what it cannot hold."""
    number = checked_values(value, t.dtype, name, poplibs_error)
    if number.ndim:
        raise poplibs_error(f"{name}: value has shape {list(number.shape)}; one number is needed")
    return number


def _fill(graph: Graph, t: Tensor, prog: Sequence, value: float, name: str) -> None:
    number = _held(t, value, name)
    with graph.debug_scope(name, "popops"):
        if t.numElements() * t.dtype.size <= COPIED_BYTES:
            constant = graph.addConstant(t.dtype, t.shape, number, "fillValue")
            graph.setTileMapping(constant, 0)
            prog.add(Copy(constant, t))
            return
        compute_set = graph.addComputeSet(name)
        flat = in_memory_order({"out": ("output", t)}, "out")["out"][1]
        _add_vertices(graph, compute_set, flat, regions_of(graph, flat), number)
        prog.add(Execute(compute_set))


def _add_vertices(
    graph: Graph, compute_set: ComputeSet, flat: Tensor, all_regions: Regions, value: Array
) -> None:
    """Add workers: those that have one region, and those that have several."""
    regions, ranges = split_among_workers(graph.target, all_regions, flat.dtype)
    for is_2d in (False, True):
        is_chosen = (ranges > 1) == is_2d
        part, counts = _of_vertices(regions, ranges, is_chosen)
        lengths = part.high - part.low
        cost = elementwise_cycles.fill_1d(lengths, flat.dtype, graph.target)
        out = cut_field("out", "output", flat, part.low, part.high)
        if is_2d:
            cost = elementwise_cycles.fill_2d(lengths, counts, flat.dtype, graph.target)
            out = cut_ranges("out", "output", flat, part.low, part.high, counts, as_rows=True)
        graph.add_vertices(
            VertexGroup(
                compute_set=compute_set.id,
                codelet=fill_codelet(flat.dtype, several=is_2d),
                tile=part.tile[offsets_of(counts)[:-1]],
                fields={"out": out},
                parameters={"in": np.full(len(counts), value)},
                cycles=cost,
            )
        )


def _of_vertices(regions: Regions, ranges: IntArray, vertices: Array) -> tuple[Regions, IntArray]:
    """Take the regions of some of the vertices, and how many each of those has."""
    places = spread(offsets_of(ranges)[:-1][vertices], ranges[vertices])
    part = Regions(regions.low[places], regions.high[places], regions.tile[places])
    return part, ranges[vertices]
