"""Rules about the peak of liveness: who is live there, and what would lower it.

Each takes a report and gives findings, none when there is nothing to say. Raises NotRecordedError.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pva.analysis.insight_rules.finding import AT_PEAK, VARIABLES, Finding, part
from pva.analysis.memory.liveness import (
    LivenessOverview,
    added_up,
    bytes_by_step,
    liveness_overview,
)
from pva.analysis.memory.totals import CATEGORY_LABELS, memory_overview
from pva.units import count, share, size

if TYPE_CHECKING:
    from pva.report import Report

Bytes = npt.NDArray[np.int64]

WORTH_A_LOOK = 0.05  # of the peak
MOSTLY = 0.8
FULL_PRECISION = "float"


def largest_at_peak(report: Report) -> list[Finding]:
    """Report the largest of the variables live at the peak that are not always live."""
    live, variables = _peak(report)
    if not len(variables):
        return []
    sizes = report.dataset.column("variables", "bytes")
    largest = int(variables[sizes[variables].argmax()])
    amount = int(sizes[largest])
    if amount <= WORTH_A_LOOK * live.max_live:
        return []
    alone = np.where(np.arange(len(sizes)) == largest, sizes, 0)
    name = str(report.dataset.column("variables", "name")[largest])
    return [
        Finding(
            severity="cost",
            what=f"{name} takes {share(part(amount, live.max_live))} of what is live at the peak",
            where=_place(live),
            amount=amount,
            of=AT_PEAK,
            whole=live.max_live,
            advice="Make it smaller, work on a part of it at a time, or end its life earlier.",
            saving=_saved(report, bytes_by_step(report, alone)),
            on_fullest=_on_fullest(report, np.array([largest])),
            holds=VARIABLES,
            show="live_at_peak",
            step=live.peak_step,
            variable=largest,
        )
    ]


def idle_at_peak(report: Report) -> list[Finding]:
    """Report variables that are live at the peak but used only before and after it."""
    live, variables = _peak(report)
    first, last = _idle_stretch(report, variables, live.peak_step)
    idle = variables[first <= last]
    if not len(idle):
        return []
    sizes = report.dataset.column("variables", "bytes")
    steps = len(report.dataset.column("liveness_steps", "bytes"))
    begin, end = first[first <= last], last[first <= last] + 1
    alone = _saved(report, added_up(begin, end, sizes[idle], steps))
    if alone <= WORTH_A_LOOK * live.max_live:
        return []
    largest = int(idle[sizes[idle].argmax()])
    idle_bytes = int(sizes[idle].sum())
    name = str(report.dataset.column("variables", "name")[largest])
    subject = "1 variable is" if len(idle) == 1 else f"{count(len(idle))} variables are"
    return [
        Finding(
            severity="cost",
            what=f"{subject} kept over the peak without being used there, the largest {name}",
            where=f"{_place(live)}: {size(idle_bytes)}",
            amount=idle_bytes,
            of=AT_PEAK,
            whole=live.max_live,
            advice="Recompute them after the peak, or stream them out and in again.",
            saving=idle_bytes,  # other steps have idle variables, too, which recomputation frees
            on_fullest=_on_fullest(report, idle),
            holds=VARIABLES,
            show="variable_lifetimes",
            step=live.peak_step,
            variable=largest,
        )
    ]


def _idle_stretch(report: Report, variables: Bytes, peak: int) -> tuple[Bytes, Bytes]:
    """Return the first and last step around the peak at which variables are live and not used.

    `variables` ascend. Empty (last before first) for those that the step itself uses, or that
    nothing uses before or after: a life that begins too early or ends too late is another matter.
    """
    data = report.dataset
    steps = data.column("liveness_steps", "program")
    order = np.argsort(steps, kind="stable")
    mine = np.isin(data.column("access", "variable"), variables)
    program, used = (data.column("access", name)[mine] for name in ("program", "variable"))
    low, high = (np.searchsorted(steps[order], program, side=side) for side in ("left", "right"))
    lengths = high - low
    within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    when = order[np.repeat(low, lengths) + within]
    whose = np.searchsorted(variables, np.repeat(used, lengths))
    before = np.full(len(variables), -1)
    after = np.full(len(variables), len(steps))
    np.maximum.at(before, whose[when <= peak], when[when <= peak])
    np.minimum.at(after, whose[when >= peak], when[when >= peak])
    both = (before >= 0) & (after < len(steps))
    return np.where(both, before + 1, 1), np.where(both, after - 1, 0)


def full_precision_at_peak(report: Report) -> list[Finding]:
    """Report the float variables live at the peak, and what half precision would save."""
    data = report.dataset
    live, variables = _peak(report)
    of_type = data.column("variables", "type") == FULL_PRECISION
    always = data.column("variables", "always_live") & of_type
    sizes = data.column("variables", "bytes")
    always_bytes = int(sizes[always].sum())
    amount = always_bytes + int(sizes[variables][of_type[variables]].sum())
    if amount <= 2 * WORTH_A_LOOK * live.max_live:
        return []
    moving = bytes_by_step(report, np.where(of_type & ~always, sizes, 0))
    # Code and state of vertices that move and work on half as many bytes: at most half goes.
    variables_always = int(sizes[data.column("variables", "always_live")].sum())
    beside = max(live.always_live - variables_always, 0)
    fraction = share(min(part(amount, live.max_live), 1))
    named = np.concatenate((variables[of_type[variables]], np.flatnonzero(always)))
    largest = int(named[sizes[named].argmax()])
    name = str(data.column("variables", "name")[largest])
    return [
        Finding(
            severity="cost",
            what=f"Variables of type float take {fraction} of what is "
            f"live at the peak, the largest {name}",
            where=_place(live),
            amount=amount,
            of=AT_PEAK,
            whole=live.max_live,
            advice="Hold them as half where the model allows it.",
            saving=(always_bytes + beside) // 2 + _saved(report, moving // 2),
            on_fullest=_on_fullest(report, named) // 2,
            holds=VARIABLES,
            show="memory_by_type",
            step=live.peak_step,
            variable=largest,
        )
    ]


def mostly_always_live(report: Report) -> list[Finding]:
    """Report that most memory is always live, so that shorter lives cannot help."""
    live = liveness_overview(report)
    if live.always_live <= MOSTLY * live.max_live or not live.max_live:
        return []
    data = report.dataset
    names, sizes = (data.column("always_live_variables", name) for name in ("name", "bytes"))
    if not len(sizes):
        return []
    largest = int(sizes.argmax())
    category = CATEGORY_LABELS.get(str(names[largest]), str(names[largest]))
    return [
        Finding(
            severity="note",
            what=f"{share(part(live.always_live, live.max_live))} of what is live at the peak is "
            f"always live, most of it {category}",
            where=f"{category} takes {size(sizes[largest])}",
            amount=live.always_live,
            of=AT_PEAK,
            whole=live.max_live,
            advice="Shorter lives of variables save no more than the rest: look at code, stacks "
            "and weights first.",
            saving=live.max_live - live.always_live,
            show="always_live_variables",
            step=live.peak_step,
        )
    ]


def _peak(report: Report) -> tuple[LivenessOverview, Bytes]:
    """Return the peak, and the variables that are live there, without the always-live ones."""
    live = liveness_overview(report)
    data = report.dataset
    begin, end = (data.column("variable_intervals", name) for name in ("begin", "end"))
    alive = data.column("variable_intervals", "variable")
    at_peak = (begin <= live.peak_step) & (live.peak_step < end)
    return live, np.unique(alive[at_peak])


def _on_fullest(report: Report, variables: Bytes) -> int:
    """Return what variables take on the fullest tile; 0 where it was not recorded."""
    data = report.dataset
    if not (data.has("variable_pieces") and data.has("memory_by_tile")):
        return 0
    owner, tile, size = (data.column("variable_pieces", n) for n in ("variable", "tile", "bytes"))
    pieces = np.flatnonzero(tile == memory_overview(report).fullest_tile)
    return int(size[pieces[np.isin(owner[pieces], variables)]].sum())


def _place(live: LivenessOverview) -> str:
    return f"step {live.peak_step:,}, {live.peak_name or live.peak_type}"


def _saved(report: Report, less: Bytes) -> int:
    """Return by how much the peak falls when each step has so much less live."""
    live = report.dataset.column("liveness_steps", "bytes")
    if not len(live):
        return 0
    return int(live.max() - (live - less).max())
