"""The way back through outlined nodes: a function too, called where their gradients are wanted.

Before a call the variables of the forward function that it reads have what the call of those nodes
left, and its own the gradients of the outputs; behind it the gradients are copied out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from simulator.graph.program import Call
from simulator.graph.program import Sequence as Steps
from simulator.graph.tensors.regions import variables_of
from simulator.graph.tensors.tensor import Tensor
from simulator.popart.lowering import LAYER, Lowering
from simulator.popart.representation.ir import Node
from simulator.popart.scheduling.outlined import (
    Outlined,
    Outlining,
    Use,
    functions_of,
    layer_of,
    together,
    used_by,
)
from simulator.popart.scheduling.stash import whole_variable
from simulator.poplibs import poputil

# Adds the gradients of a node: lowering, node, gradients so far, program, what moves.
Step = Callable[[Lowering, Node, dict[str, Tensor], Any, Collection[str]], None]


@dataclass(frozen=True, slots=True, eq=False)
class Backward:
    """A function of the way back: `outlined` takes the gradients of some outputs.

    `reads` are the variables of the forward function that it reads, `gradients` those that it
    gives, by the names of the tensors that the forward function was made of.
    """

    outlined: Outlined
    reads: list[int]
    gradients: dict[str, Tensor]


def lower_back(
    lowering: Lowering,
    use: Use,
    gradients: Mapping[str, Tensor],
    prog: Steps,
    moving: Collection[str],
    step: Step,
) -> tuple[str, Steps, dict[str, Tensor]]:
    """Add a call for the way back through a call; give its label, program and gradients."""
    outlining, graph = functions_of(lowering), lowering.graph
    assert outlining is not None
    nodes, like = use.nodes, outlining.nodes_of(use.outlined)
    home, names = lowering.home_of(nodes[0]), renamed(like, nodes)
    at = lowering.program(home, prog)
    reached = [name for node in like for name in node.outputs if name and names[name] in gradients]
    moved = frozenset(name for name, renamed in names.items() if renamed in moving)
    key = (use.outlined, tuple(reached), moved)
    label = f"{layer_of(nodes)}/Grad"
    grads = [
        lowering.carried(
            gradients[names[n]], lowering.gradient_home(names[n]), home, at, f"{label}/In"
        )
        for n in reached
    ]
    if key not in outlining.backward:
        gradients_in = dict(zip(reached, grads, strict=True))
        outlining.backward[key] = _function(outlining, use.outlined, gradients_in, moved, step)
    back: Backward = outlining.backward[key]
    label = f"{layer_of(nodes)}/{back.outlined.function.name}"
    out = Steps(name=f"{label}/Out")
    call = Use(graph, back.outlined, label, out, nodes, {})
    facts = {"node": label, "operator": "ai.graphcore.Call-1", "onnxLayer": layer_of(nodes)}
    with graph.debug_scope(label, LAYER, **facts):
        pairs = [*zip(grads, back.outlined.inputs, strict=True), *_left(lowering, use, back, home)]
        into = together(pairs, f"{label}/In")
        at.add(Steps(into, Call(back.outlined.function, label), out, name=label))
        call_gradients = {
            names[name]: call.own(gradient) for name, gradient in back.gradients.items()
        }
    outlining.uses.append(call)
    return label, at, call_gradients


def comes_again(outlining: Outlining, use: Use, moving: Collection[str]) -> bool:
    """Return whether another call of the function lets the same of what it is given move."""

    def moved(call_use: Use) -> list[bool]:
        return [name in moving for name in call_use.given]

    uses = [use_b for use_b in outlining.ends.values() if use_b.outlined is use.outlined]
    return [moved(use_b) for use_b in uses].count(moved(use)) > 1


def renamed(like: Sequence[Node], nodes: Sequence[Node]) -> dict[str, str]:
    """Return for each tensor of some nodes that of others which are equal."""
    both = zip(like, nodes, strict=True)
    rows = (zip((*a.inputs, *a.outputs), (*b.inputs, *b.outputs), strict=True) for a, b in both)
    return {name: equal_name for row in rows for name, equal_name in row if name}


def _left(
    lowering: Lowering, use: Use, back: Backward, home: int
) -> list[tuple[Tensor, Tensor]]:  # fmt: skip
    """Pair what a call left, or was given, with the variables of its function."""
    pairs, remaining = [], set(back.reads)
    for operand, inner in zip(use.given.values(), use.outlined.inputs, strict=True):
        mine = remaining.intersection(variables_of(inner))
        if mine:
            pairs.append((lowering.held(home, [operand])[0], inner))
            remaining -= mine
    for number in sorted(remaining):
        variable = whole_variable(lowering.graph, number)
        pairs.append((lowering.held(home, [use.own(variable)])[0], variable))
    return pairs


def _function(
    outlining: Outlining,
    forward: Outlined,
    grads: Mapping[str, Tensor],
    moving: Collection[str],
    step: Step,
) -> Backward:
    """Lower the way back through the nodes of a function to another one."""
    graph, name = forward.lowering.graph, f"_subgraph({next(outlining.numbers)})"
    body, first = Steps(name=name), len(graph.variables)
    plain = {f.name: getattr(forward.lowering, f.name) for f in fields(Lowering) if f.init}
    inner = Lowering(**(plain | {"outlining": None, "prefix": f"{name}/", "gradient_homes": {}}))
    inputs = {n: graph.clone(t, f"{name}/Gradient___{n}") for n, t in grads.items()}
    by_name, nodes = dict(inputs), outlining.nodes_of(forward)
    for node in reversed(nodes):
        step(inner, node, by_name, body, moving)
    outside = outlining.schedule.outside(forward.start, len(nodes))
    gradients = {n: by_name[n] for n in outside if n in by_name and n in moving}
    for n, gradient in gradients.items():
        if any(number < first for number in variables_of(gradient)):
            gradients[n] = poputil.duplicate(graph, gradient, body, f"{name}/Gradient___{n}")
    variables = range(first, len(graph.variables))
    reads = [
        n for n in used_by(graph, [body])
        if n in forward.variables and not graph.variables[n].constant
    ]  # fmt: skip
    function = Outlined(
        graph.addFunction(body, name), inner, forward.start, len(nodes), list(inputs.values()), [],
        variables,
    )  # fmt: skip
    return Backward(function, reads, gradients)
