"""What is live on each tile at each program step: the two sides of liveness in one picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pva.analysis.columns import analysis
from pva.analysis.memory.liveness import Rows
from pva.analysis.selection import chosen, program_texts, rows_wanted, tile_count
from pva.analysis.table import Columns

if TYPE_CHECKING:
    from pva.report import Report


ORDER = 120  # of its analyses in the catalogue


@analysis("step type name tile last_tile ipu fullest_tile live:bytes always_live:bytes")
def liveness_map(
    report: Report,
    *,
    rows: int = 64,
    columns: int = 96,
    first_step: int = 0,
    last_step: int | None = None,
) -> Columns:
    """Return how much is live on each tile at each program step: bytes by group of tiles and step.

    At most `rows` groups of neighbouring tiles, none of which spans two IPUs, and `columns` steps.
    Of each stretch of steps, the `step` at which most is live on all tiles; of each group, from
    `tile` to `last_tile`, its `fullest_tile` there. `live` counts the `always_live` bytes of that
    tile; gaps are not included. Raises SelectionError, NotRecordedError.
    """
    data = report.dataset
    steps = _steps(report, rows_wanted(columns), first_step, last_step)
    begin, end = _groups(report, rows_wanted(rows))
    live = _live(report, steps)
    always = np.asarray(data.array("always_live_bytes"), dtype=np.int64)
    live += always[:, None]
    fullest = _fullest(live, begin, end)
    types, names = program_texts(report, data.column("liveness_steps", "program")[steps])
    groups, count = len(begin), len(steps)
    tiles = fullest.T.ravel()
    return {
        "step": np.repeat(steps, groups),
        "type": np.repeat(np.array(types, dtype=object), groups),
        "name": np.repeat(np.array(names, dtype=object), groups),
        "tile": np.tile(begin, count),
        "last_tile": np.tile(end - 1, count),
        "ipu": np.tile(begin // _tiles_per_ipu(report), count),
        "fullest_tile": tiles,
        "live": live[tiles, np.repeat(np.arange(count), groups)],
        "always_live": always[tiles],
    }


def _steps(report: Report, most: int, first: int, last: int | None) -> Rows:
    """Return the step of each stretch at which most is live, in order."""
    live = report.dataset.column("liveness_steps", "bytes")
    if not len(live):
        return np.zeros(0, dtype=np.int64)
    first = chosen("step", first, len(live))
    stop = len(live) if last is None else chosen("step", last, len(live)) + 1
    count = min(most, max(stop - first, 0))
    edges = first + np.arange(count) * (stop - first) // max(count, 1)
    within = live[first:stop]
    order = np.lexsort((-within, np.searchsorted(edges, np.arange(first, stop), side="right")))
    places = np.sort(order[edges - first]) if count else order[:0]
    return np.asarray(first + places, dtype=np.int64)


def _tiles_per_ipu(report: Report) -> int:
    return max(int(report.dataset.value("target", "tiles_per_ipu")), 1)


def _groups(report: Report, most: int) -> tuple[Rows, Rows]:
    """Return first tile and end of each group of neighbouring tiles; each IPU is cut alike."""
    tiles, per_ipu = tile_count(report), _tiles_per_ipu(report)
    ipus = -(-tiles // per_ipu)
    of_ipu = min(max(most // max(ipus, 1), 1), per_ipu) if most else 0
    cuts = np.arange(of_ipu) * per_ipu // max(of_ipu, 1)
    begin = (np.arange(ipus)[:, None] * per_ipu + cuts).ravel()
    begin = begin[begin < tiles].astype(np.int64)
    return begin, np.append(begin[1:], tiles).astype(np.int64)[: len(begin)]


def _live(report: Report, steps: Rows) -> Rows:
    """Return the not-always-live bytes by [tile][step].

    An interval of a variable adds the bytes of each of its pieces where it begins, and takes them
    away where it ends.
    """
    data, count = report.dataset, len(steps)
    variable, begin, end = (
        data.column("variable_intervals", name) for name in ("variable", "begin", "end")
    )
    from_column, to_column = (np.searchsorted(steps, moment) for moment in (begin, end))
    seen = to_column > from_column
    variable, from_column, to_column = variable[seen], from_column[seen], to_column[seen]
    owner, tile, size = (
        data.column("variable_pieces", name) for name in ("variable", "tile", "bytes")
    )
    by_owner = np.argsort(owner, kind="stable")
    sorted_owner = owner[by_owner]
    low, high = (np.searchsorted(sorted_owner, variable, side=side) for side in ("left", "right"))
    pieces = high - low  # of each interval
    offset = np.repeat(low - (np.cumsum(pieces) - pieces), pieces)
    place = by_owner[offset + np.arange(len(offset))]
    change = np.zeros(tile_count(report) * (count + 1), dtype=np.int64)
    for columns, sign in ((from_column, 1), (to_column, -1)):
        cells = tile[place].astype(np.int64) * (count + 1) + np.repeat(columns, pieces)
        change += np.bincount(cells, sign * size[place], len(change)).astype(np.int64)
    live: Rows = np.cumsum(change.reshape(-1, count + 1), axis=1)[:, :count]
    return live


def _fullest(live: Rows, begin: Rows, end: Rows) -> Rows:
    """Return the fullest tile by [group][step]."""
    fullest = np.zeros((len(begin), live.shape[1]), dtype=np.int64)
    for group, (low, high) in enumerate(zip(begin.tolist(), end.tolist(), strict=True)):
        fullest[group] = low + live[low:high].argmax(axis=0)
    return fullest
