"""What a host trace holds beside events with a duration. Times are nanoseconds since it began."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Instants:
    """Instant events, in order of time; one row each.

    `label` and `channel` are indexes into `Trace.labels` and `Trace.channels`, `thread` into
    `Trace.threads`; `metadata` is JSON or None.
    """

    time_ns: Integers
    label: npt.NDArray[np.int32]
    channel: npt.NDArray[np.int32]
    thread: Integers
    metadata: npt.NDArray[Any]

    def __len__(self) -> int:
        return len(self.time_ns)


@dataclass(frozen=True, slots=True)
class Series:
    """One line of a line graph; a value that was not a number is NaN."""

    graph: str
    unit: str
    name: str
    time_ns: Integers
    value: npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Heatmap:
    """A histogram over time: `counts[i]` are the values in each bin that were added at time i."""

    name: str
    unit: str
    edges: npt.NDArray[np.float64]
    time_ns: Integers
    counts: npt.NDArray[np.uint64]
    below: Integers
    above: Integers
