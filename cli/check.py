"""`tilescope check REPORT`: hold a report against the conservation laws."""

from __future__ import annotations

import click

from cli.faults import Command
from cli.output import Rows, format_option, limit_option, write_rows

EXAMPLES = """
\b
Examples:
  tilescope check run/                  bytes, cycles and steps that must add up
  tilescope check run/ --format json    what is broken, for a program to read
"""
BROKEN = 1


@click.command(cls=Command, epilog=EXAMPLES)
@click.argument("report", metavar="REPORT", type=click.Path())
@format_option
@limit_option
@click.pass_context
def check(ctx: click.Context, report: str, form: str, limit: int | None) -> None:
    """Check that the figures of a report add up; exit code 1 if not."""
    from pva.check import LAWS
    from pva.report import openReport

    data = openReport(report).dataset
    held = [law for law in LAWS if all(data.has(name) for name in law.needs)]
    broken = [violation for law in held for violation in law.broken_by(data)]
    if broken or form != "table":
        rows = [
            (found.law, found.place, found.found, found.wanted, found.count) for found in broken
        ]
        write_rows(
            Rows(("law", "place", "found", "wanted", "places"), rows, len(rows)), form, limit
        )
    else:
        left_out = len(LAWS) - len(held)
        more = f"; {left_out} need what this report does not hold" if left_out else ""
        click.echo(f"{report}: keeps all {len(held)} laws that apply{more}")
    ctx.exit(BROKEN if broken else 0)
