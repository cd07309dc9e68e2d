"""What the C library does with memory that is let go of."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class _Heap(ctypes.Structure):
    """What mallinfo2(3) tells; `fordblks` are the bytes that are free."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks",
            "fordblks", "keepcost",
        )
    )  # fmt: skip


# mallopt(3): the heap gives back what is free at its end beyond the first; blocks from the
# second on are no part of the heap, and go back at once. Were the largest kept too, gaps between
# them would take a tenth of the memory of a training step; with those of 32 MB as they come,
# GPT-2 takes a quarter longer. Behind a compilation both are what glibc itself comes to in a
# program that lets go of large blocks: 32 MB, and twice as much.
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
KEPT = 1 << 30  # bytes
LARGE = 1 << 27
AFTERWARDS = 1 << 25
MUCH = 1 << 29  # bytes that are free between arrays: they go back before the next phase
LITTLE = 1 << 25  # the same where the next phase takes in other memory
# prctl(2): whether the kernel hands out pages of 2 MB, for which NumPy asks. Each is cleared whole,
# anew after each trim, and an array often fills a part of it: clearing took twice as long.
SET_THP_DISABLE, GET_THP_DISABLE = 41, 42
_inside: list[bool] = []


@contextmanager
def reused_memory() -> Iterator[None]:
    """Keep memory that arrays leave for the next ones, and give it back at the end.

    Else each array of some megabytes has its pages from the kernel, which clears them first: a
    third of the time of a compilation. A C library without these functions is left as it is, and
    what is within another such block ends with that one.
    """
    library: Any = ctypes.CDLL(None) if sys.platform == "linux" else None
    if _inside or not hasattr(library, "mallopt") or not hasattr(library, "malloc_trim"):
        yield
        return
    _inside.append(True)
    library.mallopt(MMAP_THRESHOLD, LARGE)
    library.mallopt(TRIM_THRESHOLD, KEPT)
    small_pages = library.prctl(GET_THP_DISABLE, 0, 0, 0, 0)
    library.prctl(SET_THP_DISABLE, 1, 0, 0, 0)
    try:
        yield
    finally:
        _inside.clear()
        library.prctl(SET_THP_DISABLE, small_pages == 1, 0, 0, 0)
        library.mallopt(MMAP_THRESHOLD, AFTERWARDS)
        library.mallopt(TRIM_THRESHOLD, 2 * AFTERWARDS)
        library.malloc_trim(ctypes.c_size_t(0))


def give_back_much(least: int = MUCH) -> None:
    """Return memory to the system that a phase left between its arrays, where it is much.

    The next phase has arrays of other sizes, which do not fit into the gaps.
    """
    library: Any = ctypes.CDLL(None) if sys.platform == "linux" else None
    if not _inside or not hasattr(library, "mallinfo2"):
        return
    library.mallinfo2.restype = _Heap
    if library.mallinfo2().fordblks > least:
        library.malloc_trim(ctypes.c_size_t(0))
