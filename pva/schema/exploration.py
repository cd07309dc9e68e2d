"""The files of an exploration's directory, which the simulator writes and `pva.many` reads."""

from __future__ import annotations

from typing import TypedDict

ABOUT = "exploration.json"
TABLE = "points.parquet"  # a row a point
POINTS, REPORTS = "points", "reports"  # folders: a file a point, a report a point


class PointFigures(TypedDict, total=False):
    """The figures of a point, as `pva.many.points.FIGURES` explains them; those not known lack."""

    fits: bool
    fullest_tile: int
    tile: int
    bytes_per_tile: int
    over: int
    tiles_over: int
    step: int
    step_name: str
    live: str
    tile_always_live: int
    tile_not_always_live: int
    tile_code: int
    tile_exchange_buffers: int
    tile_gaps: int
    always_live: int
    peak: int
    cycles_per_sample: float | None
    samples_per_second: float | None
    cycles: int
    latency: float | None
    compute_share: float
    sync_share: float
    exchange_share: float
    host_share: float
    seconds: float
    memory: int
    error: str
    lost: bool


class PointRow(PointFigures):
    """The row of a point: its figures, its levers, how it is run, and where its report lies."""

    key: str
    levers: dict[str, str]
    arguments: list[str]
    command: str
    report: str
