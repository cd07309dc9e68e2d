"""What must be in memory at the same time. A step here is a program step in depth-first order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pva.analysis.attribution import summed
from pva.analysis.columns import analysis
from pva.analysis.facts import Facts
from pva.analysis.memory.totals import CATEGORY_LABELS
from pva.analysis.selection import chosen, program_texts, tiles_of
from pva.analysis.table import Columns, arrays_of, joined, largest_first, rows_of
from pva.array_types import Values
from pva.lazy import pandas as pd

if TYPE_CHECKING:
    from pva.report import Report

ORDER = 110  # of its analyses in the catalogue
Rows = npt.NDArray[np.int64]
Names = Values


@dataclass(frozen=True, slots=True)
class LivenessOverview(Facts):
    """The peak of liveness; sizes in bytes on all tiles. `peak_step` is -1 without steps."""

    always_live: int
    peak_step: int
    peak_type: str
    peak_name: str
    peak_bytes: int
    max_live: int
    largest_variable: str
    largest_variable_bytes: int


@analysis(
    "step program type name depth always_live:bytes not_always_live:bytes total:bytes",
    step="program step",
    total="bytes that are live",
    name="debug name of the step",
    type="kind of step",
)
def liveness_curve(report: Report, *, ipu: int | None = None, tile: int | None = None) -> Columns:
    """Return the bytes that are live at each program step, on all tiles, one IPU or one tile.

    `total` is `always_live`, the same at each step, and `not_always_live`; `depth` is how deep the
    step's program lies in others. Raises SelectionError, NotRecordedError.
    """
    always: Rows = report.dataset.array("always_live_bytes")[tiles_of(report, ipu=ipu, tile=tile)]
    columns = curve_columns(report, ipu=ipu, tile=tile)
    moving = columns.pop("not_always_live")
    live = int(always.sum())
    return columns | {"always_live": live, "not_always_live": moving, "total": live + moving}


def curve_columns(
    report: Report, *, ipu: int | None = None, tile: int | None = None
) -> dict[str, Any]:
    """Return the columns of `liveness_curve` that differ from step to step; raises as it does."""
    data = report.dataset
    tiles_of(report, ipu=ipu, tile=tile)  # refuses what is not there
    programs = data.column("liveness_steps", "program")
    types, names = program_texts(report, programs)
    return {
        "step": np.arange(len(programs)),
        "program": programs,
        "type": types,
        "name": names,
        "depth": depths(data.column("liveness_steps", "parent")),
        "not_always_live": _moving(report, ipu, tile),
    }


def _moving(report: Report, ipu: int | None, tile: int | None) -> Rows:
    """Return what is not always live at each program step, on all tiles, one IPU or one tile."""
    data = report.dataset
    if tile is not None:
        return bytes_by_step(report, sizes_on(report, tile=tile))
    if ipu is not None:
        of_ipu: Rows = data.array("liveness_bytes_by_ipu")[:, ipu]
        return of_ipu
    everywhere: Rows = data.column("liveness_steps", "bytes")
    return everywhere


@analysis("variable name category bytes:bytes")
def live_variables(
    report: Report, *, step: int, ipu: int | None = None, tile: int | None = None
) -> Columns:
    """Return the not-always-live variables that are live at a program step, largest first.

    `bytes` on all tiles, one IPU or one tile; `variable` is the row of the table of variables.
    Raises SelectionError, NotRecordedError.
    """
    data = report.dataset
    step = chosen("step", step, len(data.column("liveness_steps", "program")))
    rows = _alive(report, step)
    columns = {
        "variable": rows,
        "name": data.column("variables", "name")[rows],
        "category": data.texts("variables", "category")[rows],
        "bytes": sizes_on(report, ipu=ipu, tile=tile)[rows],
    }
    return largest_first(rows_of(columns, columns["bytes"] > 0), "bytes")


def _alive(report: Report, step: int) -> Rows:
    """Return the rows of the variables that are live at a program step, ascending."""
    data = report.dataset
    begin, end = (data.column("variable_intervals", name) for name in ("begin", "end"))
    alive = data.column("variable_intervals", "variable")[(begin <= step) & (step < end)]
    count = len(data.column("variables", "name"))  # without it, those alive may be any numbers
    return np.flatnonzero(np.bincount(alive, minlength=count))


def live_changes(report: Report, names: Names) -> tuple[Names, Rows, Rows, Rows]:
    """Return when what is live beside the always-live changes, by a name for each variable.

    Give the different names, sorted, and by step: the step, which of the names changes there, and
    its bytes on all tiles from then on, variables of one name added up.
    """
    data = report.dataset
    different, code = np.unique(names, return_inverse=True)
    variable, begin, end = (
        data.column("variable_intervals", name) for name in ("variable", "begin", "end")
    )
    lives = begin < end
    sizes = data.column("variables", "bytes")[variable[lives]]
    when = np.concatenate((begin[lives], end[lives]))
    rows = np.tile(code[variable[lives]], 2)
    change = np.concatenate((sizes, -sizes))
    # The changes of a name sum to nothing, so that sums need not begin anew with each name.
    order = np.lexsort((when, rows))
    when, rows, live = when[order], rows[order], np.cumsum(change[order])
    last = np.append((np.diff(when) != 0) | (np.diff(rows) != 0), True)[: len(when)]
    order = np.flatnonzero(last)[np.argsort(when[last], kind="stable")]
    return different, when[order], rows[order], live[order]


def sizes_on(report: Report, *, ipu: int | None = None, tile: int | None = None) -> Rows:
    """Return the bytes of each variable on all tiles, an IPU or a tile; raises SelectionError."""
    data = report.dataset
    if tile is None and ipu is None:
        everywhere: Rows = data.column("variables", "bytes")
        return everywhere
    tiles = tiles_of(report, ipu=ipu, tile=tile)
    names = ("variable", "tile", "bytes")
    variables, places, lengths = (data.column("variable_pieces", name) for name in names)
    on_tiles = (places >= tiles.start) & (places < tiles.stop)
    return summed(variables[on_tiles], lengths[on_tiles], len(data.column("variables", "bytes")))


def bytes_by_step(report: Report, sizes: Rows) -> Rows:
    """Return what is live at each program step, of variables of these sizes by row."""
    data = report.dataset
    names = ("variable", "begin", "end")
    variables, begin, end = (data.column("variable_intervals", name) for name in names)
    return added_up(begin, end, sizes[variables], data.length("liveness_steps"))


def added_up(begin: Rows, end: Rows, sizes: Rows, steps: int) -> Rows:
    """Add up sizes over half-open intervals of steps."""
    changes = np.zeros(steps + 1, dtype=np.int64)
    np.add.at(changes, np.clip(begin, 0, steps), sizes)
    np.add.at(changes, np.clip(end, 0, steps), -sizes)
    return np.cumsum(changes)[:-1]


@analysis(
    "name bytes:bytes",
    name="variable, or category, that is always live",
    bytes="bytes on all tiles, or where selected",
)
def always_live_variables(
    report: Report, *, ipu: int | None = None, tile: int | None = None
) -> Columns:
    """Return what is always live, by name, largest first: variables and categories of data.

    `bytes` on all tiles, one IPU or one tile. Raises SelectionError, NotRecordedError.
    """
    columns = always_live_columns(report, ipu=ipu, tile=tile)
    return largest_first(columns, "bytes")


def always_live_columns(
    report: Report, *, ipu: int | None = None, tile: int | None = None
) -> dict[str, Any]:
    """Return the columns of `always_live_variables` as they are recorded; raises as it does."""
    data = report.dataset
    if ipu is None and tile is None:
        return {name: data.column("always_live_variables", name) for name in ("name", "bytes")}
    return _always_live_on(report, ipu, tile)


def _always_live_on(report: Report, ipu: int | None, tile: int | None) -> dict[str, object]:
    """Return the always-live memory of some tiles: whole categories, and variables.

    That a category is always live follows from its being in the table of what is on all tiles.
    """
    data = report.dataset
    tiles = tiles_of(report, ipu=ipu, tile=tile)
    by_category = data.array("memory_by_category")[..., tiles].sum(axis=(1, 2, 3))
    sizes = sizes_on(report, ipu=ipu, tile=tile)
    # Of a category as a whole, what its variables do not tell one by one.
    np.subtract.at(by_category, data.column("variables", "category"), sizes)
    of_category = dict(zip(CATEGORY_LABELS, by_category.tolist(), strict=True))
    categories = [
        name
        for name in dict.fromkeys(data.column("always_live_variables", "name").tolist())
        if name in of_category
    ]
    rows = np.flatnonzero(data.column("variables", "always_live") & (sizes > 0))
    names = [*categories, *data.column("variables", "name")[rows].tolist()]
    values = [*(of_category[name] for name in categories), *sizes[rows].tolist()]
    places = [place for place, size in enumerate(values) if size]
    return {"name": [names[k] for k in places], "bytes": np.array([values[k] for k in places], int)}


@analysis(
    "always_live:bytes peak_step peak_type peak_name peak_bytes:bytes max_live:bytes "
    "largest_variable largest_variable_bytes:bytes"
)
def liveness_overview(report: Report) -> LivenessOverview:
    """Return how much is live at most, at which step, and which variable is the largest there.

    Bytes on all tiles; the variable is of those that are not always live. `max_live` follows what
    the report says is the most, also where its steps are cut. Raises NotRecordedError.
    """
    data = report.dataset
    always = int(data.array("always_live_bytes").sum())
    live = data.column("liveness_steps", "bytes")
    most = _most_live(report)
    if not len(live):
        return LivenessOverview(always, -1, "", "", 0, always + most, "", 0)
    peak = int(live.argmax())
    types, names = program_texts(report, data.column("liveness_steps", "program")[peak : peak + 1])
    largest, largest_bytes = "", 0
    if data.has("variable_intervals"):
        rows = _alive(report, peak)
        sizes = data.column("variables", "bytes")[rows]
        if sizes.max(initial=0) > 0:
            first = int(sizes.argmax())
            largest, largest_bytes = (
                data.column("variables", "name")[rows[first]],
                int(sizes[first]),
            )
    return LivenessOverview(
        always_live=always,
        peak_step=peak,
        peak_type=types[0],
        peak_name=names[0],
        peak_bytes=int(live[peak]),
        max_live=always + most,
        largest_variable=largest,
        largest_variable_bytes=largest_bytes,
    )


def _most_live(report: Report) -> int:
    """Return the most bytes live beside the always-live: as the report says, or of its steps.

    A document may be cut to some of its steps; its `maxBytes` still counts all of them.
    """
    data = report.dataset
    of_steps = int(data.column("liveness_steps", "bytes").max(initial=0))
    return max(data.value("liveness", "max_bytes"), of_steps) if data.has("liveness") else of_steps


@analysis(
    "variable name category always_live bytes:bytes share:fraction",
    name="variable, or category, that is live where liveness peaks",
    bytes="bytes on all tiles, or where selected",
    share="part of all that is live there",
)
def live_at_peak(report: Report, *, ipu: int | None = None, tile: int | None = None) -> Columns:
    """Return who is live where liveness peaks, largest first: what to make smaller or end earlier.

    Variables live at that program step and, as `always_live`, variables and categories of data that
    are always live: `variable` is the row of a variable, -1 for a category as a whole. `bytes` on
    all tiles, one IPU or one tile, at the peak there; `share` of all that is live. Raises
    SelectionError, NotRecordedError.
    """
    data = report.dataset
    always = always_live_variables(report, ipu=ipu, tile=tile).arrays
    rows, categories = _always_live_rows(report, always["name"].tolist())
    parts: list[Columns] = [
        {"variable": rows, "name": always["name"], "category": categories, "always_live": True,
         "bytes": always["bytes"]}
    ]  # fmt: skip
    if data.length("liveness_steps"):
        peak = int(_moving(report, ipu, tile).argmax())
        moving = live_variables(report, step=peak, ipu=ipu, tile=tile).arrays
        names = ("variable", "name", "category", "bytes")
        parts.append({name: moving[name] for name in names} | {"always_live": False})
    columns = joined([arrays_of(part) for part in parts])
    shares = columns["bytes"] / max(int(columns["bytes"].sum()), 1)
    return largest_first({**columns, "share": shares}, "bytes")


def _always_live_rows(report: Report, names: list[str]) -> tuple[Rows, Names]:
    """Return the variables of always-live names, -1 for categories of data, and the categories."""
    data = report.dataset
    row_by_name, category = {}, {name: name for name in CATEGORY_LABELS}
    if data.has("variables"):
        rows = np.flatnonzero(data.column("variables", "always_live"))[::-1]
        asked = set(names)  # of a tile some of many thousands
        are_asked = [name in asked for name in data.column("variables", "name")[rows].tolist()]
        rows = rows[np.array(are_asked, dtype=bool)]
        variables = data.column("variables", "name")[rows].tolist()
        row_by_name = dict(zip(variables, rows.tolist(), strict=True))
        words = data.texts("variables", "category")[rows].tolist()
        category |= dict(zip(variables, words, strict=True))
    return (
        np.array([row_by_name.get(name, -1) for name in names], dtype=np.int64),
        np.array([category.get(name, "") for name in names], dtype=object),
    )


@analysis(
    "tile ipu most_live:bytes always_live:bytes not_always_live:bytes share:fraction free:bytes"
)
def liveness_by_tile(report: Report) -> Columns:
    """Return which tiles need the most at their own peak, the most first.

    `always_live` and, at the program step where the tile has most of them, `not_always_live` bytes;
    `most_live` is their sum, `share` of the tile's memory and `free` the rest. Gaps not included.
    Raises NotRecordedError.
    """
    data = report.dataset
    always, moving = data.array("always_live_bytes"), data.array("not_always_live_max_bytes")
    capacity = int(data.value("target", "bytes_per_tile"))
    tiles, live = np.arange(len(always)), always + moving
    columns = {
        "tile": tiles,
        "ipu": tiles // max(int(data.value("target", "tiles_per_ipu")), 1),
        "most_live": live,
        "always_live": always,
        "not_always_live": moving,
        "share": live / max(capacity, 1),
        "free": capacity - live,
    }
    return largest_first(columns, "most_live")


@analysis("ipu most_live:bytes always_live:bytes not_always_live:bytes peak_step type name")
def liveness_by_ipu(report: Report) -> Columns:
    """Return when each IPU needs the most memory: its own peak, the IPU with the most first.

    Bytes on all its tiles: `always_live` and, at the program step `peak_step` of the `name` given,
    `not_always_live`; `most_live` is their sum. -1 is no step. Raises NotRecordedError.
    """
    data = report.dataset
    moving = data.array("liveness_bytes_by_ipu")
    ipus = moving.shape[1]  # where the target does not tell them, it does not tell the tiles
    tiles = (tiles_of(report, ipu=ipu) for ipu in range(ipus))
    always = np.array([data.array("always_live_bytes")[of].sum() for of in tiles], dtype=np.int64)
    programs = data.column("liveness_steps", "program")
    steps = moving.argmax(axis=0) if len(moving) else np.full(ipus, -1)
    most = moving.max(axis=0) if len(moving) else np.zeros(ipus, dtype=np.int64)
    types, names = program_texts(report, programs[steps] if len(moving) else steps)
    columns = {
        "ipu": np.arange(ipus),
        "most_live": always + most,
        "always_live": always,
        "not_always_live": most,
        "peak_step": steps,
        "type": types,
        "name": names,
    }
    return largest_first(columns, "most_live")


@analysis(
    "variable name category bytes:bytes steps first_step last_step at_peak byte_steps:bytes*steps",
    name="debug name of the variable",
    bytes="bytes on all tiles",
    steps="how many steps it is live at",
)
def variable_lifetimes(report: Report) -> Columns:
    """List the variables that are not always live, by bytes times steps, the most first.

    `steps` is at how many program steps a variable is live, from `first_step` to `last_step` with
    or without breaks; `byte_steps` is `bytes` times `steps`, the most first. Those `at_peak` are
    live where liveness peaks. Raises NotRecordedError.
    """
    data = report.dataset
    names = ("variable", "begin", "end")
    variables, begin, end = (data.column("variable_intervals", name) for name in names)
    count = len(data.column("variables", "name"))
    live = data.column("liveness_steps", "bytes")
    peak = int(live.argmax()) if len(live) else -1
    steps = np.zeros(count, dtype=np.int64)
    np.add.at(steps, variables, end - begin)
    first, last = np.full(count, len(live)), np.full(count, -1)
    np.minimum.at(first, variables, begin)
    np.maximum.at(last, variables, end - 1)
    rows = np.flatnonzero(steps > 0)
    sizes = data.column("variables", "bytes")[rows]
    columns = {
        "variable": rows,
        "name": data.column("variables", "name")[rows],
        "category": data.texts("variables", "category")[rows],
        "bytes": sizes,
        "steps": steps[rows],
        "first_step": first[rows],
        "last_step": last[rows],
        "at_peak": np.isin(rows, variables[(begin <= peak) & (peak < end)]),
        "byte_steps": sizes * steps[rows],
    }
    return largest_first(columns, "byte_steps")


def depths(parents: Rows) -> Rows:
    """Return how deep each row of a flat tree lies, 0 for the outermost (parent -1).

    Each round doubles how far a row has looked up, so that a tree of any depth needs few rounds;
    a file whose parents run in a circle ends as well.
    """
    above = np.where(parents < len(parents), parents, -1)
    depth = (above >= 0).astype(np.int64)
    for _ in range(len(parents).bit_length()):
        inside = above >= 0
        up = above[inside]
        depth[inside] += depth[up]
        above[inside] = above[up]
    return depth


def with_share(frame: pd.DataFrame) -> pd.DataFrame:
    """Return rows of `bytes` with the `share` that each is of all of them."""
    return frame.assign(share=frame["bytes"] / max(int(frame["bytes"].sum()), 1))


def total_bytes(frame: pd.DataFrame) -> int:
    """Add up the bytes of rows such as those of `always_live_variables`."""
    return int(frame["bytes"].sum())
