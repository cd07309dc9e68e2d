"""`tilescope`: the modules of this folder that declare a command, one each."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

import click

import cli
from cli.shared.declared import Declaration
from cli.shared.faults import Group
from pva.version import VERSION

NOT_READ = ("main",)  # what runs the commands


def _declared() -> tuple[Declaration, ...]:
    """Import the modules of this folder; return the commands that they declare, in order."""
    files = [module.name for module in iter_modules(cli.__path__) if not module.ispkg]
    modules = [import_module(f"cli.{name}") for name in files if name not in NOT_READ]
    declarations = [vars(module)["COMMAND"] for module in modules if "COMMAND" in vars(module)]
    return tuple(sorted(declarations, key=lambda command: command.order))


DECLARED = _declared()
COMMANDS = tuple(declared.command for declared in DECLARED)

EXAMPLES = """
\b
Examples:
  tilescope demo                       train a small network, then look at its report
  tilescope summary run/               what fits, and where the cycles went
  tilescope serve run/                 the same in the browser
"""


def _show_version(context: click.Context, _: click.Parameter, value: bool) -> None:
    if not value:
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


def main() -> object:
    """Run `tilescope`."""
    return tilescope(prog_name="tilescope")


if __name__ == "__main__":
    main()
