"""What a command declares of itself, once, in its own module; help, README and tests follow.

    COMMAND = Declaration(
        command=peak, order=35, usage={"`tilescope peak REPORT`": "When is most memory live?"},
        reports=("peak IN",), calls=("peak run", "peak nowhere"),
    )

`cli.main` imports the modules of its folder, and adds the commands that they declare.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import click


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """A command, what it answers, and the calls by which tests know it.

    In the calls of `reports`, `steps` and `traces` IN is a file that is spoilt in every way, OUT a
    place to write to, OTHER a report, SELECT a query of steps.
    """

    command: click.Command
    order: int  # in help and documents; those of others are 10 apart
    usage: Mapping[str, str]  # the question that it answers, by its call: Markdown of the README
    calls: tuple[str, ...]  # whose answers are in tests/golden/cli
    reports: tuple[str, ...]  # that read a report; () for a command that reads none
    steps: tuple[str, ...] = ()  # that read a report and need its execution
    traces: tuple[str, ...] = ()  # that read a host trace

    @property
    def name(self) -> str:
        """Return the name of the command."""
        return str(self.command.name)
