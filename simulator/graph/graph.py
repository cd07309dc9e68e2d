"""The graph: variables, their tile mapping, compute sets, vertices and streams."""

from __future__ import annotations

import copy
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Mapping as OptionMapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from simulator.graph import placement, streams, user_vertices, validate, variables, views
from simulator.graph.arguments import refuse_in
from simulator.graph.debug import DebugContext, inside, users_location
from simulator.graph.errors import PoplarError
from simulator.graph.host_functions import HostFunction, new_host_function
from simulator.graph.mapping import Mapping, MappingTable
from simulator.graph.streams import RemoteBuffer, ReplicatedStreamMode, Stream
from simulator.graph.strides import stepped
from simulator.graph.target import Target, checked_target
from simulator.graph.tensor import Tensor
from simulator.graph.types import (
    Array,
    IntArray,
    Type,
    checked_name,
    checked_shape,
    checked_type,
    element_count,
)
from simulator.graph.user_vertices import Connectable, FieldRef, VertexRef
from simulator.graph.variables import Variable, VariableMappingMethod
from simulator.graph.vertex import Vertex, VertexGroup
from simulator.graph.views import Window, replication_factor

if TYPE_CHECKING:
    from simulator.graph.program import Program

TileIntervals = Sequence[Sequence[tuple[int, int]]]
_BatchKey = tuple["ComputeSet", type[Vertex], int]


@dataclass(frozen=True, slots=True, eq=False)
class ComputeSet:
    """A set of vertices that run together; `id` is its place in the graph's list of them."""

    id: int
    name: str
    debug_context: int = 0


@dataclass(frozen=True, slots=True)
class Function:
    """A program that several places call; `id` is its place in the list of functions."""

    id: int
    name: str


@dataclass(slots=True)
class _Shared:
    """What a graph and its views have in common and replace as they grow."""

    arena_bytes: int = 0
    mapping: tuple[tuple[int, int], Mapping] | None = None
    groups: list[VertexGroup] | None = None
    bounds: variables.Bounds = field(default_factory=variables.Bounds)


@refuse_in
class Graph:
    """A computation graph for a target, or for `replication_factor(n)` equal parts of it.

    A virtual or replicated graph is a view: a copy that shares all lists, with tiles of its own.

    >>> from simulator import poplar
    >>> graph = poplar.Graph(poplar.IPUModel("tiny").createDevice().getTarget())
    >>> graph.addVariable(poplar.FLOAT, [2, 3], "x").shape
    (2, 3)
    """

    def __init__(self, target: Target, replication: replication_factor | int = 1) -> None:
        target = checked_target(target)
        self.replication = views.checked_factor(target, replication)
        self.device_target = target
        self.target = replace(target, num_ipus=target.num_ipus // self.replication)
        self.top = self
        self.window = Window.whole(self.target.num_tiles)
        self.variables: list[Variable] = []
        self.initial_values: list[tuple[Tensor, Array]] = []
        self.replication_indexes: list[Tensor] = []
        self.compute_sets: list[ComputeSet] = []
        self.functions: list[tuple[Function, Program]] = []
        self.streams: list[Stream] = []
        self.remote_buffers: list[RemoteBuffer] = []
        self.host_reads: dict[str, Tensor] = {}
        self.host_writes: dict[str, Tensor] = {}
        self.host_functions: dict[str, HostFunction] = {}
        self.debug_contexts: list[DebugContext] = []
        self.virtual_tiles: list[IntArray] = []  # of the whole graph, by virtual graph
        self._shared = _Shared()
        self._mapping = MappingTable()
        self._batches: dict[_BatchKey, tuple[Graph, user_vertices.Batch]] = {}
        self._bulk: list[VertexGroup] = []
        self._codelets: dict[str, type[Vertex]] = {}
        self._scopes: list[int] = [0]

    def getTarget(self) -> Target:
        return self.target

    # Views
    @property
    def arena_bytes(self) -> int:
        """Count the bytes of all variables."""
        return self._shared.arena_bytes

    def holds(self, tensor: object) -> bool:
        """Return whether a tensor is of this graph or of a view of it."""
        return isinstance(tensor, Tensor) and tensor.graph.variables is self.variables

    def createVirtualGraph(self, tiles: int | Sequence[int], upperTile: int | None = None) -> Graph:
        """View some tiles: a number of each IPU, those of a list of each IPU, or [tiles, upper)."""
        chosen = views.virtual_tiles(self.target, tiles, upperTile)
        window = Window(self.window.tiles[:, chosen])
        self.virtual_tiles.append(window.tiles)
        return self._view(views.virtual_target(self.target, chosen), window)

    def createReplicatedGraph(self, replicationFactor: int) -> Graph:
        """View the first of so many equal parts; what is added to it is added to them all."""
        window = views.replicated_window(self.target, self.window, replicationFactor)
        ipus = self.target.num_ipus // window.replicas
        return self._view(replace(self.target, num_ipus=ipus), window)

    def _view(self, target: Target, window: Window) -> Graph:
        view = copy.copy(self)
        view.target, view.window = target, window
        return view

    def getReplicationFactor(self) -> int:
        return self.replication * self.window.replicas

    def getTopLevelGraph(self) -> Graph:
        """Return the graph that this one is a view of; a replicated one has none."""
        if self.replication > 1:
            raise PoplarError("getTopLevelGraph: a graph replicated from its start has no parent")
        return self.top

    def getNonReplicatedTensor(self, tensor: Tensor) -> Tensor:
        """Return a tensor of a replicated graph with its replicas as the first dimension."""
        return views.non_replicated(self.replication, tensor)

    # Functions
    def addFunction(self, program: Program, name: str = "") -> Function:
        """Add a program that `Call` can run from several places."""
        function = Function(len(self.functions), checked_name(name, "function"))
        self.functions.append((function, program))
        return function

    def addHostFunction(
        self, handle: str, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> HostFunction:
        """Add a function of the host; an argument is its type and number of values."""
        return new_host_function(self, handle, inputs, outputs)

    # Debug contexts
    def debug_context(
        self, name: str, layer: str = "poplar", arguments: dict[str, str] | None = None
    ) -> int:
        """Record a named place of the user's program; give its id."""
        checked_name(name, "variable or compute set")
        context_id, where = len(self.debug_contexts) + 1, users_location()
        self.debug_contexts.append(
            DebugContext(
                id=context_id, parentId=self._scopes[-1], name=name, layer=layer,
                arguments=arguments or {}, location=where,
            )
        )  # fmt: skip
        return context_id

    @contextmanager
    def debug_scope(self, name: str, layer: str, **arguments: str) -> Iterator[int]:
        """Make what is added inside children of a new debug context, made with these arguments."""
        context_id = self.debug_context(name, layer, arguments)
        with self.in_context(context_id):
            yield context_id

    def in_context(self, context_id: int) -> AbstractContextManager[None]:
        """Make what is added inside children of a debug context that is there."""
        return inside(self._scopes, context_id)

    # Variables
    def addVariable(
        self,
        type: Type,
        shape: Iterable[int],
        mappingMethod: VariableMappingMethod | str = VariableMappingMethod.NONE,
        name: str = "",
    ) -> Tensor:
        """Add a variable; its name may stand in the place of the mapping method."""
        method, name = variables.method_and_name(mappingMethod, name)
        what = f"variable {name!r}"
        added = self._add(checked_type(type, what), checked_shape(shape, what), None, name)
        if method is VariableMappingMethod.LINEAR:
            variables.map_linearly(self, added)
        return added

    def addConstant(
        self, type: Type, shape: Iterable[int], values: Any, name: str = "<const>"
    ) -> Tensor:
        what = f"constant {name!r}"
        sizes = checked_shape(shape, what)
        data = variables.filled(values, checked_type(type, what), sizes, what)
        return self._add(type, sizes, data, name)

    def addReplicationIndexConstant(self, name: str = "replicationIndex") -> Tensor:
        """Add a constant that holds the number of its replica: 0, 1, ..."""
        return variables.replica_number(self, name)

    def clone(self, tensor: Tensor, name: str = "", dtype: Type | None = None) -> Tensor:
        """Add a variable of the same shape, order and mapping; `clone(type, t, name)` of a type."""
        return variables.clone(self, *variables.type_last(tensor, name, dtype))

    def cloneN(self, tensor: Tensor, N: int, name: str = "", dtype: Type | None = None) -> Tensor:
        """Add N variables as `clone` does, `cloneN(type, t, N, name)` too; stack them."""
        return variables.clone_n(self, *variables.type_last(tensor, N, name, dtype))

    def _add(self, dtype: Type, shape: tuple[int, ...], values: Array | None, name: str) -> Tensor:
        variable = variables.new_variable(self, dtype, shape, values, name or "<anon>")
        self.variables.append(variable)
        self._shared.arena_bytes = variable.offset + variable.bytes
        first, elements = variable.offset // dtype.size, element_count(shape)
        return Tensor(self, dtype, shape, stepped(first, [(elements, 1)]))

    def variable_bounds(self) -> tuple[IntArray, IntArray]:
        """Return the first and last byte (not included) of every variable in the arena."""
        return self._shared.bounds.of(self.variables)

    def variable_at(self, byte: int) -> Variable:
        """Find the variable that holds a byte of the arena."""
        return self.variables[int(np.searchsorted(self.variable_bounds()[0], byte, "right")) - 1]

    # Tile mapping
    def setTileMapping(self, what: Tensor | VertexRef, tile: int | TileIntervals) -> None:
        """Put a tensor or vertex on a tile, or parts [begin, end) of a tensor on each tile."""
        if isinstance(what, VertexRef):
            placement.place_vertex(self, what, tile)
            self._shared.groups = None
        elif isinstance(tile, int | np.integer):
            placement.map_tensor(self, self._mapping, what, int(tile))
        else:
            self.map_ranges(what, *placement.listed_ranges(what, tile))

    def map_ranges(self, tensor: Tensor, low: IntArray, high: IntArray, tiles: IntArray) -> None:
        """Put the positions [low, high) of a flattened tensor on the tiles."""
        placement.map_ranges(self, self._mapping, tensor, low, high, tiles)

    def copy_mapping(self, source: Tensor, destination: Tensor) -> None:
        """Put each element of a tensor on the tile of the same element of another."""
        self.map_ranges(destination, *self.tile_ranges(source))

    def tile_ranges(self, tensor: Tensor) -> tuple[IntArray, IntArray, IntArray]:
        """Return the positions [low, high) of a flattened tensor that lie on one tile, in order."""
        return placement.tile_ranges(self, self._mapping, tensor)

    def getTileMapping(self, tensor: Tensor) -> list[list[tuple[int, int]]]:
        """List, for each tile, the parts [begin, end) of the flattened tensor that it holds."""
        return placement.listed_by_tile(self, self._mapping, tensor)

    def mapping_table(self, variables: list[int] | None = None) -> Mapping:
        """Find the mapped bytes of variables (all, when none are named), cut at them and tiles."""
        if variables is not None:
            return placement.settled_mapping(self, self._mapping, variables)
        version = (self._mapping.version, len(self.variables))
        if self._shared.mapping is None or self._shared.mapping[0] != version:
            self._shared.mapping = (version, placement.settled_mapping(self, self._mapping))
        return self._shared.mapping[1]

    # Vertices
    def addComputeSet(self, name: str = "") -> ComputeSet:
        context = self.debug_context(name or "<anon>")
        compute_set = ComputeSet(len(self.compute_sets), name or "<anon>", context)
        self.compute_sets.append(compute_set)
        return compute_set

    def addCodelets(self, *codelets: type[Vertex]) -> None:
        """Let `addVertex` find these classes by their names."""
        self._codelets |= {user_vertices.checked_codelet(c).__name__: c for c in codelets}

    def addVertex(
        self,
        cs: ComputeSet,
        vertexType: type[Vertex] | str,
        connections: OptionMapping[str, Connectable] | None = None,
        *,
        tile: int | None = None,
    ) -> VertexRef:
        codelet = user_vertices.codelet_class(self._codelets, vertexType)
        # Vertices that are added through different replicated views are multiplied apart.
        key = (cs, codelet, id(self.window) if self.window.replicas > 1 else 0)
        if key not in self._batches:
            self._batches[key] = (self, user_vertices.new_batch(self, cs, codelet))
        vertex = user_vertices.add(self._batches[key][1])
        self._shared.groups = None
        if tile is not None:
            self.setTileMapping(vertex, tile)
        for name, what in (connections or {}).items():
            self.connect(vertex[name], what)
        return vertex

    def connect(self, field: FieldRef, what: Connectable) -> None:
        user_vertices.connect(self, field, what)
        self._shared.groups = None

    def setFieldSize(self, field: FieldRef, size: int) -> None:
        """Set the elements of a vector (rows of a VectorList) that are joined one by one."""
        user_vertices.set_size(field, size)
        self._shared.groups = None

    def setInitialValue(self, what: FieldRef | Tensor, value: Any) -> None:
        """Set an initial-value field of a vertex, or what a tensor holds when it is loaded."""
        if isinstance(what, Tensor):
            self.initial_values.append(variables.initial_value(self, what, value))
        else:
            user_vertices.set_value(what, value)
            self._shared.groups = None

    def setPerfEstimate(self, vertex: VertexRef, cycles: int, flops: int = 0) -> None:
        user_vertices.set_estimate(vertex, cycles, flops)
        self._shared.groups = None

    setCycleEstimate = setPerfEstimate

    def add_vertices(self, group: VertexGroup) -> None:
        """Add a whole group of vertices at once."""
        if len(group):
            validate.check_group(self, group)
            self._bulk.append(views.placed_group(self, group))
            self._shared.groups = None

    def vertex_groups(self) -> list[VertexGroup]:
        """Return all vertices, by compute set; those added one by one batched by codelet."""
        if self._shared.groups is None:
            batched = (views.group_of_batch(view, batch) for view, batch in self._batches.values())
            groups = [*self._bulk, *batched]
            self._shared.groups = sorted(groups, key=lambda group: group.compute_set)
        return self._shared.groups

    def groups_of(self, compute_set: int) -> list[VertexGroup]:
        """Return the vertices of one compute set."""
        groups = self.vertex_groups()
        first = bisect_left(groups, compute_set, key=lambda group: group.compute_set)
        end = bisect_right(groups, compute_set, key=lambda group: group.compute_set)
        return groups[first:end]

    # Host
    def addHostToDeviceFIFO(
        self,
        handle: str,
        elementType: Type,
        numElements: int,
        replicatedMode: ReplicatedStreamMode = ReplicatedStreamMode.REPLICATE,
        options: OptionMapping[str, object] | None = None,
    ) -> Stream:
        kind = (elementType, numElements, replicatedMode)
        return streams.new_stream(self, "in", handle, *kind, options)

    def addDeviceToHostFIFO(
        self,
        handle: str,
        elementType: Type,
        numElements: int,
        options: OptionMapping[str, object] | None = None,
    ) -> Stream:
        kind = (elementType, numElements, ReplicatedStreamMode.REPLICATE)
        return streams.new_stream(self, "out", handle, *kind, options)

    def addRemoteBuffer(
        self,
        handle: str,
        elementType: Type,
        numElements: int,
        repeats: int = 1,
        rearrangeOnHost: bool = False,
        optimiseMemory: bool = False,
    ) -> RemoteBuffer:
        return streams.new_remote_buffer(
            self, handle, elementType, numElements, repeats, rearrangeOnHost, optimiseMemory
        )

    def createHostRead(self, handle: str, t: Tensor, rearrangeOnHost: bool = False) -> None:
        """Let the host read a tensor, rearranged or not; a handle may be that of a host write."""
        streams.checked_handle("host read", handle, self.host_reads)
        self.host_reads[handle] = views.everywhere(t, self)

    def createHostWrite(self, handle: str, t: Tensor, rearrangeOnHost: bool = False) -> None:
        """Let the host write a tensor; as for `createHostRead`."""
        tensor = views.everywhere(t, self)
        validate.check_writable(tensor, f"host write {handle!r}")
        streams.checked_handle("host write", handle, self.host_writes)
        self.host_writes[handle] = tensor
