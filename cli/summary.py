"""`tilescope summary` and `printProfileSummary`: the profile summary of the user guide."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import click

from cli.faults import Command
from cli.output import write

EXAMPLES = """
\b
Examples:
  tilescope summary run/                    what fits, and where the cycles went
  tilescope summary run/ --liveness         which variables are live at each program step
  tilescope summary run/ --steps | less     every executed step
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
        "--colours/--no-colours", default=None,
        help="Use colours; CLICOLOR=0 and CLICOLOR_FORCE=1 overrule this."
        "  [default: on a terminal]",
    ),
    click.argument("report", metavar="REPORT", type=click.Path()),
)  # fmt: skip


def _options(function: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def write_summary(path: str, colours: bool | None = None, **sections: bool) -> None:
    """Print the summary of the report at `path`; `sections` are those of `profile_summary`."""
    from pva.report import openReport
    from pva.summary import profile_summary, use_colours

    paint = use_colours(colours, sys.stdout.isatty())
    text = profile_summary(openReport(path), colours=paint, **sections)
    write([text.removesuffix("\n")], colours=paint)


@click.command(cls=Command, epilog=EXAMPLES)
@_options
def summary(report: str, colours: bool | None, **sections: bool) -> None:
    """Print the profile summary: memory, liveness, cycles."""
    write_summary(report, colours, **sections)


@click.command(
    cls=Command,
    name="printProfileSummary",
    epilog=EXAMPLES.replace("tilescope summary", "printProfileSummary"),
)
@_options
def _print_profile_summary(report: str, colours: bool | None, **sections: bool) -> None:
    """Print the summary of REPORT: a directory, a profile.pop, or a JSON or CBOR profile."""
    write_summary(report, colours, **sections)


def print_profile_summary() -> Any:
    """Run the command `printProfileSummary`."""
    return _print_profile_summary(prog_name="printProfileSummary")
