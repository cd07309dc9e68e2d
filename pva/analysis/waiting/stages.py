"""How a program is shared out among IPUs: which of them bounds it, and which layer could move."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pva.analysis.attribution import operations, summed
from pva.analysis.columns import analysis
from pva.analysis.execution.tile_activity import SYNCS
from pva.analysis.operations.layers import OUTSIDE, owners_in
from pva.analysis.table import Arrays, Columns, largest_first, rows_of
from pva.analysis.waiting.causes import SYNC, waits
from pva.analysis.waiting.segments import recorded_runs
from pva.array_types import Floats

if TYPE_CHECKING:
    from pva.report import Report

ORDER = 320  # of its analyses in the catalogue
LAYER = "popart"  # in whose operations users place their layers on IPUs


@analysis("ipu own_cycles:cycles waits:fraction waited_for:fraction")
def ipu_balance(report: Report) -> Columns:
    """Return how long each IPU works while others wait for it, the one that bounds the runs first.

    `own_cycles` are those in which its tiles do not wait for another IPU, `waits` the share of the
    cycles of the recorded runs in which they do, and `waited_for` how much of the waits of all
    other IPUs is for this one. Raises NotRecordedError.
    """
    total = _all_cycles(report)
    ipus = report.dataset.of_replica("num_ipus")
    table = waits(report).arrays
    rows = rows_of(table, (table["ipu"] != table["for_ipu"]) & (table["type"] != SYNC))
    waiting, waited_for = (_sums(rows, by, ipus) for by in ("ipu", "for_ipu"))
    columns = {
        "ipu": np.arange(ipus),
        "own_cycles": total - waiting,
        "waits": waiting / max(total, 1),
        "waited_for": waited_for / max(float(waited_for.sum()), 1),
    }
    return largest_first(columns, "waited_for")


@analysis("from_ipu to_ipu layers first last cycles:cycles longest:cycles saving:cycles")
def layer_moves(report: Report) -> Columns:
    """Return how even the IPUs would be if layers moved to a neighbour, the best move first.

    The first layers that run on `from_ipu`, the one that works longest, can go to the IPU before
    it, the last ones to the one behind it: `layers` of them, from `first` to `last`. They take
    `cycles` along: their part of the IPU's own cycles, by how long their steps take there.
    `longest` are then the most own cycles of any IPU, and `saving` how much less that is than now:
    what the runs are shorter by at most. Moves that save nothing are left out. Layers are PopART's
    operations, else those of `cycles_by_operation`. Raises NotRecordedError.
    """
    of_ipus = ipu_balance(report).arrays
    own_cycles = of_ipus["own_cycles"][np.argsort(of_ipus["ipu"])]
    bound = int(own_cycles.argmax())
    names, spent = _layers(report, bound, len(own_cycles))
    part = spent / max(float(spent.sum()), 1) * own_cycles[bound]
    parts = []
    for beside, order in ((bound - 1, slice(None)), (bound + 1, slice(None, None, -1))):
        if not 0 <= beside < len(own_cycles) or not len(names):
            continue
        moved = part[order].cumsum()
        longest_other = np.delete(own_cycles, [bound, beside]).max(initial=0)
        longest = np.maximum(
            np.maximum(own_cycles[bound] - moved, own_cycles[beside] + moved), longest_other
        )
        ends = [np.repeat(names[order][:1], len(names)), names[order]]
        first, last = ends if beside < bound else ends[::-1]
        count = np.arange(1, len(names) + 1)
        to = np.full(len(names), beside)
        parts.append((np.full(len(names), bound), to, count, first, last, moved, longest))
    names_of = ("from_ipu", "to_ipu", "layers", "first", "last", "cycles", "longest")
    values = [np.concatenate(column) for column in zip(*parts, strict=True)]
    columns = dict(zip(names_of, values or [own_cycles[:0]] * len(names_of), strict=True))
    columns["saving"] = own_cycles[bound] - columns["longest"]
    return largest_first(rows_of(columns, columns["saving"] > 0), "saving")


def _layers(report: Report, ipu: int, ipus: int) -> tuple[npt.NDArray[np.object_], Floats]:
    """Return the layers that an IPU runs most of, in order, and how long their steps take there."""
    data = report.dataset
    owners = owners_in(report, LAYER)
    if (owners == OUTSIDE).all():
        owners = operations(report)
    names, owner = np.unique(owners.astype(str), return_inverse=True)
    step, place, cycles = (data.column("steps_by_ipu", name) for name in ("step", "ipu", "cycles"))
    works = ~np.isin(data.texts("steps", "type"), SYNCS)[step]
    step, place, cycles = step[works], place[works], np.maximum(cycles[works], 0)
    layer = owner.reshape(-1)[data.column("steps", "program")[step]]
    spent = summed(layer * ipus + place, cycles, len(names) * ipus).reshape(-1, ipus)
    mine = (2 * spent[:, ipu] > spent.sum(axis=1)) & (names != OUTSIDE)
    layers_of_ipu = layer[(place == ipu) & (cycles > 0) & mine[layer]]
    order = layers_of_ipu[np.sort(np.unique(layers_of_ipu, return_index=True)[1])]
    return names[order].astype(object), spent[order, ipu].astype(np.float64)


def _sums(waits: Arrays, by: str, count: int) -> Floats:
    """Add up the cycles of waits by IPU."""
    sums: Floats = np.zeros(count)
    np.add.at(sums, waits[by], waits["cycles"])
    return sums


def _all_cycles(report: Report) -> int:
    """Return the cycles of the runs that were recorded step by step."""
    rows, _, _ = recorded_runs(report)
    return int(report.dataset.column("runs", "cycles")[rows].sum())
