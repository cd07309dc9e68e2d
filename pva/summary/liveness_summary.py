"""The section Variable Storage Liveness of the profile summary."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pva.analysis import liveness
from pva.summary.layout import LONGEST_NAME, NAME_GAP, Block, names, printable

if TYPE_CHECKING:
    from pva.report import Report

Rows = npt.NDArray[np.int64]
Texts = npt.NDArray[np.object_]
# The lines of the names, and the bytes that each line gives, by the width of the names.
Lines = dict[int, tuple[Texts, Rows]]

ANONYMOUS = "<anon>"
# What variables of these categories are called that have no name; the others have their category.
_ANONYMOUS = {"variable": ANONYMOUS, "constant": "<const>"}
# A sequence does nothing itself: the sample gives no live bytes for it.
_SILENT = frozenset({"Sequence"})


def liveness_lines(report: Report) -> Iterator[str]:
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
    """Give bytes by name, sorted; what has no name, or the same name, is added up."""
    frame = liveness.always_live_variables(report)
    sizes: dict[str, int] = {}
    for name, size in zip(frame["name"], frame["bytes"].tolist(), strict=True):
        sizes[name or ANONYMOUS] = sizes.get(name or ANONYMOUS, 0) + size
    return sorted(sizes.items())


def _step_lines(report: Report) -> Iterator[str]:
    curve = liveness.liveness_curve(report)
    columns = (curve[name].tolist() for name in ("type", "name", "depth", "not_always_live"))
    live: Iterator[tuple[Rows, Rows]] = repeat((np.zeros(0, dtype=np.int64),) * 2)
    labels: list[str] = []
    if report.dataset.has("variable_intervals"):
        known, live = liveness.live_by_name(report, _labels(report))
        labels = [printable(name) for name in known.tolist()]
    else:
        yield "    Live Vars: this report does not say when each variable is live"
    widths = np.minimum([len(label) for label in labels], LONGEST_NAME).astype(np.int64)
    lines: Lines = {}
    for type_, name, depth, size in zip(*columns, strict=True):
        indent = 4 + 2 * depth
        rows, sizes = next(live)
        yield f"{'':{indent}}{type_}: {name}" if name else f"{'':{indent}}{type_}"
        if type_ in _SILENT:
            continue
        yield f"{'':{indent + 2}}Live Bytes (excluding always-live): {size:,}"
        if len(rows):
            yield f"{'':{indent + 2}}Live Vars (excluding always-live):"
            width = int(widths[rows].max())
            yield _indented(indent + 4, _lines(lines, width, labels, rows, sizes))


def _labels(report: Report) -> Texts:
    """Name each variable, one without a name by its category, as the sample does."""
    data = report.dataset
    given: Texts = data.column("variables", "name").copy()
    bare = np.flatnonzero(given == "")
    for row, category in zip(bare.tolist(), data.texts("variables", "category")[bare], strict=True):
        given[row] = _ANONYMOUS.get(category, f"<{category}:anon>")
    return given


def _lines(made: Lines, width: int, labels: list[str], rows: Rows, sizes: Rows) -> list[str]:
    """Give the lines of names and bytes; a line is made anew when its bytes have changed."""
    if width not in made:
        made[width] = np.empty(len(labels), dtype=np.object_), np.full(len(labels), -1)
    lines, known = made[width]
    stale = known[rows] != sizes
    for row, size in zip(rows[stale].tolist(), sizes[stale].tolist(), strict=True):
        lines[row] = f"{labels[row]:<{width}}{size:>{NAME_GAP},}"
    known[rows] = sizes
    chosen: list[str] = lines[rows].tolist()
    return chosen


def _indented(indent: int, lines: list[str]) -> Block:
    head = " " * indent
    return Block(head + f"\n{head}".join(lines))
