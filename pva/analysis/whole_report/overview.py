"""A report at a glance: on what it ran, whether it fits, how long it took, what was recorded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pva.analysis.columns import analysis
from pva.analysis.execution.totals import execution_overview
from pva.analysis.facts import Facts
from pva.analysis.memory.totals import counts_code, memory_overview
from pva.analysis.operations.cycle_breakdown import cycles_by_phase
from pva.analysis.selection import rows_wanted
from pva.analysis.table import Columns, joined
from pva.array_types import Integers
from pva.errors import NotRecordedError

if TYPE_CHECKING:
    from pva.report import Report

ORDER = 20  # of its analyses in the catalogue
CODE = "code"
# What may be recorded: in words, a table or array of it, and the engine option that records it;
# code is counted by an option of the device.
PARTS = (
    ("memory", "memory_by_tile", "autoReport.outputGraphProfile"),
    (CODE, "memory_by_category", "compileIPUCode"),
    ("liveness", "liveness_steps", "autoReport.outputGraphProfile"),
    ("programs", "programs", "autoReport.outputGraphProfile"),
    ("execution", "steps", "autoReport.outputExecutionProfile"),
    ("debug information", "debug_contexts", "autoReport.outputDebugInfo"),
    ("blocks", "blocks", "profiler.blocks.filter"),
    ("measured compute cycles", "measured_compute_set_cycles", "debug.instrumentCompute"),
    ("measured exchange cycles", "measured_external_exchange_cycles",
     "debug.instrumentExternalExchange"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ReportOverview(Facts):
    """A report at a glance. Bytes include gaps; -1 stands for what was not recorded.

    Without `code_counted` there is no code in them.
    """

    type: str
    architecture: str
    ipus: int
    tiles: int
    created: str
    fullest_tile: int
    fullest_bytes: int
    bytes_per_tile: int
    tiles_out_of_memory: int
    code_counted: bool
    runs: int
    cycles: int
    seconds: float


@analysis(
    "type architecture ipus tiles created fullest_tile fullest_bytes:bytes bytes_per_tile:bytes "
    "tiles_out_of_memory code_counted runs cycles:cycles seconds:s",
    type="type of the target",
)
def report_overview(report: Report) -> ReportOverview:
    """Return on what a report was made, how full its fullest tile is, and how long its runs took.

    `created` is when it was compiled; `cycles` and `seconds` are of the recorded `runs`. What was
    not recorded is -1, or an empty text. Raises no NotRecordedError.
    """
    data = report.dataset
    on = data.has("target")
    memory = _memory(report)
    runs, cycles, seconds = _execution(report)
    return ReportOverview(
        type=str(data.texts("target", "type")[0]) if on else "",
        architecture=str(data.value("target", "architecture")) if on else "",
        ipus=int(data.value("target", "num_ipus")) if on else -1,
        tiles=int(data.value("target", "num_tiles")) if on else -1,
        created=str(data.value("report", "created")) if data.has("report") else "",
        fullest_tile=memory[0],
        fullest_bytes=memory[1],
        bytes_per_tile=memory[2],
        tiles_out_of_memory=memory[3],
        code_counted=memory[4],
        runs=runs,
        cycles=cycles,
        seconds=seconds,
    )


def _memory(report: Report) -> tuple[int, int, int, int, bool]:
    try:
        memory = memory_overview(report)
    except NotRecordedError:
        return -1, -1, -1, -1, False
    out, counted = memory.tiles_out_of_memory, memory.code_counted
    return memory.fullest_tile, memory.fullest_bytes, memory.bytes_per_tile, out, counted


def _execution(report: Report) -> tuple[int, int, float]:
    try:
        execution = execution_overview(report)
    except NotRecordedError:
        return -1, -1, -1.0
    return execution.recorded_runs, execution.cycles, execution.seconds


@dataclass(frozen=True, slots=True)
class GraphSize:
    """How many things a compiled graph has."""

    compute_sets: int
    vertices: int
    edges: int
    variables: int


@dataclass(frozen=True, slots=True)
class ReportWriter:
    """The version that wrote a report, the hash of its package, when the program was compiled."""

    version: str
    package: str
    created: str


def graph_size(report: Report) -> GraphSize:
    """Count what the compiled graph of a report has; raises NotRecordedError."""
    data = report.dataset
    return GraphSize(
        *(
            int(data.value("graph", name))
            for name in ("num_compute_sets", "num_vertices", "num_edges", "num_vars")
        )
    )


def report_writer(report: Report) -> ReportWriter:
    """Return who wrote a report, and when; raises NotRecordedError."""
    data = report.dataset
    return ReportWriter(
        *(str(data.value("report", name)) for name in ("version", "package_hash", "created"))
    )


@analysis("part recorded option")
def recorded_parts(report: Report) -> Columns:
    """Return what a report holds, and which engine option records what it does not.

    A row for each `part`, `recorded` or not, with the `option` that records it.
    """
    recorded = [report.dataset.has(table) for _, table, _ in PARTS]
    recorded[[part for part, _, _ in PARTS].index(CODE)] &= counts_code(report)
    return {
        "part": [part for part, _, _ in PARTS],
        "recorded": recorded,
        "option": [option for _, _, option in PARTS],
    }


@analysis("part place name first amount share:fraction unit")
def report_sketch(report: Report, *, count: int = 60) -> Columns:
    """Sketch a report in a few numbers: the memory of its tiles, its phases, its liveness.

    A row for each `place` of a `part`, at most `count` of them. `memory`: what the fullest of a few
    neighbouring tiles needs, gaps included, from tile `first` on, and the `share` of a tile's
    memory. `phase`: the cycles of a phase of the recorded runs, and their share. `liveness`: the
    most that is live in a stretch of program steps from `first` on, and its share of the peak.
    Parts that were not recorded have no rows; raises no NotRecordedError.
    """
    parts = []
    for part, unit, sketch in (
        ("memory", "bytes", _of_tiles), ("phase", "cycles", _of_phases),
        ("liveness", "bytes", _of_steps),
    ):  # fmt: skip
        try:
            columns = sketch(report, rows_wanted(count))
        except NotRecordedError:
            continue
        places = np.arange(len(columns["amount"]))
        parts.append({"part": part, "place": places, **columns, "unit": unit})
    names = ("part", "place", "name", "first", "amount", "share", "unit")
    rows = joined(parts) if parts else dict.fromkeys(names, np.zeros(0, dtype=object))
    return {name: rows[name] for name in names}


def _of_tiles(report: Report, count: int) -> dict[str, Any]:
    data = report.dataset
    first, most = _highest(data.column("memory_by_tile", "total_including_gaps"), count)
    share = most / max(int(data.value("target", "bytes_per_tile")), 1)
    return {"name": "", "first": first, "amount": most, "share": share}


def _of_phases(report: Report, count: int) -> dict[str, Any]:
    phases = cycles_by_phase(report).arrays
    rows = np.flatnonzero(phases["cycles"] > 0)[:count]
    columns = {"name": "phase", "amount": "cycles", "share": "share"}
    return {"first": 0} | {name: phases[column][rows] for name, column in columns.items()}


def _of_steps(report: Report, count: int) -> dict[str, Any]:
    data = report.dataset
    always = int(data.array("always_live_bytes").sum())
    first, most = _highest(data.column("liveness_steps", "bytes") + always, count)
    return {"name": "", "first": first, "amount": most, "share": most / max(most.max(initial=1), 1)}


def _highest(values: Integers, count: int) -> tuple[Integers, Integers]:
    """Return where each of at most `count` equal stretches begins, and the highest value in it."""
    stretches = min(len(values), count)
    if not stretches:
        return values[:0], values[:0]
    first = np.arange(stretches) * len(values) // stretches
    return first, np.maximum.reduceat(values, first)
