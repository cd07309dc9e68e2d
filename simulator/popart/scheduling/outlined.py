"""Functions of a lowering: nodes that come again are lowered once, and called with copies around.

A function has variables of its own. A call copies into them what its nodes read from around, runs
the function, and copies out what is read behind it, in training what the way back reads too. So do
PopART's calls (willow/src/popx/op/callx.cpp, SubgraphCopyingStrategy OnEnterAndExit).
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from os.path import commonprefix
from typing import Any

import numpy as np

from simulator.graph.graph import Function, Graph
from simulator.graph.program import Call, Copy, Execute, Program, children_of, tensors_of
from simulator.graph.program import Sequence as Steps
from simulator.graph.tensors.regions import met, variables_of
from simulator.graph.tensors.tensor import Tensor, concat
from simulator.graph.types import Type
from simulator.popart.lowering import Lowering
from simulator.popart.operators.call import Call as NodeCall
from simulator.popart.representation.ir import Ir, Node
from simulator.popart.scheduling.outlining import Schedule, repeated_nodes
from simulator.popart.scheduling.repeats import Repeat
from simulator.popart.scheduling.stash import each_tensor, moved, whole_variable
from simulator.popart.sessions.options import SessionOptions
from simulator.poplibs.popops.regions import in_memory_order

LAYER = "popart"


@dataclass(frozen=True, slots=True, eq=False)
class Outlined:
    """A function, and the lowering of the `length` nodes from `start` on that it was made of.

    `inputs` are its variables for what comes from around, `changed` the numbers of those that it
    writes; `variables` are the numbers of all that it has.
    """

    function: Function
    lowering: Lowering
    start: int
    length: int
    inputs: list[Tensor]
    changed: list[int]
    variables: range


@dataclass(slots=True, eq=False)
class Use:
    """A call of a function: for its variables those of the call, filled by `out` behind it.

    It stands for `nodes`, and is `given` tensors by the names of those.
    """

    graph: Graph
    outlined: Outlined
    label: str
    out: Steps
    nodes: Sequence[Node]
    given: dict[str, Tensor]
    instead: dict[int, int] = field(default_factory=dict)

    def own(self, tensor: Tensor) -> Tensor:
        """Return a tensor of the function as this call has left it."""
        graph, of = self.graph, self.outlined.variables
        numbers = [n for n in variables_of(tensor) if n in of and not graph.variables[n].constant]
        for number in numbers:
            if number not in self.instead:
                name = f"{self.label}/{graph.variables[number].name}"
                graph.clone(whole_variable(graph, number), name)
                self.instead[number] = len(graph.variables) - 1
        return moved(tensor, {n: self.instead[n] for n in numbers}) if numbers else tensor

    def call(self, like: NodeCall, node: Node) -> NodeCall:
        """Return the call of a node for the way back: with what is given, and what is left here."""
        rows = zip(node.inputs, like.inputs, strict=True)
        inputs = [
            None if tensor is None else self.given[name] if name in self.given else self.own(tensor)
            for name, tensor in rows
        ]
        return replace(like, node=node, inputs=inputs, saved=each_tensor(like.saved, self.own))


@dataclass(slots=True, eq=False)
class Outlining:
    """The functions of a session, by the sequences of nodes that are to become one."""

    schedule: Schedule
    repeats: dict[int, list[Repeat]] = field(default_factory=dict)  # by begin, the longest first
    functions: dict[Repeat, Outlined] = field(default_factory=dict)
    uses: list[Use] = field(default_factory=list)
    ends: dict[str, Use] = field(default_factory=dict)  # by the name of its last node
    backward: dict[Hashable, Any] = field(default_factory=dict)  # functions of the way back
    numbers: Iterator[int] = field(default_factory=count)

    @classmethod
    def of(cls, schedule: Schedule, repeats: Iterable[Repeat]) -> Outlining:
        """Make the functions that some sequences will be."""
        outlining = cls(schedule)
        for repeat in sorted(repeats, key=lambda repeat: -repeat.length):
            for start in repeat.starts:
                outlining.repeats.setdefault(start, []).append(repeat)
        return outlining

    def at(self, place: int, below: int) -> Repeat | None:
        """Return the longest sequence of fewer than `below` nodes that begins at a node."""
        return next((r for r in self.repeats.get(place, ()) if r.length < below), None)

    def nodes_of(self, outlined: Outlined) -> Sequence[Node]:
        """Return the nodes that a function was made of."""
        return self.schedule.ir.nodes[outlined.start : outlined.start + outlined.length]

    def lower(self, lowering: Lowering, repeat: Repeat, place: int, prog: Steps) -> None:
        """Add a call in place of the nodes from a place on."""
        nodes = self.schedule.ir.nodes[place : place + repeat.length]
        home, names = lowering.home_of(nodes[0]), self.schedule.outside(place, repeat.length)
        if repeat not in self.functions:
            self.functions[repeat] = self._function(lowering, repeat, place, names, prog)
        outlined = self.functions[repeat]
        for name, like in zip(names, outlined.inputs, strict=True):
            if _is_new(lowering, name, home):  # and lies as the function wants it
                lowering.stored[name] = lowering.graph.clone(like, f"{lowering.prefix}{name}")
        operands = [lowering.at_home(name, home, prog) for name in names]
        label = f"{layer_of(nodes)}/{outlined.function.name}"
        out = Steps(name=f"{label}/Out")
        use = Use(
            lowering.graph, outlined, label, out, nodes, dict(zip(names, operands, strict=True))
        )
        facts = {"node": label, "operator": "ai.graphcore.Call-1", "onnxLayer": layer_of(nodes)}
        with lowering.graph.debug_scope(label, LAYER, **facts):
            into = together(zip(operands, outlined.inputs, strict=True), f"{label}/In")
            changed = [(outlined.inputs[number], operands[number]) for number in outlined.changed]
            back = together(changed, f"{label}/Changed")
            prog.add(Steps(into, Call(outlined.function, label), out, back, name=label))
            self._take_out(lowering, use, repeat)
            for node in nodes if place != outlined.start else ():
                with lowering.scope(node):  # so that each node has its debug context
                    pass
        self.uses.append(use)
        if not lowering.prefix:
            self.ends[nodes[-1].name] = use

    def _function(
        self, lowering: Lowering, repeat: Repeat, place: int, names: list[str], prog: Steps
    ) -> Outlined:
        """Lower the nodes from a place on to a function; weights it lays out for itself."""
        graph, name = lowering.graph, f"_subgraph({next(self.numbers)})"
        home, body = lowering.home_of(self.schedule.ir.nodes[place]), Steps(name=name)
        read = [n for n in names if not _is_new(lowering, n, home)]
        operands = {n: lowering.at_home(n, home, prog) for n in read}
        first = len(graph.variables)
        inner = replace(
            lowering, home=home, placed={}, calls={}, inner={}, copies={}, prefix=f"{name}/",
            stored=dict(lowering.stored), gradient_homes={}, off_chip=None,
            made={n: graph.clone(tensor, f"{name}/{n}") for n, tensor in operands.items()},
        )  # fmt: skip
        inner.lower_nodes(range(place, place + repeat.length), body, repeat.length)
        inputs, written = [inner.tensor(n) for n in names], _copied_to(body)
        changed = [n for n, t in enumerate(inputs) if written.intersection(variables_of(t))]
        added_variables = range(first, len(graph.variables))
        return Outlined(
            graph.addFunction(body, name),
            inner,
            place,
            repeat.length,
            inputs,
            changed,
            added_variables,
        )

    def _take_out(self, lowering: Lowering, use: Use, repeat: Repeat) -> None:
        """Let the lowering have what the nodes make; in training also their calls."""
        inner, nodes = use.outlined.lowering, use.nodes
        home, first = lowering.home_of(nodes[0]), self.nodes_of(use.outlined)
        behind = {
            row for begin in repeat.starts for row in self.schedule.read_behind(begin, len(nodes))
        }
        for number, (node, like) in enumerate(zip(nodes, first, strict=True)):
            lowering.makers |= dict.fromkeys(node.outputs, home)
            for place, name in enumerate(node.outputs):
                if name and (lowering.training or (number, place) in behind):
                    lowering.made[name] = use.own(inner.tensor(like.outputs[place]))
            if lowering.training:
                lowering.calls[node.name] = use.call(inner.calls[like.name], node)

    def finish(self, graph: Graph, programs: Iterable[Program]) -> None:
        """Copy out what anything reads behind the calls; `programs` are all that there will be."""
        bodies = [program for _, program in graph.functions]
        used = used_by(graph, [*programs, *bodies]) if self.uses else set()
        for use in reversed(self.uses):
            read = {old: new for old, new in use.instead.items() if new in used}
            used.update(read)
            pairs = [tuple(whole_variable(graph, n) for n in pair) for pair in read.items()]
            use.out.children.extend(together(pairs, use.out.name))
        # Lowerings, functions and calls hold one another, and the tensors of all nodes.
        calls = [outlined.lowering.calls for outlined in self.functions.values()]
        holders: list[Any] = [*calls, self.functions, self.uses, self.ends, self.backward]
        for holder in holders:
            holder.clear()


def together(pairs: Iterable[tuple[Tensor, ...]], name: str) -> list[Program]:
    """Copy tensors to tensors, those of a type in one, in the order of memory."""
    rows: dict[Type, list[tuple[Tensor, ...]]] = {}
    for source, destination in pairs:
        if source.numElements():
            row = in_memory_order(
                {"in": ("input", source), "out": ("output", destination)}, leading="out"
            )
            both = tuple(row[end][1].flatten() for end in ("in", "out"))
            rows.setdefault(source.dtype, []).append(both)
    columns = [list(zip(*row, strict=True)) for row in rows.values()]
    return [Copy(concat(sources), concat(ends), name=name) for sources, ends in columns]


def outlining_of(
    ir: Ir, placed: Mapping[str, int], read_outside: Collection[str], options: SessionOptions
) -> Outlining | None:
    """Choose what becomes a function; None where nothing does. `read_outside` are kept."""
    if not options.enableOutlining:
        return None
    schedule, prune = Schedule(ir, placed, read_outside), options.enableOutliningCopyCostPruning
    repeats = repeated_nodes(schedule, options.outlineThreshold, prune=prune)
    return Outlining.of(schedule, repeats) if repeats else None


def functions_of(lowering: Lowering) -> Outlining | None:
    """Return the functions of a lowering; None where nothing is outlined."""
    return lowering.outlining if isinstance(lowering.outlining, Outlining) else None


def _is_new(lowering: Lowering, name: str, home: int) -> bool:
    """Return whether nothing has read an input or weight, and nothing will at another home."""
    if name in lowering.made or name in lowering.stored:
        return False
    readers = lowering.consumers.get(name, ())
    return all(lowering.home_of(node) == home for node, _ in readers)


def layer_of(nodes: Sequence[Node]) -> str:
    """Name the layer that all nodes are of, or the first of them where there is none."""
    common = commonprefix([f"{node.name}/" for node in nodes]).rpartition("/")[0]
    return common or nodes[0].name


def _leaves(programs: Iterable[Program]) -> Iterable[Program]:
    """Return the programs and all below them."""
    waiting = list(programs)
    while waiting:
        node = waiting.pop()
        waiting += children_of(node)
        yield node


def _copied_to(body: Program) -> set[int]:
    """Number the variables that a program copies to."""
    return {
        number
        for node in _leaves([body])
        if isinstance(node, Copy) and isinstance(node.dst, Tensor)
        for number in variables_of(node.dst)
    }


def used_by(graph: Graph, programs: Iterable[Program]) -> set[int]:
    """Number the variables that programs and the vertices that they run have."""
    bounds = graph.variable_bounds()
    used = np.zeros(len(bounds[0]), dtype=bool)
    leaves = list(_leaves(programs))
    sets = {node.compute_set.id for node in leaves if isinstance(node, Execute)}
    for group in graph.vertex_groups():
        for item in group.fields.values() if group.compute_set in sets else ():
            used |= met(item.begins, item.lengths, *bounds, item.dtype.size)
    for node in leaves:
        for tensor in tensors_of(node):
            used[variables_of(tensor)] = True
    return set(np.flatnonzero(used).tolist())
