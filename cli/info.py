"""`tilescope info PATH`: what a file or directory is and what is in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cli.descriptions.popef_info import is_popef, write_popef_info
from cli.descriptions.run_facts import run_facts, run_object
from cli.descriptions.run_info import is_run, write_run_info
from cli.shared.declared import Declaration
from cli.shared.faults import Command
from cli.shared.fitting import labelled
from cli.shared.output import (
    OBJECT,
    Rows,
    counted,
    format_option,
    limit_option,
    printable,
    write,
    write_object,
    write_rows,
    write_rows_object,
)
from cli.shared.source import is_trace, name_stdin, open_report, open_trace, source
from cli.trace import write_trace_info
from pva import units

if TYPE_CHECKING:
    from pva.report import Report

EXAMPLES = """
\b
Examples:
  tilescope info run/                 does it fit, how long did it take, what was recorded
  tilescope info run/ --tables        every table and array, and the option that records it
  tilescope info run.pvti             a host trace
  tilescope info many/                a run of poprun: who did what, who took longest
  tilescope info net.popef            a compiled model: what it takes and gives, does it fit
"""
_LABEL_WIDTH = 12
EXECUTION = "execution"
VERDICT = ("memory", "run", "items", "steady", "latency", "set-up", EXECUTION)
_NAMED = 3  # of the tables that a part lacks

# What the tables and arrays of an engine option are called together.
PARTS = {
    "autoReport.outputGraphProfile": "graph profile",
    "autoReport.outputLoweredVars": "places of variables",
    "autoReport.outputExecutionProfile": "execution profile",
    "autoReport.outputDebugInfo": "debug information",
    "debug.instrumentCompute": "measured compute cycles",
    "debug.instrumentExternalExchange": "measured exchange cycles",
    "profiler.blocks.filter": "blocks",
    "compileIPUCode": "code",
}


@click.command(cls=Command, epilog=EXAMPLES)
@click.argument("path", metavar="PATH", type=click.Path())
@click.option("--tables", is_flag=True, help="List every table and array that a report may hold.")
@click.option("--all-runs", is_flag=True, help="Count the runs of set-up with the others.")
@format_option
@limit_option
def info(path: str, tables: bool, all_runs: bool, form: str, limit: int | None) -> None:
    """Print what a file or directory is, whether it fits, how long it took, what was recorded.

    PATH is a report directory, a profile in any encoding, a host trace in any format, the directory
    of a run that poprun started (its instances, which took longest, whether all compiled one
    graph), or a PopEF file (its anchors, what takes its space, which machines it fits). Figures of
    the execution are those of the steady state: without the runs of programs that ran once while
    another one ran more often, such as those that load weights.
    """
    place = source(path)
    if is_run(Path(place)):
        write_run_info(place, form, limit)
        return
    if is_popef(Path(place)):
        write_popef_info(place, form, limit)
        return
    if is_trace(Path(place)):
        write_trace_info(open_trace(place), path, OBJECT if form == OBJECT else None)
        return
    opened = open_report(place)
    if not all_runs and not tables:
        from pva.analysis.execution.steady import steady_state

        opened = steady_state(opened)
    if tables and form == OBJECT:
        write_rows_object("info", path, _tables(opened), limit)
    elif tables:
        write_rows(_tables(opened), form, 0 if limit is None else limit)
    elif form == OBJECT:
        write_object("info", path, **_object(opened))
    elif form == "table":
        write(labelled(((label, printable(text)) for label, text in _facts(opened)), _LABEL_WIDTH))
    else:
        facts = list(_facts(opened))
        write_rows(Rows(("fact", "text"), facts, len(facts)), form, limit)


def _object(report: Report) -> dict[str, object]:
    recorded, missing = _parts(report)
    return {
        "kind": _kind(report),
        "files": [{"name": name, "bytes": size} for name, size in _files(report)],
        "facts": dict(_facts(report)),
        "run": run_object(report),
        "recorded": recorded,
        "missing": missing,
    }


def _kind(report: Report) -> str:
    from pva.formats import registry

    if report.path.is_dir():
        return "a report directory"
    return registry.detect(report.path).what


def _files(report: Report) -> list[tuple[str, int]]:
    """Name the files of a report with their bytes."""
    return [
        (file.name, sum(f.stat().st_size for f in (file.iterdir() if file.is_dir() else [file])))
        for file in report.files.values()
    ]


def _parts(report: Report) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Return the names of tables and arrays that are there, and that are not, by option."""
    from pva import schema
    from pva.analysis.memory.totals import counts_code

    parts: tuple[dict[str, list[str]], dict[str, list[str]]] = ({}, {})
    everything: tuple[schema.Table | schema.Array, ...] = (*schema.TABLES, *schema.ARRAYS)
    is_whole, _ = report.whole
    for declared in everything:
        side = parts[0 if is_whole.dataset.has(declared.name) else 1]
        side.setdefault(declared.option, []).append(declared.name)
    if not counts_code(report):
        parts[1]["compileIPUCode"] = ["code"]
    return parts


def _recorded(report: Report) -> str:
    recorded, missing = _parts(report)
    parts = [
        f"{PARTS.get(option, option)}{' in part' if option in missing else ''}"
        for option in recorded
    ]
    traces = ["host trace"] if report.trace_path else []
    return ", ".join([*parts, *traces]) or "nothing"


def _missing(report: Report) -> str:
    """Return the option that records a missing part; of an incomplete part, what lacks."""
    recorded, missing = _parts(report)
    texts = []
    for option, names in missing.items():
        names_text = ", ".join(names[:_NAMED]) + (
            f" and {len(names) - _NAMED} more" * (len(names) > _NAMED)
        )
        part = names_text if option in recorded else PARTS.get(option, option)
        texts.append(f"{part} ({option})")
    return "; ".join(texts) or "nothing"


def _tables(report: Report) -> Rows:
    """List tables and arrays: rows, what they mean, who records them."""
    from pva import schema

    data = report.dataset
    rows: list[tuple[str, str, str, str]] = [
        (table.name, counted(data.length(table.name), "row"), table.meaning, table.option)
        for table in schema.TABLES
        if data.has(table.name)
    ]
    rows += [
        (array.name, "x".join(map(str, data.array(array.name).shape)), array.meaning, array.option)
        for array in schema.ARRAYS
        if data.has(array.name)
    ]
    everything: tuple[schema.Table | schema.Array, ...] = (*schema.TABLES, *schema.ARRAYS)
    rows += [
        (declared.name, "not recorded", declared.meaning, declared.option)
        for declared in everything
        if not data.has(declared.name)
    ]
    return Rows(("name", "size", "meaning", "recorded_by"), rows, len(rows))


def _facts(report: Report) -> Iterator[tuple[str, str]]:
    yield "report", name_stdin(f"{report.path}: {_kind(report)}")
    yield "files", ", ".join(f"{name} {units.size(size)}" for name, size in _files(report))
    for label, needs, words in _FACTS:
        absent = [name for name in needs if not report.dataset.has(name)]
        if label == EXECUTION:
            yield from run_facts(report)
        yield label, _absent(report, absent) if absent else words(report)
    yield from _between_hosts(report)
    yield "recorded", _recorded(report)
    yield "missing", _missing(report)


def verdict(report: Report) -> Iterator[tuple[str, str]]:
    """Return whether the program fits and how long it took, as far as the report holds it."""
    return ((label, text) for label, text in _facts(report) if label in VERDICT)


def _absent(report: Report, absent: list[str]) -> str:
    return f"no {', '.join(absent)} in this report; {report.dataset.why_absent(absent[0])}"


def _written(report: Report) -> str:
    created = report.dataset.value("report", "created")
    return f"by version {report.poplarVersion.string}, {created}"


def _machine(report: Report) -> str:
    from pva.analysis.machine import target

    machine = target(report)
    differences = f"; {machine.differences}" if machine.differences else ""
    names = ", ".join(filter(None, (machine.machine, machine.architecture)))
    replicas = machine.num_replicas
    return (
        f"{machine.type} {names}: {counted(machine.num_ipus, 'IPU')}"
        f" x {counted(machine.tiles_per_ipu, 'tile')} x {units.size(machine.bytes_per_tile)}"
        f" at {units.frequency(machine.clock_frequency)}"
        + (f", {replicas:,} replicas of which one is shown" if replicas > 1 else "")
        + differences
    )


def _between_hosts(report: Report) -> Iterator[tuple[str, str]]:
    """Write what the cycles of links between hosts rest on; nothing where there are none."""
    from pva.analysis.whole_report.provenance import figure_quality

    for item, quality, reason in figure_quality(report):
        if item == "external_exchange_cycles" and "between hosts" in reason:
            yield "links", f"{quality}: {reason}"


def _graph(report: Report) -> str:
    from pva.analysis.whole_report.overview import graph_size

    size = graph_size(report)
    return (
        f"{counted(size.vertices, 'vertex', 'vertices')}, {counted(size.edges, 'edge')},"
        f" {counted(size.variables, 'variable')}, {counted(size.compute_sets, 'compute set')}"
    )


def _memory(report: Report) -> str:
    from pva.analysis.memory.totals import COUNT_CODE, category_label, memory_overview

    overview = memory_overview(report)
    over = overview.tiles_out_of_memory
    fits = f"does not fit, {counted(over, 'tile')} out of memory" if over else "fits"
    excess = units.size(overview.fullest_bytes - overview.bytes_per_tile)
    much = f"{units.share(overview.fullest_share)}{f', {excess} too much' if over else ''}"
    fits += "" if overview.code_counted else ", without code"
    how = "" if overview.code_counted else f"; to count code, {COUNT_CODE}"
    return (
        f"{fits}: tile {overview.fullest_tile} needs {units.size(overview.fullest_bytes)}"
        f" ({much}); most is"
        f" {category_label(overview.largest_category)}"
        f" ({units.size(overview.largest_category_bytes)} on all tiles){how}"
    )


def _liveness(report: Report) -> str:
    from pva.analysis.memory.liveness import liveness_overview

    overview = liveness_overview(report)
    where = overview.peak_name or overview.peak_type
    return (
        f"{units.size(overview.always_live)} always live,"
        f" at most {units.size(overview.max_live)}, at step {overview.peak_step} ({where})"
    )


def _runs_alone(report: Report) -> str:
    """Return how long the runs took when none was recorded step by step."""
    cycles = report.dataset.column("runs", "cycles")
    took = int(cycles[cycles >= 0].sum())
    runs = counted(len(cycles), "run")
    return f"{took:,} cycles in {runs}" if took else runs


def _execution(report: Report) -> str:
    from pva.analysis.execution.totals import execution_overview

    if not (report.dataset.has("tile_cycles") and report.dataset.has("steps")):
        return (
            f"{_runs_alone(report)}; no steps in this report; {report.dataset.why_absent('steps')}"
        )
    overview = execution_overview(report)
    if not overview.runs:
        return "no run has ended"
    runs, steps = counted(overview.runs, "run"), counted(overview.steps, "step")
    shares = [
        f"{units.share(share)} {activity}" for activity, share in overview.time_shares.items()
    ]
    return (
        f"{overview.cycles:,} cycles ({units.duration(overview.seconds)}): {', '.join(shares)};"
        f" on average {units.share(overview.compute_share)} of the tiles compute;"
        f" {runs}, {overview.recorded_runs:,} recorded step by step ({steps})"
    )


_FACTS: tuple[tuple[str, tuple[str, ...], Callable[..., str]], ...] = (
    ("written", ("report",), _written),
    ("machine", ("target",), _machine),
    ("graph", ("graph",), _graph),
    ("memory", ("target", "memory_by_tile", "memory_by_category"), _memory),
    ("liveness", ("always_live_bytes", "liveness_steps", "variables", "programs"), _liveness),
    (EXECUTION, ("target", "execution", "runs"), _execution),
)


COMMAND = Declaration(
    command=info,
    order=30,
    usage={
        "`tilescope info PATH`": (
            "What is this file? Does it fit, where did the cycles go, what was not recorded?"
        ),
        "`tilescope info FILE.popef`, `popef_dump FILE.popef`": (
            "What does a compiled model take and give, what takes its space, which machine"
            " does it fit ([docs/popef-format.md](docs/popef-format.md))?"
        ),
    },
    calls=(
        "info run",
        "info graph.json",
        "info host.pvti",
        "info run --tables --limit 4",
    ),
    reports=("info IN",),
)
