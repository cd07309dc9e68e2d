"""Which variables should lie in different memory elements.

An element of 16 KiB serves one access a cycle, so that a vertex that reads and writes, or reads two
operands, in one cycle needs them apart (PopLibs lib/*/codelets, `poplar::constraint`). So does an
exchange of some machines, which writes what a tile receives while it reads what the tile sends.
"""

from __future__ import annotations

import numpy as np

from simulator.compiler.executable import Lowered
from simulator.graph.geometry.intervals import among, ascending, present
from simulator.graph.graph import Graph
from simulator.graph.tensors.regions import variables_met
from simulator.graph.types import BoolArray, IntArray

FIELDS = ("in", "weights")  # of vertices of which one field alone lies apart from the outputs
PAIRS_OF_A_SET = 64  # of larger compute sets, those of several operations, no pairs are listed


def operands_apart(
    graph: Graph, lowered: Lowered, lasting: BoolArray, messages: BoolArray
) -> IntArray:
    """List the pairs of variables, [pair][2], that ask for different memory elements.

    Of exchanges those count that send what is `lasting`, by variable, and bring `messages`: our
    estimate.
    """
    rules: dict[int, set[str]] = {}
    for group in lowered.groups:
        if group.codelet.apart:
            rules.setdefault(group.compute_set, set()).add(group.codelet.apart)
    inputs = _single_fields(graph)
    access = lowered.access
    order = ascending(access.program)
    bounds = np.searchsorted(access.program[order], np.arange(len(lowered.programs) + 1))
    constant = np.array([v.constant for v in graph.variables] + [False] * len(lowered.variables))
    source = np.arange(len(constant))
    source[len(graph.variables) :] = [variable.source for variable in lowered.variables]
    pairs: set[tuple[int, int]] = set()
    for number, program in enumerate(lowered.programs):
        rows = order[bounds[number] : bounds[number + 1]]
        write, touched = access.write[rows], access.variable[rows]
        reads, writes = touched[~write & ~constant[touched]], touched[write]
        if program.type == "DoExchange" and graph.target.exchange_apart:
            pairs |= _pairs(reads[lasting[reads]], writes[messages[writes]])
        elif program.type == "OnTileExecute":
            compute_set = program.compute_set
            for rule in rules.get(compute_set, ()):
                field = inputs.get((compute_set, rule))
                reads_apart = reads if field is None else reads[among(source[reads], field)]
                pairs |= _pairs(reads_apart, reads if rule == "inputs" else writes)
    return np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)


def _single_fields(graph: Graph) -> dict[tuple[int, str], IntArray]:
    """List by compute set and rule the variables of the fields that lie apart from the outputs."""
    variables: dict[tuple[int, str], list[IntArray]] = {}
    for group in graph.vertex_groups():
        rule = group.codelet.apart
        if rule in FIELDS:
            item = group.fields[rule]
            met = variables_met(graph, item.begins, item.lengths, item.dtype.size)
            variables.setdefault((group.compute_set, rule), []).append(met)
    return {key: present(np.concatenate(parts)) for key, parts in variables.items()}


def _pairs(some: IntArray, others: IntArray) -> set[tuple[int, int]]:
    """Pair variables with others; none where there are too many."""
    if len(some) * len(others) > PAIRS_OF_A_SET:
        return set()
    return {(min(a, b), max(a, b)) for a in some.tolist() for b in others.tolist() if a != b}
