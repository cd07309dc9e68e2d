"""What must hold of programs before they are compiled."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from simulator.graph.errors import PoplarError
from simulator.graph.graph import Graph
from simulator.graph.program import (
    Call,
    Execute,
    Program,
    children_of,
    tensors_of,
)
from simulator.graph.types import checked_name
from simulator.graph.validation.graphs import check_mapped, check_writers


def check_programs(graph: Graph, programs: Sequence[object]) -> list[Program]:
    """List every program once; raises PoplarError for the first that the graph cannot run."""
    if not programs:
        raise PoplarError("Engine: no program; at least one is needed")
    roots = []
    for program in programs:
        if not isinstance(program, Program):
            raise PoplarError(f"Engine: a program is needed, not {program!r}")
        roots.append(program)
    for function, body in graph.functions:
        if not isinstance(body, Program):
            raise PoplarError(f"function {function.name!r}: a program is needed, not {body!r}")
    nodes = all_nodes(graph, [*roots, *(program for _, program in graph.functions)])
    compute_sets = set(graph.compute_sets)
    for node in nodes:
        checked_name(getattr(node, "name", ""), type(node).__name__)
        if isinstance(node, Execute) and node.compute_set not in compute_sets:
            raise PoplarError(f"Execute: compute set {node.name!r} is not of this graph")
    tensors = [tensor for node in nodes for tensor in tensors_of(node)]
    for tensor in tensors:
        if not graph.holds(tensor):
            raise PoplarError(f"Engine: {tensor!r} is not of this graph")
    check_mapped(graph, tensors)
    check_writers(graph)
    return nodes


def all_nodes(graph: Graph, programs: Iterable[Program]) -> list[Program]:
    """List every program once; raises PoplarError for one that contains or calls itself."""
    visited: dict[int, Program] = {}
    entered: set[int] = set()
    waiting = [(program, False) for program in programs]
    while waiting:
        node, is_left = waiting.pop()
        if is_left:
            visited[id(node)] = node
        elif id(node) not in entered:
            entered.add(id(node))
            waiting.append((node, True))
            waiting += [(child, False) for child in _below(graph, node)]
        elif id(node) not in visited:
            name = getattr(node, "name", "")
            raise PoplarError(f"{type(node).__name__} {name!r}: contains itself")
    return list(visited.values())


def _below(graph: Graph, node: Program) -> list[Program]:
    """List what a program runs; a Call of another graph's function is refused."""
    if not isinstance(node, Call):
        return children_of(node)
    function = node.function
    if function.id >= len(graph.functions) or graph.functions[function.id][0] is not function:
        raise PoplarError(f"Call: function {function.name!r} is not of this graph")
    return [graph.functions[function.id][1]]
