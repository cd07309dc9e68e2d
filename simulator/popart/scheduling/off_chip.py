"""Weights, and what an optimiser keeps of them, in remote buffers: loaded when a batch needs them.

Source: popart `willow/src/transforms/streamingmemoryopinserter.cpp`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from simulator.graph.graph import Graph
from simulator.graph.host.streams import RemoteBuffer
from simulator.graph.program import Copy
from simulator.graph.program import Sequence as Program
from simulator.graph.tensors.tensor import Tensor
from simulator.popart.logging import log
from simulator.popart.representation.ir import GRAPHCORE, Node
from simulator.popart.sessions.options import SessionOptions
from simulator.popart.settings.choices import (
    ReplicatedTensorSharding,
    TensorLocation,
    TensorLocationSettings,
    TensorStorage,
)
from simulator.popart.settings.names import reservedRemoteArgPrefix
from simulator.runtime.arrangement import in_memory_order

# Kinds of tensors, by the option that says where they lie.
WEIGHT, STATE, SUM = (
    "weightTensorLocationSettings",
    "optimizerStateTensorLocationSettings",
    "accumulatorTensorLocationSettings",
)


KINDS = (WEIGHT, STATE, SUM)
ACTIVATION = "activationTensorLocationSettings"


@dataclass(slots=True)
class OffChip:
    """The tensors off the chip: a remote buffer of one row for each, and what is loaded already."""

    graph: Graph
    options: SessionOptions
    buffers: dict[str, RemoteBuffer] = field(default_factory=dict)
    tensors: dict[str, Tensor] = field(default_factory=dict)  # in the order of memory
    loaded: set[str] = field(default_factory=set)  # weights, in this pass of a batch

    def holds(self, name: str, kind: str, tensor: Tensor) -> bool:
        """Return whether a tensor of a kind lies off the chip."""
        return is_off_chip(self.options, name, kind, tensor.numElements())

    def load_weights(self, weights: Mapping[str, Tensor], prog: Program, place: int) -> None:
        """Add the copies to the chip, at a place of a program, of those that are not there yet."""
        for name, tensor in weights.items():
            if name not in self.loaded and self.holds(name, WEIGHT, tensor):
                self.load(name, tensor, prog, place)
                self.loaded.add(name)

    def load(self, name: str, tensor: Tensor, prog: Program, place: int | None = None) -> None:
        """Add the copy of a tensor to the chip, at a place of a program or at its end."""
        buffer = self.buffer(name, tensor)
        copy = Copy(buffer, self.tensors[name], name=f"{name}/RemoteLoad")
        prog.children.insert(len(prog.children) if place is None else place, copy)

    def store(self, name: str, tensor: Tensor, prog: Program) -> None:
        """Add the copy of a tensor from the chip to a program."""
        buffer = self.buffer(name, tensor)
        prog.add(Copy(self.tensors[name], buffer, name=f"{name}/RemoteStore"))

    def buffer(self, name: str, tensor: Tensor) -> RemoteBuffer:
        """Return the remote buffer of a tensor, added if it is not there yet."""
        if name not in self.buffers:
            label = f"{reservedRemoteArgPrefix()}{name}"
            self.tensors[name] = in_memory_order(tensor)
            self.buffers[name] = self.graph.addRemoteBuffer(
                label, tensor.dtype, tensor.numElements()
            )
        return self.buffers[name]


def off_chip_of(graph: Graph, options: SessionOptions) -> OffChip | None:
    """Return what moves the tensors that options put off the chip, None where there are none.

    What is taken and changes nothing here is a warning: shards of replicas, and activations.
    """
    settings = [getattr(options, kind) for kind in KINDS]
    own = list(options.tensorLocationSettingsOverride.values())
    locations: list[TensorLocation] = [*(one.location for one in settings), *own]
    shards = any(one.replicatedTensorSharding is ReplicatedTensorSharding.On for one in locations)
    if shards and options.replicas > 1:
        log(
            "devicex", "WARN", "sharding of tensors has no effect here: each replica has them whole"
        )
    if getattr(options, ACTIVATION).location.storage is TensorStorage.OffChip:
        log("devicex", "WARN", "activations off the chip have no effect here: they stay on it")
    if all(one.storage is TensorStorage.OnChip for one in locations):
        return None
    return OffChip(graph, options)


def is_off_chip(options: SessionOptions, name: str, kind: str, elements: int) -> bool:
    """Return whether a tensor of a kind lies off the chip.

    A location of its own counts before that of its kind, which begins at a number of elements.
    """
    own: TensorLocation | None = options.tensorLocationSettingsOverride.get(name)
    settings: TensorLocationSettings = getattr(options, kind)
    location, least = (
        (settings.location, settings.minElementsForOffChip) if own is None else (own, 1)
    )
    return location.storage is TensorStorage.OffChip and elements >= max(1, least)


def moves_of(
    options: SessionOptions, tensors: Mapping[str, tuple[str, int]]
) -> tuple[list[Node], list[Node]]:
    """Return the nodes that load and store what lies off the chip, of kinds and sizes by name."""
    names = [n for n, (kind, size) in tensors.items() if is_off_chip(options, n, kind, size)]
    ends = {name: (name, f"{reservedRemoteArgPrefix()}{name}") for name in names}
    loads, stores = (
        [Node(f"{n}/{kind}", GRAPHCORE, kind, 1, both, both[:1]) for n, both in ends.items()]
        for kind in ("RemoteLoad", "RemoteStore")
    )
    return loads, stores
