"""Finding events by name: how many there are, the first thousand, and any one by its rank."""

from __future__ import annotations

from typing import Any

import numpy as np

from pva.array_types import Integers
from pva.plot.lanes import Timeline

MAX_HITS = 1000
SEARCHED = ("step", "io", "block", "event", "flag")  # kinds of rows


def search(timeline: Timeline, text: str, rank: int | None = None) -> dict[str, Any]:
    """Search the events whose label contains a text, in any case, in order of begin.

    Gives `total` and, by row, begin, length and item, at most MAX_HITS events spread evenly over
    those found; or with `rank` the one event of that rank.
    """
    events = _matching(timeline, text)
    total = len(events)
    shown = events[:0]
    answer: dict[str, Any] = {"total": total}
    if rank is not None and total:
        answer["rank"] = rank = min(max(rank, 0), total - 1)
        shown = _ranked(timeline.tracks.begin[events], events, rank)
    elif rank is None:
        shown = events[np.linspace(0, total - 1, min(total, MAX_HITS)).astype(np.int64)]
    row = np.searchsorted(timeline.tracks.offset, shown, side="right") - 1
    begin, end = timeline.tracks.begin[shown], timeline.tracks.ends(shown)
    columns = {"row": row, "begin": begin, "length": end - begin, "item": timeline.item(shown)}
    return answer | {name: values.tolist() for name, values in columns.items()}


def _matching(timeline: Timeline, text: str) -> Integers:
    """Return the events of rows of events whose label holds the text."""
    folded = text.casefold()
    holds = np.fromiter(
        (folded in label.casefold() for label in timeline.labels), np.bool_, len(timeline.labels)
    )
    tracks = timeline.tracks
    if not len(tracks.begin):
        return np.zeros(0, dtype=np.int64)
    labels = np.flatnonzero(holds[tracks.label])
    searched = timeline.of_kinds(SEARCHED)
    if searched.all():
        return labels
    row = np.searchsorted(tracks.offset, labels, side="right") - 1
    return labels[searched[row]]


def _ranked(begin: Integers, events: Integers, rank: int) -> Integers:
    """Return the event of a rank by begin; of those that begin together, by row."""
    value = np.partition(begin, rank)[rank]
    together = events[begin == value]
    place = rank - int((begin < value).sum())
    one: Integers = together[place : place + 1]
    return one
