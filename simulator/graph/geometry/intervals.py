"""Arithmetic on lists of intervals (begin, length), without a loop over them."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

import numpy as np

from simulator.graph import kernels
from simulator.graph.types import BoolArray, IntArray

# Up to how many times as large as they are many, at least so many, counting beats sorting.
COUNTED, COUNTED_AT_LEAST = 8, 1 << 14


class Interval(NamedTuple):
    """The numbers [begin, end).

    >>> Interval(2, 5).size()
    3
    """

    begin: int
    end: int

    def __repr__(self) -> str:
        return f"({self.begin}, {self.end})"

    def lower(self) -> int:
        """Return the first number.

        >>> Interval(2, 5).lower()
        2
        """
        return self.begin

    def upper(self) -> int:
        """Return the end, which is not in it.

        >>> Interval(2, 5).upper()
        5
        """
        return self.end

    def size(self) -> int:
        """Count the numbers.

        >>> Interval(2, 5).size()
        3
        """
        return self.end - self.begin


def sorted_runs(numbers: IntArray) -> IntArray:
    """Sort numbers that come as runs of ascending ones: a merge takes a fifth of a quicksort."""
    result: IntArray = np.sort(numbers, kind="stable")
    return result


def as_int64(values: object) -> IntArray:
    """Return values as a one-dimensional array of int64."""
    return np.atleast_1d(np.asarray(values, dtype=np.int64))


def offsets_of(lengths: IntArray) -> IntArray:
    """Return where each of the lengths begins when laid end to end, and the total at the end."""
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def spread(begins: IntArray, lengths: IntArray) -> IntArray:
    """List every number of the intervals, in order."""
    if len(begins) == 1:
        return np.arange(begins[0], begins[0] + lengths[0], dtype=np.int64)
    if kernels.compiled:
        numbers: IntArray = kernels.columns("spread", begins, lengths)[0]
        return numbers
    offsets = offsets_of(lengths)
    return np.repeat(begins - offsets[:-1], lengths) + np.arange(offsets[-1], dtype=np.int64)


def join(begins: IntArray, lengths: IntArray) -> tuple[IntArray, IntArray]:
    """Join intervals that follow one another; drop empty ones."""
    if kernels.compiled and len(begins) > 1:
        columns = kernels.columns("join", begins, lengths)
        if columns:
            begins, lengths = columns
        return begins, lengths
    if not lengths.all():
        begins, lengths = begins[lengths > 0], lengths[lengths > 0]
    if len(begins) < 2:
        return begins, lengths
    first = np.ones(len(begins), dtype=bool)
    np.not_equal(begins[1:], begins[:-1] + lengths[:-1], out=first[1:])
    if first.all():
        return begins, lengths
    heads = np.flatnonzero(first)
    tails = np.append(heads[1:], len(begins)) - 1
    return begins[heads], begins[tails] + lengths[tails] - begins[heads]


def uniform(length: int, count: int) -> IntArray:
    """Return `count` lengths that are the same, in the room of one; they cannot be changed.

    NumPy's broadcast_to makes the same in five times as long.
    """
    return np.ndarray((count,), np.int64, np.int64(length), strides=(0,))


def common_length(lengths: IntArray) -> int:
    """Return the length that `uniform` has; 0 for lengths that were not made by it."""
    return int(lengths[0]) if len(lengths) > 1 and lengths.strides == (0,) else 0


def from_elements(elements: IntArray) -> tuple[IntArray, IntArray]:
    """Return the intervals of a list of element numbers, in its order."""
    if kernels.compiled:
        begins, lengths = kernels.columns("from_elements", elements)
        return begins, uniform(1, len(begins)) if len(begins) == len(elements) else lengths
    first = np.ones(len(elements), dtype=bool)
    np.not_equal(elements[1:], elements[:-1] + 1, out=first[1:])
    if first.all():
        return elements, uniform(1, len(elements))
    heads = np.flatnonzero(first)
    return elements[heads], np.diff(heads, append=len(elements))


def cut(
    begins: IntArray, lengths: IntArray, low: IntArray, high: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Cut the positions [low, high) out of intervals laid end to end.

    Gives the begins and lengths of all pieces and, for each range, where its pieces start
    (one entry more than ranges).
    """
    if kernels.compiled:
        pieces, sizes, starts, size = kernels.columns("cut", begins, lengths, low, high)
        return pieces, uniform(int(size[0]), len(pieces)) if size[0] else sizes, starts
    length = common_length(lengths)
    if length:
        first, last = low // length, (high - 1) // length
    else:
        offsets = offsets_of(lengths)
        first = np.searchsorted(offsets, low, side="right") - 1
        last = np.searchsorted(offsets, high, side="left") - 1
    counts = np.where(high > low, last - first + 1, 0)
    source = spread(first, counts)
    if length and not (low % length).any() and not (high % length).any():
        return begins[source], uniform(length, len(source)), offsets_of(counts)
    if length:
        offsets = np.arange(len(begins) + 1, dtype=np.int64) * length
    piece_low = np.maximum(offsets[source], np.repeat(low, counts))
    piece_high = np.minimum(offsets[source + 1], np.repeat(high, counts))
    return begins[source] + piece_low - offsets[source], piece_high - piece_low, offsets_of(counts)


def crossings(
    begins: IntArray, ends: IntArray, piece_begins: IntArray, piece_ends: IntArray
) -> tuple[IntArray, IntArray]:
    """Pair each interval with the sorted, disjoint pieces that it touches.

    Gives the interval's index and the piece's index of every pair, by interval and then by piece.
    """
    if not len(begins):
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    if kernels.compiled:
        interval, piece = kernels.columns("crossings", begins, ends, piece_begins, piece_ends)
        return interval, piece
    # Few of the pieces are between the outermost of the intervals: searched, they stay at hand.
    low = int(np.searchsorted(piece_ends, begins.min(), side="right"))
    high = int(np.searchsorted(piece_begins, ends.max(), side="left"))
    first = np.searchsorted(piece_ends[low:high], begins, side="right") + low
    last = np.searchsorted(piece_begins[low:high], ends, side="left") + low
    counts = np.maximum(last - first, 0)
    numbers = np.arange(len(begins), dtype=np.int64)
    if (counts == 1).all():
        return numbers, first
    return np.repeat(numbers, counts), spread(first, counts)


def blocks(
    begins: IntArray, lengths: IntArray, numbers: IntArray, size: int
) -> tuple[IntArray, IntArray]:
    """Cut intervals laid end to end into blocks of `size`; give the blocks of these numbers."""
    if len(begins) == 1:
        return join(begins[0] + numbers * size, np.full(len(numbers), size, dtype=np.int64))
    if size == 1:
        return from_elements(spread(begins, lengths)[numbers])
    pieces, piece_lengths, _ = cut(begins, lengths, numbers * size, numbers * size + size)
    return join(pieces, piece_lengths)


def rearranged(
    begins: IntArray, lengths: IntArray, outer: tuple[int, ...], order: tuple[int, ...], size: int
) -> tuple[IntArray, IntArray]:
    """Put blocks of `size`, laid end to end in dimensions `outer`, into another order of these.

    Dimension order[i] comes in place i.
    """
    if kernels.compiled:
        steps = [prod(outer[axis + 1 :]) for axis in order]
        loops = (np.array([outer[axis] for axis in order], dtype=np.int64), as_int64(steps))
        begins, lengths, same = kernels.columns(
            "rearranged", begins, lengths, *loops, np.array([size])
        )
        return begins, uniform(int(same[0]), len(begins)) if same[0] else lengths
    numbers = np.arange(prod(outer), dtype=np.int64).reshape(outer)
    return blocks(begins, lengths, numbers.transpose(order).reshape(-1), size)


def gathered(begins: IntArray, lengths: IntArray, places: IntArray) -> tuple[IntArray, IntArray]:
    """Return the intervals of the numbers at these places of intervals laid end to end."""
    if kernels.compiled:
        begins, lengths, same = kernels.columns("gathered", begins, lengths, places)
        return begins, uniform(int(same[0]), len(begins)) if same[0] else lengths
    return from_elements(spread(begins, lengths)[places])


def overlap(begins: IntArray, lengths: IntArray) -> bool:
    """Return whether a number lies in two of the intervals; none of them is empty."""
    if kernels.compiled:
        answer = kernels.compiled.overlap(begins, lengths)
        if answer is not None:
            return bool(answer)
    if (begins[1:] >= (begins + lengths)[:-1]).all():
        return False
    # In disjoint intervals the k-th begin and the k-th end belong together, so that each can be
    # sorted by itself; in others more have begun somewhere than this allows to have ended.
    first, ends = sorted_runs(begins), sorted_runs(begins + lengths)
    return bool((first[1:] < ends[:-1]).any())


def present(numbers: IntArray) -> IntArray:
    """Return the different numbers, ascending; none is negative.

    NumPy's unique hashes, which takes a hundred times as long as sorting.
    """
    if kernels.compiled and len(numbers) < COUNTED_AT_LEAST:
        return kinds(numbers)[0]
    most = int(numbers.max(initial=-1)) + 1
    if most > max(COUNTED * len(numbers), COUNTED_AT_LEAST):
        ascending = sorted_runs(numbers)
        return ascending[heads_of(ascending)]
    marks = np.zeros(most, dtype=bool)
    marks[numbers] = True
    return np.flatnonzero(marks)


def kinds(numbers: IntArray) -> tuple[IntArray, IntArray]:
    """Return the different numbers, ascending, and which of them each is; none is negative."""
    if kernels.compiled and (columns := kernels.columns("kinds", numbers)):
        numbers, which = columns
        return numbers, which
    most = int(numbers.max(initial=-1)) + 1
    if most > max(COUNTED * len(numbers), COUNTED_AT_LEAST):
        order = np.argsort(numbers)
        first = heads_of(numbers[order])
        which = np.empty(len(order), dtype=np.int64)
        which[order] = np.cumsum(first) - 1
        return numbers[order[first]], which
    ascending = present(numbers)
    rank = np.zeros(most, dtype=np.int64)
    rank[ascending] = np.arange(len(ascending))
    return ascending, rank[numbers]


def first_of_each(which: IntArray) -> IntArray:
    """Return the first place of each kind, of the kinds that `kinds` numbers."""
    first = np.empty(int(which.max(initial=-1)) + 1, dtype=np.int64)
    # NumPy assigns repeated indexes in order, so the last assignment stays.
    first[which[::-1]] = np.arange(len(which) - 1, -1, -1)
    return first


def among(numbers: IntArray, members: IntArray) -> BoolArray:
    """Return which numbers are among the chosen ones; all are small, and none is negative."""
    marks = np.zeros(max(int(numbers.max(initial=0)), int(members.max(initial=0))) + 1, dtype=bool)
    marks[members] = True
    result: BoolArray = marks[numbers]
    return result


def ascending(numbers: IntArray) -> IntArray:
    """Return the order that sorts numbers, those alike as they come; none is negative.

    Sorting them with their places as the last digits takes a fifth of a stable argsort.
    """
    return in_order(numbers)[1]


def in_order(numbers: IntArray) -> tuple[IntArray, IntArray]:
    """Return numbers that are not negative, sorted, and the order that sorts them (`ascending`)."""
    numbers, bits = numbers.astype(np.int64, copy=False), len(numbers).bit_length()
    if int(numbers.max(initial=0)) >> (63 - bits):
        order = np.argsort(numbers, kind="stable")
        return numbers[order], order
    places = sorted_runs(numbers << bits | np.arange(len(numbers), dtype=np.int64))
    return places >> bits, places & ((1 << bits) - 1)


def distinct(first: IntArray, second: IntArray, *columns: IntArray) -> tuple[IntArray, IntArray]:
    """Return the index of one row of each kind, by the columns in their order, and how many it has.

    No number is negative. Sorting columns is much faster than NumPy's unique of rows; one column
    of two is sorted faster still, and mostly tells the kinds.
    """
    both = first * (int(second.max(initial=0)) + 1) + second
    if (both[1:] > both[:-1]).all():
        return np.arange(len(both)), np.ones(len(both), dtype=np.int64)
    order = np.argsort(both)
    new = heads_of(both[order])
    if any((column[order][1:] != column[order][:-1])[~new[1:]].any() for column in columns):
        order = np.lexsort((*columns[::-1], both))
        new = heads_of(*(column[order] for column in (both, *columns)))
    heads = np.flatnonzero(new)
    return order[heads], np.diff(heads, append=len(order))


def heads_of(*columns: IntArray) -> BoolArray:
    """Return which rows differ from the row before."""
    first = np.ones(len(columns[0]), dtype=bool)
    np.not_equal(columns[0][1:], columns[0][:-1], out=first[1:])
    for column in columns[1:]:
        first[1:] |= column[1:] != column[:-1]
    return first


def touch(begins: IntArray, ends: IntArray, other_begins: IntArray, other_ends: IntArray) -> bool:
    """Return whether an interval [begin, end) has a number in common with one of the others."""
    order = np.argsort(other_begins)
    furthest = np.maximum.accumulate(other_ends[order])
    before = np.searchsorted(other_begins[order], ends)
    return bool((furthest[before[before > 0] - 1] > begins[before > 0]).any())
