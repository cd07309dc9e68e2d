"""Values: what each program node does to the arena."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn, TextIO

import numpy as np

from simulator.codelets.system.clock import CLOCKS
from simulator.graph.errors import PoplarError, application_runtime_error
from simulator.graph.graph import Graph
from simulator.graph.host.streams import RemoteBuffer, Stream
from simulator.graph.program import (
    Abort,
    AbortOnCondition,
    AssumeEqualAcrossReplicas,
    Copy,
    CrossReplicaCopy,
    ErrorProgram,
    Execute,
    PrintTensor,
    Program,
    Sync,
    WriteUndef,
)
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import Array, IntArray
from simulator.graph.vertices.vertex import Operands, VertexGroup
from simulator.runtime.discards import Discards
from simulator.runtime.host_streams import HostStreams
from simulator.runtime.places import Places
from simulator.runtime.remote_buffers import RemoteBuffers
from simulator.runtime.storage import Storage

Step = Callable[[], None]
SMALL = 1 << 12  # elements, or blocks of them: places of so many are kept at once


@dataclass(frozen=True, slots=True)
class PreparedGroup:
    """A vertex group with the places of its fields."""

    operands: Operands
    inputs: dict[str, Places]
    outputs: dict[str, Places]

    def compute(self) -> dict[str, Array]:
        """Load the operands and compute the outputs."""
        for name, places in self.inputs.items():
            self.operands.arrays[name] = places.load()
        try:
            return self.operands.group.codelet.compute(self.operands)
        finally:
            self.operands.arrays.clear()


class ValueRunner:
    """Executes the values of program nodes.

    What is small is kept. Where many elements lie, and what a compute set needs, is kept when it is
    needed once more: it is much, and most of a program runs once.
    """

    def __init__(
        self,
        graph: Graph,
        storage: Storage,
        streams: HostStreams,
        remote: RemoteBuffers,
        *,
        replica: int = 0,
        first: int = 0,
        discards: Discards | None = None,
    ) -> None:
        """Hold values of a replica; the graph's number of the first that runs here is `first`.

        `discards` are the bytes that are dead once an action has run.
        """
        self._graph = graph
        self._storage = storage
        self._streams = streams
        self._remote = remote
        self._replica = replica
        self._text: TextIO | None = None
        self._steps: dict[Program, Step] = {}
        self._compute_sets: dict[int, list[PreparedGroup] | None] = {}  # those that ran
        self._places: dict[Tensor, Places | None] = {}  # None: were needed once
        self._discards = discards or {}
        self._registers: dict[str, Any] = {"replica": first + replica}

    def print_to(self, text: TextIO) -> None:
        """Send what PrintTensor prints to this stream."""
        self._text = text

    def tell_clocks(self, clocks: tuple[IntArray, IntArray]) -> None:
        """Emit the clocks of all tiles before and after the next program."""
        self._registers[CLOCKS] = clocks

    def run(self, action: Program) -> None:
        """Execute one node that has nothing below it."""
        step = self._steps.get(action)
        if step is None:
            step = self._steps[action] = self._prepare(action)
        step()
        if dead := self._discards.get(action):
            self._storage.discard(dead)

    # What decides
    def is_set(self, predicate: Tensor) -> bool:
        """Return whether a predicate is not zero; raises PoplarError when replicas disagree."""
        flags = self._places_of(predicate).load() != 0
        if flags.any() != flags.all():
            raise PoplarError(
                f"{predicate!r}: the replicas disagree; one program decides for them all"
            )
        return bool(flags[0])

    def number(self, control: Tensor) -> int:
        """Return the value that a Switch decides by; raises PoplarError when replicas disagree."""
        values = self._places_of(control).load()
        if (values != values[0]).any():
            raise PoplarError(f"{control!r}: replicas hold {values.tolist()}; one value is needed")
        return int(values[0])

    # What replicas exchange
    def read(self, tensor: Tensor) -> Array:
        """Copy the values of a tensor out, flat."""
        return self._places_of(tensor).load()

    def write(self, tensor: Tensor, values: Array) -> None:
        """Copy flat values into a tensor."""
        self._places_of(tensor).store(values)

    def _prepare(self, action: Program) -> Step:
        match action:
            case Execute():
                return partial(self._execute, action.compute_set.id)
            case Copy():
                return self._copy(action)
            case CrossReplicaCopy():
                return lambda: self.write(action.dst, self.read(action.src))
            case PrintTensor():
                return lambda: self._print(action)
            case ErrorProgram():
                return lambda: self._fail(action)
            case Abort():
                return lambda: _abort(action)
            case AbortOnCondition():
                return lambda: _abort(action) if self.read(action.predicate).any() else None
            case WriteUndef() | Sync() | AssumeEqualAcrossReplicas():
                return lambda: None
            case _:
                raise TypeError(f"{type(action).__name__} has no values of its own")

    def _execute(self, compute_set: int) -> None:
        prepared = self._compute_sets.get(compute_set)
        if prepared is None:
            prepared = [self._group(group) for group in self._graph.groups_of(compute_set)]
            again = compute_set in self._compute_sets
            self._compute_sets[compute_set] = prepared if again else None
        _run_groups(prepared)

    def _group(self, group: VertexGroup) -> PreparedGroup:
        places = {name: self._storage.places(field) for name, field in group.fields.items()}
        outputs = {n: p for n, p in places.items() if group.fields[n].direction != "input"}
        # A library codelet writes its outputs whole; a user's may leave elements as they are.
        inputs = {
            name: place
            for name, place in places.items()
            if group.codelet.kind == "user" or group.fields[name].direction != "output"
        }
        counts = {name: field.counts() for name, field in group.fields.items()}
        operands = Operands(group, {}, counts, registers=self._registers)
        return PreparedGroup(operands, inputs, outputs)

    def _copy(self, action: Copy) -> Step:
        load, store = self._source(action), self._sink(action)
        return lambda: store(load())

    def _source(self, action: Copy) -> Callable[[], Array]:
        match action.src:
            case Stream() as stream:
                return lambda: self._streams.fetch(stream, self._replica)
            case RemoteBuffer() as buffer:
                return lambda: self._remote.load(buffer, self._rows(action), self._replica)
            case tensor:
                return lambda: self.read(tensor)

    def _sink(self, action: Copy) -> Callable[[Array], None]:
        match action.dst:
            case Stream() as stream:
                return lambda values: self._streams.store(stream, values, self._replica)
            case RemoteBuffer() as buffer:
                return lambda values: self._remote.store(
                    buffer, self._rows(action), values, self._replica
                )
            case tensor:
                return lambda values: self.write(tensor, values)

    def _rows(self, action: Copy) -> Array:
        """Return the rows of a remote buffer that a copy moves: those of its offset, or row 0."""
        return np.zeros(1, dtype=np.int64) if action.offset is None else self.read(action.offset)

    def _places_of(self, tensor: Tensor) -> Places:
        places = self._places.get(tensor)
        if places is None:
            places = self._storage.places(tensor)
            is_small = places.numbers is None or len(places.numbers) <= SMALL
            self._places[tensor] = places if is_small or tensor in self._places else None
        return places

    def _fail(self, action: ErrorProgram) -> None:
        values = format_values(self._storage.read(action.tensor))
        raise application_runtime_error(f"{action.message}: {action.tensor.describe()} is {values}")

    def _print(self, action: PrintTensor) -> None:
        values = format_values(self._storage.read(action.tensor))
        print(f"{action.title}: {values}", file=self._text or sys.stderr)


def _abort(action: Abort | AbortOnCondition) -> NoReturn:
    name = f"{type(action).__name__} {action.name}".rstrip()
    raise application_runtime_error(action.message or f"{name}: the program ended its run")


def _run_groups(prepared: list[PreparedGroup]) -> None:
    """Run the groups of a compute set: every vertex reads what was there before it."""
    with np.errstate(all="ignore"):  # a device overflows and divides by zero without a warning
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
