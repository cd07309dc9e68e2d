"""The sections Execution and Steps of the profile summary."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pva.analysis.execution import totals as execution
from pva.summary.layout import descending, left, vertex_lines

if TYPE_CHECKING:
    from pva.report import Report

TOTAL_COLUMN = 49
STEP_COLUMN = 40
_TOTALS = (
    ("Total compute cycles (including idle threads)", "compute"),
    ("Total compute cycles (excluding idle threads)", "active_compute"),
    ("Total IPU exchange cycles", "do_exchange"),
    ("Total global exchange cycles", "global_exchange"),
    ("Total host exchange cycles", "stream_copy"),
    ("Total shared structure copy cycles", "copy_shared_structure"),
    ("Total sync cycles", "sync"),
)
_SYNCS = frozenset({"Sync", "SyncAns", "Sans"})
# In these the device waits for the host: no tile computes, and no data move.
_WAITS = frozenset({"StreamCopyBegin", "StreamCopyEnd"})
# The types that have cyclesOverlapped, by the chapter "Profiling".
_WITH_OVERLAP = frozenset({"OnTileExecute", "DoExchange", "CopySharedStructure"})
_VERTEX_CYCLES = (
    "compute_set_active_cycles_by_vertex_type", "compute_set_vertices", "vertex_types",
    "compute_sets", "programs", "steps",
)  # fmt: skip
Step = Mapping[str, Any]
VertexRows = list[tuple[str, int, int]]


def execution_profiled(report: Report) -> bool:
    """Return whether anything was recorded while the program ran."""
    data = report.dataset
    mode = data.texts("execution", "profiler_mode")[0] if data.has("execution") else "NONE"
    return mode not in ("NONE", "CPU")


def execution_lines(report: Report) -> Iterator[str]:
    """Write where the cycles of the recorded runs went."""
    overview = execution.execution_overview(report)
    yield "Execution:"
    yield ""
    time = f"{overview.cycles:,} (approx {overview.seconds * 1e6:,.1f} microseconds)"
    yield left(2, "Total cycles", time, TOTAL_COLUMN)
    for label, activity in _TOTALS:
        yield left(2, label, f"{overview.tile_cycles[activity]:,}", TOTAL_COLUMN)
    yield left(2, "Total tile balance", _percent(overview.tile_balance), TOTAL_COLUMN)
    yield left(2, "Total thread balance", _percent(overview.thread_balance), TOTAL_COLUMN)
    if overview.recorded_runs < overview.runs:
        runs = f"{overview.recorded_runs:,} of {overview.runs:,}"
        yield left(2, "Runs recorded in full, of all runs", runs, TOTAL_COLUMN)
    if report.dataset.length("other_runs"):
        outside = execution.other_runs(report).frame()
        label = "Cycles of runs with profiling disabled"
        for name, cycles in zip(outside["name"], outside["cycles"], strict=True):
            yield left(2, label, f"{cycles:,} ({name}), not counted", TOTAL_COLUMN)
    yield ""
    yield from _vertex_type_lines(report)


def _vertex_type_lines(report: Report) -> Iterator[str]:
    """Write every vertex of the graph once, as the sample does, whether or not it ran."""
    if not all(map(report.dataset.has, _VERTEX_CYCLES)):
        yield "  Cycles by vertex type: this report has no cycle estimates"
        return
    yield "  Cycles by vertex type:"
    table = execution.vertex_type_columns(report)
    used = table["instances"] > 0
    columns = (table[name][used].tolist() for name in ("vertex_type", "instances", "cycles_once"))
    yield from vertex_lines(4, descending(list(zip(*columns, strict=True)), 2))


def step_lines(report: Report) -> Iterator[str]:
    """Write every executed step of the recorded runs."""
    yield "Steps"
    table = execution.step_columns(report)
    tiles = report.dataset.of_replica("num_tiles")
    compute_sets = report.dataset.column("programs", "compute_set")
    vertices = _vertices(report)
    columns = {n: v if isinstance(v, list) else v.tolist() for n, v in table.items()}
    for values in zip(*columns.values(), strict=True):
        step = dict(zip(columns, values, strict=True))
        if step["type"] in _SYNCS:
            kind = step["type"] if step["type"] != "Sync" else _sync(step["sync_type"])
            yield f"  --- {kind} ---"
            continue
        compute_set = compute_sets[step["program"]] if step["program"] >= 0 else -1
        yield from _fields(step, tiles, vertices.get(compute_set, []))


def _sync(kind: str) -> str:
    return "Sync" if kind == "None" else f"{kind} Sync"


def _vertices(report: Report) -> dict[int, VertexRows]:
    """Group the vertices of each compute set by type."""
    if not all(map(report.dataset.has, _VERTEX_CYCLES)):
        return {}
    table = execution.compute_set_columns(report)
    names = ("compute_set", "vertex_type", "instances", "cycles")
    groups: dict[int, VertexRows] = {}
    for compute_set, *row in zip(*(table[name].tolist() for name in names), strict=True):
        groups.setdefault(compute_set, []).append((row[0], row[1], row[2]))
    return {compute_set: descending(rows, 2) for compute_set, rows in groups.items()}


def _fields(step: Step, tiles: int, vertices: VertexRows) -> Iterator[str]:
    title = f"  {step['type']} (cycles {step['cycles_from']:,} - {step['cycles_to']:,})"
    yield f"{title}: {step['name']}" if step["name"] else title
    cycles = f"{step['cycles']:,}"
    if step["type"] in _WITH_OVERLAP and step["cycles_overlapped"] >= 0:
        cycles += f" ({step['cycles_overlapped']:,} overlapped with previous)"
    if step["type"] in _WAITS:
        yield left(4, "Cycles", cycles, STEP_COLUMN)
        return
    computes = step["type"] == "OnTileExecute"
    rows = [("Cycles", cycles), ("Active Tiles", f"{step['active_tiles']:,} / {tiles:,}")]
    if computes:
        rows.append(("Thread Balance", _percent(step["thread_balance"])))
    rows += [
        ("Tile Balance", _percent(step["tile_balance"])),
        ("Active Tile Balance", _percent(step["active_tile_balance"])),
    ]
    if not computes:
        rows += [
            ("Total Data", f"{step['total_data']:,}"),
            ("Data Balance (mean / max data per tile)", _percent(step["data_balance"])),
        ]
    yield from (left(4, label, value, STEP_COLUMN) for label, value in rows)
    if computes and vertices:
        yield "    By vertex type:"
        yield from vertex_lines(6, vertices)


def _percent(fraction: float) -> str:
    """Write a share as the sample does, without a space; "unknown" when it was not recorded."""
    return f"{100 * fraction:.1f}%" if fraction == fraction else "unknown"
