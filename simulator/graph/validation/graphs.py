"""What must hold of a graph before it is compiled, checked on whole arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from simulator.graph.errors import GraphConnectionError, TileMappingError
from simulator.graph.geometry.intervals import as_int64, ascending, crossings
from simulator.graph.graph import Graph
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.tensors.variables import Variable
from simulator.graph.vertices.vertex import Field, VertexGroup


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
