"""The vertex that computes a whole expression, as PopLibs generates it.

Generated vertices have no public cycles. Ours, ESTIMATE: the frame of a BinaryOp vertex, once for a
vector of the result 5 cycles of loads, store and loop, and for each operation the cycles of its
inner loop in PopLibs' tables; a change of type costs the core of a Cast vertex.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from simulator.codelets.costs import SUPERVISOR_CALL, ceil_div, sum_by_vertex
from simulator.codelets.elementwise import cycles as elementwise_cycles
from simulator.codelets.elementwise.operation import Operation, step_of
from simulator.codelets.elementwise.vertices import ElementwiseVertices, flops_of, values_of
from simulator.codelets.vertex_type import ONE_REGION, VertexTypes, supervisor, worker
from simulator.graph.machine.target import Target
from simulator.graph.types import Array, IntArray, Type
from simulator.graph.vertices.vertex import Operands, VertexGroup

FRAME_1D, FRAME_2D, VECTOR = 29, 5, 5


@dataclass(frozen=True, slots=True)
class Node:
    """A part of an expression with the type of its values.

    An operation on arguments; without an operation a change of type of the one argument, or a leaf:
    the values of a field, or a number, kept as its bytes so that 0 and -0 differ.
    """

    dtype: Type
    operation: Operation | None = None
    arguments: tuple[Node, ...] = ()
    field: str = ""
    number: bytes = b""

    def value(self) -> float:
        """Return the number of a leaf."""
        scalar: float = np.frombuffer(self.number, self.dtype.numpy)[0].item()
        return scalar

    def text(self) -> str:
        """Write the expression in the name of its vertex."""
        if not self.arguments:
            return self.field or f"{self.value():.9g}"
        name = self.operation.debug_name if self.operation else str(self.dtype)
        return f"{name}({','.join(argument.text() for argument in self.arguments)})"

    def parts(self) -> list[Node]:
        """List the node and all below it; what stands twice is computed once."""
        descendants = dict.fromkeys(
            part for argument in self.arguments for part in argument.parts()
        )
        return [*descendants, self]


class Part(NamedTuple):
    """A part of an expression, with the places of its arguments among the parts before it."""

    node: Node
    arguments: tuple[int, ...]


def parts_in_order(node: Node) -> list[Part]:
    """List the parts of an expression, each after its arguments and the whole last."""
    nodes = node.parts()
    places = {part: place for place, part in enumerate(nodes)}
    return [Part(part, tuple(places[a] for a in part.arguments)) for part in nodes]


def evaluate(parts: Sequence[Part], operands: Operands) -> Array:
    """Compute an expression's values, each operation rounded to its type."""
    values: list[Array] = []
    for node, places in parts:
        if node.operation:
            values.append(node.operation.compute(*(values[place] for place in places)))
        elif places:
            values.append(values[places[0]].astype(node.dtype.numpy))
        elif node.field:
            values.append(values_of(operands, node.field))
        else:
            values.append(np.frombuffer(node.number, node.dtype.numpy))
    total = int(operands.counts["out"].sum())
    return np.broadcast_to(values[-1], (total,))


@cache
def fused(node: Node, target: Target) -> ElementwiseVertices:
    """Return the vertices of an expression; its fields are those that it names, and out."""
    ordered = parts_in_order(node)
    parts = [part for part, _ in ordered if part.arguments]
    flops = sum(flops_of(part.arguments[0].dtype) for part in parts if part.operation)

    def operations(group: VertexGroup) -> IntArray:
        return group.fields["out"].counts() * flops

    def compute(operands: Operands) -> dict[str, Array]:
        return {"out": evaluate(ordered, operands)}

    def loop(n: IntArray) -> IntArray:
        cycles = VECTOR * ceil_div(n, max(target.getVectorWidth(node.dtype), 1))
        return cycles + sum((_cycles(part, n, target) for part in parts), np.zeros_like(n))

    kind, code_bytes = f"<{node.text()},{node.dtype}>", 50 * (len(parts) - 1)
    one = TYPES.codelet(
        f"popops::Fused1DSupervisor{kind}", compute, operations, more_code=code_bytes
    )
    codelet_2d = TYPES.codelet(f"popops::Fused2D{kind}", compute, operations, more_code=code_bytes)
    return ElementwiseVertices(
        one,
        codelet_2d,
        lambda n: target.workers * (FRAME_1D + loop(ceil_div(n, target.workers))) + SUPERVISOR_CALL,
        FRAME_2D,
        loop,
    )


def _cycles(part: Node, n: IntArray, target: Target) -> IntArray:
    """Return the cycles of one operation, or change of type, on n elements."""
    dtype = part.arguments[0].dtype
    if part.operation is None:
        return elementwise_cycles.cast_core(n, dtype, part.dtype, target)
    step = step_of(part.operation.steps, part.operation, dtype)
    return ceil_div(n, step.width(dtype, target)) * step.cycles


# Cycles of a worker: `lengths` are the elements of all regions, vertex by vertex, `ranges` how many
# regions each vertex has.
def fused_1d(n: IntArray, expression: Node, target: Target) -> IntArray:
    """W * (29 + 5 a vector + the loop of every operation on a share) + 11, of the tile."""
    return fused(expression, target).cycles_1d(n)


def fused_2d(lengths: IntArray, ranges: IntArray, expression: Node, target: Target) -> IntArray:
    """5 + 5 a vector and the loop of every operation, for every region."""
    vertices = fused(expression, target)
    return vertices.base_2d + sum_by_vertex(vertices.region_2d(lengths), ranges)


TYPES = VertexTypes(
    (
        supervisor(
            "popops::Fused1DSupervisor<expression,type>",
            "in out",
            fused_1d,
            "our estimate, from PopLibs' op table",
            ONE_REGION,
            exact=False,
        ),
        worker(
            "popops::Fused2D<expression,type>",
            "in out",
            fused_2d,
            "our estimate, from PopLibs' op table",
            (24, 150),
            exact=False,
        ),
    )
)
