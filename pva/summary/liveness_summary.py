"""The section Variable Storage Liveness of the profile summary."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise, repeat
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pva.analysis.memory import liveness
from pva.summary.layout import LONGEST_NAME, NAME_GAP, Block, names, printable

if TYPE_CHECKING:
    from pva.report import Report

Texts = npt.NDArray[np.object_]

ANONYMOUS = "<anon>"
# What variables of these categories are called that have no name; the others have their category.
_ANONYMOUS = {"variable": ANONYMOUS, "constant": "<const>"}
# A sequence does nothing itself: the sample gives no live bytes for it.
_SILENT = frozenset({"Sequence"})


def liveness_lines(report: Report) -> Iterator[str | Block]:
    """Write what is always live, and what is live at each program step."""
    overview = liveness.liveness_overview(report)
    yield "  Variable Storage Liveness: All tiles"
    yield ""
    yield f"    Always-live bytes: {overview.always_live:,}"
    yield "    Always-live variables:"
    yield from names(6, _always_live(report))
    yield ""
    yield f"    Maximum live bytes (including always-live): {overview.max_live:,}"
    yield ""
    yield from _step_lines(report)


def _always_live(report: Report) -> list[tuple[str, int]]:
    """Return bytes by name, sorted; what has no name, or the same name, is added up."""
    columns = liveness.always_live_columns(report)
    sizes: dict[str, int] = {}
    for name, size in zip(columns["name"], columns["bytes"].tolist(), strict=True):
        sizes[name or ANONYMOUS] = sizes.get(name or ANONYMOUS, 0) + size
    return sorted(sizes.items())


def _step_lines(report: Report) -> Iterator[str | Block]:
    curve = liveness.curve_columns(report)
    numbers = (curve[name].tolist() for name in ("depth", "not_always_live"))
    live: Iterator[list[str]] = repeat([])
    if report.dataset.has("variable_intervals"):
        live = _live_lines(report, len(curve["type"]))
    else:
        yield "    Live Vars: this report does not say when each variable is live"
    for type_, name, depth, size in zip(curve["type"], curve["name"], *numbers, strict=True):
        indent = 4 + 2 * depth
        lines = next(live)
        yield f"{'':{indent}}{type_}: {name}" if name else f"{'':{indent}}{type_}"
        if type_ in _SILENT:
            continue
        yield f"{'':{indent + 2}}Live Bytes (excluding always-live): {size:,}"
        if lines:
            yield f"{'':{indent + 2}}Live Vars (excluding always-live):"
            head = " " * (indent + 4)
            yield Block((head, f"\n{head}".join(lines), "\n"))


def _live_lines(report: Report, steps: int) -> Iterator[list[str]]:
    """Return the names and bytes of what is live at each step: one list, changed from step to step.

    As wide as the longest name of the step; only what changes is written anew.
    """
    names, when, rows, sizes = liveness.live_changes(report, _labels(report))
    labels = [printable(name) for name in names.tolist()]
    ends = np.searchsorted(when, np.arange(steps), side="right").tolist()
    bytes_of_row: dict[int, int] = {}
    live: list[int] = []
    lines: list[str] = []
    width, widths = -1, Counter[int]()
    for first, end in pairwise([0, *ends]):
        changed = list(zip(rows[first:end].tolist(), sizes[first:end].tolist(), strict=True))
        for row, size in changed:
            _hold(bytes_of_row, widths, row, size, min(len(labels[row]), LONGEST_NAME))
        before, width = width, max(widths, default=0)
        if width != before:
            live = sorted(bytes_of_row)
            lines[:] = (f"{labels[row]:<{width}}{bytes_of_row[row]:>{NAME_GAP},}" for row in live)
            changed = []
        for row, size in changed:
            text = f"{labels[row]:<{width}}{size:>{NAME_GAP},}" if size > 0 else ""
            _place(live, lines, row, text)
        yield lines


def _hold(
    bytes_of_row: dict[int, int], widths: Counter[int], row: int, size: int, width: int
) -> None:
    """Set the bytes of a name, and count how many names are as wide as it is."""
    if row in bytes_of_row:
        widths[width] -= 1
        del bytes_of_row[row]
    if size > 0:
        widths[width] += 1
        bytes_of_row[row] = size
    if not widths[width]:
        del widths[width]


def _place(live: list[int], lines: list[str], row: int, line: str) -> None:
    """Put the line of a name in its place among those that are live; none takes it away."""
    at = bisect_left(live, row)
    is_listed = at < len(live) and live[at] == row
    live[at : at + is_listed] = [row] if line else []
    lines[at : at + is_listed] = [line] if line else []


def _labels(report: Report) -> Texts:
    """Name each variable, one without a name by its category, as the sample does."""
    data = report.dataset
    names: Texts = data.column("variables", "name").copy()
    bare = np.flatnonzero(names == "")
    for row, category in zip(bare.tolist(), data.texts("variables", "category")[bare], strict=True):
        names[row] = _ANONYMOUS.get(category, f"<{category}:anon>")
    return names
