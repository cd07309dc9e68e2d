"""Read and lay out a host trace of a hundred million events; print goal and figure.

    python -m benchmarks.many_events [FILE.pvti] [--events 100000000]

Seconds are of the processor. The trace is that of `benchmarks.timeline_speed`, made where FILE is
not there; memory is above the imports.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.timeline_speed import made_trace, memory
from benchmarks.trace_speed import _imports
from dashboard.memory import give_back
from dashboard.server import give_memory_back
from pva.analysis.timeline.viewport import viewport

MOMENTS = 12  # at which a window of the trace is read
WINDOWS = 300  # of the timeline


def timed(action: Callable[[], Any]) -> tuple[Any, float]:
    """Return what an action gives, and its seconds."""
    begin = time.process_time()
    result = action()
    return result, time.process_time() - begin


def measure(path: Path, events: int) -> None:
    """Print the figures of a trace."""
    import pva
    from pva.plot.host import host_timeline

    trace, seconds = timed(lambda: pva.openTrace(path))
    print(f"open                                 {seconds:8.3f} s")
    length = trace.duration_ns
    spent = [timed(lambda at=at: trace.window(at, at + length // 10_000))[1] * 1e3
             for at in range(0, length, -(-length // MOMENTS))]  # fmt: skip
    print(f"a window of 0.01 % as a frame        {np.median(spent):8.1f} ms, most {max(spent):.1f}")
    before = memory_of_this()
    laid, seconds = timed(lambda: host_timeline(trace))
    give_back()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(f"timeline ready                       {seconds:8.2f} s")
    print(f"it holds, and at most while made     {(memory_of_this() - before) / events:8.1f} and "
          f"{(peak - before) / events:.1f} bytes an event; goal 24")  # fmt: skip
    spent = list(windows(laid.timeline))
    print(f"a window of it, p50 and p95          {np.median(spent):8.2f} "
          f"{np.percentile(spent, 95):.2f} ms; goal 5")  # fmt: skip
    _, seconds = timed(trace.frames.labels)
    print(f"labels                               {seconds:8.2f} s")


def memory_of_this() -> int:
    """Return the resident bytes of this process."""
    import os

    return memory(os.getpid())


def windows(timeline: Any) -> Any:
    """Look at windows of forty rows, of all lengths; give the milliseconds of each."""
    random, (begin, end), rows = np.random.default_rng(3), timeline.extent, timeline.tracks.rows
    for _ in range(WINDOWS):
        span = (end - begin) * 4.0 ** -random.uniform(0, 12)
        first = random.uniform(begin, end - span)
        row = int(random.integers(0, max(rows - 40, 1)))
        some = np.arange(row, min(row + 40, rows))
        window = int(first), int(first + span), 2000, some
        yield timed(lambda window=window: viewport(timeline.tracks, *window))[1] * 1e3


def main() -> None:
    """Make the trace, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path, nargs="?")
    parser.add_argument("--events", type=int, default=100_000_000)
    arguments = parser.parse_args()
    give_memory_back()
    _imports()
    with tempfile.TemporaryDirectory() as folder:
        path = arguments.path or Path(folder) / "many.pvti"
        if not path.exists():
            made_trace(path, arguments.events)
        measure(path, arguments.events)


if __name__ == "__main__":
    main()
