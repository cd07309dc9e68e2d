"""The passes of the compiler, in their order; each is an event of the host trace."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import pvti
from simulator.compiler.allocate import Demand, allocate, conflicts_of
from simulator.compiler.costs import compute_costs
from simulator.compiler.edges import Layout, sum_pairs
from simulator.compiler.executable import Executable, Liveness, Lowered, Pieces
from simulator.compiler.fixed_data import fixed_data
from simulator.compiler.liveness import find_liveness
from simulator.compiler.lower import lower
from simulator.compiler.memory import measure_memory
from simulator.graph.graph import Graph
from simulator.graph.program import Program
from simulator.graph.types import IntArray
from simulator.graph.vertex import Codelet


def _phase(name: str) -> pvti.Tracepoint:
    return pvti.Tracepoint(pvti.tracePoplar, f"compile/{name}")


def compile_graph(graph: Graph, programs: Sequence[Program]) -> Executable:
    """Compile the programs given to the engine; the graph has been validated."""
    with _phase("lower"):
        lowered = lower(graph, programs)
        types, type_of_group = _vertex_types(lowered)
    with _phase("cycles"):
        target = graph.target
        sets = len(lowered.compute_sets)
        costs = compute_costs(target, sets, lowered.groups, types, type_of_group)
    with _phase("liveness"):
        placed = _pieces(graph, lowered)
        liveness = find_liveness(graph, lowered, placed)
        live = _live_variables(liveness)
        kept = live[placed.variable]
        placed = Pieces(placed.variable[kept], placed.tile[kept], placed.bytes[kept])
    with _phase("allocate"):
        fixed = fixed_data(graph, lowered, types, type_of_group)
        pieces = _with_fixed(placed, fixed, len(live))
        allocation = allocate(
            _demand(graph, liveness, pieces, len(live)),
            target.num_tiles,
            target.bytes_per_tile,
            target.interleaved_base,
        )
        memory = measure_memory(
            graph, lowered, types, type_of_group, liveness, pieces, allocation, fixed
        )
    return Executable(
        graph=graph,
        lowered=lowered,
        vertex_types=types,
        type_of_group=type_of_group,
        costs=costs,
        liveness=liveness,
        pieces=pieces,
        allocation=allocation,
        memory=memory,
        edges=sum(int(f.edges.sum()) for group in lowered.groups for f in group.fields.values()),
    )


def _vertex_types(lowered: Lowered) -> tuple[list[Codelet], IntArray]:
    """List the codelets that are in use, one of each name, and the one of each group."""
    types = {group.codelet.name: group.codelet for group in lowered.groups}
    number = {name: index for index, name in enumerate(types)}
    rows = [number[group.codelet.name] for group in lowered.groups]
    return list(types.values()), np.array(rows, dtype=np.int64)


def _pieces(graph: Graph, lowered: Lowered) -> Pieces:
    """Give all that each variable has on each tile, the graph's variables and the compiler's."""
    mapping = Layout.of(graph).mapping
    own = sum_pairs(mapping.variable, mapping.tile, mapping.end - mapping.begin)
    columns = [own]
    columns += [
        (np.full(len(v.tile), number, dtype=np.int64), v.tile, v.bytes)
        for number, v in enumerate(lowered.variables, start=len(graph.variables))
    ]
    return Pieces(*(np.concatenate(column) for column in zip(*columns, strict=True)))


def _live_variables(liveness: Liveness) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Tell which variables need room at all: the rest is never used."""
    live = liveness.always_live.copy()
    live[liveness.variable] = True
    return live


def _with_fixed(pieces: Pieces, fixed: dict[str, IntArray], number: int) -> Pieces:
    """Add the fixed data of each tile as one more piece, under a number of its own."""
    total = np.sum(list(fixed.values()), axis=0)
    tiles = np.flatnonzero(total)
    return Pieces(
        np.append(pieces.variable, np.full(len(tiles), number)),
        np.append(pieces.tile, tiles),
        np.append(pieces.bytes, total[tiles]),
    )


def _demand(graph: Graph, liveness: Liveness, pieces: Pieces, variables: int) -> Demand:
    """Say what needs room; the fixed data is the last variable, and never dead."""
    interleaved = np.zeros(variables + 1, dtype=bool)
    begins, _ = graph.variable_bounds()
    for group in graph.vertex_groups():
        for item in group.fields.values():
            if item.interleaved:
                first = item.begins * item.dtype.size
                interleaved[np.searchsorted(begins, first, side="right") - 1] = True
    always_live = np.append(liveness.always_live, True)
    conflicts = conflicts_of(
        always_live, liveness.variable, liveness.begin, liveness.end, len(liveness.program)
    )
    return Demand(pieces.variable, pieces.tile, pieces.bytes, interleaved, conflicts)
