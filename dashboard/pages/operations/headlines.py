"""What operations cost, in words."""

from __future__ import annotations

from typing import Any

from dashboard.components import Frame
from dashboard.pages.headlines import counted
from pva import units
from pva.analysis.operations.layers import OUTSIDE

PHASES = ("compute", "exchange", "host_exchange", "sync")
MAX_NAMED = 3  # operations that take most cycles
WORTH = 0.02  # the least share of an operation's cycles that is named
# What is asked of operations: the figure, its words, and how it is written.
_MEASURES: tuple[tuple[str, str, Any], ...] = (
    ("cycles", "cycles", units.cycles_or_time),
    ("code", "code", units.size),
    ("peak_bytes", "memory at the peak", units.size),
)


def of_operations(costs: Frame) -> Frame:
    """Leave out what is no operation: programs in none, and kinds of program such as `(Sync)`."""
    return costs[~costs["operation"].str.startswith("(")]


def costs_sentence(costs: Frame) -> str:
    """Return which operation costs most, in cycles, code and memory."""
    mine = of_operations(costs)
    if not len(mine):
        return "The report names no operation of this layer."
    most: dict[str, list[str]] = {}
    for figure, words, write in _MEASURES:
        if figure == "cycles" and int(mine["cycles"].max()) <= 0:
            figure, words = "estimated_cycles", "cycles by estimate"
        value = int(mine[figure].max())
        if value <= 0:
            continue
        share = units.share(value / max(int(costs[figure].clip(lower=0).sum()), 1))
        name = str(mine["operation"].loc[mine[figure].idxmax()])
        most.setdefault(name, []).append(f"the most {words}, {write(value)} ({share})")
    if not most:
        return "The report tells no costs of operations."
    return "; ".join(f"{name} takes {units.listed(texts)}" for name, texts in most.items()) + "."


def reasons_sentence(costs: Frame) -> str:
    """Return which three operations take most cycles, and what they spend them on; else nothing."""
    mine = of_operations(costs).nlargest(MAX_NAMED, "cycles")
    mine = mine[mine["cycles"] > 0]
    if len(mine) < MAX_NAMED:
        return ""
    every = max(int(costs["cycles"].clip(lower=0).sum()), 1)
    texts = [
        f"{row['operation']} {units.share(row['cycles'] / every)} ({_spent(row)})"
        for row in mine.to_dict("records")
    ]
    return f"Most cycles: {units.listed(texts)}."


def _spent(row: dict[Any, Any]) -> str:
    """Name the phases that take most of an operation's cycles."""
    parts = [(int(row[phase]), phase.replace("_", " ")) for phase in PHASES]
    largest = sorted((part for part in parts if part[0] > 0), reverse=True)[:2]
    shares = [(amount / row["cycles"], name) for amount, name in largest]
    return ", ".join(f"{units.share(share)} {name}" for share, name in shares if share >= WORTH)


def outside_words(costs: Frame) -> str:
    """Return how many operations there are, and what part of the cycles is in none."""
    mine = of_operations(costs)
    size = f"{counted(len(mine), 'operation')}."
    total = int(costs["cycles"].clip(lower=0).sum())
    remainder = total - int(mine["cycles"].clip(lower=0).sum())
    if not total or not remainder:
        return size
    unassigned = costs[costs["operation"].str.startswith("(")]
    largest = str(unassigned["operation"].loc[unassigned["cycles"].idxmax()])
    place = "outside of them" if largest == OUTSIDE else f"in none of them, most of it {largest}"
    return f"{size} {units.share(remainder / total)} of the cycles are {place}."
