"""Laws about memory: regions, categories, vertex state and the places of variables."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import pairwise

import numpy as np

from pva import schema
from pva.array_types import Values
from pva.check.law import Laws, Violation, at_most, equal
from pva.data.dataset import Dataset

LAWS = Laws()
REGION_COLUMNS = tuple(schema.snake(region) for region in schema.REGIONS)
EXCHANGE_TYPES = ("DoExchange", "GlobalExchange", "StreamCopy")
FOREVER = np.iinfo(np.int64).max


@LAWS.needing("memory_by_tile")
def regions_sum_to_the_total(data: Dataset) -> Iterator[Violation]:
    """The memory of a tile is that of its regions; gaps only add."""
    table = data.table("memory_by_tile")
    regions = sum(table[region] for region in REGION_COLUMNS)
    yield from equal(table["total"], regions, "total", "tile")
    for name in (*REGION_COLUMNS, "total"):
        yield from at_most(table[name], table[f"{name}_including_gaps"], name, "tile")


@LAWS.needing("memory_by_tile", "memory_by_category")
def categories_sum_to_the_regions(data: Dataset) -> Iterator[Violation]:
    """The categories of a tile sum to each region, what shares its place counted at least once."""
    unshared, shared = (data.array("memory_by_category").sum(axis=0)[:, way] for way in (0, 1))
    for row, name in enumerate(REGION_COLUMNS):
        region = data.column("memory_by_tile", name)
        plain = shared[row] == 0
        yield from equal(unshared[row][plain], region[plain], f"categories of {name}", "row")
        yield from at_most(unshared[row], region, f"categories of {name}", "tile")
        yield from at_most(region, unshared[row] + shared[row], name, "tile", "categories have")


def _parts_sum(data: Dataset, owner: str) -> Iterator[Violation]:
    arrays = [f"memory_by_{owner}_{part}" for part, _, _ in schema.VERTEX_MEMORY_PARTS]
    *parts, total = (data.array(name) for name in arrays)
    yield from equal(total, np.sum(parts, axis=0), arrays[-1], f"{owner}, tile")


def _parts_of(owner: str) -> tuple[str, ...]:
    return tuple(f"memory_by_{owner}_{part}" for part, _, _ in schema.VERTEX_MEMORY_PARTS)


@LAWS.needing(*_parts_of("compute_set"))
def parts_of_compute_sets_sum_to_totals(data: Dataset) -> Iterator[Violation]:
    """The memory of a compute set on a tile is the sum of its parts."""
    yield from _parts_sum(data, "compute_set")


@LAWS.needing(*_parts_of("vertex_type"))
def parts_of_vertex_types_sum_to_totals(data: Dataset) -> Iterator[Violation]:
    """The memory of a vertex type on a tile is the sum of its parts."""
    yield from _parts_sum(data, "vertex_type")


@LAWS.needing("control_code", "memory_by_category")
def control_code_is_that_of_the_programs(data: Dataset) -> Iterator[Violation]:
    """The control code of a tile is that of all programs."""
    control_code = _category(data, "controlCode")
    rows = data.table("control_code")
    limits = (-rows["tile"], rows["tile"] - rows["end_tile"], rows["end_tile"] - len(control_code))
    for breach in limits:
        yield from at_most(breach, 0, "tiles beside the target's", "row of control_code")
    if all((breach <= 0).all() for breach in limits):
        changes = np.zeros(len(control_code) + 1, dtype=np.int64)
        np.add.at(changes, rows["tile"], rows["bytes"])
        np.subtract.at(changes, rows["end_tile"], rows["bytes"])
        yield from equal(changes.cumsum()[:-1], control_code, "control code of programs", "tile")


EXCHANGE_CATEGORIES = {
    "exchange": "internalExchangeCode",
    "external_exchange": "globalExchangeCode",
    "host_exchange": "hostExchangeCode",
}


@LAWS.needing("exchange_code_bytes", "memory_by_category")
def exchanges_have_no_more_code_than_the_tile(data: Dataset) -> Iterator[Violation]:
    """An exchange has no more code than its category; exchanges may share code."""
    for exchange, category in EXCHANGE_CATEGORIES.items():
        name = f"{exchange}_code_bytes"
        if data.has(name) and len(data.array(name)):  # of no exchange, it need not tell its tiles
            code = data.array(name)
            limit = np.broadcast_to(_category(data, category), code.shape)
            yield from at_most(code, limit, f"code of {exchange}", "exchange, tile")


def _category(data: Dataset, name: str) -> Values:
    """Return the bytes of a category on each tile, overlapped or not."""
    by_tile: Values = data.array("memory_by_category")[schema.CATEGORIES.index(name)].sum(
        axis=(0, 1)
    )
    return by_tile


@LAWS.needing("exchange_code_bytes", "exchange_instructions", "programs")
def exchange_code_is_that_of_its_instructions(data: Dataset) -> Iterator[Violation]:
    """The code of an exchange is its instructions, where code was counted."""
    program = data.column("exchange_instructions", "program")
    types = data.texts("programs", "type")[program]
    is_exchange = [kind in EXCHANGE_TYPES for kind in types]
    yield from equal(is_exchange, True, "whether the program exchanges", "exchange_instructions")
    mine = (types == "DoExchange") & (data.column("programs", "exchange")[program] >= 0)
    code = data.array("exchange_code_bytes").sum(axis=1)
    if code.any():
        rows = data.column("programs", "exchange")[program[mine]]
        totals = data.column("exchange_instructions", "total")[mine]
        yield from equal(totals, code[rows], "total of instructions", "number")


@LAWS.needing("variable_pieces", "target.interleaved_base", "memory_by_tile")
def regions_lie_one_above_the_other(data: Dataset) -> Iterator[Violation]:
    """The interleaved region follows the other, and what overflows that; a tile needs them all."""
    base, capacity = (data.value("target", name) for name in ("interleaved_base", "bytes_per_tile"))
    pieces = data.table("variable_pieces")
    for region, begin, end in zip(
        REGION_COLUMNS, (0, base, capacity), (base, capacity, None), strict=True
    ):
        inside = pieces["region"] == REGION_COLUMNS.index(region)
        first, last = pieces["address"][inside], (pieces["address"] + pieces["bytes"])[inside]
        yield from at_most(begin, first, "begin", f"{region} piece", "it begins at")
        if end is not None:
            yield from at_most(last, end, "end", f"{region} piece", "the region ends at")
        tile = pieces["tile"][inside]
        used = begin + data.column("memory_by_tile", f"{region}_including_gaps")[tile]
        yield from at_most(last, used, "end", f"{region} piece", "with gaps its tile uses to")
    needs = data.table("memory_by_tile")
    below, above, over = (needs[f"{region}_including_gaps"] for region in REGION_COLUMNS)
    ends = np.where(over > 0, capacity + over, np.where(above > 0, base + above, below))
    yield from equal(needs["total_including_gaps"], ends, "total_including_gaps", "tile")


@LAWS.needing("variables", "variable_pieces")
def pieces_make_up_the_variables(data: Dataset) -> Iterator[Violation]:
    """The pieces of a variable have its bytes."""
    sizes = data.column("variables", "bytes")
    sums = np.zeros(len(sizes), dtype=np.int64)
    rows = data.column("variable_pieces", "variable")
    np.add.at(sums, rows, data.column("variable_pieces", "bytes"))
    placed = np.isin(np.arange(len(sizes)), rows)
    yield from equal(sums[placed], sizes[placed], "bytes of pieces", "variable number")


@LAWS.needing("variable_pieces", "memory_by_tile")
def pieces_lie_in_the_memory(data: Dataset) -> Iterator[Violation]:
    """A piece lies in what its tile needs."""
    pieces = data.table("variable_pieces")
    needs = data.column("memory_by_tile", "total_including_gaps")
    yield from at_most(-pieces["address"], 0, "negative address", "piece")
    yield from at_most(pieces["tile"], len(needs) - 1, "tile", "piece")
    valid = (pieces["tile"] >= 0) & (pieces["tile"] < len(needs))
    ends = (pieces["address"] + pieces["bytes"])[valid]
    yield from at_most(ends, needs[pieces["tile"][valid]], "end", "piece")


@LAWS.needing("variables", "variable_pieces", "variable_intervals", walks=True)
def live_pieces_do_not_overlap(data: Dataset) -> Iterator[Violation]:
    """No two pieces that are live at the same time have a byte in common."""
    boxes = _boxes(data)
    boxes = boxes[:, _touching(boxes)]
    boxes = boxes[:, np.lexsort((boxes[3], boxes[0]))]
    for first, end in pairwise(_borders(boxes[0])):
        pair = _collision(boxes[:, first:end])
        if pair is not None:
            names = data.column("variables", "name")
            text = " and ".join(f"{names[variable]!r}" for variable in pair)
            place = f"tile {boxes[0, first]}"
            yield Violation(place, text, "one byte, one variable")


def _boxes(data: Dataset) -> Values:
    """List tile, address, end, begin and end of life, and variable of each piece in each life."""
    pieces, lives = data.table("variable_pieces"), data.table("variable_intervals")
    always = np.flatnonzero(data.column("variables", "always_live"))
    variable = np.concatenate((lives["variable"], always))
    begin = np.concatenate((lives["begin"], np.zeros_like(always)))
    end = np.concatenate((lives["end"], np.full_like(always, FOREVER)))
    order = np.argsort(variable, kind="stable")
    first = np.searchsorted(variable[order], pieces["variable"])
    counts = np.searchsorted(variable[order], pieces["variable"], side="right") - first
    piece = np.repeat(np.arange(len(first)), counts)
    within = np.arange(len(piece)) - np.repeat(np.cumsum(counts) - counts, counts)
    life = order[first[piece] + within]
    address = pieces["address"][piece]
    tile, stop = pieces["tile"][piece], address + pieces["bytes"][piece]
    return np.stack((tile, address, stop, begin[life], end[life], variable[life]))


def _touching(boxes: Values) -> Values:
    """Return the boxes that share an address with another on their tile, at any time."""
    tile, address, stop = boxes[:3]
    order = np.lexsort((address, tile))
    base = tile[order] * (max(int(stop.max(initial=0)), 1) + 1)
    starts, stops = base + address[order], base + stop[order]
    reached = np.maximum.accumulate(stops) if len(stops) else stops
    joined = starts[1:] < reached[:-1]
    touching = np.zeros(len(order), dtype=bool)
    touching[order[1:][joined]] = True
    touching[order[:-1][joined]] = True
    clusters = np.cumsum(np.concatenate(([0], ~joined))) if len(order) else order
    shared = np.bincount(clusters, minlength=1) > 1
    touching[order] = shared[clusters]
    return np.flatnonzero(touching & (stop > address))


def _borders(tiles: Values) -> list[int]:
    changes = np.flatnonzero(np.diff(tiles)) + 1
    return [0, *changes.tolist(), len(tiles)] if len(tiles) else []


def _collision(boxes: Values) -> tuple[int, int] | None:
    """Return two boxes of a tile that overlap; `boxes` are sorted by begin."""
    starts: list[int] = []  # of what is alive, ascending
    alive: list[tuple[int, int]] = []  # end and variable of each of them
    leaving: list[tuple[int, int]] = []  # a heap: end of life, address
    for _tile, address, stop, begin, end, variable in boxes.T.tolist():
        while leaving and leaving[0][0] <= begin:
            ended = bisect_left(starts, heappop(leaving)[1])
            del starts[ended], alive[ended]
        place = bisect_left(starts, address)
        if place and alive[place - 1][0] > address:
            return alive[place - 1][1], variable
        if place < len(starts) and starts[place] < stop:
            return alive[place][1], variable
        starts.insert(place, address)
        alive.insert(place, (stop, variable))
        heappush(leaving, (end, address))
    return None
