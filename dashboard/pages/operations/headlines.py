"""What operations cost, in words."""

from __future__ import annotations

from typing import Any

from dashboard.elements.components import Frame
from dashboard.pages.headlines import counted
from pva import units
from pva.analysis.operations.headline import (
    costliest,
    longest_operations,
    of_operations,
    unassigned_cycles,
)
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


def costs_sentence(costs: Frame) -> str:
    """Return which operation costs most, in cycles, code and memory."""
    if not len(of_operations(costs)):
        return "The report names no operation of this layer."
    most: dict[str, list[str]] = {}
    for figure, words, write in _MEASURES:
        top = costliest(costs, figure)
        if figure == "cycles" and top is None:
            top, words = costliest(costs, "estimated_cycles"), "cycles by estimate"
        if top is not None:
            text = f"the most {words}, {write(top.value)} ({units.share(top.share)})"
            most.setdefault(top.operation, []).append(text)
    if not most:
        return "The report tells no costs of operations."
    return "; ".join(f"{name} takes {units.listed(texts)}" for name, texts in most.items()) + "."


def reasons_sentence(costs: Frame) -> str:
    """Return which three operations take most cycles, and what they spend them on; else nothing."""
    mine = longest_operations(costs, MAX_NAMED)
    if len(mine) < MAX_NAMED:
        return ""
    texts = [
        f"{row['operation']} {units.share(row['share'])} ({_spent(row)})"
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
    size = f"{counted(len(of_operations(costs)), 'operation')}."
    unassigned = unassigned_cycles(costs)
    if unassigned is None:
        return size
    largest = unassigned.largest
    place = "outside of them" if largest == OUTSIDE else f"in none of them, most of it {largest}"
    return f"{size} {units.share(unassigned.share)} of the cycles are {place}."
