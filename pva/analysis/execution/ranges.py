"""A range of the execution, and the executions of one step. A step at an edge counts in part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pva.analysis.attribution import OPERANDS, STEP_WORDS
from pva.analysis.columns import analysis
from pva.analysis.facts import Facts
from pva.analysis.selection import SelectionError, chosen, program_texts
from pva.analysis.table import Columns, largest_first
from pva.array_types import Floats, Integers
from pva.lazy import pandas as pd

if TYPE_CHECKING:
    from pva.report import Report

ORDER = 380  # of its analyses in the catalogue

_FARTHEST = 2**62  # cycle of any report: differences of two are in int64
FAR = 1.5  # times the distance between the quartiles, from the nearer one: an outlier (Tukey)


@analysis(
    "ipu compute:fraction exchange:fraction host_exchange:fraction waiting:fraction "
    "parallel_efficiency:fraction tile_balance:fraction stream_bytes_in:bytes "
    "stream_bytes_out:bytes remote_bytes_in:bytes remote_bytes_out:bytes global_bytes_in:bytes "
    "global_bytes_out:bytes"
)
def range_by_ipu(report: Report, *, begin: int | None = None, end: int | None = None) -> Columns:
    """Return what each IPU did between two cycles of the execution, all of it without them.

    `compute`, `exchange` (on and between IPUs) and `host_exchange` (with streams and with remote
    buffers) are shares of the cycles of its tiles, `waiting` the rest: in syncs, or for other
    tiles. `parallel_efficiency` is the first three together; `tile_balance` how evenly compute and
    exchange were spread, as mean / most of its tiles, weighted by the cycles of the steps. Bytes of
    a step at the edge count in part.
    Raises SelectionError, NotRecordedError.
    """
    count = report.dataset.of_replica("num_ipus")
    window = _window(report, begin, end)
    rows = _rows_by_ipu(report, window)
    group = rows["ipu"] * len(_PARTS) + rows["part"]

    def of_parts(values: Floats) -> Floats:
        return _summed(group, values, count * len(_PARTS)).reshape(count, len(_PARTS)).T

    work = rows["cycles"] * rows["inside"]
    busy, spent = of_parts(work), of_parts(work * rows["balance"])  # of a mean tile
    share = spent / max(window[1] - window[0], 1)
    columns: dict[str, Any] = {"ipu": np.arange(count), "compute": share[_COMPUTE]}
    columns["exchange"] = share[_EXCHANGE] + share[_GLOBAL]
    columns["host_exchange"] = share[_STREAM] + share[_REMOTE]
    together = np.minimum(share[_COMPUTE:].sum(axis=0), 1)
    columns["waiting"] = 1 - together
    columns["parallel_efficiency"] = together
    most, even = busy[_COMPUTE:].sum(axis=0), spent[_COMPUTE:].sum(axis=0)
    columns["tile_balance"] = np.divide(even, most, out=np.full(count, np.nan), where=most > 0)
    moved = {way: of_parts(rows[f"bytes_{way}"] * rows["inside"]) for way in ("in", "out")}
    for name, part in (("stream", _STREAM), ("remote", _REMOTE), ("global", _GLOBAL)):
        for way, by_part in moved.items():
            columns[f"{name}_bytes_{way}"] = np.rint(by_part[part]).astype(np.int64)
    return columns


_PARTS = ("", "compute", "exchange", "between IPUs", "host", "remote buffer")
_COMPUTE, _EXCHANGE, _GLOBAL, _STREAM, _REMOTE = range(1, len(_PARTS))


@analysis(
    "program type name executions cycles:cycles share:fraction bytes:bytes first_step",
    name="debug name of the program",
    type="kind of step",
    executions="executions that touch the range",
    cycles="cycles by which it made the range longer",
    share="part of the cycles of the range",
    bytes="half of what the tiles sent and received",
)
def range_by_program(
    report: Report, *, begin: int | None = None, end: int | None = None
) -> Columns:
    """Return which programs a range of cycles went to, the most cycles first.

    `executions` touch the range; `cycles` are those by which they made it longer, `share` of it;
    `bytes` are half of what the tiles sent and received. Raises SelectionError,
    NotRecordedError.
    """
    data = report.dataset
    window = _window(report, begin, end)
    data.column("programs", "name")  # without programs, those of steps may be any numbers
    first, last = (data.column("steps", name) for name in ("cycles_from", "cycles_to"))
    in_window = np.flatnonzero((last > window[0]) & (first < window[1]))
    programs, place, first_place = _numbered(data.column("steps", "program")[in_window])
    moved = data.column("steps", "total_data")[in_window].clip(0) * _inside(
        first[in_window], last[in_window], window
    )
    cycles = np.minimum(last[in_window], window[1]) - np.maximum(first[in_window], window[0])
    spent = _summed(place, np.maximum(cycles, 0), len(programs)).astype(np.int64)
    types, names = program_texts(report, programs)
    columns = {
        "program": programs,
        "type": types,
        "name": names,
        "executions": np.bincount(place, minlength=len(programs)),
        "cycles": spent,
        "share": spent / max(window[1] - window[0], 1),
        "bytes": np.rint(_summed(place, moved, len(programs))).astype(np.int64),
        "first_step": in_window[first_place],
    }
    return largest_first(columns, "cycles")


def _numbered(values: Integers) -> tuple[Integers, Integers, Integers]:
    """Return the different values, ascending; the place of each among them; and where it is first.

    As np.unique does, without sorting; for rows of a table, of which there are few.
    """
    least = int(values.min(initial=0))
    distinct = np.flatnonzero(np.bincount(values - least))
    place = np.zeros(int(distinct.max(initial=0)) + 1, dtype=np.int64)
    place[distinct] = np.arange(len(distinct))
    places = place[values - least]
    first = np.zeros(len(distinct), dtype=np.int64)
    first[places[::-1]] = np.arange(len(values))[::-1]
    return distinct + least, places, first


def _window(report: Report, begin: int | None, end: int | None) -> tuple[int, int]:
    """Return the range asked for, from the first to the last cycle of the steps without one.

    Raises SelectionError when it ends before it begins, or int64 does not hold it.
    """
    first, last = (report.dataset.column("steps", name) for name in ("cycles_from", "cycles_to"))
    final = int(last.max(initial=0))
    low = max(int(first.min(initial=0)), 0) if begin is None else begin
    high = final if end is None else end
    remedy = f"the execution ends at cycle {final:,}"
    for cycle in (low, high):
        if abs(cycle) > _FARTHEST:
            raise SelectionError(f"cycle {cycle:,}", "not there", remedy)
    if low > high:
        raise SelectionError(f"cycles {low:,} to {high:,}", "the end is before the begin", remedy)
    return low, high


def _inside(begin: Integers, end: Integers, window: tuple[int, int]) -> Floats:
    """Return which part of each span lies within a window."""
    if begin.min(initial=window[0]) >= window[0] and end.max(initial=window[1]) <= window[1]:
        return np.ones(len(begin))
    cut = np.minimum(end, window[1]) - np.maximum(begin, window[0])
    part: Floats = np.clip(cut / np.maximum(end - begin, 1), 0, 1)
    return part


def _summed(group: Integers, values: Integers | Floats | None, count: int) -> Floats:
    sums: Floats = np.bincount(group, weights=values, minlength=count).astype(np.float64)
    return sums


def _rows_by_ipu(report: Report, window: tuple[int, int]) -> dict[str, Any]:
    """Return a row for each step of a window on each IPU; of a single one those of the steps serve.

    `part` is an index of _PARTS, `inside` which part of it lies in the window.
    """
    data = report.dataset
    by_ipu = data.length("steps_by_ipu") > 0
    names = _OF_IPU if by_ipu else _OF_STEP
    table = "steps_by_ipu" if by_ipu else "steps"
    begin, end = (data.column(table, names[key]) for key in ("from", "to"))
    rows: Any = np.flatnonzero((end >= window[0]) & (begin <= window[1]))
    rows = slice(None) if len(rows) == len(begin) else rows
    step = data.column(table, "step")[rows] if by_ipu else np.arange(len(begin))[rows]
    columns = {
        key: np.maximum(data.column(table, names.get(key, key))[rows], 0)
        for key in ("cycles", "bytes_in", "bytes_out")
    }
    balance = data.column(table, "tile_balance")[rows]
    return columns | {
        "ipu": data.column(table, "ipu")[rows] if by_ipu else np.zeros(len(step), dtype=np.int64),
        "balance": np.nan_to_num(balance) if np.isnan(balance).any() else balance,
        "part": _parts_of_steps(report)[step],
        "inside": _inside(begin[rows], end[rows], window),
    }


def _parts_of_steps(report: Report) -> npt.NDArray[np.int8]:
    """Return of each step which of _PARTS it belongs to."""
    data = report.dataset
    types = data.words("steps", "type")
    words = {kind: _PARTS.index(word.split()[0]) for kind, word in STEP_WORDS.items()}
    words["GlobalExchange"] = _GLOBAL
    of_code = np.array([words.get(kind, 0) for kind in types], dtype=np.int8)
    parts: npt.NDArray[np.int8] = of_code[data.column("steps", "type")]
    parts[remote_copies(report)] = _REMOTE
    return parts


def remote_copies(report: Report) -> npt.NDArray[np.bool_]:
    """Return which steps are exchanges with a remote buffer.

    The host takes no part in these, so that no external sync goes before them
    (simulator/compiler/lowering/stream.py).
    """
    data = report.dataset
    types, syncs = data.column("steps", "type"), data.column("steps", "sync_type")
    kinds = data.words("steps", "type")
    is_copy = np.array([kind.startswith("StreamCopy") for kind in kinds])[types]
    before = np.maximum.accumulate(np.where(is_copy, -1, np.arange(len(types))))
    is_internal = syncs == data.words("steps", "sync_type").index("Internal")
    is_remote: npt.NDArray[np.bool_] = is_copy & (before >= 0) & is_internal[before]
    return is_remote


_OF_IPU = {"from": "from_min", "to": "to_max"}
_OF_STEP = {"from": "cycles_from", "to": "cycles_to", "bytes_in": "total_data",
            "bytes_out": "total_data"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class StepExecutions(Facts):
    """How long the executions of one program took: cycles of each of its recorded steps.

    `outliers` are steps that took more or less than the rest by 1.5 times the distance between the
    quartiles, the farthest first; `longest` is the step with the most cycles.
    """

    program: int
    count: int
    mean: float
    p50: float
    p95: float
    least: int
    most: int
    longest: int
    outliers: tuple[int, ...]


@analysis(
    "program count mean:cycles p50:cycles p95:cycles least:cycles most:cycles longest outliers"
)
def step_executions(report: Report, *, step: int) -> StepExecutions:
    """Sum up all executions of the program of a step; raises SelectionError, NotRecordedError."""
    data = report.dataset
    programs = data.column("steps", "program")
    program = int(programs[chosen("step", step, len(programs))])
    same = np.flatnonzero(programs == program)
    cycles = data.column("steps", "cycles")[same]
    low, middle, high, p95 = np.quantile(cycles, (0.25, 0.5, 0.75, 0.95)).tolist()
    apart = np.maximum(low - cycles, cycles - high)
    far = np.flatnonzero((apart > FAR * (high - low)) & (apart > 0))
    order = np.argsort(-apart[far], kind="stable")
    return StepExecutions(
        program=program,
        count=len(same),
        mean=float(cycles.mean()),
        p50=middle,
        p95=p95,
        least=int(cycles.min()),
        most=int(cycles.max()),
        longest=int(same[int(cycles.argmax())]),
        outliers=tuple(same[far[order]].tolist()),
    )


@analysis("tile ipu cycles:cycles")
def tile_cycles_of_step(report: Report, *, step: int) -> Columns:
    """Return the cycles of each tile in an executed step, by tile; no rows for a sync.

    Raises SelectionError, NotRecordedError.
    """
    data = report.dataset
    programs = data.column("steps", "program")
    program = int(programs[chosen("step", step, len(programs))])
    tag = data.texts("programs", "type")[program] if program >= 0 else ""
    cycles = np.zeros(0, dtype=np.int64)
    if tag in OPERANDS:
        column, name = OPERANDS[tag]
        row = int(data.column("programs", column)[program])
        array = f"{name}_cycles_by_tile" if tag == "OnTileExecute" else f"{name}_cycles"
        cycles = data.row(array, row) if row >= 0 else cycles
    per_ipu = max(int(data.value("target", "tiles_per_ipu")), 1)
    tiles = np.arange(len(cycles))
    return {"tile": tiles, "ipu": tiles // per_ipu, "cycles": cycles}


@dataclass(frozen=True, slots=True)
class ProgramTotals:
    """The executed steps of some programs, their cycles, and their share of those of a range."""

    steps: int
    cycles: int
    share: float


def total_of_programs(programs: pd.DataFrame, cycles: int) -> ProgramTotals:
    """Add up rows of `range_by_program`, beside the cycles of the whole range."""
    spent = int(programs["cycles"].sum())
    return ProgramTotals(int(programs["executions"].sum()), spent, spent / max(cycles, 1))


def busy_tiles(frame: pd.DataFrame, count: int) -> pd.DataFrame:
    """Return the `count` tiles of `tile_cycles_of_step` that take longest, without idle ones."""
    rows = frame.nlargest(count, "cycles")
    return rows[rows["cycles"] > 0]
