"""A trace that has ended, for whatever reason, is no running trace."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from test_pvti_processes import labels, run

import pvti
from pva.trace import openTrace


def wait_for_the_end(channel: pvti.TraceChannel) -> None:
    deadline = time.monotonic() + 60
    while channel.begins is not None and time.monotonic() < deadline:
        with pvti.Tracepoint(channel, "x"):
            time.sleep(0.01)


def end_by_duration(folder: Path, channel: pvti.TraceChannel) -> None:
    pvti.startTrace(folder, duration=0.2)
    wait_for_the_end(channel)


def end_by_removal(folder: Path, channel: pvti.TraceChannel) -> None:
    path = pvti.startTrace(folder)
    with pvti.Tracepoint(channel, "x"):
        pvti.writeTrace()
    os.unlink(path)
    wait_for_the_end(channel)


@pytest.mark.parametrize("end", [end_by_duration, end_by_removal])
def test_after_its_end_no_trace_runs_and_another_can_be_started(
    tmp_path: Path, channel: pvti.TraceChannel, end: Callable[[Path, pvti.TraceChannel], None]
) -> None:
    pvti.closeTrace()
    end(tmp_path / "first", channel)
    assert (pvti.getCurrentTraceFilename(), pvti.writeTrace()) == ("", "")
    path = pvti.startTrace(tmp_path / "second")
    with pvti.Tracepoint(channel, "later"):
        pass
    pvti.closeTrace()
    trace = openTrace(path)
    assert (labels(trace), trace.is_finished) == (["later"], True)
    trace.close()


def test_what_runs_at_the_exit_of_the_program_is_recorded(tmp_path: Path) -> None:
    body = """
import atexit
atexit.register(lambda: pvti.Tracepoint(channel, "bye").__enter__().__exit__(None, None, None))
with pvti.Tracepoint(channel, "main"): pass
"""
    assert run(body, tmp_path) == ("", "")
    trace = openTrace(tmp_path)
    assert (labels(trace), trace.is_finished) == (["main", "bye"], True)
    trace.close()


def test_without_a_thread_that_writes_the_end_takes_it_all(tmp_path: Path) -> None:
    body = """
def refuse(*_, **named): raise RuntimeError("daemon threads are disabled in this interpreter")
threading.Thread = refuse
with pvti.Tracepoint(channel, "x"): pass
"""
    assert run(body, tmp_path) == ("", "")
    trace = openTrace(tmp_path)
    assert (labels(trace), trace.is_finished) == (["x"], True)
    trace.close()
