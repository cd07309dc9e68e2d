"""`tilescope summary` and `printProfileSummary`: the profile summary of the user guide."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from cli.shared.declared import Declaration
from cli.shared.faults import Command
from cli.shared.output import OBJECT, object_option, plain_result, write_object, write_texts
from cli.shared.source import source

if TYPE_CHECKING:
    from pva.report import Report

# What --json gives by the option that asks for it: analyses and tables, as `show` has them.
RESULTS = {
    "": (
        "target", "graph", "memory_usage", "memory_overview", "memory_histogram",
        "memory_by_vertex_type", "execution_overview", "other_runs", "cycles_by_vertex_type",
    ),
    "show_var_storage": ("liveness_overview", "always_live_variables", "liveness_curve"),
    "show_optimizations": ("optimization_info",),
    "show_exchange_instruction_breakdown": ("exchange_code",),
    "show_per_ipu_memory_usage": ("memory_by_ipu",),
    "show_execution_steps": ("steps",),
}  # fmt: skip

EXAMPLES = """
\b
Examples:
  tilescope summary run/                    what fits, and where the cycles went
  tilescope summary run/ --liveness         which variables are live at each program step
  tilescope summary run/ --steps | less     every executed step
  tilescope summary graph.json execution.json
"""

_OPTIONS = (
    click.option(
        "--liveness", "--showVarStorage", "show_var_storage", is_flag=True,
        help="Show what is live at each program step.",
    ),
    click.option(
        "--steps", "--showExecutionSteps", "show_execution_steps", is_flag=True,
        help="Show every executed step.",
    ),
    click.option(
        "--per-ipu", "--showPerIpuMemoryUsage", "show_per_ipu_memory_usage", is_flag=True,
        help="Show the memory of each IPU.",
    ),
    click.option(
        "--optimizations", "--showOptimizations", "show_optimizations", is_flag=True,
        help="Show what the compiler says about its own work.",
    ),
    click.option(
        "--exchange-instructions", "--showExchangeInstructionBreakdown",
        "show_exchange_instruction_breakdown", is_flag=True,
        help="Show what the code of internal exchanges consists of.",
    ),
    click.option(
        "--colours/--no-colours", default=None,
        help="Use colours; CLICOLOR=0 and CLICOLOR_FORCE=1 overrule this."
        "  [default: on a terminal]",
    ),
    object_option,
    click.argument("report", metavar="REPORT", type=click.Path()),
    click.argument("execution", metavar="[EXECUTION]", type=click.Path(), required=False),
)  # fmt: skip


def _options(function: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def write_summary(
    path: str,
    execution: str | None = None,
    colours: bool | None = None,
    form: str | None = None,
    **sections: bool,
) -> None:
    """Print the summary of the report at `path`; `sections` are those of `profile_texts`."""
    from pva.report import Report
    from pva.summary import is_terminal, profile_texts, use_colours

    report = Report.of_profiles(source(path), source(execution) if execution else None)
    if form == OBJECT:
        write_object(
            "summary", [path, execution] if execution else path, **_recorded_parts(report, sections)
        )
        return
    paint = use_colours(colours, is_terminal(sys.stdout))
    write_texts(profile_texts(report, colours=paint, **sections))


def _recorded_parts(report: Report, sections: dict[str, bool]) -> dict[str, object]:
    """Return what the text is written from, by name; None where it was not recorded."""
    from pva.analysis import CATALOGUE
    from pva.errors import NotRecordedError

    fields: dict[str, object] = {}
    for section, names in RESULTS.items():
        for name in names if sections.get(section, True) else ():
            try:
                analysis = CATALOGUE.get(name)
                result = analysis(report) if analysis else getattr(report.frames, name)()
                fields[name] = plain_result(result)
            except NotRecordedError:
                fields[name] = None
    return fields


@click.command(cls=Command, epilog=EXAMPLES)
@_options
def summary(report: str, execution: str | None, colours: bool | None, **sections: Any) -> None:
    """Print the profile summary: memory, liveness, cycles.

    REPORT is a report directory, a profile.pop, or a profile as JSON or CBOR. A graph profile may
    have its EXECUTION profile in a second file.
    """
    write_summary(report, execution, colours, **sections)


@click.command(
    cls=Command,
    name="printProfileSummary",
    epilog=EXAMPLES.replace("tilescope summary", "printProfileSummary"),
)
@_options
def _print_profile_summary(
    report: str, execution: str | None, colours: bool | None, **sections: Any
) -> None:
    """Print the summary of REPORT: a directory, a profile.pop, or a JSON or CBOR profile.

    A graph profile may have its EXECUTION profile in a second file.
    """
    write_summary(report, execution, colours, **sections)


def print_profile_summary() -> object:
    """Run the command `printProfileSummary`."""
    return _print_profile_summary(prog_name="printProfileSummary")


COMMAND = Declaration(
    command=summary,
    order=20,
    usage={
        "`tilescope summary REPORT`, `printProfileSummary REPORT`": (
            "What a report says, as text, in the layout of Poplar's profile summary"
            " ([docs/summary.md](docs/summary.md))"
        ),
    },
    calls=(),
    reports=(
        "summary IN",
        "summary IN --steps",
    ),
)
