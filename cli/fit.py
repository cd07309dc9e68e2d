"""`tilescope fit MODEL|PROGRAM --target mk2`: what is the least that I must give up?"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cli.explore import check_program, engine_options, exploration, plan_of, trying
from cli.shared.declared import Declaration
from cli.shared.fitting import labelled
from cli.shared.output import OBJECT, Rows, counted, printable, write_object, write_rows
from cli.shared.progress import steps_shown
from pva import units

if TYPE_CHECKING:
    from pva.schema.exploration import PointRow
    from simulator.explore.fit import Answer

EXAMPLES = """
\b
Examples:
  tilescope fit bert.onnx --target mk2 --ipus 1..4
  tilescope fit bert.onnx --train --optimizer adam --json
  tilescope fit mine.py --ipus 1..2 --vary batch-size=8,4,2
"""
NOTHING_FITS = 1
LABEL = 14  # letters of the longest label, and a blank
AS_IT_IS = "as it is"
PARTS = {  # of the fullest tile: columns of a point
    "tile_always_live": "always-live data",
    "tile_not_always_live": "data that is not always live",
    "tile_code": "code",
    "tile_exchange_buffers": "exchange buffers",
    "tile_gaps": "gaps",
}
COLUMNS = ("way", "samples_per_second", "cost", "fullest_tile")


class IpuRange(click.ParamType[range]):
    """One number of IPUs, or a range as 1..4."""

    name = "ipus"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> range:
        """Read N or N..M; raises click.BadParameter."""
        if isinstance(value, range):
            return value
        first, dots, last = str(value).partition("..")
        if not first.isdigit() or not (last or first).isdigit() or (dots and not last):
            self.fail(f"{value}: write a number or a range, as 1..4", param, ctx)
        low, high = int(first), int(last or first)
        if not 1 <= low <= high:
            self.fail(f"{value}: write a range that rises from 1, as 1..4", param, ctx)
        return range(low, high + 1)


@trying(EXAMPLES)
@click.argument("program", metavar="MODEL|PROGRAM")
@click.argument("shared", metavar="[ARGS]...", nargs=-1, type=click.UNPROCESSED)
@click.option("--target", default="mk2", show_default=True, help="A part, or FILE.toml.")
@click.option("--ipus", type=IpuRange(), default="1", metavar="N|N..M", show_default=True,
              help="IPUs, or the range that may be used.")  # fmt: skip
@click.option("--vary", multiple=True, metavar="LEVER=V,V", help="A lever more, mildest first.")
@click.option("--out", type=click.Path(path_type=Path), help="Directory.  [default: fit-NAME]")
@engine_options
def fit(
    program: str, shared: tuple[str, ...], target: str, ipus: range, vary: tuple[str, ...],
    out: Path | None, form: str | None, dask: str | None, workers: int | None,
    time_limit: float, memory_limit: int,
) -> int:  # fmt: skip
    """Search the cheapest change that makes a model or program fit.

    Tries it as it is, then levers in the order of what they cost: the share of memory for temporary
    data, partial results, recomputation, the batch, precision, the optimiser's state, more IPUs;
    then two of them together, and more. Each way that is shown was compiled, simulated and fits:
    at most five, the fastest first, with what it costs against the one that gives up least, the
    command that runs it, and its report. Ends with 1 where nothing fits, with the nearest miss.

    ARGS are those of `tilescope simulate`, as --train --batch 8. Of a program the IPUs and what
    --vary names are tried. What is tried is kept in --out, as by `tilescope explore`.
    """
    from simulator.explore.fit import fit as find_fit
    from simulator.explore.fit import levers_of
    from simulator.explore.levers import Space, read_levers

    check_program(program)
    variations = read_levers(vary)
    read_levers([f"target={target}"])
    levers = levers_of(program, shared, ipus, variations)
    base = {"target": target, "ipus": str(ipus[0])}
    space = Space(program, shared, {"target": (target,), "ipus": (base["ipus"],), **levers})
    folder = out or Path(f"fit-{Path(program).stem}")
    plan = plan_of((), time_limit, memory_limit, keep=8, progress=steps_shown("trying"))
    with exploration(space, folder, plan, dask or "", workers or 0) as tried:
        tried.read()
        try:
            answer = find_fit(space, base, levers, tried.points, tried.rows)
        finally:
            tried.close()
    ways = [_way(row, answer, base, folder) for row in answer.ways]
    if form == OBJECT:
        miss = answer.nearest and _miss(answer.nearest, answer, base)
        write_object("fit", program, target=target, ways=ways, nearest=miss, out=str(folder),
                     tried=len(answer.tried))  # fmt: skip
    else:
        _write(ways, answer, base, folder)
    return 0 if ways else NOTHING_FITS


def _way(row: PointRow, answer: Answer, base: Mapping[str, str], out: Path) -> dict[str, object]:
    first = next(way for way in answer.ways if way["key"] == answer.first)
    figures = ("samples_per_second", "cycles_per_sample", "fullest_tile", "tile", "bytes_per_tile")
    return {
        "fits": True,
        "way": _words(row, base),
        "levers": {**row["levers"]},
        **{name: row.get(name) for name in figures},
        "cycles_more": _ratio(row.get("cycles_per_sample"), first.get("cycles_per_sample")),
        "cost": _cost(row, first),
        "command": f"{row['command']} --out {shlex.quote(str(out / 'reports' / row['key']))}",
        "report": str(out / row["report"]) if row["report"] else "",
    }


def _words(row: PointRow, base: Mapping[str, str]) -> str:
    """Name the levers that differ from the program as it is."""
    named = [f"{n}={v}" for n, v in row["levers"].items() if base.get(n) != v]
    return ", ".join(named) or AS_IT_IS


def _ratio(value: float | None, first: float | None) -> float | None:
    return value / first - 1 if value and first else None


def _cost(row: PointRow, first: PointRow) -> str:
    """Write what a way costs against the first that fits."""
    if row["key"] == first["key"]:
        return "the first that fits"
    ratio = _ratio(row.get("cycles_per_sample"), first.get("cycles_per_sample"))
    return "" if ratio is None else f"{100 * ratio:+.0f} % cycles"


def _miss(row: PointRow, answer: Answer, base: Mapping[str, str]) -> dict[str, object]:
    """Return the nearest miss: by how much, where, what is live there, what each lever did."""
    names = ("over", "tile", "fullest_tile", "bytes_per_tile", "tiles_over", "step", "step_name",
             "live", "command")  # fmt: skip
    why = [
        {"way": _words(trial, base), "over": trial.get("over"), "error": trial.get("error") or "",
         **{name: trial.get(name) for name in PARTS}}
        for trial in answer.tried
    ]  # fmt: skip
    fills = {name: row.get(name) for name in PARTS}
    return {"fits": False, "way": _words(row, base), **{n: row.get(n) for n in names},
            "fills": fills, "reason": reason(row, answer.tried[0]), "why": why}  # fmt: skip


def reason(near: PointRow, first: PointRow) -> str:
    """Return why nothing helps: what takes most of the fullest tile, and what became of it."""
    if near.get("tile") is None or near.get("tile_code") is None:
        return f"the smallest plan of {near['step_name']} takes more than a tile has"
    capacity = int(near["bytes_per_tile"])
    fixed = int(near["tile_code"]) + int(near["tile_always_live"])
    if fixed > capacity:
        more = f"{counted(fixed - capacity, 'byte')} more than a tile has"
        return f"always-live data and code alone take {more}, whatever else is live"
    part = max(PARTS, key=lambda name: _bytes(near, name))
    fell = ""
    if first is not near and first.get(part) is not None:
        change = _bytes(near, part) - _bytes(first, part)
        fell = f", {change:+,} against {AS_IT_IS}"
    return f"most of it is {PARTS[part]}: {_bytes(near, part):,} bytes{fell}"


def _bytes(row: PointRow, part: str) -> int:
    """Return one of PARTS of the fullest tile; 0 where it is not recorded."""
    value = row.get(part)
    return int(value) if isinstance(value, int | float) else 0


def _write(
    ways: list[dict[str, object]], answer: Answer, base: Mapping[str, str], out: Path
) -> None:
    if not ways:
        _write_miss(answer, base)
        return
    rows = [[way[name] for name in COLUMNS] for way in ways]
    write_rows(Rows(COLUMNS, rows, len(rows)))
    for way in ways:  # each on a line of its own, so that it can be copied
        click.echo(printable(str(way["command"])))
        click.echo(printable(f"  report: {way['report']}"))
    tried = counted(len(answer.tried), "configuration")
    click.echo(printable(f"{tried} simulated; all are in {out}"))


def _write_miss(answer: Answer, base: Mapping[str, str]) -> None:
    near = answer.nearest
    if near is None:
        errors = [row.get("error") for row in answer.tried if row.get("error")]
        click.echo(printable(f"no figures: {errors[0] if errors else 'nothing was run'}"))
        return
    planned = near.get("tile") is not None
    tile = f"tile {near['tile']} lacks" if planned else "each tile lacks at least"
    step = f"step {near.get('step')} ({near.get('step_name')})" if planned else near["step_name"]
    facts = [
        ("nothing fits", f"nearest is {_words(near, base)}: {tile} {int(near['over']):,} bytes of"
         f" {units.size(near['bytes_per_tile'])}, most at {step}"),
        ("live there", str(near.get("live"))),
        *[("on the tile", _parts(near))][: planned],
        ("why", reason(near, answer.tried[0])),
    ]  # fmt: skip
    if len({row["levers"].get("ipus") for row in answer.tried}) == 1:
        facts.append(("not tried", f"more IPUs than {base['ipus']}; add --ipus {base['ipus']}..4"))
    for line in labelled(((f"{label}:", printable(text)) for label, text in facts), LABEL):
        click.echo(line)
    click.echo("what each lever leaves lacking:")
    rows = [(_words(row, base), _lacking(row)) for row in answer.tried]
    write_rows(Rows(("way", "lacks"), rows, len(rows)), limit=0)


def _parts(row: PointRow) -> str:
    """List what fills the fullest tile, the most first."""
    parts = sorted(((_bytes(row, name), PARTS[name]) for name in PARTS), reverse=True)
    return "; ".join(f"{size:,} bytes of {name}" for size, name in parts)


def _lacking(row: PointRow) -> str:
    """Write what a way leaves lacking, or why it has no figures."""
    if row.get("error") or row.get("over") is None:
        return str(row.get("error") or "no figures")
    least = "" if row.get("tile") is not None else "at least "
    return f"{least}{int(row['over']):,} bytes"


COMMAND = Declaration(
    command=fit,
    order=150,
    usage={
        "`tilescope fit MODEL\\|PROGRAM`": (
            "The least to give up for it to fit, each way simulated"
            " ([docs/explore.md](docs/explore.md))"
        ),
    },
    calls=(
        "fit missing.onnx",
        "fit idle.py --ipus 4..1",
        "fit idle.py --target mk3",
    ),
    reports=(),
)
