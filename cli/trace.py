"""`tilescope trace`: what the host did, by thread and by label, and the same for other viewers."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cli.faults import Command, Group
from cli.output import (
    OBJECT,
    counted,
    format_option,
    limit_option,
    of_frame,
    printable,
    write,
    write_bytes,
    write_object,
    write_result,
    write_rows_object,
)
from cli.source import open_trace
from pva import units
from pva.errors import OverwriteError, PvaError, nearest

if TYPE_CHECKING:
    from pva.trace import Trace

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
"""
SHOW_EXAMPLES = """
\b
Examples:
  tilescope trace show run/                                 threads, then labels
  tilescope trace show run.pvti --only labels --limit 0     every label
  tilescope trace show run.pvti --only threads --format json
"""
CONVERT_EXAMPLES = """
\b
Examples:
  tilescope trace convert run.pvti -o run.json         Trace Event JSON, for chrome://tracing
  tilescope trace convert run/ -o run.pftrace          for ui.perfetto.dev
  tilescope trace convert run.pvti --to chrome -o - | gzip > run.json.gz
"""
TABLES = ("threads", "labels")
SUFFIXES = {".json": "chrome", ".pftrace": "perfetto", ".perfetto-trace": "perfetto"}
_FILE = click.argument("file", metavar="FILE", type=click.Path())


@click.group(cls=Group, epilog=EXAMPLES, no_args_is_help=True)
def trace() -> None:
    """Look into a host trace (.pvti), or convert it for another viewer."""


@trace.command("info", cls=Command, epilog=INFO_EXAMPLES)
@_FILE
@click.option("--json", "form", flag_value=OBJECT, help="Write one JSON object.")
def info(file: str, form: str | None) -> None:
    """Tell what a trace holds, how long it is and whether it was closed.

    FILE is a .pvti file, or a report directory that holds one.
    """
    write_trace_info(open_trace(file), file, form)


def write_trace_info(opened: Trace, of: str, form: str | None) -> None:
    """Write what a trace holds, as lines or as one object."""
    facts = trace_facts(opened)
    if form == OBJECT:
        write_object("trace info", of, **facts)
        return
    lines = {
        "trace": headline(opened),
        "began": facts["began"],
        "processes": ", ".join(f"{p['name']} ({p['pid']})" for p in facts["processes"]),
        "channels": ", ".join(facts["channels"]),
        "beside": f"{counted(facts['instants'], 'instant event')},"
        f" {counted(len(facts['series']), 'series', 'series')},"
        f" {counted(len(facts['heatmaps']), 'heatmap')}",
        "problems": "; ".join(opened.problems) or "none",
    }
    write(f"{name:<12}{printable(text)}" for name, text in lines.items())


def trace_facts(opened: Trace) -> dict[str, Any]:
    """Give what a trace holds, for JSON."""
    from datetime import UTC, datetime

    began = datetime.fromtimestamp(opened.anchor.wall_ns // 10**9, UTC)
    return {
        "path": str(opened.path),
        "finished": opened.is_finished,
        "duration_ns": opened.duration_ns,
        "began": began.isoformat().replace("+00:00", "Z"),
        "events": sum(len(thread.columns) for thread in opened.threads),
        "threads": len(opened.threads),
        "processes": [{"pid": p.pid, "name": p.name} for p in opened.processes],
        "channels": list(opened.channels),
        "labels": len(opened.labels),
        "instants": len(opened.instants),
        "series": [f"{series.graph}: {series.name}" for series in opened.series],
        "heatmaps": [heatmap.name for heatmap in opened.heatmaps],
        "problems": list(opened.problems),
    }


@trace.command("show", cls=Command, epilog=SHOW_EXAMPLES)
@_FILE
@click.option("--only", type=click.Choice(TABLES), help="One of the two tables.")
@format_option
@limit_option
def show(file: str, only: str | None, form: str, limit: int | None) -> None:
    """Print the threads of a trace, and where its time went by label."""
    from pva.analysis import host

    if form in ("json", "csv") and only is None:
        raise click.UsageError(f"--format {form} writes one table; add --only threads or labels")
    opened = open_trace(file)
    analyses = {"threads": host.threads, "labels": host.label_statistics}
    if form == OBJECT:
        frames = {name: analyses[name](opened) for name in (TABLES if only is None else [only])}
        if only is not None:
            write_rows_object("trace show", file, of_frame(frames[only]), limit, name=only)
            return
        shown = {name: frame.head(limit) if limit else frame for name, frame in frames.items()}
        rows = {name: frame.to_dict("records") for name, frame in shown.items()}
        write_object("trace show", file, **rows)
        return
    if form == "table":
        write([headline(opened), *opened.problems])
    for name in TABLES if only is None else [only]:
        if form == "table":
            write(["", f"{name.capitalize()}:"])
        write_result(analyses[name](opened), form, limit)


def headline(opened: Trace) -> str:
    """Say in a line how much a trace holds, and whether it was closed."""
    events = sum(len(thread.columns) for thread in opened.threads)
    state = "" if opened.is_finished else "; not closed: still growing, or its program was killed"
    return (
        f"{opened.path}: {counted(events, 'event')} on {counted(len(opened.threads), 'thread')}"
        f" in {units.duration(opened.duration_ns / 1e9)}{state}"
    )


@trace.command("convert", cls=Command, epilog=CONVERT_EXAMPLES)
@_FILE
@click.option("-o", "--out", required=True, metavar="OUT", help="Where to; - is stdout.")
@click.option("--to", "form", help="chrome or perfetto.  [default: by the suffix of OUT]")
@click.option("--force", is_flag=True, help="Replace OUT when it is there.")
def convert(file: str, out: str, form: str | None, force: bool) -> None:
    """Write a trace for chrome://tracing (JSON) or for Perfetto.

    Perfetto's format needs the package perfetto: pip install 'tilescope[perfetto]'.
    """
    form = _form(out, form)
    target = Path(out)
    if out != "-" and target.exists() and not force:
        raise OverwriteError(target, "already there", "give another name, or --force to replace it")
    data = converted(open_trace(file), form)
    if out == "-":
        if form == "perfetto" and sys.stdout.isatty():
            raise click.UsageError("Perfetto's format is not for a terminal; give -o FILE")
        write_bytes(data)
        return
    from pva.formats.files import replaced

    replaced(target, data, "a trace")
    click.echo(f"{target}: {units.size(len(data))}", err=True)


def _form(out: str, form: str | None) -> str:
    known = sorted(set(SUFFIXES.values()))
    if form is None:
        form = SUFFIXES.get(Path(out).suffix.lower())
        if form is None:
            raise click.UsageError(
                f"-o {out}: no form has this suffix; add --to chrome or perfetto"
            )
    if form not in known:
        raise PvaError(f"--to {form}", "no such form", nearest(form, known))
    return form


def converted(opened: Trace, form: str) -> bytes:
    """Give a trace in another form; raises MissingPackageError."""
    from pva.formats import chrome_trace, perfetto_trace

    stream = io.BytesIO()
    (chrome_trace if form == "chrome" else perfetto_trace).write(opened, stream)
    return stream.getvalue()
