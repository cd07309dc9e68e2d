"""Points on the workers of a real local cluster of Dask, one of which is killed."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from pva.errors import PvaError
from simulator.explore.engine import Dask
from simulator.explore.work import Task

distributed = pytest.importorskip("distributed")
PROGRAM = """import os, sys, time
wait = sys.argv[1]
open(wait + ".began", "a").write(str(os.getppid()) + "\\n")
while not os.path.exists(wait):
    time.sleep(0.01)
raise ValueError("ended as it should")
"""


def wait_for(path: Path) -> str:
    deadline = time.monotonic() + 60
    while not (path.exists() and path.read_text().endswith("\n")):
        assert time.monotonic() < deadline, path
        time.sleep(0.01)
    return path.read_text()


def test_a_killed_worker_costs_only_its_point(tmp_path: Path) -> None:
    program = tmp_path / "p.py"
    program.write_text(PROGRAM)
    tasks = [Task(f"k{number}", (str(program), str(tmp_path / f"go{number}")),
                  str(tmp_path / f"r{number}"), 60, 0) for number in range(2)]  # fmt: skip
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, protocol="tcp"
    ) as cluster:
        engine = Dask(cluster.scheduler_address)
        futures = [engine._submit(task) for task in tasks]
        worker = int(wait_for(tmp_path / "go0.began"))
        os.kill(worker, signal.SIGKILL)
        for number in range(2):
            (tmp_path / f"go{number}").touch()
        rows = [future.result(timeout=60) for future in futures]
        engine.close()
    assert [row["error"] for row in rows] == ["ValueError: ended as it should"] * 2
    assert len((tmp_path / "go1.began").read_text().splitlines()) == 1  # the other's was not redone


def test_a_scheduler_that_does_not_answer_is_named_in_a_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pva.dask_client.SECONDS", 0.5)
    with pytest.raises(PvaError, match=r"tcp://127.0.0.1:9: no Dask scheduler answers"):
        Dask("tcp://127.0.0.1:9")
