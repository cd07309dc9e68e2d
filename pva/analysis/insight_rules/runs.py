"""Rules about the model's run as a whole: how long it takes, and whether its pipeline is full.

Each takes a report and gives findings, none when there is nothing to say. Raises NotRecordedError.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pva.analysis.execution.main_runs import MainRun, main_run
from pva.analysis.insight_rules.finding import RECORDED_RUNS, Finding, part
from pva.units import count, cycles_in_words, duration, rate, share

if TYPE_CHECKING:
    from pva.report import Report

WORTH_A_LOOK = 0.05  # of the cycles of the run


def how_long_it_takes(report: Report) -> list[Finding]:
    """Report how long the model's run takes without set-up, and its items a second."""
    run = main_run(report)
    if run.runs <= 0 or run.cycles < 0:
        return []
    has_rate = run.items_per_second == run.items_per_second
    steady = run.steady_items_per_second
    fast = f": {rate(steady if steady == steady else run.items_per_second)}" if has_rate else ""
    runs = "The run takes" if run.runs == 1 else f"{count(run.runs)} runs take"
    took = duration(run.seconds) if run.seconds == run.seconds else f"{count(run.cycles)} cycles"
    advice = f"Set-up, {cycles_in_words(run.setup_cycles)}, is not counted."
    return [
        Finding(
            severity="note",
            what=f"{runs} {took}{fast}",
            where="; ".join(_parts(run)),
            amount=run.cycles,
            of=RECORDED_RUNS,
            whole=run.cycles,
            advice=advice if run.setup_cycles > 0 else "",
            show="main_run",
        )
    ]


def _parts(run: MainRun) -> list[str]:
    words = "1 item" if run.items == 1 else f"{count(run.items)} items"
    items = f" for {words}" if run.items > 0 else ", items not recorded"
    parts = [f"{cycles_in_words(run.cycles)}{items}"]
    if run.steady_cycles == run.steady_cycles:
        full = f" with all {run.stages} stages full" if run.stages > 1 else ""
        parts.append(f"{cycles_in_words(run.steady_cycles)} a batch{full}")
    if run.latency_cycles >= 0:
        parts.append(f"an item takes {cycles_in_words(run.latency_cycles)}")
    return parts


def pipeline_rarely_full(report: Report) -> list[Finding]:
    """Report that filling and draining the pipeline take a large part of a run."""
    run = main_run(report)
    full = run.batches * run.steady_cycles
    cycles = part(run.cycles, run.runs)
    never = run.batches <= run.stages
    lost = cycles - full if full == full else 0.0
    if run.stages < 2 or run.cycles < 0 or not (never or lost > WORTH_A_LOOK * cycles):
        return []
    sentence = f"The pipeline fills and drains for {share(part(lost, cycles))} of the run"
    return [
        Finding(
            severity="cost",
            what="The pipeline is hardly ever full" if never else sentence,
            where=f"{count(run.batches)} batches pass its {run.stages} stages, which all have one "
            f"for {count(max(run.batches - run.stages + 1, 0))} of them",
            amount=lost * run.runs,
            of=RECORDED_RUNS,
            whole=run.cycles,
            saving=lost * run.runs,
            advice="More batches a step (batchesPerStep, or simulate --repeat).",
            show="main_run",
        )
    ]
