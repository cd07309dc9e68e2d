"""The figures of the machine that views of a report need."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pva.report import Report


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


def architecture(report: Report) -> str:
    """Return the name of the target's generation, such as ipu2; raises NotRecordedError."""
    return str(report.dataset.value("target", "architecture"))
