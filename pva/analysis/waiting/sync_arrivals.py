"""Who arrives at a sync last, and how long the others wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pva.analysis.attribution import labels
from pva.analysis.columns import analysis
from pva.analysis.selection import chosen
from pva.analysis.table import Columns, largest_first
from pva.analysis.waiting.chains import clocks_of
from pva.analysis.waiting.segments import used_sets
from pva.data.tile_sets import tiles_of_sets

if TYPE_CHECKING:
    from pva.report import Report


ORDER = 280  # of its analyses in the catalogue


@analysis(
    "ipu tile cycle:cycles name waits:cycles mean_wait:cycles",
    ipu="IPU that joins",
    tile="tile of the IPU that arrives last",
)
def arrivals(report: Report, *, step: int) -> Columns:
    """Return who arrives at a sync last: of each IPU its last tile, the latest first.

    `tile` arrives at `cycle`, its way to the sync counted, after it has run the program `name`;
    `waits` is how long it waits for the last tile that the sync joins it with, and `mean_wait` how
    long a tile of its IPU does. An IPU whose I/O tiles join as well has two rows. No rows for what
    is no sync. Raises SelectionError, NotRecordedError.
    """
    data = report.dataset
    chosen("step", step, len(data.column("steps", "program")))
    clocks = clocks_of(report)
    segments, kinds = clocks.segments, clocks.kinds
    (joins,) = np.nonzero(clocks.joins.step == step)
    sets = tiles_of_sets(data)[used_sets(report)]
    ipus = clocks.latest.shape[1]
    rows = []
    for join in joins.tolist():
        for place in np.flatnonzero(clocks.ending[join] >= 0).tolist():
            segment = clocks.ending[join, place]
            kind = segments.kind[segment]
            items = slice(kinds.first_item[kind], kinds.stop_item[kind])
            own_cycles, waited = kinds.own[items], kinds.waited[items].sum(axis=0)
            ran = np.vstack([np.ones((1, ipus), dtype=np.bool_), own_cycles > 0])
            last = len(own_cycles) - ran[::-1].argmax(axis=0) - 1  # of its items, -1 for none
            of_ipu = max(int(sets[place].sum()) // ipus, 1)
            steps = segments.first[segment] + np.append(kinds.place[items], 0)[last]
            programs = np.where(last >= 0, data.column("steps", "program")[steps], -1)
            waits = clocks.latest[join] - clocks.arrival[join, place]
            names = np.where(last >= 0, labels(report, programs), "")
            rows.append(
                (np.arange(ipus), kinds.last[kind], clocks.arrival[join, place], names, waits,
                 waits + (waited + kinds.delay[kind]) / of_ipu)
            )  # fmt: skip
    columns = ["ipu", "tile", "cycle", "name", "waits", "mean_wait"]
    joined = [np.concatenate(column) for column in zip(*rows, strict=True)]
    table = dict(zip(columns, joined or [np.zeros(0, np.int64)] * 6, strict=True))
    return largest_first(table, "cycle")
