"""`tilescope demo`: the main job from end to end."""

from __future__ import annotations

import time
from pathlib import Path

import click

from cli.faults import Command
from cli.progress import steps_shown
from cli.recording import recorded
from cli.serve import port_option, serve_paths
from cli.summary import write_summary
from pva import units

EXAMPLES = """
\b
Examples:
  tilescope demo                               train, print the summary, open the dashboard
  tilescope demo --no-serve --out my-report    all but the dashboard
"""
OUT = Path("tilescope-demo")


@click.command(cls=Command, epilog=EXAMPLES)
@click.option(
    "--out", type=click.Path(path_type=Path), default=OUT, show_default=True,
    help="Directory of the report; one that tilescope wrote there is replaced.",
)  # fmt: skip
@click.option("--serve/--no-serve", "served", default=True, help="Serve the dashboard at the end.")
@port_option
def demo(out: Path, served: bool, port: int) -> None:
    """Train a small network, then show what happened.

    Trains on real handwritten digits in the simulator, writes a report with a host trace, prints
    the profile summary, and serves the dashboard.
    """
    train_digits(out)
    write_summary(str(out))
    click.echo(f"\nreport: {out}  (tilescope info {out}, tilescope trace show {out})")
    if served:
        serve_paths([out], "127.0.0.1", port)


def train_digits(out: Path, target: str = "mk2", epochs: int | None = None) -> None:
    """Train the network of digits into the report directory `out`; say how well and how fast."""
    begin = time.monotonic()
    with recorded(out):
        from simulator.examples import mlp_digits

        count = epochs or mlp_digits.EPOCHS
        result = mlp_digits.train(
            out, target=target, epochs=count, progress=steps_shown("training")
        )
    took = units.duration(time.monotonic() - begin)
    losses = result.losses
    click.echo(
        f"trained {len(losses):,} steps in {took}: loss {losses[0]:.2f} at first,"
        f" {losses[-1]:.2f} at last; {units.share(result.accuracy)} of the test images are right\n"
    )
