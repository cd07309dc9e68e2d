"""The graph: variables, their tile mapping, compute sets, vertices and streams."""

from __future__ import annotations

import copy
from bisect import bisect_left, bisect_right
from collections.abc import Mapping as OptionMapping
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from simulator.graph import replicas
from simulator.graph.arguments import refuse_in
from simulator.graph.errors import GraphConnectionError, PoplarError
from simulator.graph.geometry.intervals import Interval
from simulator.graph.host import streams
from simulator.graph.host.host_functions import HostFunction, checked_function
from simulator.graph.host.streams import RemoteBuffer, ReplicatedStreamMode, Stream
from simulator.graph.machine.target import Target, checked_target
from simulator.graph.mapping import TileIntervals as TileIntervals
from simulator.graph.program import Function as Function
from simulator.graph.program import Program
from simulator.graph.tensors import views
from simulator.graph.tensors.regions import sorted_regions
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.tensors.views import Window, replication_factor
from simulator.graph.types import IntArray, Type, checked_name
from simulator.graph.validation import checks
from simulator.graph.variable_graph import VariableGraph
from simulator.graph.vertices import user_vertices
from simulator.graph.vertices.user_vertices import Connectable, FieldRef, VertexRef
from simulator.graph.vertices.vertex import ComputeSet as ComputeSet
from simulator.graph.vertices.vertex import Vertex, VertexGroup

_BatchKey = tuple["ComputeSet", type[Vertex], int]


@dataclass(slots=True)
class Grouped:
    """All vertices in groups, until another one is added."""

    groups: list[VertexGroup] | None = None


@refuse_in
class Graph(VariableGraph):
    """A computation graph for a target, or for `replication_factor(n)` equal parts of it.

    A virtual or replicated graph is a view: a copy that shares all lists, with tiles of its own.

    >>> from simulator import poplar
    >>> graph = poplar.Graph(poplar.IPUModel("tiny").createDevice().getTarget())
    >>> graph.addVariable(poplar.FLOAT, [2, 3], "x").shape
    (2, 3)
    """

    unplanned = ""  # why a product of the program has no plan: the graph is what it holds

    def __init__(self, target: Target, replication: replication_factor | int = 1) -> None:
        target = checked_target(target)
        factor = views.checked_factor(target, replication)
        self.device_target = target
        super().__init__(replace(target, num_ipus=target.num_ipus // factor), factor)
        self.top: Graph = self
        self.compute_sets: list[ComputeSet] = []
        self.functions: list[tuple[Function, Program]] = []
        self.streams: list[Stream] = []
        self.remote_buffers: list[RemoteBuffer] = []
        self.host_reads: dict[str, Tensor] = {}
        self.host_writes: dict[str, Tensor] = {}
        self.host_functions: dict[str, HostFunction] = {}
        self.virtual_tiles: list[IntArray] = []  # of the whole graph, by virtual graph
        self._grouped = Grouped()
        self._batches: dict[_BatchKey, tuple[Graph, user_vertices.Batch]] = {}
        self._bulk: list[VertexGroup] = []
        self._codelets: dict[str, type[Vertex]] = {}

    def getTarget(self) -> Target:
        """Return the target of the graph.

        >>> from simulator import poplar
        >>> graph = poplar.Graph(poplar.IPUModel("tiny").createDevice().getTarget())  # 4 tiles
        >>> graph.getTarget().getNumTiles()
        4
        """
        return self.target

    # Views
    def createVirtualGraph(self, tiles: int | Sequence[int], upperTile: int | None = None) -> Graph:
        """View some tiles: a number of each IPU, those of a list of each IPU, or [tiles, upper).

        >>> from simulator import poplar
        >>> graph = poplar.Graph(poplar.IPUModel("tiny").createDevice().getTarget())  # 4 tiles
        >>> half = graph.createVirtualGraph([2, 3])
        >>> x = half.addVariable(poplar.FLOAT, [2], "x")
        >>> half.setTileMapping(x, 0)
        >>> graph.getTileMapping(x)
        [[], [], [(0, 2)], []]
        """
        selection = views.virtual_tiles(self.target, tiles, upperTile)
        window = Window(self.window.tiles[:, selection])
        self.virtual_tiles.append(window.tiles)
        return self._view(views.virtual_target(self.target, selection), window)

    def createReplicatedGraph(self, replicationFactor: int) -> Graph:
        """View the first of so many equal parts; what is added to it is added to them all.

        >>> from simulator import poplar
        >>> device = poplar.IPUModel(numIPUs=2, tilesPerIPU=4).createDevice()
        >>> graph = poplar.Graph(device.getTarget())
        >>> graph.createReplicatedGraph(2).getTarget().getNumTiles()
        4
        """
        window = views.replicated_window(self.target, self.window, replicationFactor)
        ipus = self.target.num_ipus // window.replicas
        return self._view(replace(self.target, num_ipus=ipus), window)

    def _view(self, target: Target, window: Window) -> Graph:
        view = copy.copy(self)
        view.target, view.window = target, window
        return view

    def getTopLevelGraph(self) -> Graph:
        """Return the graph that this one is a view of; a replicated one has none.

        >>> from simulator import poplar
        >>> graph = poplar.Graph(poplar.IPUModel("tiny").createDevice().getTarget())  # 4 tiles
        >>> graph.createVirtualGraph([2, 3]).getTopLevelGraph() is graph
        True
        """
        if self.replication > 1:
            raise PoplarError("getTopLevelGraph: a graph replicated from its start has no parent")
        return self.top

    def getNonReplicatedTensor(self, tensor: Tensor) -> Tensor:
        """Return a tensor of a replicated graph with its replicas as the first dimension.

        >>> from simulator import poplar
        >>> device = poplar.IPUModel(numIPUs=2, tilesPerIPU=4).createDevice()
        >>> graph = poplar.Graph(device.getTarget())
        >>> x = graph.createReplicatedGraph(2).addVariable(poplar.FLOAT, [3], "x")
        >>> graph.getNonReplicatedTensor(x).shape
        (2, 3)
        """
        return replicas.non_replicated(self.replication, tensor)

    # Functions
    def addFunction(self, program: Program, name: str = "") -> Function:
        """Add a program that `Call` can run from several places.

        >>> from simulator import poplar
        >>> from simulator.trial import Trial
        >>> trial = Trial()
        >>> graph, x = trial.graph, trial.tensor([1.0, 2.0])
        >>> y = trial.tensor([3.0, 4.0])
        >>> copy = graph.addFunction(poplar.program.Copy(x, y))
        >>> trial.prog.add(poplar.program.Call(copy))
        >>> trial.values(y)
        [1.0, 2.0]
        """
        function = Function(len(self.functions), checked_name(name, "function"))
        self.functions.append((function, program))
        return function

    def addHostFunction(
        self, handle: str, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> HostFunction:
        """Add a function of the host; an argument is its type and number of values.

        >>> from simulator import poplar
        >>> graph = poplar.Graph(poplar.IPUModel("tiny").createDevice().getTarget())  # 4 tiles
        >>> sizes = [(poplar.FLOAT, 2)]
        >>> graph.addHostFunction("double", sizes, sizes).handle
        'double'
        """
        checked_function(handle, self.host_functions, inputs, outputs)
        function = HostFunction(
            handle,
            tuple(
                self.addDeviceToHostFIFO(f"{handle}/input{number}", *argument)
                for number, argument in enumerate(inputs)
            ),
            tuple(
                self.addHostToDeviceFIFO(f"{handle}/output{number}", *argument)
                for number, argument in enumerate(outputs)
            ),
        )
        self.host_functions[handle] = function
        return function

    # Tile mapping
    def setTileMapping(self, what: Tensor | VertexRef, tile: int | TileIntervals) -> None:
        """Put a tensor or vertex on a tile, or parts [begin, end) of a tensor on each tile.

        >>> from simulator import poplar
        >>> graph = poplar.Graph(poplar.IPUModel("tiny").createDevice().getTarget())  # 4 tiles
        >>> x = graph.addVariable(poplar.FLOAT, [2], "x")
        >>> graph.setTileMapping(x, 1)
        >>> graph.getTileMapping(x)
        [[], [(0, 2)], [], []]
        """
        if isinstance(what, VertexRef):
            user_vertices.place_vertex(self, what, tile)
            self._grouped.groups = None
        else:
            self._map_tensor(what, tile)

    def getSortedContiguousRegions(
        self,
        t: Tensor,
        regions: Sequence[tuple[int, int]] | None = None,
        removeAliasedIntervals: bool = False,
    ) -> list[list[Interval]]:
        """List parts [begin, end) of a flattened tensor by where they lie in memory.

        Parts that follow one another there are one list; only `regions` of the tensor count.

        >>> from simulator import poplar
        >>> graph = poplar.Graph(poplar.IPUModel("tiny").createDevice().getTarget())  # 4 tiles
        >>> x = graph.addVariable(poplar.FLOAT, [2], "x")
        >>> graph.getSortedContiguousRegions(x.reverse(0))
        [[(1, 2), (0, 1)]]
        """
        within = None if regions is None else [(pair[0], pair[1]) for pair in regions]
        return sorted_regions(t, within, without_aliases=removeAliasedIntervals)

    # Vertices
    def addComputeSet(self, name: str = "") -> ComputeSet:
        """Add a set of vertices, which `Execute` runs at the same time.

        >>> from simulator import poplar
        >>> from simulator.trial import Trial
        >>> trial = Trial()
        >>> graph, x = trial.graph, trial.tensor([1.0, 2.0])
        >>> class Double(poplar.Vertex):
        ...     x = poplar.InOut(poplar.Vector(poplar.FLOAT))
        ...     def compute(self):
        ...         self.x[:] = 2 * self.x
        >>> compute_set = graph.addComputeSet("double")
        >>> vertex = graph.addVertex(compute_set, Double, {"x": x}, tile=0)
        >>> graph.setPerfEstimate(vertex, 10)
        >>> trial.prog.add(poplar.program.Execute(compute_set))
        >>> trial.values(x)
        [2.0, 4.0]
        """
        context = self.debug_context(name or "<anon>")
        compute_set = ComputeSet(len(self.compute_sets), name or "<anon>", context)
        self.compute_sets.append(compute_set)
        return compute_set

    def addCodelets(self, *codelets: type[Vertex]) -> None:
        """Let `addVertex` find these classes by their names.

        >>> from simulator import poplar
        >>> from simulator.trial import Trial
        >>> trial = Trial()
        >>> graph, x = trial.graph, trial.tensor([1.0, 2.0])
        >>> class Double(poplar.Vertex):
        ...     x = poplar.InOut(poplar.Vector(poplar.FLOAT))
        ...     def compute(self):
        ...         self.x[:] = 2 * self.x
        >>> compute_set = graph.addComputeSet("double")
        >>> graph.addCodelets(Double)
        >>> vertex = graph.addVertex(compute_set, "Double", {"x": x}, tile=0)
        >>> graph.setPerfEstimate(vertex, 10)
        >>> trial.prog.add(poplar.program.Execute(compute_set))
        >>> trial.values(x)
        [2.0, 4.0]
        """
        self._codelets |= {user_vertices.checked_codelet(c).__name__: c for c in codelets}

    def addVertex(
        self,
        cs: ComputeSet,
        vertexType: type[Vertex] | str,
        connections: OptionMapping[str, Connectable] | None = None,
        *,
        tile: int | None = None,
    ) -> VertexRef:
        """Add a vertex to a compute set, with its fields connected and on a tile, or not yet.

        >>> from simulator import poplar
        >>> from simulator.trial import Trial
        >>> trial = Trial()
        >>> graph, x = trial.graph, trial.tensor([1.0, 2.0])
        >>> class Double(poplar.Vertex):
        ...     x = poplar.InOut(poplar.Vector(poplar.FLOAT))
        ...     def compute(self):
        ...         self.x[:] = 2 * self.x
        >>> compute_set = graph.addComputeSet("double")
        >>> vertex = graph.addVertex(compute_set, Double, {"x": x}, tile=0)
        >>> graph.setPerfEstimate(vertex, 10)
        >>> trial.prog.add(poplar.program.Execute(compute_set))
        >>> trial.values(x)
        [2.0, 4.0]
        """
        codelet = user_vertices.codelet_class(self._codelets, vertexType)
        # Vertices that are added through different replicated views are multiplied apart.
        key = (cs, codelet, id(self.window) if self.window.replicas > 1 else 0)
        if key not in self._batches:
            self._batches[key] = (self, self._new_batch(cs, codelet))
        vertex = user_vertices.add(self._batches[key][1])
        self._grouped.groups = None
        if tile is not None:
            self.setTileMapping(vertex, tile)
        for name, connection in (connections or {}).items():
            self.connect(vertex[name], connection)
        return vertex

    def connect(self, field: FieldRef, what: Connectable) -> None:
        """Connect a field of a vertex to a tensor, or what else it takes.

        >>> from simulator import poplar
        >>> from simulator.trial import Trial
        >>> trial = Trial()
        >>> graph, x = trial.graph, trial.tensor([1.0, 2.0])
        >>> class Double(poplar.Vertex):
        ...     x = poplar.InOut(poplar.Vector(poplar.FLOAT))
        ...     def compute(self):
        ...         self.x[:] = 2 * self.x
        >>> compute_set = graph.addComputeSet("double")
        >>> vertex = graph.addVertex(compute_set, Double, tile=0)
        >>> graph.connect(vertex["x"], x)
        >>> graph.setPerfEstimate(vertex, 10)
        >>> trial.prog.add(poplar.program.Execute(compute_set))
        >>> trial.values(x)
        [2.0, 4.0]
        """
        user_vertices.connect(self, field, what)
        self._grouped.groups = None

    def setFieldSize(self, field: FieldRef, size: int) -> None:
        """Set the elements of a vector (rows of a VectorList) that are joined one by one.

        >>> from simulator import poplar
        >>> from simulator.trial import Trial
        >>> trial = Trial()
        >>> graph, x = trial.graph, trial.tensor([1.0, 2.0])
        >>> class Double(poplar.Vertex):
        ...     x = poplar.InOut(poplar.Vector(poplar.FLOAT))
        ...     def compute(self):
        ...         self.x[:] = 2 * self.x
        >>> compute_set = graph.addComputeSet("double")
        >>> vertex = graph.addVertex(compute_set, Double, tile=0)
        >>> graph.setFieldSize(vertex["x"], 2)
        >>> for place in range(2):
        ...     graph.connect(vertex["x"][place], x[place])
        >>> graph.setPerfEstimate(vertex, 10)
        >>> trial.prog.add(poplar.program.Execute(compute_set))
        >>> trial.values(x)
        [2.0, 4.0]
        """
        user_vertices.set_size(field, size)
        self._grouped.groups = None

    def setInitialValue(self, what: FieldRef | Tensor, value: Any) -> None:
        """Set an initial-value field of a vertex, or what a tensor holds when it is loaded.

        >>> from simulator import poplar
        >>> graph = poplar.Graph(poplar.IPUModel("tiny").createDevice().getTarget())  # 4 tiles
        >>> x = graph.addVariable(poplar.FLOAT, [2], "x")
        >>> graph.setTileMapping(x, 0)
        >>> graph.setInitialValue(x, [1.0, 2.0])
        >>> graph.createHostRead("x", x)
        >>> engine = poplar.Engine(graph, poplar.program.Sequence())
        >>> engine.load(poplar.IPUModel("tiny").createDevice())
        >>> engine.readTensor("x").tolist()
        [1.0, 2.0]
        """
        if isinstance(what, Tensor):
            self._set_initial_value(what, value)
        else:
            user_vertices.set_value(what, value)
            self._grouped.groups = None

    def setPerfEstimate(self, vertex: VertexRef, cycles: int, flops: int = 0) -> None:
        """Set the cycles that a vertex takes, and its floating-point operations.

        >>> from simulator import poplar
        >>> from simulator.trial import Trial
        >>> trial = Trial()
        >>> graph, x = trial.graph, trial.tensor([1.0, 2.0])
        >>> class Double(poplar.Vertex):
        ...     x = poplar.InOut(poplar.Vector(poplar.FLOAT))
        ...     def compute(self):
        ...         self.x[:] = 2 * self.x
        >>> compute_set = graph.addComputeSet("double")
        >>> vertex = graph.addVertex(compute_set, Double, {"x": x}, tile=0)
        >>> graph.setPerfEstimate(vertex, 10)
        >>> trial.prog.add(poplar.program.Execute(compute_set))
        >>> trial.values(x)
        [2.0, 4.0]
        """
        user_vertices.set_estimate(vertex, cycles, flops)
        self._grouped.groups = None

    setCycleEstimate = setPerfEstimate

    def add_vertices(self, group: VertexGroup) -> None:
        """Add a whole group of vertices at once."""
        if len(group):
            checks.check_group(self, group)
            self._bulk.append(replicas.placed_group(self, group))
            self._grouped.groups = None

    def _new_batch(self, compute_set: ComputeSet, codelet: type[Vertex]) -> user_vertices.Batch:
        """Start a batch of vertices of a class in a compute set of this graph."""
        if self.compute_sets[compute_set.id : compute_set.id + 1] != [compute_set]:
            raise GraphConnectionError(f"compute set {compute_set.name!r}: is not of this graph")
        return user_vertices.new_batch(compute_set, codelet)

    def _group(self, batch: user_vertices.Batch) -> VertexGroup:
        """Return the group of vertices that were added one by one through this view."""
        group = user_vertices.group_of_batch(self, batch)
        constants = user_vertices.constant_places(batch)
        tiles = np.array([tile for _, tile in constants], dtype=np.int64)
        view, places = self.top, tiles
        if self.window.replicas > 1:
            view, places = self, self.window.inside(tiles)
        for (constant, _), tile in zip(constants, places.tolist(), strict=True):
            view._map_tensor(constant, tile)
        return group

    def vertex_groups(self) -> list[VertexGroup]:
        """Return all vertices, by compute set; those added one by one batched by codelet."""
        if self._grouped.groups is None:
            batched = (view._group(batch) for view, batch in self._batches.values())
            groups = [*self._bulk, *batched]
            self._grouped.groups = sorted(groups, key=lambda group: group.compute_set)
        return self._grouped.groups

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
        """Add a stream to the device, which `Copy` takes values from.

        >>> from simulator import poplar
        >>> graph = poplar.Graph(poplar.IPUModel("tiny").createDevice().getTarget())  # 4 tiles
        >>> x = graph.addVariable(poplar.FLOAT, [2], "x")
        >>> stream = graph.addHostToDeviceFIFO("in", poplar.FLOAT, 2)
        >>> copy = poplar.program.Copy(stream, x)
        >>> stream.handle
        'in'
        """
        kind = (elementType, numElements, replicatedMode)
        return streams.new_stream(self, self.streams, "in", handle, *kind, options)

    def addDeviceToHostFIFO(
        self,
        handle: str,
        elementType: Type,
        numElements: int,
        options: OptionMapping[str, object] | None = None,
    ) -> Stream:
        """Add a stream to the host, which `Copy` gives values to.

        >>> from simulator import poplar
        >>> graph = poplar.Graph(poplar.IPUModel("tiny").createDevice().getTarget())  # 4 tiles
        >>> x = graph.addVariable(poplar.FLOAT, [2], "x")
        >>> stream = graph.addDeviceToHostFIFO("out", poplar.FLOAT, 2)
        >>> copy = poplar.program.Copy(x, stream)
        >>> stream.handle
        'out'
        """
        kind = (elementType, numElements, ReplicatedStreamMode.REPLICATE)
        return streams.new_stream(self, self.streams, "out", handle, *kind, options)

    def addRemoteBuffer(
        self,
        handle: str,
        elementType: Type,
        numElements: int,
        repeats: int = 1,
        rearrangeOnHost: bool = False,
        optimiseMemory: bool = False,
    ) -> RemoteBuffer:
        """Add rows of values in the host's memory, which `Copy` reads and writes.

        >>> from simulator import poplar
        >>> graph = poplar.Graph(poplar.IPUModel("tiny").createDevice().getTarget())  # 4 tiles
        >>> x = graph.addVariable(poplar.FLOAT, [2], "x")
        >>> rows = graph.addRemoteBuffer("rows", poplar.FLOAT, 2, 3)  # three rows of two
        >>> copy = poplar.program.Copy(x, rows)
        >>> rows.handle
        'rows'
        """
        return streams.new_remote_buffer(
            self,
            self.remote_buffers,
            handle,
            elementType,
            numElements,
            repeats,
            rearrangeOnHost,
            optimiseMemory,
        )

    def createHostRead(self, handle: str, t: Tensor, rearrangeOnHost: bool = False) -> None:
        """Let the host read a tensor, rearranged or not; a handle may be that of a host write.

        >>> from simulator import poplar
        >>> from simulator.trial import Trial
        >>> trial = Trial()
        >>> graph, x = trial.graph, trial.tensor([1.0, 2.0])
        >>> graph.createHostRead("x", x)
        >>> sorted(graph.host_reads)
        ['x']
        """
        streams.checked_handle("host read", handle, self.host_reads)
        self.host_reads[handle] = replicas.everywhere(t, self)

    def createHostWrite(self, handle: str, t: Tensor, rearrangeOnHost: bool = False) -> None:
        """Let the host write a tensor; as for `createHostRead`.

        >>> from simulator import poplar
        >>> graph = poplar.Graph(poplar.IPUModel("tiny").createDevice().getTarget())  # 4 tiles
        >>> x = graph.addVariable(poplar.FLOAT, [2], "x")
        >>> graph.createHostWrite("x", x)
        >>> sorted(graph.host_writes)
        ['x']
        """
        tensor = replicas.everywhere(t, self)
        checks.check_writable(tensor, f"host write {handle!r}")
        streams.checked_handle("host write", handle, self.host_writes)
        self.host_writes[handle] = tensor


def frozen(graph: Graph) -> Graph:
    """Return a graph as it is now: what is added to it afterwards is no part of it."""
    graph.vertex_groups()  # made once, for both
    snapshot = copy.copy(graph)
    snapshot.top = snapshot
    for name, value in vars(graph).items():
        if isinstance(value, list | dict):
            setattr(snapshot, name, value.copy())
        elif name in ("_bounds", "_mapping", "_settled", "_grouped"):
            parts = {part.name: copy.copy(getattr(value, part.name)) for part in fields(value)}
            setattr(snapshot, name, replace(value, **parts))
    return snapshot
