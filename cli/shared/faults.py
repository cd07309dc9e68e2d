"""Errors as one line on stderr and an exit code: 0 done, 1 a check failed, 2 bad input or use.

130 is Ctrl-C, as in shells.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from typing import Any

import click
from click.exceptions import NoArgsIsHelpError

from cli.shared.output import printable
from cli.shared.progress import time_left_shown
from cli.shared.source import name_stdin
from pva.errors import PvaError, nearest

BAD_INPUT, INTERRUPTED = 2, 130
_SENTENCE = 400  # characters

# Known by name, so that this module does not import the simulator: whoever raised one of these has
# its module loaded.
_LATE_FAULTS = (("simulator.graph.errors", "PoplarError"),)


def fault_types() -> tuple[type[Exception], ...]:
    """Name the errors that are the fault of the input, the request or the machine."""
    late = [getattr(sys.modules.get(module), name, None) for module, name in _LATE_FAULTS]
    return (PvaError, OSError, *(fault for fault in late if fault is not None))


class Command(click.Command):
    """A command whose errors are one line: what failed, what was found, what would be right."""

    def get_short_help_str(self, limit: int = 45) -> str:
        """Return the first sentence of the help in full; the list of commands wraps it."""
        return super().get_short_help_str(max(limit, _SENTENCE))

    def main(  # type: ignore[override]
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> object:
        """Run the command; in stand-alone mode (a process of its own) end with an exit code."""
        if not standalone_mode:
            return super().main(args, prog_name, standalone_mode=False, **extra)
        name = prog_name or self.name or "tilescope"
        if isinstance(sys.stdout, io.TextIOWrapper):
            # What an encoding such as Latin-1 cannot write is spelled out, as on stderr.
            sys.stdout.reconfigure(errors="backslashreplace")
        try:
            with time_left_shown():
                code = super().main(args, prog_name, standalone_mode=False, **extra)
        except NoArgsIsHelpError as error:
            error.show()
            sys.exit(error.exit_code)
        except click.Abort:
            sys.exit(INTERRUPTED)
        except click.ClickException as error:
            _say(name, _usage(error))
            sys.exit(error.exit_code)
        except fault_types() as error:
            _say(name, _text(error))
            sys.exit(BAD_INPUT)
        except MemoryError as error:
            _say(name, f"the memory of this machine is not enough: {str(error) or 'it is full'}")
            sys.exit(BAD_INPUT)
        sys.exit(code if isinstance(code, int) else 0)


class Group(Command, click.Group):
    """A group of commands that answers an unknown name with near matches."""

    member = "command"  # what an error calls one of them
    lists = ""  # what lists them, when they are too many for an error

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the commands in the order of the table that they stand in."""
        return list(self.commands)

    def known_names(self, ctx: click.Context) -> list[str]:
        """Name what an unknown name may be meant to be."""
        return self.list_commands(ctx)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the first argument names."""
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            names = self.known_names(ctx)
            hint = nearest(args[0], names, self.lists)
            raise click.UsageError(f"no {self.member} {args[0]!r}; {hint}")
        return super().resolve_command(ctx, args)


def _text(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        names: Sequence[Any] = [name for name in (error.filename, error.filename2) if name]
        return ": ".join([*map(str, names), error.strerror])
    return str(error)


def _usage(error: click.ClickException) -> str:
    text = error.format_message()
    if isinstance(error, click.UsageError) and error.ctx is not None:
        return f"{text.removesuffix('.')}; see {error.ctx.command_path} --help"
    return text


def _say(name: str, text: str) -> None:
    click.echo(f"{name}: {printable(name_stdin(' '.join(text.split())))}", err=True)
