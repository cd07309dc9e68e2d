"""The order of a model's nodes, and a name for each."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Sequence

import onnx

from simulator.popart.errors import popart_exception


def in_order(graph: onnx.GraphProto, names: Iterable[str], subject: str) -> list[onnx.NodeProto]:
    """Sort nodes so that each comes after what it reads; as they stand where they can.

    Raises popart_exception for a tensor that nothing gives, one that two nodes make, and a cycle.
    """
    makers: dict[str, int] = {}
    for place, node in enumerate(graph.node):
        for output in filter(None, node.output):
            if output in makers:
                raise popart_exception(f"{subject}: tensor {output!r} is made by two nodes")
            makers[output] = place
    needs = [_needs(node, makers, set(names), subject) for node in graph.node]
    followers: list[list[int]] = [[] for _ in graph.node]
    for place, before in enumerate(needs):
        for neighbour in before:
            followers[neighbour].append(place)
    unmet = [len(before) for before in needs]
    ready = deque(place for place, count in enumerate(unmet) if not count)
    order: list[int] = []
    while ready:
        place = ready.popleft()
        order.append(place)
        for neighbour in followers[place]:
            unmet[neighbour] -= 1
            if not unmet[neighbour]:
                ready.append(neighbour)
    stuck = [label(node) for node, count in zip(graph.node, unmet, strict=True) if count]
    if stuck:
        raise popart_exception(f"{subject}: a cycle of nodes, among them {', '.join(stuck[:4])}")
    if order != sorted(order) and all(o < p for p, before in enumerate(needs) for o in before):
        order = sorted(order)  # the model's own order will do
    return [graph.node[place] for place in order]


def _needs(node: onnx.NodeProto, makers: dict[str, int], names: set[str], subject: str) -> set[int]:
    """Return the places of the nodes that make what a node reads."""
    missing = [i for i in node.input if i and i not in makers and i not in names]
    if missing:
        raise popart_exception(
            f"{subject}: node {label(node)} reads {missing[0]!r}, which no input, initialiser or "
            "node gives"
        )
    inner = [i for a in node.attribute if a.HasField("g") for n in a.g.node for i in n.input]
    return {makers[i] for i in (*node.input, *inner) if i in makers}


def label(node: onnx.NodeProto) -> str:
    """Name a node for an error."""
    return repr(node.name or next(iter(node.output), "")) + f" ({node.op_type})"


def names_of(nodes: Sequence[onnx.NodeProto]) -> list[str]:
    """Name each node: by its own name, or its first output; with a number where two are alike."""
    names = [node.name or next(filter(None, node.output), node.op_type) for node in nodes]
    counts, seen = Counter(names), Counter[str]()
    for place, name in enumerate(names):
        if counts[name] > 1:
            names[place] = f"{name}:{seen[name]}"
            seen[name] += 1
    return names
