"""Which operations cost most, and what is in none: the facts of the headline of operations."""

from __future__ import annotations

from dataclasses import dataclass

from pva.lazy import pandas as pd


@dataclass(frozen=True, slots=True)
class Costliest:
    """The operation that has most of a figure, and its share of that of the whole layer."""

    operation: str
    value: int
    share: float


@dataclass(frozen=True, slots=True)
class Unassigned:
    """The share of the cycles that is in no operation, and the largest row of it."""

    share: float
    largest: str


def of_operations(costs: pd.DataFrame) -> pd.DataFrame:
    """Leave out what is no operation: programs in none, and kinds of program such as `(Sync)`."""
    return costs[~costs["operation"].str.startswith("(")]


def costliest(costs: pd.DataFrame, figure: str) -> Costliest | None:
    """Return the operation with most of a figure of `operation_costs`, None if none has any."""
    mine = of_operations(costs)
    value = int(mine[figure].max()) if len(mine) else 0
    if value <= 0:
        return None
    return Costliest(_largest(mine, figure), value, value / max(_total(costs, figure), 1))


def longest_operations(costs: pd.DataFrame, count: int) -> pd.DataFrame:
    """Return the `count` operations with most cycles, with their `share` of those of the layer."""
    mine = of_operations(costs).nlargest(count, "cycles")
    mine = mine[mine["cycles"] > 0]
    return mine.assign(share=mine["cycles"] / max(_total(costs, "cycles"), 1))


def unassigned_cycles(costs: pd.DataFrame) -> Unassigned | None:
    """Return what part of the cycles is in no operation, None if all are in one."""
    total = _total(costs, "cycles")
    remainder = total - _total(of_operations(costs), "cycles")
    if not total or not remainder:
        return None
    rows = costs[costs["operation"].str.startswith("(")]
    return Unassigned(remainder / total, _largest(rows, "cycles"))


def _largest(rows: pd.DataFrame, figure: str) -> str:
    return str(rows.nlargest(1, figure)["operation"].iloc[0])


def _total(costs: pd.DataFrame, figure: str) -> int:
    return int(costs[figure].clip(lower=0).sum())
