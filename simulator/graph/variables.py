"""Variables: their places in the arena, an array of bytes that holds them one after another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from simulator.graph.errors import PoplarError
from simulator.graph.intervals import as_int64
from simulator.graph.patterns import Shifted, packed, placed
from simulator.graph.strides import Strides, stepped
from simulator.graph.tensor import Tensor, concat
from simulator.graph.types import (
    UNSIGNED_INT,
    Array,
    IntArray,
    Type,
    checked_name,
    checked_values,
    element_count,
)
from simulator.graph.validate import check_writable
from simulator.graph.views import everywhere

if TYPE_CHECKING:
    from simulator.graph.graph import Graph

ALIGNMENT = 8  # bytes; one 64-bit word
MAX_BYTES = 1 << 47  # of all variables: what a process can address


class VariableMappingMethod(Enum):
    """What a new variable's mapping is; LINEAR spreads it evenly, in the order of the tiles."""

    NONE = "none"
    LINEAR = "linear"


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
    size = element_count(shape) * dtype.size * replicas
    if graph.arena_bytes + size > MAX_BYTES:
        raise PoplarError(f"variable {name!r}: {size:,} bytes; a graph holds at most {MAX_BYTES:,}")
    return Variable(
        id=len(graph.variables),
        name=name,
        dtype=dtype,
        shape=shape if replicas == 1 else (replicas, *shape),
        offset=-(-graph.arena_bytes // ALIGNMENT) * ALIGNMENT,
        bytes=size,
        constant=constant,
        values=None if values is None else np.tile(values, replicas),
        debug_context=graph.debug_context(name),
        kind="constant" if constant else "variable",
        replicas=replicas,
    )


def method_and_name(method: object, name: str) -> tuple[VariableMappingMethod, str]:
    """Tell a mapping method from a name in its place; raises PoplarError for two names."""
    if isinstance(method, VariableMappingMethod):
        return method, name
    if name:
        raise PoplarError(
            f"variable {name!r}: mapping method is {method!r}; VariableMappingMethod is needed"
        )
    return VariableMappingMethod.NONE, checked_name(method, "variable")


def map_linearly(graph: Graph, tensor: Tensor) -> None:
    """Give each tile as many elements as the others; the first have what is over, one each."""
    tiles = np.arange(graph.target.num_tiles + 1)
    each, over = divmod(tensor.numElements(), graph.target.num_tiles)
    bounds = each * tiles + np.minimum(tiles, over)
    used = tiles[: graph.target.num_tiles if each else over]
    graph.map_ranges(tensor, bounds[used], bounds[used + 1], used)


def clone(graph: Graph, tensor: Tensor, name: str, dtype: Type | None) -> Tensor:
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
    held = tensor.places.pattern if isinstance(tensor.places, Shifted) else None
    pattern = packed(order) if held is None else held.packed(lambda: order)
    result = copy.at(tensor.shape, placed(first, pattern))
    result.keep_upward(order)
    return result


def clone_n(graph: Graph, tensor: Tensor, count: int, name: str, dtype: Type | None) -> Tensor:
    """Add so many clones of a tensor; give them along a new first dimension."""
    if not isinstance(count, int | np.integer) or count < 1:
        raise PoplarError(f"{name or 'cloneN'}: N is {count!r}; at least 1 is needed")
    return concat([clone(graph, tensor, name, dtype).expand([0]) for _ in range(count)])


def type_last(first: Any, *others: Any) -> tuple[Any, ...]:
    """Put a type that stands before a tensor, as in C++, behind the name that then comes last."""
    if not isinstance(first, Type):
        return first, *others
    return *others[:-1], others[-1] or "", first


def replica_number(graph: Graph, name: str) -> Tensor:
    """Add a constant that holds the number of its replica."""
    number = graph.addConstant(UNSIGNED_INT, [], 0, name)
    graph.replication_indexes.append(everywhere(number))
    return number


@dataclass(slots=True)
class Bounds:
    """The first and last byte (not included) of every variable, kept as they become more."""

    begins: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    ends: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def of(self, variables: Sequence[Variable]) -> tuple[IntArray, IntArray]:
        """Take in the variables that are new, and give the bounds of all."""
        new = variables[len(self.begins) :]
        if new:
            begins = as_int64([variable.offset for variable in new])
            ends = begins + as_int64([variable.bytes for variable in new])
            self.begins = np.append(self.begins, begins)
            self.ends = np.append(self.ends, ends)
        return self.begins, self.ends


def filled(values: object, dtype: Type, shape: tuple[int, ...], what: str) -> Array:
    """Return a value for every element of a shape, flat; a single one stands for all."""
    data, elements = checked_values(values, dtype, what), element_count(shape)
    if data.size not in (1, elements):
        raise PoplarError(
            f"{what}: {data.size} values for shape {list(shape)} of {elements} elements"
        )
    return np.broadcast_to(data.reshape(-1), (elements,)).copy()


def initial_value(graph: Graph, tensor: Tensor, values: object) -> tuple[Tensor, Array]:
    """Pair a tensor, in each replica, with what it holds when the program is loaded."""
    what = f"initial value of {tensor.describe()}"
    check_writable(tensor, what)
    whole = everywhere(tensor, graph)
    data = filled(values, tensor.dtype, tensor.shape, what).reshape(tensor.shape)
    return whole, np.broadcast_to(data, whole.shape)
