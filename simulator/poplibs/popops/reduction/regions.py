"""How the values that become one output lie in memory, and which workers reduce them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from simulator.codelets.costs import ceil_div
from simulator.codelets.products.reduction import scalar_reduce_cycles, strided_reduce_cycles
from simulator.graph.errors import TileMappingError
from simulator.graph.geometry.intervals import (
    as_int64,
    ascending,
    from_elements,
    join,
    kinds,
    offsets_of,
    present,
    spread,
)
from simulator.graph.geometry.patterns import Pattern, Shifted, placed, recent, relative
from simulator.graph.geometry.strides import listed
from simulator.graph.graph import Graph
from simulator.graph.tensors.regions import pieces_of, variables_of
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import Array, IntArray, Type, element_count
from simulator.poplibs.poputil.structure import in_rows


@dataclass(frozen=True, slots=True, eq=False)
class Partials:
    """Values that are to be reduced, in blocks of `size` elements for consecutive columns.

    Block i, the elements [i * size, (i + 1) * size) of the values, is a row of memory on one tile;
    `column` has its first column.
    """

    values: Tensor
    column: IntArray
    tile: IntArray
    size: int = 1

    def single(self) -> Partials:
        """Return the same values in blocks of one."""
        if self.size == 1:
            return self
        column = spread(self.column, np.full(len(self.column), self.size))
        return Partials(self.values, column, np.repeat(self.tile, self.size))


@dataclass(frozen=True, slots=True, eq=False)
class Memory:
    """The different elements of a tensor in the order of memory.

    `place` counts the elements that lie on one tile in a row: those of a variable follow one
    another on each tile, with a gap before the next tile and variable.
    """

    values: Tensor
    place: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Regions:
    """Regions of outputs that are next to each other and reduced alike, sorted by tile.

    Row i of region r are the `outs[r]` elements from `first[starts[r] + i]` of the memory. `slot`
    numbers its first output among those of all regions.
    """

    tile: IntArray
    slot: IntArray
    outs: IntArray
    rows: IntArray
    first: IntArray

    @property
    def starts(self) -> IntArray:
        """Return where the rows of each region begin."""
        return offsets_of(self.rows)[:-1]

    def where(self, selection: Array) -> Regions:
        """Keep the chosen regions: a flag each, or indexes."""
        rows = self.rows[selection]
        first = self.first[spread(self.starts[selection], rows)]
        return Regions(
            self.tile[selection], self.slot[selection], self.outs[selection], rows, first
        )


@dataclass(frozen=True, slots=True, eq=False)
class Slots:
    """The outputs of a stage by tile, in their order there: column, tile and values of each."""

    column: IntArray
    tile: IntArray
    counts: IntArray


def partials_of(graph: Graph, tensor: Tensor, kept: tuple[int, ...]) -> Partials:
    """Return the values of a tensor; each index of the `kept` dimensions is a column.

    Raises TileMappingError for an element that is on no tile.
    """
    shape = tensor.shape
    columns = element_count(tuple(shape[axis] for axis in kept))
    rows = in_rows(tensor, kept)
    if rows is not None:
        values = rows.flatten()
        low, high, tile = mapped_ranges(graph, values)
        bounds = offsets_of(values.intervals()[1])
        size = int(np.gcd(np.gcd.reduce(bounds), np.gcd.reduce(np.append(low, columns))))
        if size > 1 and not values.containsAliases():
            column = np.arange(0, values.numElements(), size) % columns
            return Partials(values, column, np.repeat(tile, (high - low) // size), size)
    outputs = [size if axis in kept else 1 for axis, size in enumerate(shape)]
    numbers = np.arange(columns, dtype=np.int64).reshape(outputs)
    column = np.broadcast_to(numbers, shape).reshape(-1)
    return Partials(tensor.flatten(), column, tile_by_position(graph, tensor.flatten()))


def mapped_ranges(graph: Graph, tensor: Tensor) -> tuple[IntArray, IntArray, IntArray]:
    """Return the positions [low, high) of a flat tensor that lie on one tile, in order.

    Raises TileMappingError for an element that is on no tile.
    """
    low, high, tiles = graph.tile_ranges(tensor)
    if int((high - low).sum()) != tensor.numElements():
        raise TileMappingError(f"variable {tensor.describe()!r}: is not wholly mapped to tiles")
    return low, high, tiles


def tile_by_position(graph: Graph, tensor: Tensor) -> IntArray:
    """Return the tile of each element of a flat tensor; `mapped_ranges` tells what it raises."""
    low, high, tiles = mapped_ranges(graph, tensor)
    return np.repeat(tiles, high - low)


def in_memory(graph: Graph, values: Tensor, size: int = 1) -> tuple[Memory, IntArray]:
    """Sort a flat tensor's elements as they lie on the tiles; give each block's number there.

    Larger blocks than of one element are rows of memory that have no element in common.
    """
    places = values.places
    if not isinstance(places, Shifted):
        begins, lengths, place, number = _upward(graph, values, size)
        return Memory(values.at((len(place),), listed(begins, lengths)), place), number
    mapping = graph.mapping_table(variables_of(values))
    key = "memory", size, graph.window, relative(places, mapping, values.dtype.size)
    pattern, place, number = recent(key, lambda: _upward_pattern(graph, values, places.first, size))
    return Memory(values.at((len(place),), placed(places.first, pattern)), place), number


def _upward_pattern(
    graph: Graph, values: Tensor, first: int, size: int
) -> tuple[Pattern, IntArray, IntArray]:
    begins, lengths, place, number = _upward(graph, values, size)
    return Pattern(begins - first, lengths), place, number


def _upward(
    graph: Graph, values: Tensor, size: int
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Return a tensor's intervals in the order of the tiles, their places, each block's number."""
    begin, end, base = _places(graph, values)
    upward = np.argsort(begin)
    begin, end, base = begin[upward], end[upward], base[upward]
    low, high, piece, behind = pieces_of(*values.intervals(), begin, end, 1)
    if size == 1:
        place, number = kinds(spread(base[piece] + behind, high - low))
        elements = np.empty(len(place), dtype=np.int64)
        elements[number] = values.elements()
        return *from_elements(elements), place, number
    order = ascending(base[piece] + behind)
    piece, behind, lengths = piece[order], behind[order], (high - low)[order]
    first = np.empty_like(order)
    first[order] = offsets_of(lengths)[:-1]
    number = spread(first // size, (high - low) // size) * size
    return *join(begin[piece] + behind, lengths), spread(base[piece] + behind, lengths), number


def _places(graph: Graph, values: Tensor) -> tuple[IntArray, IntArray, IntArray]:
    """Return the mapped pieces [begin, end) of a tensor's variables, and the place of each."""
    size = values.dtype.size
    variables = [graph.variables[variable] for variable in variables_of(values)]
    flat = Tensor(
        graph,
        values.dtype,
        (sum(variable.bytes // size for variable in variables),),
        (
            as_int64([variable.offset // size for variable in variables]),
            as_int64([variable.bytes // size for variable in variables]),
        ),
    )
    low, high, tile = graph.tile_ranges(flat)
    offsets = offsets_of(flat.lengths)
    variable = np.searchsorted(offsets, low, side="right") - 1
    begin = low - offsets[variable] + flat.begins[variable]
    order = np.lexsort((begin, tile, variable))
    fresh = np.ones(len(order), dtype=np.int64)
    fresh[1:] = (np.diff(tile[order]) != 0) | (np.diff(variable[order]) != 0)
    base = np.empty(len(order), dtype=np.int64)
    base[order] = offsets_of((high - low)[order])[:-1] + np.cumsum(fresh)
    return begin, begin + high - low, base


def find_slots(
    partials: Partials, number: IntArray, tile: IntArray, rank: IntArray | None
) -> tuple[Slots, IntArray]:
    """Return the outputs of a stage that computes each value on `tile`, and the values of each.

    `number` is each value's place among the memory's elements. Outputs on a tile are in the order
    of `rank`, by column; without it in the order of their first values.
    """
    key = tile * (int(partials.column.max()) + 1) + partials.column
    order = ascending(key * len(key) + number)
    first = np.flatnonzero(np.append(True, np.diff(key[order]) != 0))
    counts = np.diff(np.append(first, len(key)))
    heads = order[first]
    column, on_tile = partials.column[heads], tile[heads]
    sort = np.lexsort((number[heads] if rank is None else rank[column], on_tile))
    values = number[order[spread(first[sort], counts[sort])]]
    return Slots(column[sort], on_tile[sort], counts[sort]), values


def find_blocks(
    partials: Partials, number: IntArray, memory: Memory, rank: IntArray | None
) -> tuple[Partials, IntArray]:
    """Return values in the largest blocks that memory has, and the number of each one's first.

    They are of one element where larger ones do not begin at a multiple of their size, or are not
    in the order of `rank`.
    """
    blocks, size = len(number), partials.size
    if len(memory.place) == blocks * size:
        order = np.empty(blocks, dtype=np.int64)
        order[number // size] = np.arange(blocks)
        column = partials.column[order]
        follows = (np.diff(column) == size) & (np.diff(memory.place[::size]) == size)
        lengths = np.diff(np.flatnonzero(np.append(True, ~follows)), append=blocks)
        joined = int(np.gcd.reduce(lengths))
        column, tile, wide = column[::joined], partials.tile[order[::joined]], joined * size
        are_even = wide > 1 and not (column % wide).any()
        if are_even and (rank is None or _in_order(rank, wide)):
            numbers = np.arange(0, blocks * size, wide)
            return Partials(memory.values, column, tile, wide), numbers
    return partials.single(), spread(number, np.full(blocks, size))


def _in_order(rank: IntArray, size: int) -> bool:
    """Return whether the ranks go up by one within each block of columns."""
    return len(rank) % size == 0 and bool((np.diff(rank.reshape(-1, size)) == 1).all())


def widen(slots: Slots, regions: Regions, size: int) -> tuple[Slots, Regions]:
    """Return outputs and regions of single values, from those of blocks of a size."""
    within = np.tile(np.arange(size), len(slots.tile))
    columns = np.repeat(slots.column, size) + within
    outputs = Slots(columns, np.repeat(slots.tile, size), np.repeat(slots.counts, size))
    return outputs, replace(regions, slot=regions.slot * size, outs=regions.outs * size)


def split_runs(slots: Slots, values: IntArray, place: IntArray) -> tuple[Slots, IntArray] | None:
    """Split the values of each output that lie in several runs of memory, to be reduced in two.

    Where the runs of an output are equally long, and it is not the only one of its tile, the first,
    second, ... values of all runs are outputs of their own, which lie side by side (PopLibs'
    connectSmallInnerFactorReductions); else each run is one. They come in the order of memory.
    Returns None where it is no use: when there is one run an output, or fewer than two values a
    run.
    """
    slot = np.repeat(np.arange(len(slots.counts)), slots.counts)
    heads = np.append(True, (np.diff(place[values]) != 1) | (np.diff(slot) != 0))
    first = np.flatnonzero(heads)
    if len(first) == len(slots.counts) or len(values) < 2 * len(first):
        return None
    run = np.cumsum(heads) - 1
    lengths = np.diff(np.append(first, len(values)))
    runs = np.bincount(slot[first])
    starts = np.cumsum(runs) - runs
    longest = np.maximum.reduceat(lengths, starts)
    alike = (np.minimum.reduceat(lengths, starts) == longest) & (longest > 1) & (runs > 1)
    alike &= np.bincount(slots.tile)[slots.tile] > 1
    pieces = np.where(alike, longest, runs)
    number = np.where(alike[slot], np.arange(len(values)) - first[run], run - starts[slot])
    number += (np.cumsum(pieces) - pieces)[slot]
    order = ascending(number)
    counts = np.bincount(number)
    begins = offsets_of(counts)[:-1]
    of_piece, heads_of = slot[order][begins], values[order][begins]
    sort = np.lexsort((heads_of, slots.tile[of_piece]))
    split = Slots(slots.column[of_piece][sort], slots.tile[of_piece][sort], counts[sort])
    return split, values[order[spread(begins[sort], counts[sort])]]


def join_slots(
    slots: Slots, values: IntArray, place: IntArray, rank: IntArray | None, size: int = 1
) -> Regions:
    """Join outputs on a tile to regions where each value is followed by that of the next output.

    Where there is a rank, the next output has the next one, as it is the next in memory. Values
    may be blocks of a size.
    """
    joined = _next_to(slots, rank, size) & _follow(place[values], slots.counts, size)
    first = np.flatnonzero(np.append(True, ~joined))
    outs: IntArray = np.diff(np.append(first, len(slots.counts)))
    rows = slots.counts[first]
    row_first = values[spread(offsets_of(slots.counts)[:-1][first], rows)]
    return Regions(slots.tile[first], first, outs, rows, row_first)


def arrange_slots(
    slots: Slots, values: IntArray, memory: Memory, rank: IntArray | None
) -> tuple[Memory, Regions]:
    """Join outputs with as many values each, as an exchange can bring those row by row.

    Gives the values in the order in which they are to be brought.
    """
    joined = _next_to(slots, rank) & (np.diff(slots.counts) == 0)
    first = np.flatnonzero(np.append(True, ~joined))
    outs: IntArray = np.diff(np.append(first, len(slots.counts)))
    rows = slots.counts[first]
    begins = offsets_of(outs * rows)[:-1]
    column = spread(np.zeros_like(outs), outs)  # of each slot in its region
    row = spread(np.zeros_like(slots.counts), slots.counts)
    width, start = np.repeat(outs, outs), np.repeat(begins, outs) + column
    places = np.repeat(start, slots.counts) + np.repeat(width, slots.counts) * row
    order = np.empty(len(values), dtype=np.int64)
    order[places] = values
    gathered = memory.values.view(memory.values.elements()[order])
    row_of_region = spread(np.zeros_like(rows), rows)
    row_first = np.repeat(begins, rows) + np.repeat(outs, rows) * row_of_region
    in_a_row = Memory(gathered, np.arange(len(order), dtype=np.int64))
    return in_a_row, Regions(slots.tile[first], first, outs, rows, row_first)


def _next_to(slots: Slots, rank: IntArray | None, size: int = 1) -> Array:
    """Return of each output but the last whether the next lies just behind it."""
    adjacent: Array = np.diff(slots.tile) == 0
    return adjacent if rank is None else adjacent & (np.diff(rank[slots.column]) == size)


def _follow(place: IntArray, counts: IntArray, size: int) -> Array:
    """Return of each output but the last whether all values of the next lie just behind its own."""
    alike: Array = counts[1:] == counts[:-1]
    starts = offsets_of(counts)[:-1]
    checked = np.flatnonzero(alike)
    if len(checked):
        positions = spread(starts[checked], counts[checked])
        next_to = (
            place[positions + np.repeat(counts[checked], counts[checked])]
            == place[positions] + size
        )
        bounds = offsets_of(counts[checked])[:-1]
        alike[checked] = np.logical_and.reduceat(next_to, bounds)
    return alike


def share_regions(regions: Regions, workers: int, grain: int) -> Regions:
    """Cut the outputs of each tile, region after region, into even shares of whole grains.

    There are no more shares than workers, and no more than keep the largest as small (PopLibs
    lib/poputil/Util.cpp, splitRegions).
    """
    heads = np.flatnonzero(np.append(True, np.diff(regions.tile) != 0))
    total = np.add.reduceat(regions.outs, heads)
    grains = ceil_div(total, grain)
    shares = ceil_div(grains, ceil_div(grains, workers))
    tile = np.repeat(np.arange(len(heads)), shares)
    share = spread(np.zeros_like(shares), shares)
    begins = offsets_of(regions.outs)[:-1]
    bounds = begins[heads][tile] + grains[tile] * share // shares[tile] * grain
    edges = present(np.concatenate([begins, bounds]))
    source = np.searchsorted(begins, edges, side="right") - 1
    low = edges - begins[source]
    outs = np.diff(np.append(edges, int(total.sum())))
    rows = regions.rows[source]
    first = regions.first[spread(regions.starts[source], rows)] + np.repeat(low, rows)
    return Regions(regions.tile[source], regions.slot[source] + low, outs, rows, first)


def region_cycles(outs: IntArray, rows: IntArray, dtype: Type) -> IntArray:
    """Return the cycles of a worker that has one region to reduce."""
    scalar = scalar_reduce_cycles(rows, dtype)
    return np.where(outs == 1, scalar, strided_reduce_cycles(outs, rows, dtype))


def cut_rows(regions: Regions, parts: IntArray) -> tuple[Regions, IntArray]:
    """Cut the rows of each region into parts with outputs of their own, numbered anew.

    Gives the slot that each of the new outputs was a part of.
    """
    source = np.repeat(np.arange(len(parts)), parts)
    part, total = spread(np.zeros_like(parts), parts), parts[source]
    low = regions.rows[source] * part // total
    rows = regions.rows[source] * (part + 1) // total - low
    outs = regions.outs[source]
    first = regions.first[spread(regions.starts[source] + low, rows)]
    slots = spread(regions.slot[source], outs)
    return Regions(regions.tile[source], offsets_of(outs)[:-1], outs, rows, first), slots
