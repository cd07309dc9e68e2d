"""What of the exchange with the host is hidden, run by run, and how many tiles would hide it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pva.analysis.attribution import PHASES, moved_bytes, phases
from pva.analysis.columns import analysis
from pva.analysis.spans import common, length, merged
from pva.analysis.table import Columns
from pva.array_types import Integers
from pva.data.tile_sets import IO, has_io_tiles, sets_of_steps

if TYPE_CHECKING:
    from pva.report import Report

ORDER = 370  # of its analyses in the catalogue
HOST, WORK = "host exchange", ("compute", "exchange")
LEAST_SHARE = 46  # tiles of an IPU to one I/O tile: PopART has 32 of 1,472 at least


@analysis(
    "run name ipu cycles:cycles io_cycles:cycles hidden_cycles:cycles exposed_cycles:cycles "
    "hidden_share:fraction exposed_share:fraction io_tiles",
    name="name of the run",
)
def overlap_io(report: Report) -> Columns:
    """Return of each run and IPU what of its exchange with the host was hidden beneath its work.

    `io_cycles`: cycles in which some tile of the IPU exchanges with the host; in `hidden_cycles` of
    them others compute or exchange among themselves, in `exposed_cycles` the IPU does nothing else.
    `hidden_share` is of `io_cycles`, `exposed_share` of the run's `cycles`. `io_tiles` are those of
    the IPU that only exchange: 0 when the same tiles exchange and compute, one after the other.
    Steps from their first begin to their last end on the IPU. Raises NotRecordedError.
    """
    data = report.dataset
    step, ipus, begin, end = (
        data.column("steps_by_ipu", c) for c in ("step", "ipu", "from_min", "to_max")
    )
    phase = np.where((begin >= 0) & (end >= begin), phases(report)[step], -1)
    aside = sets_of_steps(data)[step] == IO
    io = phase == PHASES.index(HOST)
    work = np.isin(phase, [PHASES.index(word) for word in WORK]) & ~aside
    of_run = data.column("steps", "run")[step]
    names, cycles = (data.column("runs", column) for column in ("name", "cycles"))
    rows = []
    for run in np.unique(of_run[of_run >= 0]).tolist():
        for ipu in range(data.of_replica("num_ipus")):
            mask = (of_run == run) & (ipus == ipu)
            moved, busy = (merged(begin[kind & mask], end[kind & mask]) for kind in (io, work))
            rows.append((run, ipu, length(moved), common(moved, busy)))
    number, io_ipus, spent, hidden = np.array(rows, dtype=np.int64).reshape(-1, 4).T
    exposed = spent - hidden
    return {
        "run": number,
        "name": names[number],
        "ipu": io_ipus,
        "cycles": cycles[number],
        "io_cycles": spent,
        "hidden_cycles": hidden,
        "exposed_cycles": exposed,
        "hidden_share": hidden / np.maximum(spent, 1),
        "exposed_share": exposed / np.maximum(cycles[number], 1),
        "io_tiles": data.length("io_tiles"),
    }


def io_tiles_wanted(report: Report) -> int:
    """Return how many tiles of an IPU would hold what the host exchanges, as PopART's guide says.

    The bytes of all that is exchanged, once, by those of a tile, rounded up to a power of two; 0
    where an IPU has too few. Raises NotRecordedError.
    """
    data = report.dataset
    per_ipu = int(data.value("target", "tiles_per_ipu"))
    received, sent = moved_bytes(report, "StreamCopy")
    by_exchange: Integers = (received + sent).sum(axis=1)
    used = data.column("programs", "exchange")[_streams(report)]
    moved = by_exchange[used[(used >= 0) & (used < len(by_exchange))]].sum() / max(
        data.of_replica("num_ipus"), 1
    )
    needed = int(np.ceil(moved / max(int(data.value("target", "bytes_per_tile")), 1)))
    power = 1 << max(needed - 1, 1).bit_length()
    tiles = max(power, 2 * (per_ipu // (2 * LEAST_SHARE)))
    return tiles if not has_io_tiles(data) and 2 * tiles <= per_ipu else 0


def _streams(report: Report) -> Integers:
    """List the programs that the recorded runs exchanged by with the host."""
    data = report.dataset
    programs = np.unique(data.column("steps", "program"))
    programs = programs[programs >= 0]
    copies: Integers = programs[data.texts("programs", "type")[programs] == "StreamCopy"]
    return copies
