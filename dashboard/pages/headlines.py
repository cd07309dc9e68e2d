"""The headline sentences: results of analyses in words."""

from __future__ import annotations

from dashboard.elements.components import Tone
from dashboard.store import Report
from pva import units
from pva.analysis.execution.main_runs import MainRun, main_run
from pva.analysis.execution.totals import ExecutionOverview, other_runs
from pva.analysis.memory.liveness import LivenessOverview
from pva.analysis.memory.totals import COUNT_CODE, MemoryOverview, category_label
from pva.errors import NotRecordedError


def counted(number: int, thing: str) -> str:
    """Write a number of things."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def fit_sentence(memory: MemoryOverview) -> str:
    """Return whether the program fits, and how full the fullest tile is."""
    tile = f"the fullest tile (tile {memory.fullest_tile:,})"
    used, limit = units.size(memory.fullest_bytes), units.size(memory.bytes_per_tile)
    without = "" if memory.code_counted else ", without code"
    if not memory.tiles_out_of_memory:
        share = units.share(memory.fullest_share)
        return f"Fits{without}: {tile} uses {used} of {limit} ({share})."
    over = units.size(memory.fullest_bytes - memory.bytes_per_tile)
    tiles = counted(memory.tiles_out_of_memory, "tile")
    needs = f"{tile} needs {used} of {limit}, {over} too much"
    return f"Does not fit{without}: {tiles} out of memory; {needs}."


def code_sentence(*, counted: bool) -> str:
    """Return how code is counted where it was not; empty where it was."""
    return "" if counted else f"Code was not counted: to count it, {COUNT_CODE}."


def most_of_memory(memory: MemoryOverview) -> str:
    """Return what takes the most, and how much there is in all."""
    share = units.share(memory.largest_category_bytes / max(memory.total, 1))
    label = category_label(memory.largest_category)
    named = f"{label[:1].lower()}{label[1:]}"
    return (
        f"All tiles hold {units.size(memory.total)} ({units.size(memory.total_including_gaps)} "
        f"with gaps), most of it {named} ({share})."
    )


def fit_tone(memory: MemoryOverview) -> Tone:
    """Return the tone of `fit_sentence`."""
    return "bad" if memory.tiles_out_of_memory else "good" if memory.code_counted else "plain"


def liveness_sentence(live: LivenessOverview) -> str:
    """Return how much is live at most, where, and what the largest variable is there."""
    if live.peak_step < 0:
        return f"{units.size(live.always_live)} are always live; the report has no program steps."
    name = live.peak_name or live.peak_type
    sentence = (
        f"At most {units.size(live.max_live)} are live at once, at step {live.peak_step:,} "
        f"({name}); {units.size(live.always_live)} of it always."
    )
    if not live.largest_variable:
        return sentence
    share = units.share(live.largest_variable_bytes / max(live.peak_bytes, 1))
    return f"{sentence} There, {live.largest_variable} takes {share} of what is not always live."


def execution_sentence(spent: ExecutionOverview) -> str:
    """Return how long the recorded runs took, with what, and how much of the tiles it kept busy."""
    if not spent.runs:
        return "No run has ended."
    runs = counted(spent.recorded_runs, "recorded run")
    took = f"{runs} took {units.count(spent.cycles)} cycles ({units.duration(spent.seconds)})"
    shares = [
        f"{units.share(v)} {activity}" for activity, v in spent.time_shares.items() if v >= 0.0005
    ]
    if not shares:
        return f"{took}."
    busy = f"On average, {units.share(spent.compute_share)} of the tiles compute."
    return f"{took}: {', '.join(shares)}. {busy}"


def run_sentence(report: Report) -> str:
    """Return how long the model's runs took, and for how many items; empty when none has ended."""
    run = known_run(report)
    if run is None or run.runs <= 0 or run.cycles < 0:
        return ""
    took = f"{units.count(run.cycles)} cycles ({units.duration(run.seconds)})"
    runs = "The run" if run.runs == 1 else f"{run.runs:,} runs"
    return f"{runs} took {took}{items_words(run)}."


def known_run(report: Report) -> MainRun | None:
    """Return the figures of the model's runs; None where no execution was recorded."""
    if not report.dataset.has("target"):
        return None
    try:
        return main_run(report)
    except NotRecordedError:
        return None


def items_words(run: MainRun) -> str:
    """Return the items of the runs and their rate in words; empty where they are not known."""
    if not run.items_per_second > 0:
        return ""
    words = f" for {counted(run.items, 'item')}: {units.rate(run.items_per_second)}"
    if run.steady_cycles != run.steady_cycles:
        return words
    full = f"with all {run.stages} stages full" if run.stages > 1 else "from batch to batch"
    return f"{words}, {units.rate(run.steady_items_per_second)} {full}"


def other_runs_sentence(report: Report) -> str:
    """Return which runs are set-up, which no figure counts; empty where none is."""
    if not (report.dataset.has("other_runs") and report.dataset.has("target")):
        return ""
    frame = other_runs(report).frame()
    rows = zip(*(frame[name] for name in ("name", "runs", "cycles")), strict=True)
    parts = [
        f"{name}{f', {runs:,} times' if runs > 1 else ''}"
        f"{f' ({units.count(cycles)} cycles)' if cycles >= 0 else ''}"
        for name, runs, cycles in rows
    ]
    return f"Set-up, not counted: {'; '.join(parts)}." if parts else ""
