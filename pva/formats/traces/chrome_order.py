"""Put the events of threads in the order of a trace, without sorting what is in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from pva.array_types import Integers
from pva.formats.builders import Codes

Scalar = TypeVar("Scalar", bound=np.generic)
Rows = Sequence["slice | npt.NDArray[np.signedinteger]"]

FEW = 64  # threads that are looked at one by one


def backward(thread: Codes, begin: Integers, end: Integers) -> Rows:
    """Return the rows of each thread, or of all, in reverse order of begin.

    As a file has it: of equal begins the longest last, and of equal events the first.
    """
    mixed = bool((thread[1:] < thread[:-1]).any())
    counts = np.bincount(thread)
    if np.count_nonzero(counts) > FEW:
        return [_sorted(begin, end, (thread,))]
    small: Any = thread.astype(np.uint16) if len(counts) < 1 << 16 else thread
    order = np.argsort(small, kind="stable").astype(np.int32) if mixed else None
    stops = np.cumsum(counts).tolist()
    return [
        _backward(slice(stop - count, stop), order, begin, end)
        for stop, count in zip(stops, counts.tolist(), strict=True)
        if count
    ]


def taken(column: npt.NDArray[Scalar], rows: Rows) -> npt.NDArray[Scalar]:
    """Return the values of all these rows."""
    return np.concatenate([column[some] for some in rows]) if rows else column


def _backward(
    mine: slice, order: npt.NDArray[np.int32] | None, begin: Integers, end: Integers
) -> Any:
    """Return the rows of one thread, whose places in `order` these are."""
    rows: Any = mine if order is None else order[mine]
    begins = begin[rows]
    if (begins[1:] < begins[:-1]).all():
        return rows
    if (begins[1:] > begins[:-1]).all():
        before = mine.start - 1 if mine.start else None
        return slice(mine.stop - 1, before, -1) if order is None else rows[::-1]
    order_of_rows = _sorted(begins, end[rows], ())
    return order_of_rows + mine.start if order is None else rows[order_of_rows]


def _sorted(begin: Integers, end: Integers, thread: tuple[Codes, ...]) -> Integers:
    keys = (end[::-1], np.negative(begin)[::-1], *(column[::-1] for column in thread))
    order: Integers = np.lexsort(keys)
    return np.subtract(len(begin) - 1, order, out=order)
