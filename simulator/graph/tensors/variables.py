"""Variables: their places in the arena, an array of bytes that holds them one after another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal

import numpy as np

from simulator.graph.errors import PoplarError
from simulator.graph.geometry.intervals import as_int64
from simulator.graph.types import (
    Array,
    IntArray,
    Type,
    checked_name,
    checked_values,
    element_count,
)


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


def method_and_name(method: object, name: str) -> tuple[VariableMappingMethod, str]:
    """Separate a mapping method from a name in its place; raises PoplarError for two names."""
    if isinstance(method, VariableMappingMethod):
        return method, name
    if name:
        raise PoplarError(
            f"variable {name!r}: mapping method is {method!r}; VariableMappingMethod is needed"
        )
    return VariableMappingMethod.NONE, checked_name(method, "variable")


def type_last(first: object, *arguments: object) -> tuple[Any, ...]:
    """Put a type that stands before a tensor, as in C++, behind the name that then comes last."""
    if not isinstance(first, Type):
        return first, *arguments
    return *arguments[:-1], arguments[-1] or "", first


class TensorCloneMethod(Enum):
    """What a clone keeps: the order in memory, and elements that stand in a tensor twice."""

    PRESERVE_ORDER_AND_ALIASES = "preserve order and aliases"
    CREATE_NEW_ORDER = "new order"
    PRESERVE_ORDER_UNLESS_ALIASES = "preserve order unless aliases"
    GATHER_AND_PRESERVE_TILE_ORDER_AND_ALIASES = "gather, preserve order on tiles and aliases"

    @property
    def aliases(self) -> bool:
        """Return whether elements that stand in a tensor twice do so in its clone."""
        return "and aliases" in self.value


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


def filled(values: object, dtype: Type, shape: tuple[int, ...], subject: str) -> Array:
    """Return a value for every element of a shape, flat; a single one stands for all."""
    data, elements = checked_values(values, dtype, subject), element_count(shape)
    if data.size not in (1, elements):
        raise PoplarError(
            f"{subject}: {data.size} values for shape {list(shape)} of {elements} elements"
        )
    return np.broadcast_to(data.reshape(-1), (elements,)).copy()
