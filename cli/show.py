"""`tilescope show NAME REPORT`: one command for each analysis in the catalogue."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import click

from cli.faults import Command, Group
from cli.output import format_option, limit_option, write_result

EXAMPLES = """
\b
Examples:
  tilescope show memory_by_category run/
  tilescope show live_variables run/ --step 12 --tile 3
  tilescope show cycles_by_program run/ --format csv > programs.csv
"""


class Analyses(Group):
    """The analyses as commands, made when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name every analysis of a report."""
        from pva.analysis import CATALOGUE

        return list(CATALOGUE)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Make the command of one analysis from its signature and docstring."""
        from pva.analysis import CATALOGUE

        analysis = CATALOGUE.get(cmd_name)
        return _command(cmd_name, analysis) if analysis else None


def _command(name: str, analysis: Callable[..., Any]) -> click.Command:
    subject = next(iter(inspect.signature(analysis).parameters))

    def run(report: str, form: str, limit: int | None, **options: int | None) -> None:
        given = {option: value for option, value in options.items() if value is not None}
        write_result(analysis(_open(report, subject), **given), form, limit)

    parameters: list[click.Parameter] = [
        click.Argument(["report"], metavar=subject.upper(), type=click.Path()),
        *_parameters(analysis),
    ]
    command = Command(name, callback=run, params=parameters, help=inspect.getdoc(analysis))
    return limit_option(format_option(command))


def _open(path: str, subject: str) -> Any:
    """Open what an analysis takes: a report, or a host trace."""
    if subject == "trace":
        from pva.trace import openTrace

        return openTrace(path)
    from pva.report import openReport

    return openReport(path)


def _parameters(analysis: Callable[..., Any]) -> list[click.Parameter]:
    """Make an option of each keyword of an analysis: a tile, a step, an IPU, a run."""
    keywords = [
        parameter
        for parameter in inspect.signature(analysis).parameters.values()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    ]
    return [_parameter(keyword) for keyword in keywords]


def _parameter(keyword: inspect.Parameter) -> click.Parameter:
    # A default of None, given to click, would count as a value of a required option.
    given = {} if keyword.default in (inspect.Parameter.empty, None) else {
        "default": keyword.default, "show_default": True,
    }  # fmt: skip
    return click.Option(
        [f"--{keyword.name.replace('_', '-')}"],
        type=click.IntRange(min=0),
        required=keyword.default is inspect.Parameter.empty,
        help=_HELP[keyword.name],
        **given,
    )


_HELP = {
    "tile": "Only this tile.",
    "ipu": "Only this IPU.",
    "replica": "Only the tiles of this replica.",
    "step": "A step, counted from 0: of `liveness_curve` for memory, of `steps` for cycles.",
    "run": "Only this run, counted from 0.",
    "variable": "The row of a variable, as in `largest_variables`.",
    "compute_set": "Only this compute set.",
    "count": "How many.",
}


@click.command(cls=Analyses, epilog=EXAMPLES, no_args_is_help=True)
def show() -> None:
    """Print one analysis of a report as a table, JSON or CSV."""
