"""Signal handlers of the program, which run in the middle of anything."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from test_pvti_processes import labels, run

from pva.trace import openTrace

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")


def recorded(folder: Path) -> tuple[list[str], bool]:
    """Return the labels of the only trace, and whether it is finished."""
    trace = openTrace(folder)
    found = labels(trace), trace.is_finished
    trace.close()
    return found


IN_THE_MIDDLE = """
import signal, faulthandler, pvti.writer
faulthandler.dump_traceback_later(60, exit=True)
original = pvti.writer.TraceFile._insert
def insert(*arguments):
    if threading.current_thread() is threading.main_thread():
        pvti.writer.TraceFile._insert = original
        time.sleep(0.3)  # the writer comes and waits
        signal.raise_signal(signal.SIGALRM)
    original(*arguments)
signal.signal(signal.SIGALRM, lambda *_: {handler})
pvti.writer.TraceFile._insert = insert
"""


@pytest.mark.parametrize("handler", ["pvti.closeTrace()", "(pvti.closeTrace(), sys.exit(0))"])
def test_closing_in_the_middle_of_a_commit_finishes_the_file(tmp_path: Path, handler: str) -> None:
    body = (
        IN_THE_MIDDLE.format(handler=handler)
        + """
with pvti.Tracepoint(channel, "x"): pass
pvti.writeTrace()
"""
    )
    assert run(body, tmp_path)[1] == ""
    assert recorded(tmp_path) == (["x"], True)


@pytest.mark.parametrize("mode", ["file", "ring"])
def test_handlers_may_write_and_close_at_any_time(tmp_path: Path, mode: str) -> None:
    body = f"""
import signal, faulthandler
faulthandler.dump_traceback_later(60, exit=True)
handlers = (pvti.closeTrace, pvti.writeTrace, lambda: pvti.startTrace(mode={mode!r}))
for number in range(30):
    signal.signal(signal.SIGALRM, lambda *_: handlers[number % 3]())
    signal.setitimer(signal.ITIMER_REAL, 0.005 + 0.0007 * number)
    until = time.monotonic() + 0.04
    while time.monotonic() < until:
        with pvti.Tracepoint(channel, "x"): pass
        pvti.writeTrace()
    pvti.startTrace(mode={mode!r}, seconds=1)
"""
    assert run(body, tmp_path)[1] == ""


RAISING = """
import signal
class Timeout(Exception): pass
class Alarm:
    def raise_timeout(self, *_): raise Timeout
    __call__ = raise_timeout
def handler(*_): Alarm().raise_timeout()
signal.signal(signal.SIGALRM, {handler})
def signalled(original):
    def replaced(*arguments):
        if threading.current_thread() is threading.main_thread():
            signal.raise_signal(signal.SIGALRM)
        return original(*arguments)
    return replaced
class Value:
    __eq__ = __float__ = __str__ = signalled(None)
weights, loss = pvti.HeatmapInt("w", [0, 1]), pvti.Graph("g").addSeries("s")
with pvti.Tracepoint(channel, "x"): pass
"""
PLACES = {
    "an end": "with pvti.Tracepoint(channel, 'x', {}): buffers.Track.finish = signalled(finish)",
    "a commit": "writer.TraceFile._insert = signalled(insert); pvti.writeTrace()",
    "a heatmap": "weights.add([Value()])",
    "a series": "loss.add(Value())",
    "a label": "pvti.Tracepoint.begin(channel, Value())",
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("handler", ["handler", "Alarm().raise_timeout", "Alarm()"])
def test_what_a_handler_raises_reaches_the_program(
    tmp_path: Path, place: str, handler: str
) -> None:
    body = (
        RAISING.format(handler=handler)
        + f"""
from pvti import buffers, writer
finish, insert = buffers.Track.finish, writer.TraceFile._insert
try:
    {PLACES[place]}
except Timeout: print("raised")
buffers.Track.finish, writer.TraceFile._insert = finish, insert
with pvti.Tracepoint(channel, "later"): pass
"""
    )
    assert run(body, tmp_path) == ("raised\n", "")
    assert recorded(tmp_path)[0][-1] == "later"


def test_a_commit_that_a_handler_cut_short_is_made_again(tmp_path: Path) -> None:
    body = (
        RAISING.format(handler="handler")
        + """
from pvti import writer
insert = writer.TraceFile._insert
pvti.writeTrace()
with pvti.Tracepoint(channel, "y"): pass
writer.TraceFile._insert = signalled(insert)
try: pvti.writeTrace()
except Timeout: pass
wait_for_commits(2)  # nothing else is recorded
os._exit(0)
"""
    )
    assert run(body, tmp_path) == ("", "")
    assert recorded(tmp_path) == (["x", "y"], False)
