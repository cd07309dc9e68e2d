"""`tilescope trace`: what the host did, by thread and by label, and the same for other viewers."""

from __future__ import annotations

import gzip
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TypedDict, TypeVar, cast

import click

from cli.shared.declared import Declaration
from cli.shared.faults import Command, Group
from cli.shared.fitting import labelled
from cli.shared.output import (
    OBJECT,
    counted,
    ended_by_reader,
    format_option,
    limit_option,
    of_frame,
    printable,
    write,
    write_object,
    write_result,
    write_rows_object,
)
from cli.shared.source import name_stdin, open_trace
from pva import units
from pva.errors import OverwriteError, PvaError, nearest
from pva.lazy import pandas as pd

if TYPE_CHECKING:
    from pva.trace import Align, Trace

T = TypeVar("T")

EXAMPLES = """
\b
Examples:
  tilescope trace info run/                            how long, how many events, is it whole?
  tilescope trace show run/                            where did the host's time go?
  tilescope trace convert run.pvti -o run.json         for chrome://tracing
"""
INFO_EXAMPLES = """
\b
Examples:
  tilescope trace info run/             the trace of a report directory
  tilescope trace info run.pvti --json
  tilescope trace info profile.json.gz  what PyTorch's profiler or viztracer wrote
  tilescope trace info traces/          a folder of these: each file, and all together
"""
SHOW_EXAMPLES = """
\b
Examples:
  tilescope trace show run/                                 threads, then labels
  tilescope trace show run.pvti --only labels --limit 0     every label
  tilescope trace show run.pvti --only series --format json
  tilescope trace show rank0.pvti rank1.pvti --only processes
"""
CONVERT_EXAMPLES = """
\b
Examples:
  tilescope trace convert run.pvti -o run.json         Trace Event JSON, for chrome://tracing
  tilescope trace convert run.pvti -o run.json.gz      the same, packed by gzip
  tilescope trace convert run/ -o run.pftrace          for ui.perfetto.dev
  tilescope trace convert rank*.pvti -o all.pftrace    several files, by their wall clocks
  tilescope trace convert run/ -o run.tar              all instances of a run, for Perfetto 58
"""
TABLES = ("threads", "labels")
MORE_TABLES = ("processes", "channels", "events", "instants", "flows", "series", "heatmaps")
SUFFIXES = {".json": "chrome", ".pftrace": "perfetto", ".perfetto-trace": "perfetto"}
PACKED, ARCHIVE = ".gz", ".tar"
ALIGN = "How several files lie: by the wall clock of each, or all from one start."
_FILES = click.argument("files", metavar="FILE...", type=click.Path(), nargs=-1, required=True)
_ALIGN = click.option(
    "--align", type=click.Choice(("wall", "start")), default="wall", show_default=True, help=ALIGN
)


@click.group(cls=Group, epilog=EXAMPLES, no_args_is_help=True)
def trace() -> None:
    """Look into a host trace (.pvti, Chrome trace JSON), or convert it for another viewer."""


@trace.command("info", cls=Command, epilog=INFO_EXAMPLES)
@_FILES
@_ALIGN
@click.option("--json", "form", flag_value=OBJECT, help="Write one JSON object.")
def info(files: tuple[str, ...], align: Align, form: str | None) -> None:
    """Print what a trace contains, how long it is and whether it was closed.

    FILE is a .pvti file, Chrome trace JSON (packed by gzip or not, as PyTorch and viztracer write
    it), or a directory of one .pvti or of Chrome traces; - reads one from stdin. Of several files
    each has its line, and all together are one trace.
    """
    write_trace_info(open_trace(*files, align=align), _of(files), form)


def write_trace_info(opened: Trace, of: str | list[str], form: str | None) -> None:
    """Write what a trace holds, as lines or as one object."""
    opened.verify()
    facts = trace_facts(opened)
    paths = opened.paths if len(opened.paths) > 1 else ()
    if form == OBJECT:
        write_object("trace info", of, **facts, files=[_of_file(path, _size) for path in paths])
        return
    write(f"{'file':<12}{_of_file(path, headline)}" for path in paths)
    lines = {
        "trace": headline(opened),
        "began": facts["began"] or "not told",
        "processes": ", ".join(f"{p['name']} ({p['pid']})".strip() for p in facts["processes"]),
        "channels": ", ".join(facts["channels"]),
        "beside": f"{counted(facts['instants'], 'instant event')},"
        f" {counted(len(facts['series']), 'series', 'series')},"
        f" {counted(len(facts['heatmaps']), 'heatmap')}",
        "problems": "; ".join(opened.problems) or "none",
    }
    write(labelled(((name, printable(text)) for name, text in lines.items()), 12))


def _of_file(path: Path, make: Callable[[Trace], T]) -> T:
    """Make something of one of several files; raises PvaError."""
    with closing(open_trace(str(path))) as opened:
        return make(opened)


class Size(TypedDict):
    """What the headline says of a trace."""

    path: str
    finished: bool
    duration_ns: int
    events: int
    threads: int


class Facts(Size):
    """What a trace holds."""

    began: str
    processes: list[dict[str, object]]
    channels: list[str]
    labels: int
    instants: int
    series: list[str]
    heatmaps: list[str]
    problems: list[str]


def _size(opened: Trace) -> Size:
    """Return what the headline says of a trace, for JSON."""
    return {
        "path": name_stdin(str(opened.path)),
        "finished": opened.is_finished,
        "duration_ns": opened.duration_ns,
        "events": sum(thread.count for thread in opened.threads),
        "threads": len(opened.threads),
    }


def trace_facts(opened: Trace) -> Facts:
    """Return what a trace holds, for JSON."""
    from datetime import UTC, datetime

    began = datetime.fromtimestamp(opened.anchor.wall_ns // 10**9, UTC)
    return {
        **_size(opened),
        "began": began.isoformat().replace("+00:00", "Z") if opened.anchor.wall_ns else "",
        "processes": [{"pid": p.pid, "name": p.name} for p in opened.processes],
        "channels": list(opened.channels),
        "labels": len(opened.labels),
        "instants": len(opened.instants),
        "series": [f"{series.graph}: {series.name}" for series in opened.series],
        "heatmaps": [heatmap.name for heatmap in opened.heatmaps],
        "problems": list(opened.problems),
    }


@trace.command("show", cls=Command, epilog=SHOW_EXAMPLES)
@_FILES
@_ALIGN
@click.option("--only", type=click.Choice(TABLES + MORE_TABLES), help="One table.")
@format_option
@limit_option
def show(
    files: tuple[str, ...], align: Align, only: str | None, form: str, limit: int | None
) -> None:
    """Print the threads of a trace and where its time went by label, or any of its tables."""
    if form in ("json", "csv") and only is None:
        raise click.UsageError(f"--format {form} writes one table; add --only threads or labels")
    opened = open_trace(*files, align=align)
    if form == OBJECT and only is not None:
        rows = of_frame(_table(opened, only))
        write_rows_object("trace show", _of(files), rows, limit, name=only)
        return
    if form == OBJECT:
        frames = {name: _table(opened, name) for name in TABLES}
        shown = {name: frame.head(limit) if limit else frame for name, frame in frames.items()}
        records = {name: frame.to_dict("records") for name, frame in shown.items()}
        write_object("trace show", _of(files), **records)
        return
    if form == "table":
        opened.verify()
        write([headline(opened), *map(printable, opened.problems)])
    for name in TABLES if only is None else [only]:
        if form == "table":
            write(["", f"{name.capitalize()}:"])
        write_result(_table(opened, name), form, limit)


def _table(opened: Trace, name: str) -> pd.DataFrame:
    from pva.analysis.host import labels as host

    analyses = {"threads": host.threads, "labels": host.label_statistics}
    if name in analyses:
        return analyses[name](opened).frame()
    frame: pd.DataFrame = getattr(opened.frames, name)()
    return frame


def _of(files: tuple[str, ...]) -> str | list[str]:
    return files[0] if len(files) == 1 else list(files)


def headline(opened: Trace) -> str:
    """Return in a line how much a trace holds, and whether it was closed."""
    events = sum(thread.count for thread in opened.threads)
    state = "" if opened.is_finished else "; not closed: still growing, or its program was killed"
    size = f"{counted(events, 'event')} on {counted(len(opened.threads), 'thread')}"
    took = units.duration(opened.duration_ns / 1e9)
    return f"{printable(name_stdin(str(opened.path)))}: {size} in {took}{state}"


@trace.command("convert", cls=Command, epilog=CONVERT_EXAMPLES)
@_FILES
@_ALIGN
@click.option("-o", "--out", required=True, metavar="OUT", help="Where to; - is stdout.")
@click.option("--to", "form", help="chrome or perfetto.  [default: by the suffix of OUT]")
@click.option("--force", is_flag=True, help="Replace OUT when it is there.")
def convert(files: tuple[str, ...], align: Align, out: str, form: str | None, force: bool) -> None:
    """Write a trace for chrome://tracing (JSON) or for Perfetto.

    An OUT that ends in .gz is packed. One that ends in .tar has the traces of all instances of a
    run, each host a machine of its own, with a manifest for Perfetto 58 or later. Series are
    counters, and so is each bin of a heatmap. What a file has and cannot be shown is told on
    stderr. Perfetto's format needs the package perfetto: pip install 'tilescope[perfetto]'.
    """
    from pva.formats.traces.registry import write as written

    target = Path(out)
    if out != "-" and target.exists() and not force:
        raise OverwriteError(target, "already there", "give another name, or --force to replace it")
    if target.suffix.lower() == ARCHIVE:
        _convert_run(files, target)
        return
    form = _form(out, form)
    opened = open_trace(*files, align=align)
    for problem in opened.problems:
        click.echo(f"tilescope: {printable(name_stdin(f'{opened.path}: {problem}'))}", err=True)
    if out == "-":
        if form == "perfetto" and sys.stdout.isatty():
            raise click.UsageError("Perfetto's format is not for a terminal; give -o FILE")
        with ended_by_reader():
            written(opened, sys.stdout.buffer, form)
            sys.stdout.buffer.flush()
        return
    from pva.formats.files import replacing

    with replacing(target, "a trace") as stream:
        if target.suffix.lower() == PACKED:
            with gzip.GzipFile("", "wb", 6, stream, mtime=0) as packed:
                written(opened, cast("BinaryIO", packed), form)
        else:
            written(opened, stream, form)
    click.echo(f"{target}: {units.size(target.stat().st_size)}", err=True)


def _convert_run(files: tuple[str, ...], target: Path) -> None:
    """Write the traces of a run as one archive; raises PvaError."""
    from pva.formats.files import replacing
    from pva.many.perfetto_archive import write_archive
    from pva.many.run import openRun

    run = openRun(files[0] if len(files) == 1 else files)
    with replacing(target, "an archive of traces") as stream:
        left_out = write_archive(run, stream)
    for line in (*run.problems, *left_out):
        click.echo(f"tilescope: left out: {printable(line)}", err=True)
    click.echo(f"{target}: {units.size(target.stat().st_size)}", err=True)


def _form(out: str, form: str | None) -> str:
    suffixes = sorted(set(SUFFIXES.values()))
    if form is None:
        form = SUFFIXES.get(Path(out.lower().removesuffix(PACKED)).suffix)
        if form is None:
            raise click.UsageError(
                f"-o {out}: no form has this suffix; add --to chrome or perfetto"
            )
    if form not in suffixes:
        raise PvaError(f"--to {form}", "no such form", nearest(form, suffixes))
    return form


COMMAND = Declaration(
    command=trace,
    order=70,
    usage={
        "`tilescope trace info\\|show\\|convert FILE...`": (
            "What did the host do? From and to Chrome's format, to Perfetto's"
        ),
    },
    calls=(
        "trace info host.pvti",
        "trace show host.pvti",
        "trace convert host.pvti -o - --to chrome",
        "trace convert host.pvti -o host.json",
        "trace info run",
    ),
    reports=(),
    traces=(
        "trace info IN",
        "trace show IN",
        "trace convert IN -o OUT",
    ),
)
