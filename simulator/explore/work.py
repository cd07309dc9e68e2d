"""The unit of work: one point in a process of its own, with a limit on its time and its memory.

What comes back is always a row: of a point that crashes, hangs or is killed, too.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pva.schema.exploration import PointFigures
from simulator.explore.levers import Point

MODULE = "cli.programs.point"  # the process of a point; named, as what lies above is not imported
ROW = "row.json"
LAST_WORDS = 300  # characters of what a process said before it ended
RAISED = re.compile(r"(\w+\.)*\w*(Error|Exception|Exit|Interrupt)\b(: |$)")  # ends a traceback
DISK_FULL = "No space left on device"
# How a product or convolution is refused whose temporary data is more than a tile has.
NO_PLAN = re.compile(
    r"(?P<step>\S+): no plan fits: the smallest takes (?P<needs>[\d,]+) B of temporary data a tile,"
    r" which has (?P<has>[\d,]+) B"
)

Row = PointFigures


@dataclass(frozen=True, slots=True)
class Task:
    """A point to be run: its key, the arguments of `simulate`, its directory, its limits."""

    key: str
    arguments: tuple[str, ...]
    report: str
    seconds: float
    memory: int


class Running:
    """The processes of the points that run now, so that all can be ended at once."""

    def __init__(self) -> None:
        self._processes: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self.is_over = False

    def add(self, process: subprocess.Popen[bytes]) -> None:
        """Take in a process; end it when all are to end."""
        with self._lock:
            self._processes.add(process)
            if self.is_over:
                _end(process)

    def remove(self, process: subprocess.Popen[bytes]) -> None:
        """Let go of a process that has ended."""
        with self._lock:
            self._processes.discard(process)

    def end(self) -> None:
        """End all processes, and each that is added from now on."""
        with self._lock:
            self.is_over = True
            for process in self._processes:
                _end(process)


def run_point(task: Task, running: Running | None = None) -> Row:
    """Run one point and return its row; its report is then in the directory of the task."""
    folder = Path(task.report)
    began = time.monotonic()
    folder.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(folder, ignore_errors=True)  # of a run that was killed
    scratch = folder.with_name(f"{folder.name}.work")
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    try:
        error = _process(task, scratch, running or Running())
        row = _read(scratch / ROW)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    row = _unplanned(error) or {**row, "error": row.get("error") or error}
    return {**row, "seconds": round(time.monotonic() - began, 3)}


def _unplanned(error: str) -> Row:
    """Return the row of a point that does not fit as a product has no plan; nothing of others."""
    match = NO_PLAN.search(error)
    if match is None:
        return {}
    needs, has = (int(match[name].replace(",", "")) for name in ("needs", "has"))
    live = f"temporary data of {match['step']} ({needs:,} bytes)"
    return {"fits": False, "fullest_tile": needs, "bytes_per_tile": has, "over": needs - has,
            "step_name": match["step"], "live": live, "error": ""}  # fmt: skip


def _process(task: Task, scratch: Path, running: Running) -> str:
    """Run the process of a point; return why it ended badly or has no plan, or nothing."""
    output = scratch / "said.txt"
    command = [sys.executable, "-m", MODULE, str(scratch / ROW), str(task.memory), task.report]
    # Points run beside one another: each has one thread for arithmetic.
    one_thread = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    with output.open("wb") as stream:
        process = subprocess.Popen(
            [*command, *task.arguments],
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=os.environ | one_thread | {"TILESCOPE_PARENT": str(os.getpid())},
        )
        running.add(process)
        try:
            code = process.wait(task.seconds)
        except subprocess.TimeoutExpired:
            _end(process)
            process.wait()
            return f"took longer than {task.seconds:g} s, and was ended"
        except BaseException:
            _end(process)
            process.wait()
            raise
        finally:
            running.remove(process)
    if code < 0:
        return _killed(-code)
    words = _last_words(output, code)
    return words if code or NO_PLAN.search(words) else ""


def _killed(number: int) -> str:
    name = signal.Signals(number).name if number in set(signal.Signals) else str(number)
    memory = ", as the system does when memory runs out" if number == signal.SIGKILL else ""
    return f"killed by {name}{memory}"


def _last_words(output: Path, code: int) -> str:
    """Return the exception that a process ended with, else its last line."""
    lines = [line for line in output.read_text("utf-8", "replace").splitlines() if line.strip()]
    raised = [line for line in lines if RAISED.match(line)]
    text = (raised or lines or [""])[-1].strip()[:LAST_WORDS]
    return text or f"ended with exit code {code}"


def _read(path: Path) -> Row:
    try:
        row: Row = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):  # it ended before it wrote, or while it did
        return {}
    return row.copy()


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def is_of_limits(row: PointFigures) -> bool:
    """Return whether a point was ended for its time or memory: a milder one may have figures."""
    return str(row.get("error") or "").startswith(("took longer", "killed", "needed more memory"))


def is_disk_full(row: Row) -> bool:
    """Return whether a point failed as there was no room for its report."""
    return DISK_FULL in str(row.get("error", ""))


def tasks_of(points: Sequence[Point], reports: Path, seconds: float, memory: int) -> list[Task]:
    """Make the tasks of points, whose reports go to a directory."""
    return [
        Task(point.key, point.arguments, str(reports / point.key), seconds, memory)
        for point in points
    ]
