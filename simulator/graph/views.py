"""Views of a graph: the tiles that a virtual graph sees, the copies that a replicated graph makes.

A view shares everything with its graph; what is added through it lands on its own tiles, once for
every replica.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

import numpy as np

from simulator.graph.errors import PoplarError, TileMappingError
from simulator.graph.intervals import as_int64, offsets_of
from simulator.graph.tensor import Tensor
from simulator.graph.types import Array, IntArray
from simulator.graph.user_vertices import Batch, place_constants, to_group
from simulator.graph.vertex import Field, VertexGroup

if TYPE_CHECKING:
    from simulator.graph.graph import Graph
    from simulator.graph.target import Target


@dataclass(frozen=True, slots=True)
class replication_factor:  # noqa: N801 - Poplar's name
    """How many replicas `Graph(target, replication_factor(n))` has."""

    value: int


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """The tiles of a view: tile t of replica r is tile `tiles[r, t]` of the whole graph."""

    tiles: IntArray

    @classmethod
    def whole(cls, tiles: int) -> Window:
        """See every tile, once."""
        return cls(np.arange(tiles, dtype=np.int64)[None, :])

    @property
    def replicas(self) -> int:
        """Count the copies of what is added through the view."""
        return int(self.tiles.shape[0])

    def inside(self, tiles: IntArray) -> IntArray:
        """Return the view's number of tiles of the whole graph: of replica 0, -1 for the others."""
        first = self.tiles[0]
        numbers = np.full(int(max(first.max(), tiles.max(initial=0))) + 1, -1, dtype=np.int64)
        numbers[first] = np.arange(len(first))
        found: IntArray = numbers[tiles]
        return found


def checked_factor(target: Target, replication: replication_factor | int) -> int:
    """Return the number of replicas of a graph for a target; raises PoplarError."""
    factor = replication.value if isinstance(replication, replication_factor) else replication
    if not isinstance(factor, int | np.integer) or factor < 1 or target.num_ipus % factor:
        raise PoplarError(
            f"Graph: {factor!r} replicas of {target.num_ipus} IPUs; each needs as many IPUs"
        )
    return int(factor)


def virtual_tiles(target: Target, chosen: Sequence[int] | int, upper: int | None) -> IntArray:
    """Return the tiles that a form of `createVirtualGraph` selects; raises TileMappingError.

    One number: so many tiles of each IPU. Two numbers: the tiles [lower, upper) of the graph.
    A list: these tiles of each IPU.
    """
    what, per_ipu = "createVirtualGraph", target.tiles_per_ipu
    if upper is not None:
        lower = chosen if isinstance(chosen, int | np.integer) else -1
        if not 0 <= lower < upper <= target.num_tiles:
            raise TileMappingError(
                f"{what}: tiles [{chosen}, {upper}); the graph has tiles 0 to "
                f"{target.num_tiles - 1}"
            )
        return np.arange(lower, upper, dtype=np.int64)
    if isinstance(chosen, int | np.integer):
        if not 0 < chosen <= per_ipu:
            raise TileMappingError(f"{what}: {chosen} tiles of each IPU; an IPU has {per_ipu}")
        chosen = range(chosen)
    one_ipu = as_int64(list(chosen))
    wrong = one_ipu[(one_ipu < 0) | (one_ipu >= per_ipu)]
    if len(wrong) or len(np.unique(one_ipu)) < len(one_ipu) or not len(one_ipu):
        found = f"tile {wrong[0]}" if len(wrong) else f"the tiles {one_ipu.tolist()}"
        raise TileMappingError(
            f"{what}: {found} of each IPU; different tiles of 0 to {per_ipu - 1} are needed"
        )
    starts = np.arange(target.num_ipus, dtype=np.int64) * per_ipu
    return (starts[:, None] + one_ipu).reshape(-1)


def virtual_target(target: Target, tiles: IntArray) -> Target:
    """Make the target that a view with these tiles of a target has: as many on each IPU."""
    ipus, counts = np.unique(tiles // target.tiles_per_ipu, return_counts=True)
    if (counts != counts[0]).any():
        raise TileMappingError(
            f"createVirtualGraph: {counts.tolist()} tiles of IPUs {ipus.tolist()}; "
            "as many of each are needed"
        )
    number = int(counts[0])
    delays = target.relative_sync_delay[tiles[:number] % target.tiles_per_ipu]
    return replace(target, num_ipus=len(ipus), tiles_per_ipu=number, relative_sync_delay=delays)


def replicated_window(target: Target, window: Window, replicas: int) -> Window:
    """Split the IPUs of a view into replicas of as many; raises PoplarError."""
    if window.replicas > 1:
        raise PoplarError("createReplicatedGraph: this graph is a replica already")
    if replicas < 1 or target.num_ipus % replicas:
        raise PoplarError(
            f"createReplicatedGraph: {replicas} replicas of {target.num_ipus} IPUs; "
            "each replica needs as many IPUs"
        )
    return Window(window.tiles.reshape(replicas, -1))


def frozen(graph: Graph) -> Graph:
    """Return a graph as it is now: what is added to it afterwards is no part of it."""
    graph.vertex_groups()  # made once, for both
    kept = copy.copy(graph)
    kept.top = kept
    for name, held in vars(graph).items():
        if isinstance(held, list | dict):
            setattr(kept, name, held.copy())
        elif name in ("_shared", "_mapping"):
            parts = {part.name: copy.copy(getattr(held, part.name)) for part in fields(held)}
            setattr(kept, name, replace(held, **parts))
    return kept


def everywhere(tensor: Tensor, owner: Graph | None = None) -> Tensor:
    """Return a tensor of a replicated graph in all its replicas, as a first dimension.

    Raises PoplarError when it is not a tensor of `owner`.
    """
    graph = tensor.graph
    if owner is not None and not owner.holds(tensor):
        raise PoplarError(f"{tensor!r} is not of this graph")
    replicas = graph.window.replicas
    if replicas == 1:
        return tensor
    shift = _shifts(graph, tensor.begins, tensor.dtype.size, replicas)
    begins = (tensor.begins + np.arange(replicas)[:, None] * shift).reshape(-1)
    lengths = np.tile(tensor.lengths, replicas)
    shape = (replicas, *tensor.shape)
    return Tensor(graph.top, tensor.dtype, shape, (begins, lengths))


def non_replicated(replication: int, tensor: Tensor) -> Tensor:
    """Return a tensor of a replicated view with its replicas as the first dimension."""
    if replication > 1:
        raise PoplarError(
            "getNonReplicatedTensor: a graph replicated from its start has no parent, in which "
            "its tensors would be one; see createReplicatedGraph"
        )
    return everywhere(tensor)


def _shifts(graph: Graph, begins: IntArray, size: int, replicas: int) -> IntArray:
    """Return the elements from an interval of replica 0 to the same one of the next replica."""
    bounds, _ = graph.variable_bounds()
    held = np.searchsorted(bounds, begins * size, side="right") - 1
    numbers, which = np.unique(held, return_inverse=True)
    variables = [graph.variables[number] for number in numbers.tolist()]
    for variable in variables:
        if variable.replicas != replicas:
            raise PoplarError(
                f"variable {variable.name!r}: has {variable.replicas} replica(s), the graph that "
                f"uses it {replicas}; see getNonReplicatedTensor"
            )
    steps = as_int64([v.bytes // v.replicas // size for v in variables])
    shifts: IntArray = steps[which] if len(variables) else np.zeros(0, dtype=np.int64)
    return shifts


def group_of_batch(graph: Graph, batch: Batch) -> VertexGroup:
    """Make the group of vertices that were added one by one through a view."""
    group = to_group(graph, batch)
    place_constants(graph, batch)
    if graph.window.replicas == 1:
        return group
    tile = graph.window.inside(group.tile)
    if (tile < 0).any():
        vertex = int(np.flatnonzero(tile < 0)[0])
        raise TileMappingError(f"{batch.describe(vertex)}: is on no tile of the first replica")
    return placed_group(graph, replace(group, tile=tile))


def placed_group(graph: Graph, group: VertexGroup) -> VertexGroup:
    """Put the vertices that were added through a view on their tiles, once for every replica."""
    window = graph.window
    tiles = window.tiles[:, group.tile].reshape(-1)
    if window.replicas == 1:
        return replace(group, tile=tiles)
    return replace(
        group,
        tile=tiles,
        fields={name: _in_replicas(graph, item) for name, item in group.fields.items()},
        parameters={name: _repeated(v, window.replicas) for name, v in group.parameters.items()},
        cycles=np.tile(group.cycles, window.replicas),
    )


def _in_replicas(graph: Graph, item: Field) -> Field:
    replicas = graph.window.replicas
    shift = _shifts(graph, item.begins, item.dtype.size, replicas)
    return replace(
        item,
        begins=(item.begins + np.arange(replicas)[:, None] * shift).reshape(-1),
        lengths=np.tile(item.lengths, replicas),
        starts=offsets_of(np.tile(np.diff(item.starts), replicas)),
        edges=np.tile(item.edges, replicas),
        rows=None if item.rows is None else np.tile(item.rows, replicas),
    )


def _repeated(values: Array, replicas: int) -> Array:
    return np.tile(values, (replicas, *[1] * (values.ndim - 1)))
