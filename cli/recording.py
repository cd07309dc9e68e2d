"""What `demo` and `simulate` share: the directory of a report, its host trace, progress."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pva.errors import PvaError

if TYPE_CHECKING:
    from click._termui_impl import ProgressBar

Progress = Callable[[int, int, str], None]

# What a run leaves; an earlier report in the same place makes room for the new one.
_LEFT_BY_RUNS = (
    "profile.pop", "debug.cbor", "framework.json", "app.json", "graph.json", "graph.cbor",
    "execution.json", "execution.cbor", "*.pvti", "*.pvti-journal", "*.pop-journal",
)  # fmt: skip


@contextmanager
def recorded(out: Path) -> Iterator[None]:
    """Make `out` ready for a new report, and trace the host into it; raises PvaError."""
    _make_room(out)
    import pvti

    pvti.startTrace(out.resolve())
    try:
        yield
    finally:
        pvti.closeTrace()
        with suppress(OSError):  # there is something in it
            out.rmdir()


def _make_room(out: Path) -> None:
    """Remove an earlier report. A directory of anything else is left alone: raises PvaError."""
    out.mkdir(parents=True, exist_ok=True)
    earlier = [file for pattern in _LEFT_BY_RUNS for file in out.glob(pattern)]
    if not earlier and any(out.iterdir()):
        raise PvaError(
            out, "a directory that holds something else", "give a new one, or that of a report"
        )
    for file in earlier:
        file.unlink()


@contextmanager
def progress_shown() -> Iterator[Progress]:
    """Show progress on stderr: a bar on a terminal, a line each step otherwise."""
    if not sys.stderr.isatty():
        yield lambda done, total, text: click.echo(f"[{done}/{total}] {text}", err=True)
        return
    shown = [""]
    bar: ProgressBar[int] = click.progressbar(
        length=1, file=sys.stderr, item_show_func=lambda _: shown[0]
    )

    def update(done: int, total: int, text: str) -> None:
        bar.length, shown[0] = total, text
        bar.update(done - bar.pos)
        bar.render_progress()

    with bar:
        yield update
