"""What is added through a replicated view, in all its replicas."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from simulator.graph.errors import PoplarError
from simulator.graph.geometry.intervals import as_int64, offsets_of
from simulator.graph.tensors.arena import Arena
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import Array, IntArray
from simulator.graph.vertices.vertex import Field, VertexGroup


def everywhere(tensor: Tensor, owner: Arena | None = None) -> Tensor:
    """Return a tensor of a replicated graph in all its replicas, as a first dimension.

    Raises PoplarError when it is not a tensor of `owner`.
    """
    arena = tensor.graph
    if owner is not None and tensor.graph.variables is not owner.variables:
        raise PoplarError(f"{tensor!r} is not of this graph")
    replicas = arena.window.replicas
    if replicas == 1:
        return tensor
    shift = _shifts(arena, tensor.begins, tensor.dtype.size, replicas)
    begins = (tensor.begins + np.arange(replicas)[:, None] * shift).reshape(-1)
    lengths = np.tile(tensor.lengths, replicas)
    shape = (replicas, *tensor.shape)
    return Tensor(arena.top, tensor.dtype, shape, (begins, lengths))


def non_replicated(replication: int, tensor: Tensor) -> Tensor:
    """Return a tensor of a replicated view with its replicas as the first dimension."""
    if replication > 1:
        raise PoplarError(
            "getNonReplicatedTensor: a graph replicated from its start has no parent, in which "
            "its tensors would be one; see createReplicatedGraph"
        )
    return everywhere(tensor)


def _shifts(arena: Arena, begins: IntArray, size: int, replicas: int) -> IntArray:
    """Return the elements from an interval of replica 0 to the same one of the next replica."""
    bounds, _ = arena.variable_bounds()
    owners = np.searchsorted(bounds, begins * size, side="right") - 1
    numbers, which = np.unique(owners, return_inverse=True)
    variables = [arena.variables[number] for number in numbers.tolist()]
    for variable in variables:
        if variable.replicas != replicas:
            raise PoplarError(
                f"variable {variable.name!r}: has {variable.replicas} replica(s), the graph that "
                f"uses it {replicas}; see getNonReplicatedTensor"
            )
    steps = as_int64([v.bytes // v.replicas // size for v in variables])
    shifts: IntArray = steps[which] if len(variables) else np.zeros(0, dtype=np.int64)
    return shifts


def placed_group(arena: Arena, group: VertexGroup) -> VertexGroup:
    """Put the vertices that were added through a view on their tiles, once for every replica."""
    window = arena.window
    tiles = window.tiles[:, group.tile].reshape(-1)
    if window.replicas == 1:
        return replace(group, tile=tiles)
    return replace(
        group,
        tile=tiles,
        fields={name: _in_replicas(arena, item) for name, item in group.fields.items()},
        parameters={name: _repeated(v, window.replicas) for name, v in group.parameters.items()},
        cycles=np.tile(group.cycles, window.replicas),
    )


def _in_replicas(arena: Arena, item: Field) -> Field:
    replicas = arena.window.replicas
    shift = _shifts(arena, item.begins, item.dtype.size, replicas)
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
