"""The passes of the compiler, in their order; each is an event of the host trace."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from time import perf_counter, time

import numpy as np

import pvti
from pva.collector import collector_paused
from simulator.compiler.allocate import Demand, allocate, conflicts_of
from simulator.compiler.apart import operands_apart
from simulator.compiler.costs import compute_costs
from simulator.compiler.edges import sum_pairs
from simulator.compiler.executable import ComputeCosts, Executable, Liveness, Lowered, Pieces
from simulator.compiler.fixed_data import CODE_CATEGORIES, COMPUTED_STACKS, Stacks, fixed_data
from simulator.compiler.instrument import counted_exchanges, counted_vertices, counter_cycles
from simulator.compiler.instrumentation import NO_INSTRUMENTATION, Instrumentation
from simulator.compiler.liveness import find_liveness
from simulator.compiler.lowering.lower import lower
from simulator.compiler.memory import measure_memory
from simulator.graph.graph import Graph
from simulator.graph.machine.target import Target
from simulator.graph.program import Program
from simulator.graph.tensors.regions import variables_met
from simulator.graph.types import IntArray
from simulator.graph.vertices.vertex import Codelet
from simulator.logging import enabled, log

MESSAGES = ("message", "globalMessage")  # categories of variables that an exchange brings


@contextmanager
def _phase(name: str) -> Iterator[None]:
    begin = perf_counter()
    with pvti.Tracepoint(pvti.tracePoplar, f"compile/{name}"):
        yield
    if enabled("PO", "DEBUG", "ENGINE"):
        log("PO", "ENGINE", "DEBUG", f"compile/{name}: {1e3 * (perf_counter() - begin):.1f} ms")


@collector_paused()
def compile_graph(
    graph: Graph,
    programs: Sequence[Program],
    instrumentation: Instrumentation = NO_INSTRUMENTATION,
    *,
    prefetch: bool = False,
    stacks: Stacks = COMPUTED_STACKS,
) -> Executable:
    """Compile the programs given to the engine; the graph has been validated.

    `prefetch` tells whether the host fills the buffers of streams ahead; `stacks` are those of a
    tile with code.
    """
    created = int(os.environ.get("SOURCE_DATE_EPOCH", time()))
    with _phase("lower"):
        lowered = _counted(
            lower(graph, programs, instrumentation, prefetch=prefetch), instrumentation
        )
        types, type_of_group = _vertex_types(lowered)
    with _phase("cycles"):
        target = graph.target
        costs = _counted_costs(target, lowered, types, type_of_group, instrumentation)
    with _phase("liveness"):
        placed = _pieces(graph, lowered)
        liveness = find_liveness(graph, lowered, placed)
        live = _live_variables(liveness)
        live_pieces = live[placed.variable]
        placed = Pieces(
            placed.variable[live_pieces], placed.tile[live_pieces], placed.bytes[live_pieces]
        )
    with _phase("allocate"):
        fixed = fixed_data(graph, lowered, types, type_of_group, instrumentation, stacks)
        pieces = _with_fixed(placed, fixed, len(live))
        allocation = allocate(
            _demand(graph, lowered, liveness, pieces),
            target.num_tiles,
            target.bytes_per_tile,
            target.interleaved_base,
            target.memory_element_bytes,
        )
        part = allocation.piece
        pieces = Pieces(pieces.variable[part], pieces.tile[part], allocation.bytes)
        memory = measure_memory(
            graph, lowered, types, type_of_group, liveness, pieces, allocation, fixed
        )
    graph.let_go_of_mapping_table()
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
        instrumentation=instrumentation,
        created=created,
    )


def _counted_costs(
    target: Target,
    lowered: Lowered,
    types: Sequence[Codelet],
    type_of_group: IntArray,
    instrumentation: Instrumentation,
) -> ComputeCosts:
    """Return the costs of the vertices with the cycles that counting adds to compute sets."""
    groups = counted_vertices(instrumentation, lowered.groups)
    costs = compute_costs(target, len(lowered.compute_sets), groups, types, type_of_group)
    counting = counter_cycles(instrumentation, target, lowered)
    return replace(costs, cycles=costs.cycles + counting)


def _counted(lowered: Lowered, instrumentation: Instrumentation) -> Lowered:
    """Return the program with the cycles that counting adds to its exchanges."""
    external, host = instrumentation.external_exchange, instrumentation.host_exchange
    return replace(
        lowered,
        global_exchanges=counted_exchanges(lowered.global_exchanges, external),
        host_exchanges=counted_exchanges(lowered.host_exchanges, host),
    )


def _vertex_types(lowered: Lowered) -> tuple[list[Codelet], IntArray]:
    """List the codelets that are in use, one of each name, and the one of each group."""
    types = {group.codelet.name: group.codelet for group in lowered.groups}
    number = {name: index for index, name in enumerate(types)}
    rows = [number[group.codelet.name] for group in lowered.groups]
    return list(types.values()), np.array(rows, dtype=np.int64)


def _pieces(graph: Graph, lowered: Lowered) -> Pieces:
    """Return all that each variable has on each tile, the graph's variables and the compiler's."""
    mapping = graph.mapping_table()
    graph_pieces = sum_pairs(mapping.variable, mapping.tile, mapping.end - mapping.begin)
    columns = [graph_pieces]
    columns += [
        (np.full(len(v.tile), number, dtype=np.int64), v.tile, v.bytes)
        for number, v in enumerate(lowered.variables, start=len(graph.variables))
    ]
    return Pieces(*(np.concatenate(column) for column in zip(*columns, strict=True)))


def _live_variables(liveness: Liveness) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return which variables need room at all: the rest is never used."""
    live = liveness.always_live.copy()
    live[liveness.variable] = True
    return live


def _with_fixed(pieces: Pieces, fixed: dict[str, IntArray], number: int) -> Pieces:
    """Add the fixed data of each tile and its code as two more pieces, `number` and the next."""
    parts = [pieces]
    for variable, code in ((number, False), (number + 1, True)):
        sizes = [size for name, size in fixed.items() if (name in CODE_CATEGORIES) == code]
        total = np.sum(sizes, axis=0) if sizes else np.zeros(0, dtype=np.int64)
        tiles = np.flatnonzero(total)
        parts.append(Pieces(np.full(len(tiles), variable), tiles, total[tiles]))
    columns = zip(*((part.variable, part.tile, part.bytes) for part in parts), strict=True)
    return Pieces(*(np.concatenate(column) for column in columns))


def _demand(graph: Graph, lowered: Lowered, liveness: Liveness, pieces: Pieces) -> Demand:
    """Return what needs room; the fixed data and the code come last, and are always live."""
    variables = len(liveness.always_live)
    interleaved = np.zeros(variables + 2, dtype=bool)
    for group in graph.vertex_groups():
        for item in group.fields.values():
            if item.interleaved:
                size = item.dtype.size
                interleaved[variables_met(graph, item.begins, item.lengths, size)] = True
    always_live = np.append(liveness.always_live, [True, True])
    conflicts = conflicts_of(always_live, liveness.variable, liveness.begin, liveness.end)
    is_code = np.arange(variables + 2) == variables + 1
    named = [False] * len(graph.variables) + [v.category in MESSAGES for v in lowered.variables]
    messages = np.array([*named, False, False])
    lasting = always_live.copy()
    lasting[liveness.variable[liveness.begin == 0]] = True
    apart = operands_apart(graph, lowered, lasting, messages)
    wants = interleaved, is_code, conflicts, apart, messages, lasting
    return Demand(pieces.variable, pieces.tile, pieces.bytes, *wants)
