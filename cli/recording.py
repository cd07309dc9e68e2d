"""What `demo` and `simulate` share: the directory of a report and its host trace."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
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
def recorded(out: Path) -> Iterator[None]:
    """Claim `out` and trace the host into it; raises PvaError as `claimed` does."""
    with claimed(out) as claim:
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
