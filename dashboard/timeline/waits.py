"""The waits of IPUs for each other in a window, which are drawn as arrows: the longest of them."""

from __future__ import annotations

import numpy as np

from dashboard.store import Store
from pva.analysis.waiting.longest_syncs import longest_waits

MAX_KEPT = 200_000  # of the longest waits of a report
MAX_DRAWN = 60


def waits_in(store: Store, report: str, window: tuple[int, int], step: int) -> dict[str, object]:
    """Return the longest waits that touch a window, and those of a step; raises PvaError."""
    opened = store.report(report)
    frame = store.derived(
        report, "longest waits", lambda: longest_waits(opened, count=MAX_KEPT).frame()
    )
    begin, end, of_step = (frame[name].to_numpy() for name in ("cycles_from", "cycles_to", "step"))
    places = np.flatnonzero((end > window[0]) & (begin < window[1]))[:MAX_DRAWN]
    places = np.union1d(places, np.flatnonzero((of_step == step) & (step >= 0)))
    rows = frame.iloc[places].drop(columns=["run"])
    return {str(name): values.tolist() for name, values in rows.items()}
