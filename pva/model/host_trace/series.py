"""What a host trace holds beside events with a duration. Times are nanoseconds since it began."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pva.array_types import Integers
from pva.model.show import Shown


@dataclass(frozen=True, slots=True, repr=False)
class Instants(Shown):
    """Instant events, in order of time; one row each.

    `label` and `channel` are indexes into `Trace.labels` and `Trace.channels`, `thread` into
    `Trace.threads`; `metadata` is JSON or None.
    """

    _figures = ("instants=time_ns",)

    time_ns: Integers
    label: npt.NDArray[np.int32]
    channel: npt.NDArray[np.int32]
    thread: Integers
    metadata: Any  # texts that take rows as an array does; `there` are those that are not None

    def __len__(self) -> int:
        return len(self.time_ns)


@dataclass(frozen=True, slots=True, repr=False)
class Flows(Shown):
    """What led to what, in order of time; one row each. Only Chrome traces tell it.

    `label` is an index into `Trace.labels`, `thread` and `to_thread` into `Trace.threads`.
    """

    _figures = ("flows=time_ns",)

    label: npt.NDArray[np.int32]
    thread: Integers
    time_ns: Integers
    to_thread: Integers
    to_time_ns: Integers

    def __len__(self) -> int:
        return len(self.time_ns)


def no_flows() -> Flows:
    """Return the flows of a trace that tells none."""
    nothing = np.zeros(0, np.int64)
    return Flows(nothing.astype(np.int32), nothing, nothing, nothing, nothing)


@dataclass(frozen=True, slots=True, repr=False)
class Series(Shown):
    """One line of a line graph; a value that was not a number is NaN."""

    _figures = ("graph", "unit", "values=value")

    graph: str
    unit: str
    name: str
    time_ns: Integers
    value: npt.NDArray[np.float64]
    pid: int = 0
    end_ns: int = 0  # until when its process was traced
    process: int = 0  # its row in `Trace.processes`


@dataclass(frozen=True, slots=True, repr=False)
class Heatmap(Shown):
    """A histogram over time: `counts[i]` are the values in each bin that were added at time i."""

    _figures = ("unit", "edges", "times=time_ns")

    name: str
    unit: str
    edges: npt.NDArray[np.float64]
    time_ns: Integers
    counts: npt.NDArray[np.uint64]
    below: Integers
    above: Integers
    pid: int = 0
    end_ns: int = 0  # until when its process was traced
    process: int = 0  # its row in `Trace.processes`

    def bins(self) -> Iterator[tuple[str, Integers]]:
        """Assign each bin, and those below and above where they hold a value: name and counts."""
        edges = [f"{edge:g}" for edge in self.edges.tolist()]
        unit = f" {self.unit}" if self.unit else ""
        if self.below.any():
            yield f"below {edges[0]}{unit}", self.below
        for number, (low, high) in enumerate(zip(edges, edges[1:], strict=False)):
            yield f"{low} to {high}{unit}", self.counts[:, number].astype(np.int64)
        if self.above.any():
            yield f"above {edges[-1]}{unit}", self.above
