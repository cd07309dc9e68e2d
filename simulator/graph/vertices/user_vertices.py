"""Vertices that a program adds one at a time, until they are batched into groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from simulator.graph.errors import GraphConnectionError, PoplarError, TileMappingError
from simulator.graph.geometry.intervals import as_int64, offsets_of
from simulator.graph.mapping import TileIntervals
from simulator.graph.placement import check_tiles
from simulator.graph.replicas import placed_group
from simulator.graph.tensors.arena import Arena
from simulator.graph.tensors.tensor import Tensor, concat
from simulator.graph.types import Array, Type, checked_values
from simulator.graph.validation.checks import check_held
from simulator.graph.variable_graph import VariableGraph
from simulator.graph.vertices.guessed_cycles import guessed_cycles
from simulator.graph.vertices.user_compute import FLOPS, codelet_of
from simulator.graph.vertices.vertex import (
    Codelet,
    ComputeSet,
    Edge,
    Field,
    Vector,
    VectorList,
    Vertex,
    VertexGroup,
    declared,
)

Number: TypeAlias = float | np.number[Any] | np.bool_
Connectable: TypeAlias = Tensor | Sequence[Tensor] | Number | Sequence[Number] | Array
# The edges of one field of one vertex: one, or those of a list.
Connection: TypeAlias = Sequence[Tensor]
NUMBER = (int, float, np.number, np.bool_)
MAX_ESTIMATED = 1 << 40  # of a vertex, so that the sums of a program fit into 64 bits


@dataclass(slots=True)
class Batch:
    """The vertices of one class in one compute set, field by field.

    `parts` holds what is joined element by element (row by row), by field and vertex; `constants`
    the constants that vertices are joined to, which go where the vertices go.
    """

    compute_set: int
    vertex: type[Vertex]
    codelet: Codelet
    edges: dict[str, Edge]
    values: dict[str, Type | Vector]
    tiles: list[int] = field(default_factory=list)
    cycles: list[int] = field(default_factory=list)
    flops: list[int] = field(default_factory=list)
    connections: dict[str, list[Connection | None]] = field(default_factory=dict)
    parameters: dict[str, list[Any]] = field(default_factory=dict)
    parts: dict[tuple[str, int], list[Tensor | None]] = field(default_factory=dict)
    constants: list[tuple[int, Tensor]] = field(default_factory=list)

    def describe(self, index: int) -> str:
        """Name a vertex and its tile."""
        tile = self.tiles[index]
        return f"vertex {self.codelet.name}[{index}]" + (f" on tile {tile}" if tile >= 0 else "")


@dataclass(frozen=True, slots=True)
class FieldRef:
    """One field of one vertex, as `graph.connect` takes it, or one element (row) of it."""

    vertex: VertexRef
    name: str
    element: int | None = None

    def __getitem__(self, element: int) -> FieldRef:
        return FieldRef(self.vertex, self.name, element)

    def __str__(self) -> str:
        element = "" if self.element is None else f"[{self.element}]"
        return f"{self.vertex}, field {self.name!r}{element}"


@dataclass(frozen=True, slots=True)
class VertexRef:
    """One vertex that a program has added."""

    batch: Batch
    index: int

    def __getitem__(self, name: str) -> FieldRef:
        return FieldRef(self, name)

    def __str__(self) -> str:
        return self.batch.describe(self.index)


def new_batch(compute_set: ComputeSet, vertex: type[Vertex]) -> Batch:
    """Start a batch, reading the fields of the class."""
    edges, values = declared(vertex)
    codelet = codelet_of(vertex, compute_set.name)
    batch = Batch(compute_set.id, vertex, codelet, edges, values)
    batch.connections = {name: [] for name in edges}
    batch.parameters = {name: [] for name in values}
    return batch


def add(batch: Batch) -> VertexRef:
    """Add a vertex that is on no tile, not connected and has no estimate."""
    for connections in batch.connections.values():
        connections.append(None)
    for name, parameters in batch.parameters.items():
        parameters.append(_first_value(batch.values[name]))
    batch.tiles.append(-1)
    batch.cycles.append(-1)
    batch.flops.append(0)
    return VertexRef(batch, len(batch.tiles) - 1)


def _first_value(kind: Type | Vector) -> object:
    """Return the default of an initial-value field; None for a vector of any size."""
    if isinstance(kind, Type):
        return 0
    return None if kind.length is None else np.zeros(kind.length, dtype=kind.dtype.numpy)


def codelet_class(codelets: Mapping[str, type[Vertex]], codelet: object) -> type[Vertex]:
    """Return a codelet by its name or class; GraphConnectionError for what is none."""
    if isinstance(codelet, str):
        if codelet not in codelets:
            names = ", ".join(codelets) or "none; see addCodelets"
            raise GraphConnectionError(f"codelet {codelet!r}: unknown; known are {names}")
        return codelets[codelet]
    return checked_codelet(codelet)


def checked_codelet(codelet: object) -> type[Vertex]:
    """Return a class of vertices that computes; GraphConnectionError for anything else."""
    if not (isinstance(codelet, type) and issubclass(codelet, Vertex)):
        source = isinstance(codelet, str) and codelet.endswith((".cpp", ".gp", ".S"))
        hint = "; C++ is not compiled here, write its compute() in Python" if source else ""
        raise GraphConnectionError(f"a codelet class is needed, not {codelet!r}{hint}")
    if codelet.compute is Vertex.compute:
        raise GraphConnectionError(f"codelet {codelet.__name__}: has no compute()")
    return codelet


def connect(graph: VariableGraph, reference: FieldRef, connection: Connectable) -> None:
    """Join a field to a tensor, a VectorList to several or the rows of one, an Input to numbers."""
    batch, index = reference.vertex.batch, reference.vertex.index
    edge = batch.edges.get(reference.name)
    if reference.name in batch.values and _are_numbers(connection):
        set_value(reference, connection)  # type: ignore[arg-type]
        return
    if edge is None:
        names = ", ".join(batch.edges) or "none"
        raise GraphConnectionError(
            f"{reference}: there is no such field; fields are {names}{_annotated(reference)}"
        )
    if not isinstance(connection, Tensor) and _are_numbers(connection):
        connection = _constant(graph, reference, edge, connection)
    tensors = tuple(connection) if isinstance(connection, list | tuple) else (connection,)
    for tensor in tensors:
        if not graph.holds(tensor):
            raise GraphConnectionError(
                f"{reference}: connected to {type(tensor).__name__}; "
                "a tensor of this graph is needed"
            )
        check_held(graph, tensor, str(reference))
    is_list = reference.element is None and isinstance(edge.shape, VectorList)
    if is_list and isinstance(connection, Tensor):
        tensors = tuple(connection)
    if len(tensors) != 1 and not is_list:
        raise GraphConnectionError(
            f"{reference}: connected to {len(tensors)} tensors; it takes one"
        )
    for tensor in tensors:
        _check_edge(reference, edge, tensor)
    if reference.element is not None:
        _parts(reference)[reference.element] = tensors[0]
        return
    if batch.parts:
        _check_size(reference, tensors)
    batch.connections[reference.name][index] = tensors


def _annotated(reference: FieldRef) -> str:
    """Hint at a field that its class annotates where it had to be given a value."""
    name = reference.name
    if name not in getattr(reference.vertex.batch.vertex, "__annotations__", {}):
        return ""
    return f"; {name!r} is only annotated: write {name} = ..., not {name}: ..."


def _are_numbers(value: object) -> bool:
    """Return whether something is a number, or numbers in lists or an array."""
    while isinstance(value, list | tuple) and value:
        value = value[0]
    return isinstance(value, (np.ndarray, *NUMBER))


def _constant(graph: VariableGraph, reference: FieldRef, edge: Edge, values: object) -> Tensor:
    """Add a constant for a field; it goes to the tile of the vertex."""
    if edge.direction != "input":
        raise GraphConnectionError(
            f"{reference}: connected to {values!r}; what is written must be a tensor"
        )
    array = checked_values(values, edge.dtype, str(reference), GraphConnectionError)
    tensor = graph.addConstant(edge.dtype, array.shape, array, reference.name)
    reference.vertex.batch.constants.append((reference.vertex.index, tensor))
    return tensor


def _check_edge(reference: FieldRef, edge: Edge, tensor: Tensor) -> None:
    """Raise GraphConnectionError for a tensor of another type or length than the edge takes."""
    if tensor.dtype is not edge.dtype and tensor.dtype != edge.dtype:
        raise GraphConnectionError(
            f"{reference}: connected to {tensor.describe()} of type {tensor.dtype}; "
            f"the field is of type {edge.dtype}"
        )
    single = reference.element is not None and isinstance(edge.shape, Vector)
    length = 1 if single else edge.length
    if length is not None and tensor.numElements() != length:
        raise GraphConnectionError(
            f"{reference}: connected to {tensor.describe()} of {tensor.numElements()} elements; "
            f"the field takes {length}"
        )


def _check_size(reference: FieldRef, tensors: Sequence[Tensor]) -> None:
    """Raise GraphConnectionError for another number of elements (rows) than setFieldSize gave."""
    batch, index, name = reference.vertex.batch, reference.vertex.index, reference.name
    parts = batch.parts.pop((name, index), None)
    is_list = isinstance(batch.edges[name].shape, VectorList)
    size = len(tensors) if is_list else tensors[0].numElements()
    if parts is not None and size != len(parts):
        raise GraphConnectionError(
            f"{reference}: connected to {size} elements; its size was set to {len(parts)}"
        )


def set_size(reference: FieldRef, size: int) -> None:
    """Set the elements of a vector, or the rows of a VectorList, before they are joined or set."""
    batch, index, name = reference.vertex.batch, reference.vertex.index, reference.name
    shape = batch.edges[name].shape if name in batch.edges else batch.values.get(name)
    if not isinstance(shape, Vector | VectorList):
        raise GraphConnectionError(f"{reference}: is no vector, whose size could be set")
    if not isinstance(size, int | np.integer) or size < 0:
        raise GraphConnectionError(f"{reference}: size is {size!r}; 0 or more is needed")
    if isinstance(shape, Vector) and shape.length not in (None, size):
        raise GraphConnectionError(f"{reference}: size is {size}; the field takes {shape.length}")
    if name in batch.edges:
        batch.parts[name, index] = [None] * size
        batch.connections[name][index] = None
    else:
        batch.parameters[name][index] = np.zeros(size, dtype=shape.dtype.numpy)


def _parts(reference: FieldRef) -> list[Tensor | None]:
    """Return the tensors joined to the elements of a field; checks the number of the element."""
    batch, index = reference.vertex.batch, reference.vertex.index
    length = batch.edges[reference.name].length
    if (reference.name, index) not in batch.parts:
        if length is None:
            raise GraphConnectionError(f"{reference}: the field has no size yet; see setFieldSize")
        batch.parts[reference.name, index] = [None] * length
    parts = batch.parts[reference.name, index]
    _check_element(reference, len(parts))
    return parts


def _check_element(reference: FieldRef, size: int) -> None:
    if reference.element is None or not 0 <= reference.element < size:
        raise GraphConnectionError(f"{reference}: the field has {size} elements")


def set_value(reference: FieldRef, value: Number | Sequence[Number] | Array) -> None:
    """Set an initial-value field of a vertex: a number, or the numbers of a vector."""
    batch, index, name = reference.vertex.batch, reference.vertex.index, reference.name
    if name not in batch.values:
        names = ", ".join(batch.values) or "none"
        raise GraphConnectionError(
            f"{reference.vertex}: no initial-value field {name!r}; there are {names}"
            f"{_annotated(reference)}"
        )
    kind, column = batch.values[name], batch.parameters[name]
    dtype = kind if isinstance(kind, Type) else kind.dtype
    array = checked_values(value, dtype, str(reference), GraphConnectionError)
    is_vector = isinstance(kind, Vector) and reference.element is None
    if array.ndim != is_vector:
        needed = "a list of numbers" if is_vector else "a number"
        raise GraphConnectionError(f"{reference}: set to {value!r}; {needed} is needed")
    if reference.element is not None:
        _check_element(reference, 0 if column[index] is None else np.size(column[index]))
        column[index][reference.element] = array
    elif isinstance(kind, Vector) and kind.length not in (None, array.size):
        raise GraphConnectionError(
            f"{reference}: set to {array.size} values; the field takes {kind.length}"
        )
    else:
        column[index] = array.copy() if is_vector else array.item()


def set_estimate(vertex: VertexRef, cycles: int, flops: int) -> None:
    """Set how long a vertex takes, and how many floating-point operations it makes."""
    for number, unit in ((cycles, "cycles"), (flops, "operations")):
        if not isinstance(number, int | np.integer) or not 0 <= number <= MAX_ESTIMATED:
            raise PoplarError(
                f"{vertex}: estimate of {number!r} {unit}; 0 to {MAX_ESTIMATED:,} can be counted"
            )
    vertex.batch.cycles[vertex.index] = int(cycles)
    vertex.batch.flops[vertex.index] = int(flops)


def to_group(arena: Arena, batch: Batch) -> VertexGroup:
    """Batch the vertices into arrays; every one must be mapped and connected.

    One without an estimate takes what `guessed_cycles` counts. A target that is not modelled needs
    neither tile nor estimate.
    """
    modelled = arena.target.target_type != "CPU"
    for index, tile in enumerate(batch.tiles if modelled else ()):
        if tile < 0:
            raise TileMappingError(f"{batch.describe(index)}: is not mapped to a tile")
    fields = {name: _field(arena, batch, name, edge) for name, edge in batch.edges.items()}
    parameters = {name: _column(batch, name, kind) for name, kind in batch.values.items()}
    parameters[FLOPS] = as_int64(batch.flops)
    tiles, cycles = as_int64(batch.tiles), as_int64(batch.cycles)
    codelet, missing = batch.codelet, cycles < 0
    if not modelled:
        tiles, cycles = np.zeros_like(tiles), np.zeros_like(cycles)
    elif missing.any():
        sizes = [field.counts() for field in fields.values()]
        cycles = np.where(missing, guessed_cycles(batch.vertex, sizes), cycles)
        codelet = replace(codelet, guessed=True)
    return VertexGroup(batch.compute_set, codelet, tiles, fields, parameters, cycles)


def _column(batch: Batch, name: str, kind: Type | Vector) -> Array:
    """Return an initial value for each vertex; those of vectors are an array each."""
    values = batch.parameters[name]
    if isinstance(kind, Type):
        return np.asarray(values, dtype=kind.numpy)
    column = np.empty(len(values), dtype=object)
    for index, value in enumerate(values):
        if value is None:
            raise GraphConnectionError(
                f"{batch.describe(index)}, field {name!r}: has no values; see setInitialValue"
            )
        column[index] = value
    return column


def _field(arena: Arena, batch: Batch, name: str, edge: Edge) -> Field:
    connections = [
        _joined(batch, name, index) if connection is None else connection
        for index, connection in enumerate(batch.connections[name])
    ]
    tensors = [tensor for connection in connections for tensor in connection]
    edges = as_int64([len(connection) for connection in connections])
    intervals = offsets_of(as_int64([len(tensor.begins) for tensor in tensors]))
    is_list, nothing = isinstance(edge.shape, VectorList), as_int64([])
    rows = as_int64([tensor.numElements() for tensor in tensors]) if is_list else None
    return Field(
        graph=arena,
        name=name,
        dtype=edge.dtype,
        direction=edge.direction,
        begins=np.concatenate([nothing, *(tensor.begins for tensor in tensors)]),
        lengths=np.concatenate([nothing, *(tensor.lengths for tensor in tensors)]),
        starts=intervals[offsets_of(edges)],
        edges=edges,
        rows=rows,
    )


def _joined(batch: Batch, name: str, index: int) -> Connection:
    """Return what the elements (rows) of a field were joined to one by one; every one must be."""
    parts = batch.parts.get((name, index))
    where = f"{batch.describe(index)}, field {name!r}"
    if parts is None:
        raise GraphConnectionError(f"{where}: not connected")
    tensors = [part for part in parts if part is not None]
    if len(tensors) < len(parts):
        raise GraphConnectionError(f"{where}[{parts.index(None)}]: not connected")
    if isinstance(batch.edges[name].shape, VectorList) or not tensors:
        return tensors
    return [concat([tensor.flatten() for tensor in tensors])]


def constant_places(batch: Batch) -> list[tuple[Tensor, int]]:
    """List the constants that vertices are joined to, each with the tile of its vertex."""
    placed = [(constant, batch.tiles[index]) for index, constant in batch.constants]
    return [(constant, tile) for constant, tile in placed if tile >= 0]


def group_of_batch(arena: Arena, batch: Batch) -> VertexGroup:
    """Make the group of vertices that were added one by one through a view."""
    group = to_group(arena, batch)
    if arena.window.replicas == 1:
        return group
    tile = arena.window.inside(group.tile)
    if (tile < 0).any():
        vertex = int(np.flatnonzero(tile < 0)[0])
        raise TileMappingError(f"{batch.describe(vertex)}: is on no tile of the first replica")
    return placed_group(arena, replace(group, tile=tile))


def place_vertex(arena: Arena, vertex: VertexRef, tile: int | TileIntervals) -> None:
    """Put a vertex on a tile; raises TileMappingError for anything else."""
    if not isinstance(tile, int | np.integer):
        raise TileMappingError(f"{vertex.batch.describe(vertex.index)}: needs one tile")
    if not 0 <= tile < arena.target.num_tiles:
        check_tiles(arena, as_int64(tile), vertex.batch.describe(vertex.index))
    vertex.batch.tiles[vertex.index] = int(arena.window.tiles[0, tile])
