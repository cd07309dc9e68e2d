"""The graph: variables, their tile mapping, compute sets, vertices and streams."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from simulator.graph import user_vertices, validate
from simulator.graph.debug import DebugContext, users_location
from simulator.graph.errors import (
    GraphConnectionError,
    HostAccessError,
    PoplarError,
    TileMappingError,
)
from simulator.graph.intervals import as_int64, crossings, cut, offsets_of
from simulator.graph.mapping import Mapping, MappingTable, listed_pieces
from simulator.graph.streams import HostAccess, Stream
from simulator.graph.target import Target
from simulator.graph.tensor import Tensor
from simulator.graph.types import (
    Array,
    IntArray,
    Type,
    checked_shape,
    checked_type,
    element_count,
)
from simulator.graph.user_vertices import FieldRef, VertexRef
from simulator.graph.vertex import Vertex, VertexGroup

TileIntervals = Sequence[Sequence[tuple[int, int]]]
ALIGNMENT = 8  # bytes; one 64-bit word


@dataclass(frozen=True, slots=True, eq=False)
class Variable:
    """A variable or constant; `offset` and `bytes` are its place in the arena."""

    id: int
    name: str
    dtype: Type
    shape: tuple[int, ...]
    offset: int
    bytes: int
    constant: bool
    values: Array | None
    debug_context: int
    kind: Literal["variable", "constant", "instrumentation"] = "variable"

    @property
    def elements(self) -> int:
        """Count the elements."""
        return element_count(self.shape)


@dataclass(frozen=True, slots=True)
class ComputeSet:
    """A set of vertices that run together."""

    id: int
    name: str
    debug_context: int = 0


class Graph:
    """A computation graph for a target."""

    def __init__(self, target: Target) -> None:
        if not isinstance(target, Target):
            raise PoplarError(f"Graph: needs a target, not {target!r}; see Device.getTarget")
        self.target = target
        self.variables: list[Variable] = []
        self.compute_sets: list[ComputeSet] = []
        self.streams: list[Stream] = []
        self.host_accesses: dict[str, HostAccess] = {}
        self.debug_contexts: list[DebugContext] = []
        self.arena_bytes = 0
        self._mapping = MappingTable()
        self._mapping_cache: tuple[tuple[int, int], Mapping] | None = None
        self._batches: dict[tuple[int, type[Vertex]], user_vertices.Batch] = {}
        self._bulk: list[VertexGroup] = []
        self._groups: list[VertexGroup] | None = None
        self._codelets: dict[str, type[Vertex]] = {}
        self._scopes: list[int] = [0]

    def getTarget(self) -> Target:
        return self.target

    # Debug contexts
    def debug_context(self, name: str, layer: str = "poplar") -> int:
        """Record a named place of the user's program; give its id."""
        context_id = len(self.debug_contexts) + 1
        self.debug_contexts.append(
            {
                "id": context_id,
                "parentId": self._scopes[-1],
                "name": name,
                "layer": layer,
                "location": users_location(),
            }
        )
        return context_id

    @contextmanager
    def debug_scope(self, name: str, layer: str) -> Iterator[int]:
        """Make what is added inside children of a new debug context."""
        self._scopes.append(self.debug_context(name, layer))
        try:
            yield self._scopes[-1]
        finally:
            self._scopes.pop()

    # Variables
    def addVariable(self, dtype: Type, shape: Iterable[int], name: str = "") -> Tensor:
        what = f"variable {name!r}"
        return self._add(checked_type(dtype, what), checked_shape(shape, what), None, name)

    def addConstant(
        self, dtype: Type, shape: Iterable[int], values: Any, name: str = "<const>"
    ) -> Tensor:
        sizes = checked_shape(shape, f"constant {name!r}")
        data = np.asarray(values, dtype=checked_type(dtype, f"constant {name!r}").numpy)
        if data.size not in (1, element_count(sizes)):
            raise PoplarError(
                f"constant {name!r}: {data.size} values for shape {list(sizes)} of "
                f"{element_count(sizes)} elements"
            )
        full = np.broadcast_to(data.reshape(-1), (element_count(sizes),)).copy()
        return self._add(dtype, sizes, full, name)

    def clone(self, tensor: Tensor, name: str = "", dtype: Type | None = None) -> Tensor:
        """Add a variable of the same shape, order in memory and mapping, maybe of another type."""
        places = tensor.elements().reshape(-1)
        order = np.argsort(places, kind="stable")
        copy = self.addVariable(dtype or tensor.dtype, tensor.shape, name).flatten()
        self.copy_mapping(tensor.view(places[order]), copy)
        first = copy.begins[0] if len(copy.begins) else 0
        elements = np.empty(len(order), dtype=np.int64)
        elements[order] = first + np.arange(len(order))
        return copy.view(elements.reshape(tensor.shape))

    def _add(self, dtype: Type, shape: tuple[int, ...], values: Array | None, name: str) -> Tensor:
        elements = element_count(shape)
        offset = -(-self.arena_bytes // ALIGNMENT) * ALIGNMENT
        constant = values is not None
        self.variables.append(
            Variable(
                id=len(self.variables),
                name=name or "<anon>",
                dtype=dtype,
                shape=shape,
                offset=offset,
                bytes=elements * dtype.size,
                constant=constant,
                values=values,
                debug_context=self.debug_context(name or "<anon>"),
                kind="constant" if constant else "variable",
            )
        )
        self.arena_bytes = offset + elements * dtype.size
        begins, lengths = as_int64(offset // dtype.size), as_int64(elements)
        return Tensor(self, dtype, shape, begins[:elements], lengths[:elements])

    def variable_bounds(self) -> tuple[IntArray, IntArray]:
        """Give the first and last byte (not included) of every variable in the arena."""
        begins = as_int64([variable.offset for variable in self.variables])
        return begins, begins + as_int64([variable.bytes for variable in self.variables])

    def variable_at(self, byte: int) -> Variable:
        """Find the variable that holds a byte of the arena."""
        begins, ends = self.variable_bounds()
        return self.variables[int(np.flatnonzero((begins <= byte) & (byte < ends))[0])]

    def variable_names(self, tensor: Tensor) -> list[str]:
        """Name the variables that a tensor views, in the order of their ids."""
        if not len(tensor.begins):
            return ["<empty>"]
        begins, _ = self.variable_bounds()
        ids = np.searchsorted(begins, tensor.begins * tensor.dtype.size, side="right") - 1
        return [self.variables[i].name for i in np.unique(ids).tolist()]

    # Tile mapping
    def setTileMapping(self, what: Tensor | VertexRef, tile: int | TileIntervals) -> None:
        """Put a tensor or vertex on a tile, or parts [begin, end) of a tensor on each tile."""
        if isinstance(what, VertexRef):
            if not isinstance(tile, int | np.integer):
                raise TileMappingError(f"{what.batch.describe(what.index)}: needs one tile")
            self._check_tile(int(tile), what)
            what.batch.tiles[what.index] = int(tile)
            self._groups = None
        elif isinstance(tile, int | np.integer):
            self._check_tile(int(tile), what)
            self._mapping.add(*_bytes(what), np.full(len(what.begins), tile, dtype=np.int64))
        else:
            try:
                low, high, tiles = listed_pieces(tile)
            except (TypeError, ValueError):
                raise TileMappingError(
                    f"variable {what.describe()!r}: mapped to {tile!r}; a tile is needed, or for "
                    "each tile a list of its parts [begin, end)"
                ) from None
            self.map_ranges(what, low, high, tiles)

    def map_ranges(self, tensor: Tensor, low: IntArray, high: IntArray, tiles: IntArray) -> None:
        """Put the positions [low, high) of a flattened tensor on the tiles."""
        if len(tiles):
            self._check_tile(int(tiles.min()), tensor)
            self._check_tile(int(tiles.max()), tensor)
        outside = len(low) and (int(high.max()) > tensor.numElements() or int(low.min()) < 0)
        if outside or (low > high).any():
            raise TileMappingError(
                f"variable {tensor.describe()!r}: mapping of elements {int(low.min())} to "
                f"{int(high.max())}; it has {tensor.numElements()}"
            )
        begins, lengths, starts = cut(tensor.begins, tensor.lengths, low, high)
        size = tensor.dtype.size
        self._mapping.add(
            begins * size, (begins + lengths) * size, np.repeat(tiles, np.diff(starts))
        )

    def copy_mapping(self, source: Tensor, destination: Tensor) -> None:
        """Put each element of a tensor on the tile of the same element of another."""
        self.map_ranges(destination, *self.tile_ranges(source))

    def tile_ranges(self, tensor: Tensor) -> tuple[IntArray, IntArray, IntArray]:
        """Give the positions [low, high) of a flattened tensor that lie on one tile, in order."""
        begins, ends = _bytes(tensor)
        size = tensor.dtype.size
        source, low, high, tiles = self.mapping_table().pieces(begins, ends)
        shift = (offsets_of(tensor.lengths)[:-1] - tensor.begins)[source]
        return low // size + shift, high // size + shift, tiles

    def getTileMapping(self, tensor: Tensor) -> list[list[tuple[int, int]]]:
        """List, for each tile, the parts [begin, end) of the flattened tensor that it holds."""
        result: list[list[tuple[int, int]]] = [[] for _ in range(self.target.num_tiles)]
        columns = (column.tolist() for column in self.tile_ranges(tensor))
        for low, high, tile in zip(*columns, strict=True):
            parts = result[tile]
            if parts and parts[-1][1] == low:
                parts[-1] = (parts[-1][0], high)
            else:
                parts.append((low, high))
        return result

    def mapping_table(self) -> Mapping:
        """Give all mapped bytes of the arena, sorted, cut at variables and tiles."""
        version = (self._mapping.version, len(self.variables))
        if self._mapping_cache is None or self._mapping_cache[0] != version:
            begins, ends, tiles = self._mapping.settled()
            variable_begins, variable_ends = self.variable_bounds()
            piece, variable = crossings(begins, ends, variable_begins, variable_ends)
            low = np.maximum(begins[piece], variable_begins[variable])
            high = np.minimum(ends[piece], variable_ends[variable])
            keep = high > low
            table = Mapping(low[keep], high[keep], tiles[piece][keep], variable[keep])
            self._mapping_cache = (version, table)
        return self._mapping_cache[1]

    def _check_tile(self, tile: int, what: Tensor | VertexRef) -> None:
        if 0 <= tile < self.target.num_tiles:
            return
        if isinstance(what, Tensor):
            name = f"variable {what.describe()!r}"
        else:
            name = what.batch.describe(what.index)
        raise TileMappingError(
            f"{name}: tile {tile}; the target has tiles 0 to {self.target.num_tiles - 1}"
        )

    # Vertices
    def addComputeSet(self, name: str = "") -> ComputeSet:
        context = self.debug_context(name or "<anon>")
        compute_set = ComputeSet(len(self.compute_sets), name or "<anon>", context)
        self.compute_sets.append(compute_set)
        return compute_set

    def addCodelets(self, *codelets: type[Vertex]) -> None:
        """Let `addVertex` find these classes by their names."""
        self._codelets.update({codelet.__name__: codelet for codelet in codelets})

    def addVertex(
        self,
        compute_set: ComputeSet,
        codelet: type[Vertex] | str,
        connections: dict[str, Tensor | Sequence[Tensor]] | None = None,
        *,
        tile: int | None = None,
    ) -> VertexRef:
        if isinstance(codelet, str):
            if codelet not in self._codelets:
                known = ", ".join(self._codelets) or "none; see addCodelets"
                raise GraphConnectionError(f"codelet {codelet!r}: unknown; known are {known}")
            codelet = self._codelets[codelet]
        user_vertices.check_codelet(codelet)
        key = (compute_set.id, codelet)
        if key not in self._batches:
            self._batches[key] = user_vertices.new_batch(compute_set.id, codelet)
        vertex = user_vertices.add(self._batches[key])
        self._groups = None
        if tile is not None:
            self.setTileMapping(vertex, tile)
        for name, tensors in (connections or {}).items():
            self.connect(vertex[name], tensors)
        return vertex

    def connect(self, field: FieldRef, tensors: Tensor | Sequence[Tensor]) -> None:
        user_vertices.connect(self, field, tensors)
        self._groups = None

    def setInitialValue(self, field: FieldRef, value: float) -> None:
        user_vertices.set_value(field, value)
        self._groups = None

    def setPerfEstimate(self, vertex: VertexRef, cycles: int) -> None:
        if cycles < 0:
            raise PoplarError(f"{vertex.batch.describe(vertex.index)}: estimate of {cycles} cycles")
        vertex.batch.cycles[vertex.index] = int(cycles)
        self._groups = None

    setCycleEstimate = setPerfEstimate

    def add_vertices(self, group: VertexGroup) -> None:
        """Add a whole group of vertices at once."""
        if len(group):
            validate.check_group(self, group)
            self._bulk.append(group)
            self._groups = None

    def vertex_groups(self) -> list[VertexGroup]:
        """Give all vertices, by compute set; those added one by one batched by codelet."""
        if self._groups is None:
            groups = [*self._bulk, *map(user_vertices.to_group, self._batches.values())]
            self._groups = sorted(groups, key=lambda group: group.compute_set)
        return self._groups

    def groups_of(self, compute_set: int) -> list[VertexGroup]:
        """Give the vertices of one compute set."""
        groups = self.vertex_groups()
        first = bisect_left(groups, compute_set, key=lambda group: group.compute_set)
        end = bisect_right(groups, compute_set, key=lambda group: group.compute_set)
        return groups[first:end]

    def validate_mapping(self, tensors: Iterable[Tensor] = ()) -> None:
        """Raise PoplarError for the first element that is used (or in `tensors`) and unmapped."""
        validate.check_mapped(self, tensors)

    def validate_writers(self) -> None:
        """Raise PoplarError when two edges of a compute set write the same element."""
        validate.check_writers(self)

    # Host
    def addHostToDeviceFIFO(self, handle: str, dtype: Type, elements: int) -> Stream:
        return self._stream(handle, dtype, elements, "in")

    def addDeviceToHostFIFO(self, handle: str, dtype: Type, elements: int) -> Stream:
        return self._stream(handle, dtype, elements, "out")

    def _stream(
        self, handle: str, dtype: Type, elements: int, direction: Literal["in", "out"]
    ) -> Stream:
        if any(stream.handle == handle for stream in self.streams):
            raise HostAccessError(f"stream {handle!r}: there is one of this name already")
        if elements < 1:
            raise HostAccessError(f"stream {handle!r}: {elements} elements; at least 1 is needed")
        checked_type(dtype, f"stream {handle!r}")
        stream = Stream(len(self.streams), handle, dtype, int(elements), direction)
        self.streams.append(stream)
        return stream

    def createHostRead(self, handle: str, tensor: Tensor) -> None:
        self._access(handle, HostAccess(tensor, "read"))

    def createHostWrite(self, handle: str, tensor: Tensor) -> None:
        validate.check_writable(tensor, f"host write {handle!r}")
        self._access(handle, HostAccess(tensor, "write"))

    def _access(self, handle: str, access: HostAccess) -> None:
        if handle in self.host_accesses:
            raise HostAccessError(f"host access {handle!r}: there is one of this name already")
        self.host_accesses[handle] = access


def _bytes(tensor: Tensor) -> tuple[IntArray, IntArray]:
    """Give a tensor's intervals in bytes of the arena."""
    begins = tensor.begins * tensor.dtype.size
    return begins, begins + tensor.lengths * tensor.dtype.size
