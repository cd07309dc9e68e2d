"""A report grows run by run: what a killed program leaves holds the runs that ended."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from pva.check import check
from pva.formats import registry

ROOT = Path(__file__).parents[2]
PROGRAM = """
import os, signal, sys
from simulator import poplar

device = poplar.IPUModel("tiny").createDevice()
graph = poplar.Graph(device.getTarget())
a, b = (graph.addVariable(poplar.FLOAT, [4], name) for name in "ab")
graph.setTileMapping(a, 0)
graph.setTileMapping(b, 1)
options = {"autoReport.all": True, "autoReport.directory": sys.argv[1]}
engine = poplar.Engine(graph, poplar.program.Copy(a, b), options)
engine.load(device)
for name in ("first", "second", "third"):
    engine.run(0, name)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_report_of_a_killed_program_holds_the_runs_that_ended(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "report")]
    ended = subprocess.run(command, env=environment, cwd=tmp_path, check=False)
    assert ended.returncode == -signal.SIGKILL
    data = registry.read(tmp_path / "report")
    assert data.column("runs", "name").tolist() == ["first", "second", "third"]
    recorded = data.column("runs", "end_step") > data.column("runs", "first_step")
    assert recorded.tolist() == [True, True, False]
    assert check(data) == []


def test_a_second_program_is_refused_by_name_until_the_first_is_killed(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    waits = PROGRAM.replace("os.kill(", "print(flush=True); sys.stdin.read(); os.kill(")
    command = [sys.executable, "-c", waits, str(tmp_path / "report")]
    given = {"env": environment, "cwd": tmp_path, "text": True}
    pipes = dict.fromkeys(("stdin", "stdout"), subprocess.PIPE)
    with subprocess.Popen(command, **given, **pipes) as first:
        first.stdout.readline()
        before = {file: file.read_bytes() for file in (tmp_path / "report").iterdir()}
        second = subprocess.run(command, **given, capture_output=True, check=False)
        assert f"report: process {first.pid} on " in second.stderr.splitlines()[-1]
        assert {file: file.read_bytes() for file in (tmp_path / "report").iterdir()} == before
    assert first.returncode == -signal.SIGKILL
    third = subprocess.run(command, **given, capture_output=True, input="", check=False)
    assert third.returncode == -signal.SIGKILL
    assert check(registry.read(tmp_path / "report")) == []
