"""No function of the tracer waits for ever for another that a signal handler calls within it."""

from __future__ import annotations

import subprocess
import sys
import threading
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from test_pvti_processes import environment

import pvti
from pvti import recorder

CALLS = {
    "record": "record()",
    "thread": "thread = threading.Thread(target=record); thread.start(); thread.join(1)",
    "start": "pvti.startTrace()",
    "write": "pvti.writeTrace()",
    "close": "pvti.closeTrace()",
    "fork": "child = os.fork(); os._exit(0) if child == 0 else os.waitpid(child, 0)",
    "tell": "pvti.getCurrentTraceFilename()",
}
# While `OUTER` runs, a function of CALLS is called at one of its lines, each in turn, as a signal
# handler would be. The writer's thread commits all the time, and threads start slowly.
PROGRAM = """
import faulthandler, os, sys, threading, time, warnings
faulthandler.dump_traceback_later(100, exit=True)
warnings.simplefilter("ignore")  # to fork while threads run is what is tested
import pvti
from pvti import recorder
recorder.COMMIT_SECONDS, recorder.JOINING_SECONDS = 0.0005, 0.01
start_thread = threading.Thread.start
def start(thread):
    start_thread(thread)
    time.sleep(0.001)
threading.Thread.start = start
channel = pvti.createTraceChannel("channel")
def record():
    with pvti.Tracepoint(channel, "x"): pass
def outer(): {outer}
inners = [lambda: {inners}]
def interrupt(frame, event, argument):
    global seen
    if not frame.f_code.co_filename.startswith(os.path.dirname(pvti.__file__)): return None
    seen += event == "line"
    if event == "line" and seen == line:
        sys.settrace(None)
        time.sleep(0.001)  # the writer takes what it needs
        inner()
    return interrupt
def lines_until(number):
    global line, seen
    pvti.closeTrace(); pvti.startTrace(os.getcwd())
    if {running}: record()
    line, seen = number, 0
    sys.settrace(interrupt); outer(); sys.settrace(None)
    return seen
inner = None
count = lines_until(0)
for inner in inners:
    for number in range(1, count + 1, count // 12 + 1):
        lines_until(number)
pvti.closeTrace()
print("ended", count)
"""


@pytest.mark.parametrize("outer", CALLS)
@pytest.mark.parametrize("running", [False, True], ids=["first event", "running"])
def test_whatever_a_signal_handler_calls_in_a_function_ends(
    tmp_path: Path, outer: str, running: bool
) -> None:
    inners = ", lambda: ".join(CALLS[name] for name in CALLS if name not in ("fork", "thread"))
    program = PROGRAM.format(outer=CALLS[outer], inners=inners, running=running)
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path, env=environment(None), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.startswith("ended"), done.stderr


class Ordered:
    """A lock that notes which others its thread holds while it waits for it without a limit."""

    waits: set[tuple[str, str]] = set()
    held = threading.local()

    def __init__(self, name: str, lock: Any) -> None:
        self.name, self.lock = name, lock

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        mine = self.held.__dict__.setdefault("names", [])
        if blocking and timeout < 0:
            self.waits.update((name, self.name) for name in mine if name != self.name)
        taken = bool(self.lock.acquire(blocking, timeout))
        mine.extend([self.name] * taken)
        return taken

    def release(self) -> None:
        self.held.names.remove(self.name)
        self.lock.release()

    __enter__ = acquire

    def __exit__(self, *raised: object) -> None:
        self.release()


def test_no_thread_waits_without_limit_for_a_lock_while_it_holds_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(recorder, "_lock", Ordered("process", threading.RLock()))
    lock = threading.Lock
    monkeypatch.setattr(threading, "Lock", lambda: Ordered("other", lock()))  # of events, threads
    calls = [line for line in CALLS.values() if "fork" not in line]
    channel = pvti.createTraceChannel("locks")
    names = {"pvti": pvti, "threading": threading, "channel": channel}
    names["record"] = lambda: pvti.Tracepoint.event(channel, "x")
    pvti.startTrace(tmp_path)
    for one, other in combinations([*calls, *calls], 2):
        exec(f"{one}\n{other}", names)
    pvti.closeTrace()
    assert Ordered.waits == {("process", "other")}
