"""Values: what each program node does to the arena."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TextIO

import numpy as np

from simulator.graph.graph import Graph
from simulator.graph.program import Copy, Execute, PrintTensor, Program, Sync, WriteUndef
from simulator.graph.streams import Stream
from simulator.graph.tensor import Tensor
from simulator.graph.types import Array
from simulator.graph.vertex import Operands, VertexGroup
from simulator.runtime.host_streams import HostStreams
from simulator.runtime.storage import Places, Storage, places_of

Step = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Gather:
    """Where a field's values lie in the typed arena."""

    name: str
    values: Array
    places: Places

    def load(self) -> Array:
        """Copy the values out."""
        taken: Array = self.values[self.places]
        return taken.copy() if isinstance(self.places, slice) else taken

    def store(self, values: Array) -> None:
        """Copy values in."""
        self.values[self.places] = values


@dataclass(frozen=True, slots=True)
class PreparedGroup:
    """A vertex group with the places of its fields."""

    operands: Operands
    gathers: tuple[Gather, ...]
    outputs: dict[str, Gather]

    def compute(self) -> dict[str, Array]:
        """Load the operands and compute the outputs."""
        for gather in self.gathers:
            self.operands.arrays[gather.name] = gather.load()
        return self.operands.group.codelet.compute(self.operands)


class ValueRunner:
    """Executes the values of program nodes; a node's indexes are prepared once and kept."""

    def __init__(
        self, graph: Graph, storage: Storage, streams: HostStreams, text: TextIO | None = None
    ) -> None:
        self._graph = graph
        self._storage = storage
        self._streams = streams
        self._text = text
        self._steps: dict[Program, Step] = {}
        self._compute_sets: dict[int, Step] = {}

    def print_to(self, text: TextIO) -> None:
        """Send what PrintTensor prints to this stream."""
        self._text = text

    def run(self, action: Program) -> None:
        """Execute one node: Execute, Copy, PrintTensor, WriteUndef or Sync."""
        step = self._steps.get(action)
        if step is None:
            step = self._steps[action] = self._prepare(action)
        step()

    def _prepare(self, action: Program) -> Step:
        match action:
            case Execute():
                return self._execute(action.compute_set.id)
            case Copy():
                return self._copy(action)
            case PrintTensor():
                return lambda: self._print(action)
            case WriteUndef() | Sync():
                return lambda: None
            case _:
                raise TypeError(f"{type(action).__name__} has no values of its own")

    def _execute(self, compute_set: int) -> Step:
        if compute_set not in self._compute_sets:
            prepared = [self._group(group) for group in self._graph.groups_of(compute_set)]
            self._compute_sets[compute_set] = lambda: _run_groups(prepared)
        return self._compute_sets[compute_set]

    def _group(self, group: VertexGroup) -> PreparedGroup:
        gathers = {
            name: Gather(
                name, self._storage.view(field.dtype), places_of(field.begins, field.lengths)
            )
            for name, field in group.fields.items()
        }
        outputs = {n: g for n, g in gathers.items() if group.fields[n].direction != "input"}
        # A library codelet writes its outputs whole; a user's may leave elements as they are.
        loaded = (
            gather
            for name, gather in gathers.items()
            if group.codelet.kind == "user" or group.fields[name].direction != "output"
        )
        counts = {name: field.counts() for name, field in group.fields.items()}
        return PreparedGroup(Operands(group, {}, counts), tuple(loaded), outputs)

    def _copy(self, action: Copy) -> Step:
        source, destination = action.src, action.dst
        if isinstance(source, Stream):
            assert isinstance(destination, Tensor)
            stream, into = source, self._gather(destination)
            return lambda: into.store(self._streams.fetch(stream))
        out_of = self._gather(source)
        if isinstance(destination, Stream):
            sink = destination
            return lambda: self._streams.store(sink, out_of.load())
        target = self._gather(destination)
        return lambda: target.store(out_of.load())

    def _gather(self, tensor: Tensor) -> Gather:
        places = places_of(tensor.begins, tensor.lengths)
        return Gather("", self._storage.view(tensor.dtype), places)

    def _print(self, action: PrintTensor) -> None:
        values = format_values(self._storage.read(action.tensor))
        print(f"{action.title}: {values}", file=self._text or sys.stderr)


def _run_groups(prepared: list[PreparedGroup]) -> None:
    """Run the groups of a compute set: every vertex reads what was there before it."""
    results = [(group.outputs, group.compute()) for group in prepared]
    for outputs, values in results:
        for name, value in values.items():
            outputs[name].store(value)


def format_values(values: Array, indent: int = 0) -> str:
    """Write an array as Poplar prints a tensor: `{1,2.5}`, and a line a row."""
    if values.ndim == 0:
        return _format_number(values)
    if values.ndim == 1:
        return "{" + ",".join(map(_format_number, values)) + "}"
    pad = " " * (indent + 1)
    rows = [pad + format_values(row, indent + 1) for row in values]
    return "{\n" + ",\n".join(rows) + "\n" + " " * indent + "}"


def _format_number(value: Array) -> str:
    """Write a number as a C++ stream does: six significant digits."""
    return f"{float(value):g}" if np.issubdtype(value.dtype, np.floating) else f"{int(value)}"
