"""The figures of the machine that views of a report need."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pva.report import Report


@dataclass(frozen=True, slots=True)
class Target:
    """The machine of a report: counts, bytes, the clock in Hz.

    `machine` and `differences` from it are empty in reports that do not tell them. Where the target
    has replicas, one of them is shown; `num_ipus`, `num_tiles` and `total_memory` are of all.
    """

    type: str
    architecture: str
    machine: str
    differences: str
    num_ipus: int
    tiles_per_ipu: int
    num_tiles: int
    bytes_per_tile: int
    total_memory: int
    num_replicas: int
    clock_frequency: float


def target(report: Report) -> Target:
    """Return the machine of a report; raises NotRecordedError."""
    kind, *names = (field.name for field in fields(Target))
    data = report.dataset
    values = (data.column("target", name).tolist()[0] for name in names)
    return Target(str(data.texts("target", kind)[0]), *values)


def clock_frequency(report: Report) -> float:
    """Return the clock of the target in Hz; raises NotRecordedError."""
    return float(report.dataset.value("target", "clock_frequency"))


def tiles_per_ipu(report: Report) -> int:
    """Return the tiles of an IPU; raises NotRecordedError."""
    return int(report.dataset.value("target", "tiles_per_ipu"))


def bytes_per_tile(report: Report) -> int:
    """Return the memory of a tile in bytes; raises NotRecordedError."""
    return int(report.dataset.value("target", "bytes_per_tile"))


def replica_count(report: Report) -> int:
    """Return how many replicas the target has; raises NotRecordedError."""
    return int(report.dataset.value("target", "num_replicas"))
