"""The run of the model: how long it takes, for how many items, and what is set-up beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pva.analysis.columns import analysis
from pva.analysis.execution.batch_times import NONE, BatchTimes, batch_times
from pva.analysis.execution.steady import steady_state
from pva.analysis.facts import Facts
from pva.array_types import Integers
from pva.errors import NotRecordedError

if TYPE_CHECKING:
    from pva.report import Report

ORDER = 140  # of its analyses in the catalogue
UNKNOWN, NO_NUMBER = -1, float("nan")
NO_TIMES = BatchTimes(NONE, NONE, 1)


@dataclass(frozen=True, slots=True)
class MainRun(Facts):
    """The runs of the model, those that set it up aside; -1 or not a number for what is not known.

    `batches` and `stages` are of one run, the others of all `runs` together.
    """

    runs: int
    cycles: int
    seconds: float
    items: int
    items_per_second: float
    batches: int
    stages: int
    steady_cycles: float
    steady_seconds: float
    steady_items_per_second: float
    latency_cycles: int
    latency_seconds: float
    setup_runs: int
    setup_cycles: int
    setup_seconds: float


@analysis(
    "runs cycles:cycles seconds:s items items_per_second:items/s batches stages "
    "steady_cycles:cycles steady_seconds:s steady_items_per_second:items/s "
    "latency_cycles:cycles latency_seconds:s setup_runs setup_cycles:cycles setup_seconds:s"
)
def main_run(report: Report) -> MainRun:
    """Return how long the model's own runs took, for how many items, and what its set-up took.

    `items`, such as images, are those that the runs took in, on all replicas; `items_per_second` is
    by the clock of the tiles, with a pipeline's filling and draining in it. `steady_cycles` pass
    from the last output of a batch to that of the next while each of the `stages` of the pipeline
    has a batch: `steady_items_per_second` goes by them. `latency_cycles` is the longest that an
    item took from the begin of its batch's first input to the end of its last output. Both are of
    the last run that was recorded step by step. Set-up are the runs with profiling disabled, such
    as those that move weights, and those of programs that ran once while another one ran more
    often. -1 or not a number stands for what is not known. Raises
    NotRecordedError.
    """
    report = steady_state(report)
    data = report.dataset
    runs = data.length("runs") if data.has("runs") else UNKNOWN
    cycles = _sum(data.column("runs", "cycles")) if runs >= 0 else _cycles_alone(report)
    items = data.column("runs", "items") if runs > 0 else NONE
    setup = data.column("other_runs", "cycles") if data.has("other_runs") else NONE
    seconds = _seconds(report, cycles)
    batches, stages, in_batch, steady, latency = _in_steps(report)
    steady_seconds = _seconds(report, steady)
    return MainRun(
        runs=runs,
        cycles=cycles,
        seconds=seconds,
        items=_sum(items) or UNKNOWN,
        items_per_second=_rate(_sum(items), seconds),
        batches=batches,
        stages=stages,
        steady_cycles=steady,
        steady_seconds=steady_seconds,
        steady_items_per_second=_rate(in_batch, steady_seconds),
        latency_cycles=latency,
        latency_seconds=_seconds(report, latency),
        setup_runs=len(setup),
        setup_cycles=_sum(setup),
        setup_seconds=_seconds(report, _sum(setup)),
    )


def _cycles_alone(report: Report) -> int:
    """Return the cycles of an execution that does not tell its runs; raises NotRecordedError."""
    return int(report.dataset.value("execution", "cycles"))


def _in_steps(report: Report) -> tuple[int, int, float, float, int]:
    """Return batches, stages and the items of a batch of a run; cycles of a batch, and latency.

    That is the last run recorded step by step; without one they are those of the last run, and the
    cycles are not known.
    """
    data = report.dataset
    nothing = UNKNOWN, UNKNOWN, NO_NUMBER, NO_NUMBER, UNKNOWN
    if not data.length("runs"):
        return nothing
    table = {name: data.column("runs", name) for name in ("items", "batches", "stages")}
    recorded = np.flatnonzero(data.column("runs", "end_step") > data.column("runs", "first_step"))
    run = int(recorded[-1]) if len(recorded) else -1
    items, batches, stages = (int(table[name][run]) for name in table)
    if batches < 1:
        return nothing
    in_batch = items / batches if items > 0 else NO_NUMBER
    try:
        times = batch_times(report, run, batches) if run >= 0 else NO_TIMES
    except NotRecordedError:
        times = NO_TIMES
    return batches, stages, in_batch, times.steady(stages), times.latency


def _sum(values: Integers) -> int:
    """Add up, -1 where one of them is not known."""
    return UNKNOWN if (values < 0).any() else int(values.sum())


def _seconds(report: Report, cycles: float) -> float:
    """Return the time by the clock of the tiles; not a number where either is not known."""
    data = report.dataset
    clock = float(data.value("target", "clock_frequency")) if data.has("target") else 0.0
    return cycles / clock if clock > 0 and cycles >= 0 else NO_NUMBER


def _rate(items: float, seconds: float) -> float:
    return items / seconds if items > 0 and seconds > 0 else NO_NUMBER
