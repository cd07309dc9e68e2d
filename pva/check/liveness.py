"""Laws about what is live when."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pva.array_types import Values
from pva.check.law import Laws, Violation, at_most, equal
from pva.data.dataset import Dataset

LAWS = Laws()


@LAWS.needing("liveness_steps")
def liveness_steps_are_a_tree(data: Dataset) -> Iterator[Violation]:
    """A step comes after the one around it, so that no step is inside itself."""
    parents = data.column("liveness_steps", "parent")
    before = np.arange(len(parents)) - 1
    yield from at_most(parents, before, "parent", "liveness step")
    yield from at_most(-parents, 1, "negative parent", "liveness step")


@LAWS.needing("liveness_steps", "programs", "program_children")
def liveness_steps_are_in_the_order_of_programs(data: Dataset) -> Iterator[Violation]:
    """What lies in a liveness step comes in the order in which its program runs it."""
    program, parent = (data.column("liveness_steps", name) for name in ("program", "parent"))
    count = data.length("programs")
    above, below = (data.column("program_children", name) for name in ("program", "child"))
    edges = above * count + below
    order = np.argsort(edges, kind="stable")
    inside = np.flatnonzero(parent >= 0)
    keys = program[parent[inside]] * count + program[inside]
    first, end = (np.searchsorted(edges[order], keys, side) for side in ("left", "right"))
    once = end - first == 1  # a program may be run at several places of one
    inside, place = inside[once], order[first[once]]
    sorted_by_parent = np.argsort(parent[inside], kind="stable")
    around, place = parent[inside][sorted_by_parent], place[sorted_by_parent]
    same = around[1:] == around[:-1]
    yield from at_most(place[:-1][same] + 1, place[1:][same], "place after it", "pair", "next is")


@LAWS.needing("variable_intervals", "liveness_steps")
def lives_are_in_order(data: Dataset) -> Iterator[Violation]:
    """A life ends after it begins, within the steps, and those of a variable do not overlap."""
    steps = data.length("liveness_steps")
    variable, begin, end = data.table("variable_intervals").values()
    yield from at_most(begin + 1, end, "begin + 1", "interval")
    yield from at_most(-begin, 0, "negative begin", "interval")
    yield from at_most(end, steps, "end", "interval")
    order = np.lexsort((begin, variable))
    same = variable[order][1:] == variable[order][:-1]
    overlap = same & (begin[order][1:] < end[order][:-1])
    yield from equal(overlap, False, "overlapping lives", "pair")


@LAWS.needing("variable_intervals", "variables", "liveness_steps")
def live_bytes_are_those_of_the_variables(data: Dataset) -> Iterator[Violation]:
    """The bytes live at a step are the sum of the variables that are live."""
    steps = data.length("liveness_steps")
    variable, begin, end = data.table("variable_intervals").values()
    sizes = data.column("variables", "bytes")[variable]
    change = np.zeros(steps + 1, dtype=np.int64)
    np.add.at(change, begin.clip(0, steps), sizes)
    np.subtract.at(change, end.clip(0, steps), sizes)
    recorded = data.column("liveness_steps", "bytes")
    yield from equal(recorded, np.cumsum(change)[:steps], "bytes", "liveness step")


@LAWS.needing("liveness", "liveness_steps")
def peak_is_the_largest_step(data: Dataset) -> Iterator[Violation]:
    """The most that is live is what is live at some step; other writers may cut steps."""
    peak = data.value("liveness", "max_bytes")
    largest = data.column("liveness_steps", "bytes").max(initial=0)
    if data.foreign:
        yield from at_most(largest, peak, "bytes of the largest liveness step", why="at most")
    else:
        yield from equal(peak, largest, "max_bytes")


@LAWS.needing("liveness_bytes_by_ipu", "liveness_steps")
def live_bytes_by_ipu_sum_to_the_step(data: Dataset) -> Iterator[Violation]:
    """What is live on the IPUs is what is live."""
    by_ipu = data.array("liveness_bytes_by_ipu").sum(axis=1)
    by_step = data.column("liveness_steps", "bytes")
    yield from equal(by_ipu, by_step, "bytes", "liveness step")


@LAWS.needing("always_live_variables", "always_live_bytes")
def always_live_variables_sum_to_the_tiles(data: Dataset) -> Iterator[Violation]:
    """What is always live is the same by name and by tile."""
    by_name = data.column("always_live_variables", "bytes").sum()
    by_tile = data.array("always_live_bytes").sum()
    yield from equal(by_name, by_tile, "bytes")


@LAWS.needing("variables", "variable_pieces", "variable_intervals", "not_always_live_max_bytes")
def peak_of_each_tile_is_that_of_its_pieces(data: Dataset) -> Iterator[Violation]:
    """The most that is live on a tile is what its pieces have at some step."""
    recorded = data.array("not_always_live_max_bytes")
    peaks = _peaks(data, len(recorded))
    yield from equal(peaks, recorded, "bytes", "tile")


def _peaks(data: Dataset, tiles: int) -> Values:
    """Add and take away the bytes of pieces as they come alive and die, tile by tile."""
    pieces, lives = data.table("variable_pieces"), data.table("variable_intervals")
    order = np.argsort(pieces["variable"], kind="stable")
    ordered = pieces["variable"][order]
    first = np.searchsorted(ordered, lives["variable"])
    counts = np.searchsorted(ordered, lives["variable"], side="right") - first
    life = np.repeat(np.arange(len(first)), counts)
    within = np.arange(len(life)) - np.repeat(np.cumsum(counts) - counts, counts)
    piece = order[first[life] + within]
    sizes, tile = pieces["bytes"][piece], pieces["tile"][piece]
    change = np.concatenate((sizes, -sizes))
    when = np.concatenate((lives["begin"][life], lives["end"][life]))
    where = np.concatenate((tile, tile))
    sweep = np.lexsort((change, when, where))  # at a step, first what dies
    total = np.cumsum(change[sweep])  # back at zero after each tile
    peaks = np.zeros(tiles, dtype=np.int64)
    tile_of_change = where[sweep]
    valid = (tile_of_change >= 0) & (tile_of_change < tiles)
    np.maximum.at(peaks, tile_of_change[valid], total[valid])
    return peaks
