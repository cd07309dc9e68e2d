"""`tilescope simulate PROGRAM`: run a program that comes with the simulator, or one of a file."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import click

from cli.demo import train_digits
from cli.faults import Command, Group
from cli.recording import recorded
from pva import units
from pva.errors import PvaError

EXAMPLES = """
\b
Examples:
  tilescope simulate mlp_digits --target mk1 --epochs 2 --out digits/
  tilescope simulate matmul_chain 900x600 600x300 300x200 --out chain/
  tilescope simulate newton_pipeline --tiles 16 --replicas 2 --out pipeline/
  tilescope simulate examples/fc_mnist.py --target mk1 --out sample/
"""

_target = click.option(
    "--target", default="mk2", show_default=True, help="Machine: mk1, mk2, bow or tiny."
)
_out = click.option(
    "--out", type=click.Path(path_type=Path), help="Directory of the report.  [default: its name]"
)


class Programs(Group):
    """The programs that come with the simulator; the path of a Python file is one more."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the program that the first argument names."""
        if args and args[0].endswith(".py"):
            return args[0], program_of(Path(args[0])), args[1:]
        return super().resolve_command(ctx, args)


def program_of(path: Path) -> click.Command:
    """Make the command that runs a Python file with its arguments, as Python would.

    The file is given `--out` (by default its own name), and `--target` and all else as they stand.
    """

    def run_file(out: Path | None, arguments: tuple[str, ...]) -> int:
        if not path.is_file():
            raise PvaError(path, "no such file", "give the path of a program")
        directory = out or Path(path.stem)
        with recorded(directory):
            code = _run_file(path, [*arguments, "--out", str(directory)])
        if code == 0:
            _say_where(directory)
        return code

    more = click.Argument(["arguments"], nargs=-1, type=click.UNPROCESSED)
    where = click.Option(["--out"], type=click.Path(path_type=Path))
    settings = {"ignore_unknown_options": True, "allow_interspersed_args": True}
    return Command(path.name, settings, run_file, [where, more], add_help_option=False)


def _run_file(path: Path, arguments: list[str]) -> int:
    """Run a file as the main program; its folder is the last place to import from."""
    kept, sys.argv = sys.argv, [str(path), *arguments]
    sys.path.append(str(path.parent.resolve()))
    try:
        runpy.run_path(str(path), run_name="__main__")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        sys.argv = kept
        sys.path.pop()
    return 0


@click.group(cls=Programs, epilog=EXAMPLES, no_args_is_help=True)
def simulate() -> None:
    """Run a program in the simulator and write its report: an example, or a Python file.

    A file takes `--out`, the directory of its report, and what else it likes.
    """


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
