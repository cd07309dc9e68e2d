"""`tilescope mcp [PATH]...`: let an agent ask, over the Model Context Protocol."""

from __future__ import annotations

from pathlib import Path

import click

from cli.shared.declared import Declaration
from cli.shared.faults import Command
from pva.errors import MissingPackageError
from pva.version import VERSION

EXAMPLES = """
\b
Examples:
  tilescope mcp reports/                                   for an agent that starts it
  tilescope mcp reports/ --dashboard http://127.0.0.1:8050 with `tilescope serve reports/` beside it
\b
What an agent's configuration says:
  {"mcpServers": {"tilescope": {"command": "tilescope", "args": ["mcp", "reports/"]}}}
"""


@click.command(cls=Command, epilog=EXAMPLES)
@click.argument("paths", metavar="[PATH]...", nargs=-1, type=click.Path(path_type=Path))
@click.option("--dashboard", default="http://127.0.0.1:8050", show_default=True, metavar="URL",
              help="Dashboard of the same paths, for links.")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path), default=Path("tilescope-agent"),
              show_default=True, help="Directory for reports of simulated models.")  # fmt: skip
@click.option(
    "--time-limit", type=click.FloatRange(min=0, min_open=True), default=600.0, show_default=True,
    metavar="SECONDS", help="Time that a simulation or a query may take.",
)  # fmt: skip
def mcp(paths: tuple[Path, ...], dashboard: str, out: Path, time_limit: float) -> None:
    """Answer an agent's questions about reports, over standard input and output (MCP).

    The tools are open, overview, insights, tables, sql, compare, explain and simulate. An answer
    has at most 4 kB unless more is asked for, says what it leaves out, and carries the query and
    the link to the dashboard that prove its numbers. Nothing outside of the paths is read (the
    working directory, unless given), no program is run but the simulator on an ONNX model, and
    nothing is written but its report. Names from reports are marked as data. Needs
    tilescope[agent].
    """
    roots = list(paths) or [Path()]
    for path in roots:
        path.stat()  # raises where it is not there
    try:
        from cli.agent.server import server
    except ImportError as error:
        hint = "pip install 'tilescope[agent]'"
        raise MissingPackageError("tilescope mcp", f"needs {error.name}", hint) from None
    from cli.agent.links import Links
    from cli.agent.tools import Tools
    from dashboard.store import Store

    server(Tools(Store(roots), Links(dashboard), out, time_limit), VERSION).run()


COMMAND = Declaration(
    command=mcp,
    order=180,
    usage={
        "`tilescope mcp [PATH]...`": (
            "Answers for an agent, over MCP, each number with its proof ([AGENTS.md](AGENTS.md))"
        ),
    },
    calls=(
        "mcp nowhere",
        "mcp run --time-limit 0",
    ),
    reports=(),
)
