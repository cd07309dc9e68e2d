"""Lists of intervals [begin, end), and indexes, as programs that map tensors by hand use them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from simulator.codelets.costs import ceil_div, even_bounds
from simulator.graph.errors import poplibs_error
from simulator.graph.geometry.intervals import Interval, as_int64, ascending, cut, join, offsets_of
from simulator.graph.machine.target import Target
from simulator.graph.mapping import listed_pieces
from simulator.graph.types import IntArray
from simulator.logging import library_call

Regions = Sequence[tuple[int, int]]


@library_call("POPUTIL")
def mergeAdjacentRegions(regions: Sequence[Any]) -> list[Any]:
    """Sort regions and join neighbours; of a list for each tile, those of each tile.

    PopLibs changes its argument; here the regions are given back.

    >>> from simulator import poputil
    >>> poputil.mergeAdjacentRegions([(4, 6), (0, 2), (2, 4)])
    [(0, 6)]
    """
    nested = bool(len(regions)) and all(_is_list_of_pairs(part) for part in regions)
    if nested:
        return [_merged(part) for part in regions]
    return list(_merged(regions))


def _is_list_of_pairs(part: Any) -> bool:
    return len(part) == 0 or not isinstance(part[0], int | np.integer)


def _merged(regions: Regions) -> list[Interval]:
    low, high, _ = listed_pieces([regions])
    order = ascending(low)
    begins, lengths = join(low[order], (high - low)[order])
    return _listed(begins, lengths)


def _listed(begins: IntArray, lengths: IntArray) -> list[Interval]:
    return list(map(Interval, begins.tolist(), (begins + lengths).tolist()))


@library_call("POPUTIL")
def splitRegions(
    regions: Regions | Sequence[Regions],
    grainSize: int,
    maxPartitions: int,
    minElementsPerPartition: int = 0,
    maxElementsPerPartition: int | None = None,
    maxElementsPerRegion: int | None = None,
) -> list[Any]:
    """Share the elements of regions among partitions as evenly as can be, in whole grains.

    There are no more partitions than it takes to keep the largest as small; `maxPartitions` gives
    way when no partition may have more than so many elements. Regions may be lists of intervals
    that count as one region each, which is cut across them; each of a partition is a list then.

    >>> from simulator import poputil
    >>> poputil.splitRegions([(0, 4), (10, 14)], 2, 2)
    [[(0, 4)], [(10, 14)]]
    """
    if len(regions) and _is_list_of_pairs(regions[0]):
        return _split_lists(
            regions,  # type: ignore[arg-type]
            (
                grainSize,
                maxPartitions,
                minElementsPerPartition,
                maxElementsPerPartition,
                maxElementsPerRegion,
            ),
        )
    if grainSize < 1 or maxPartitions < 1:
        raise poplibs_error(
            f"splitRegions: grains of {grainSize}, {maxPartitions} partitions; at least 1 is needed"
        )
    low, high, _ = listed_pieces([regions])  # type: ignore[list-item]
    total = int((high - low).sum())
    if not total:
        return []
    grains = ceil_div(total, grainSize)
    grains_per_part = ceil_div(grains, maxPartitions)
    if minElementsPerPartition:
        most = max(1, grains // ceil_div(minElementsPerPartition, grainSize))
        grains_per_part = max(grains_per_part, ceil_div(grains, most))
    if maxElementsPerPartition is not None:
        grains_per_part = min(grains_per_part, max(maxElementsPerPartition // grainSize, 1))
    bounds = np.minimum(even_bounds(grains, ceil_div(grains, grains_per_part)) * grainSize, total)
    begins, lengths, starts = cut(low, high - low, bounds[:-1], bounds[1:])
    if maxElementsPerRegion is not None:
        most = maxElementsPerRegion // grainSize * grainSize
        begins, lengths, starts = _short(begins, lengths, starts, most)
    parts = _listed(begins, lengths)
    places = starts.tolist()
    return [parts[first:end] for first, end in zip(places[:-1], places[1:], strict=True)]


def _split_lists(regions: Sequence[Regions], limits: tuple[Any, ...]) -> list[Any]:
    """Share lists of intervals among partitions: each list as one region, end to end."""
    low, high, number = listed_pieces(regions)
    lengths = high - low
    ends = offsets_of(np.bincount(number, lengths, len(regions)).astype(np.int64))
    pairs = list(zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True))
    partitions = splitRegions(pairs, *limits)
    parts = [part for partition in partitions for part in partition]
    begins, sizes, starts = cut(
        low, lengths, as_int64([part.begin for part in parts]), as_int64([p.end for p in parts])
    )
    pieces, places = _listed(begins, sizes), starts.tolist()
    lists = iter([pieces[first:end] for first, end in zip(places[:-1], places[1:], strict=True)])
    return [[next(lists) for _ in partition] for partition in partitions]


def _short(
    begins: IntArray, lengths: IntArray, starts: IntArray, most: int
) -> tuple[IntArray, IntArray, IntArray]:
    """Cut regions into parts of at most so many elements."""
    counts = ceil_div(lengths, max(most, 1))
    number = np.arange(int(counts.sum())) - np.repeat(offsets_of(counts)[:-1], counts)
    offset = number * max(most, 1)
    remaining = np.repeat(lengths, counts) - offset
    return (
        np.repeat(begins, counts) + offset,
        np.minimum(remaining, most),
        offsets_of(counts)[starts],
    )


@library_call("POPUTIL")
def splitRegionsBetweenWorkers(
    target: Target,
    regions: Regions | Sequence[Regions],
    grainSize: int,
    minElementsPerPartition: int = 0,
    maxElementsPerPartition: int | None = None,
    maxElementsPerRegion: int | None = None,
) -> list[Any]:
    """Share the elements of regions of a tile among its workers; see `splitRegions`.

    >>> from simulator import poplar, poputil
    >>> graph = poplar.Graph(poplar.IPUModel("tiny").createDevice().getTarget())  # 4 tiles
    >>> parts = poputil.splitRegionsBetweenWorkers(graph.getTarget(), [(0, 12)], 1)
    >>> len(parts), parts[0]  # 6 workers
    (6, [(0, 2)])
    """
    return splitRegions(
        regions,
        grainSize,
        target.workers,
        minElementsPerPartition,
        maxElementsPerPartition,
        maxElementsPerRegion,
    )


@library_call("POPUTIL")
def intervalSequenceNumElements(seq: Iterable[Regions]) -> int:
    """Count the elements of lists of regions.

    >>> from simulator import poputil
    >>> poputil.intervalSequenceNumElements([[(0, 2)], [(4, 6), (8, 9)]])
    5
    """
    low, high, _ = listed_pieces(seq)
    return int((high - low).sum())


@library_call("POPUTIL")
def flattenIndex(shape: Sequence[int], indices: Sequence[int]) -> int:
    """Return the place of an element in the flattened tensor.

    >>> from simulator import poputil
    >>> poputil.flattenIndex([2, 3], [1, 2])
    5
    """
    sizes, places = as_int64(shape), as_int64(indices)
    if len(sizes) != len(places) or (places < 0).any() or (places >= sizes).any():
        raise poplibs_error(f"flattenIndex: {list(indices)} is no element of {list(shape)}")
    return int(np.ravel_multi_index(tuple(places), tuple(sizes)))


@library_call("POPUTIL")
def unflattenIndex(shape: Sequence[int], index: int) -> list[int]:
    """Return the indices of the element at a place of the flattened tensor.

    >>> from simulator import poputil
    >>> poputil.unflattenIndex([2, 3], 5)
    [1, 2]
    """
    if not 0 <= index < np.prod(as_int64(shape)):
        raise poplibs_error(f"unflattenIndex: {list(shape)} has no element {index}")
    return [int(place) for place in np.unravel_index(index, tuple(shape))]


@library_call("POPUTIL")
def balancedPartition(rangeUpperBound: int, splitCount: int) -> list[int]:
    """Return the sizes of parts of a range as even as can be, the larger ones first.

    >>> from simulator import poputil
    >>> poputil.balancedPartition(10, 4)
    [3, 3, 2, 2]
    """
    if splitCount < 1:
        raise poplibs_error(f"balancedPartition: {splitCount} parts; at least 1 is needed")
    size, larger = divmod(rangeUpperBound, splitCount)
    return [size + (part < larger) for part in range(splitCount)]
