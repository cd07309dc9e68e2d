"""A point of an exploration, run as `python -m cli.programs.point ROW MEMORY REPORT ARGS...`.

It runs `tilescope simulate ARGS... --out REPORT` and writes the figures of the report to ROW.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from contextlib import suppress
from pathlib import Path

from cli.main import tilescope
from pva.errors import PvaError
from pva.schema.exploration import PointFigures

PR_SET_PDEATHSIG = 1  # of <linux/prctl.h>
FITS, MISSES = 0, 1


def main() -> int:
    """Run a point; its exit code is 0 where there are figures, of a miss, too."""
    row, memory, report, *arguments = sys.argv[1:]
    _end_with_parent()
    _limit(int(memory))
    try:
        code = _simulate(arguments, report)
        figures = _figures(Path(report))
    except MemoryError:
        limit = f"{int(memory):,} bytes"
        figures, code = {"error": f"needed more memory than its limit of {limit}"}, MISSES
    if not figures:
        return code or MISSES
    if code and figures.get("fits") is not False:
        figures.setdefault("error", f"the program ended with exit code {code}")
    figures["memory"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    Path(row).write_text(json.dumps(figures, default=str), encoding="utf-8")
    return 0


def _simulate(arguments: list[str], report: str) -> int:
    """Simulate, and return the exit code; a MemoryError goes on."""
    try:
        outcome = tilescope.main(
            ["simulate", *arguments[:1], "--out", report, *arguments[1:]],
            "tilescope",
            standalone_mode=False,
        )
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else MISSES
    except MemoryError:
        raise
    except Exception as error:
        print(str(error) or type(error).__name__, file=sys.stderr)
        return MISSES
    return outcome if isinstance(outcome, int) else FITS


def _figures(report: Path) -> PointFigures:
    from pva.many.points import figures
    from pva.report import openReport

    try:
        return figures(openReport(report))
    except PvaError:
        return {}


def _limit(memory: int) -> None:
    """Let this process have so many bytes; 0 is all that there are."""
    if memory:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))


def _end_with_parent() -> None:
    """End when who started this ends, where the system can do that."""
    with suppress(OSError, AttributeError):
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(os.environ.get("TILESCOPE_PARENT", os.getppid())):
        sys.exit(MISSES)


if __name__ == "__main__":
    sys.exit(main())
