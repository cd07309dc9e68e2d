"""Run a Python file as the main program, with options and target that reach it unchanged."""

from __future__ import annotations

import json
import os
import runpy
import sys
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cli.programs.sdk import NAMES
from cli.shared.output import printable
from pva import units
from pva.errors import PvaError

if TYPE_CHECKING:
    from simulator.engine_events import Event

ENGINE, TARGET = "POPLAR_ENGINE_OPTIONS", "POPLAR_TARGET_OPTIONS"
RAISED = 1  # what Python ends with after an exception
EXTRAS = {"torch": "torch", "onnxscript": "torch", "onnx": "popart"}  # that install a package


def run_program(
    path: Path, arguments: Sequence[str], out: Path, target: Mapping[str, object],
    options: Mapping[str, str],
) -> tuple[int, list[Path]]:  # fmt: skip
    """Run a program with reports in `out`; give its exit code, and the folder of each report.

    Raises PvaError when it made no engine.
    """
    from simulator.engine_events import subscribed

    compiled: list[Event] = []

    def note(event: Event) -> None:
        if event.kind == "compiled":
            compiled.append(event)
        _show_progress(event)

    # The program may go to another directory.
    report = {"autoReport.all": True, "autoReport.directory": str(out.resolve())}
    with (
        _environment(ENGINE, {**report, **options}),
        _environment(TARGET, target),
        subscribed(note),
    ):
        code = _run_file(path, arguments)
    if not compiled:
        raise PvaError(path, f"made no Engine before it ended{f' with {code}' if code else ''}",
                       "nothing was simulated, and there is no report")  # fmt: skip
    _say_what_is_kept(path, compiled, target)
    absolute = out.resolve()
    folders = dict.fromkeys(event.directory for event in compiled)
    return code, [
        out / folder.relative_to(absolute) if folder.is_relative_to(absolute) else folder
        for folder in folders
    ]


@contextmanager
def _environment(variable: str, options: Mapping[str, object]) -> Iterator[None]:
    """Put options into a variable that holds a JSON object, over those that it has."""
    before = os.environ.get(variable)
    try:
        defaults = json.loads(before) if before and before.strip() else {}
        if not isinstance(defaults, dict):
            raise PvaError(variable, "no object", "a JSON object of options")
        merged = json.dumps({**defaults, **options})
    except RecursionError:
        raise PvaError(variable, "nested too deeply", "a JSON object of options") from None
    except ValueError:
        raise PvaError(variable, "not JSON", "a JSON object of options") from None
    os.environ[variable] = merged
    try:
        yield
    finally:
        if before is None:
            del os.environ[variable]
        else:
            os.environ[variable] = before


def _run_file(path: Path, arguments: Sequence[str]) -> int:
    """Run a file as the main program; its folder is the last place to import from."""
    directory = Path.cwd()
    arguments_before, sys.argv = sys.argv, [str(path), *arguments]
    sys.path.append(str(path.parent.resolve()))
    try:
        runpy.run_path(str(path), run_name="__main__")
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        click.echo(str(end.code), err=True)
        return RAISED
    except Exception as error:
        return _say_raised(path, error)
    finally:
        sys.argv = arguments_before
        sys.path.pop()
        os.chdir(directory)
    return 0


def _say_raised(path: Path, error: Exception) -> int:
    """Print a program's error: of the simulator one line with the place, else as Python does."""
    from simulator.graph.errors import PoplarError

    frames = traceback.extract_tb(error.__traceback__)
    places = [at for at, frame in enumerate(frames) if frame.filename == str(path)]
    if isinstance(error, PoplarError | PvaError) and places:
        line = frames[places[-1]].lineno
        raise PvaError(f"{path}:{line}", f"{type(error).__name__}: {error}") from error
    if isinstance(error, ModuleNotFoundError) and places and (hint := _installing(error.name)):
        raise PvaError(f"{path}:{frames[places[-1]].lineno}", str(error), hint) from error
    # A program that cannot be read has no frame of its own: nothing of ours is worth showing.
    for _ in range(places[0] if places else len(frames)):
        assert error.__traceback__ is not None
        error.__traceback__ = error.__traceback__.tb_next
    click.echo("".join(traceback.format_exception(error)).rstrip(), err=True)
    return RAISED


def _installing(package: str | None) -> str:
    """Return how a program can import a package of the SDK, or one it needs; "" for others."""
    if package in NAMES:
        return "give --sdk, by which programs of the SDK run unchanged"
    return f"pip install 'tilescope[{EXTRAS[package]}]'" if package in EXTRAS else ""


def _show_progress(event: Event) -> None:
    """Write on a terminal what an engine did: compilation, and the runs 1, 2, 4, 8, ..."""
    if not sys.stderr.isatty():
        return
    if event.kind == "compiled":
        click.echo(f"compiled for {_machine(event.part, event.ipus)}", err=True)
    elif event.runs & (event.runs - 1) == 0:
        click.echo(f"run {event.runs:,}", err=True)


def _machine(part: str, ipus: int) -> str:
    return f"{ipus} x {part}"


def _say_what_is_kept(path: Path, compiled: Sequence[Event], target: Mapping[str, object]) -> None:
    from simulator.graph.machine.options import DEFAULT_IPUS, DEFAULT_PART
    from simulator.graph.machine.target import part_name

    last = compiled[-1]
    part, ipus = target.get(DEFAULT_PART, last.part), target.get(DEFAULT_IPUS, last.ipus)
    part = part_name("--target", str(part))
    if (part, ipus) != (last.part, last.ipus):
        click.echo(
            f"{path}: fixes its own target, {_machine(last.part, last.ipus)},"
            f" not {_machine(str(part), int(str(ipus)))} as asked for",
            err=True,
        )
    for folder, same in Counter(event.directory for event in compiled).items():
        if same > 1:
            where = "the report" if folder == last.directory else f"the report {folder.name}"
            click.echo(f"{path}: made {same} engines; {where} is that of the last", err=True)


def say_where(out: Path) -> None:
    """Write where the report is, how large, whether the program fits and how long it took."""
    from cli.info import verdict
    from pva.report import openReport

    size = sum(file.stat().st_size for file in out.rglob("*") if file.is_file())
    click.echo(f"report: {out}, {units.size(size)}  (tilescope summary {out})", err=True)
    with suppress(PvaError):  # it may hold a trace alone
        for label, text in verdict(openReport(out)):
            click.echo(f"{label}: {printable(text)}", err=True)
