"""What `demo` and `simulate` share: the directory of a report, its host trace, progress."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click._termui_impl import ProgressBar

Progress = Callable[[int, int, str], None]
TRACES = "*.pvti"


@contextmanager
def recorded(out: Path) -> Iterator[None]:
    """Claim `out` for a new report, in the place of an earlier one, and trace the host into it.

    Raises PvaError, with nothing touched, when `out` holds anything else.
    """
    from pva.formats import report_directory
    from pva.formats.registry import PARTS

    claim = report_directory.claim(out, PARTS, alone=True)
    try:
        import pvti

        trace = Path(pvti.startTrace(out.resolve()))
        if trace.parent == out.resolve():
            claim.expect(trace.name, str(os.getpid()))
        yield
    finally:
        import pvti

        pvti.closeTrace()
        for file in out.glob(TRACES):  # its children may have written some, too
            claim.seal(file.name)
        claim.release()
        with suppress(OSError):  # there is something in it
            out.rmdir()


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
