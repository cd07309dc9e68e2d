"""What all findings together save on a tile that has too little memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pva.analysis.insight_rules.finding import ALL_KINDS, Finding
from pva.units import listed, size

Named = tuple[str, str, Finding]  # rule, what it is about, what it finds
FITS = "does_it_fit"


def with_what_lacks(findings: Sequence[Named]) -> list[Named]:
    """Add to what lacks on the fullest tile how much the other findings save there.

    Two findings about one kind of memory may be about the same bytes: the larger counts. What even
    tiles would save is of all kinds, and counts in place of the others where it is more.
    """
    savings: dict[str, float] = {}
    for _, _, finding in findings:
        if finding.on_fullest > 0:
            savings[finding.holds] = max(savings.get(finding.holds, 0), finding.on_fullest)
    return [
        (rule, about, _with_savings(finding, savings))
        if rule == FITS and finding.severity == "problem"
        else (rule, about, finding)
        for rule, about, finding in findings
    ]


def _with_savings(finding: Finding, savings: dict[str, float]) -> Finding:
    even = savings.get(ALL_KINDS, 0)
    apart = {kind: saved for kind, saved in savings.items() if kind != ALL_KINDS}
    total = max(even, sum(apart.values()))
    lacks = f"{size(finding.amount)} must go from tile {finding.tile:,}"
    if not total:
        return replace(finding, advice=f"{finding.advice} {lacks}, and no finding saves any there.")
    parts = [f"{size(saved)} {kind}" for kind, saved in sorted(apart.items(), key=_largest_first)]
    named = "even tiles" if even >= sum(apart.values()) else listed(parts)
    enough = "enough" if total >= finding.amount else "not enough"
    words = f"{lacks}; the findings save at most {size(total)} there ({named}): {enough}."
    return replace(finding, advice=f"{finding.advice} {words}")


def _largest_first(saving: tuple[str, float]) -> float:
    return -saving[1]
