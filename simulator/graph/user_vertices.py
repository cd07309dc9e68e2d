"""Vertices that a program adds one at a time, until they are batched into groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from simulator.graph.errors import GraphConnectionError, PoplarError, TileMappingError
from simulator.graph.intervals import as_int64, offsets_of
from simulator.graph.tensor import Tensor
from simulator.graph.types import Array, IntArray, Type
from simulator.graph.vertex import (
    Codelet,
    Edge,
    Field,
    VectorList,
    Vertex,
    VertexGroup,
    codelet_of,
    declared,
    flattened,
)

if TYPE_CHECKING:
    from simulator.graph.graph import Graph

Connection = tuple[IntArray, IntArray, IntArray]


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
    where = f"{batch.describe(index)}, field {reference.name!r}"
    edge = batch.edges.get(reference.name)
    if edge is None:
        known = ", ".join(batch.edges) or "none"
        raise GraphConnectionError(f"{where}: there is no such field; fields are {known}")
    for tensor in tensors if isinstance(tensors, list | tuple) else [tensors]:
        if not isinstance(tensor, Tensor) or tensor.graph is not graph:
            raise GraphConnectionError(
                f"{where}: connected to {type(tensor).__name__}; a tensor of this graph is needed"
            )
    if isinstance(edge.shape, VectorList) and isinstance(tensors, Tensor):
        tensors = [tensors[row] for row in range(tensors.dim(0))]
    _check_types(where, edge, [tensors] if isinstance(tensors, Tensor) else list(tensors))
    connection = flattened(tensors)
    count = int(connection[2].sum())
    if edge.length is not None and count != edge.length:
        raise GraphConnectionError(
            f"{where}: connected to {_names(tensors)} of {count} elements; "
            f"the field takes {edge.length}"
        )
    batch.connections[reference.name][index] = connection


def _check_types(where: str, edge: Edge, tensors: Sequence[Tensor]) -> None:
    if not tensors or (len(tensors) > 1 and not isinstance(edge.shape, VectorList)):
        raise GraphConnectionError(f"{where}: connected to {len(tensors)} tensors; it takes one")
    for tensor in tensors:
        if tensor.dtype != edge.dtype:
            raise GraphConnectionError(
                f"{where}: connected to {tensor.describe()} of type {tensor.dtype}; "
                f"the field is of type {edge.dtype}"
            )


def _names(tensors: Tensor | Sequence[Tensor]) -> str:
    several = [tensors] if isinstance(tensors, Tensor) else tensors
    return ", ".join(tensor.describe() for tensor in several)


def set_value(reference: FieldRef, value: float) -> None:
    """Set an initial-value field of a vertex."""
    batch, index = reference.vertex.batch, reference.vertex.index
    if reference.name not in batch.values:
        known = ", ".join(batch.values) or "none"
        raise GraphConnectionError(
            f"{batch.describe(index)}: no initial-value field {reference.name!r}; there are {known}"
        )
    if not isinstance(value, int | float | np.number | np.bool_):
        where = f"{batch.describe(index)}, field {reference.name!r}"
        raise GraphConnectionError(f"{where}: set to {value!r}; a number is needed")
    batch.parameters[reference.name][index] = value


def to_group(batch: Batch) -> VertexGroup:
    """Batch the vertices into arrays; every one must be mapped, connected and have an estimate."""
    for index, tile in enumerate(batch.tiles):
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
    return VertexGroup(batch.compute_set, batch.codelet, tiles, fields, parameters, cycles)


def _field(batch: Batch, name: str, edge: Edge) -> Field:
    connections: list[Connection] = []
    for index, connection in enumerate(batch.connections[name]):
        if connection is None:
            raise GraphConnectionError(f"{batch.describe(index)}, field {name!r}: not connected")
        connections.append(connection)
    begins, lengths, rows = (np.concatenate(part) for part in zip(*connections, strict=True))
    starts = offsets_of(as_int64([len(connection[0]) for connection in connections]))
    edges = as_int64([len(connection[2]) for connection in connections])
    is_list = isinstance(edge.shape, VectorList)
    return Field(
        name=name,
        dtype=edge.dtype,
        direction=edge.direction,
        begins=begins,
        lengths=lengths,
        starts=starts,
        edges=edges,
        rows=rows if is_list else None,
    )
