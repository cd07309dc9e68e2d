"""Sorting along a dimension, in ascending order.

A row that lies on one tile is sorted there by one worker, as in PopLibs (lib/popops/Sort.cpp). Rows
that are spread over tiles are sorted there by exchanges of neighbours until nothing changes. Here
all tiles sort them by a network (`sorting_network`), which takes fewer cycles; or each moves to a
tile, when it is of a type that the network's vertices do not take.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simulator.codelets.indexing import cycles as indexing_cycles
from simulator.codelets.indexing import sorting_cycles
from simulator.codelets.indexing.sorting import heap_sort_codelet, heap_sort_key_value_codelet
from simulator.graph.errors import poplibs_error
from simulator.graph.geometry.intervals import crossings
from simulator.graph.graph import Graph
from simulator.graph.program import Copy, Execute, Sequence
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import IntArray
from simulator.graph.vertices.vertex import VertexGroup, cut_field
from simulator.logging import library_call
from simulator.poplibs.popops.regions import debug_name, regions_of
from simulator.poplibs.popops.sorting.topk import KEY_TYPES, SortOrder, TopKParams, top_k


@dataclass(frozen=True, slots=True)
class _Rows:
    """What is sorted: rows of `keys`, and the `values` that move with them, if there are any."""

    graph: Graph
    prog: Sequence
    name: str
    tensors: dict[str, Tensor]


@library_call("POPOPS")
def sort(graph: Graph, t: Tensor, dim: int, prog: Sequence, debugContext: str = "") -> Tensor:
    """Return a tensor with its elements sorted along a dimension.

    >>> from simulator import popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> trial.values(popops.sort(trial.graph, trial.tensor([3.0, 1.0, 2.0]), 0, trial.prog))
    [1.0, 2.0, 3.0]
    """
    name = debug_name(debugContext, "sort")
    result = _copy_of(graph, t, prog, f"{name}/out")
    _sort(graph, result, None, dim, prog, name)
    return result


@library_call("POPOPS")
def sortInPlace(graph: Graph, t: Tensor, dim: int, prog: Sequence, debugContext: str = "") -> None:
    """Sort the elements of a tensor along a dimension.

    >>> from simulator import popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> a = trial.tensor([3.0, 1.0, 2.0])
    >>> popops.sortInPlace(trial.graph, a, 0, trial.prog)
    >>> trial.values(a)
    [1.0, 2.0, 3.0]
    """
    _sort(graph, t, None, dim, prog, debug_name(debugContext, "sort"))


@library_call("POPOPS")
def sortKeyValue(
    graph: Graph, k: Tensor, v: Tensor, dim: int, prog: Sequence, debugContext: str = ""
) -> Tensor:
    """Return the values, moved as their keys move when those are sorted along a dimension.

    >>> from simulator import popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> keys, values = trial.tensor([3.0, 1.0, 2.0]), trial.tensor([30, 10, 20])
    >>> trial.values(popops.sortKeyValue(trial.graph, keys, values, 0, trial.prog))
    [10, 20, 30]
    """
    name = debug_name(debugContext, "sortKeyValue")
    keys = _copy_of(graph, k, prog, f"{name}/keys")
    values = _copy_of(graph, v, prog, f"{name}/values")
    _sort(graph, keys, values, dim, prog, name)
    return values


@library_call("POPOPS")
def sortKeyValueInPlace(
    graph: Graph, k: Tensor, v: Tensor, dim: int, prog: Sequence, debugContext: str = ""
) -> None:
    """Sort the keys along a dimension, and move the values with them.

    >>> from simulator import popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> keys, values = trial.tensor([3.0, 1.0, 2.0]), trial.tensor([30, 10, 20])
    >>> popops.sortKeyValueInPlace(trial.graph, keys, values, 0, trial.prog)
    >>> trial.values(keys, values)
    [[1.0, 2.0, 3.0], [10, 20, 30]]
    """
    _sort(graph, k, v, dim, prog, debug_name(debugContext, "sortKeyValue"))


def _copy_of(graph: Graph, tensor: Tensor, prog: Sequence, name: str) -> Tensor:
    copy = graph.clone(tensor, name)
    prog.add(Copy(tensor, copy, name=name))
    return copy


def _sort(
    graph: Graph, keys: Tensor, values: Tensor | None, dim: int, prog: Sequence, name: str
) -> None:
    """Sort in place, in the way that lies near."""
    if not isinstance(dim, int | np.integer) or not 0 <= dim < keys.rank():
        raise poplibs_error(f"{name}: dimension {dim!r} of {keys!r}")
    if values is not None and values.shape != keys.shape:
        raise poplibs_error(f"{name}: keys {keys!r} and values {values!r} differ in shape")
    size = keys.dim(dim)
    if keys.numElements() == 0 or size == 1:
        return
    tensors = {"keys": keys} if values is None else {"keys": keys, "values": values}
    shape = (keys.numElements() // size, size)
    flat = {key: t.dimRoll(dim, t.rank() - 1).reshape(shape) for key, t in tensors.items()}
    rows = _Rows(graph, prog, name, flat)
    with graph.debug_scope(name, "popops"):
        tiles = _tiles_of_rows(graph, flat["keys"])
        if (tiles >= 0).all():
            _heap_sort(rows, tiles)
        elif all(tensor.dtype in KEY_TYPES for tensor in flat.values()):
            _sort_by_network(rows)
        else:
            _sort_on_other_tiles(rows)


def _tiles_of_rows(graph: Graph, rows: Tensor) -> IntArray:
    """Return the tile of each row; -1 for a row that lies on several."""
    regions = regions_of(graph, rows.flatten())
    order = np.argsort(regions.low)
    low, high, tile = regions.low[order], regions.high[order], regions.tile[order]
    bounds = np.arange(rows.dim(0) + 1, dtype=np.int64) * rows.dim(1)
    row, piece = crossings(bounds[:-1], bounds[1:], low, high)
    start = np.searchsorted(row, np.arange(rows.dim(0)))
    least = np.minimum.reduceat(tile[piece], start)
    return np.where(least == np.maximum.reduceat(tile[piece], start), least, -1)


def _heap_sort(rows: _Rows, tiles: IntArray) -> None:
    """Add a worker for each row, on its tile."""
    graph, keys, values = rows.graph, rows.tensors["keys"], rows.tensors.get("values")
    number, size = keys.shape
    first = np.arange(number, dtype=np.int64) * size
    if values is None:
        codelet, names = heap_sort_codelet(keys.dtype), {"keys": "out"}
        cycles = indexing_cycles.heap_sort(np.full_like(first, size))
    else:
        codelet = heap_sort_key_value_codelet(keys.dtype, values.dtype)
        names = {"keys": "key", "values": "value"}
        cycles = sorting_cycles.heap_sort_key_value(np.full_like(first, size))
    fields = {
        names[key]: cut_field(names[key], "inout", tensor, first, first + size)
        for key, tensor in rows.tensors.items()
    }
    compute_set = graph.addComputeSet(f"{rows.name}/sortCS")
    graph.add_vertices(VertexGroup(compute_set.id, codelet, tiles, fields, {}, cycles))
    rows.prog.add(Execute(compute_set))


def _sort_by_network(rows: _Rows) -> None:
    keys, values = rows.tensors["keys"], rows.tensors.get("values")
    params = TopKParams(keys.dim(1), False, SortOrder.ASCENDING)
    ordered = top_k(rows.graph, rows.prog, keys, values, params, rows.name)
    for key, tensor in rows.tensors.items():
        rows.prog.add(Copy(ordered[key], tensor, name=rows.name))


def _sort_on_other_tiles(rows: _Rows) -> None:
    """Bring each row to a tile, sort it there and bring it back."""
    graph, (number, size) = rows.graph, rows.tensors["keys"].shape
    row = np.arange(number, dtype=np.int64)
    tiles = row * graph.target.num_tiles // max(number, graph.target.num_tiles)
    moved: dict[str, Tensor] = {}
    for key, tensor in rows.tensors.items():
        moved[key] = graph.addVariable(tensor.dtype, tensor.shape, f"{rows.name}/{key}")
        graph.map_ranges(moved[key], row * size, (row + 1) * size, tiles)
        rows.prog.add(Copy(tensor, moved[key], name=rows.name))
    _heap_sort(_Rows(graph, rows.prog, rows.name, moved), tiles)
    for key, tensor in rows.tensors.items():
        rows.prog.add(Copy(moved[key], tensor, name=rows.name))
