"""Which variables should lie in different memory elements, as vertices ask of their operands.

An element of 16 KiB serves one access a cycle, so that a vertex that reads and writes, or reads two
operands, in one cycle needs them apart (PopLibs lib/*/codelets, `poplar::constraint`).
"""

from __future__ import annotations

import numpy as np

from simulator.compiler.executable import Lowered
from simulator.graph.geometry.intervals import ascending
from simulator.graph.graph import Graph
from simulator.graph.types import IntArray

PAIRS_OF_A_SET = 64  # of larger compute sets, those of several operations, no pairs are listed


def operands_apart(graph: Graph, lowered: Lowered) -> IntArray:
    """List the pairs of variables, [pair][2], for which codelets ask different memory elements."""
    rules: dict[int, set[str]] = {}
    for group in lowered.groups:
        if group.codelet.apart:
            rules.setdefault(group.compute_set, set()).add(group.codelet.apart)
    access = lowered.access
    order = ascending(access.program)
    bounds = np.searchsorted(access.program[order], np.arange(len(lowered.programs) + 1))
    constant = np.array([v.constant for v in graph.variables] + [False] * len(lowered.variables))
    pairs: set[tuple[int, int]] = set()
    for number, program in enumerate(lowered.programs):
        if program.type != "OnTileExecute":
            continue
        for rule in rules.get(program.compute_set, ()):
            rows = order[bounds[number] : bounds[number + 1]]
            write, touched = access.write[rows], access.variable[rows]
            reads = touched[~write & ~constant[touched]].tolist()
            partners = touched[write].tolist() if rule == "outputs" else reads
            if len(reads) * len(partners) <= PAIRS_OF_A_SET:
                pairs |= {(min(a, b), max(a, b)) for a in reads for b in partners if a != b}
    return np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)
