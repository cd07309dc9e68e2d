"""What must hold of a graph before it is compiled, checked on whole arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from simulator.graph.errors import GraphConnectionError, TileMappingError
from simulator.graph.intervals import as_int64, ascending, crossings
from simulator.graph.regions import variables_of
from simulator.graph.tensor import Tensor
from simulator.graph.types import IntArray
from simulator.graph.vertex import Field, VertexGroup

if TYPE_CHECKING:
    from simulator.graph.graph import Graph
    from simulator.graph.variables import Variable


def check_mapped(graph: Graph, tensors: Iterable[Tensor] = ()) -> None:
    """Raise TileMappingError for the first used element that is on no tile."""
    groups = graph.vertex_groups()
    used: list[Field | Tensor] = [field for group in groups for field in group.fields.values()]
    used += tensors
    used += [*graph.host_reads.values(), *graph.host_writes.values()]
    if not used or _all_mapped(graph):
        return
    begins = np.concatenate([item.begins * item.dtype.size for item in used])
    ends = begins + np.concatenate([item.lengths * item.dtype.size for item in used])
    missing = np.flatnonzero(graph.mapping_table().covered(begins, ends) < ends - begins)
    if len(missing):
        _report_unmapped(graph, int(begins[missing[0]]), int(ends[missing[0]]))


def _all_mapped(graph: Graph) -> bool:
    """Return whether every byte of every variable is on a tile; the pieces are disjoint."""
    table = graph.mapping_table()
    begins, ends = graph.variable_bounds()
    return int((table.end - table.begin).sum()) == int((ends - begins).sum())


def _report_unmapped(graph: Graph, begin: int, end: int) -> None:
    _, low, high, _ = graph.mapping_table().pieces(np.array([begin]), np.array([end]))
    first = begin
    for piece_low, piece_high in zip(low.tolist(), high.tolist(), strict=True):
        if piece_low > first:
            break
        first = piece_high
    variable = graph.variable_at(first)
    element = (first - variable.offset) // variable.dtype.size
    kind = "constant" if variable.constant else "variable"
    raise TileMappingError(
        f"{kind} {variable.name!r}: element {element} of {variable.elements} "
        "is not mapped to a tile"
    )


def check_writable(tensor: Tensor, where: str) -> None:
    """Raise GraphConnectionError when a written tensor holds a constant, or an element twice."""
    if tensor.containsAliases():
        raise GraphConnectionError(
            f"{where}: writes an element of {tensor.describe()} twice; each must stand there once"
        )
    for number in variables_of(tensor):
        variable = tensor.graph.variables[number]
        if variable.constant:
            raise GraphConnectionError(
                f"{where}: writes constant {variable.name!r}; a variable is needed"
            )


def check_writers(graph: Graph) -> None:
    """Raise GraphConnectionError when two edges of a compute set write the same element."""
    groups = graph.vertex_groups()
    constants = [item for item in graph.variables if item.constant and item.bytes]
    by_compute_set: dict[int, list[tuple[VertexGroup, Field]]] = {}
    for group in groups:
        written = (field for field in group.fields.values() if field.direction != "input")
        by_compute_set.setdefault(group.compute_set, []).extend((group, f) for f in written)
    for compute_set, outputs in by_compute_set.items():
        _check_outputs(graph, compute_set, outputs)
        for place in range(len(outputs) if constants else 0):
            _check_constants(constants, outputs[place:])


def _check_constants(
    constants: Sequence[Variable], outputs: list[tuple[VertexGroup, Field]]
) -> None:
    """Raise GraphConnectionError when the first of the outputs writes a constant."""
    item = outputs[0][1]
    begins, ends = item.begins * item.dtype.size, (item.begins + item.lengths) * item.dtype.size
    offsets = as_int64([constant.offset for constant in constants])
    sizes = as_int64([constant.bytes for constant in constants])
    interval, constant = crossings(begins, ends, offsets, offsets + sizes)
    if len(interval):
        name = constants[int(constant[0])].name
        raise GraphConnectionError(
            f"{_writer(outputs, int(interval[0]))}: writes constant {name!r}"
        )


def _check_outputs(
    graph: Graph, compute_set: int, outputs: list[tuple[VertexGroup, Field]]
) -> None:
    if not outputs:
        return
    begins = np.concatenate([field.begins * field.dtype.size for _, field in outputs])
    sizes = np.concatenate([field.lengths * field.dtype.size for _, field in outputs])
    order = ascending(begins)
    begins, ends = begins[order], (begins + sizes)[order]
    furthest = np.maximum.accumulate(ends)
    clashes = np.flatnonzero(begins[1:] < furthest[:-1])
    if not len(clashes):
        return
    second = int(clashes[0]) + 1
    first = int(np.argmax(ends[:second]))
    variable = graph.variable_at(int(begins[second]))
    element = (int(begins[second]) - variable.offset) // variable.dtype.size
    writers = " and ".join(_writer(outputs, int(order[i])) for i in (first, second))
    raise GraphConnectionError(
        f"compute set {graph.compute_sets[compute_set].name!r}: element {element} of variable "
        f"{variable.name!r} has two writers: {writers}"
    )


def _writer(outputs: list[tuple[VertexGroup, Field]], interval: int) -> str:
    """Name the vertex, tile and field of an interval of the concatenated outputs."""
    for group, field in outputs:
        if interval < len(field.begins):
            vertex = int(np.searchsorted(field.starts, interval, side="right")) - 1
            return (
                f"vertex {group.codelet.name}[{vertex}] on tile {group.tile[vertex]}, "
                f"field {field.name!r}"
            )
        interval -= len(field.begins)
    raise AssertionError("the interval is one of the outputs'")


def check_held(graph: Graph, item: Field | Tensor, where: str) -> None:
    """Raise GraphConnectionError for elements of another graph, whose bytes are not these.

    A replicated view's are not this graph's, either, which would use those of the first replica.
    """
    owner = item.graph
    if owner.variables is not graph.variables:
        raise GraphConnectionError(f"{where}: {_named(item)} is not of this graph")
    if owner.window.replicas not in (1, graph.window.replicas):
        raise GraphConnectionError(
            f"{where}: {_named(item)} has {owner.window.replicas} replica(s), the graph that uses "
            f"it {graph.window.replicas}; see getNonReplicatedTensor"
        )


def _named(item: Field | Tensor) -> str:
    first = item.begins[:1].tolist()
    names = [item.graph.variable_at(element * item.dtype.size).name for element in first]
    return f"variable {names[0]!r}" if names else "an empty tensor"


def check_group(graph: Graph, group: VertexGroup) -> None:
    """Raise for a group on a tile that is not there, or whose fields have other lengths."""
    tiles: IntArray = group.tile
    wrong = np.flatnonzero((tiles < 0) | (tiles >= graph.target.num_tiles))
    if len(wrong):
        raise TileMappingError(
            f"vertex {group.codelet.name}[{wrong[0]}]: tile {tiles[wrong[0]]}; "
            f"the target has tiles 0 to {graph.target.num_tiles - 1}"
        )
    for field in group.fields.values():
        check_held(graph, field, f"vertices {group.codelet.name}, field {field.name!r}")
        if len(field.starts) != len(group) + 1 or len(field.edges) != len(group):
            raise GraphConnectionError(
                f"vertices {group.codelet.name}, field {field.name!r}: {len(field.edges)} "
                f"connections for {len(group)} vertices"
            )
