"""Sequences that come again in an order of nodes, and the choice of those to be made once.

Those that save most in all come first; none crosses one that has been chosen. One that lies within
another is chosen if it comes more often. Then, the shortest first, those stay that are worth more
than what they are made of, by a threshold.

The rules are those of PopART's outliner (willow/src/subgraph/algo1.cpp) but for the order: it takes
the most valuable first, which are half of all layers, whatever may not fit into halves.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from simulator.graph.types import IntArray

ROWS = 4  # ways to choose among places that overlap
WORK = 400  # comparisons for each node, of sequences whose nodes are connected differently


class Repeat(NamedTuple):
    """A sequence of nodes, and where it begins each time."""

    length: int
    starts: tuple[int, ...]


# Sorts the beginnings of a sequence by how its nodes are connected there.
Alike = Callable[[Repeat], list[tuple[int, ...]]]


def maximal_repeats(ids: IntArray) -> Iterator[Repeat]:
    """Return the sequences that come twice and more, and are alike neither before nor behind."""
    order, common = _suffixes(ids)
    open_: list[tuple[int, int]] = []  # (length, first row of the suffixes that begin alike)
    for row, length in enumerate([*common, 0]):
        first = row
        while open_ and open_[-1][0] > length:
            longer, first = open_.pop()
            starts = np.sort(order[first : row + 1])
            before = ids[starts - 1]
            if starts[0] == 0 or (before != before[0]).any():
                yield Repeat(longer, tuple(starts.tolist()))
        if length and (not open_ or open_[-1][0] < length):
            open_.append((length, first))


def _candidates(
    ids: IntArray, total: npt.NDArray[np.float64], threshold: float
) -> Iterator[Repeat]:
    """Return the maximal repeats; of those in a row the part that follows itself.

    Of that as many together as are worth more than the threshold, too.
    """
    rows: dict[tuple[int, int], int] = {}  # where each ends, by how long a part is, and its begin
    for repeat in maximal_repeats(ids):
        gaps = np.diff(repeat.starts)
        gap, first = int(gaps[0]), repeat.starts[0]
        if gap >= repeat.length or (gaps != gap).any():
            yield repeat
        else:
            end = repeat.starts[-1] + repeat.length
            rows[gap, first] = max(rows.get((gap, first), 0), end)
    for (gap, first), end in rows.items():
        value = float(total[first + gap] - total[first])
        window_count = int(max(threshold, 0.0) / value + 1e-9) + 1 if value > 0 else 1
        for size in (gap, gap * window_count):
            yield Repeat(size, tuple(range(first, end - size + 1, size)))


def _suffixes(ids: IntArray) -> tuple[IntArray, list[int]]:
    """Sort all suffixes; give their begins, and how far each begins like the next one."""
    count = len(ids)
    rank = np.unique(ids, return_inverse=True)[1].reshape(-1)
    order, step = np.arange(count), 1
    while count > 1:
        second = np.full(count, -1)
        second[: max(count - step, 0)] = rank[step:]
        order = np.lexsort((second, rank))
        new = (np.diff(rank[order]) != 0) | (np.diff(second[order]) != 0)
        rank[order] = np.concatenate([[0], np.cumsum(new)])
        if rank[order[-1]] == count - 1:
            break
        step *= 2
    return order, _common(ids.tolist(), order.tolist(), rank.tolist())


def _common(ids: list[int], order: list[int], rank: list[int]) -> list[int]:
    """Count how far each suffix begins like the next one (Kasai's way, from suffix to suffix)."""
    lengths, length = [0] * max(len(ids) - 1, 0), 0
    for begin, row in enumerate(rank):
        if row == len(ids) - 1:
            length = 0
            continue
        next_suffix = order[row + 1]
        most = len(ids) - max(begin, next_suffix)
        while length < most and ids[begin + length] == ids[next_suffix + length]:
            length += 1
        lengths[row] = length
        length = max(length - 1, 0)
    return lengths


@dataclass(slots=True)
class _Choice:
    """The sequences that are still to be looked at, and those that have been chosen."""

    total: npt.NDArray[np.float64]  # value of all nodes before each
    alike: Alike
    work: int
    chosen: list[Repeat] = field(default_factory=list)
    waiting: list[tuple[float, int, tuple[int, ...]]] = field(default_factory=list)
    seen: set[Repeat] = field(default_factory=set)

    def value(self, repeat: Repeat) -> float:
        first = repeat.starts[0]
        return float(self.total[first + repeat.length] - self.total[first])

    def add(self, length: int, starts: Iterable[int]) -> None:
        """Note a sequence that is to be looked at."""
        repeat = Repeat(length, tuple(starts))
        if length > 0 and len(repeat.starts) > 1 and repeat not in self.seen:
            self.seen.add(repeat)
            saved = self.value(repeat) * (len(repeat.starts) - 1)
            heappush(self.waiting, (-saved, -length, repeat.starts))

    def run(self) -> None:
        """Choose; what cannot be chosen leaves shorter and rarer sequences to look at."""
        steps = (self._is_within, self._crosses, self._overlaps, self._differs, self._is_uneven)
        while self.waiting:
            _, length, starts = heappop(self.waiting)
            repeat = Repeat(-length, starts)
            if not any(step(repeat) for step in steps):
                self.chosen.append(repeat)

    def _is_within(self, repeat: Repeat) -> bool:
        """Return whether all lies in a chosen one that comes half as often, or oftener."""
        return any(
            2 * len(repeat_chosen.starts) > len(repeat.starts)
            and all(
                _place(repeat_chosen, start, repeat.length) is not None for start in repeat.starts
            )
            for repeat_chosen in self.chosen
        )

    def _crosses(self, repeat: Repeat) -> bool:
        """Return whether a chosen one begins or ends within, not both; then look at the parts."""
        length, starts = repeat
        first, last, free = length, 0, []
        for start in starts:
            cuts = [
                cut
                for repeat_chosen in self.chosen
                for cut in _crossing(repeat_chosen, start, start + length)
            ]
            if cuts:
                first, last = min(first, *cuts), max(last, *cuts)
            else:
                free.append(start)
        if len(free) == len(starts):
            return False
        self.add(length, free)
        self.add(first, starts)
        self.add(length - last, (start + last for start in starts))
        return True

    def _overlaps(self, repeat: Repeat) -> bool:
        """Return whether it begins again before it ends; then look at what is once in between."""
        length, starts = repeat
        gaps = set(np.diff(starts).tolist())
        if min(gaps) >= length:
            return False
        # In a row of one gap, longer parts would save less.
        longer = {length} if len(gaps) > 1 else set()
        for size in sorted({gap for gap in gaps if gap < length} | longer):
            rows: list[list[int]] = []
            for start in starts:
                row = next((row for row in rows if start - row[-1] >= size), None)
                if row is not None:
                    row.append(start)
                elif len(rows) < ROWS:
                    rows.append([start])
            for row in rows:
                self.add(size, row)
        return True

    def _differs(self, repeat: Repeat) -> bool:
        """Return whether nodes are connected differently; then look at the others, and shorter."""
        self.work -= repeat.length * len(repeat.starts)
        parts = self.alike(repeat) if self.work > 0 else []
        if len(parts) == 1:
            return False
        for part in parts:
            self.add(repeat.length, part)
        if parts:
            self.add(repeat.length - 1, repeat.starts)
            self.add(repeat.length - 1, (start + 1 for start in repeat.starts))
        return True

    def _is_uneven(self, repeat: Repeat) -> bool:
        """Return whether of it and a chosen one not each has the other at the same places."""
        return any(
            len({tuple(places) for places in _inside(outer, inner)}) > 1
            for repeat_chosen in self.chosen
            for outer, inner in ((repeat_chosen, repeat), (repeat, repeat_chosen))
        )


def _crossing(repeat: Repeat, begin: int, end: int) -> list[int]:
    """List where, from `begin` on, a sequence has its edges that partly lies in [begin, end)."""
    length, starts = repeat
    edges = []
    row = bisect_left(starts, begin) - 1
    if row >= 0 and begin < starts[row] + length < end:
        edges.append(starts[row] + length - begin)
    row = bisect_left(starts, end) - 1
    if row >= 0 and begin < starts[row] and end < starts[row] + length:
        edges.append(starts[row] - begin)
    return edges


def _inside(outer: Repeat, inner: Repeat) -> list[list[int]]:
    """List, for each time that a sequence comes, where another begins within."""
    offsets = []
    for start in outer.starts:
        low = bisect_left(inner.starts, start)
        high = bisect_right(inner.starts, start + outer.length - inner.length)
        offsets.append([place - start for place in inner.starts[low:high]])
    return offsets


def _place(repeat: Repeat, start: int, length: int) -> int | None:
    """Return the beginning of the sequence in which another one lies; None if it lies in none."""
    row = bisect_right(repeat.starts, start) - 1
    if row < 0 or start + length > repeat.starts[row] + repeat.length:
        return None
    return repeat.starts[row]


def chosen_repeats(
    ids: IntArray, values: Sequence[float], alike: Alike, threshold: float
) -> list[Repeat]:
    """Choose sequences to be made once, the shortest first; `values` are what nodes are worth."""
    total = np.concatenate([[0.0], np.cumsum(values)])
    choice = _Choice(total, alike, WORK * len(ids))
    for repeat in _candidates(ids, total, threshold):
        choice.add(*repeat)
    choice.run()
    candidates: list[Repeat] = []
    covered = np.zeros(len(ids))  # value of the kept ones that lie in no other, where each begins
    for repeat in sorted(choice.chosen, key=lambda repeat: repeat.length):
        length, first = repeat.length, repeat.starts[0]
        value = choice.value(repeat)
        if value - covered[first : first + length].sum() > threshold:
            candidates.append(repeat)
            for start in repeat.starts:
                covered[start : start + length] = 0
                covered[start] = value
    return candidates
