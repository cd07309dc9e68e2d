"""What is live at the same time, by the modules of PyTorch that variables were made in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from pva.analysis.columns import analysis
from pva.analysis.memory.liveness import sizes_on
from pva.analysis.memory.step_comparison import STEP, alive_at, chosen_steps
from pva.analysis.operations.layers import MODULE, OUTSIDE, variable_owners_in
from pva.analysis.operations.modules import subtrees
from pva.analysis.table import Columns, joined, rows_of

if TYPE_CHECKING:
    from pva.report import Report

ORDER = 131  # of its analyses in the catalogue


@analysis(
    "operation kind source depth always_live:bytes *:bytes change:bytes",
    kind="class in the framework",
    source="file and line of its forward",
    **{"*": "bytes at this step"},
    operation="path of the module",
)
def live_by_module(
    report: Report,
    *,
    steps: Sequence[int] = (),
    ipu: int | None = None,
    tile: int | None = None,
) -> Columns:
    """Return what is live by module of PyTorch, with all that are within: always, and at steps.

    A column for each program step that is chosen, without any for the peak, with the bytes of
    variables that are not always live, on all tiles, one IPU or one tile; `change` is the last of
    them less the first. Modules of one parent are in the order of what is live most; variables of
    no module come last. Raises SelectionError, NotRecordedError.
    """
    steps = chosen_steps(report, steps)
    sizes = sizes_on(report, ipu=ipu, tile=tile)
    always = report.dataset.column("variables", "always_live")
    masks = {"always_live": always}
    masks |= {f"{STEP}{step}": alive_at(report, step) & ~always for step in steps}
    owners, place = np.unique(variable_owners_in(report, MODULE).astype(str), return_inverse=True)
    outside = owners == OUTSIDE
    tree = subtrees(report, owners[~outside].tolist())
    sums = {
        name: np.bincount(place[mask], sizes[mask], len(owners)).astype(np.int64)
        for name, mask in masks.items()
    }
    inside = dict(tree.columns) | {name: tree.summed(of[~outside]) for name, of in sums.items()}
    outer = {"operation": owners[outside], "kind": "", "source": "", "depth": 0}
    outer |= {name: of[outside] for name, of in sums.items()}
    at_steps = [*masks][1:]
    weights = inside["always_live"]
    if at_steps:
        weights = weights + np.max([inside[name] for name in at_steps], axis=0)
    order = np.array(tree.order(weights), dtype=np.int64)
    rows = joined((rows_of(inside, order), outer))
    change = rows[at_steps[-1]] - rows[at_steps[0]] if at_steps else 0
    return {**rows, "change": change}
