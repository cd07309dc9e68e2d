"""Cycles of compute sets on every tile: how the vertices of a tile share its worker threads.

A tile's six workers are served round robin, so that a vertex takes six tile cycles for each of its
own. Vertices go, in their order, to the worker with the least to do, which reproduces the cycles of
the public tutorials. A supervisor vertex has all workers for itself; its estimate is of the tile.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simulator.compiler.executable import ComputeCosts
from simulator.graph.geometry.intervals import ascending
from simulator.graph.machine.target import Target
from simulator.graph.types import IntArray
from simulator.graph.vertices.vertex import Codelet, VertexGroup


def compute_costs(
    target: Target,
    compute_sets: int,
    groups: Sequence[VertexGroup],
    vertex_types: Sequence[Codelet],
    type_of_group: IntArray,
) -> ComputeCosts:
    """Add up the vertices of every compute set on every tile."""
    tiles = target.num_tiles
    size = compute_sets * tiles
    elapsed, active = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    by_type = np.zeros((compute_sets, len(vertex_types)), dtype=np.int64)
    flops = np.zeros(compute_sets, dtype=np.int64)
    workers: list[tuple[IntArray, IntArray]] = []
    for group, vertex_type in zip(groups, type_of_group.tolist(), strict=True):
        place = group.compute_set * tiles + group.tile
        np.add.at(active, place, group.cycles)
        by_type[group.compute_set, vertex_type] += int(group.cycles.sum())
        if group.codelet.flops is not None:
            flops[group.compute_set] += int(group.codelet.flops(group).sum())
        if group.codelet.supervisor:
            np.add.at(elapsed, place, group.cycles)
        else:
            workers.append((place, group.cycles))
    if workers:
        places, cycles = (np.concatenate(column) for column in zip(*workers, strict=True))
        used, longest = busiest_worker(places, cycles, target.workers)
        elapsed[used] += target.workers * longest
    shape = (compute_sets, tiles)
    return ComputeCosts(elapsed.reshape(shape), active.reshape(shape), by_type, flops)


def busiest_worker(places: IntArray, cycles: IntArray, workers: int) -> tuple[IntArray, IntArray]:
    """Assign each place's vertices, in order, to its least loaded worker; give the largest loads.

    Returns the places in use, ascending, and the load of the busiest worker of each.
    """
    order = ascending(places)
    used, first, counts = np.unique(places[order], return_index=True, return_counts=True)
    cycles = cycles[order]
    loads = np.zeros((len(used), workers), dtype=np.int64)
    for turn in range(int(counts.max(initial=0))):
        waiting = np.flatnonzero(counts > turn)
        worker = loads[waiting].argmin(axis=1)
        loads[waiting, worker] += cycles[first[waiting] + turn]
    return used, loads.max(axis=1, initial=0)
