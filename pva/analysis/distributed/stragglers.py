"""Which instance holds the others up, when, and by what.

Step k of an instance is its kth `Engine::run` and the time of the host before it. What instances
record of their collectives shows who waits: who comes last waits least. Without collectives the
time that is an instance's own (between runs, and in the callbacks of streams) shows who comes late.
Lateness is against the median of the other instances, so that no clocks are compared.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from pva.analysis.columns import analysis
from pva.analysis.distributed.events import (
    CALLBACK,
    COLLECTIVE,
    RUN,
    Events,
    SeveralInstances,
    host_events,
)
from pva.analysis.table import Arrays, Columns, largest_first, rows_of
from pva.array_types import Floats

ORDER = 430  # of its analyses in the catalogue

FEWEST_STEPS = 4
IMPACT = 0.05  # of the run that others must wait for an instance
CERTAIN = 5.0  # deviations by which its mean lateness exceeds that of the others
EXPLAINED = 0.8  # of the wait that a cause must explain
NORMAL = 1.4826  # standard deviations in a median absolute deviation
CAUSES = {"between": "late start at Engine::run", "callback": "stream callbacks",
          "compute": "the run itself"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Steps:
    """Times of steps [instance, step], in nanoseconds, not a number where an instance has none.

    between     from the end of the run before to the begin of this one
    callback    in callbacks of streams, inside the run
    collective  in collectives, inside the run
    compute     what else is inside the run
    """

    between: Floats
    callback: Floats
    collective: Floats
    compute: Floats

    @property
    def shows_waits(self) -> bool:
        """Return whether collectives were recorded."""
        return bool(np.nansum(self.collective) > 0)


@analysis(
    "instance host straggler cause wait_ns:ns wait_share:fraction explained:fraction steps last "
    "worst_step worst_wait_ns:ns between_ns:ns callback_ns:ns compute_ns:ns basis",
    cause="what explains 80 % of the wait or more; empty where nothing does",
    wait_ns="what the median of the others waits, in the steps in which it comes last",
    wait_share="wait as a part of all steps",
    last="steps in which it came last",
    steps="runs after its first one",
)
def stragglers(run: SeveralInstances) -> Columns:
    """Return which instances hold the others up, how long, when and by what, the worst first.

    A row for each instance with runs. `wait_ns`: what the median of the others waits for it in the
    steps in which it comes last, `wait_share` of the time of all steps. A `straggler` makes them
    wait 5 % of the time or more, and is later than the others by more than their steps vary.
    `cause` is what explains 80 % of its wait or more (late start at Engine::run, stream callbacks,
    the run itself); else it is empty. `explained` is that part for what explains most. Of the steps
    `last` are those in which it came last, `worst_step` is that with the longest wait. `basis`:
    collectives, or own time where none were recorded: then the waits are what others would wait.
    """
    events = [one for one in host_events(run) if len(one.of(RUN)[0]) > 1]
    if len(events) < 2:
        return {name: np.zeros(0, dtype=kind) for name, kind in _COLUMNS.items()}
    steps = _steps(events)
    with warnings.catch_warnings():  # steps that one instance alone has
        warnings.simplefilter("ignore", RuntimeWarning)
        rows = _judged(events, steps)
    columns: Arrays = {name: np.asarray(rows[name]).astype(kind) for name, kind in _COLUMNS.items()}
    in_order = rows_of(columns, np.argsort(columns["instance"], kind="stable"))
    return largest_first(in_order, "straggler", "wait_ns")


_COLUMNS: dict[str, type] = {
    "instance": np.int64, "host": np.object_, "straggler": np.bool_, "cause": np.object_,
    "wait_ns": np.int64, "wait_share": np.float64, "explained": np.float64, "steps": np.int64,
    "last": np.int64, "worst_step": np.int64, "worst_wait_ns": np.int64, "between_ns": np.int64,
    "callback_ns": np.int64, "compute_ns": np.int64, "basis": np.object_,
}  # fmt: skip


def _steps(events: list[Events]) -> Steps:
    """Cut the time of each instance into its steps; the first begins with its second run."""
    count = max(len(one.of(RUN)[0]) for one in events) - 1
    between, callback, collective, inside = (
        np.full((len(events), count), np.nan) for _ in range(4)
    )
    for row, one in enumerate(events):
        begin, end = one.of(RUN)
        end = np.maximum.accumulate(end)
        steps = len(begin) - 1
        between[row, :steps] = np.maximum(begin[1:] - end[:-1], 0)
        callback[row, :steps] = _inside(one, CALLBACK)[1:]
        collective[row, :steps] = _inside(one, COLLECTIVE)[1:]
        inside[row, :steps] = (end - begin)[1:]
    return Steps(between, callback, collective, np.maximum(inside - callback - collective, 0))


def _inside(one: Events, kind: str) -> Floats:
    """Return how long each run of an instance is inside events of a kind."""
    begin, end = one.of(RUN)
    first, last = one.of(kind)
    run = np.searchsorted(begin, first, side="right") - 1
    within = (run >= 0) & (first < end[np.maximum(run, 0)])
    took = (last - first)[within].astype(np.float64)
    return np.bincount(run[within], weights=took, minlength=len(begin)).astype(np.float64)


def _judged(events: list[Events], steps: Steps) -> dict[str, object]:
    shows_waits = steps.shows_waits
    own_time = steps.between + steps.callback
    late = -_excess(steps.collective) if shows_waits else _excess(own_time)
    comparable = (~np.isnan(late)).sum(axis=0) > 1
    late = np.where(comparable, late, np.nan)
    is_last = late == np.nanmax(late, axis=0)
    waits = np.where(is_last, np.maximum(late, 0), 0)
    total = own_time + steps.compute + steps.collective
    share = waits.sum(axis=1) / max(float(np.nanmedian(np.nansum(total, axis=1))), 1.0)
    counts = (~np.isnan(late)).sum(axis=1)
    is_straggler = (share >= IMPACT) & (_deviations(late) > CERTAIN) & (counts >= FEWEST_STEPS)
    causes = {
        "between": steps.between, "callback": steps.callback, "compute": steps.compute,
    }  # fmt: skip
    parts = {name: np.nansum(np.where(is_last, _excess(time), 0), axis=1)
             for name, time in causes.items()}  # fmt: skip
    possible = list(causes) if shows_waits else ["between", "callback"]
    most = np.argmax([parts[name] for name in possible], axis=0)
    explained = np.array([parts[possible[best]][row] for row, best in enumerate(most)])
    explained = explained / np.maximum(waits.sum(axis=1), 1)
    return {
        "instance": [one.instance for one in events], "host": [one.host for one in events],
        "straggler": is_straggler,
        "cause": [CAUSES[possible[best]] if guilty and part >= EXPLAINED else ""
                  for best, guilty, part in zip(most, is_straggler, explained, strict=True)],
        "wait_ns": waits.sum(axis=1), "wait_share": np.minimum(share, 1),
        "explained": np.maximum(explained, 0), "steps": counts, "last": is_last.sum(axis=1),
        "worst_step": waits.argmax(axis=1) + 1, "worst_wait_ns": waits.max(axis=1),
        **{f"{name}_ns": part for name, part in parts.items()},
        "basis": ["collectives" if shows_waits else "own time"] * len(events),
    }  # fmt: skip


def _excess(times: Floats) -> Floats:
    """Return by how much each time exceeds the median of the other instances at its step."""
    return times - _median_of_others(times)


def _median_of_others(times: Floats) -> Floats:
    """Return of each instance and step the median of the others; not a number without any."""
    order = np.argsort(times, axis=0)  # what is no number comes last
    rank = np.argsort(order, axis=0)
    ranked = np.take_along_axis(times, order, axis=0)
    other_count = (~np.isnan(times)).sum(axis=0) - 1
    low, high = (np.maximum((other_count - 1) // 2, 0), np.maximum(other_count // 2, 0))
    ends = (
        np.take_along_axis(ranked, np.minimum(place + (place >= rank), len(times) - 1), axis=0)
        for place in (low, high)
    )
    median: Floats = np.where((other_count > 0) & ~np.isnan(times), sum(ends) / 2, np.nan)
    return median


def _deviations(late: Floats) -> Floats:
    """Return by how many deviations the mean lateness of each exceeds the median of the others.

    A deviation is what the means of the others vary, and no less than the steps of instances let
    a mean vary.
    """
    means = np.nanmean(late, axis=1)
    counts = np.maximum((~np.isnan(late)).sum(axis=1), 1)
    spread = NORMAL * np.nanmedian(np.abs(late - np.nanmedian(late, axis=1)[:, None]))
    other_means = [np.delete(means, row) for row in range(len(means))]
    middle = np.array([np.nanmedian(one) for one in other_means])
    vary = np.array([NORMAL * np.nanmedian(np.abs(one - np.nanmedian(one))) for one in other_means])
    least = np.maximum(spread / np.sqrt(counts), 1.0)
    deviations: Floats = (means - middle) / np.fmax(vary, least)
    return deviations
