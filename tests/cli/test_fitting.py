"""A terminal shows tables, facts and lists in its width; a pipe gets whole lines."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.shared import fitting
from cli.shared.output import table_lines
from tests.builders import write_report

ROOT = Path(__file__).parents[2]
COMMANDS = ("show insights REPORT", "show steps REPORT", "show memory_overview REPORT",
            "show", "info REPORT", "info REPORT --tables", "compare REPORT REPORT")  # fmt: skip
Terminal = Callable[[int], None]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Return a function that makes stdout a terminal so wide."""

    def of_width(width: int) -> None:
        monkeypatch.setattr(fitting, "terminal_width", lambda: width)
        monkeypatch.setattr("cli.shared.output.terminal_width", lambda: width)

    return of_width


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(tmp_path_factory.mktemp("fitting") / "small")


def on_terminal(words: list[str], width: int) -> str:
    """Run a command on a terminal of its own, whose pager shows all at once."""
    own, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    environment = {key: value for key, value in os.environ.items() if key not in ("CI", "COLUMNS")}
    environment |= {"PAGER": "cat", "TERM": "xterm", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "cli.main", *words]
    parts = []
    with subprocess.Popen(command, stdin=its, stdout=its, stderr=its, env=environment):
        os.close(its)
        while part := _read(own):
            parts.append(part)
    os.close(own)
    return b"".join(parts).decode().replace("\r\n", "\n")


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # how Linux says that its other end is closed
        return b""


@pytest.mark.parametrize("command", COMMANDS)
def test_no_line_is_wider_than_the_terminal(report: Path, command: str) -> None:
    words = command.replace("REPORT", str(report)).split()
    lines = on_terminal(words, 80).splitlines()
    assert len(lines) > 3
    assert not any(line.startswith("tilescope:") for line in lines)
    # Paths stand in lines of their own, whole, so that they can be copied.
    assert [line for line in lines if len(line) > 80 and str(report) not in line] == []


def test_the_line_that_all_laws_hold_wraps(report: Path) -> None:
    lines = on_terminal(["check", str(report)], 70)
    assert re.search(r"small: keeps all \d+ laws that were checked$", " ".join(lines.split()))
    assert [line for line in lines.splitlines() if len(line) > 70] == []
    assert len(lines.splitlines()) == 2


def test_cells_wrap_at_words_and_parts_of_names(terminal: Terminal) -> None:
    rows = [("Layer1/Fwd/Convolve", 12, "what it does in a few words")]
    terminal(40)  # 4 of them stand between the columns
    assert list(table_lines(("name", "cycles", "meaning"), rows)) == [
        "name             cycles  meaning",
        "Layer1/Fwd/          12  what it does in",
        "Convolve                 a few words",
    ]
    terminal(80)
    assert len(list(table_lines(("name", "cycles", "meaning"), rows))) == 2


def test_rows_without_room_for_columns_are_stacked(terminal: Terminal) -> None:
    terminal(20)
    rows = [("a name", 1000, 0.5), ("another, longer name", 2000, 0.25)]
    assert list(table_lines(("name", "cycles", "share"), rows)) == [
        "name    a name",
        "cycles  1,000",
        "share   50.0 %",
        "",
        "name    another,",
        "        longer name",
        "cycles  2,000",
        "share   25.0 %",
    ]


def test_pipe_gets_whole_lines() -> None:
    rows = [("a" * 60, "b" * 60)]
    assert list(table_lines(("one", "two"), rows))[1] == f"{'a' * 60}  {'b' * 60}"


def test_a_command_stays_whole_so_that_it_can_be_copied(terminal: Terminal) -> None:
    command = "tilescope explore models/m.onnx --vary precision=float,half --out explore-m"
    terminal(30)
    lines = list(table_lines(("what", "try_it"), [("half of it is in floats", command)]))
    assert lines == ["what    half of it is in", "        floats", f"try_it  {command}"]
