"""`tilescope simulate MODEL.onnx`: what an ONNX model would cost on one or more IPUs."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cli.descriptions.run_facts import run_object
from cli.programs.recording import recorded
from cli.shared.faults import Command
from cli.shared.output import OBJECT, counted, object_option, printable, write_object
from cli.shared.progress import Progress, steps_shown
from pva.errors import OverwriteError, PvaError

if TYPE_CHECKING:
    from simulator.popart.simulate import Outcome, Request

SUFFIX = ".onnx"
HELP = "Run an ONNX model on random inputs, and write its report."
PARTS = 10  # lines of progress where there is no terminal

UNSUPPORTED = 1  # exit code of --list-unsupported when there are some
OUT_OF_MEMORY = 1  # exit code of a model that does not fit; its report is kept if it has one


OPTIONS = (
    click.option("--target", default="mk2", help="Machine: mk1, mk2, bow, tiny or FILE.toml."),
    click.option("--ipus", type=click.IntRange(min=1), default=1, help="IPUs."),
    click.option("--batch", type=click.IntRange(min=1), help="First size of every input."),
    click.option("--shape", multiple=True, metavar="INPUT=1x3x8", help="Shape of an input."),
    click.option(
        "--input",
        multiple=True,
        metavar="INPUT=VALUE|FILE.npy",
        help="Value of an input that is known when the model is compiled.",
    ),
    click.option(
        "--values",
        type=click.Path(path_type=Path),
        metavar="FILE.npz",
        help="Arrays of inputs, instead of random ones.",
    ),
    click.option(
        "--save-outputs",
        type=click.Path(path_type=Path),
        metavar="FILE.npz",
        help="File for the values of the outputs.",
    ),
    click.option("--train", is_flag=True, help="Train, too."),
    click.option("--optimizer", help="sgd, momentum or adam; sgd if not given."),
    click.option(
        "--recompute",
        type=click.Choice(["standard", "all"]),
        is_flag=False,
        flag_value="standard",
        help="Compute again what the way back reads: what lies between checkpoints, or all.",
    ),
    click.option(
        "--repeat",
        type=click.IntRange(min=1),
        default=1,
        metavar="N",
        help="Batches, one after another; several IPUs are then the stages of a pipeline.",
    ),
    click.option(
        "--io-tiles",
        type=click.IntRange(min=0),
        default=0,
        metavar="N",
        help="Tiles of each IPU that exchange with the host while the others compute.",
    ),
    click.option(
        "--exchange-strategy",
        type=click.Choice(["just-in-time", "overlap-inner-loop", "overlap-loops"]),
        help="When they do so; overlap-inner-loop if not given.",
    ),
    click.option(
        "--partials",
        type=click.Choice(["half", "float"]),
        help="Type of partial results; float if not given.",
    ),
    click.option(
        "--memory-proportion",
        type=click.FloatRange(min=0, max=1, min_open=True),
        metavar="SHARE",
        help="Share of a tile for temporary data of products; 0.6 if not given.",
    ),
    click.option(
        "--precision",
        type=click.Choice(["float", "half"]),
        default="float",
        help="half makes the model's floats halves.",
    ),
    click.option("--no-outlining", is_flag=True, help="Give equal layers code of their own."),
    click.option(
        "--cache",
        type=click.Path(path_type=Path, file_okay=False),
        metavar="DIR",
        help="Folder where compiled models are kept, to be taken from there the next time.",
    ),
    click.option("--no-values", is_flag=True, help="Find memory and cycles alone."),
    object_option,
    click.option("--list-unsupported", is_flag=True, help="Name what cannot be run."),
    click.option("--option", multiple=True, metavar="KEY=VALUE", help="Engine option."),
    click.option("--out", type=click.Path(path_type=Path), help="Directory of the report."),
)


def model_command(
    words: Sequence[str], checked_options: Callable[[tuple[str, ...]], dict[str, str]],
    say_where: Callable[[Path], None],
) -> click.Command:  # fmt: skip
    """Make the command that simulates a model, the first of its words."""
    path = Path(words[0])

    def run_model(out: Path | None, option: tuple[str, ...], list_unsupported: bool,
                  shape: tuple[str, ...], no_values: bool, optimizer: str | None,
                  input: tuple[str, ...], values: Path | None, save_outputs: Path | None,
                  form: str | None, exchange_strategy: str | None, no_outlining: bool,
                  partials: str | None, recompute: str | None, **settings: Any) -> int:  # fmt: skip
        if no_values and (values or save_outputs):
            raise click.UsageError("--values and --save-outputs are of values: drop --no-values")
        if (optimizer or recompute) and not settings["train"]:
            raise click.UsageError("--optimizer and --recompute are of a training: add --train")
        if exchange_strategy and not settings["io_tiles"]:
            raise click.UsageError("--exchange-strategy is of I/O tiles: add --io-tiles N")
        if not path.is_file():
            raise PvaError(path, "no such file", "give the path of an ONNX model")
        _check_free(save_outputs)
        options = checked_options(option)
        _show_warnings_of_the_cache()
        from simulator import popart  # noqa: F401 - which says what to install
        from simulator.popart import simulate
        from simulator.popart.importing.model_files import input_values

        pairs = {name: input_values.read_value(text, f"--input {name}")
                 for name, text in _pairs(input)}  # fmt: skip
        request = simulate.Request(
            shapes=_shapes(shape), values=not no_values, outlining=not no_outlining,
            options=options,
            optimizer=optimizer or "sgd", constants=pairs,
            exchange_strategy=exchange_strategy or "overlap-inner-loop", partials=partials or "",
            recompute=recompute or "",
            data=input_values.read_values(values) if values else {}, **settings,
        )  # fmt: skip
        if request.optimizer not in simulate.OPTIMIZERS:
            names = ", ".join(simulate.OPTIMIZERS)
            raise click.UsageError(f"--optimizer {optimizer}: not known; there are {names}")
        if list_unsupported:
            wrong = simulate.list_unsupported(path, request)
            for line in wrong:
                click.echo(printable(line))
            return UNSUPPORTED if wrong else 0
        directory = out or Path(path.stem)
        outcome = _outcome(path, directory, request, words)
        if outcome is None:
            return OUT_OF_MEMORY
        if outcome.loss:
            batches = counted(request.repeat, "batch", "batches")
            click.echo(printable(f"trained {batches}: {outcome.loss}"), err=True)
        _say_outputs(outcome.outputs, path, directory, form)
        if save_outputs:
            _save(save_outputs, outcome.outputs)
        say_where(directory)
        return 0 if _fits(directory) else OUT_OF_MEMORY

    return _with_options(Command(path.name, callback=run_model, help=HELP))


def _outcome(path: Path, directory: Path, request: Request, words: Sequence[str]) -> Outcome | None:
    """Simulate a model; say that it does not fit, and return None, where a product has no plan."""
    from simulator.graph.errors import NoPlanError, PoplarError
    from simulator.popart.simulate import simulate_model

    shown = _counting_phases(steps_shown("lowering", PARTS))
    try:
        with recorded(directory, ("simulate", *words)):
            return simulate_model(path, directory, request, shown)
    except PoplarError as error:
        if not isinstance(error.__cause__, NoPlanError):
            raise
        held = f"{directory} has a report of what the model holds"
        click.echo(printable(f"does not fit: {error}; {held}"), err=True)
        return None


def _show_warnings_of_the_cache() -> None:
    """Let the log warn of a kept program that cannot be used, where the user chose no level."""
    if "POPLAR_LOG_LEVEL" not in os.environ:
        os.environ.setdefault("POPLAR_CACHE_LOG_LEVEL", "WARN")


def _with_options(command: click.Command) -> click.Command:
    for add in OPTIONS:
        command = add(command)
    return command


def _shapes(texts: tuple[str, ...]) -> dict[str, list[int]]:
    """Read INPUT=1x3x8 pairs; raises click.UsageError."""
    shapes = {}
    for text in texts:
        name, _, sizes = text.rpartition("=")
        parts = sizes.lower().split("x")
        if not name or not all(part.strip().isdigit() for part in parts):
            raise click.UsageError(f"--shape {text}: write INPUT=1x3x224x224")
        shapes[name] = [int(part) for part in parts]
    return shapes


def _say_outputs(outputs: Mapping[str, Any], path: Path, out: Path, form: str | None) -> None:
    """Write type, shape and extremes of what came out, or with the run's figures as an object."""
    rows: list[dict[str, Any]] = [
        {"name": name, "shape": list(array.shape), "type": str(array.dtype),
         "least": float(array.min()), "most": float(array.max())}
        for name, array in outputs.items()
    ]  # fmt: skip
    if form == OBJECT:
        from pva.report import openReport

        figures = run_object(openReport(out))
        write_object("simulate", str(path), report=str(out), run=figures, outputs=rows)
        return
    for row in rows:
        sizes = " x ".join(map(str, row["shape"])) or "1"
        extremes = f"{row['least']:.6g} to {row['most']:.6g}"
        click.echo(printable(f"{row['name']}: {sizes} of {row['type']}, {extremes}"))


def _fits(directory: Path) -> bool:
    """Return whether every tile has the memory that the report in a directory says it needs."""
    from pva.analysis.memory.totals import memory_overview
    from pva.report import openReport

    report = openReport(directory)
    if not report.dataset.has("memory_by_tile"):
        return True
    return not memory_overview(report).tiles_out_of_memory


def _pairs(texts: tuple[str, ...]) -> list[tuple[str, str]]:
    """Read INPUT=VALUE pairs; raises click.UsageError."""
    wrong = [text for text in texts if not text.partition("=")[0] or not text.partition("=")[2]]
    if wrong:
        raise click.UsageError(f"--input {wrong[0]}: write INPUT=VALUE or INPUT=FILE.npy")
    return [(name, value) for name, _, value in (text.partition("=") for text in texts)]


def _check_free(path: Path | None) -> None:
    """Raise OverwriteError where there is something already."""
    if path and path.exists():
        raise OverwriteError(path, "already there", "give another name to --save-outputs")


def _save(path: Path, outputs: dict[str, Any]) -> None:
    """Write arrays to a new .npz file of exactly this name; raises OverwriteError and PvaError."""
    import numpy as np

    try:
        with open(path, "xb") as stream:
            np.savez(stream, **outputs)
    except FileExistsError:
        _check_free(path)
    except OSError as error:
        raise PvaError(path, error.strerror or str(error), "give a file to write") from error


def _counting_phases(shown: Progress) -> Progress:
    """Write of what is lowered, and that all of it is then compiled."""

    def tell(finished: int, total: int, phase: str) -> None:
        shown(finished, total, f"lowering {phase}" if phase else "compiling")

    return tell
