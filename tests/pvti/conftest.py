"""A trace around a test, on a clock that tells 1000 ns more each time it is read."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import pvti
from pva.trace import Trace, openTrace

STEP = 1000


class FakeClock:
    """Returns 0, 1000, 2000, ...; `skip` lets time pass."""

    def __init__(self) -> None:
        self.now = 1_000_000

    def __call__(self) -> int:
        self.now += STEP
        return self.now

    def skip(self, nanoseconds: int) -> None:
        self.now += nanoseconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeClock]:
    fake = FakeClock()
    for module in ("spans", "tracepoint", "series", "heatmap"):
        monkeypatch.setattr(f"pvti.{module}.perf_counter_ns", fake)
    accelerator = sys.modules.get("pvti._accelerator")
    if accelerator is not None:
        accelerator.set_clock(fake)
    monkeypatch.setattr("pvti.recorder.perf_counter_ns", lambda: fake.now)
    yield fake
    if accelerator is not None:
        accelerator.set_clock(None)


@pytest.fixture
def trace_path(tmp_path: Path) -> Iterator[str]:
    """Start a trace; give the path of its file."""
    pvti.closeTrace()  # one that the environment asked for
    yield pvti.startTrace(tmp_path)
    pvti.closeTrace()


@pytest.fixture
def finish(trace_path: str) -> Iterator[Callable[[], Trace]]:
    """End the trace around the test and open it."""
    opened: list[Trace] = []

    def close_and_open() -> Trace:
        pvti.closeTrace()
        opened.append(openTrace(trace_path))
        return opened[-1]

    yield close_and_open
    for trace in opened:
        trace.close()


_names = itertools.count()


@pytest.fixture
def channel() -> pvti.TraceChannel:
    """A channel that no other test uses."""
    return pvti.createTraceChannel(f"channel {next(_names)}")
