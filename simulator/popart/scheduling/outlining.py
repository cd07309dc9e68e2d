"""Which nodes are lowered once and called from several places, as PopART's outlining finds them.

Nodes are equal when their operator, attributes, types, constants and IPU are. What a node is worth
(`HIGH`, `LOW`), the threshold and the cost of copies are PopART's: willow/include/popart/op.hpp,
sessionoptions.hpp, subgraph/prunematches.hpp and subgraph/iosubgraphcostmodel.cpp.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from simulator.graph.types import Array
from simulator.popart.operators.table import OPERATORS
from simulator.popart.representation.ir import (
    IPU_ATTRIBUTE,
    PHASE_ATTRIBUTE,
    STAGE_ATTRIBUTE,
    Ir,
    Node,
)
from simulator.popart.scheduling.repeats import Repeat, chosen_repeats

HIGH, LOW = 1000.0, 0.1
VALUABLE = (
    "BatchNormalization", "Conv", "ConvInteger", "ConvTranspose", "Gemm", "GroupNormalization",
    "InstanceNormalization", "LayerNormalization", "LRN", "MatMul", "MatMulInteger", "RNN",
)  # fmt: skip
# Nodes that PopART does not outline, or that show their name.
ALONE = ("GRU", "LSTM", "PrintTensor")
PLACES = (IPU_ATTRIBUTE, STAGE_ATTRIBUTE, PHASE_ATTRIBUTE)  # where a node is stands for itself


@dataclass(slots=True)
class Schedule:
    """The nodes of a model in their order: what is equal, and how they are connected.

    `placed` tells the IPU of each node, `kept` are the tensors that are read outside the model.
    """

    ir: Ir
    placed: Mapping[str, int]
    kept: Collection[str]
    makers: dict[str, tuple[int, int]] = field(default_factory=dict)  # tensor -> node, output
    readers: dict[str, list[int]] = field(default_factory=dict)
    digests: dict[str, Hashable] = field(default_factory=dict)  # of constants

    def __post_init__(self) -> None:
        for number, node in enumerate(self.ir.nodes):
            self.makers |= {name: (number, place) for place, name in enumerate(node.outputs)}
            for name in node.reads:
                self.readers.setdefault(name, []).append(number)

    def kind(self, node: Node) -> Hashable:
        """Return what equal nodes have in common."""
        if node.graphs or node.operator in ALONE:
            return node.name
        attributes = {k: _fixed(v) for k, v in node.attributes.items() if k not in PLACES}
        return (
            node.key,
            node.version,
            frozenset(attributes.items()),
            tuple(self._input(node, place) for place in range(len(node.inputs))),
            tuple(self._info(name) for name in node.outputs),
            self.placed.get(node.name, 0),
        )

    def _info(self, name: str) -> Hashable:
        info = self.ir.infos.get(name)
        return None if info is None else (info.type, tuple(info.dims))

    def _input(self, node: Node, place: int) -> Hashable:
        name = node.inputs[place]
        return (self._info(name), self._digest(name) if self.is_known(node, place) else None)

    def is_known(self, node: Node, place: int) -> bool:
        """Return whether an input is part of the program: a constant, or what has to be known."""
        return node.inputs[place] in self.ir.constants or place in OPERATORS[node.key].static

    def _digest(self, name: str) -> Hashable:
        if name not in self.digests:
            values = self.ir.known(name)
            self.digests[name] = name if values is None else _fixed(values)
        return self.digests[name]

    def outside(self, start: int, length: int) -> list[str]:
        """Name the tensors that a sequence reads of what is around it, in the order of reading."""
        return [
            name
            for name in dict.fromkeys(
                name
                for node in self.ir.nodes[start : start + length]
                for place, name in enumerate(node.inputs)
                if name and not self.is_known(node, place)
            )
            if not start <= self.makers.get(name, (-1, 0))[0] < start + length
        ]

    def pattern(self, start: int, length: int) -> Hashable:
        """Return what each input in a sequence is: which output within, or which from outside."""
        outside: dict[str, int] = {}
        rows: list[Hashable] = []
        for node in self.ir.nodes[start : start + length]:
            for place, name in enumerate(node.inputs):
                if not name or self.is_known(node, place):
                    continue
                maker, output = self.makers.get(name, (-1, 0))
                within = maker >= start
                rows.append(
                    (maker - start, output) if within else outside.setdefault(name, len(outside))
                )
        return tuple(rows)

    def alike(self, repeat: Repeat) -> list[tuple[int, ...]]:
        """Sort the beginnings of a sequence by how its nodes are connected."""
        groups: dict[Hashable, list[int]] = {}
        for start in repeat.starts:
            groups.setdefault(self.pattern(start, repeat.length), []).append(start)
        return list(map(tuple, groups.values()))

    def read_behind(self, start: int, length: int) -> list[tuple[int, int]]:
        """List the outputs (node, place) of a sequence that are read outside."""
        return [
            (number, place)
            for number in range(length)
            for place, name in enumerate(self.ir.nodes[start + number].outputs)
            if name and (name in self.kept or self._last(name) >= start + length)
        ]

    def _last(self, name: str) -> int:
        return self.readers.get(name, [-1])[-1]

    def copied(self, repeat: Repeat) -> npt.NDArray[np.float64]:
        """Return the roots of the bytes that a call of nodes [a, b) copies, by a and b - 1."""
        start, length = repeat.starts[0], repeat.length
        change = np.zeros((length + 1, length + 1))

        def add(a: tuple[int, int], b: tuple[int, int], cost: float) -> None:
            for row, column, sign in ((a[0], b[0], 1), (a[1], b[0], -1), (a[0], b[1], -1),
                                      (a[1], b[1], 1)):  # fmt: skip
                change[row, column] += sign * cost

        nodes = self.ir.nodes[start : start + length]
        names = {name for node in nodes for name in (*node.inputs, *node.outputs) if name}
        for name in names - self.ir.constants.keys():
            cost = float(np.sqrt(self.ir.infos[name].nbytes()))
            maker = self.makers.get(name, (-1, 0))[0] - start
            readers = [r - start for r in self.readers.get(name, ())]
            before = max(maker + 1, 0)  # brought if the nodes begin behind the maker
            for reader in sorted({r for r in readers if 0 <= r < length}):
                add((before, reader + 1), (reader, length), cost)
                before = reader + 1
            last = length if name in self.kept else min(max(readers, default=-1), length)
            if 0 <= maker < length and last > maker:  # taken out if the nodes end before a reader
                add((0, maker + 1), (maker, last), cost)
        summed: npt.NDArray[np.float64] = change.cumsum(axis=0).cumsum(axis=1)[:-1, :-1]
        return summed


def _fixed(value: object) -> Hashable:
    """Return an attribute or constant as what can be compared."""
    if isinstance(value, np.ndarray):
        array: Array = np.ascontiguousarray(value)
        return str(array.dtype), array.shape, blake2b(array.tobytes()).digest()
    if isinstance(value, list | tuple):
        return tuple(map(_fixed, value))
    return repr(value)


def worth(node: Node) -> float:
    """Return what it is worth to have a node's code once."""
    return HIGH if node.operator in VALUABLE else LOW


def repeated_nodes(schedule: Schedule, threshold: float, *, prune: bool) -> list[Repeat]:
    """Choose the sequences of nodes that become functions; `prune` lets copies cost something."""
    numbers: dict[Hashable, int] = {}
    nodes = schedule.ir.nodes
    ids = np.array([numbers.setdefault(schedule.kind(n), len(numbers)) for n in nodes], np.int64)
    values = [worth(node) for node in nodes]
    if len(numbers) == len(nodes):
        return []
    repeats = chosen_repeats(ids, values, schedule.alike, threshold)
    return _pruned(schedule, repeats, values, threshold) if prune else repeats


def _pruned(
    schedule: Schedule, repeats: list[Repeat], values: list[float], threshold: float
) -> list[Repeat]:
    """Take of each sequence the part whose value is most above the cost of its copies."""
    nodes, infos = schedule.ir.nodes, schedule.ir.infos
    read = [sum(infos[name].nbytes() for name in node.inputs if name in infos) for node in nodes]
    scaled = np.concatenate([[0.0], np.cumsum(np.array(values) * np.sqrt(read))])
    inner = np.zeros(len(nodes) + 1, dtype=bool)  # places at which a kept sequence may not be cut
    parts: dict[Repeat, None] = {}
    for repeat in sorted(repeats, key=lambda repeat: repeat.length):
        start, length = repeat.starts[0], repeat.length
        window = scaled[start : start + length + 1]
        value = window[None, 1:] - window[:-1, None] - schedule.copied(repeat)
        cut = inner[start : start + length + 1]
        value[cut[:-1], :] = value[:, cut[1:]] = -np.inf
        value[np.tri(length, k=-1, dtype=bool)] = -np.inf
        first, last = np.unravel_index(int(value.argmax()), value.shape)
        part = Repeat(int(last - first) + 1, tuple(s + int(first) for s in repeat.starts))
        if sum(values[part.starts[0] : part.starts[0] + part.length]) > threshold:
            parts[part] = None
            for begin in part.starts:
                inner[begin + 1 : begin + part.length] = True
    return list(parts)
