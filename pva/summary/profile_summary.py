"""The profile summary as text, in the layout of the user guide ("Profile summary output").

`docs/summary.md` has the rules, line by line. Texts come as they are written, each with its line
end, so that the first is there before the last has been worked out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from pva.errors import NotRecordedError
from pva.summary.execution_summary import execution_lines, execution_profiled, step_lines
from pva.summary.graph_summary import (
    exchange_instruction_lines,
    graph_lines,
    ipu_memory_lines,
    memory_lines,
    optimization_lines,
    target_lines,
)
from pva.summary.layout import Block, texts
from pva.summary.liveness_summary import liveness_lines

if TYPE_CHECKING:
    from pva.report import Report


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the summary: what it is called, what it needs, what it writes.

    `gap` is the number of empty lines before it, as in the sample.
    """

    title: str
    needs: tuple[str, ...]
    lines: Callable[[Report], Iterator[str | Block]]
    gap: int = 1


_MEMORY = ("target", "memory_by_tile", "memory_by_category")
TARGET = Section("Target", ("target",), target_lines, gap=0)
GRAPH = Section("Graph", ("graph",), graph_lines)
OPTIMIZATIONS = Section("Optimization Details", ("optimization_info",), optimization_lines)
EXCHANGE_INSTRUCTIONS = Section(
    "Exchange Instruction Breakdown",
    ("exchange_instructions", "programs"),
    exchange_instruction_lines,
)
MEMORY = Section("Memory on all IPUs", _MEMORY, memory_lines)
IPU_MEMORY = Section("Memory on each IPU", _MEMORY, ipu_memory_lines)
LIVENESS = Section(
    "  Variable Storage Liveness",
    ("always_live_bytes", "always_live_variables", "liveness_steps", "variables", "programs"),
    liveness_lines,
    gap=3,
)
EXECUTION = Section(
    "Execution",
    ("target", "execution", "tile_cycles"),
    execution_lines,
)
STEPS = Section("Steps", ("target", "programs", "steps"), step_lines, gap=0)


def _section_lines(report: Report, section: Section) -> Iterator[str | Block]:
    """Write a section, or one line that says why it is not there."""
    yield from [""] * section.gap
    absent = [name for name in section.needs if not report.dataset.has(name)]
    if section is EXECUTION and not execution_profiled(report):
        yield "Execution profiling not enabled"
    elif absent and _on_cpu(report):
        yield f"{section.title}: not profiled on a CPU"
    elif absent:
        absence = f"no {', '.join(absent)} in this report"
        yield f"{section.title}: {absence}; {report.dataset.why_absent(absent[0])}"
    else:
        try:
            yield from section.lines(report)
        except NotRecordedError as error:  # what a part of the section needs
            yield f"{section.title}: {error.found}; {error.wanted}"


def _on_cpu(report: Report) -> bool:
    data = report.dataset
    return data.has("target") and bool(data.texts("target", "type")[0] == "CPU")


def _texts(report: Report, sections: list[Section], colours: bool) -> Iterator[str]:
    lines = (line for section in sections for line in _section_lines(report, section))
    return texts(lines, colours=colours)


def graph_texts(
    report: Report,
    *,
    show_var_storage: bool = False,
    show_optimizations: bool = False,
    show_exchange_instruction_breakdown: bool = False,
    show_per_ipu_memory_usage: bool = False,
    colours: bool = False,
) -> Iterator[str]:
    """Write what compilation found: target, graph, memory and, on request, liveness."""
    sections = [
        TARGET,
        GRAPH,
        *([OPTIMIZATIONS] if show_optimizations else []),
        *([EXCHANGE_INSTRUCTIONS] if show_exchange_instruction_breakdown else []),
        MEMORY,
        *([IPU_MEMORY] if show_per_ipu_memory_usage else []),
        *([LIVENESS] if show_var_storage else []),
    ]
    return _texts(report, sections, colours)


def execution_texts(
    report: Report, *, show_execution_steps: bool = False, colours: bool = False
) -> Iterator[str]:
    """Write what running found: cycles and, on request, every executed step."""
    steps = show_execution_steps and execution_profiled(report)
    return _texts(report, [EXECUTION, *([STEPS] if steps else [])], colours)


def profile_texts(
    report: Report, *, show_execution_steps: bool = False, colours: bool = False, **graph: bool
) -> Iterator[str]:
    """Write the summary of a report, sections that it cannot fill as one line each.

    `graph` are the options of the graph summary.
    """
    steps = show_execution_steps
    return chain(
        graph_texts(report, colours=colours, **graph),
        execution_texts(report, show_execution_steps=steps, colours=colours),
    )


def graph_summary(report: Report, **options: bool) -> str:
    """Return `graph_texts` as one text."""
    return "".join(graph_texts(report, **options))


def execution_summary(report: Report, **options: bool) -> str:
    """Return `execution_texts` as one text."""
    return "".join(execution_texts(report, **options))


def profile_summary(report: Report, **options: bool) -> str:
    """Return `profile_texts` as one text."""
    return "".join(profile_texts(report, **options))
