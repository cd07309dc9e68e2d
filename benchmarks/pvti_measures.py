"""What `benchmarks.pvti_overhead` measures, each in a process of its own.

Run: python -m benchmarks.pvti_measures MEASURE, a name in `MEASURES`; prints JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from itertools import repeat
from pathlib import Path
from time import perf_counter_ns, process_time_ns
from typing import Any

import pvti

BLOCKS = 2_000  # a round
ROUNDS = 1000
EVENTS = 1_000_000  # where `closeTrace` is counted
THREADS = 8
THREAD_ROUNDS = 6
# Some three seconds a run, so that opening and closing are little of it.
THREAD_EVENTS = 20_000_000 if pvti.accelerated else 4_000_000
KILLS = 25


class Bare:
    """The least that a `with` statement can do."""

    __slots__ = ()

    def __enter__(self) -> Bare:
        return self

    def __exit__(self, kind: object, value: object, traceback: object) -> None:
        return None


class BareNew(Bare):
    """The same, made of two arguments."""

    __slots__ = ("channel", "label")

    def __init__(self, channel: object, label: object) -> None:
        self.channel = channel
        self.label = label


def empty_loop() -> None:
    for _ in repeat(None, BLOCKS):
        pass


def blocks(block: Any) -> Callable[[], None]:
    """Enter one object again and again."""

    def work() -> None:
        for _ in repeat(None, BLOCKS):
            with block:
                pass

    return work


def new_blocks(make: Any, channel: object) -> Callable[[], None]:
    """Make an object for each block."""

    def work() -> None:
        for _ in repeat(None, BLOCKS):
            with make(channel, "new"):
                pass

    return work


def calls(function: Any, channel: object) -> Callable[[], None]:
    def work() -> None:
        for _ in repeat(None, BLOCKS):
            function(channel, "pair")

    return work


def best(work: Callable[[], None], after: Callable[[], None] | None = None) -> float:
    """Return the fewest nanoseconds a block; `after` is not counted."""
    times = []
    for _ in range(ROUNDS):
        start = perf_counter_ns()
        work()
        times.append(perf_counter_ns() - start)
        if after is not None:
            after()
    return min(times) / BLOCKS


def measure_blocks() -> dict[str, float]:
    """Nanoseconds of everything that `pvti` offers a block, traced and not."""
    channel = pvti.createTraceChannel("benchmark")
    begins, ends = (calls(f, channel) for f in (pvti.Tracepoint.begin, pvti.Tracepoint.end))
    cached, new = blocks(pvti.Tracepoint(channel, "cached")), new_blocks(pvti.Tracepoint, channel)
    figures = {
        "empty": best(empty_loop),
        "bare": best(blocks(Bare())),
        "bare new": best(new_blocks(BareNew, channel)),
        "off": best(cached),
        "off new": best(new),
    }
    with tempfile.TemporaryDirectory() as folder:
        pvti.startTrace(folder)
        figures["cached"] = best(blocks(pvti.Tracepoint(channel, "cached")))
        figures["new"] = best(new)
        figures["begin"] = best(begins, ends)
        figures["end"] = best_ends(begins, ends)
        import asyncio

        figures["asyncio there"] = best(cached)

        async def in_task() -> tuple[float, float]:
            return best(blocks(pvti.Tracepoint(channel, "own"))), best(cached)

        figures["in a task"], figures["in tasks"] = asyncio.run(in_task())
        pvti.closeTrace()
    return figures


def best_ends(begins: Callable[[], None], ends: Callable[[], None]) -> float:
    begins()
    found = best(ends, begins)
    ends()
    return found


def measure_closing() -> dict[str, float]:
    """Processor time an event with all that comes after it, and bytes in the file."""
    channel = pvti.createTraceChannel("benchmark")
    point = pvti.Tracepoint(channel, "cached")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(pvti.startTrace(folder))
        with point:
            pass
        start = process_time_ns()
        for _ in repeat(None, EVENTS):
            with point:
                pass
        pvti.closeTrace()
        spent = process_time_ns() - start
        return {"closing": spent / EVENTS, "bytes": path.stat().st_size / EVENTS}


def in_threads(threads: int, block: Callable[[], Any]) -> float:
    """Seconds that THREAD_EVENTS blocks take in threads that the interpreter runs in turn."""
    barrier = threading.Barrier(threads + 1)

    def work() -> None:
        point = block()
        barrier.wait()
        for _ in repeat(None, THREAD_EVENTS // threads):
            with point:
                pass

    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    while barrier.n_waiting < threads:
        time.sleep(0.001)
    start = perf_counter_ns()  # before the others run: it is their turn for a while then
    barrier.wait()
    for worker in workers:
        worker.join()
    pvti.closeTrace()
    return (perf_counter_ns() - start) / 1e9


def measure_threads() -> dict[str, float]:
    """Blocks a second of one thread and of THREADS, bare and traced, and events lost.

    They take turns, and each figure is of all its runs: from one moment to the next the machine
    changes its speed by more than what is looked for.
    """
    channel = pvti.createTraceChannel("benchmark")
    seconds = dict.fromkeys(("bare 1", "traced 1", "bare", "traced"), 0.0)
    lost = 0
    for threads, suffix in ((1, " 1"), (THREADS, "")) * THREAD_ROUNDS:
        seconds["bare" + suffix] += in_threads(threads, Bare)
        with tempfile.TemporaryDirectory() as folder:
            path = pvti.startTrace(folder)
            traced = in_threads(threads, lambda: pvti.Tracepoint(channel, "cached"))
            seconds["traced" + suffix] += traced
            lost += THREAD_EVENTS - events_in(path)
    blocks = THREAD_EVENTS * THREAD_ROUNDS
    return {name: blocks / took for name, took in seconds.items()} | {"lost": lost}


def events_in(path: str) -> int:
    """Count the events of a trace."""
    from pva.trace import openTrace

    trace = openTrace(path)
    found = sum(len(thread.columns) for thread in trace.threads)
    trace.close()
    return found


TO_BE_KILLED = """
import sys, time, pvti
channel = pvti.createTraceChannel("benchmark")
pvti.startTrace(sys.argv[1])
while True:
    with pvti.Tracepoint(channel, "step"):
        sum(range(1000))
    print(time.perf_counter_ns(), flush=True)
"""


def measure_kills() -> dict[str, float]:
    """The most milliseconds of events that a program killed while it computes has lost."""
    from pva.trace import openTrace

    lost = []
    for run in range(KILLS):
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-c", TO_BE_KILLED, folder]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
                assert program.stdout is not None
                last = began = int(program.stdout.readline())
                while last - began < 1e9 + run * 7e6:  # at any time between two commits
                    last = int(program.stdout.readline())
                program.kill()
                last = int((program.stdout.read().split() or [last])[-1])
            trace = openTrace(folder)
            committed = trace.anchor.clock_ns + int(trace.threads[0].columns.end_ns.max())
            lost.append((last - committed) / 1e6)
            trace.close()
    return {"lost": max(lost)}


def measure_viztracer() -> dict[str, float]:
    """A block of viztracer's `log_event`, its tracer of functions off."""
    from viztracer import VizTracer

    tracer = VizTracer(verbose=0, log_func_args=False, max_stack_depth=0)
    tracer.start()
    found = best(lambda: [_log(tracer) for _ in repeat(None, BLOCKS)] and None)
    tracer.stop()
    return {"viztracer": found}


def _log(tracer: Any) -> None:
    with tracer.log_event("event"):
        pass


def measure_opentelemetry() -> dict[str, float]:
    """A span of OpenTelemetry's SDK that nobody exports."""
    from opentelemetry.sdk.trace import TracerProvider

    tracer = TracerProvider().get_tracer("benchmark")

    def work() -> None:
        for _ in repeat(None, BLOCKS):
            with tracer.start_as_current_span("span"):
                pass

    return {"opentelemetry": best(work)}


def measure_cprofile() -> dict[str, float]:
    """What a call of a function costs above itself while cProfile runs."""
    import cProfile

    def function() -> None:
        return None

    def work() -> None:
        for _ in repeat(None, BLOCKS):
            function()

    plain = best(work)
    profile = cProfile.Profile()
    profile.enable()
    profiled = best(work)
    profile.disable()
    return {"cProfile": profiled - plain}


def measure_demo(traced: bool) -> dict[str, float]:
    """Train as `tilescope simulate mlp_digits` does; the parent looks at what the process took."""
    from cli.simulate import train_digits

    if not traced:
        pvti.startTrace = lambda *_, **__: ""
    with tempfile.TemporaryDirectory() as folder:
        train_digits(Path(folder, "report"))
        assert any(Path(folder, "report").glob("*.pvti")) == traced
    return {}


MEASURES: dict[str, Callable[[], dict[str, float]]] = {
    "blocks": measure_blocks,
    "closing": measure_closing,
    "threads": measure_threads,
    "kills": measure_kills,
    "viztracer": measure_viztracer,
    "opentelemetry": measure_opentelemetry,
    "cProfile": measure_cprofile,
    "demo": lambda: measure_demo(True),
    "demo, untraced": lambda: measure_demo(False),
}


if __name__ == "__main__":
    print(json.dumps(MEASURES[sys.argv[1]]()))
