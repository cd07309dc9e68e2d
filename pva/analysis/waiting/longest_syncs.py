"""The waits of IPUs for each other one by one, so that each can be drawn as an arrow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pva.analysis.attribution import labels
from pva.analysis.columns import analysis
from pva.analysis.selection import rows_wanted
from pva.analysis.table import Columns
from pva.analysis.waiting.chains import Clocks, clocks_of
from pva.analysis.waiting.segments import NONE
from pva.array_types import Integers

if TYPE_CHECKING:
    from pva.report import Report


ORDER = 290  # of its analyses in the catalogue


@analysis("run step ipu for_ipu for_tile name cycles_from:cycles cycles_to:cycles cycles:cycles")
def longest_waits(report: Report, *, count: int = 1000) -> Columns:
    """Return how long IPUs wait for another at each sync that joins them, the longest first.

    `ipu` waits from `cycles_from`, when the last of its own tiles arrives, to `cycles_to`, when
    `for_tile` on `for_ipu` does, which has run the program `name` last; the way of a tile to the
    sync counts as part of its work. `step` is the sync, -1 for the end of a run. The first `count`
    rows (default 1000). Raises SelectionError, NotRecordedError.
    """
    clocks = clocks_of(report)
    joined = clocks.ending >= 0
    last_of = np.where(joined[:, :, None], clocks.arrival, np.iinfo(np.int64).min).max(axis=1)
    late = np.where(clocks.joins.external[:, None], clocks.latest - last_of, 0)
    joins, ipus = (late > 0).nonzero()
    order = np.argsort(-late[joins, ipus], kind="stable")[: rows_wanted(count)]
    joins, ipus = joins[order], ipus[order]
    tile_set, for_ipu = np.divmod(clocks.winner[joins, ipus], clocks.latest.shape[1])
    segment = clocks.ending[joins, tile_set]
    kind = clocks.segments.kind[segment]
    place = _last_places(clocks)[kind, for_ipu]
    steps = clocks.segments.first[segment] + np.maximum(place, 0)
    programs = np.append(report.dataset.column("steps", "program"), NONE)[steps]
    return {
        "run": clocks.joins.run[joins],
        "step": clocks.joins.step[joins],
        "ipu": ipus,
        "for_ipu": for_ipu,
        "for_tile": clocks.kinds.last[kind, for_ipu],
        "name": np.where(place >= 0, labels(report, programs), ""),
        "cycles_from": last_of[joins, ipus],
        "cycles_to": clocks.latest[joins, ipus],
        "cycles": late[joins, ipus],
    }


def _last_places(clocks: Clocks) -> Integers:
    """Return the place of the last step that each kind's last tile runs: [kind][IPU], -1: none."""
    kinds = clocks.kinds
    of_item = np.repeat(np.arange(len(kinds.count)), kinds.stop_item - kinds.first_item)
    last = np.full((len(kinds.count), clocks.latest.shape[1]), NONE)
    np.maximum.at(last, of_item, np.where(kinds.own > 0, kinds.place[:, None], NONE))
    return last
