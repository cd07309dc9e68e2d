"""Memory that a compilation has let go of is used again, and given back at its end."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from simulator import heap

ROOT = Path(__file__).parents[2]
STATUS = Path("/proc/self/status")
PROGRAM = """
import resource
import numpy as np
from simulator.heap import reused_memory

def pages():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def held():
    return int(open("/proc/self/statm").read().split()[1])

def some():
    for _ in range(5):
        rows = [bytearray(3 << 23) for _ in range(4)]

some()
before = pages()
some()
alone = pages() - before
with reused_memory():
    with reused_memory():  # which ends with the one around it
        some()
    before = pages()
    some()
    within = pages() - before
    kept = held()
print(within * 4 < alone, held() < kept)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="a function of glibc")
def test_memory_is_used_again_and_given_back() -> None:
    command = [sys.executable, "-c", PROGRAM]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "True True\n"


@pytest.mark.skipif(not STATUS.exists(), reason="a file of Linux")
def test_large_pages_are_off_within_alone() -> None:
    def allowed() -> list[str]:
        return [row for row in STATUS.read_text().splitlines() if row.startswith("THP_enabled")]

    before = allowed()
    with heap.reused_memory():
        assert allowed() in ([], ["THP_enabled:\t0"])
    assert allowed() == before


@pytest.mark.skipif(sys.platform != "linux", reason="a function of glibc")
def test_much_memory_between_arrays_is_given_back() -> None:
    def held() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    with heap.reused_memory():
        rows = [bytearray(1 << 18) for _ in range(256)]
        del rows[::2]  # 32 MB
        before = held()
        heap.give_back_much()  # not so much as to be given back
        kept = held()
        heap.give_back_much(1 << 24)
        assert before - kept < 1 << 22
        assert before - held() > 20 << 20
