"""Long work says on a terminal how much time is left, on one line that goes, and nowhere else."""

from __future__ import annotations

import gzip
import io
import json
import os
import pty
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from cli.shared import progress as shown
from cli.shared.progress import ERASE, Line
from pva import progress
from pva.formats.traces import registry
from pva.report import openReport
from pva.trace import openTrace
from simulator import poplar, popops
from tests.builders import write_report

# As `tilescope` does, but without waiting for work to become long.
AT_ONCE = """
import cli.shared.progress
cli.shared.progress.QUICK = cli.shared.progress.APART = 0
from cli.main import main
main()
"""


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Write a Chrome trace of some megabytes, which is read in parts."""
    events = [{"ph": "X", "name": f"step {n % 9}", "pid": 1, "tid": 1, "ts": 9 * n, "dur": 5}
              for n in range(40_000)]  # fmt: skip
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(events))
    return path


def _run(terminal: int, *arguments: str) -> bytes:
    """Run a command with a stderr; give what it writes to stdout."""
    command = [sys.executable, "-c", AT_ONCE, *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=terminal, check=True).stdout


def _read(terminal: int) -> str:
    text = b""
    try:
        while data := os.read(terminal, 65536):
            text += data
    except OSError:  # so a terminal ends that nobody has open any more
        pass
    return text.decode()


def test_a_terminal_is_told_how_much_time_is_left(trace: Path) -> None:
    reader, terminal = pty.openpty()
    told = _run(terminal, "trace", "info", str(trace))
    os.close(terminal)
    lines = _read(reader).split(ERASE)
    assert lines[0] == lines[-1] == ""  # all was taken away
    assert any(line.startswith("reading trace.json: ") for line in lines)
    assert any(line.endswith(" s left") for line in lines)
    assert max(map(len, lines)) < 80
    assert b"40000 events" in told.replace(b",", b"")


def test_a_pipe_is_told_nothing(trace: Path) -> None:
    reader, writer = os.pipe()
    _run(writer, "trace", "info", str(trace))
    os.close(writer)
    assert _read(reader) == ""


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Stop the clock at 0, and give what is written."""
    texts: list[str] = []
    monkeypatch.setattr(shown, "_write", texts.append)
    _at(monkeypatch, 0)
    return texts


def _at(monkeypatch: pytest.MonkeyPatch, moment: float) -> None:
    monkeypatch.setattr("time.monotonic", lambda: moment)


def test_time_left_is_as_much_longer_as_there_is_more_to_do(
    written: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    line = Line()
    line("reading", 100, 400)
    _at(monkeypatch, 0.9)
    line("reading", 199, 400)  # not long yet
    for moment, done in ((20, 200), (20.1, 201), (30, 350), (31, 400)):
        _at(monkeypatch, moment)
        line("reading", done, 400)
    assert written == [
        f"{ERASE}reading: 50 %, about 40 s left",  # 100 of 300 took 20 s
        f"{ERASE}reading: 88 %, about 6 s left",  # 250 of 300 took 30 s
        ERASE,
    ]


def test_work_inside_of_other_work_is_left_out(
    written: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    line = Line()
    line("training", 0, 4)
    _at(monkeypatch, 60)
    line("running steps", 0, 9)
    line("running steps", 9, 9)
    line("training", 1, 4, "epoch 2")
    assert written == [f"{ERASE}training: 25 %, about 3 min 0 s left; epoch 2"]
    line("training", 4, 4)
    _at(monkeypatch, 8000)
    line("running steps", 1, 3)
    _at(monkeypatch, 15000)
    line("running steps", 2, 3)
    assert written[1:] == [ERASE, f"{ERASE}running steps: 67 %, about 1 h 56 min left"]


class Told(defaultdict[str, list[tuple[int, int]]]):
    """What was told of each work."""

    def __init__(self) -> None:
        super().__init__(list)

    def __call__(self, work: str, done: int, total: int, now: str) -> None:
        self[work].append((done, total))


def _goes_to_its_end(parts: list[tuple[int, int]]) -> bool:
    return parts == sorted(parts) and parts[-1][0] == parts[-1][1]


@pytest.mark.parametrize("form", ["chrome", "perfetto"])
def test_readers_and_writers_tell_how_far_they_are(trace: Path, tmp_path: Path, form: str) -> None:
    path = write_report(tmp_path / "run")
    openReport(path).to_json(tmp_path / "report.json")
    packed = tmp_path / "packed.json.gz"
    packed.write_bytes(gzip.compress(trace.read_bytes()))
    told = Told()
    with progress.listening(told):
        openReport(tmp_path / "report.json")
        openTrace(packed)
        registry.write(openTrace(trace), io.BytesIO(), form)
    works = ["reading report.json", "reading packed.json.gz", "reading trace.json", "writing"]
    assert list(told) == works
    assert all(map(_goes_to_its_end, told.values()))
    assert min(map(len, told.values())) > 1


def test_the_simulator_tells_how_far_it_is() -> None:
    device = poplar.IPUModel("tiny").createDevice()
    graph = poplar.Graph(device.getTarget())
    popops.addCodelets(graph)
    values = graph.addVariable(poplar.FLOAT, [4], "values")
    graph.setTileMapping(values, 0)
    body = poplar.program.Sequence()
    popops.addInPlace(graph, values, values, body, "double")
    told = Told()
    with progress.listening(told):
        engine = poplar.Engine(graph, poplar.program.Repeat(5, body))
        engine.load(device)
        engine.run(0)
    assert list(told) == ["compiling", "placing variables", "running steps", "timing steps"]
    assert all(map(_goes_to_its_end, told.values()))
    assert (2, 5) in told["running steps"]


def test_work_that_fails_ends() -> None:
    told = Told()
    with progress.listening(told), pytest.raises(ZeroDivisionError):
        for number in progress.each([1, 0, 1], "dividing"):
            1 / number
    assert told["dividing"] == [(0, 3), (1, 3), (3, 3)]
    assert progress.each(numbers := [1], "nothing") is numbers
