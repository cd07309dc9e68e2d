"""What tracing costs, beside rivals in the same run.

Run: python -m benchmarks.pvti_overhead [--quick]

Each row is measured in a process of its own. A block's nanoseconds are the fewest of many short
rounds, because other programs use the machine, too; what counts `closeTrace` is time of the
processor. `pip install 'tilescope[bench]'` brings the rivals.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from typing import NamedTuple

import pvti
from benchmarks.pvti_measures import KILLS, THREADS

RUNS = 9  # of the demo, traced and untraced at once
ENTRY = "benchmarks.pvti_measures"
NOT_MEASURED = ("PVTI_OPTIONS", "PYTHONDONTWRITEBYTECODE")  # another trace; compiling Python
# What else makes two runs of one program differ: threads that wait busily, the order of sets.
ALIKE = {"OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}


class Row(NamedTuple):
    """A figure, and what it should be at most."""

    name: str
    measured: float
    unit: str = "ns"
    goal: float | None = None
    least: bool = False  # the goal is the least

    def __str__(self) -> str:
        goal = verdict = ""
        if self.goal is not None:
            goal = f"{'>=' if self.least else '<='} {self.goal:g}"
            holds = self.measured >= self.goal if self.least else self.measured <= self.goal
            verdict = "pass" if holds else "FAIL"
        return f"| {self.name:<58} | {self.measured:12,.5g} {self.unit:<2} | {goal} | {verdict} |"


def environment_of(accelerated: bool) -> dict[str, str]:
    """Return what a measured process finds in its environment."""
    own = {k: v for k, v in os.environ.items() if k not in NOT_MEASURED}
    return own | ALIKE | {"PVTI_ACCELERATOR": str(int(accelerated))}


def child(measure: str, accelerator: bool) -> dict[str, float] | None:
    """Measure in a new process; None when what it needs is not installed."""
    done = subprocess.run(
        [sys.executable, "-m", ENTRY, measure],
        env=environment_of(accelerator), capture_output=True, text=True,
    )  # fmt: skip
    if "ModuleNotFoundError" in done.stderr:
        print(f"{measure}: not installed (pip install 'tilescope[bench]')", file=sys.stderr)
        return None
    if done.returncode:
        raise SystemExit(f"{measure}: {done.stderr}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def block_rows(accelerated: bool) -> list[Row]:
    found = child("blocks", accelerated)
    assert found is not None
    kind = "C" if accelerated else "Python"
    empty, bare = found["empty"], found["bare"]
    fast = 80 if accelerated else None
    return [
        Row(f"{kind}: bare `with`", bare),
        Row(f"{kind}: cached tracepoint", found["cached"], goal=None if accelerated else 500),
        Row(f"{kind}: cached tracepoint, above a bare `with`", found["cached"] - bare, goal=fast),
        Row(f"{kind}: new tracepoint, above an empty loop", found["new"] - empty, goal=700),
        Row(f"{kind}: begin", found["begin"] - empty, goal=250),
        Row(f"{kind}: end", found["end"] - empty, goal=250),
        Row(f"{kind}: disabled, cached, above a bare `with`", found["off"] - bare, goal=50),
        Row(
            f"{kind}: disabled, new, above a bare new `with`", found["off new"] - found["bare new"]
        ),
        Row(f"{kind}: cached, asyncio imported", found["asyncio there"]),
        Row(f"{kind}: cached, in an asyncio task", found["in a task"]),
        Row(f"{kind}: cached, one object in several tasks", found["in tasks"]),
    ]


def total_rows(accelerated: bool) -> list[Row]:
    kind = "C" if accelerated else "Python"
    closing = child("closing", accelerated) or {}
    found = child("threads", accelerated) or {}
    bare, traced = (found[name] / found[f"{name} 1"] for name in ("bare", "traced"))
    killed = (child("kills", accelerated) or {})["lost"]
    return [
        Row(f"{kind}: an event and its part of `closeTrace`, processor", closing["closing"]),
        Row(f"{kind}: bytes an event in the file", closing["bytes"], "", 17),
        Row(f"{kind}: one thread, events a second, `closeTrace` counted", found["traced 1"], "/s"),
        Row(f"{kind}: {THREADS} threads", found["traced"], "/s"),
        Row(f"{kind}: {THREADS} threads, events lost", found["lost"], "", 0),
        Row(f"{kind}: {THREADS} threads, times the throughput of one", traced, "x", 1, True),
        Row("the same of a bare `with`, which is not traced", bare, "x"),
        Row(f"{kind}: killed, the most that was lost, {KILLS} runs", killed, "ms", 100),
    ]


def rival_rows() -> list[Row]:
    names = {
        "viztracer": "viztracer: log_event",
        "opentelemetry": "OpenTelemetry: a span, not exported",
        "cProfile": "cProfile: a call, above itself",
    }
    found = {name: child(name, True) for name in names}
    return [Row(names[name], figures[name]) for name, figures in found.items() if figures]


def started(measure: str, accelerated: bool, core: int) -> subprocess.Popen[bytes]:
    """Start a measure on one core, where the system lets a process choose."""
    process = subprocess.Popen(
        [sys.executable, "-m", ENTRY, measure],
        env=environment_of(accelerated), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(process.pid, {core})
    return process


def processor_seconds(process: subprocess.Popen[bytes]) -> float:
    """Wait for a process; give what it took of the processor."""
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"the demo ended with {process.returncode}")
    return used.ru_utime + used.ru_stime


def demo_rows(accelerated: bool) -> list[Row]:
    """Compare the processor time of the demo, traced and untraced.

    A machine that others share changes its speed by more than tracing costs. Each traced run has
    an untraced one beside it, and the two change cores.
    """
    seconds: dict[str, list[float]] = {"demo, untraced": [], "demo": []}
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0, 0]
    for run in range(RUNS):
        own = [cores[0], cores[-1]][:: -1 if run % 2 else 1]
        pair = [started(m, accelerated, core) for m, core in zip(seconds, own, strict=True)]
        for measure, process in zip(seconds, pair, strict=True):
            seconds[measure].append(processor_seconds(process))
    plain, traced = map(statistics.median, seconds.values())
    kind = "C" if accelerated else "Python"
    return [
        Row(f"{kind}: the demo, untraced, processor", plain, "s"),
        Row(f"{kind}: traced, `closeTrace` counted", traced, "s"),
        Row(f"{kind}: what tracing adds", 100 * (traced / plain - 1), "%", 2),
    ]


def main() -> None:
    """Print the table, a row at a time."""
    kinds = (False, True) if pvti.accelerated else (False,)
    if not pvti.accelerated:
        print("the C accelerator was not built: Python alone", file=sys.stderr)
    parts = [lambda k=k: block_rows(k) for k in kinds]  # type: ignore[misc]
    parts += [rival_rows, *(lambda k=k: total_rows(k) for k in kinds)]  # type: ignore[misc]
    if "--quick" not in sys.argv:
        parts += [lambda k=k: demo_rows(k) for k in kinds]  # type: ignore[misc]
    print("| figure | measured | goal | |\n| --- | ---: | ---: | --- |")
    for part in parts:
        for row in part():
            print(row, flush=True)


if __name__ == "__main__":
    main()
