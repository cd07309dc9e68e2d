"""`tilescope simulate EXAMPLE`: run a program that comes with the simulator."""

from __future__ import annotations

from pathlib import Path

import click

from cli.demo import train_digits
from cli.faults import Command, Group
from cli.recording import recorded
from pva import units

EXAMPLES = """
\b
Examples:
  tilescope simulate mlp_digits --target mk1 --epochs 2 --out digits/
  tilescope simulate matmul_chain 900x600 600x300 300x200 --out chain/
  tilescope simulate newton_pipeline --tiles 16 --replicas 2 --out pipeline/
"""

_target = click.option(
    "--target", default="mk2", show_default=True, help="Machine: mk1, mk2, bow or tiny."
)
_out = click.option(
    "--out", type=click.Path(path_type=Path), help="Directory of the report.  [default: its name]"
)


@click.group(cls=Group, epilog=EXAMPLES, no_args_is_help=True)
def simulate() -> None:
    """Run an example program in the simulator and write its report."""


@simulate.command("mlp_digits", cls=Command)
@_target
@_out
@click.option(
    "--epochs", type=click.IntRange(min=1), help="Epochs; as many as the demo if not given."
)
def mlp_digits(target: str, out: Path | None, epochs: int | None) -> None:
    """Train a two-layer network on 1,797 handwritten digits."""
    directory = out or Path("mlp_digits")
    train_digits(directory, target=target, epochs=epochs)
    _say_where(directory)


@simulate.command("matmul_chain", cls=Command)
@click.argument("shapes", metavar="[SHAPE]...", nargs=-1)
@_target
@_out
def matmul_chain(shapes: tuple[str, ...], target: str, out: Path | None) -> None:
    """Multiply random matrices, ((m1 * m2) * m3), of shapes such as 800x500 500x400 400x200."""
    directory = out or Path("matmul_chain")
    from simulator.examples import matmul_chain as example

    chain = example.parse_shapes(shapes) if shapes else example.SHAPES
    with recorded(directory):
        result = example.run(chain, target=target, out=directory)
    rows, columns = result.product.shape
    click.echo(f"product of {rows:,} x {columns:,}; relative error {result.error:.1e}")
    _say_where(directory)


@simulate.command("newton_pipeline", cls=Command)
@_target
@_out
@click.option(
    "--tiles", type=click.IntRange(min=1), help="Tiles of each IPU; all of them if not given."
)
@click.option(
    "--replicas",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Replicas, two IPUs each.",
)
def newton_pipeline(target: str, out: Path | None, tiles: int | None, replicas: int) -> None:
    """Take square roots in a pipeline over two IPUs, with loops that its data ends."""
    directory = out or Path("newton_pipeline")
    from simulator.examples import newton_pipeline as example

    with recorded(directory):
        result = example.run(target=target, tiles=tiles or 0, replicas=replicas, out=directory)
    count = f"{result.roots.size:,} roots by {replicas} replica(s)"
    click.echo(f"{count}; relative error {result.error:.1e}")
    _say_where(directory)


def _say_where(out: Path) -> None:
    size = sum(file.stat().st_size for file in out.iterdir())
    click.echo(f"report: {out}, {units.size(size)}  (tilescope summary {out})")
