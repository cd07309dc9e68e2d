"""Chosen program steps side by side, what they run, and when chosen variables are live."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from pva.analysis.attribution import OPERANDS, labels
from pva.analysis.columns import analysis
from pva.analysis.memory.liveness import Rows, depths, sizes_on
from pva.analysis.selection import program_texts, several, tile_count
from pva.analysis.table import Arrays, Columns, joined, largest_first, rows_of
from pva.array_types import Integers, Values
from pva.lazy import pandas as pd

if TYPE_CHECKING:
    from pva.report import Report

ORDER = 130  # of its analyses in the catalogue
STEP = "step_"  # with the number of a step: the name of its column


@analysis("variable name category *:bytes change:bytes", **{"*": "bytes at this step"})
def live_at_steps(
    report: Report,
    *,
    steps: Sequence[int] = (),
    ipu: int | None = None,
    tile: int | None = None,
) -> Columns:
    """Compare what is live at chosen program steps, beside the always-live; without any, the peak.

    A row for each variable that is live at one of them, and a column for each step with its bytes
    on all tiles, one IPU or one tile; `change` is the last of them less the first. The largest
    change comes first, then the largest. Raises SelectionError, NotRecordedError.
    """
    data = report.dataset
    steps = chosen_steps(report, steps)
    sizes = sizes_on(report, ipu=ipu, tile=tile)
    columns = {f"{STEP}{step}": np.where(alive_at(report, step), sizes, 0) for step in steps}
    texts = {
        "variable": np.arange(len(sizes)),
        "name": data.column("variables", "name"),
        "category": data.texts("variables", "category"),
    }
    return _ordered(texts, columns)


@analysis(
    "step type name least:bytes mean:bytes most:bytes deviation:bytes fullest_tile",
    name="debug name of the step",
    least="bytes of the tile with the least",
    mean="mean bytes of a tile",
    most="bytes of the tile with the most",
)
def live_over_tiles(
    report: Report, *, steps: Sequence[int] = (), tiles: Sequence[int] = ()
) -> Columns:
    """Return how evenly tiles share what is live at chosen program steps; without any, at the peak.

    A row for each step: the `least`, `mean` and `most` bytes of a tile, the always-live with them,
    their standard `deviation`, and the `fullest_tile`; of chosen tiles, or of all. Raises
    SelectionError, NotRecordedError.
    """
    data = report.dataset
    steps = chosen_steps(report, steps)
    count = tile_count(report)
    rows = np.array(several("tile", tiles, count) or range(count), dtype=np.int64)
    names = ("variable", "tile", "bytes")
    variables, places, sizes = (data.column("variable_pieces", name) for name in names)
    always = np.asarray(data.array("always_live_bytes"))[rows]
    live = np.zeros((len(steps), len(rows)))
    for number, step in enumerate(steps):
        alive = alive_at(report, step)[variables]
        live[number] = np.bincount(places[alive], sizes[alive], count)[rows] + always
    programs = data.column("liveness_steps", "program")[np.array(steps, dtype=np.int64)]
    types, texts = program_texts(report, programs)
    return {
        "step": steps,
        "type": types,
        "name": texts,
        "least": live.min(axis=1).astype(np.int64),
        "mean": live.mean(axis=1),
        "most": live.max(axis=1).astype(np.int64),
        "deviation": live.std(axis=1),
        "fullest_tile": rows[live.argmax(axis=1)],
    }


@analysis(
    "vertex_type state:bytes * change",
    state="bytes of the state of one vertex",
    **{"*": "vertices that this step runs"},
)
def vertices_at_steps(report: Report, *, steps: Sequence[int] = ()) -> Columns:
    """Compare which vertices chosen program steps run, by type; without any, those at the peak.

    `state` is the bytes of one vertex; a column for each step counts its vertices, none where it
    runs no compute set; `change` is the last of them less the first. Raises SelectionError,
    NotRecordedError.
    """
    data = report.dataset
    steps = chosen_steps(report, steps)
    names = ("compute_set", "vertex_type", "count")
    rows, types, counts = (data.column("compute_set_vertices", name) for name in names)
    programs = data.column("liveness_steps", "program")
    columns = {}
    for step in steps:
        in_set = rows == int(_of_programs(report, "compute_set", programs[step : step + 1])[0])
        vertices = np.zeros(len(data.column("vertex_types", "name")), dtype=np.int64)
        np.add.at(vertices, types[in_set], counts[in_set])
        columns[f"{STEP}{step}"] = vertices
    types_of = {
        "vertex_type": data.column("vertex_types", "name"),
        "state": data.column("vertex_types", "size"),
    }
    return _ordered(types_of, columns)


@analysis(
    "step type name cycles:cycles mean_cycles:cycles active_tiles slowest_tile",
    name="debug name of the step",
    cycles="cycles of its slowest tile, once",
    mean_cycles="mean cycles of all tiles",
    active_tiles="tiles that take any cycles",
)
def cycle_estimates(report: Report, *, step: int | None = None) -> Columns:
    """Return the cycles of a program step and the steps inside it, once each; by default the peak.

    Compute sets and exchanges at or below the step: `cycles` of the slowest tile, `slowest_tile`,
    the `mean_cycles` of all tiles and `active_tiles`. A Repeat counts what it holds once. The most
    cycles first. Raises SelectionError, NotRecordedError.
    """
    data = report.dataset
    steps = chosen_steps(report, () if step is None else (step,))
    inside = _inside(report, steps[0]) if steps else np.zeros(0, dtype=np.int64)
    programs = data.column("liveness_steps", "program")[inside]
    types = np.array(program_texts(report, programs)[0], dtype=object)
    parts = (_costs(report, tag, inside[types == tag], programs[types == tag]) for tag in OPERANDS)
    return largest_first(joined(parts), "cycles")


@analysis("variable name bytes:bytes begin end")
def lifetime_intervals(report: Report, *, variables: Sequence[int] = ()) -> Columns:
    """Return when variables are live, by their row; by default the ten largest that move.

    A row for each interval, `end` is the step after the last one; variables in the order chosen.
    One that is always live has one interval, of all steps. Raises SelectionError, NotRecordedError.
    """
    data = report.dataset
    sizes = data.column("variables", "bytes")
    names = ("variable", "begin", "end")
    rows, begin, end = (data.column("variable_intervals", name) for name in names)
    variables = several("variable", variables, len(sizes))
    if not variables:
        distinct = np.unique(rows)
        variables = distinct[np.argsort(-sizes[distinct], kind="stable")][:10].tolist()
    steps = data.length("liveness_steps")
    always = [row for row in variables if data.column("variables", "always_live")[row]]
    rows = np.concatenate((rows, np.array(always, dtype=rows.dtype)))
    begin = np.concatenate((begin, np.zeros(len(always), dtype=begin.dtype)))
    end = np.concatenate((end, np.full(len(always), steps, dtype=end.dtype)))
    place = {row: number for number, row in enumerate(variables)}
    mine = np.flatnonzero(np.isin(rows, list(place)))
    places = np.array([place[row] for row in rows[mine].tolist()], dtype=np.int64)
    order = np.lexsort((begin[mine], places))
    mine = mine[order]
    return {
        "variable": rows[mine],
        "name": data.column("variables", "name")[rows[mine]],
        "bytes": sizes[rows[mine]],
        "begin": begin[mine],
        "end": end[mine],
    }


def chosen_steps(report: Report, steps: Sequence[int]) -> list[int]:
    """Return the steps that are there, each once; without any the peak. Raises SelectionError."""
    live = report.dataset.column("liveness_steps", "bytes")
    return several("step", steps, len(live)) or ([int(live.argmax())] if len(live) else [])


def alive_at(report: Report, step: int) -> Rows:
    """Return of each variable whether it is live at a step."""
    data = report.dataset
    begin, end = (data.column("variable_intervals", name) for name in ("begin", "end"))
    alive = np.zeros(len(data.column("variables", "bytes")), dtype=bool)
    alive[data.column("variable_intervals", "variable")[(begin <= step) & (step < end)]] = True
    return alive


def _ordered(columns: dict[str, Values], at_steps: dict[str, Integers]) -> Arrays:
    """Add what is at steps and the change; without what is nowhere, the largest change first."""
    count = len(next(iter(columns.values())))
    values = np.stack(list(at_steps.values()) or [np.zeros(count, dtype=np.int64)])
    change, most = values[-1] - values[0], values.max(axis=0)
    order = np.lexsort((-most, -np.abs(change)))
    return rows_of({**columns, **at_steps, "change": change}, order[most[order] > 0])


def _inside(report: Report, step: int) -> Rows:
    """Return a step and those inside it: the ones that follow it and lie deeper."""
    data = report.dataset
    depth = depths(data.column("liveness_steps", "parent"))
    if step < 0:
        return np.zeros(0, dtype=np.int64)
    shallow = np.flatnonzero(depth[step + 1 :] <= depth[step])
    stop = step + 1 + int(shallow[0]) if len(shallow) else len(depth)
    return np.arange(step, stop)


def _of_programs(report: Report, column: str, programs: Rows) -> Rows:
    """Return a column of the table of programs at some rows; -1 outside the table."""
    values = np.append(report.dataset.column("programs", column).astype(np.int64), -1)
    last = len(values) - 1
    return values[np.where((programs >= 0) & (programs < last), programs, last)]


def _costs(report: Report, tag: str, steps: Rows, programs: Rows) -> Columns:
    """Return what the programs of a type cost; those whose row is not there are left out."""
    data = report.dataset
    column, name = OPERANDS[tag]
    by_tile = np.zeros((0, 1), dtype=np.int64)
    if len(steps):
        by_tile = data.array(f"{name}_cycles{'_by_tile' if tag == 'OnTileExecute' else ''}")
    rows = _of_programs(report, column, programs)
    valid = (rows >= 0) & (rows < len(by_tile))
    rows, steps, programs = rows[valid], steps[valid], programs[valid]
    return {
        "step": steps,
        "type": np.full(len(steps), tag, dtype=object),
        "name": labels(report, programs),
        "cycles": by_tile.max(axis=1, initial=0)[rows],
        "mean_cycles": (by_tile.sum(axis=1) / max(by_tile.shape[1], 1))[rows],
        "active_tiles": (by_tile > 0).sum(axis=1)[rows],
        "slowest_tile": by_tile.argmax(axis=1)[rows] if len(rows) else rows,
    }


def total_of_variables(frame: pd.DataFrame, steps: Sequence[str]) -> pd.DataFrame:
    """Add the rows of `live_at_steps` up, as a frame of one row: bytes at each step, and change."""
    return frame[[*steps, "change"]].sum().to_frame().T
