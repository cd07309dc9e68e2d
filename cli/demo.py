"""`tilescope demo`: the main job from end to end."""

from __future__ import annotations

import time
from pathlib import Path
from urllib.parse import urlencode

import click

from cli.programs.recording import claimed, recorded
from cli.serve import port_option, serve_paths
from cli.shared.declared import Declaration
from cli.shared.faults import Command
from cli.shared.progress import steps_shown
from cli.summary import write_summary
from pva import units

EXAMPLES = """
\b
Examples:
  tilescope demo                               train, print the summary, open the dashboard
  tilescope demo --no-serve --out my-report    all but the dashboard
"""
OUT = Path("tilescope-demo")
EVEN = "-even"  # behind the name of the report: the same program, evenly on both IPUs


@click.command(cls=Command, epilog=EXAMPLES)
@click.option(
    "--out", type=click.Path(path_type=Path), default=OUT, show_default=True,
    help="Directory of the report; one that tilescope wrote there is replaced.",
)  # fmt: skip
@click.option("--serve/--no-serve", "served", default=True, help="Serve the dashboard at the end.")
@port_option
def demo(out: Path, served: bool, port: int) -> None:
    """Train a small transformer on two IPUs, then show what happened.

    Trains on real handwritten digits in the simulator, in a pipeline of two IPUs of which one has
    too much to do. Writes a report with a host trace, and beside it, in the directory OUT-even,
    that of the same program with the work even; prints the profile summary, and serves the
    dashboard.
    """
    even = beside(out)
    learning = train(out, even)
    write_summary(str(out))
    click.echo(f"\n{learning}\n{_gain(out, even)}")
    click.echo(f"\nreport: {out}  (tilescope info {out}, tilescope trace show {out})")
    click.echo(f"even: {even}  (tilescope compare {out} {even})")
    if served:
        pair = urlencode({"report": out.absolute().name, "against": even.name})
        serve_paths([out, even], "127.0.0.1", port, f"/compare?{pair}")


def beside(out: Path) -> Path:
    """Return the directory of the second report; raises click.UsageError for one without name."""
    if not out.name or out.name == "..":
        raise click.UsageError(f"--out {out}: has no name; give one such as {OUT}")
    return out.with_name(out.name + EVEN)


def train(out: Path, even: Path) -> str:
    """Write both reports, and the host trace of the first; say how well and how fast it learned."""
    from simulator.examples import digits_pipeline as example

    begin = time.monotonic()
    with claimed(out), claimed(even):
        with recorded(out):
            trained = example.train(out, progress=steps_shown("training"))
        seconds = time.monotonic() - begin
        right = example.accuracy(trained)  # on a CPU, which is no part of the trace
        example.measure(even)
    losses = trained.losses
    return (
        f"trained {units.count(len(losses))} batches in {units.duration(seconds)}: loss"
        f" {losses[0]:.2f} at first, {losses[-1]:.2f} at last;"
        f" {units.share(right)} of the test images are right"
    )


def _gain(out: Path, even: Path) -> str:
    """Write by how much the second report is faster."""
    from pva.analysis.execution.main_runs import main_run
    from pva.report import openReport

    slow, fast = (main_run(openReport(path)).items_per_second for path in (out, even))
    return (
        f"with the attention split over both IPUs: {units.share(fast / slow - 1)} faster,"
        f" {fast:,.0f} images/s instead of {slow:,.0f}"
    )


COMMAND = Declaration(
    command=demo,
    order=10,
    usage={
        "`tilescope demo`": (
            "What is this? Train a small network, print its summary, open the dashboard"
        ),
    },
    calls=(
        "demo --port 99999",
        "demo now",
    ),
    reports=(),
)
