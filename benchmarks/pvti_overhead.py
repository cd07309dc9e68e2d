"""What tracing costs: nanoseconds a block, traced and not, the file written included.

Run: python benchmarks/pvti_overhead.py
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from itertools import repeat
from pathlib import Path
from time import perf_counter_ns

import pvti
from pva.trace import openTrace

BLOCKS = 200_000
ROUNDS = 7


class Bare:
    """The least that a `with` statement can do."""

    __slots__ = ()

    def __enter__(self) -> Bare:
        return self

    def __exit__(self, kind: object, value: object, traceback: object) -> None:
        return None


def empty_loop() -> None:
    for _ in repeat(None, BLOCKS):
        pass


def bare_block() -> None:
    block = Bare()
    for _ in repeat(None, BLOCKS):
        with block:
            pass


def cached_tracepoint(channel: pvti.TraceChannel) -> None:
    point = pvti.Tracepoint(channel, "cached")
    for _ in repeat(None, BLOCKS):
        with point:
            pass


def new_tracepoint(channel: pvti.TraceChannel) -> None:
    for _ in repeat(None, BLOCKS):
        with pvti.Tracepoint(channel, "new"):
            pass


def begin_and_end(channel: pvti.TraceChannel) -> None:
    for _ in repeat(None, BLOCKS):
        pvti.Tracepoint.begin(channel, "pair")
        pvti.Tracepoint.end(channel, "pair")


def best(work: Callable[[], None]) -> float:
    """Give the fewest nanoseconds a block of several rounds."""
    return min(_time(work) for _ in range(ROUNDS)) / BLOCKS


def _time(work: Callable[[], None]) -> int:
    start = perf_counter_ns()
    work()
    return perf_counter_ns() - start


def main() -> None:
    """Print the table."""
    channel = pvti.createTraceChannel("benchmark")
    ways = (cached_tracepoint, new_tracepoint, begin_and_end)
    loop, bare = best(empty_loop), best(bare_block)
    off = {way.__name__: best(lambda way=way: way(channel)) for way in ways}  # type: ignore[misc]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(pvti.startTrace(folder))
        start = perf_counter_ns()
        on = {way.__name__: best(lambda way=way: way(channel)) for way in ways}  # type: ignore[misc]
        pvti.closeTrace()
        spent, events = perf_counter_ns() - start, len(ways) * ROUNDS * BLOCKS
        size = path.stat().st_size
        start = perf_counter_ns()
        trace = openTrace(path)
        depth = trace.threads[0].columns.depth
        read = perf_counter_ns() - start
        trace.close()
    print(f"{'':24}{'ns a block':>12}{'not tracing':>14}")
    print(f"{'empty loop':24}{loop:12.0f}")
    print(f"{'bare with':24}{bare:12.0f}")
    for name, nanoseconds in on.items():
        print(f"{name.replace('_', ' '):24}{nanoseconds:12.0f}{off[name]:14.0f}")
    print(f"{'all, with closeTrace':24}{spent / events:12.0f}")
    print(f"{size / events:.2f} bytes an event in the file; {len(depth):,} events read and nested")
    print(f"in {read / 1e6:.0f} ms, {read / events:.0f} ns an event")


if __name__ == "__main__":
    main()
