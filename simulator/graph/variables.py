"""Variables: their places in the arena, an array of bytes that holds them one after another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from simulator.graph.intervals import as_int64
from simulator.graph.tensor import Tensor
from simulator.graph.types import Array, IntArray, Type, element_count

if TYPE_CHECKING:
    from simulator.graph.graph import Graph

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
    replicas: int = 1

    @property
    def elements(self) -> int:
        """Count the elements."""
        return element_count(self.shape)


def new_variable(
    graph: Graph, dtype: Type, shape: tuple[int, ...], values: Array | None, name: str
) -> Variable:
    """Place a variable behind all others; a replicated graph gets its copies side by side."""
    replicas = graph.window.replicas
    constant = values is not None
    return Variable(
        id=len(graph.variables),
        name=name,
        dtype=dtype,
        shape=shape if replicas == 1 else (replicas, *shape),
        offset=-(-graph.arena_bytes // ALIGNMENT) * ALIGNMENT,
        bytes=element_count(shape) * dtype.size * replicas,
        constant=constant,
        values=None if values is None else np.tile(values, replicas),
        debug_context=graph.debug_context(name),
        kind="constant" if constant else "variable",
        replicas=replicas,
    )


def clone(graph: Graph, tensor: Tensor, name: str, dtype: Type | None) -> Tensor:
    """Add a variable of the same shape, order in memory and mapping as a tensor."""
    places = tensor.elements().reshape(-1)
    order = np.argsort(places, kind="stable")
    copy = graph.addVariable(dtype or tensor.dtype, tensor.shape, name).flatten()
    graph.copy_mapping(tensor.view(places[order]), copy)
    first = copy.begins[0] if len(copy.begins) else 0
    elements = np.empty(len(order), dtype=np.int64)
    elements[order] = first + np.arange(len(order))
    return copy.view(elements.reshape(tensor.shape))


def bounds(variables: Sequence[Variable]) -> tuple[IntArray, IntArray]:
    """Give the first and last byte (not included) of every variable."""
    begins = as_int64([variable.offset for variable in variables])
    return begins, begins + as_int64([variable.bytes for variable in variables])


def names(variables: Sequence[Variable], tensor: Tensor) -> list[str]:
    """Name the variables that a tensor views, in the order of their ids."""
    if not len(tensor.begins):
        return ["<empty>"]
    begins, _ = bounds(variables)
    ids = np.searchsorted(begins, tensor.begins * tensor.dtype.size, side="right") - 1
    return [variables[i].name for i in np.unique(ids).tolist()]
