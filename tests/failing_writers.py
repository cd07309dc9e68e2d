"""Writers of reports and traces, where the n-th write, sync, rename or allocation fails.

Run by tests/formats/test_injected_faults.py in a process that has loaded tests/failing_io.c first:
python -m tests.failing_writers WRITER FAULT FOLDER. Prints how many places failed.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pva
import pvti
from pva.errors import PvaError
from pva.formats import registry
from pva.trace import openTrace
from tests.builders import replicated_report, small_report

WRITE, SYNC, RENAME = 1, 2, 4
ALLOCATION = "an allocation"
FAULTS = {
    "a full disk": (WRITE, errno.ENOSPC, 1),
    "one write": (WRITE, errno.EIO, 0),
    "a sync": (SYNC, errno.EIO, 0),
    "a rename": (RENAME, errno.EIO, 0),
}
ALLOCATIONS = range(5, 3000, 13)  # what a library swallows must end no loop


def injected(fault: str, number: int, work: Callable[[], object]) -> bool:
    """Do the work with the fault at a place; tell whether it came so far. Raises PvaError."""
    if fault == ALLOCATION:
        import _testcapi

        _testcapi.set_nomemory(number, number + 1)
        try:
            work()
        except Exception as error:  # as libraries and the interpreter put it
            if isinstance(error, PvaError | AssertionError):
                raise
        finally:
            _testcapi.remove_mem_hooks()
        return number < ALLOCATIONS[-1]
    library = ctypes.CDLL(None)
    kind, error, lasting = FAULTS[fault]
    library.fail_at(kind, ctypes.c_long(number), error, lasting)
    try:
        work()
    finally:
        failed = library.has_failed()
    return bool(failed)


def places(fault: str) -> Iterator[int]:
    """Number the places, as long as the caller goes on."""
    return iter(ALLOCATIONS) if fault == ALLOCATION else count(1)


def content(path: Path) -> dict[Path, bytes]:
    """Read a file, or the files of a directory."""
    return {file: file.read_bytes() for file in (path, *path.rglob("*")) if file.is_file()}


def write_reports(fault: str, name: str, folder: Path) -> int:
    """Replace a report, with the fault at each place; the old one or the new one stays whole."""
    out, new = folder / name, replicated_report(2)
    for number in places(fault):
        registry.write(small_report(), out)
        before, failed, raised = content(out), True, False
        try:
            failed = injected(fault, number, lambda: registry.write(new, out))
        except PvaError as error:
            assert "\n" not in str(error), error
            raised = True
        is_new = pva.openReport(out).compilation.target.numReplicas == 2
        assert is_new or ((raised or fault == ALLOCATION) and content(out) == before), number
        assert os.listdir(folder) == [name], (number, os.listdir(folder))
        if not failed:
            break
    return number - 1


def write_traces(fault: str, mode: str, folder: Path) -> int:
    """Record with the fault at each place; what is there can be read, and holds what it says."""
    channel = pvti.createTraceChannel("faults")

    def record() -> None:
        for _ in range(3):
            with pvti.Tracepoint(channel, "event"):
                pvti.Tracepoint.event(channel, "instant")
            pvti.writeTrace()
        pvti.closeTrace()

    for number in places(fault):
        path = Path(pvti.startTrace(folder, mode=mode))
        if fault == ALLOCATION:  # Thread.start waits for ever for a thread that has no memory
            pvti.Tracepoint.event(channel, "start")
        failed = injected(fault, number, record)
        pvti.closeTrace()
        journals = {path.name.removesuffix("-journal") for path in folder.glob("*-journal")}
        assert journals <= {path.name for path in folder.glob("*.pvti")}, number
        for path in folder.glob("*.pvti"):
            trace = openTrace(path)
            events = [event.label for thread in trace.threads for event in thread.events]
            assert events == ["event"] * len(events), (number, events)
            assert failed or mode == "ring" or len(events) == 3, number
            trace.close()
        for path in folder.iterdir():
            path.unlink()
        if not failed:
            break
    return number - 1


if __name__ == "__main__":
    writer, chosen, place = sys.argv[1:]
    writes = write_traces if writer in ("file", "ring") else write_reports
    print(writes(chosen, writer, Path(place)))
