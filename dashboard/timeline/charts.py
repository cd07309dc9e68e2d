"""Line graphs and heat maps as rows of the host timeline: /timeline/host/charts, as JSON."""

from __future__ import annotations

from typing import Any

import numpy as np

from dashboard.store import Trace
from pva.analysis.host.charts import heat_columns, held_until, line_points

POINTS, COLUMNS = 400, 240  # of a chart in an answer
MAX_CHARTS = 40


def chart_list(trace: Trace) -> list[dict[str, object]]:
    """Name the charts of a trace: a line graph with its series, or a heat map."""
    graphs: dict[tuple[str, str, int], list[str]] = {}
    for series in trace.series:
        graphs.setdefault((series.graph, series.unit, series.pid), []).append(series.name)
    lines: list[dict[str, Any]] = [
        {"kind": "line", "key": _key(trace, "graph", name, unit, pid),
         "name": _named(trace, name, pid), "unit": unit, "series": names}
        for (name, unit, pid), names in graphs.items()
    ]  # fmt: skip
    heat: list[dict[str, Any]] = [
        {"kind": "heat", "key": _key(trace, "heatmap", one.name, one.unit, one.pid),
         "name": _named(trace, one.name, one.pid), "unit": one.unit,
         "edges": [_edge(edge) for edge in one.edges.tolist()]}
        for one in trace.heatmaps
    ]  # fmt: skip
    return [*lines, *heat][:MAX_CHARTS]


def _key(trace: Trace, kind: str, name: str, unit: str, pid: int) -> str:
    """Distinguish a chart from others: those of one name may be of several units, or processes."""
    title = f"{name} [{unit}]"
    return f"{kind} {title}" if len(trace.processes) == 1 else f"{kind} {pid} {title}"


def _named(trace: Trace, name: str, pid: int) -> str:
    return name if len(trace.processes) == 1 else f"{name} ({pid})"


def _edge(value: float) -> float | None:
    return value if np.isfinite(value) else None


def charts_in(trace: Trace, begin: int, end: int) -> dict[str, object]:
    """Return what the charts show in a window, by key."""
    charts: dict[str, Any] = {}
    for series in trace.series:
        times, values = line_points(series.time_ns, series.value, begin, end, POINTS)
        part = {"name": series.name, "time": times.tolist(), "value": _plain(values),
                "end": held_until(series.time_ns, series.end_ns)}  # fmt: skip
        charts.setdefault(_key(trace, "graph", series.graph, series.unit, series.pid), []).append(
            part
        )
    for one in trace.heatmaps:
        first, last, shares = heat_columns(
            one.time_ns, one.counts, begin, end, COLUMNS, until=one.end_ns
        )
        heat = np.where(np.isnan(shares), 0, np.rint(16 + 59.75 * (shares + 4)))
        charts[_key(trace, "heatmap", one.name, one.unit, one.pid)] = {
            "begin": first.tolist(),
            "end": last.tolist(),
            "level": heat.astype(np.int64).tolist(),
        }
    return charts


def _plain(values: Any) -> list[float | None]:
    """Return numbers that JSON knows."""
    return [value if np.isfinite(value) else None for value in values.tolist()]
