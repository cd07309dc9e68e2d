"""`tilescope`: one command a module, listed here."""

from __future__ import annotations

from typing import Any

import click

from cli.bisect import bisect
from cli.check import check
from cli.compare import compare
from cli.convert import convert
from cli.demo import demo
from cli.explore import explore
from cli.export import export
from cli.faults import Group
from cli.fit import fit
from cli.fleet import fleet
from cli.info import info
from cli.mcp import mcp
from cli.run import run
from cli.serve import serve
from cli.serve_model import serve_model
from cli.show import show
from cli.simulate import simulate
from cli.sql import sql
from cli.summary import summary
from cli.trace import trace
from pva.version import VERSION

COMMANDS = (demo, summary, info, show, sql, compare, trace, serve, export, check, bisect, convert,
            simulate, explore, fit, run, fleet, mcp, serve_model)  # fmt: skip

EXAMPLES = """
\b
Examples:
  tilescope demo                       train a small network, then look at its report
  tilescope summary run/               what fits, and where the cycles went
  tilescope serve run/                 the same in the browser
"""


def _show_version(context: click.Context, _: click.Parameter, asked: bool) -> None:
    if not asked:
        return
    click.echo(f"tilescope {VERSION}")
    context.exit()


@click.group(
    cls=Group, epilog=EXAMPLES, no_args_is_help=True, context_settings={"max_content_width": 100}
)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_show_version,
    help="Show the version and exit.",
)
def tilescope() -> None:
    """See what a program did on a tiled processor: memory, liveness, cycles, host trace."""


for command in COMMANDS:
    tilescope.add_command(command)


def main() -> Any:
    """Run `tilescope`."""
    return tilescope(prog_name="tilescope")


if __name__ == "__main__":
    main()
