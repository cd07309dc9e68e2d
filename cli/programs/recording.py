"""What `demo` and `simulate` share: the directory of a report and its host trace."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pva.formats.report_directory import Claim

TRACES = "*.pvti"


@contextmanager
def claimed(out: Path) -> Iterator[Claim]:
    """Claim `out` for a new report, in the place of an earlier one.

    Raises PvaError, with nothing touched, when `out` holds anything else.
    """
    from pva.formats import report_directory
    from pva.formats.registry import PARTS

    claim = report_directory.claim(out, PARTS, alone=True)
    try:
        yield claim
    finally:
        claim.release()
        with suppress(OSError):  # there is something in it
            out.rmdir()


@contextmanager
def _named(command: Sequence[str]) -> Iterator[None]:
    """Let reports tell by which command they were written."""
    from simulator.profile.write import COMMAND_VARIABLE, with_folders_below

    directory = Path.cwd()
    words = [with_folders_below(directory, word) for word in command]
    os.environ[COMMAND_VARIABLE] = json.dumps(words)
    try:
        yield
    finally:
        del os.environ[COMMAND_VARIABLE]


@contextmanager
def recorded(out: Path, command: Sequence[str] = ()) -> Iterator[None]:
    """Claim `out` and trace the host into it; raises PvaError as `claimed` does.

    Reports that are written meanwhile name the command, the words behind `tilescope`.
    """
    with claimed(out) as claim, _named(command) if command else nullcontext():
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
