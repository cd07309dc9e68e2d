"""Reports and summaries: of an engine's report directory, or of the values of two profiles."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from simulator.graph.errors import PoplarError
from simulator.logging import write_lines
from simulator.profile.values import dataset_of

if TYPE_CHECKING:
    from pva.report import Report as Report

Options = Mapping[str, object] | None
# Options of the graph summary, those of the execution summary, and the keywords that they set.
GRAPH_OPTIONS = {
    "showVarStorage": "show_var_storage",
    "showOptimizations": "show_optimizations",
    "showPerIpuMemoryUsage": "show_per_ipu_memory_usage",
}
EXECUTION_OPTIONS = {"showExecutionSteps": "show_execution_steps"}
# Known without any effect: the guide says of the second that it is not implemented.
COLOURS, WITHOUT_EFFECT = "colours", ("showExchangeInstructionBreakdown",)


def open_report(directory: Path) -> Report:
    """Open the report of an engine; raises PvaError."""
    from pva.report import openReport

    return openReport(directory)


def printProfileSummary(
    stream: TextIO | None,
    graphProfile: Mapping[str, Any],
    executionProfile: Mapping[str, Any] | None = None,
    options: Options = None,
) -> None:
    """Print the summary of profiles given as values; nothing of an execution that is not given."""
    from pva.summary import graph_summary, profile_summary

    known = GRAPH_OPTIONS | EXECUTION_OPTIONS
    report = _report(graphProfile, executionProfile)
    if executionProfile:
        _print(profile_summary, report, stream, options, known)
    else:
        _print(graph_summary, report, stream, options, known, GRAPH_OPTIONS)


def printGraphSummary(
    stream: TextIO | None, graphProfile: Mapping[str, Any], options: Options = None
) -> None:
    """Print the summary of a graph profile given as a value."""
    from pva.summary import graph_summary

    _print(graph_summary, _report(graphProfile), stream, options, GRAPH_OPTIONS)


def write_graph_report(destination: str, graphProfile: Mapping[str, Any]) -> None:
    """Write the summary of a graph profile to stdout, to stderr or to the end of a file.

    Raises PoplarError, which names the option, when the file cannot be written.
    """
    text = io.StringIO()
    printGraphSummary(text, graphProfile)
    write_lines("debug.graphReportDestination", destination, text.getvalue().rstrip("\n"))


def printExecutionSummary(
    stream: TextIO | None,
    graphProfile: Mapping[str, Any],
    executionProfile: Mapping[str, Any],
    options: Options = None,
) -> None:
    """Print the summary of an execution profile given as a value, with the graph's beside it."""
    from pva.summary import execution_summary

    report = _report(graphProfile, executionProfile)
    _print(execution_summary, report, stream, options, EXECUTION_OPTIONS)


def _report(graph: Mapping[str, Any], execution: Mapping[str, Any] | None = None) -> Report:
    from pva.report import Report

    return Report.of(dataset_of(graph, execution))


def _print(
    summary: Callable[..., str],
    report: Report,
    stream: TextIO | None,
    options: Options,
    known: Mapping[str, str],
    taken: Mapping[str, str] | None = None,
) -> None:
    """Print a summary with the options `known`, of which it takes those in `taken`."""
    from pva.summary import use_colours

    text = stream or sys.stdout
    chosen = {}
    colours: bool | None = None
    for name, value in (options or {}).items():
        switched = _switch(name, value)
        if name == COLOURS:
            colours = switched
        elif name in known:
            chosen[name] = switched
        elif name not in WITHOUT_EFFECT:
            names = ", ".join([*known, COLOURS, *WITHOUT_EFFECT])
            raise PoplarError(f"profile summary: no option {name!r}; known are {names}")
    keywords = {
        keyword: chosen[name]
        for name, keyword in (known if taken is None else taken).items()
        if name in chosen
    }
    paint = use_colours(colours, text.isatty())
    print(summary(report, colours=paint, **keywords), file=text, end="")


def _switch(name: str, value: object) -> bool:
    found = str(value).lower()
    if found not in ("true", "false"):
        raise PoplarError(f"profile summary: {name} is {value!r}; it must be true or false")
    return found == "true"
