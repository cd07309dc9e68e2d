"""Identifiers for the processes and threads of a trace, in formats that know them by these alone.

Several files may have processes of one identifier, as those of containers do, and a system gives
the identifier of a thread that ended to a new one.
"""

from __future__ import annotations

from collections.abc import Iterable

from pva.formats.traces.writable import Thread, Trace

ALL = range(-(1 << 62), 1 << 62)


def identifiers(trace: Trace, allowed: range = ALL) -> tuple[list[int], list[tuple[int, int]]]:
    """Return the identifier of each process, and process and thread of each thread, all different.

    They are those of the trace, as far as these are free and `allowed`.
    """
    pids = _different((process.pid for process in trace.processes), allowed)
    owners = {id(thread): pid for process, pid in zip(trace.processes, pids, strict=True)
              for thread in process.threads}  # fmt: skip
    by_process: dict[int, list[Thread]] = {}
    for thread in trace.threads:
        by_process.setdefault(owners[id(thread)], []).append(thread)
    tids = {
        id(thread): tid
        for threads in by_process.values()
        for thread, tid in zip(
            threads, _different((one.tid for one in threads), allowed), strict=True
        )
    }
    return pids, [(owners[id(thread)], tids[id(thread)]) for thread in trace.threads]


def _different(numbers: Iterable[int], allowed: range) -> list[int]:
    """Assign each number, or, where an earlier one has it, the next that none has."""
    proposed = [number if number in allowed else number % allowed.stop for number in numbers]
    behind = {number: number + 1 for number in proposed}  # where to look next
    assigned: dict[int, None] = {}
    for number in proposed:
        free = number
        while number in assigned and free in behind:
            free = behind[free] if behind[free] in allowed else 0
        behind[free] = behind[number] = free + 1
        assigned[free] = None
    return list(assigned)
