"""Heatmaps: a histogram over fixed bins, each time values are added."""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from time import perf_counter_ns
from typing import Any

from pvti.buffers import catalogue, next_number
from pvti.channel import recording
from pvti.schema import little_endian
from pvti.spans import lost, raise_if_signalled, writable


class Heatmap:
    """A histogram over time; `edges` ascend, and bin i takes edges[i] <= value < edges[i + 1].

    The last bin takes its upper edge too. Raises ValueError for edges that do not ascend.

    >>> weights = Heatmap("weights", [-1, 0, 1])
    >>> weights.add([-0.5, 0.25, 1.0])
    """

    __slots__ = ("name", "unit", "_edges", "_number")

    def __init__(self, name: str, edges: Sequence[float], unit: str = "") -> None:
        self.name = name
        self.unit = unit
        self._edges = [float(edge) for edge in edges]
        ascending = all(low < high for low, high in zip(self._edges, self._edges[1:], strict=False))
        if len(self._edges) < 2 or not ascending:
            raise ValueError(f"heatmap {name!r}: edges {self._edges[:5]}; two or more, ascending")
        self._number = next_number["heatmaps"]()
        data = little_endian(array("d", self._edges))
        catalogue["heatmaps"].append((self._number, writable(name), writable(unit), data))

    def add(self, values: object) -> None:
        """Record how many of `values` fall into each bin.

        Any sequence or buffer, of any shape, or one number. What is no number, or is masked,
        counts as below.
        """
        buffers = recording()
        if buffers is None:
            return
        try:
            track = buffers.track  # a trace that starts with these values starts before them
            now = perf_counter_ns()
            counted = _count_sorted(self._edges, values)
            below, counts, above = counted or count_bins(self._edges, _flat(values))
            row = (self._number, now, below, above, little_endian(array("Q", counts)))
            track.rows.append(("heatmap_columns", row))
        except Exception as error:
            lost(error)


class HeatmapDouble(Heatmap):
    """A heatmap of double precision values."""


class HeatmapFloat(Heatmap):
    """A heatmap of single precision values."""


class HeatmapInt(Heatmap):
    """A heatmap of whole numbers."""


def count_bins(edges: list[float], values: Iterable[Any]) -> tuple[int, list[int], int]:
    """Count values below (or no number), in each bin, and above."""
    slots = [0] * (len(edges) + 1)
    last, final = edges[-1], len(edges) - 1
    for value in values:
        try:
            place = final if value == last else bisect_right(edges, value) if value == value else 0
        except Exception as error:  # what cannot be compared breaks nothing
            raise_if_signalled(error)
            place = 0
        slots[place] += 1
    return slots[0], slots[1:-1], slots[-1]


def _count_sorted(edges: list[float], values: Any) -> tuple[int, list[int], int] | None:
    """Count the values of a NumPy array by its own methods; None for anything else."""
    # Kinds of arrays of its own or of other libraries have these methods and mean others by them.
    kind = getattr(sys.modules.get("numpy"), "ndarray", None)
    if type(values) is not kind or values.dtype.kind not in "iuf":
        return None
    ordered = values.ravel().copy()
    ordered.sort()  # what is not a number comes last
    places = ordered.searchsorted(edges).tolist()
    top, numbers = (int(ordered.searchsorted(end, "right")) for end in (edges[-1], float("inf")))
    counts = [high - low for low, high in zip(places, [*places[1:-1], top], strict=False)]
    return places[0] + len(ordered) - numbers, counts, numbers - top


def _flat(values: Any) -> Iterable[Any]:
    """Return the values of sequences, buffers and arrays of any shape in a row."""
    to_list = getattr(values, "tolist", None)
    try:
        listed = memoryview(values).tolist() if to_list is None else to_list()
    except (TypeError, NotImplementedError):  # no buffer, or of a format that Python cannot read
        listed = values
    try:
        return _numbers(iter(listed))
    except TypeError:
        return [listed]


def _numbers(values: Iterable[object]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, list | tuple):
            yield from _numbers(value)
        else:
            yield value
