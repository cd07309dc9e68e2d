"""Reports and summaries: of an engine's report directory, or of the values of two profiles."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from simulator.graph.errors import InvalidOptionError, PoplarError
from simulator.logging import write_lines

if TYPE_CHECKING:
    from pva.report import Report as Report
    from simulator.compiler.executable import Executable
    from simulator.runtime.run import RunRecord

Options = Mapping[str, object] | None


def open_report(directory: Path) -> Report:
    """Open the report of an engine; raises PvaError."""
    from pva.report import openReport

    return openReport(directory)


def report_of(
    executable: Executable,
    options: Mapping[str, bool | int | str],
    records: Sequence[RunRecord] | None,
    *,
    profiled: bool,
) -> Report:
    """Return the report of an engine that is in no file; without `records` that of its compilation.

    Raises PvaError.
    """
    from pva.report import Report
    from simulator.profile.values import report_dataset

    return Report.of(report_dataset(executable, options, records, profiled=profiled))


def printProfileSummary(
    stream: TextIO | None,
    graphProfile: Mapping[str, object],
    executionProfile: Mapping[str, object] | None = None,
    options: Options = None,
) -> None:
    """Print the summary of both profiles; raises PvaError and InvalidOptionError.

    >>> import sys
    >>> from simulator import poplar
    >>> device = poplar.IPUModel("tiny").createDevice()
    >>> graph = poplar.Graph(device.getTarget())
    >>> options = {"debug.instrumentCompute": "true"}
    >>> engine = poplar.Engine(graph, poplar.program.Sequence(), options)
    >>> engine.load(device)
    >>> engine.run()
    >>> profiles = engine.getGraphProfile(), engine.getExecutionProfile()
    >>> poplar.printProfileSummary(sys.stdout, *profiles)
    Target:
    ...
    Execution:
    ...
      Total compute cycles (excluding idle threads): 0
    ...
    """
    from pva.summary import printing

    _print(printing.printProfileSummary, stream, graphProfile, executionProfile, options)


def printGraphSummary(
    stream: TextIO | None, graphProfile: Mapping[str, object], options: Options = None
) -> None:
    """Print the summary of a graph profile; raises PvaError and InvalidOptionError.

    >>> import sys
    >>> from simulator import poplar
    >>> device = poplar.IPUModel("tiny").createDevice()
    >>> graph = poplar.Graph(device.getTarget())
    >>> engine = poplar.Engine(graph, poplar.program.Sequence())
    >>> poplar.printGraphSummary(sys.stdout, engine.getGraphProfile())
    Target:
    ...
    Graph:
      Number of vertices:                0
    ...
    """
    from pva.summary import printing

    _print(printing.printGraphSummary, stream, graphProfile, options)


def write_graph_report(destination: str, graphProfile: Mapping[str, object]) -> None:
    """Write the summary of a graph profile to stdout, to stderr or to the end of a file.

    Raises PoplarError, which names the option, when the file cannot be written.
    """
    text = io.StringIO()
    printGraphSummary(text, graphProfile)
    write_lines("debug.graphReportDestination", destination, text.getvalue().rstrip("\n"))


def printExecutionSummary(
    stream: TextIO | None,
    graphProfile: Mapping[str, object],
    executionProfile: Mapping[str, object] | None = None,
    options: Options = None,
) -> None:
    """Print the summary of an execution profile, with the graph's beside it.

    Raises PvaError and InvalidOptionError.

    >>> import sys
    >>> from simulator import poplar
    >>> device = poplar.IPUModel("tiny").createDevice()
    >>> graph = poplar.Graph(device.getTarget())
    >>> options = {"debug.instrumentCompute": "true"}
    >>> engine = poplar.Engine(graph, poplar.program.Sequence(), options)
    >>> engine.load(device)
    >>> engine.run()
    >>> profiles = engine.getGraphProfile(), engine.getExecutionProfile()
    >>> poplar.printExecutionSummary(sys.stdout, *profiles)
    <BLANKLINE>
    Execution:
    ...
      Total compute cycles (excluding idle threads): 0
    ...
    """
    from pva.summary import printing

    _print(printing.printExecutionSummary, stream, graphProfile, executionProfile, options)


def _print(
    function: Callable[..., None], stream: TextIO | None, graphProfile: object, *arguments: object
) -> None:
    from pva.errors import OptionError
    from pva.report import Report

    if not isinstance(graphProfile, Mapping | str | PathLike | Report):
        raise PoplarError(
            f"{function.__name__}: graphProfile is {type(graphProfile).__name__}; a graph profile "
            "is needed, see Engine.getGraphProfile"
        )
    try:
        function(stream, graphProfile, *arguments)
    except OptionError as error:
        raise InvalidOptionError(str(error)) from error
