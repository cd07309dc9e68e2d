"""What each tile does in a window of the execution, as an image: rows of tiles, columns of time.

Nothing is held by step and tile. What a step costs a tile is the row of its program; when it begins
follows from the sync before it, which brings tiles together at a time that is known. A window of
few steps is worked out step by step; in one of many, each step is spread evenly over its own time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pva.analysis.attribution import OPERANDS
from pva.analysis.selection import tiles_of
from pva.array_types import Floats, Values
from pva.data.tile_sets import sets_of_steps, tiles_of_sets

if TYPE_CHECKING:
    from pva.report import Report


# What a tile may do; the first stands for all that none of the others is.
ACTIVITIES = ("wait", "OnTileExecute", "DoExchange", "GlobalExchange", "StreamCopy")
LEAST = 1e-9  # of a cell: less is what sums of fractions leave between runs
MAX_CELLS = 1_500_000  # steps times tiles that are worked out one by one
ROWS = 1 << 19  # of `steps_by_ipu` that are looked at together
CLOCK_INTERVAL = 1024  # steps from one snapshot of `tile_clock` to the next (docs/report-format.md)
SYNCS = ("Sync", "SyncAns", "Sans")


@dataclass(frozen=True, slots=True)
class TileActivity:
    """An image of a window: `shares[activity, row, column]` of the time, as fractions of 1.

    Row i stands for the tiles `tiles[i]` to `tiles[i + 1]` (exclusive); `by_step` tells whether
    each step was placed on each tile, or spread over the time that it took on any.
    """

    shares: Floats
    tiles: Values
    by_step: bool


def tile_activity(
    report: Report,
    begin: int,
    end: int,
    *,
    columns: int,
    rows: int,
    tiles: tuple[int, int] | None = None,
) -> TileActivity:
    """Return what the tiles of a range do between two cycles; raises NotRecordedError."""
    data = report.dataset
    every = tiles_of(report)
    first, stop = tiles or (every.start, every.stop)
    first = min(max(first, 0), every.stop - 1)
    stop = min(max(stop, first + 1), every.stop)
    edges = np.unique(np.linspace(first, stop, min(rows, stop - first) + 1).astype(np.int64))
    begins, ends = (data.column("steps", name) for name in ("cycles_from", "cycles_to"))
    touched = np.flatnonzero((ends > begin) & (begins < end))
    columns, end = max(columns, 1), max(end, begin + 1)
    shape = (len(ACTIVITIES), len(edges) - 1, columns)
    shares = np.zeros(shape)
    by_step = len(touched) * (stop - first) <= MAX_CELLS
    if len(touched):
        # Tiles run ahead of the farthest one, so that a step may begin before the window does.
        span = slice(int(touched[0]), min(int(touched[-1]) + 2, len(begins)))
        fill = _by_step if by_step else _by_program
        fill(report, span, (begin, end), edges, shares)
    busy = shares[1:].sum(axis=0)
    shares[1:] /= np.maximum(busy, 1)
    running = _covered(begins[touched], ends[touched], (begin, end), columns)
    shares[0] = np.maximum(running[None] - shares[1:].sum(axis=0), 0)
    shares[shares < LEAST] = 0
    return TileActivity(shares, edges, by_step)


def _columns_of(begin: Any, end: Any, window: tuple[int, int], columns: int) -> tuple[Any, Any]:
    """Return begin and end in columns of the window, cut to it."""
    scale = columns / (window[1] - window[0])
    return tuple(np.clip((values - window[0]) * scale, 0, columns) for values in (begin, end))


def _covered(begin: Any, end: Any, window: tuple[int, int], columns: int) -> Floats:
    """Return how much of each column lies within any of some spans."""
    rows = np.zeros(len(begin), dtype=np.int64)
    left, right = _columns_of(begin, end, window, columns)
    covered: Floats = np.minimum(_spread(rows, left, right, 1, columns)[0], 1)
    return covered


def _spread(
    row: Values, begin: Floats, end: Floats, rows: int, columns: int, weight: Any = None
) -> Floats:
    """Add up spans, given in columns, over [row][column]: how much of a column each covers."""
    weight = np.ones(len(row)) if weight is None else weight
    partial, full = np.zeros(rows * (columns + 1)), np.zeros(rows * (columns + 1))
    for place, sign in ((begin, 1.0), (end, -1.0)):
        column = np.minimum(place.astype(np.int64), columns)
        key = row * (columns + 1) + column
        size = rows * (columns + 1)
        partial += np.bincount(key, sign * weight * (1 - (place - column)), size)
        full += np.bincount(key, sign * weight, size)
    before = np.cumsum(full.reshape(rows, -1), axis=1) - full.reshape(rows, -1)
    return (partial.reshape(rows, -1) + before)[:, :columns]


def _by_step(
    report: Report, span: slice, window: tuple[int, int], edges: Values, shares: Floats
) -> None:
    """Place each step on each tile."""
    tiles = slice(int(edges[0]), int(edges[-1]))
    first, clock = _anchored(report, span.start, tiles)
    steps = slice(first, span.stop)
    cost, activity = _costs(report, steps, tiles)
    begin = _begins(report, steps, tiles, clock, cost)
    row = np.searchsorted(edges, np.arange(tiles.start, tiles.stop), side="right") - 1
    size, columns = len(edges) - 1, shares.shape[2]
    weight = 1 / np.bincount(row, minlength=size)[row]
    for number in range(1, len(ACTIVITIES)):
        mine = np.flatnonzero(activity == number)
        left, right = _columns_of(begin[mine], begin[mine] + cost[mine], window, columns)
        at = (np.broadcast_to(values, left.shape).ravel() for values in (row, weight))
        place, weights = at
        shares[number] += _spread(place, left.ravel(), right.ravel(), size, columns, weights)


def _anchored(report: Report, step: int, tiles: slice) -> tuple[int, Values]:
    """Return a step no later, before which the clock of each tile is known, and these clocks."""
    data = report.dataset
    count = tiles.stop - tiles.start
    if not data.has("tile_clock"):
        return step, np.full(count, int(data.column("steps", "cycles_from")[step]))
    snapshot = step // CLOCK_INTERVAL
    return snapshot * CLOCK_INTERVAL, data.row("tile_clock", snapshot)[tiles].astype(np.int64)


def tile_ends(report: Report, step: int) -> Values:
    """Return when each tile ends a step; raises NotRecordedError."""
    tiles = tiles_of(report)
    every = slice(tiles.start, tiles.stop)
    first, clock = _anchored(report, step, every)
    steps = slice(first, step + 1)
    cost, _ = _costs(report, steps, every)
    last: Values = (_begins(report, steps, every, clock, cost) + cost)[-1]
    if report.dataset.texts("steps", "type")[step] in SYNCS:
        _, release, ipu = sync_delays(report)
        ends = ends_by_ipu(report, np.array([step]))[0]
        sets, of_step = tiles_of_sets(report.dataset), sets_of_steps(report.dataset)[step]
        joined = sets[of_step]
        last = np.where(joined, ends[ipu] - release[joined].max(initial=0) + release, last)
    return last


def _costs(report: Report, steps: slice, tiles: slice) -> tuple[Values, Values]:
    """Return cycles [step][tile], and what each step does."""
    data = report.dataset
    programs, place = np.unique(data.column("steps", "program")[steps], return_inverse=True)
    table, activity = _table(report, programs, tiles)
    return table[place], activity[place]


def _table(report: Report, programs: Values, tiles: slice) -> tuple[Values, Values]:
    """Return cycles [program][tile] of some programs, and what they do."""
    table = np.zeros((len(programs), tiles.stop - tiles.start), dtype=np.int64)
    activity = np.zeros(len(programs), dtype=np.int64)
    for number, mine, array, rows in _operands(report, programs):
        activity[mine] = number
        used, place = np.unique(rows[rows >= 0], return_inverse=True)
        table[mine[rows >= 0]] = report.dataset.chosen(array, used)[:, tiles][place]
    return table, activity


def _means(report: Report, programs: Values, edges: Values) -> tuple[Floats, Values]:
    """Return the mean cycles [program][range of tiles] of some programs, and what they do.

    Programs share compute sets and exchanges: each of these is added up once.
    """
    means = np.zeros((len(programs), len(edges) - 1))
    activity = np.zeros(len(programs), dtype=np.int64)
    tiles = slice(int(edges[0]), int(edges[-1]))
    for number, mine, array, rows in _operands(report, programs):
        activity[mine] = number
        used, place = np.unique(rows[rows >= 0], return_inverse=True)
        cycles = report.dataset.chosen(array, used)[:, tiles]
        sums = np.add.reduceat(cycles, edges[:-1] - edges[0], axis=1)
        means[mine[rows >= 0]] = (sums / np.diff(edges))[place]
    return means, activity


def _operands(report: Report, programs: Values) -> Iterator[tuple[int, Values, str, Values]]:
    """Return of each activity its programs, by place, the array of their cycles, and their rows.

    These are -1 where there is none.
    """
    data = report.dataset
    types = np.append(data.texts("programs", "type"), "")[programs]
    for tag, (column, name) in OPERANDS.items():
        array = f"{name}_cycles_by_tile" if tag == "OnTileExecute" else f"{name}_cycles"
        mine = np.flatnonzero(types == tag)
        if len(mine) and data.has(array):
            rows = data.column("programs", column)[programs[mine]]
            yield ACTIVITIES.index(tag), mine, array, rows


def _begins(report: Report, steps: slice, tiles: slice, clock: Values, cost: Values) -> Values:
    """Return when each step begins on each tile: what was run since the last sync, behind it.

    A sync lets the tiles that it joins go at a time that is known for the last of them.
    """
    data = report.dataset
    types = data.texts("steps", "type")[steps]
    is_sync = np.isin(types, SYNCS)
    run = np.cumsum(cost, axis=0)
    since = np.empty_like(run)
    of_step = sets_of_steps(data)[steps]
    sets = tiles_of_sets(data)
    _, release, ipu = sync_delays(report)
    last = np.array([release[of_set].max(initial=0) for of_set in sets])
    ends = ends_by_ipu(report, np.arange(steps.start, steps.stop)) - last[of_step, None]
    release, ipu, sets = release[tiles], ipu[tiles], sets[:, tiles]
    for some in np.unique(sets.T, axis=0):  # tiles of the same sets have the same syncs
        mine = np.flatnonzero((some == sets.T).all(axis=1))
        released = ends[:, ipu[mine]] + release[mine]
        joins = is_sync & some[of_step]
        sync = np.maximum.accumulate(np.where(joins, np.arange(len(types)), -1))
        sync = np.append(-1, sync[:-1])  # a sync itself begins where its tile came from
        at = released[sync] - run[sync][:, mine]
        since[:, mine] = np.where((sync >= 0)[:, None], at, clock[mine])
    begins: Values = since + run - cost
    return begins


def sync_delays(report: Report) -> tuple[Values, Values, Values]:
    """Return by tile how long it takes to ask for a sync and to be let go, and its IPU."""
    data = report.dataset
    per_ipu = max(int(data.value("target", "tiles_per_ipu")), 1)
    delay = np.full(per_ipu, max(int(data.value("target", "min_sync_delay")), 0))
    if data.has("relative_sync_delay"):
        delay = delay + data.array("relative_sync_delay")
    number = np.arange(max(data.of_replica("num_tiles"), 0))
    delay = delay[number % per_ipu]
    return (delay + 1) // 2, delay // 2, number // per_ipu


def ends_by_ipu(report: Report, steps: Values) -> Values:
    """Return when each of some steps, in order, ended on the last tile of each IPU, [step][IPU]."""
    data = report.dataset
    ipus = data.of_replica("num_ipus")
    ends = np.repeat(data.stored("steps", "cycles_to")[steps, None].astype(np.int64), ipus, axis=1)
    if not (len(steps) and data.length("steps_by_ipu")):
        return ends
    begin, stop = int(steps[0]), int(steps[-1]) + 1
    place = np.full(stop - begin, len(steps), dtype=np.int32)
    place[steps - begin] = np.arange(len(steps), dtype=np.int32)
    columns = [data.passed("steps_by_ipu", name) for name in ("step", "ipu", "to_max")]
    for first in range(0, len(columns[0]), ROWS):
        step, ipu, last = (column[first : first + ROWS] for column in columns)
        rows = np.flatnonzero((step >= begin) & (step < stop) & (ipu < ipus))
        at = place[step[rows] - begin]
        rows, at = rows[at < len(steps)], at[at < len(steps)]
        ends[at, ipu[rows]] = last[rows]
    return ends


def _by_program(
    report: Report, span: slice, window: tuple[int, int], edges: Values, shares: Floats
) -> None:
    """Spread each step over the time that it took on any tile."""
    data = report.dataset
    programs, place = np.unique(data.column("steps", "program")[span], return_inverse=True)
    mean, activity = _means(report, programs, edges)
    begin, end = (data.column("steps", name)[span] for name in ("cycles_from", "cycles_to"))
    columns = shares.shape[2]
    end = np.maximum(end, begin + 1)  # one hidden behind the step before takes no time of its own
    left, right = _columns_of(begin, end, window, columns)
    width = (window[1] - window[0]) / columns
    weight = width / (end - begin)
    executed = _spread(place, left, right, len(programs), columns, weight)
    for number in range(1, len(ACTIVITIES)):
        mine = activity == number
        shares[number] += mean[mine].T @ executed[mine] / width
