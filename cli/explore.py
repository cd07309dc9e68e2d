"""`tilescope explore PROGRAM|MODEL --vary LEVER=VALUES --out DIR`: which configuration to run."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

import click

from cli.shared.declared import Declaration
from cli.shared.faults import Command
from cli.shared.output import OBJECT, counted, of_frame, printable, write_object, write_rows
from cli.shared.progress import steps_shown
from pva import units
from pva.errors import PvaError
from pva.lazy import pandas as pd

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from simulator.explore.explore import Exploration, Plan
    from simulator.explore.levers import Space

Function = TypeVar("Function", bound=Callable[..., object])
EXAMPLES = """
\b
Examples:
  tilescope explore resnet50.onnx --vary batch=1,2,4,8 --vary ipus=1,2 --out space/
  tilescope explore bert.onnx --train --vary recompute=none,standard,all --out space/
  tilescope explore bert.onnx --vary target=mk2,bow,mine.toml --vary precision=float,half --out s/
  tilescope explore mine.py --vary batch-size=4,8 --vary option:opt.x=1,2 --out space/
"""
SHOWN = ("fits", "over", "fullest_tile", "samples_per_second", "cycles_per_sample", "latency",
         "compute_share", "error")  # fmt: skip
ROWS = 20

UNITS = {"KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "B": 1}


class Counts(TypedDict):
    """How many points there are of each sort."""

    space: int
    run: int
    computed: int
    fits: int
    misses: int
    failed: int
    share_of_space: float
    pareto: int


def memory_size(_context: click.Context, _: click.Parameter, text: str | None) -> int:
    """Read a memory such as "4 GB"; raises click.BadParameter."""
    if text is None:
        return 0
    number = text.upper().rstrip("KMGIB ")
    unit = text.upper()[len(number) :].strip().replace("IB", "B") or "B"
    try:
        size = float(number) * UNITS[unit if unit.endswith("B") else f"{unit}B"]
    except (ValueError, KeyError):
        raise click.BadParameter(f"{text}: write a size, as 4GB") from None
    if not (math.isfinite(size) and size >= 1):
        raise click.BadParameter(f"{text}: write a size, as 4GB")
    return int(size)


def engine_options(function: Function) -> Function:
    """Add what `explore` and `fit` share: where points run, and their limits."""
    for option in (
        click.option("--json", "form", flag_value=OBJECT, help="Write one JSON object."),
        click.option("--memory-limit", callback=memory_size, metavar="SIZE",
                     help="Memory that a point may take, as 4GB.  [default: what is free]"),
        click.option("--time-limit", type=click.FloatRange(min=0, min_open=True), default=3600,
                     show_default=True, metavar="SECONDS", help="Time that a point may take."),
        click.option("--workers", type=click.IntRange(min=1),
                     help="Processes.  [default: as many as memory and processors allow]"),
        click.option("--dask", metavar="tcp://...", help="Scheduler of Dask whose workers run."),
    ):  # fmt: skip
        function = option(function)
    return function


def trying(examples: str) -> Callable[[Callable[..., object]], click.Command]:
    """Make a function a command that hands unknown options on, as `explore` and `fit` do."""
    settings = {"ignore_unknown_options": True, "allow_interspersed_args": True}
    return click.command(cls=Command, epilog=examples, context_settings=settings)


@trying(EXAMPLES)
@click.argument("program", metavar="PROGRAM|MODEL")
@click.argument("shared", metavar="[ARGS]...", nargs=-1, type=click.UNPROCESSED)
@click.option("--vary", multiple=True, metavar="LEVER=V,V", help="A lever and its values.")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Directory.")
@click.option("--keep", type=click.IntRange(min=0), default=8, show_default=True,
              help="Reports of the best points that are kept.")  # fmt: skip
@click.option("--objective", multiple=True, metavar="COLUMN",
              help="What is best; several make a Pareto set.  [default: samples_per_second]"
)  # fmt: skip
@click.option("--points", type=click.IntRange(min=1), default=256, show_default=True,
              help="Points at most: of a larger space Optuna chooses.")  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True,
              help="Seed of that choice.")  # fmt: skip
@click.option("--again", is_flag=True, help="Run points that failed again.")
@engine_options
def explore(
    program: str, shared: tuple[str, ...], vary: tuple[str, ...], out: Path, keep: int,
    objective: tuple[str, ...], points: int, seed: int, again: bool, form: str | None,
    dask: str | None, workers: int | None, time_limit: float, memory_limit: int,
) -> None:  # fmt: skip
    """Compile and simulate every combination of levers, each in a process of its own.

    Answers "which configuration should I run, and what do I pay for it?". PROGRAM is a file, a
    model or a program of `tilescope simulate`; ARGS are those of `simulate`, for all points.

    Levers of a model are the options of `simulate`: batch, ipus, target (a part or FILE.toml),
    recompute (none, standard, all), memory-proportion, optimizer, precision (float, half),
    io-tiles, partials, repeat and the like; of a program target, ipus and its own arguments, as
    `--vary ARG=1,2`. option:KEY is an option of the engine. `none` leaves an option out. Values are
    not computed, unless a program asks for them by --option simulator.computeValues=true.

    DIR/points.parquet has a row a point: levers, whether it fits, the fullest tile, always-live,
    peak, cycles a sample, samples a second, latency, shares, and why there are no figures. A point
    that does not fit, hangs or crashes is a row. The same point is never computed twice: run again,
    it goes on where it was stopped, and a larger grid computes what is new. Reports of the best
    points are in DIR/reports/.
    """
    from simulator.explore.levers import Space, read_levers

    if not vary:
        raise click.UsageError("nothing varies: add --vary LEVER=VALUE,VALUE, as batch=1,2,4")
    check_program(program)
    space = Space(program, shared, read_levers(vary))
    plan = plan_of(objective, time_limit, memory_limit, keep=keep, most=points, seed=seed,
                   again=again, progress=steps_shown("exploring"))  # fmt: skip
    began = time.monotonic()
    computed, keys = _run(space, out, plan, dask or "", workers or 0)
    _write(space, out, plan, keys, computed, time.monotonic() - began, form)


def check_program(program: str) -> None:
    """Raise PvaError where there is no such program."""
    from cli.simulate import SUFFIXES, simulate

    if program.endswith(SUFFIXES):
        if not Path(program).is_file():
            raise PvaError(program, "no such file", "give the path of a program or model")
    elif program not in simulate.commands:
        names = ", ".join(simulate.commands)
        raise PvaError(program, "no such program", f"a .py or .onnx file, or one of {names}")


def plan_of(objectives: Sequence[str], seconds: float, memory: int, **limits: Any) -> Plan:
    """Make a plan; raises click.UsageError for an objective that is no column."""
    from pva.many.points import FIGURES, ranked
    from simulator.explore.explore import Plan

    signs = {name: sign for name, (_, sign) in FIGURES.items() if sign}
    wrong = [name for name in objectives if name not in signs]
    if wrong:
        raise click.UsageError(f"--objective {wrong[0]}: there are {', '.join(signs)}")
    directions = {name: signs[name] for name in objectives or ("samples_per_second",)}
    first = next(iter(directions))
    return Plan(
        tuple(FIGURES), lambda rows: ranked(rows, first), directions, seconds, memory, **limits
    )


def _run(space: Space, out: Path, plan: Plan, dask: str, workers: int) -> tuple[int, list[str]]:
    """Run the space; return how many points were computed, and the keys of those asked for."""
    with exploration(space, out, plan, dask, workers) as results:
        results.run()
        return results.computed, list(results.asked)


def exploration(
    space: Space, out: Path, plan: Plan, dask: str, workers: int
) -> AbstractContextManager[Exploration]:
    """Return the exploration of a space, for a block in which no other may have its directory."""
    from contextlib import contextmanager

    from simulator.explore import record
    from simulator.explore.engine import engine
    from simulator.explore.explore import Exploration

    @contextmanager
    def opened() -> Iterator[Exploration]:
        record.check_parquet(out)
        with record.owned(out), engine(dask, workers) as runs:
            yield Exploration(space, out, runs, plan)

    return opened()


def _write(
    space: Space, out: Path, plan: Plan, keys: Sequence[str], computed: int, seconds: float,
    form: str | None,
) -> None:  # fmt: skip
    from pva.many.points import pareto, ranked

    frame = pd.read_parquet(out / "points.parquet")
    frame = frame[frame["key"].isin(list(keys))].reset_index(drop=True)
    frame["pareto"] = pareto(frame, list(plan.objectives))
    order = ranked(frame.reset_index().to_dict("records"), next(iter(plan.objectives)))  # type: ignore[type-var]
    frame = frame.iloc[[int(row["index"]) for row in order]].reset_index(drop=True)
    counts = _counts(frame, space, computed)
    if form == OBJECT:
        records = frame.astype(object).where(frame.notna(), None).to_dict("records")
        write_object("explore", space.program, out=str(out), objectives=list(plan.objectives),
                     seconds=round(seconds, 3), **counts, points=records)  # fmt: skip
        return
    _write_table(frame, space, plan, counts, out, seconds)


def _counts(frame: pd.DataFrame, space: Space, computed: int) -> Counts:
    fits = frame["fits"].fillna(False).astype(bool)
    failed = frame["error"].fillna("").astype(bool)
    return {
        "space": space.size,
        "run": len(frame),
        "computed": computed,
        "fits": int(fits.sum()),
        "misses": int((~fits & ~failed).sum()),
        "failed": int(failed.sum()),
        "share_of_space": len(frame) / max(space.size, 1),
        "pareto": int(frame["pareto"].sum()),
    }


def _write_table(
    frame: pd.DataFrame, space: Space, plan: Plan, counts: Counts, out: Path,
    seconds: float,
) -> None:  # fmt: skip
    columns = [*space.levers, "pareto", *SHOWN]
    empty = [name for name in ("error", "latency", "over") if not _has(frame, name)]
    write_rows(of_frame(frame[[name for name in columns if name not in empty]].head(ROWS)))
    named = ", ".join(plan.objectives)
    lines = (
        f"{counted(counts['run'], 'point')} of {space.size:,}"
        f" ({units.share(counts['share_of_space'])} of the space): {counts['fits']:,} fit,"
        f" {counts['misses']:,} do not, {counts['failed']:,} have no figures;"
        f" {counts['computed']:,} computed now, in {units.duration(seconds)}",
        f"best by {named}: {counts['pareto']:,} that no other that was run is better than",
        f"{out}/points.parquet; reports of the best in {out}/reports",
    )
    click.echo()
    for line in lines:
        click.echo(printable(line))


def _has(frame: pd.DataFrame, name: str) -> bool:
    return bool(frame[name].fillna(0).astype(bool).any())


COMMAND = Declaration(
    command=explore,
    order=140,
    usage={
        "`tilescope explore PROGRAM\\|MODEL`": (
            "Every point of a space of choices, compiled and simulated"
            " ([docs/explore.md](docs/explore.md))"
        ),
    },
    calls=(
        "explore idle.py --out space",
        "explore missing.py --vary ipus=1,2 --out space",
        "explore idle.py --vary target=mk3 --out space",
        "explore idle.py --vary ipus=1,2 --objective speed --out space",
    ),
    reports=(),
)
