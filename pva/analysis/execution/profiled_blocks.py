"""Where the time goes by lightweight profiling: blocks on one tile of each IPU, of all runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pva.analysis.attribution import summed
from pva.analysis.columns import analysis
from pva.analysis.selection import chosen, program_texts
from pva.analysis.table import Columns, groups_of, largest_first, rows_of

if TYPE_CHECKING:
    from pva.report import Report

ORDER = 390  # of its analyses in the catalogue
OVERFLOW = "overflow"
_INTEGERS = np.iinfo(np.int64)


@analysis(
    "name kind type ipu count total_cycles:cycles mean_cycles:cycles min_cycles:cycles "
    "max_cycles:cycles",
    name="Block of the program, or what emptied its buffer",
    kind="common: a Block; others fill or empty the buffer",
    ipu="IPU on which a tile recorded it",
    count="executions in all runs",
    total_cycles="cycles of all its executions, with those inside",
    mean_cycles="mean cycles of one execution",
    max_cycles="cycles of its longest execution",
)
def blocks(report: Report, *, run: int | None = None) -> Columns:
    """Sum up the blocks of each program on each IPU, of all runs or one; the most cycles first.

    `kind` is common for the blocks of the program, streamCopy, blockFlush for what emptied the
    buffer, and overflow for the gaps while it was full: blocks that began or ended in them are
    missing. `type` is that of the program: a stream copy has three. A block's cycles contain those
    of the blocks inside it. Raises SelectionError, NotRecordedError.
    """
    data = report.dataset
    table = data.table("blocks")
    kind = data.texts("blocks", "kind")
    types, names = program_texts(report, table["program"])
    overflow = kind == OVERFLOW
    columns = {
        "name": np.where(overflow, OVERFLOW, np.array(names, dtype=object)),
        "kind": kind.astype(object),
        "type": np.where(overflow, "", np.array(types, dtype=object)),
        "ipu": table["ipu"],
        "cycles": table["cycles_to"] - table["cycles_from"],
    }
    if run is not None:
        number = chosen("run", run, len(data.column("runs", "name")))
        columns = dict(rows_of(columns, table["run"] == number))
    cycles = columns.pop("cycles")
    keys, group = groups_of(columns)
    count = np.bincount(group, minlength=len(keys["ipu"]))
    total = summed(group, cycles, len(count))
    shortest, longest = (np.full(len(count), edge) for edge in (_INTEGERS.max, _INTEGERS.min))
    np.minimum.at(shortest, group, cycles)
    np.maximum.at(longest, group, cycles)
    sums = {
        **keys,
        "count": count,
        "total_cycles": total,
        "mean_cycles": total / count,
        "min_cycles": shortest,
        "max_cycles": longest,
    }
    return largest_first(sums, "total_cycles")
