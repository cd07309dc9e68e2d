"""The cards of the model's run: how long, how many items a second, latency, and set-up."""

from __future__ import annotations

from dashboard.components import Element, card
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
    found = known_run(report)
    if found is None or found.runs <= 0:
        return []
    return [_time(found), _items(found), _latency(found), _setup(report, found)]


def _time(found: MainRun) -> Element:
    runs = "the run" if found.runs == 1 else f"{found.runs:,} runs"
    if found.cycles < 0:
        return card("Run time", DASH, f"{runs}, cycles not known")
    note = f"{runs}, {units.count(found.cycles)} cycles"
    return card("Run time", units.duration(found.seconds), note)


def _items(found: MainRun) -> Element:
    label = "Items a second"
    if found.items < 0:
        return card(label, DASH, NO_ITEMS)
    whole = units.rate(found.items_per_second) if found.items_per_second > 0 else DASH
    steady = found.steady_items_per_second
    if steady == steady:
        full = f"all {found.stages} stages full" if found.stages > 1 else "from batch to batch"
        return card(label, _number(units.rate(steady)), f"{full}; {whole} in the whole run")
    return card(label, _number(whole), f"{counted(found.items, 'item')} in the whole run")


def _number(rate: str) -> str:
    """Leave the unit out, which the label of the card has."""
    return rate.removesuffix(" items/s")


def _latency(found: MainRun) -> Element:
    if found.latency_cycles < 0:
        return card("Latency", DASH, "not recorded: when items come in and go out")
    note = f"{units.count(found.latency_cycles)} cycles from the input of an item to its output"
    return card("Latency", units.duration(found.latency_seconds), note)


def _setup(report: Report, found: MainRun) -> Element:
    if not found.setup_runs:
        return card("Set-up", "none", "all runs are of the model")
    names = ", ".join(map(str, other_runs(steady_state(report))["name"]))
    time = units.duration(found.setup_seconds) if found.setup_cycles >= 0 else DASH
    return card("Set-up", time, f"not counted: {names}")
