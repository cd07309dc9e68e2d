"""Heatmaps: a histogram over fixed bins, each time values are added."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from time import perf_counter_ns
from typing import Any

from pvti.buffers import catalogue, next_number, writable
from pvti.channel import recording
from pvti.schema import little_endian


class Heatmap:
    """A histogram over time; `edges` ascend, and bin i takes edges[i] <= value < edges[i + 1].

    The last bin takes its upper edge too. Raises ValueError for edges that do not ascend.
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

    def add(self, values: Iterable[Any]) -> None:
        """Record how many of `values` (any sequence or buffer, of any shape) fall into each bin."""
        buffers = recording()
        if buffers is None:
            return
        now = perf_counter_ns()
        below, counts, above = count_bins(self._edges, _flat(values))
        row = (self._number, now, below, above, little_endian(array("Q", counts)))
        buffers.state.rows.append(("heatmap_columns", row))


class HeatmapDouble(Heatmap):
    """A heatmap of double precision values."""


class HeatmapFloat(Heatmap):
    """A heatmap of single precision values."""


class HeatmapInt(Heatmap):
    """A heatmap of whole numbers."""


def count_bins(edges: list[float], values: Iterable[float]) -> tuple[int, list[int], int]:
    """Count values below (or not a number), in each bin, and above."""
    slots = [0] * (len(edges) + 1)
    last, final = edges[-1], len(edges) - 1
    for value in values:
        if value == last:
            slots[final] += 1
        else:
            slots[bisect_right(edges, value) if value == value else 0] += 1
    return slots[0], slots[1:-1], slots[-1]


def _flat(values: Any) -> Iterable[float]:
    """Give the values of lists, buffers, and arrays of any shape in a row."""
    ravel = getattr(values, "ravel", None)
    flat = values if ravel is None else ravel()
    to_list = getattr(flat, "tolist", None)
    return flat if to_list is None else to_list()  # type: ignore[no-any-return]  # duck-typed
