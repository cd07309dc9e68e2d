"""A signal handler that raises at each place of a commit: what others recorded is in the file once.

The interpreter runs handlers where a function begins and after each call, so these are the places.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest
from test_pvti_processes import labels, run

from pva.trace import openTrace

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")

# `interrupted(n, call)` raises at the n-th place, and tells whether there was one.
INTERRUPTED = """
import dis, signal
from pvti import channel as channels
class Timeout(Exception): pass
def handler(*_): raise Timeout
signal.signal(signal.SIGALRM, handler)
BREAKS = {dis.opmap[name] for name in ("RESUME", "CALL", "CALL_FUNCTION_EX", "JUMP_BACKWARD")
          if name in dis.opmap}

def interrupted(wanted, function):
    places, last = 0, {}
    def at_place(frame, event, _):
        nonlocal places
        frame.f_trace_opcodes = True
        code = frame.f_code
        if "/pvti/" not in code.co_filename: return None
        if event == "opcode":
            before = last.get(frame)
            last[frame] = frame.f_lasti
            if before is not None and code.co_code[before] in BREAKS:
                places += 1
                if places == wanted: signal.raise_signal(signal.SIGALRM)
        return at_place
    sys.settrace(at_place)
    try: function()
    except Timeout: pass
    finally: sys.settrace(None)
    return places >= wanted

def record(name):
    for number in range(3):
        with pvti.Tracepoint(channel, name): pass
    pvti.Tracepoint.begin(channel, name)
    with pvti.Tracepoint(channel, name, {"number": 1}): pass
    pvti.Tracepoint.event(channel, name)
    pvti.Tracepoint.end(channel, name)
"""
SWEEP = """
number, goes_on, paths = 0, True, []
while goes_on:
    number += 1
    pvti.startTrace(mode=MODE)
    with pvti.Tracepoint(channel, "starts the trace"): pass
    for _ in range(2):
        thread = threading.Thread(target=record, args=["of a thread"])
        thread.start(); thread.join()
    record("of the main thread")
    goes_on = interrupted(number, pvti.CALL)
    record("later")
    pvti.closeTrace()
    paths.append(pvti.recorder._current.place.path)
print(number, *paths)
"""


@pytest.mark.parametrize(
    ("mode", "function", "accelerator"),
    [
        ("file", "writeTrace", "1"),
        ("file", "writeTrace", "0"),
        ("file", "closeTrace", "1"),
        ("ring", "writeTrace", "1"),
        ("ring", "closeTrace", "1"),
    ],
)
def test_a_handler_that_raises_in_a_commit_loses_and_doubles_no_event(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, function: str, accelerator: str
) -> None:
    monkeypatch.setenv("PVTI_ACCELERATOR", accelerator)
    body = INTERRUPTED + SWEEP.replace("MODE", repr(mode)).replace("CALL", function)
    out, err = run(body, tmp_path, None)
    assert (int(out.split()[0]) > 50, err) == (True, "")
    for path in out.split()[1:]:
        trace = openTrace(tmp_path / path)
        found = Counter(labels(trace))
        assert (found["of a thread"], found["of the main thread"]) == (10, 5), path
        trace.close()


@pytest.mark.parametrize("accelerator", ["1", "0"])
def test_events_within_the_first_of_a_thread_are_in_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, accelerator: str
) -> None:
    monkeypatch.setenv("PVTI_ACCELERATOR", accelerator)
    body = """
import sys, threading
def record(label):
    with pvti.Tracepoint(channel, label): pass
def at_line(frame, event, _):
    global seen
    if "/pvti/" not in frame.f_code.co_filename: return None
    seen += event == "line"
    if event == "line" and seen == line:
        sys.settrace(None)
        record("inner")  # as a handler, a finalizer or a callback of the collector would
    return at_line
def first():
    sys.settrace(at_line); record("outer"); sys.settrace(None); record("outer")
record("thread of the start")
line = seen = 1
while seen >= line:
    line, seen = line + 1, 0
    thread = threading.Thread(target=first, name=f"line {line}"); thread.start(); thread.join()
print(line - 2)
"""
    lines, *_ = run(body, tmp_path)
    (path,) = tmp_path.glob("*.pvti")
    trace = openTrace(path)
    assert trace.problems == ()
    counts = Counter(  # the inner one may lie within the outer one
        (thread.name, trace.labels[label])
        for thread in trace.threads
        for label in thread.columns.label
    )
    assert int(lines) > 10
    for number in range(2, int(lines) + 2):
        assert counts[f"line {number}", "outer"] == 2
        assert counts[f"line {number}", "inner"] == 1
    assert len(trace.threads) == int(lines) + 2
