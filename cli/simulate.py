"""`tilescope simulate PROGRAM`: run a program that comes with the simulator, or one of a file."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import click

from cli.programs.program import run_program, say_where
from cli.programs.recording import recorded
from cli.programs.sdk import importable
from cli.programs.simulate_model import SUFFIX as MODEL
from cli.programs.simulate_model import model_command
from cli.shared.declared import Declaration
from cli.shared.faults import Command, Group
from cli.shared.progress import steps_shown
from pva import units
from pva.errors import PvaError

EXAMPLES = """
\b
Examples:
  tilescope simulate mlp_digits --target mk1 --epochs 2 --out digits/
  tilescope simulate matmul_chain 900x600 600x300 300x200 --out chain/
  tilescope simulate newton_pipeline --tiles 16 --replicas 2 --out pipeline/
  tilescope simulate mine.py --epochs 3 --target bow --ipus 2 --out run/
  tilescope simulate --sdk train.py --out run/
  tilescope simulate mine.py --option autoReport.executionProfileProgramRunCount=5
  tilescope simulate alexnet.onnx --ipus 2 --batch 4 --no-values --out alexnet/
  tilescope simulate alexnet.onnx --ipus 4 --repeat 16 --no-values --out pipeline/
  tilescope simulate alexnet.onnx --repeat 16 --io-tiles 32 --no-values --out io/
"""

SUFFIX = ".py"
SUFFIXES = (SUFFIX, MODEL)

_target = click.option(
    "--target", default="mk2", show_default=True, help="Machine: mk1, mk2, bow, tiny or FILE.toml."
)
_any_target = click.option("--target", help="Machine that the program gets unless it fixes one.")
_ipus = click.option("--ipus", type=click.IntRange(min=1), help="IPUs, unless it fixes them.")
_code = click.option(
    "--code/--no-code", default=True, show_default=True,
    help="Count code for the IPU, as compileIPUCode does.",
)  # fmt: skip
_option = click.option("--option", multiple=True, metavar="KEY=VALUE", help="Engine option.")
_sdk = click.option(
    "--sdk",
    is_flag=True,
    help="Let it import poptorch, popart, popdist, pva and libpvti by these names.",
)
_out = click.option(
    "--out", type=click.Path(path_type=Path), help="Directory of the report.  [default: its name]"
)


class Programs(Group):
    """The programs that come with the simulator; a Python file or ONNX model is one more."""

    member = "program"

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Let options stand before the file, too."""
        files = [at for at, argument in enumerate(args) if argument.endswith(SUFFIXES)]
        if files and args[0].startswith("-"):
            args = [args.pop(files[0]), *args]
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the program that the first argument names."""
        if args and args[0].endswith(SUFFIX):
            return args[0], program_of(args), args[1:]
        if args and args[0].endswith(MODEL):
            return args[0], model_command(args, _checked_options, say_where), args[1:]
        return super().resolve_command(ctx, args)


def program_of(words: Sequence[str]) -> click.Command:
    """Make the command that runs a Python file, the first of its words, as Python would."""
    path = Path(words[0])

    def run_file(
        out: Path | None, target: str | None, ipus: int | None, option: tuple[str, ...],
        sdk: bool, arguments: tuple[str, ...],
    ) -> int:  # fmt: skip
        if not path.is_file():
            raise PvaError(path, "no such file", "give the path of a program")
        directory = out or Path(path.stem)
        options = _checked_options(option)
        requested = _checked_target(target, ipus)
        with recorded(directory, ("simulate", *words)), importable() if sdk else nullcontext():
            code, folders = run_program(path, arguments, directory, requested, options)
        for folder in folders:
            say_where(folder)
        return code

    arguments = click.Argument(["arguments"], nargs=-1, type=click.UNPROCESSED)
    settings = {"ignore_unknown_options": True, "allow_interspersed_args": True}
    command = Command(path.name, settings, run_file, [arguments], add_help_option=False)
    for add in (_any_target, _ipus, _option, _sdk, _out):
        command = add(command)
    return command


def _checked_options(pairs: tuple[str, ...]) -> dict[str, str]:
    """Read KEY=VALUE pairs; raises click.UsageError and InvalidOptionError."""
    from simulator.graph.option_table import checked
    from simulator.options import OPTIONS

    wrong = [pair for pair in pairs if "=" not in pair]
    if wrong:
        raise click.UsageError(f"--option {wrong[0]}: no value; write KEY=VALUE")
    options = dict(pair.split("=", 1) for pair in pairs)
    checked(OPTIONS, options, "--option")
    return options


def _checked_target(part: str | None, ipus: int | None) -> dict[str, object]:
    """Return the target options for a part and a number of IPUs; raises PoplarError."""
    from simulator.graph.machine.files import SUFFIX as MACHINE
    from simulator.graph.machine.options import DEFAULT_IPUS, DEFAULT_PART
    from simulator.graph.machine.target import part_name

    name = part and part_name("--target", part)
    if part and part.endswith(MACHINE):  # processes that the program starts read it, too
        name = str(Path(part).resolve())
    defaults = {DEFAULT_PART: name, DEFAULT_IPUS: ipus}
    return {name: value for name, value in defaults.items() if value is not None}


@click.group(
    cls=Programs, epilog=EXAMPLES, no_args_is_help=True, subcommand_metavar="PROGRAM [ARGS]..."
)
def simulate() -> None:
    """Run a program in the simulator and write its report: an example, a Python file, a model.

    \b
    tilescope simulate PROGRAM.py [ARGS]... [--target PART] [--ipus N]
                       [--option KEY=VALUE]... [--sdk] [--out DIR]
    tilescope simulate MODEL.onnx [--target PART] [--ipus N] [--batch B]
                       [--shape INPUT=1x3x8]... [--input INPUT=VALUE|FILE.npy]...
                       [--values FILE.npz] [--save-outputs FILE.npz]
                       [--train [--optimizer sgd|momentum|adam]
                               [--recompute [standard|all]]]
                       [--repeat N] [--io-tiles N [--exchange-strategy STRATEGY]]
                       [--partials half|float] [--memory-proportion SHARE]
                       [--precision float|half] [--no-outlining] [--no-values]
                       [--cache DIR] [--list-unsupported] [--json]
                       [--option KEY=VALUE]... [--out DIR]

    The file runs as the main program, unchanged, with ARGS as its arguments; put -- before ARGS
    that begin like these options. --target (mk1, mk2, bow, tiny or a machine's FILE.toml) and
    --ipus are the defaults of poplar.IPUModel() and of the devices of a DeviceManager: a program
    that fixes its own keeps it.
    --option sets options of the engine, such as autoReport.executionProfileProgramRunCount=5.
    With --sdk programs of PopTorch and PopART run unchanged: their names can be imported, for this
    run alone. Options reach the program by POPLAR_ENGINE_OPTIONS and POPLAR_TARGET_OPTIONS. The
    exit code is the program's; 2 when it makes no Engine. DIR is new, empty or holds an earlier
    report: what tilescope wrote there is replaced; anything else in its way is refused and kept.

    An ONNX model runs on random inputs (by tilescope[popart]); several IPUs share its nodes. One
    that does not fit ends with 1, and its report is kept. With --repeat it takes N batches one
    after another, and several IPUs are the stages of a pipeline: the figures "steady" are those of
    a full one, without its filling and draining, so that N must be above the number of IPUs (in
    training, above twice as many less one). Items are the first size that all inputs share.
    --io-tiles sets tiles of each IPU apart that exchange with the host while the others compute:
    the next batch is loaded and the last one's outputs leave meanwhile, which takes two batches
    more to fill. By --exchange-strategy just-in-time they do so in turns. Equal layers are a
    function, whose code is there once and whose calls copy; with --no-outlining each has its own.
    --partials half adds up convolutions and products of halves in halves, at half of the cycles
    of their vertices.
    --batch is the first size of its inputs, --shape one input's. --input gives the value of an
    input that is known when the model is compiled, as branches and shapes need it; --values feeds
    arrays instead of random numbers, and --save-outputs keeps what comes out. --train adds a loss
    and trains one batch; the optimizer decides what is kept for each weight, and --recompute makes
    what the way back reads again instead of keeping it. With --no-values memory and cycles are
    found without values or weights; --list-unsupported names all nodes that cannot be run, and ends
    with 1 if there are any.
    """


@simulate.command("mlp_digits", cls=Command)
@_target
@_out
@click.option("--epochs", type=click.IntRange(min=1), help="Epochs.  [default: 10]")
def mlp_digits(target: str, out: Path | None, epochs: int | None) -> None:
    """Train a two-layer network on 1,797 handwritten digits."""
    directory = out or Path("mlp_digits")
    train_digits(directory, target=target, epochs=epochs)
    say_where(directory)


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


@simulate.command("matmul_chain", cls=Command)
@click.argument("shapes", metavar="[SHAPE]...", nargs=-1)
@_target
@_code
@_out
def matmul_chain(shapes: tuple[str, ...], target: str, code: bool, out: Path | None) -> None:
    """Multiply random matrices, ((m1 * m2) * m3), of shapes such as 800x500 500x400 400x200."""
    directory = out or Path("matmul_chain")
    from simulator.examples import matmul_chain as example

    chain = example.parse_shapes(shapes) if shapes else example.SHAPES
    with recorded(directory):
        result = example.run(chain, target=target, out=directory, compile_ipu_code=code)
    rows, columns = result.product.shape
    click.echo(f"product of {rows:,} x {columns:,}; relative error {result.error:.1e}")
    say_where(directory)


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
@_code
def newton_pipeline(
    target: str, out: Path | None, tiles: int | None, replicas: int, code: bool
) -> None:
    """Take square roots in a pipeline over two IPUs, with loops that its data ends."""
    directory = out or Path("newton_pipeline")
    from simulator.examples import newton_pipeline as example

    with recorded(directory):
        result = example.run(
            target=target, tiles=tiles or 0, replicas=replicas, out=directory, compile_ipu_code=code
        )
    count = f"{result.roots.size:,} roots by {replicas} replica(s)"
    click.echo(f"{count}; relative error {result.error:.1e}")
    say_where(directory)


COMMAND = Declaration(
    command=simulate,
    order=130,
    usage={
        "`tilescope simulate PROGRAM.py`": "What would this program do on such a machine?",
    },
    calls=(
        "simulate idle.py",
        "simulate missing.py",
        "simulate idle.py --target mk3",
    ),
    reports=(),
)
