"""The cards of the model's run: how long, how many items a second, latency, and set-up."""

from __future__ import annotations

from dashboard.elements.components import Element, card
from dashboard.pages.headlines import counted, known_run
from dashboard.store import Report
from pva import units
from pva.analysis.execution.main_runs import MainRun
from pva.analysis.execution.steady import steady_state
from pva.analysis.execution.totals import other_runs

NO_ITEMS = "a PopART session or Engine.run(work=...) records the items of a run"
DASH = "–"


def run_cards(report: Report) -> list[Element]:
    """Show what a run takes; nothing where no run has ended, or no execution was recorded."""
    run = known_run(report)
    if run is None or run.runs <= 0:
        return []
    return [_time(run), _items(run), _latency(run), _setup(report, run)]


def _time(run: MainRun) -> Element:
    runs = "the run" if run.runs == 1 else f"{run.runs:,} runs"
    if run.cycles < 0:
        return card("Run time", DASH, f"{runs}, cycles not known")
    note = f"{runs}, {units.count(run.cycles)} cycles"
    return card("Run time", units.duration(run.seconds), note)


def _items(run: MainRun) -> Element:
    label = "Items a second"
    if run.items < 0:
        return card(label, DASH, NO_ITEMS)
    rate = units.rate(run.items_per_second) if run.items_per_second > 0 else DASH
    steady = run.steady_items_per_second
    if steady == steady:
        full = f"all {run.stages} stages full" if run.stages > 1 else "from batch to batch"
        return card(label, _number(units.rate(steady)), f"{full}; {rate} in the whole run")
    return card(label, _number(rate), f"{counted(run.items, 'item')} in the whole run")


def _number(rate: str) -> str:
    """Leave the unit out, which the label of the card has."""
    return rate.removesuffix(" items/s")


def _latency(run: MainRun) -> Element:
    if run.latency_cycles < 0:
        return card("Latency", DASH, "not recorded: when items come in and go out")
    note = f"{units.count(run.latency_cycles)} cycles from the input of an item to its output"
    return card("Latency", units.duration(run.latency_seconds), note)


def _setup(report: Report, run: MainRun) -> Element:
    if not run.setup_runs:
        return card("Set-up", "none", "all runs are of the model")
    names = ", ".join(map(str, other_runs(steady_state(report)).frame()["name"]))
    time = units.duration(run.setup_seconds) if run.setup_cycles >= 0 else DASH
    return card("Set-up", time, f"not counted: {names}")
