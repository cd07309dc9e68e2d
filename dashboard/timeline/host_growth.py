"""The host timeline of a file that grew: only what came since is read and laid out.

What had ended some time before the last commit stays as it was; events that were open then, and all
that came, are laid out again beside it, until they are so many that all is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dashboard.store import Trace
from pva.analysis.timeline.growth import joined
from pva.analysis.timeline.level_of_detail import Tracks
from pva.analysis.timeline.pyramid import build
from pva.array_types import Values
from pva.plot.host import (
    HostTimeline,
    Known,
    Making,
    host_timeline,
    kinds_of,
    made,
    numbered,
    rows_of,
)

MAX_LATE, LATE_SHARE = 50_000, 8  # events laid out again: at most these, or one in so many


def grown_timeline(trace: Trace, former: HostTimeline | None) -> HostTimeline:
    """Lay out a trace that may be that of a former timeline with more at its end."""
    later = _later(trace, former) if former is not None else None
    return later or host_timeline(trace)


def _later(trace: Trace, former: HostTimeline) -> HostTimeline | None:
    """Put what came behind what was; None where that is not the same trace, or too much came."""
    if not former.until or not _has_grown(trace, former):
        return None
    tracks = former.timeline.tracks
    lengths = tracks.seam - tracks.offset[:-1]
    columns = trace.since(former.until)
    late = sum(map(len, columns))
    if late > max(MAX_LATE, int(lengths.sum()) // LATE_SHARE):
        return None
    settled = np.append(former.settled, np.zeros(len(trace.labels) + 1 - len(former.settled)))
    making = Making(settled.copy(), since=former.until)
    if former.timeline.lanes and former.timeline.lanes[0].kinds == ("derived",):
        events = np.arange(*tracks.offset[-2:])
        events = events[tracks.ends(events) <= former.until]
        making.runs.append((tracks.begin[events], tracks.ends(events), tracks.label[events]))
    second = build(rows_of(trace, columns, making, former.threads), kinds_of(trace))
    places = _places(former.threads, making.threads, tracks.rows)
    if not _is_whole(trace, former, columns) or not _follows(tracks, places, second):
        return None
    grown = joined(tracks, places, second)
    noted = numbered(making, grown.seam)
    _carry(former, places, grown, noted[0])
    return made(trace, making, grown, noted, (former.until, settled))


def _has_grown(trace: Trace, former: HostTimeline) -> bool:
    """Return whether all labels and threads of before are in the trace, in their places."""
    labels, channels = former.timeline.labels, former.timeline.tracks.kind
    count, threads = len(labels), former.threads
    return (
        trace.anchor.wall_ns == former.timeline.wall_ns
        and tuple(trace.labels[:count]) == tuple(labels)
        and trace.label_channels[:count].tolist() == channels[:count].tolist()
        and [thread.tid for thread in trace.threads[: len(threads)]]
        == [thread.tid for thread in threads]
    )


def _places(before: Sequence[Known], now: Sequence[Known], rows: int) -> Values:
    """Return which rows those of before are now."""
    sizes = [thread.flags + thread.depths for thread in now]
    firsts = np.append(0, np.cumsum(sizes)).tolist()
    places: list[int] = []
    for first, old, new in zip(firsts, before, now, strict=False):
        places += [first] * old.flags
        places += range(first + new.flags, first + new.flags + old.depths)
    derived = [firsts[-1]] * (rows - len(places))
    return np.array([*places, *derived], dtype=np.int64)


def _is_whole(trace: Trace, former: HostTimeline, columns: Sequence[Any]) -> bool:
    """Return whether what was and what came are all events of each thread."""
    tracks, row = former.timeline.tracks, 0
    early = trace.instants.time_ns < former.until
    flags = np.bincount(trace.instants.thread[early], minlength=len(trace.threads))
    lengths = (tracks.seam - tracks.offset[:-1]).tolist()
    for number, (thread, came) in enumerate(zip(trace.threads, columns, strict=True)):
        state = former.threads[number] if number < len(former.threads) else Known(0, False, 0)
        depths = row + state.flags
        row = depths + state.depths
        if sum(lengths[depths - state.flags : depths]) != flags[number]:
            return False
        if sum(lengths[depths:row]) + len(came) != thread.count:
            return False
    return True


def _follows(first: Tracks, places: Values, second: Tracks) -> bool:
    """Return whether in each row all that came begins when what was has ended."""
    came = second.offset[places] < second.offset[places + 1]
    both = np.flatnonzero((first.seam > first.offset[:-1]) & came)
    ends = first.ends(first.seam[both] - 1)
    return bool((second.begin[second.offset[places[both]]] >= ends).all())


def _carry(former: HostTimeline, places: Values, grown: Tracks, metadata: dict[int, str]) -> None:
    """Add what was attached to the events that stay, by their numbers now."""
    tracks = former.timeline.tracks
    numbers = np.fromiter(former.metadata, np.int64, len(former.metadata))
    row = np.searchsorted(tracks.offset, numbers, side="right") - 1
    moved = numbers - tracks.offset[row] + grown.offset[places[row]]
    stays = (numbers < tracks.seam[row]).tolist()
    pairs = zip(moved.tolist(), former.metadata.values(), stays, strict=True)
    metadata.update((number, text) for number, text, stay in pairs if stay)
