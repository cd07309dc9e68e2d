"""What a stream copy moves: to or from which IPUs, tiles and variables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pva.analysis.columns import analysis
from pva.analysis.programs.details import program_by_tile
from pva.analysis.selection import chosen
from pva.analysis.table import Columns

if TYPE_CHECKING:
    from pva.report import Report

ORDER = 310  # of its analyses in the catalogue
WAYS = {"bytes_received": "to the device", "bytes_sent": "to the host"}


@analysis(
    "ipu way tiles bytes:bytes most_bytes:bytes fullest_tile",
    ipu="IPU at that end",
    way="in or out, seen from the host",
    tiles="tiles of the IPU that take part",
    bytes="bytes of all of these",
)
def stream_ends(report: Report, *, step: int) -> Columns:
    """Return where an executed stream copy takes its data to, or from: a row for each IPU and way.

    `bytes` on `tiles` of the IPU, at most `most_bytes`, on `fullest_tile`. No rows for what is no
    stream copy. Raises SelectionError, NotRecordedError.
    """
    data = report.dataset
    programs = data.column("steps", "program")
    program = int(programs[chosen("step", step, len(programs))])
    rows = []
    if program >= 0 and str(data.texts("programs", "type")[program]) == "StreamCopy":
        by_tile = program_by_tile(report, program=program).arrays
        for column, way in WAYS.items():
            tile, ipu, moved = (by_tile[name] for name in ("tile", "ipu", column))
            for number in np.unique(ipu[moved > 0]).tolist():
                mine = np.where(ipu == number, moved, 0)
                most = int(mine.argmax())
                rows.append(
                    (number, way, int((mine > 0).sum()), int(mine.sum()), int(mine[most]),
                     int(tile[most]))
                )  # fmt: skip
    names = ("ipu", "way", "tiles", "bytes", "most_bytes", "fullest_tile")
    return {name: [row[place] for row in rows] for place, name in enumerate(names)}


@analysis("variable name bytes:bytes written")
def stream_variables(report: Report, *, step: int) -> Columns:
    """Return which variables an executed stream copy writes on the device, or reads there.

    Raises SelectionError, NotRecordedError.
    """
    data = report.dataset
    programs = data.column("steps", "program")
    program = int(programs[chosen("step", step, len(programs))])
    rows = np.flatnonzero(data.column("access", "program") == program)
    variables = data.column("access", "variable")[rows]
    return {
        "variable": variables,
        "name": data.column("variables", "name")[variables],
        "bytes": data.column("variables", "bytes")[variables],
        "written": data.column("access", "write")[rows].astype(bool),
    }
