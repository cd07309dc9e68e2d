"""What a rule finds: what, where, how much, what to try and what that would save."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["problem", "cost", "note"]

# What a saving is a part of, with its unit.
FULLEST_TILE, AT_PEAK = "what the fullest tile needs", "what is live at the peak"
ALL_TILES, RECORDED_RUNS = "what all tiles hold", "the recorded runs"
RUNS_AND_WAITS = "the runs and their waits for the host"
UNITS = {
    FULLEST_TILE: "bytes", AT_PEAK: "bytes", ALL_TILES: "bytes", RECORDED_RUNS: "cycles",
    RUNS_AND_WAITS: "cycles",
}  # fmt: skip
NOWHERE = -1
# Kinds of memory on a tile: what two findings save of one kind may be the same bytes.
ALL_KINDS, GAPS, VARIABLES = "everything", "gaps", "variables"
EXCHANGE_CODE, VERTEX_STATE = "exchange code", "state of vertices"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing worth knowing about a report, in words and figures.

    `amount` and `saving` are of `of`, in bytes or cycles as UNITS says; `whole` is all of it. A
    saving is an upper bound, worked out for the change in `advice` alone; `on_fullest` is what of
    it is on the fullest tile, in memory of the kind that `holds` says. `show` is the analysis that
    has the details; tile, step and variable are what to choose there, -1 for none, and name that of
    the programs to look at, empty for none.
    """

    severity: Severity
    what: str
    where: str
    amount: float
    of: str
    whole: float
    advice: str = ""
    saving: float = 0
    on_fullest: float = 0
    holds: str = ""
    show: str
    tile: int = NOWHERE
    step: int = NOWHERE
    variable: int = NOWHERE
    name: str = ""


def part(value: float, total: float) -> float:
    """Return a share, nothing of nothing being 0."""
    return value / total if total else 0.0
