"""The profile summary as text, in the layout of the user guide ("Profile summary output")."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pva.summary.execution_summary import execution_lines, execution_profiled, step_lines
from pva.summary.graph_summary import (
    graph_lines,
    ipu_memory_lines,
    memory_lines,
    optimization_lines,
    target_lines,
)
from pva.summary.layout import document
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
    lines: Callable[[Report], Iterator[str]]
    gap: int = 1


_MEMORY = ("target", "memory_by_tile", "memory_by_category")
TARGET = Section("Target", ("target",), target_lines, gap=0)
GRAPH = Section("Graph", ("graph",), graph_lines)
OPTIMIZATIONS = Section("Optimization Details", ("optimization_info",), optimization_lines)
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
    ("target", "execution", "tile_cycles", "runs", "steps"),
    execution_lines,
)
STEPS = Section("Steps", ("target", "programs", "steps"), step_lines, gap=0)


def _section_lines(report: Report, section: Section) -> Iterator[str]:
    """Write a section, or one line that says why it is not there."""
    yield from [""] * section.gap
    absent = [name for name in section.needs if not report.dataset.has(name)]
    if section is EXECUTION and not execution_profiled(report):
        yield "Execution profiling not enabled"
    elif absent and _on_cpu(report):
        yield f"{section.title}: not profiled on a CPU"
    elif absent:
        what = f"no {', '.join(absent)} in this report"
        yield f"{section.title}: {what}; {report.dataset.why_absent(absent[0])}"
    else:
        yield from section.lines(report)


def _on_cpu(report: Report) -> bool:
    data = report.dataset
    return data.has("target") and bool(data.texts("target", "type")[0] == "CPU")


def _write(report: Report, sections: list[Section], colours: bool) -> str:
    lines = (line for section in sections for line in _section_lines(report, section))
    return document(lines, colours=colours)


def _graph_sections(
    show_var_storage: bool, show_optimizations: bool, show_per_ipu_memory_usage: bool
) -> list[Section]:
    return [
        TARGET,
        GRAPH,
        *([OPTIMIZATIONS] if show_optimizations else []),
        MEMORY,
        *([IPU_MEMORY] if show_per_ipu_memory_usage else []),
        *([LIVENESS] if show_var_storage else []),
    ]


def graph_summary(
    report: Report,
    *,
    show_var_storage: bool = False,
    show_optimizations: bool = False,
    show_per_ipu_memory_usage: bool = False,
    colours: bool = False,
) -> str:
    """Write what compilation found: target, graph, memory and, on request, liveness."""
    sections = _graph_sections(show_var_storage, show_optimizations, show_per_ipu_memory_usage)
    return _write(report, sections, colours)


def execution_summary(
    report: Report, *, show_execution_steps: bool = False, colours: bool = False
) -> str:
    """Write what running found: cycles and, on request, every executed step."""
    return _write(report, [EXECUTION, *([STEPS] if show_execution_steps else [])], colours)


def profile_summary(
    report: Report,
    *,
    show_var_storage: bool = False,
    show_optimizations: bool = False,
    show_execution_steps: bool = False,
    show_per_ipu_memory_usage: bool = False,
    colours: bool = False,
) -> str:
    """Write the summary of a report, sections that it cannot fill as one line each."""
    sections = _graph_sections(show_var_storage, show_optimizations, show_per_ipu_memory_usage)
    sections += [EXECUTION, *([STEPS] if show_execution_steps else [])]
    return _write(report, sections, colours)
