"""Line graphs: values over time."""

from __future__ import annotations

from time import perf_counter_ns
from typing import SupportsFloat

from pvti.buffers import catalogue, next_number
from pvti.channel import recording
from pvti.spans import lost, raise_if_signalled, writable


class Series:
    """One line of a graph."""

    __slots__ = ("_number",)

    def __init__(self, graph: str, unit: str, name: str) -> None:
        self._number = next_number["series"]()
        row = (self._number, writable(graph), writable(unit), writable(name))
        catalogue["series"].append(row)

    def add(self, value: SupportsFloat) -> None:
        """Record a value at this moment; what is no number is recorded as not a number."""
        buffers = recording()
        if buffers is None:
            return
        try:
            track = buffers.track  # a trace that starts with this value starts before it
            row = (self._number, perf_counter_ns(), _number(value))
            track.rows.append(("series_points", row))
        except Exception as error:
            lost(error)


class Graph:
    """A line graph, with a name and the unit of its values.

    >>> loss = Graph("training", "nats").addSeries("loss")
    >>> loss.add(0.25)
    """

    __slots__ = ("name", "unit")

    def __init__(self, name: str, unit: str = "") -> None:
        self.name = name
        self.unit = unit

    def addSeries(self, name: str) -> Series:
        """Add a line."""
        return Series(self.name, self.unit, name)


def _number(value: SupportsFloat) -> float | None:
    try:
        return float(value)
    except Exception as error:  # whatever it gave: a fault of tracing is none of the program
        raise_if_signalled(error)
        return None
