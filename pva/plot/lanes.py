"""A timeline: lanes of rows of events, with the labels and colours that they index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pva.analysis.timeline.level_of_detail import Tracks
from pva.array_types import Integers


@dataclass(frozen=True, slots=True)
class Lane:
    """Rows `first` to `stop` (exclusive) of the tracks, below each other.

    `path` are the headings above it, the outermost first; `names` are those of its rows. `kinds`
    say what each row is: `run`, `layer`, `step`, `block`, `io`, `event`, `flag` or `derived`;
    `overview` is the row that stands for the lane where there is room for one. `clock` is its own,
    where lanes of one timeline have several.
    """

    name: str
    path: tuple[str, ...]
    first: int
    stop: int
    names: tuple[str, ...]
    kinds: tuple[str, ...]
    overview: int
    clock: float = 0.0


@dataclass(frozen=True, slots=True)
class RowItems:
    """The numbers by which addresses name the events of a row.

    These `numbers`, ascending; or with `left_out` all whole numbers but some, and of each of these
    how many are kept before it. None: no event has one.
    """

    numbers: Integers | None = None
    left_out: bool = False

    @classmethod
    def of(cls, numbers: Integers) -> RowItems:
        """Convert ascending numbers to as few bytes as they need."""
        size = int(numbers[-1]) + 1 if len(numbers) else 0
        if 2 * len(numbers) < size:
            return cls(numbers.astype(np.int32))
        missing = np.ones(size, dtype=np.bool_)
        missing[numbers] = False
        left_out = np.flatnonzero(missing)
        return cls((left_out - np.arange(len(left_out))).astype(np.int32), True)

    def at(self, places: Integers) -> Integers:
        """Return the numbers of the events at some places of the row."""
        if self.numbers is None:
            return np.full(len(places), -1)
        if not self.left_out:
            return self.numbers[places]
        # Of one type: NumPy would widen all of the numbers.
        alike = places.astype(self.numbers.dtype)
        return places + np.searchsorted(self.numbers, alike, side="right")


@dataclass(frozen=True, slots=True)
class Timeline:
    """All lanes in one unit of `clock` a second, with the texts and colours that they index.

    Lanes of several clocks tell their own, and `clock` is 0.

    colours   (token, words) of each kind of the tracks
    items     [row] how addresses name its events; None when they are numbered through
    wall_ns   the wall clock at 0, since 1970; 0 where it is not known
    stretched whether steps of the device are longer here than they were
    found     how many steps and blocks a filter lets through, and of how many; None without one
    bounds    the extent of what it was made of, where a filter left out events
    """

    unit: str
    clock: float
    lanes: tuple[Lane, ...]
    tracks: Tracks
    labels: Sequence[str]
    colours: list[tuple[str, str]]
    items: tuple[RowItems, ...] | None = None
    wall_ns: int = 0
    stretched: bool = False
    found: tuple[int, int] | None = None
    bounds: tuple[int, int] | None = None

    @property
    def extent(self) -> tuple[int, int]:
        """Return where the first event begins and the last one ends; (0, 1) without any."""
        return self.bounds or self.tracks.extent

    @property
    def lane_of_row(self) -> Integers:
        """Return the number of each row's lane; lanes stand in any order."""
        numbers = np.zeros(self.tracks.rows, dtype=np.int64)
        for number, lane in enumerate(self.lanes):
            numbers[lane.first : lane.stop] = number
        return numbers

    def of_kinds(self, kinds: Sequence[str]) -> npt.NDArray[np.bool_]:
        """Return which rows are of some kinds."""
        mask = np.zeros(self.tracks.rows, dtype=np.bool_)
        for lane in self.lanes:
            mask[lane.first : lane.stop] = [kind in kinds for kind in lane.kinds]
        return mask

    @property
    def threads(self) -> list[tuple[int, int]]:
        """Return the rows of each thread: no flags, and nothing derived from other rows."""
        rows = ((lane.first + lane.kinds.count("flag"), lane) for lane in self.lanes)
        return [(first, lane.stop) for first, lane in rows if "derived" not in lane.kinds]

    def is_overview(self, rows: Integers) -> npt.NDArray[np.bool_]:
        """Return which rows stand for their lane."""
        return np.isin(rows, [lane.overview for lane in self.lanes])

    def item(self, events: Integers) -> Integers:
        """Return the numbers by which addresses name events, -1 for those that have none."""
        if self.items is None:
            return events
        rows = np.searchsorted(self.tracks.offset, events, side="right") - 1
        numbers = np.full(len(events), -1)
        for row in np.unique(rows).tolist():
            of_row = rows == row
            numbers[of_row] = self.item_in(row, events[of_row])
        return numbers

    def item_in(self, row: int, events: Integers) -> Integers:
        """Return the numbers by which addresses name events of a row, as `item` does."""
        if self.items is None:
            return events
        return self.items[row].at(events - self.tracks.offset[row])

    def layout(self) -> dict[str, Any]:
        """Return what a view has to know before it asks for windows, as plain data."""
        return {
            "unit": self.unit,
            "clock": self.clock,
            "extent": self.extent,
            "events": len(self.tracks.begin),
            "wall_ms": self.wall_ns / 1e6,
            "stretched": self.stretched,
            "found": self.found,
            "lanes": [asdict(lane) for lane in self.lanes],
            "colours": [{"token": token, "words": words} for token, words in self.colours],
        }

    def spent(
        self, row: int, begin: int, end: int, labels: npt.NDArray[np.bool_] | None = None
    ) -> Integers:
        """Add up the time of each colour of a row inside a window, of some labels or of all."""
        left, right, label = self.tracks.spans(row, begin, end)
        kind, time = self.tracks.kind[label], right - left
        time = time if labels is None else time * labels[label]
        sums = np.bincount(kind, weights=time, minlength=len(self.colours))
        return sums.astype(np.int64)

    def spent_in_all(self, row: int, begin: int, end: int) -> int:
        """Add up the time of all events of a row inside a window."""
        return int(self.spent(row, begin, end).sum())


class Labels:
    """Texts of one timeline, each once a colour."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.colours: list[int] = []
        self._places: dict[tuple[str, int], int] = {}

    def number(self, text: str, colour: int) -> int:
        """Return the number of a text, a new one when it was not seen before."""
        key = (text, colour)
        if key not in self._places:
            self._places[key] = len(self.texts)
            self.texts.append(text)
            self.colours.append(colour)
        return self._places[key]
