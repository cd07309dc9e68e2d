"""The section Variable Storage Liveness of the profile summary."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import pairwise, repeat
from typing import TYPE_CHECKING

import numpy as np

from pva.analysis.memory import liveness
from pva.array_types import Integers, Texts
from pva.summary.layout import LONGEST_NAME, NAME_GAP, Block, names, printable

if TYPE_CHECKING:
    from pva.report import Report

SHARES = 64  # of the names of variables
HEADS = 8  # for which texts are held at once

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
    indents = [" " * (4 + 2 * depth) for depth in curve["depth"].tolist()]
    live: Iterator[Block] = repeat(Block())
    if report.dataset.has("variable_intervals"):
        live = live_lines(report, [f"{indent}    " for indent in indents])
    else:
        yield "    Live Vars: this report does not say when each variable is live"
    sizes = curve["not_always_live"].tolist()
    for type_, name, indent, size in zip(curve["type"], curve["name"], indents, sizes, strict=True):
        lines = next(live)
        yield f"{indent}{type_}: {name}" if name else f"{indent}{type_}"
        if type_ in _SILENT:
            continue
        yield f"{indent}  Live Bytes (excluding always-live): {size:,}"
        if any(lines):
            yield f"{indent}  Live Vars (excluding always-live):"
            yield lines


def live_lines(report: Report, heads: list[str]) -> Iterator[Block]:
    """Write the names and bytes of what is live at each step, each line behind the step's head.

    As wide as the longest name of the step. Names stand in shares, in their order, and only the
    shares are joined anew in which something changed since a step with the same head.
    """
    names, when, rows, sizes = liveness.live_changes(report, _labels(report))
    labels = [printable(name) for name in names.tolist()]
    widths = _widths(labels, when, rows, sizes, len(heads))
    ends = np.searchsorted(when, np.arange(len(heads)), side="right").tolist()
    changes = list(zip(rows.tolist(), sizes.tolist(), strict=True))
    bytes_of_row: dict[int, int] = {}
    in_share = len(labels) // SHARES + 1
    live: list[list[int]] = [[] for _ in range(SHARES)]
    lines: list[list[str]] = [[] for _ in range(SHARES)]
    joined: dict[str, tuple[list[str], set[int]]] = {}  # and which of them are out of date
    before = -1
    for head, width, (first, end) in zip(heads, widths, pairwise([0, *ends]), strict=True):
        changed = changes[first:end]
        bytes_of_row.update(changed)
        if width != before:
            before, changed = width, list(bytes_of_row.items())
            bytes_of_row = {row: size for row, size in changed if size > 0}
        for row, size in changed:
            share = row // in_share
            text = f"{labels[row]:<{width}}{size:>{NAME_GAP},}\n" if size > 0 else ""
            _place(live[share], lines[share], row, text)
        if head not in joined:
            if len(joined) == HEADS:
                joined.clear()
            joined[head] = [""] * SHARES, set(range(SHARES))
        here = {row // in_share for row, _ in changed}
        for _, old in joined.values():
            old |= here
        texts, old = joined[head]
        for share in old:
            texts[share] = head + head.join(lines[share]) if lines[share] else ""
        old.clear()
        yield Block(texts)


def _widths(
    labels: list[str], when: Integers, rows: Integers, sizes: Integers, steps: int
) -> list[int]:
    """Return how wide the longest name that is live is at each step."""
    order = np.lexsort((when, rows))
    begins = np.append(True, np.diff(rows[order]) != 0)[: len(order)]
    is_live = (sizes[order] > 0).astype(np.int64)
    change = is_live - np.where(begins, 0, np.roll(is_live, 1))
    width = np.minimum(list(map(len, labels)), LONGEST_NAME)[rows[order]]
    widest = np.zeros(steps, np.int64)
    for one in np.unique(width).tolist():
        of_it = width == one
        alive = np.bincount(when[order][of_it], change[of_it], steps + 1).cumsum()[:steps] > 0
        widest[alive] = one
    return widest.tolist()


def _place(live: list[int], lines: list[str], row: int, line: str) -> None:
    """Put the line of a name in its place among those that are live; none takes it away."""
    at = bisect_left(live, row)
    if at < len(live) and live[at] == row:
        if line:
            lines[at] = line
        else:
            del live[at], lines[at]
    elif line:
        live.insert(at, row)
        lines.insert(at, line)


def _labels(report: Report) -> Texts:
    """Name each variable, one without a name by its category, as the sample does."""
    data = report.dataset
    names: Texts = data.column("variables", "name").copy()
    bare = np.flatnonzero(names == "")
    for row, category in zip(bare.tolist(), data.texts("variables", "category")[bare], strict=True):
        names[row] = _ANONYMOUS.get(category, f"<{category}:anon>")
    return names
