"""Forked children: whatever the parent was at, they write into files of their own, or into none."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from test_pvti_processes import labels, run

from pva.trace import openTrace

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no fork")


def recorded(folder: Path) -> dict[str, list[str]]:
    """Return the labels of each file, by the process in its name."""
    found = {}
    for path in folder.glob("*.pvti"):
        trace = openTrace(path)
        found[path.stem.rsplit("_", 1)[1]] = labels(trace)
        trace.close()
    return found


def test_a_child_that_leaves_its_parents_block_writes_nothing_into_its_file(
    tmp_path: Path,
) -> None:
    body = """
x, block = pvti.Tracepoint(channel, "x"), pvti.Tracepoint(channel, "block")
with block:
    for _ in range(1000):
        with x: pass
    child = os.fork()
    if child == 0: time.sleep(0.6)  # the writer is late: an end does its part
if child == 0: sys.exit()
os.waitpid(child, 0)
print(os.getpid())
"""
    out, err = run(body, tmp_path)
    assert err == ""
    assert sorted(recorded(tmp_path)[out.strip()]) == ["block"] + ["x"] * 1000


def test_a_child_forked_in_the_middle_of_a_commit_does_not_make_it(tmp_path: Path) -> None:
    body = """
import pvti.writer
children = []
original = pvti.writer.TraceFile._insert
def insert(*arguments):
    original(*arguments)
    if not children: children.append(os.fork())  # as a signal handler may
pvti.writer.TraceFile._insert = insert
with pvti.Tracepoint(channel, "x"): pass
pvti.writeTrace()
if children == [0]: os._exit(0)
print(os.waitpid(children[0], 0)[1])
with pvti.Tracepoint(channel, "y"): pass
"""
    assert run(body, tmp_path) == ("0\n", "")
    assert list(recorded(tmp_path).values()) == [["x", "y"]]


PAUSE = """
import warnings
from pvti import channel as channels
warnings.simplefilter("ignore")  # to fork while threads run is what is tested
paused, go_on, send_to = threading.Event(), threading.Event(), channels.send_to
def pause(*arguments):
    if threading.current_thread() is other:
        paused.set()
        go_on.wait()  # the fork waits for what is under way
    send_to(*arguments)
def work():
    if {closing}: pvti.closeTrace()
    else:
        with pvti.Tracepoint(channel, "other"): pass
if {closing}:
    with pvti.Tracepoint(channel, "early"): pass
other = threading.Thread(target=work)
channels.send_to = pause
other.start(); paused.wait()
threading.Timer(0.2, go_on.set).start()
child = os.fork()
if child == 0:
    signal.alarm(30)
    thread = threading.Thread(target=lambda: pvti.Tracepoint(channel, "child").__enter__())
    thread.start(); thread.join()
    os._exit(0)
print(os.waitpid(child, 0)[1])
other.join()
"""


@pytest.mark.parametrize(("closing", "files"), [(True, 1), (False, 2)])
def test_a_child_does_not_wait_for_a_thread_that_starts_or_ends_the_trace(
    tmp_path: Path, closing: bool, files: int
) -> None:
    body = "import signal\n" + PAUSE.format(closing=closing)
    assert run(body, tmp_path) == ("0\n", "")
    assert len(recorded(tmp_path)) == files  # a trace that was ended has no successor in the child


def test_the_child_of_a_process_whose_trace_has_ended_records_nothing(tmp_path: Path) -> None:
    body = """
with pvti.Tracepoint(channel, "x"): pass
pvti.closeTrace()
child = os.fork()
with pvti.Tracepoint(channel, "y"): pass
if child: os.waitpid(child, 0)
"""
    run(body, tmp_path)
    assert list(recorded(tmp_path).values()) == [["x"]]


def test_the_process_has_no_thread_of_pvti_while_it_forks(tmp_path: Path) -> None:
    # Python 3.12 would warn, on the standard error of a program that has no thread of its own.
    body = """
seen = []
os.register_at_fork(before=lambda: seen.append(threading.active_count()))  # the last to be called
pvti.startTrace()
for label in "xy":
    with pvti.Tracepoint(channel, label): pass
    if os.fork() == 0: os._exit(0)
    seen.append(threading.active_count())
print(seen)
"""
    assert run(body, tmp_path, options=None) == ("[1, 2, 1, 2]\n", "")
    assert list(recorded(tmp_path).values()) == [["x", "y"]]


def test_a_program_that_forks_often_is_committed_as_often_as_others(tmp_path: Path) -> None:
    body = """
from pvti import recorder
recorder.Recorder._help = lambda self: None  # the writer alone commits
pvti.startTrace()
until = time.monotonic() + 1
while time.monotonic() < until:
    with pvti.Tracepoint(channel, "x"): pass
    if os.fork() == 0: os._exit(0)
    os.wait()
os._exit(0)
"""
    run(body, tmp_path, options=None)
    (names,) = recorded(tmp_path).values()
    assert len(names) > 10
