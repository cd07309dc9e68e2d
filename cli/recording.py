"""What `demo` and `simulate` share: the directory of a report and its host trace."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

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
