"""What must hold of tensors and vertices as they are added to a graph."""

from __future__ import annotations

import numpy as np

from simulator.graph.errors import GraphConnectionError, TileMappingError
from simulator.graph.tensors.arena import Arena
from simulator.graph.tensors.regions import variables_of
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import IntArray
from simulator.graph.vertices.vertex import Field, VertexGroup


def check_writable(tensor: Tensor, where: str) -> None:
    """Raise GraphConnectionError when a written tensor holds a constant, or an element twice."""
    if tensor.containsAliases():
        raise GraphConnectionError(
            f"{where}: writes an element of {tensor.describe()} twice; each must stand there once"
        )
    for number in variables_of(tensor):
        variable = tensor.graph.variables[number]
        if variable.constant:
            raise GraphConnectionError(
                f"{where}: writes constant {variable.name!r}; a variable is needed"
            )


def check_held(arena: Arena, item: Field | Tensor, where: str) -> None:
    """Raise GraphConnectionError for elements of another arena, whose bytes are not these.

    A replicated view's are not this graph's, either, which would use those of the first replica.
    """
    owner = item.graph
    if owner.variables is not arena.variables:
        raise GraphConnectionError(f"{where}: {_named(item)} is not of this graph")
    if owner.window.replicas not in (1, arena.window.replicas):
        raise GraphConnectionError(
            f"{where}: {_named(item)} has {owner.window.replicas} replica(s), the graph that uses "
            f"it {arena.window.replicas}; see getNonReplicatedTensor"
        )


def _named(item: Field | Tensor) -> str:
    first = item.begins[:1].tolist()
    names = [item.graph.variable_at(element * item.dtype.size).name for element in first]
    return f"variable {names[0]!r}" if names else "an empty tensor"


def check_group(arena: Arena, group: VertexGroup) -> None:
    """Raise for a group on a tile that is not there, or whose fields have other lengths."""
    tiles: IntArray = group.tile
    wrong = np.flatnonzero((tiles < 0) | (tiles >= arena.target.num_tiles))
    if len(wrong):
        raise TileMappingError(
            f"vertex {group.codelet.name}[{wrong[0]}]: tile {tiles[wrong[0]]}; "
            f"the target has tiles 0 to {arena.target.num_tiles - 1}"
        )
    for field in group.fields.values():
        check_held(arena, field, f"vertices {group.codelet.name}, field {field.name!r}")
        if len(field.starts) != len(group) + 1 or len(field.edges) != len(group):
            raise GraphConnectionError(
                f"vertices {group.codelet.name}, field {field.name!r}: {len(field.edges)} "
                f"connections for {len(group)} vertices"
            )
