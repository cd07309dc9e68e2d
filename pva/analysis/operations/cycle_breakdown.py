"""What the cycles of the recorded runs were spent on: phases, layers and operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pva.analysis.attribution import (
    PHASES,
    elapsed,
    executions,
    layer_of,
    operations,
    phases,
    summed,
)
from pva.analysis.columns import analysis
from pva.analysis.table import Arrays, Columns, largest_first, rows_of
from pva.array_types import Integers, Texts

if TYPE_CHECKING:
    from pva.report import Report

ORDER = 160  # of its analyses in the catalogue
IDLE = "idle at end"

# Which figures of `tile_cycles` make up a phase.
_ACTIVITIES = {
    "compute": ("compute",),
    "exchange": ("do_exchange", "global_exchange", "copy_shared_structure"),
    "host exchange": ("stream_copy",),
    "sync": ("sync",),
    IDLE: ("idle_at_end",),
}


@analysis(
    "phase steps cycles:cycles share:fraction overlapped_cycles:cycles tile_cycles:tile-cycles "
    "tile_share:fraction"
)
def cycles_by_phase(report: Report) -> Columns:
    """Return which phase the time goes to: compute, exchange, host exchange or sync, longest first.

    `cycles` is by how many the phase's `steps` made the recorded runs longer, `share` of all of
    them; `overlapped_cycles` are more cycles of their slowest tiles, behind earlier steps (of a
    sync, the longest wait). `tile_cycles` counts each tile by itself, with a last row for tiles
    that had ended before their run; `tile_share` is of all tiles in all cycles. Exchange is on an
    IPU and between IPUs. Raises NotRecordedError without steps.
    """
    data = report.dataset
    phase = phases(report)
    longer = elapsed(report)
    hidden = np.maximum(data.column("steps", "cycles") - longer, 0)
    cycles, overlapped = (summed(phase, of, len(PHASES)) for of in (longer, hidden))
    by_tile = np.array(
        [
            sum(int(data.value("tile_cycles", activity)) for activity in _ACTIVITIES[word])
            for word in (*PHASES, IDLE)
        ]
    )
    columns = {
        "phase": [*PHASES, IDLE],
        "steps": np.bincount(phase, minlength=len(PHASES) + 1),
        "cycles": np.append(cycles, 0),
        "share": np.append(cycles, 0) / max(int(cycles.sum()), 1),
        "overlapped_cycles": np.append(overlapped, 0),
        "tile_cycles": by_tile,
        "tile_share": by_tile / max(int(by_tile.sum()), 1),
    }
    return largest_first(columns, "cycles", "tile_cycles")


@analysis(
    "operation layer steps cycles:cycles share:fraction compute:cycles exchange:cycles "
    "host_exchange:cycles sync:cycles flops:flop"
)
def cycles_by_operation(report: Report) -> Columns:
    """Return by how many cycles each operation made the recorded runs longer, most first.

    An operation is a call of a library or framework as debug contexts tell; without them, the path
    of a program's name without its last stage. `layer` is its outermost scope. Compute,
    exchange, host exchange and sync add up to `cycles`, and these to the cycles of all steps, of
    which `share` is a part. `flops` are those executed, as far as the compute sets tell. A program
    without a name is an operation by itself, such as `(Sync)`. Raises NotRecordedError.
    """
    names, spent = _spent(report, operations(report))
    layers = np.array([layer_of(name) for name in names.tolist()], dtype=object)
    return {"operation": names, "layer": layers, **spent}


@analysis(
    "layer steps cycles:cycles share:fraction compute:cycles exchange:cycles "
    "host_exchange:cycles sync:cycles flops:flop"
)
def cycles_by_layer(report: Report) -> Columns:
    """Return by how many cycles each layer made the recorded runs longer, most first.

    A layer is the outermost scope of an operation's path: `Layer1` of `Layer1/Fwd/Conv_1`. Columns
    are those of `cycles_by_operation`, whose rows add up to these. Raises NotRecordedError.
    """
    layers = np.array([layer_of(name) for name in operations(report).tolist()], dtype=object)
    names, spent = _spent(report, layers)
    return {"layer": names, **spent}


def _spent(report: Report, owners: Texts) -> tuple[Texts, Arrays]:
    """Return owners, the longest first, and the sums of the steps of their programs.

    The last of `owners` is that of unknown programs.
    """
    data = report.dataset
    names, owner_of = np.unique(owners.astype(str), return_inverse=True)
    programs = data.column("steps", "program")
    unknown = len(owners) - 1
    owner = owner_of[np.where((programs >= 0) & (programs < unknown), programs, unknown)]
    places = owner * len(PHASES) + phases(report)
    size = len(names) * len(PHASES)
    cycles = summed(places, elapsed(report), size).reshape(len(names), len(PHASES))
    total = cycles.sum(axis=1)
    by_phase = {word.replace(" ", "_"): cycles[:, place] for place, word in enumerate(PHASES)}
    columns = {
        "steps": np.bincount(owner, minlength=len(names)),
        "cycles": total,
        "share": total / max(int(total.sum()), 1),
        **by_phase,
        "flops": _flops(report, owner_of[:-1], len(names)),
    }
    order = np.argsort(-total, kind="stable")
    order = order[columns["steps"][order] > 0]
    return names.astype(object)[order], rows_of(columns, order)


def _flops(report: Report, owner_of_program: Integers, owners: int) -> Integers:
    """Count the floating-point operations executed by owner; nothing for those not told."""
    data = report.dataset
    if not data.has("compute_sets"):
        return np.zeros(owners, dtype=np.int64)
    flops = np.maximum(data.column("compute_sets", "flops"), 0)
    compute_sets = data.column("programs", "compute_set")
    runs = (data.texts("programs", "type") == "OnTileExecute") & (compute_sets >= 0)
    programs = np.flatnonzero(runs)
    executed = flops[compute_sets[programs]] * executions(report)[programs]
    return summed(owner_of_program[programs], executed, owners)
