"""A report at a glance: on what it ran, whether it fits, how long it took, what was recorded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pva.analysis.execution import execution_overview
from pva.analysis.memory import counts_code, memory_overview
from pva.analysis.told import Told
from pva.errors import NotRecordedError

if TYPE_CHECKING:
    import pandas as pd

    from pva.report import Report

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
class ReportOverview(Told):
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


def report_overview(report: Report) -> ReportOverview:
    """Tell on what a report was made, how full its fullest tile is, and how long its runs took.

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
        found = memory_overview(report)
    except NotRecordedError:
        return -1, -1, -1, -1, False
    out, counted = found.tiles_out_of_memory, found.code_counted
    return found.fullest_tile, found.fullest_bytes, found.bytes_per_tile, out, counted


def _execution(report: Report) -> tuple[int, int, float]:
    try:
        found = execution_overview(report)
    except NotRecordedError:
        return -1, -1, -1.0
    return found.recorded_runs, found.cycles, found.seconds


def recorded_parts(report: Report) -> pd.DataFrame:
    """Tell what a report holds, and which engine option records what it does not.

    A row for each `part`, `recorded` or not, with the `option` that records it.
    """
    import pandas as pd

    there = [report.dataset.has(table) for _, table, _ in PARTS]
    there[[part for part, _, _ in PARTS].index(CODE)] &= counts_code(report)
    return pd.DataFrame(
        {
            "part": [part for part, _, _ in PARTS],
            "recorded": there,
            "option": [option for _, _, option in PARTS],
        }
    )
