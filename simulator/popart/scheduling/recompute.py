"""Recomputation: what the way back needs of some nodes is made again, and not kept till then."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isqrt
from typing import Any

import numpy as np

from simulator.graph.program import Sequence as Program
from simulator.graph.tensors.tensor import Tensor
from simulator.popart.errors import popart_exception
from simulator.popart.lowering import Lowering
from simulator.popart.operators.call import Call
from simulator.popart.operators.elements.drawn import DRAWS
from simulator.popart.operators.table import OPERATORS
from simulator.popart.representation.ir import RECOMPUTE_ATTRIBUTE, Ir, Node
from simulator.popart.scheduling.stash import Delayed
from simulator.popart.settings.names import RecomputationType, RecomputeType

# What would not be the same again, or does more than to make its outputs.
ONCE = (*DRAWS, "If", "Loop", "PrintTensor", "Scan")
NORMS = ("BatchNormalization", "GroupNormalization", "InstanceNormalization", "LayerNormalization")
FOLLOWING = ("Elu", "Gelu", "LeakyRelu", "Relu", "Sigmoid", "Tanh")


def recomputed(ir: Ir, kind: RecomputationType, placed: Mapping[str, int]) -> set[str]:
    """Name the nodes that are computed again: those of the kind, and as the builder has noted."""
    ways: dict[RecomputationType, Callable[[], Sequence[Node]]] = {
        RecomputationType.NoRecompute: list,
        RecomputationType.Standard: lambda: _between_checkpoints(ir),
        RecomputationType.NormOnly: lambda: _norms(ir),
        RecomputationType.Pipeline: lambda: _before_the_last(ir, placed),
        RecomputationType.RecomputeAll: lambda: ir.nodes,
    }
    nodes = ways[kind]()
    names = {node.name for node in nodes}
    for node in ir.nodes:
        noted = RecomputeType(int(node.attributes.get(RECOMPUTE_ATTRIBUTE, 0)))
        if noted is RecomputeType.Recompute:
            names.add(node.name)
        elif noted is RecomputeType.Checkpoint:
            names.discard(node.name)
    return {node.name for node in ir.nodes if node.name in names and node.operator not in ONCE}


def check_recomputation(ir: Ir, kind: RecomputationType) -> None:
    """Raise popart_exception where a kind and the builder both say what is computed again."""
    noted = any(
        node.attributes.get(RECOMPUTE_ATTRIBUTE) == RecomputeType.Recompute.value
        for node in ir.nodes
    )
    if noted and kind is not RecomputationType.NoRecompute:
        raise popart_exception("A mixture of auto and manual recomputation is not supported")


def _norms(ir: Ir) -> list[Node]:
    """Return the norms, and the activations right behind them."""
    norms = [node for node in ir.nodes if node.operator in NORMS]
    norm_outputs = {node.outputs[0] for node in norms}
    behind = (n for n in ir.nodes if n.operator in FOLLOWING and n.inputs[0] in norm_outputs)
    return [*norms, *behind]


def _before_the_last(ir: Ir, placed: Mapping[str, int]) -> list[Node]:
    last = max(placed.values(), default=0)
    return [node for node in ir.nodes if placed.get(node.name, 0) < last]


def _between_checkpoints(ir: Ir) -> list[Node]:
    """Cut the nodes into parts, the root of their number, alike in bytes of what they make.

    What a later part reads is kept; the rest is made again.
    """
    sizes = [sum(ir.infos[name].nbytes() for name in node.outputs if name) for node in ir.nodes]
    total, count = np.cumsum([0, *sizes]), max(isqrt(len(ir.nodes)), 1)
    part = dict(zip((node.name for node in ir.nodes), total[:-1] * count // max(total[-1], 1),
                    strict=True))  # fmt: skip
    last = {name: part[node.name] for node in ir.nodes for name in node.reads}
    return [
        node
        for node in ir.nodes
        if all(last.get(name, 0) <= part[node.name] for name in node.outputs if name)
    ]


@dataclass(slots=True)
class Again:
    """The nodes that are computed again in a backward pass, each when it is first needed."""

    lowering: Lowering
    names: set[str]
    made: dict[str, Tensor] = field(default_factory=dict)
    makers: dict[str, Node] = field(default_factory=dict)
    order: dict[str, int] = field(default_factory=dict)  # of the nodes, by name

    def __post_init__(self) -> None:
        nodes = [node for node in self.lowering.ir.nodes if node.name in self.names]
        self.makers = {name: node for node in nodes for name in node.outputs if name}
        self.order = {node.name: place for place, node in enumerate(nodes)}

    def call_of(self, node: Node, prog: Program) -> Call:
        """Return the call of a node, whose inputs are made again when its gradient reads them."""
        if node.name in self.names and self.lowering.calls[node.name].saved:
            self._make(node, prog)
        call, home = self.lowering.calls[node.name], self.lowering.home_of(node)
        call.inputs = self._delayed(node.inputs, call.inputs, home, prog)
        return call

    def outputs(self, node: Node, prog: Program) -> list[Tensor]:
        """Return the outputs of a node, made again when they are read."""
        names = [name for name in node.outputs if name]
        tensors = [self.lowering.tensor(name) for name in names]
        return self._delayed(names, tensors, self.lowering.home_of(node), prog)

    def _is_near(self, name: str, home: int) -> bool:
        """Return whether a tensor is made again at a home; what has crossed to another is kept."""
        maker = self.makers.get(name)
        return maker is not None and self.lowering.home_of(maker) == home

    def _delayed(
        self, names: Iterable[str], tensors: Sequence[Tensor | None], home: int, prog: Program
    ) -> list[Any]:
        names_by_id = {
            id(tensor): name
            for name, tensor in zip(names, tensors, strict=False)
            if tensor is not None and self._is_near(name, home)
        }

        def fresh(tensor: Tensor) -> Tensor:
            name = names_by_id.get(id(tensor))
            if name is not None:
                return self._tensor(name, prog)
            tensor_here: Tensor = self.lowering.held(home, [tensor])[0]
            return tensor_here

        return Delayed(list(tensors), fresh)

    def _tensor(self, name: str, prog: Program) -> Tensor:
        if name not in self.made:
            self._make(self.makers[name], prog)
        return self.made[name]

    def _make(self, node: Node, prog: Program) -> None:
        """Lower a node again, after all those that it needs, however many stand in a row."""
        needed, waiting = {}, [node]
        while waiting:
            one = waiting.pop()
            if one.name in needed or any(name in self.made for name in one.outputs if name):
                continue
            needed[one.name], home = one, self.lowering.home_of(one)
            waiting += [self.makers[name] for name in one.reads if self._is_near(name, home)]
        for name in sorted(needed, key=self.order.__getitem__):
            self._lower_again(needed[name], prog)

    def _lower_again(self, node: Node, prog: Program) -> None:
        """Lower a node again; what it reads is there."""
        lowering, old = self.lowering, self.lowering.calls[node.name]
        home = lowering.home_of(node)
        inputs = self._delayed(node.inputs, old.inputs, home, prog)
        inputs = [inputs[place] for place in range(len(inputs))]  # each from where it is
        with lowering.scope(node):
            again = replace(node, name=f"{node.name}/Recompute")
            call = replace(old, node=again, prog=prog, inputs=inputs, saved=(), again=True)
            outputs = OPERATORS[node.key].lower(call)
        tensors = [outputs] if isinstance(outputs, Tensor) else list(outputs)
        rows = zip(node.outputs, tensors, strict=False)
        self.made |= {name: tensor for name, tensor in rows if name}
        lowering.calls[node.name] = replace(call, node=node)
