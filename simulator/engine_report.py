"""An engine's report, read back from the files that it has written."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from simulator.graph.errors import PoplarError

if TYPE_CHECKING:
    from pva.report import Report as Report

# printProfileSummary's options, and the keywords of the summary that they set.
OPTIONS = {
    "showVarStorage": "show_var_storage",
    "showOptimizations": "show_optimizations",
    "showExecutionSteps": "show_execution_steps",
    "showPerIpuMemoryUsage": "show_per_ipu_memory_usage",
    "colours": "colours",
}


def open_report(directory: Path) -> Report:
    """Open the report of an engine; raises PvaError."""
    from pva.report import openReport

    return openReport(directory)


def print_profile_summary(
    directory: Path, text: TextIO | None = None, options: Mapping[str, object] | None = None
) -> None:
    """Print the profile summary of an engine's report to a stream, stdout if none is given."""
    from pva.summary.profile_summary import profile_summary

    chosen = {}
    for name, value in (options or {}).items():
        if name not in OPTIONS:
            known = ", ".join(OPTIONS)
            raise PoplarError(f"printProfileSummary: no option {name!r}; known are {known}")
        chosen[OPTIONS[name]] = str(value).lower() == "true"
    print(profile_summary(open_report(directory), **chosen), file=text or sys.stdout, end="")
