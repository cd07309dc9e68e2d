"""Laws about the machine, the graph and the programs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from pva.check.by_row import of_tiles
from pva.check.law import Laws, Violation, at_most, equal
from pva.data.dataset import Dataset
from pva.data.validation import first_circular

LAWS = Laws()

# The table or arrays that a program of a type counts rows of.
OPERANDS = {
    "OnTileExecute": ("compute_set", "compute_set_cycles_by_tile"),
    "DoExchange": ("exchange", "exchange_cycles"),
    "GlobalExchange": ("exchange", "external_exchange_cycles"),
    "StreamCopy": ("exchange", "host_exchange_cycles"),
}


COUNTS = (
    "num_ipus",
    "tiles_per_ipu",
    "num_tiles",
    "bytes_per_tile",
    "bytes_per_ipu",
    "total_memory",
)


@LAWS.needing("target")
def machine_is_its_tiles(data: Dataset) -> Iterator[Violation]:
    """All tiles are the tiles of all IPUs, all memory is theirs, and replicas share them out."""
    values = {
        name: int(column[0]) for name, column in data.table("target").items() if name in COUNTS
    }
    tiles = values["num_ipus"] * values["tiles_per_ipu"]
    yield from equal(values["num_tiles"], tiles, "num_tiles")
    for column, counted in (("total_memory", "num_tiles"), ("bytes_per_ipu", "tiles_per_ipu")):
        yield from equal(values[column], values["bytes_per_tile"] * values[counted], column)
    replicas = max(int(data.value("target", "num_replicas")), 1)
    yield from equal(values["num_ipus"] % replicas, 0, "num_ipus left over by num_replicas")


@LAWS.needing("graph", "compute_sets", "compute_set_vertices")
def graph_counts_what_is_there(data: Dataset) -> Iterator[Violation]:
    """The graph has as many compute sets and vertices as are listed."""
    counts = data.value("graph", "num_compute_sets"), data.value("graph", "num_vertices")
    vertices = int(data.column("compute_set_vertices", "count").sum())
    yield from equal(counts[0], data.length("compute_sets"), "num_compute_sets")
    yield from equal(counts[1], vertices, "num_vertices")


@LAWS.needing("compute_set_vertices", "vertex_count_by_tile")
def vertices_are_on_tiles(data: Dataset) -> Iterator[Violation]:
    """The vertices of a type in a compute set are those on all tiles."""
    counts = data.column("compute_set_vertices", "count")
    by_tile = data.array("vertex_count_by_tile").sum(axis=1)
    yield from equal(by_tile, counts, "vertices on tiles", "row of compute_set_vertices")


@LAWS.needing("programs", "program_children", "control_programs", "function_programs", walks=True)
def programs_are_trees(data: Dataset) -> Iterator[Violation]:
    """No program contains or calls itself, and each is in a control program or a function."""
    functions = data.column("function_programs", "program")
    below = _edges(data)
    seen: set[int] = set()
    todo = [*data.column("control_programs", "program").tolist(), *functions.tolist()]
    while todo:
        program = todo.pop()
        if program not in seen:
            seen.add(program)
            todo += below[program]
    lost = sorted(set(range(data.length("programs"))) - seen)
    if lost:
        yield Violation(f"program {lost[0]}", "no parent", "one is a root", len(lost))
    circular = _circular(below, data.length("programs"))
    if circular:
        yield Violation(f"program {min(circular)}", "contains itself", "it ends", len(circular))


def _edges(data: Dataset) -> dict[int, list[int]]:
    """List what is run inside each program: children, and the function of a Call."""
    functions = data.column("function_programs", "program")
    below: dict[int, list[int]] = defaultdict(list)
    columns = (data.column("program_children", name).tolist() for name in ("program", "child"))
    for parent, child in zip(*columns, strict=True):
        below[parent].append(child)
    targets = data.column("programs", "target")
    for caller in np.flatnonzero((targets >= 0) & (targets < len(functions))).tolist():
        below[caller].append(int(functions[targets[caller]]))
    return below


def _circular(below: dict[int, list[int]], count: int) -> set[int]:
    """Return the programs left when all that contain nothing are removed in turn."""
    remaining = {program: len(inside) for program, inside in below.items()}
    above: dict[int, list[int]] = defaultdict(list)
    for parent, inside in below.items():
        for child in inside:
            above[child].append(parent)
    finished = [program for program in range(count) if not remaining.get(program)]
    for program in finished:
        for parent in above[program]:
            remaining[parent] -= 1
            if not remaining[parent]:
                finished.append(parent)
    return set(range(count)) - set(finished)


@LAWS.needing("programs", "function_programs")
def programs_point_at_something(data: Dataset) -> Iterator[Violation]:
    """A program of a type that needs one has a compute set, an exchange or a function."""
    types = data.texts("programs", "type")
    for tag, (column, array) in OPERANDS.items():
        if data.has(array):
            rows = data.column("programs", column)[types == tag]
            last = len(of_tiles(data, array).sums) - 1
            yield from at_most(rows, last, f"{column} of {tag}", "number")
            yield from at_most(-rows, 0, f"missing {column} of {tag}", "number")
    calls = data.column("programs", "target")[types == "Call"]
    yield from at_most(calls, data.length("function_programs") - 1, "target of Call", "number")
    yield from at_most(-calls, 0, "missing target of Call", "number")


@LAWS.needing("compute_set_active_cycles_by_tile", "compute_set_active_cycles_by_vertex_type")
def active_cycles_by_tile_are_those_by_type(data: Dataset) -> Iterator[Violation]:
    """The active cycles of a compute set are the same by tile and by vertex type."""
    by_tile = of_tiles(data, "compute_set_active_cycles_by_tile").sums
    by_type = data.array("compute_set_active_cycles_by_vertex_type").sum(axis=1)
    yield from equal(by_tile, by_type, "active cycles", "compute set")


@LAWS.needing("compute_set_active_cycles_by_tile", "compute_set_cycles_by_tile")
def threads_are_active_no_longer_than_the_tile(data: Dataset) -> Iterator[Violation]:
    """A tile issues at most one instruction a cycle, whichever its threads are."""
    active = data.array("compute_set_active_cycles_by_tile")
    cycles = data.array("compute_set_cycles_by_tile")
    yield from at_most(active, cycles, "active cycles", "compute set, tile")


@LAWS.needing("exchange_bytes_sent", "exchange_bytes_received")
def bytes_sent_are_received(data: Dataset) -> Iterator[Violation]:
    """What is sent is received, and by no tile more than once (multicast).

    A tile may be its own receiver: the 392 tiles of the guide's sample send 128 bytes each and
    receive four times 128, their own among them.
    """
    yield from _conserved(data, "exchange")


@LAWS.needing("external_exchange_bytes_sent", "external_exchange_bytes_received")
def bytes_sent_to_other_ipus_are_received(data: Dataset) -> Iterator[Violation]:
    """Between IPUs and replicas, too, what is sent is received, and by no tile more than once."""
    yield from _conserved(data, "external_exchange")


def _conserved(data: Dataset, exchange: str) -> Iterator[Violation]:
    sent = of_tiles(data, f"{exchange}_bytes_sent").sums
    received = data.array(f"{exchange}_bytes_received")
    index = exchange.replace("_", " ")
    arrived = of_tiles(data, f"{exchange}_bytes_received").sums
    yield from at_most(sent, arrived, "bytes sent", index, "received are")
    limit = np.broadcast_to(sent[:, None], received.shape)
    yield from at_most(received, limit, "bytes received", f"{index}, tile", "sent by all are")


@LAWS.needing("exchange_instructions")
def exchange_code_is_the_sum_of_its_instructions(data: Dataset) -> Iterator[Violation]:
    """The total of an exchange's code is the sum of its kinds of instruction."""
    columns = data.table("exchange_instructions")
    parts = sum(v for name, v in columns.items() if name not in ("program", "total"))
    yield from equal(columns["total"], parts, "total", "row")


@LAWS.needing("debug_contexts", walks=True)
def debug_contexts_are_a_tree(data: Dataset) -> Iterator[Violation]:
    """Each debug context has a number of its own, and none is around itself."""
    numbers, parents = (data.column("debug_contexts", name) for name in ("id", "parent"))
    _, first, counts = np.unique(numbers, return_index=True, return_counts=True)
    yield from equal(counts, 1, "debug_contexts.id, times told", "number")
    inside = np.flatnonzero((parents >= 0) & np.isin(parents, numbers))
    above = first[np.searchsorted(numbers[first], parents[inside])]
    row = first_circular(above, inside, len(numbers))
    if row is not None:
        yield Violation(f"debug_contexts, row {row}", "a context around itself", "a tree")
