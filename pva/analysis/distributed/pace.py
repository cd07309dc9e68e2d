"""The instances of a run over time: the pace of a label, and what each does when."""

from __future__ import annotations

import re

import numpy as np

from pva.analysis.columns import analysis
from pva.analysis.distributed.clocks import Clock, compared, residual_ns
from pva.analysis.distributed.events import KINDS, Events, SeveralInstances, host_events
from pva.analysis.selection import rows_wanted
from pva.analysis.spans import merged
from pva.analysis.table import Columns, joined
from pva.array_types import Integers
from pva.lazy import pandas as pd

ORDER = 440  # of its analyses in the catalogue


@analysis("instance host occurrence begin_ns:ns duration_ns:ns period_ns:ns late_ns:ns")
def instance_pace(run: SeveralInstances, *, label: str = "Engine::run") -> Columns:
    """Return when each instance came to the nth event of a label, and how late it was.

    `begin_ns` counts from the begin of the run, `late_ns` from the first instance that came to it:
    0 where that is no more than the clocks may be off (`clock_residual`), and both are missing
    where times are not compared. `period_ns` lasts from the event before to this one.
    """
    events = host_events(run, {"label": re.compile(re.escape(label))})
    clocks = {one.instance: one for one in compared(host_events(run))}
    parts = [_paced(one, clocks[one.instance]) for one in events] or [_paced(*_NOTHING)]
    columns = joined(parts)
    occurrence, begin = columns["occurrence"], columns["begin_ns"]
    first = np.full(int(occurrence.max(initial=-1)) + 1, np.iinfo(np.int64).max)
    is_timed = ~np.ma.getmaskarray(begin)
    np.minimum.at(first, occurrence[is_timed], np.ma.getdata(begin)[is_timed])
    late = begin - first[occurrence]
    late[late <= residual_ns(clocks.values())] = 0
    return {**columns, "late_ns": late}


def _paced(one: Events, clock: Clock) -> Columns:
    begin, end = one.of("label")
    is_aligned = clock.begin_ns is not None
    return {
        "instance": np.full(len(begin), one.instance, np.int64),
        "host": np.full(len(begin), one.host, dtype=object),
        "occurrence": np.arange(len(begin)),
        "begin_ns": np.ma.MaskedArray(begin + (clock.begin_ns or 0),
                                      np.full(len(begin), not is_aligned)),
        "duration_ns": end - begin,
        "period_ns": np.ma.MaskedArray(np.diff(begin, prepend=begin[:1]),
                                       np.arange(len(begin)) == 0),
    }  # fmt: skip


_NO_TIMES = np.zeros(0, np.int64)
_NOTHING = (Events(0, "", 0, 0, {"label": (_NO_TIMES, _NO_TIMES)}), Clock(0, "", "none"))


@analysis(
    "instance host part begin_ns:ns end_ns:ns run:fraction callback:fraction collective:fraction"
)
def instance_utilisation(run: SeveralInstances, *, count: int = 60) -> Columns:
    """Return what part of the time each instance spends in runs, callbacks and collectives.

    A row for each instance and each of at most `count` parts of the run's time, none shorter than
    the clocks may be off (`clock_residual`). `run` has what is inside of it, too: callbacks, in
    which the device waits for the host, and collectives, in which instances wait for each other.
    Instances whose times are not compared are left out.
    """
    events = host_events(run)
    clocks = {one.instance: one for one in compared(events)}
    placed = [(one, clocks[one.instance].begin_ns or 0) for one in events
              if clocks[one.instance].begin_ns is not None]  # fmt: skip
    edges = _edges(placed, list(clocks.values()), rows_wanted(count))
    parts = [
        {"instance": one.instance, "host": one.host, "part": np.arange(len(edges) - 1),
         "begin_ns": edges[:-1], "end_ns": edges[1:]}
        | {kind: _covered(one, kind, edges - at) for kind in KINDS}
        for one, at in placed
    ]  # fmt: skip
    if parts:
        return joined(parts)
    numbers = dict.fromkeys(("part", "begin_ns", "end_ns"), np.zeros(0, np.int64))
    shares = dict.fromkeys(KINDS, np.zeros(0))
    return {"instance": np.zeros(0, np.int64), "host": [], **numbers, **shares}


def _edges(placed: list[tuple[Events, int]], clocks: list[Clock], count: int) -> Integers:
    """Cut the time from the first event to the last into parts of one length."""
    begins = [at + int(begin[0]) for one, at in placed for begin, _ in one.spans.values()
              if len(begin)]  # fmt: skip
    ends = [at + int(end.max()) for one, at in placed for _, end in one.spans.values() if len(end)]
    first, last = min(begins, default=0), max(ends, default=0)
    parts = max(min(count, (last - first) // max(residual_ns(clocks), 1)), 1)
    return np.linspace(first, max(last, first + 1), parts + 1).astype(np.int64)


def _covered(one: Events, kind: str, edges: Integers) -> Integers:
    """Return what part of the time between edges lies in events of a kind."""
    begin, end = merged(*one.of(kind))
    moments = np.stack([begin, end], axis=1).ravel().astype(np.float64)
    spent = np.repeat(np.cumsum(end - begin), 2).astype(np.float64)
    spent[::2] -= end - begin
    before = np.interp(edges, moments, spent) if len(moments) else np.zeros(len(edges))
    shares: Integers = np.clip(np.diff(before) / np.maximum(np.diff(edges), 1), 0, 1)
    return shares


def pace_of_instances(pace: pd.DataFrame) -> pd.DataFrame:
    """Return by instance its median run, `duration_ns`, and its mean lateness, `late_ns`."""
    rows = pace.groupby("instance")
    late = rows["late_ns"].mean().astype("float64")
    return pd.DataFrame({"duration_ns": rows["duration_ns"].median(), "late_ns": late})
