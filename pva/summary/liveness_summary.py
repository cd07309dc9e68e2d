"""The section Variable Storage Liveness of the profile summary."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat
from typing import TYPE_CHECKING

from pva.analysis import liveness
from pva.summary.layout import names

if TYPE_CHECKING:
    from pva.report import Report

ANONYMOUS = "<anon>"
# A sequence does nothing itself: the sample gives no live bytes for it.
_SILENT = frozenset({"Sequence"})


def liveness_lines(report: Report) -> Iterator[str]:
    """Write what is always live, and what is live at each program step."""
    overview = liveness.liveness_overview(report)
    yield "  Variable Storage Liveness: All tiles"
    yield ""
    yield f"    Always-live bytes: {overview.always_live:,}"
    yield "    Always-live variables:"
    always = liveness.always_live_variables(report)
    yield from names(6, _named(zip(always["name"], always["bytes"].tolist(), strict=True)))
    yield ""
    yield f"    Maximum live bytes (including always-live): {overview.max_live:,}"
    yield ""
    yield from _step_lines(report)


def _step_lines(report: Report) -> Iterator[str]:
    curve = liveness.liveness_curve(report)
    columns = (curve[name].tolist() for name in ("type", "name", "depth", "not_always_live"))
    live: Iterator[list[tuple[str, int]]] = repeat([])
    if report.dataset.has("variable_intervals"):
        live = liveness.live_names(report)
    else:
        yield "    Live Vars: this report does not say when each variable is live"
    for type_, name, depth, size in zip(*columns, strict=True):
        indent = 4 + 2 * depth
        variables = next(live)
        yield f"{'':{indent}}{type_}: {name}" if name else f"{'':{indent}}{type_}"
        if type_ in _SILENT:
            continue
        yield f"{'':{indent + 2}}Live Bytes (excluding always-live): {size:,}"
        if variables:
            yield f"{'':{indent + 2}}Live Vars (excluding always-live):"
            yield from names(indent + 4, _named(variables))


def _named(rows: Iterator[tuple[str, int]] | list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Add up what has one name, anonymous things together, and sort by name."""
    sizes: dict[str, int] = {}
    for name, size in rows:
        sizes[name or ANONYMOUS] = sizes.get(name or ANONYMOUS, 0) + size
    return sorted(sizes.items())
