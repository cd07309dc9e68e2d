"""How much time long work has left: one line on stderr, where that is a terminal, and only there.

The line goes when the work ends. What is left is as much longer as there is more to do: a guess,
which is worth something when all parts take about as long.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from cli.shared.output import printable
from pva import progress

Progress = Callable[[int, int, str], None]
QUICK, APART = 1.0, 0.2  # seconds that work takes without a line, and between two lines
ERASE, WIDTH = "\r\x1b[K", 80


class Line:
    """The line of the outermost work that is going on; what is told of work inside is left out."""

    def __init__(self) -> None:
        self._work = ""
        self._began = self._shown = 0.0
        self._first = 0  # that was done when it began
        self._is_shown = False

    def __call__(self, work: str, finished: int, total: int, now: str = "") -> None:
        """Take in how far some work has come, and show it where that is worth a line."""
        moment = time.monotonic()
        if not self._work and finished < total:
            self._work, self._began, self._first = work, moment, finished
        if work != self._work:
            return
        if finished >= total:
            self._work = ""
            self.erase()
        elif moment - self._began >= QUICK and moment - self._shown >= APART:
            self._shown, self._is_shown = moment, True
            remaining = (
                (moment - self._began) * (total - finished) / max(finished - self._first, 1e-9)
            )
            estimate = f", about {_time(remaining)} left" if finished > self._first else ""
            text = printable(
                f"{work}: {100 * finished / total:.0f} %{estimate}{f'; {now}' if now else ''}"
            )
            _write(f"{ERASE}{text[: _width() - 1]}")

    def erase(self) -> None:
        """Take the line away."""
        if self._is_shown:
            self._is_shown = False
            _write(ERASE)


@contextmanager
def time_left_shown() -> Iterator[None]:
    """Show how much time long work has left for as long as the block lasts, on a terminal."""
    if not _is_terminal():
        yield
        return
    line = Line()
    with progress.listening(line):
        try:
            yield
        finally:
            line.erase()


def steps_shown(work: str, parts: int = 0) -> Progress:
    """Return what shows the steps of some work: in the one line, or without a terminal a line each.

    Of more steps than `parts` those lines are so many.
    """
    if _is_terminal():
        return lambda finished, total, text: progress.tell(
            work, finished, total, text.removeprefix(f"{work} ")
        )
    last = [-1]

    def show(finished: int, total: int, text: str) -> None:
        part = finished * parts // max(total, 1) if parts else finished
        if part != last[0]:
            last[0] = part
            click.echo(f"[{finished}/{total}] {printable(text)}", err=True)

    return show


def _is_terminal() -> bool:
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def _write(text: str) -> None:
    click.echo(text, nl=False, err=True, color=True)


def _width() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or WIDTH
    except (OSError, ValueError):
        return WIDTH


def _time(seconds: float) -> str:
    """Write a time in the two largest of hours, minutes and seconds."""
    minutes, remainder = divmod(max(round(seconds), 1), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours:,} h {minutes} min"
    return f"{minutes} min {remainder} s" if minutes else f"{remainder} s"
