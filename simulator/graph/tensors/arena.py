"""The arena: an array of bytes that holds the variables of a graph one after another.

A graph and its views share one. What is made of elements (tensors, fields of vertices) holds it.
"""

from __future__ import annotations

import numpy as np

from simulator.graph.errors import PoplarError
from simulator.graph.machine.target import Target
from simulator.graph.tensors.variables import Bounds, Variable
from simulator.graph.tensors.views import Window
from simulator.graph.types import Array, IntArray, Type, element_count

ALIGNMENT = 8  # bytes; one 64-bit word
MAX_BYTES = 1 << 47  # of all variables: what a process can address


class Arena:
    """The variables, and the tiles of the device that a view of them has."""

    def __init__(self, target: Target, replication: int = 1) -> None:
        self.target = target
        self.replication = replication
        self.top: Arena = self
        self.window = Window.whole(target.num_tiles)
        self.variables: list[Variable] = []
        self._bounds = Bounds()

    def getReplicationFactor(self) -> int:
        """Count the replicas of the graph.

        >>> from simulator import poplar
        >>> graph = poplar.Graph(poplar.IPUModel("tiny").createDevice().getTarget())  # 4 tiles
        >>> graph.getReplicationFactor()
        1
        """
        return self.replication * self.window.replicas

    @property
    def arena_bytes(self) -> int:
        """Count the bytes of all variables."""
        return self.variables[-1].offset + self.variables[-1].bytes if self.variables else 0

    def variable_bounds(self) -> tuple[IntArray, IntArray]:
        """Return the first and last byte (not included) of every variable in the arena."""
        return self._bounds.of(self.variables)

    def variable_at(self, byte: int) -> Variable:
        """Return the variable that holds a byte of the arena."""
        return self.variables[int(np.searchsorted(self.variable_bounds()[0], byte, "right")) - 1]

    def _place(
        self, dtype: Type, shape: tuple[int, ...], values: Array | None, name: str, context: int
    ) -> Variable:
        """Add a variable behind all others; a replicated graph gets its copies side by side."""
        replicas, end = self.window.replicas, self.arena_bytes
        constant = values is not None
        size = element_count(shape) * dtype.size * replicas
        if end + size > MAX_BYTES:
            raise PoplarError(
                f"variable {name!r}: {size:,} bytes; a graph holds at most {MAX_BYTES:,}"
            )
        variable = Variable(
            id=len(self.variables),
            name=name,
            dtype=dtype,
            shape=shape if replicas == 1 else (replicas, *shape),
            offset=-(-end // ALIGNMENT) * ALIGNMENT,
            bytes=size,
            constant=constant,
            values=None if values is None else np.tile(values, replicas),
            debug_context=context,
            kind="constant" if constant else "variable",
            replicas=replicas,
        )
        self.variables.append(variable)
        return variable
