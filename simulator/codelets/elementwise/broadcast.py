"""Vertices whose second operand is a vector that repeats along the first one: fields data and B.

Source: PopLibs lib/popops/codelets/broadcastCodelets.cpp and BroadcastVectorInner*.cpp.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Literal

import numpy as np

from simulator.codelets.elementwise import broadcast_cycles
from simulator.codelets.elementwise.operations import BINARY
from simulator.codelets.elementwise.vertices import flops_of
from simulator.codelets.vertex_type import (
    ONE_REGION,
    POPOPS_CYCLES,
    SEVERAL_REGIONS,
    VertexType,
    VertexTypes,
    supervisor,
    worker,
)
from simulator.graph.geometry.intervals import offsets_of, spread
from simulator.graph.types import FLOAT, HALF, Array, IntArray, Type
from simulator.graph.vertices.vertex import Codelet, Operands, VertexGroup


def _types(place: str, fields: str) -> tuple[VertexType, ...]:
    """Declare the vertices of a new tensor, or `InPlace`."""
    name, in_place = "popops::BroadcastVector", bool(place)
    return (
        supervisor(
            f"{name}Inner1D{place}<op,type>",
            fields,
            partial(broadcast_cycles.inner_1d, in_place=in_place),
            POPOPS_CYCLES,
            ONE_REGION,
        ),
        worker(
            f"{name}Inner2D{place}<op,type>",
            fields,
            partial(broadcast_cycles.inner_2d, in_place=in_place),
            POPOPS_CYCLES,
            SEVERAL_REGIONS,
        ),
        *(
            supervisor(
                f"{name}OuterBy{way}1D{place}<op,type,misaligned>",
                fields,
                broadcast_cycles.outer_1d,
                POPOPS_CYCLES,
                ONE_REGION,
            )
            for way in ("Row", "Column")
        ),
    )


TYPES = VertexTypes(_types("", "data B out") + _types("InPlace", "out B"))
OUTER_OPERATIONS = ("ADD", "SUBTRACT", "MULTIPLY")
INNER_OPERATIONS = (*OUTER_OPERATIONS, "DIVIDE")


def has_inner(operation: str, dtype: Type) -> bool:
    """Return whether a vector along the data has vertices that are faster than a copy of it.

    Of floats only the division has, as PopLibs chooses them.
    """
    return operation == "DIVIDE" if dtype == FLOAT else has_vector(operation, dtype)


def has_outer(operation: str, dtype: Type) -> bool:
    """Return whether there are vertices for a vector whose elements go with rows."""
    return operation in OUTER_OPERATIONS and dtype in (HALF, FLOAT)


def has_vector(operation: str, dtype: Type) -> bool:
    """Return whether there are vertices for vectors of any kind."""
    return operation in INNER_OPERATIONS and dtype in (HALF, FLOAT)


@dataclass(frozen=True, slots=True)
class Repeats:
    """How vectors repeat: the next lengths[v] of B, each times[v] times, over counts[v] data."""

    counts: IntArray
    lengths: IntArray
    times: IntArray

    def spread(self, values: Array) -> Array:
        """Return the element of B that goes with each of the data."""
        alike = [
            len(column) and (column == column[0]).all()
            for column in (self.counts, self.lengths, self.times)
        ]
        if all(alike):
            count, length, repeats = (
                int(column[0]) for column in (self.counts, self.lengths, self.times)
            )
            rows = values.reshape(len(self.counts), 1, length, 1)
            shape = (len(rows), count // (length * repeats), length, repeats)
            return np.broadcast_to(rows, shape).reshape(-1)
        position = spread(np.zeros_like(self.counts), self.counts)
        times, lengths, first = (
            np.repeat(column, self.counts)
            for column in (self.times, self.lengths, offsets_of(self.lengths)[:-1])
        )
        result: Array = values[first + position // times % lengths]
        return result


@cache
def inner_1d(operation: str, dtype: Type, in_place: bool) -> Codelet:
    """Return the vertex of a tile: slices of B of a length, each along as many of the data."""

    def repeats(operands: Operands) -> Repeats:
        counts, lengths = operands.counts["out"], operands.group.parameters["length"]
        slices = operands.counts["B"] // lengths
        columns = (counts // slices, lengths, np.ones_like(counts))
        return Repeats(*(np.repeat(column, slices) for column in columns))

    return _codelet("Inner1D", operation, dtype, in_place, repeats)


@cache
def inner_2d(operation: str, dtype: Type, in_place: bool) -> Codelet:
    """Return the vertex of a worker: a list of regions, each with its vector."""

    def repeats(operands: Operands) -> Repeats:
        fields = operands.group.fields
        counts, lengths = fields["out"].rows, fields["B"].rows
        assert counts is not None and lengths is not None
        return Repeats(counts, lengths, np.ones_like(counts))

    return _codelet("Inner2D", operation, dtype, in_place, repeats)


@cache
def outer_1d(
    operation: str, dtype: Type, in_place: bool, *, by_row: bool, misaligned: bool
) -> Codelet:
    """Return the vertex of a tile: rows of as many columns, each row with its element of B."""

    def repeats(operands: Operands) -> Repeats:
        columns = operands.group.parameters["columns"]
        return Repeats(operands.counts["out"], operands.counts["B"], columns)

    family = f"OuterBy{'Row' if by_row else 'Column'}1D"
    return _codelet(family, operation, dtype, in_place, repeats, f",{str(misaligned).lower()}")


def _codelet(
    family: str,
    operation: str,
    dtype: Type,
    in_place: bool,
    repeats: Callable[[Operands], Repeats],
    last: str = "",
) -> Codelet:
    """Make a codelet; its name ends with the last part of its template."""
    function, flops = BINARY[operation].compute, flops_of(dtype)

    def compute(operands: Operands) -> dict[str, Array]:
        data = operands.arrays["out" if in_place else "data"]
        return {"out": function(data, repeats(operands).spread(operands.arrays["B"]))}

    def operations(group: VertexGroup) -> IntArray:
        return group.fields["out"].counts() * flops

    kind = f"<popops::expr::BinaryOpType::{operation},{dtype}{last}>"
    name = f"popops::BroadcastVector{family}{'InPlace' if in_place else ''}{kind}"
    apart: Literal["", "outputs"] = "outputs" if family.startswith("Inner") else ""
    return TYPES.codelet(name, compute, operations, apart=apart)
