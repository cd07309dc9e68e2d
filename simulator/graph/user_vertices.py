"""Vertices that a program adds one at a time, until they are batched into groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from simulator.graph.errors import GraphConnectionError, PoplarError, TileMappingError
from simulator.graph.intervals import as_int64, offsets_of
from simulator.graph.tensor import Tensor
from simulator.graph.types import Array, Type
from simulator.graph.vertex import (
    Codelet,
    Edge,
    Field,
    VectorList,
    Vertex,
    VertexGroup,
    codelet_of,
    declared,
)

if TYPE_CHECKING:
    from simulator.graph.graph import Graph

Connection = Sequence[Tensor]  # the edges of one field of one vertex; one, or those of a list


@dataclass(slots=True)
class Batch:
    """The vertices of one class in one compute set, field by field."""

    compute_set: int
    vertex: type[Vertex]
    codelet: Codelet
    edges: dict[str, Edge]
    values: dict[str, Type]
    tiles: list[int] = field(default_factory=list)
    cycles: list[int] = field(default_factory=list)
    connections: dict[str, list[Connection | None]] = field(default_factory=dict)
    parameters: dict[str, list[float]] = field(default_factory=dict)

    def describe(self, index: int) -> str:
        """Name a vertex and its tile."""
        tile = self.tiles[index]
        return f"vertex {self.codelet.name}[{index}]" + (f" on tile {tile}" if tile >= 0 else "")


@dataclass(frozen=True, slots=True)
class FieldRef:
    """One field of one vertex, as `graph.connect` takes it."""

    vertex: VertexRef
    name: str


@dataclass(frozen=True, slots=True)
class VertexRef:
    """One vertex that a program has added."""

    batch: Batch
    index: int

    def __getitem__(self, name: str) -> FieldRef:
        return FieldRef(self, name)


def new_batch(compute_set: int, vertex: type[Vertex]) -> Batch:
    """Start a batch, reading the fields of the class."""
    edges, values = declared(vertex)
    batch = Batch(compute_set, vertex, codelet_of(vertex), edges, values)
    batch.connections = {name: [] for name in edges}
    batch.parameters = {name: [] for name in values}
    return batch


def add(batch: Batch) -> VertexRef:
    """Add a vertex that is on no tile, not connected and has no estimate."""
    for connections in batch.connections.values():
        connections.append(None)
    for parameters in batch.parameters.values():
        parameters.append(0)
    batch.tiles.append(-1)
    batch.cycles.append(-1)
    return VertexRef(batch, len(batch.tiles) - 1)


def check_codelet(codelet: object) -> None:
    """Raise GraphConnectionError for what is no class of vertices that computes."""
    if not (isinstance(codelet, type) and issubclass(codelet, Vertex)):
        raise GraphConnectionError(f"addVertex: a codelet class is needed, not {codelet!r}")
    if codelet.compute is Vertex.compute:
        raise GraphConnectionError(f"codelet {codelet.__name__}: has no compute()")


def connect(graph: Graph, reference: FieldRef, tensors: Tensor | Sequence[Tensor]) -> None:
    """Join a field to a tensor (a VectorList: to a list of tensors or the rows of one)."""
    batch, index = reference.vertex.batch, reference.vertex.index
    edge = batch.edges.get(reference.name)
    if edge is None:
        known = ", ".join(batch.edges) or "none"
        raise GraphConnectionError(
            f"{_where(reference)}: there is no such field; fields are {known}"
        )
    parts = tuple(tensors) if isinstance(tensors, list | tuple) else (tensors,)
    for tensor in parts:
        if not isinstance(tensor, Tensor) or not graph.holds(tensor):
            raise GraphConnectionError(
                f"{_where(reference)}: connected to {type(tensor).__name__}; "
                "a tensor of this graph is needed"
            )
    is_list = isinstance(edge.shape, VectorList)
    if is_list and isinstance(tensors, Tensor):
        parts = tuple(tensors)
    if not parts or (len(parts) > 1 and not is_list):
        raise GraphConnectionError(
            f"{_where(reference)}: connected to {len(parts)} tensors; it takes one"
        )
    for tensor in parts:
        _check_edge(reference, edge, tensor)
    batch.connections[reference.name][index] = parts


def _check_edge(reference: FieldRef, edge: Edge, tensor: Tensor) -> None:
    """Raise GraphConnectionError for a tensor of another type or length than the edge takes."""
    if tensor.dtype is not edge.dtype and tensor.dtype != edge.dtype:
        raise GraphConnectionError(
            f"{_where(reference)}: connected to {tensor.describe()} of type {tensor.dtype}; "
            f"the field is of type {edge.dtype}"
        )
    if edge.length is not None and tensor.numElements() != edge.length:
        raise GraphConnectionError(
            f"{_where(reference)}: connected to {tensor.describe()} of "
            f"{tensor.numElements()} elements; the field takes {edge.length}"
        )


def _where(reference: FieldRef) -> str:
    """Name a vertex and its field; only for errors, as it costs more than the connection."""
    vertex = reference.vertex
    return f"{vertex.batch.describe(vertex.index)}, field {reference.name!r}"


def set_value(reference: FieldRef, value: float) -> None:
    """Set an initial-value field of a vertex."""
    batch, index = reference.vertex.batch, reference.vertex.index
    if reference.name not in batch.values:
        known = ", ".join(batch.values) or "none"
        raise GraphConnectionError(
            f"{batch.describe(index)}: no initial-value field {reference.name!r}; there are {known}"
        )
    if not isinstance(value, int | float | np.number | np.bool_):
        raise GraphConnectionError(f"{_where(reference)}: set to {value!r}; a number is needed")
    batch.parameters[reference.name][index] = value


def to_group(batch: Batch, *, modelled: bool = True) -> VertexGroup:
    """Batch the vertices into arrays; every one must be mapped, connected and have an estimate.

    A target that is not modelled needs neither tile nor estimate.
    """
    for index, tile in enumerate(batch.tiles if modelled else ()):
        if tile < 0:
            raise TileMappingError(f"{batch.describe(index)}: is not mapped to a tile")
        if batch.cycles[index] < 0:
            raise PoplarError(f"{batch.describe(index)}: has no cycle estimate")
    fields = {name: _field(batch, name, edge) for name, edge in batch.edges.items()}
    parameters: dict[str, Array] = {
        name: np.asarray(batch.parameters[name], dtype=dtype.numpy)
        for name, dtype in batch.values.items()
    }
    tiles, cycles = as_int64(batch.tiles), as_int64(batch.cycles)
    if not modelled:
        tiles, cycles = np.zeros_like(tiles), np.zeros_like(cycles)
    return VertexGroup(batch.compute_set, batch.codelet, tiles, fields, parameters, cycles)


def _field(batch: Batch, name: str, edge: Edge) -> Field:
    connections: list[Connection] = []
    for index, connection in enumerate(batch.connections[name]):
        if connection is None:
            raise GraphConnectionError(f"{batch.describe(index)}, field {name!r}: not connected")
        connections.append(connection)
    tensors = [tensor for connection in connections for tensor in connection]
    edges = as_int64([len(connection) for connection in connections])
    intervals = offsets_of(as_int64([len(tensor.begins) for tensor in tensors]))
    is_list = isinstance(edge.shape, VectorList)
    rows = as_int64([tensor.numElements() for tensor in tensors]) if is_list else None
    return Field(
        name=name,
        dtype=edge.dtype,
        direction=edge.direction,
        begins=np.concatenate([tensor.begins for tensor in tensors]),
        lengths=np.concatenate([tensor.lengths for tensor in tensors]),
        starts=intervals[offsets_of(edges)],
        edges=edges,
        rows=rows,
    )
