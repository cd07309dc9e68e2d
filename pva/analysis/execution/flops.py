"""How much of the arithmetic that the tiles could do is done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pva.analysis.attribution import elapsed, executions_of_rows, phases
from pva.analysis.columns import analysis
from pva.analysis.facts import Facts
from pva.analysis.selection import tile_count
from pva.analysis.table import Columns, rows_of
from pva.array_types import Integers
from pva.errors import NotRecordedError

if TYPE_CHECKING:
    from pva.report import Report


ORDER = 350  # of its analyses in the catalogue


@dataclass(frozen=True, slots=True)
class Peak:
    """Floating-point operations that a tile can do in a cycle; a multiply-add is two."""

    float: int
    half: int


# Of the matrix units. ipu1 (8 float or 32 half multiply-adds a cycle) makes the published 31.1 and
# 124.5 TFLOPS of 1,216 tiles at 1.6 GHz (Jia et al., "Dissecting the Graphcore IPU Architecture",
# 2019). ipu2 has 16 units a tile in place of 8 (PopLibs, lib/poplin/PerformanceEstimation.hpp), and
# makes 62.7 and 250.6 TFLOPS of 1,472 tiles at 1.33 GHz; sums of halves that are floats have 8 of
# the units, and half of that (PopLibs, lib/poplin/codelets). `tiny` is an ipu2 of few tiles.
PEAKS = {
    "ipu1": Peak(float=16, half=64),
    "ipu2": Peak(float=32, half=128),
    "ipu21": Peak(float=32, half=128),
    "tiny": Peak(float=32, half=128),
}


@dataclass(frozen=True, slots=True)
class FlopUtilisation(Facts):
    """The arithmetic of the recorded runs, of one replica; shares are fractions of 1.

    `flops` are floating-point operations executed, `cycles` those of all steps, of which
    `compute_cycles` were compute. The peaks are operations a second of all tiles in matrix units,
    for float and for half: 0 for an architecture that is not known, and its shares not a number;
    `compute_*` shares are of what they could do in `compute_cycles`.
    `unknown_compute_sets` were executed without telling their operations, and count as none.
    """

    flops: int
    cycles: int
    compute_cycles: int
    flops_per_second: float
    float_peak: float
    half_peak: float
    float_peak_share: float
    half_peak_share: float
    compute_float_peak_share: float
    compute_half_peak_share: float
    unknown_compute_sets: int


@analysis(
    "flops:flop cycles:cycles compute_cycles:cycles flops_per_second:flop/s float_peak:flop/s "
    "half_peak:flop/s float_peak_share:fraction half_peak_share:fraction "
    "compute_float_peak_share:fraction compute_half_peak_share:fraction unknown_compute_sets"
)
def flop_utilisation(report: Report) -> FlopUtilisation:
    """Return what share of the tiles' peak arithmetic the recorded runs reached.

    The share is operations / (cycles * tiles * peak). Peaks of a tile in a cycle, for float and for
    half: 16 and 64 on ipu1 (31.1 and 124.5 TFLOPS; Jia et al., 2019), 32 and 128 on ipu2 (PopLibs,
    lib/poplin/PerformanceEstimation.hpp; products of halves with float partials reach half of it).
    Raises NotRecordedError when no compute set tells its operations, or there are no steps.
    """
    flops = _flops(report)
    runs = executions_of_rows(report, "OnTileExecute", len(flops))
    executed = int((runs * np.maximum(flops, 0)).sum())
    spent = elapsed(report)
    cycles, compute = int(spent.sum()), int(spent[phases(report) == 0].sum())
    clock = float(report.dataset.value("target", "clock_frequency"))
    peak, tiles = peak_of_tile(report), tile_count(report)
    return FlopUtilisation(
        flops=executed,
        cycles=cycles,
        compute_cycles=compute,
        flops_per_second=executed * clock / max(cycles, 1),
        float_peak=peak.float * tiles * clock,
        half_peak=peak.half * tiles * clock,
        float_peak_share=_share(executed, peak.float * tiles * cycles),
        half_peak_share=_share(executed, peak.half * tiles * cycles),
        compute_float_peak_share=_share(executed, peak.float * tiles * compute),
        compute_half_peak_share=_share(executed, peak.half * tiles * compute),
        unknown_compute_sets=int(((flops < 0) & (runs > 0)).sum()),
    )


@analysis(
    "compute_set name executions flops:flop cycles:cycles flops_per_cycle:flop/cycle "
    "float_peak_share:fraction half_peak_share:fraction"
)
def flops_by_compute_set(report: Report) -> Columns:
    """Return how near each compute set comes to the peak, the most operations first.

    `flops` and `cycles` (of the slowest tile) of one execution, and `executions` in the recorded
    runs. Shares are of what all tiles could do in these cycles with matrix units, for float and
    for half: what moves data or has one vertex is far below. Compute sets that do not tell their
    operations are left out. Raises NotRecordedError when none does, or there are no steps.
    """
    data = report.dataset
    flops = _flops(report)
    cycles = data.row_maxima("compute_set_cycles_by_tile")
    runs = executions_of_rows(report, "OnTileExecute", len(flops))
    peak, tiles = peak_of_tile(report), tile_count(report)
    columns = {
        "compute_set": np.arange(len(flops)),
        "name": data.column("compute_sets", "name"),
        "executions": runs,
        "flops": flops,
        "cycles": cycles,
        "flops_per_cycle": flops / np.maximum(cycles, 1),
        "float_peak_share": _shares(flops, peak.float * tiles * cycles),
        "half_peak_share": _shares(flops, peak.half * tiles * cycles),
    }
    used = (runs > 0) & (flops >= 0)
    order = np.argsort(-(runs * flops)[used], kind="stable")
    return rows_of(columns, np.flatnonzero(used)[order])


def _flops(report: Report) -> Integers:
    """Return the operations of each compute set, -1 where they are not told."""
    data = report.dataset
    flops: Integers = data.column("compute_sets", "flops")
    if len(flops) and int(flops.max()) < 0:
        why = "no compute set tells its operations; the option is profiler.includeFlopEstimates"
        raise NotRecordedError(data.name, "compute_sets.flops not recorded", why)
    return flops


def peak_of_tile(report: Report) -> Peak:
    """Return what a tile can do in a cycle; nothing for an architecture that is not known."""
    return PEAKS.get(str(report.dataset.value("target", "architecture")), Peak(0, 0))


def _share(part: float, total: float) -> float:
    return part / total if total else float("nan")


def _shares(parts: Integers, wholes: Integers) -> npt.NDArray[np.float64]:
    return np.where(wholes > 0, parts / np.maximum(wholes, 1), np.nan)
