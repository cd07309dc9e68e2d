"""The figures of a point of an exploration, and which points are the best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import numpy.typing as npt

from pva.analysis.execution.main_runs import main_run
from pva.analysis.execution.totals import execution_overview
from pva.analysis.memory.liveness import live_at_peak, liveness_overview
from pva.analysis.memory.totals import CODE_CATEGORIES, memory_overview
from pva.errors import PvaError
from pva.lazy import pandas as pd
from pva.schema.exploration import PointFigures

if TYPE_CHECKING:
    from pva.report import Report

# Columns of a point beside its levers: what they are, and whether more of it is better (1), less
# (-1), or neither (0).
FIGURES: dict[str, tuple[str, int]] = {
    "fits": ("whether every tile has the memory that it needs", 0),
    "fullest_tile": ("bytes on the fullest tile", -1),
    "tile": ("which tile that is", 0),
    "bytes_per_tile": ("memory of a tile, in bytes", 0),
    "over": ("bytes that the fullest tile lacks, 0 where it fits", -1),
    "tiles_over": ("tiles that lack memory", -1),
    "step": ("liveness step of the peak", 0),
    "step_name": ("program of that step", 0),
    "live": ("the largest that is live there, on the fullest tile", 0),
    "tile_always_live": ("of the fullest tile: always-live data, in bytes", -1),
    "tile_not_always_live": ("data that is live at its peak, and not always", -1),
    "tile_code": ("code", -1),
    "tile_exchange_buffers": ("buffers of exchange that are live at its peak", -1),
    "tile_gaps": ("gaps, and what no variable needs at its peak", -1),
    "always_live": ("bytes that are always live, on all tiles", -1),
    "peak": ("most bytes that are live at once, on all tiles", -1),
    "cycles_per_sample": ("cycles of the model's run for an item", -1),
    "samples_per_second": ("items a second; of a pipeline when it is full", 1),
    "cycles": ("cycles of the model's run", -1),
    "latency": ("seconds from the input of an item to its output", -1),
    "compute_share": ("share of the cycles in compute", 1),
    "sync_share": ("share of the cycles in syncs", -1),
    "exchange_share": ("share of the cycles in exchange between tiles and IPUs", -1),
    "host_share": ("share of the cycles in exchange with the host", -1),
    "seconds": ("seconds that the point took to compile and simulate", 0),
    "memory": ("bytes of memory that its process took", 0),
    "error": ("why there are no figures, or nothing", 0),
}
Row = TypeVar("Row", bound=Mapping[str, object])
LARGEST = 3  # variables named
CODE = (*(name for names in CODE_CATEGORIES.values() for name in names), "sharedCodeStorage")
BUFFERS = ("message", "globalMessage", "hostMessage", "rearrangement")


def figures(report: Report) -> PointFigures:
    """Return the figures of the report of a point; what is not recorded is left out."""
    values: PointFigures = {}
    for part in (_memory, _liveness, _run, _shares):
        try:
            values |= part(report)
        except PvaError as error:
            values.setdefault("error", f"{error.found}" if part is _memory else "")
    return values


def _memory(report: Report) -> PointFigures:
    memory = memory_overview(report)
    return {
        "fits": not memory.tiles_out_of_memory,
        "fullest_tile": memory.fullest_bytes,
        "tile": memory.fullest_tile,
        "bytes_per_tile": memory.bytes_per_tile,
        "over": max(memory.fullest_bytes - memory.bytes_per_tile, 0),
        "tiles_over": memory.tiles_out_of_memory,
    }


def _liveness(report: Report) -> PointFigures:
    overview = liveness_overview(report)
    memory = memory_overview(report)
    live = live_at_peak(report, tile=memory.fullest_tile).frame()
    largest = live.head(LARGEST).itertuples(index=False)
    names = [f"{row.name} ({row.bytes:,} bytes)" for row in largest]
    return {
        **_filling(live, memory.fullest_bytes),
        "step": overview.peak_step,
        "step_name": overview.peak_name or overview.peak_type,
        "live": "; ".join(names),
        "always_live": overview.always_live,
        "peak": overview.max_live,
    }


def _filling(live: pd.DataFrame, total: int) -> PointFigures:
    """Share out the bytes of a tile, of which some are live at its peak: parts that add up."""
    category, always = live["category"], live["always_live"].to_numpy(dtype=bool)
    kinds = (
        category.isin(CODE).to_numpy(),
        category.isin(BUFFERS).to_numpy(),
        always,
        ~always,
    )
    first = np.select(kinds, range(len(kinds)))
    sums = np.bincount(first, live["bytes"], len(kinds)).astype(int).tolist()
    code, exchange_buffers, always_live, not_always_live = sums
    return {
        "tile_code": code,
        "tile_exchange_buffers": exchange_buffers,
        "tile_always_live": always_live,
        "tile_not_always_live": not_always_live,
        "tile_gaps": total - sum(sums),
    }


def _run(report: Report) -> PointFigures:
    run = main_run(report)
    steady = run.steady_items_per_second
    rate = steady if steady == steady and run.stages > 1 else run.items_per_second
    clock = float(report.dataset.value("target", "clock_frequency"))
    return {
        "cycles": run.cycles,
        "cycles_per_sample": clock / rate if rate > 0 else None,
        "samples_per_second": rate if rate > 0 else None,
        "latency": run.latency_seconds if run.latency_seconds > 0 else None,
    }


def _shares(report: Report) -> PointFigures:
    shares = execution_overview(report).time_shares
    return {
        "compute_share": shares.get("compute", 0.0),
        "sync_share": shares.get("sync", 0.0),
        "exchange_share": shares.get("exchange", 0.0),
        "host_share": shares.get("host exchange", 0.0),
    }


def pareto(frame: pd.DataFrame, objectives: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Return which rows no other is better than: those that fit and have all objectives.

    A row is out when another is at least as good in each objective, and better in one.
    """
    usable = np.array(frame["fits"].fillna(False), dtype=bool)
    signs = [1 if FIGURES[name][1] > 0 else -1 for name in objectives]
    values = frame[list(objectives)].to_numpy(dtype=float) * signs
    usable = usable & ~np.isnan(values).any(axis=1)
    best = usable.copy()
    for row in np.flatnonzero(usable):
        candidates = values[usable]
        beaten = (candidates >= values[row]).all(axis=1) & (candidates > values[row]).any(axis=1)
        best[row] = not beaten.any()
    return best


def ranked(rows: Sequence[Row], objective: str) -> list[Row]:
    """Sort rows: those that fit, the best first, then misses, the nearest first, then errors."""
    sign = 1 if FIGURES[objective][1] > 0 else -1

    def order(row: Mapping[str, object]) -> tuple[int, float]:
        if row.get("error"):
            return (2, 0)
        if not row.get("fits"):
            over = row.get("over")
            return (1, float(over) if isinstance(over, int | float) else 0)
        value = row.get(objective)
        return (0, -sign * float(value) if isinstance(value, int | float) else np.inf)

    return sorted(rows, key=order)
