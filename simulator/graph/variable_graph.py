"""A graph without vertices: variables and constants, where they lie, and who has made them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

import numpy as np

from simulator.graph import placement
from simulator.graph.debug import DebugContext, inside, users_location
from simulator.graph.errors import PoplarError, TileMappingError
from simulator.graph.geometry.intervals import Interval
from simulator.graph.geometry.patterns import Shifted, packed, placed
from simulator.graph.geometry.strides import Strides, stepped
from simulator.graph.machine.target import Target
from simulator.graph.mapping import Mapping, MappingTable, TileIntervals
from simulator.graph.replicas import everywhere
from simulator.graph.tensors.arena import Arena
from simulator.graph.tensors.tensor import Tensor, concat
from simulator.graph.tensors.variables import (
    TensorCloneMethod,
    VariableMappingMethod,
    filled,
    method_and_name,
    type_last,
)
from simulator.graph.types import (
    UNSIGNED_INT,
    Array,
    IntArray,
    Type,
    checked_name,
    checked_shape,
    checked_type,
    element_count,
)
from simulator.graph.validation.checks import check_writable


@dataclass(slots=True)
class Settled:
    """The mapping of all variables, and the version of the table of which it is."""

    mapping: tuple[tuple[int, int], Mapping] | None = None


class VariableGraph(Arena):
    """Variables, their tile mapping, and the debug contexts of what is added."""

    def __init__(self, target: Target, replication: int) -> None:
        super().__init__(target, replication)
        self.initial_values: list[tuple[Tensor, Array]] = []
        self.replication_indexes: list[Tensor] = []
        self.debug_contexts: list[DebugContext] = []
        self._scopes: list[int] = [0]
        self._mapping = MappingTable()
        self._settled = Settled()

    def holds(self, tensor: object) -> bool:
        """Return whether a tensor is of this graph or of a view of it.

        >>> from simulator import poplar
        >>> graph = poplar.Graph(poplar.IPUModel("tiny").createDevice().getTarget())  # 4 tiles
        >>> x = graph.addVariable(poplar.FLOAT, [2], "x")
        >>> other = poplar.Graph(graph.getTarget())
        >>> graph.holds(x), other.holds(x)
        (True, False)
        """
        return isinstance(tensor, Tensor) and tensor.graph.variables is self.variables

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
        """Add a variable; its name may stand in the place of the mapping method.

        >>> from simulator import poplar
        >>> graph = poplar.Graph(poplar.IPUModel("tiny").createDevice().getTarget())  # 4 tiles
        >>> graph.addVariable(poplar.FLOAT, [2, 3], "x").shape
        (2, 3)
        """
        method, name = method_and_name(mappingMethod, name)
        subject = f"variable {name!r}"
        added = self._add(checked_type(type, subject), checked_shape(shape, subject), None, name)
        if method is VariableMappingMethod.LINEAR:
            _map_linearly(self, added)
        return added

    def addConstant(
        self, type: Type, shape: Iterable[int], values: object, name: str = "<const>"
    ) -> Tensor:
        """Add a constant: one value for all elements, or a value for each.

        >>> from simulator import poplar
        >>> from simulator.trial import Trial
        >>> trial = Trial()
        >>> ones = trial.graph.addConstant(poplar.FLOAT, [2], 1.0)
        >>> trial.graph.setTileMapping(ones, 0)
        >>> trial.values(ones)
        [1.0, 1.0]
        """
        subject = f"constant {name!r}"
        sizes = checked_shape(shape, subject)
        data = filled(values, checked_type(type, subject), sizes, subject)
        return self._add(type, sizes, data, name)

    def addReplicationIndexConstant(self, name: str = "replicationIndex") -> Tensor:
        """Add a constant that holds the number of its replica: 0, 1, ...

        >>> from simulator import poplar
        >>> graph = poplar.Graph(poplar.IPUModel("tiny").createDevice().getTarget())  # 4 tiles
        >>> graph.addReplicationIndexConstant().elementType() == poplar.UNSIGNED_INT
        True
        """
        number = self.addConstant(UNSIGNED_INT, [], 0, name)
        self.replication_indexes.append(everywhere(number))
        return number

    def clone(
        self,
        tensor: Tensor,
        name: str = "",
        dtype: Type | TensorCloneMethod | None = None,
        method: TensorCloneMethod = TensorCloneMethod.PRESERVE_ORDER_UNLESS_ALIASES,
    ) -> Tensor:
        """Add a variable of the same shape, order and mapping; `clone(type, t, name)` of a type.

        A method may stand behind the name, as in C++.

        >>> from simulator import poplar
        >>> graph = poplar.Graph(poplar.IPUModel("tiny").createDevice().getTarget())  # 4 tiles
        >>> x = graph.addVariable(poplar.FLOAT, [2], "x")
        >>> graph.setTileMapping(x, 1)
        >>> graph.getTileMapping(graph.clone(x))
        [[], [(0, 2)], [], []]
        """
        if isinstance(dtype, TensorCloneMethod):
            method, dtype = dtype, None
        tensor, name, kind = type_last(tensor, name, dtype)
        if method is TensorCloneMethod.PRESERVE_ORDER_UNLESS_ALIASES:
            return _clone(self, tensor, name, kind)
        return _clone_by(self, tensor, name, kind, method)

    def cloneN(self, tensor: Tensor, N: int, name: str = "", dtype: Type | None = None) -> Tensor:
        """Add N variables as `clone` does, `cloneN(type, t, N, name)` too; stack them.

        >>> from simulator import poplar
        >>> graph = poplar.Graph(poplar.IPUModel("tiny").createDevice().getTarget())  # 4 tiles
        >>> x = graph.addVariable(poplar.FLOAT, [2], "x")
        >>> graph.cloneN(x, 3).shape
        (3, 2)
        """
        return _clone_n(self, *type_last(tensor, N, name, dtype))

    def _add(self, dtype: Type, shape: tuple[int, ...], values: Array | None, name: str) -> Tensor:
        name = name or "<anon>"
        variable = self._place(dtype, shape, values, name, self.debug_context(name))
        first, elements = variable.offset // dtype.size, element_count(shape)
        return Tensor(self, dtype, shape, stepped(first, [(elements, 1)]))

    def _set_initial_value(self, tensor: Tensor, values: object) -> None:
        """Keep what a tensor, in each replica, holds when the program is loaded."""
        subject = f"initial value of {tensor.describe()}"
        check_writable(tensor, subject)
        replicated = everywhere(tensor, self)
        data = filled(values, tensor.dtype, tensor.shape, subject).reshape(tensor.shape)
        self.initial_values.append((replicated, np.broadcast_to(data, replicated.shape)))

    # Tile mapping
    def _map_tensor(self, tensor: Tensor, tile: int | TileIntervals) -> None:
        """Put a tensor on a tile, or parts [begin, end) of it on each tile."""
        if isinstance(tile, int | np.integer):
            placement.map_tensor(self, self._mapping, tensor, int(tile))
        else:
            self.map_ranges(tensor, *placement.listed_ranges(tensor, tile))

    def map_ranges(self, tensor: Tensor, low: IntArray, high: IntArray, tiles: IntArray) -> None:
        """Put the positions [low, high) of a flattened tensor on the tiles."""
        placement.map_ranges(self, self._mapping, tensor, low, high, tiles)

    def copy_mapping(self, source: Tensor, destination: Tensor) -> None:
        """Put each element of a tensor on the tile of the same element of another."""
        self.map_ranges(destination, *self.tile_ranges(source))

    def tile_ranges(self, tensor: Tensor) -> tuple[IntArray, IntArray, IntArray]:
        """Return the positions [low, high) of a flattened tensor that lie on one tile, in order."""
        return placement.tile_ranges(self, self._mapping, tensor)

    def getTileMapping(self, tensor: Tensor, requireComplete: bool = True) -> list[list[Interval]]:
        """List, for each tile, the parts [begin, end) of the flattened tensor that it holds.

        Raises TileMappingError if it is not mapped whole, unless that is not required; a view of a
        graph gives what lies on its tiles.

        >>> from simulator import poplar
        >>> graph = poplar.Graph(poplar.IPUModel("tiny").createDevice().getTarget())  # 4 tiles
        >>> x = graph.addVariable(poplar.FLOAT, [2], "x")
        >>> graph.setTileMapping(x, 1)
        >>> graph.getTileMapping(x)
        [[], [(0, 2)], [], []]
        """
        listed = placement.listed_by_tile(self, self._mapping, tensor)
        mapped, elements = sum(p.size() for parts in listed for p in parts), tensor.numElements()
        if requireComplete and self is self.top and mapped < elements:
            raise TileMappingError(
                f"getTileMapping: {tensor!r}: {mapped} of {elements} elements are mapped"
            )
        return listed

    def mapping_table(self, variables: list[int] | None = None) -> Mapping:
        """Return the mapped bytes of variables (by default of all), cut at variables and tiles."""
        if variables is not None:
            return placement.settled_mapping(self, self._mapping, variables)
        version = (self._mapping.version, len(self.variables))
        if self._settled.mapping is None or self._settled.mapping[0] != version:
            self._settled.mapping = (version, placement.settled_mapping(self, self._mapping))
        return self._settled.mapping[1]

    def let_go_of_mapping_table(self) -> None:
        """Free the table of all variables, which is made anew when it is asked for."""
        self._settled.mapping = None


def _map_linearly(graph: VariableGraph, tensor: Tensor) -> None:
    """Map as many elements to each tile; the first tiles take what is over, one each."""
    tiles = np.arange(graph.target.num_tiles + 1)
    tile_elements, over = divmod(tensor.numElements(), graph.target.num_tiles)
    bounds = tile_elements * tiles + np.minimum(tiles, over)
    used = tiles[: graph.target.num_tiles if tile_elements else over]
    graph.map_ranges(tensor, bounds[used], bounds[used + 1], used)


def _clone(graph: VariableGraph, tensor: Tensor, name: str, dtype: Type | None) -> Tensor:
    """Add a variable of the same shape, order in memory and mapping as a tensor."""
    if isinstance(tensor.places, Strides) and (upward := tensor.places.ascending()):
        copy = graph.addVariable(dtype or tensor.dtype, tensor.shape, name)
        flat = (tensor.numElements(),)
        graph.copy_mapping(tensor.at(flat, upward), copy.flatten())
        return copy.at(tensor.shape, tensor.places.packed(int(copy.begins[0])))
    copy = graph.addVariable(dtype or tensor.dtype, tensor.shape, name).flatten()
    first = int(copy.begins[0]) if len(copy.begins) else 0
    if isinstance(tensor.places, Shifted) and tensor.places.pattern.dense:
        upward = stepped(tensor.places.first, [(tensor.numElements(), 1)])
        graph.copy_mapping(tensor.at(copy.shape, upward), copy)
        return copy.at(tensor.shape, Shifted(first, tensor.places.pattern))
    places, order = tensor.elements().reshape(-1), tensor.upward()
    graph.copy_mapping(tensor.view(places[order]), copy)
    source_pattern = tensor.places.pattern if isinstance(tensor.places, Shifted) else None
    pattern = packed(order) if source_pattern is None else source_pattern.packed(lambda: order)
    result = copy.at(tensor.shape, placed(first, pattern))
    result.keep_upward(order)
    return result


def _clone_by(
    graph: VariableGraph, tensor: Tensor, name: str, dtype: Type | None, method: TensorCloneMethod
) -> Tensor:
    """Add a clone in another order, or one whose elements stand twice where the tensor's do."""
    elements = tensor.elements().reshape(-1)
    if not method.aliases:
        copy = graph.addVariable(dtype or tensor.dtype, tensor.shape, name)
        graph.copy_mapping(tensor, copy)
        return copy
    distinct, place = np.unique(elements, return_inverse=True)
    if method is TensorCloneMethod.GATHER_AND_PRESERVE_TILE_ORDER_AND_ALIASES:
        low, high, tiles = graph.tile_ranges(tensor.view(distinct))
        by_tile = np.argsort(np.repeat(tiles, high - low), kind="stable")
        rank = np.empty_like(by_tile)
        rank[by_tile] = np.arange(len(by_tile))
        distinct, place = distinct[by_tile], rank[place]
    copy = graph.addVariable(dtype or tensor.dtype, [len(distinct)], name)
    graph.copy_mapping(tensor.view(distinct), copy)
    return copy.view(copy.elements()[place.reshape(-1)]).reshape(tensor.shape)


def _clone_n(
    graph: VariableGraph, tensor: Tensor, count: int, name: str, dtype: Type | None
) -> Tensor:
    """Add so many clones of a tensor; give them along a new first dimension."""
    if not isinstance(count, int | np.integer) or count < 1:
        raise PoplarError(f"{name or 'cloneN'}: N is {count!r}; at least 1 is needed")
    return concat([_clone(graph, tensor, name, dtype).expand([0]) for _ in range(count)])
