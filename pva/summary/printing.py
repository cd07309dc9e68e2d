"""The functions of the user guide that print a summary to a stream."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from typing import TextIO

from pva.errors import OptionError
from pva.report import Profile, Report
from pva.summary.layout import is_terminal, use_colours
from pva.summary.profile_summary import execution_texts, graph_texts, profile_texts

Options = Mapping[str, object] | None

COLOURS = "colours"
GRAPH_OPTIONS = {
    "showVarStorage": "show_var_storage",
    "showOptimizations": "show_optimizations",
    "showExchangeInstructionBreakdown": "show_exchange_instruction_breakdown",
    "showPerIpuMemoryUsage": "show_per_ipu_memory_usage",
}
EXECUTION_OPTIONS = {"showExecutionSteps": "show_execution_steps"}
OPTIONS = GRAPH_OPTIONS | EXECUTION_OPTIONS
_SWITCHES = {"true": True, "false": False}


def printProfileSummary(
    stream: TextIO | None,
    graphProfile: Report | Profile,
    executionProfile: Profile | None = None,
    options: Options = None,
) -> None:
    """Print the summary of a graph profile and of an execution profile to a stream or stdout.

    A profile is the value of its document, or a file of any format, or a report directory; a file,
    a directory or an opened report may hold both. Options are those of the guide; raises PvaError.

    >>> from io import StringIO
    >>> stream = StringIO()
    >>> printProfileSummary(stream, "sample_reports/matmul_chain_tiny")
    >>> stream.getvalue().splitlines()[:2]
    ['Target:', '  Number of IPUs:         1']
    """
    _print(profile_texts, stream, _report(graphProfile, executionProfile), options, OPTIONS)


def printGraphSummary(
    stream: TextIO | None, graphProfile: Report | Profile, options: Options = None
) -> None:
    """Print the summary of a graph profile; raises PvaError.

    >>> from io import StringIO
    >>> stream = StringIO()
    >>> printGraphSummary(stream, "sample_reports/matmul_chain_tiny")
    >>> stream.getvalue().splitlines()[2]
    '  Tiles per IPU:          4'
    """
    _print(graph_texts, stream, _report(graphProfile), options, GRAPH_OPTIONS)


def printExecutionSummary(
    stream: TextIO | None,
    graphProfile: Report | Profile,
    executionProfile: Profile | None = None,
    options: Options = None,
) -> None:
    """Print the summary of an execution profile, with the graph's beside it; raises PvaError.

    >>> from io import StringIO
    >>> stream = StringIO()
    >>> printExecutionSummary(stream, "sample_reports/matmul_chain_tiny")
    >>> stream.getvalue().splitlines()[3]
    '  Total cycles:                                  5,525 (approx 4.2 microseconds)'
    """
    report = _report(graphProfile, executionProfile)
    _print(execution_texts, stream, report, options, EXECUTION_OPTIONS)


def _report(graph: Report | Profile, execution: Profile | None = None) -> Report:
    if not isinstance(graph, Report):
        return Report.of_profiles(graph, execution or None)
    if execution:
        raise OptionError("profile summary", "a report and a profile", "a report holds both")
    return graph


def _print(
    texts: Callable[..., Iterator[str]],
    stream: TextIO | None,
    report: Report,
    options: Options,
    keyword_of_option: Mapping[str, str],
) -> None:
    """Print a summary with those of the options that it takes."""
    out = sys.stdout if stream is None else stream
    if not hasattr(out, "write"):
        remedy = "give one with a method write, such as sys.stdout, or None"
        raise TypeError(f"profile summary: the stream is {out!r}; {remedy}")
    switches = {name: _switch(name, value) for name, value in (options or {}).items()}
    colours = use_colours(switches.get(COLOURS), is_terminal(out))
    keywords = {
        keyword_of_option[name]: value
        for name, value in switches.items()
        if name in keyword_of_option
    }
    for text in texts(report, colours=colours, **keywords):
        out.write(text)


def _switch(name: str, value: object) -> bool:
    if name not in (COLOURS, *OPTIONS):
        options = ", ".join([*OPTIONS, COLOURS])
        raise OptionError("profile summary", f"no option {name!r}", f"known are {options}")
    switched = _SWITCHES.get(str(value).lower())
    if switched is None:
        raise OptionError("profile summary", f"{name} is {value!r}", "it must be true or false")
    return switched
