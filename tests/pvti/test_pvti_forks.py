"""Forked children: whatever the parent was at, they write into files of their own, or into none."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from test_pvti_processes import labels, run

from pva.trace import openTrace

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no fork")


def recorded(folder: Path) -> dict[str, list[str]]:
    """Give the labels of each file, by the process in its name."""
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
