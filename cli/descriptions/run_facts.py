"""What `info` and `simulate` say of the model's run: its time, items a second, latency, set-up."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING

from cli.shared.output import counted
from pva import units
from pva.errors import NotRecordedError

if TYPE_CHECKING:
    from pva.analysis.execution.main_runs import MainRun
    from pva.report import Report

NO_ITEMS = "– items/s: a PopART session or Engine.run(work=...) tells the items of a run"


def run_object(report: Report) -> dict[str, object] | None:
    """Return the figures of the run for --json, None where no execution was recorded."""
    from pva.analysis.execution.main_runs import main_run

    try:
        return dataclasses.asdict(main_run(report))
    except NotRecordedError:
        return None


def run_facts(report: Report) -> Iterator[tuple[str, str]]:
    """Write the figures of the run in a few lines; none where no execution was recorded."""
    from pva.analysis.execution.main_runs import main_run

    try:
        model_run = main_run(report)
    except NotRecordedError:
        return
    if model_run.runs:
        yield "run", _took(model_run)
        yield "items", _items(model_run)
    yield from _flow(model_run)
    if model_run.setup_runs:
        yield "set-up", _setup(report, model_run)


def _took(run: MainRun) -> str:
    run_count = f"{counted(run.runs, 'run')}, " if run.runs > 1 else ""
    if run.cycles < 0:
        return f"{run_count}cycles not known"
    return f"{run_count}{run.cycles:,} cycles{_time(run.seconds)}"


def _items(run: MainRun) -> str:
    if run.items < 0:
        return NO_ITEMS
    fast = units.rate(run.items_per_second) if run.items_per_second > 0 else "– items/s"
    return f"{fast}, {counted(run.items, 'item')} in {counted(run.runs, 'run')}"


def _time(seconds: float) -> str:
    return f" ({units.duration(seconds)})" if seconds == seconds else ""


def _flow(run: MainRun) -> Iterator[tuple[str, str]]:
    """Write what a batch takes while others are on their way, and what an item takes."""
    if run.steady_cycles == run.steady_cycles:
        batch = f"{run.steady_cycles:,.0f} cycles{_time(run.steady_seconds)} a batch"
        full = f", all {run.stages} stages full" if run.stages > 1 else ""
        yield "steady", f"{units.rate(run.steady_items_per_second)}, {batch}{full}"
    elif 1 <= run.batches <= run.stages > 1:
        batches = "1 batch is" if run.batches == 1 else f"{run.batches:,} batches are"
        needed = f"--repeat {run.stages + 1} or more is needed"
        yield "steady", f"– items/s: {batches} too few for {run.stages} stages; {needed}"
    if run.latency_cycles >= 0:
        cycles = f"{run.latency_cycles:,} cycles{_time(run.latency_seconds)}"
        yield "latency", f"{cycles} from the input of an item to its output"


def _setup(report: Report, run: MainRun) -> str:
    from pva.analysis.execution.steady import steady_state
    from pva.analysis.execution.totals import other_runs_by_name

    by_name = other_runs_by_name(steady_state(report))
    parts = [
        f"{name}{f' {runs:,} times' if runs > 1 else ''}"
        f"{f' ({cycles:,} cycles)' if cycles >= 0 else ''}"
        for name, (runs, cycles) in by_name.items()
    ]
    took = (
        f"{units.duration(run.setup_seconds)}, " if run.setup_seconds == run.setup_seconds else ""
    )
    return f"{took}not counted in the run: {', '.join(parts)}"
