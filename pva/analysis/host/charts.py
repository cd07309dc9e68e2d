"""Line graphs and heat maps of a host trace in a window, with no more points than can be seen."""

from __future__ import annotations

import numpy as np

from pva.array_types import Floats, Integers, Values

LEAST_SHARE = 1e-4  # of the samples of a column: the lowest colour of a heat map


def line_points(
    times: Integers, values: Floats, begin: int, end: int, most: int
) -> tuple[Integers, Floats]:
    """Return the points of a line in a window, and the one before it, at most about `most`.

    Where there are more, the lowest and the highest of each stretch of the window stay; what is not
    a number is left out.
    """
    measured = ~np.isnan(values)
    times, values = times[measured], values[measured]
    order = np.argsort(times, kind="stable")
    times, values = times[order], values[order]
    first = max(int(np.searchsorted(times, begin, side="left")) - 1, 0)
    stop = int(np.searchsorted(times, end, side="right"))
    times, values = times[first:stop], values[first:stop]
    if len(times) <= most:
        return times, values
    width = max((end - begin) / max(most // 2, 1), 1e-9)
    stretch = np.floor((times - begin) / width).astype(np.int64)
    starts = np.flatnonzero(np.append(True, stretch[1:] != stretch[:-1]))
    size = np.diff(np.append(starts, len(times)))
    shown = np.zeros(len(times), dtype=np.bool_)
    for extreme in (np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)):
        places = np.where(values == np.repeat(extreme, size), np.arange(len(values)), len(values))
        shown[np.minimum.reduceat(places, starts)] = True
    shown[[0, -1]] = True
    return times[shown], values[shown]


def held_until(times: Integers, until: int) -> int:
    """Return when what was told last ends: with its file, and after it was told."""
    return max(until, int(times.max()) + 1)


def heat_columns(
    times: Integers, counts: Values, begin: int, end: int, most: int, *, until: int
) -> tuple[Integers, Integers, Floats]:
    """Return the columns of a heat map in a window: begin and end of each, shares [column][bin].

    At most `most`: columns of one stretch of the window are added up. A column lasts until the
    next, the last one `until` its file ends. A share is of the samples of its column, as the
    exponent of ten, 0 to -4, of LEAST_SHARE where it is smaller; not a number where there is none.
    """
    order = np.argsort(times, kind="stable")
    times, counts = times[order], counts[order].astype(np.float64)
    first = max(int(np.searchsorted(times, begin, side="right")) - 1, 0)
    stop = int(np.searchsorted(times, end, side="left"))
    ends = np.append(times[1:], held_until(times, until) if len(times) else [])[first:stop]
    times, counts = times[first:stop], counts[first:stop]
    if not len(times) or ends[-1] <= begin:
        times, ends, counts = times[:0], ends[:0], counts[:0]
        return times, ends, counts
    width = max((end - begin) / max(most, 1), 1e-9)
    stretch = np.floor((np.maximum(times, begin) - begin) / width).astype(np.int64)
    starts = np.flatnonzero(np.append(True, stretch[1:] != stretch[:-1]))
    sums = np.add.reduceat(counts, starts, axis=0)
    total = np.maximum(sums.sum(axis=1, keepdims=True), 1)
    with np.errstate(divide="ignore"):
        power = np.log10(np.maximum(sums / total, LEAST_SHARE))
    shares = np.where(sums > 0, power, np.nan)
    return times[starts], ends[np.append(starts[1:], len(ends)) - 1], shares
