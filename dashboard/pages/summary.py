"""Does it fit, how long does it take, what did it run on?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dash import Dash, dcc, html

from dashboard import address, components
from dashboard.address import Address
from dashboard.components import Element, card, facts, section
from dashboard.pages.provenance import trust_section
from dashboard.pages.targets import architecture_words, kind_words
from dashboard.pages.words import counted, execution_sentence, fit_sentence, fit_tone
from dashboard.store import REPORT_FILES, Report, Store
from pva import units
from pva.analysis.execution import execution_overview, runs
from pva.analysis.liveness import liveness_overview
from pva.analysis.memory import category_label, memory_overview
from pva.errors import NotRecordedError

PATH, TITLE = "/summary", "Summary"

FILE_MEANINGS = {
    "profile.pop": "graph and execution profile",
    "graph.json": "graph profile, as JSON",
    "graph.cbor": "graph profile, as CBOR",
    "execution.json": "execution profile, as JSON",
    "execution.cbor": "execution profile, as CBOR",
    "debug.cbor": "debug information",
    "framework.json": "framework",
    "app.json": "application",
}
ALWAYS_LISTED = ("profile.pop", "debug.cbor", "framework.json", "app.json")


def available(store: Store, report: str) -> bool:
    """Tell whether there is a report beside the trace."""
    return bool(store.report(report))


def layout(store: Store, chosen: Address) -> Element:
    """Lay the page out; raises PvaError."""
    if not store.has_report(chosen.report) and store.trace(chosen.report):
        return _trace_alone(chosen)
    report = store.report(chosen.report)
    first = [*_if_recorded("target", _target, report), _options(report),
             *_if_recorded("report", _written, report)]  # fmt: skip
    second = [_files(store, chosen.report), *_if_recorded("graph", _graph, report),
              *_documents(report)]  # fmt: skip
    return html.Div(
        [
            components.title("Does it fit, and how long does it take?"),
            _fit(report),
            components.cards(*_memory_cards(report), *_execution_cards(report), name="cards four"),
            html.Div([html.Div(first), html.Div(second)], className="columns"),
            *trust_section(report),
        ]
    )


def _trace_alone(chosen: Address) -> Element:
    """Point to the page of the host trace, when there is nothing else."""
    link = address.write(Address("/trace", chosen.report))
    return html.Div(
        [
            components.message("This is a host trace without a report."),
            html.P(dcc.Link("Open the host trace", href=link, className="button")),
        ],
        className="alone",
    )


def register(app: Dash, store: Store) -> None:
    """Nothing on this page changes by itself."""


def _if_recorded(table: str, make: Callable[[Report], Element], report: Report) -> list[Element]:
    return [make(report)] if report.dataset.has(table) else []


def _fit(report: Report) -> Element:
    """Answer the question of the page, or say why the report cannot."""
    try:
        memory = memory_overview(report)
    except NotRecordedError as problem:
        return components.headline(f"Memory not known: {problem.wanted}.", more=_time(report))
    return components.headline(fit_sentence(memory), fit_tone(memory), more=_time(report))


def _time(report: Report) -> str:
    try:
        return execution_sentence(execution_overview(report))
    except NotRecordedError as problem:
        return f"{_runs_alone(report)}Execution not known: {problem.wanted}."


def _runs_alone(report: Report) -> str:
    """Say how long the runs took when their steps were not recorded."""
    if not (report.dataset.has("runs") and report.dataset.has("target")):
        return ""
    known = runs(report).dropna(subset="device_microseconds")
    if known.empty:
        return ""
    time = units.duration(float(known["device_microseconds"].sum()) / 1e6)
    cycles = units.count(int(known["cycles"].sum()))
    return f"{counted(len(known), 'run')} took {cycles} cycles ({time}). "


def _memory_cards(report: Report) -> list[Element]:
    """Show how full the tiles are; that it is not known when memory was not recorded."""
    try:
        memory, live = memory_overview(report), liveness_overview(report)
    except NotRecordedError as problem:
        return [card("Memory", "not known", problem.wanted)]
    replicated = int(report.dataset.value("target", "num_replicas")) > 1
    every = "All tiles of a replica" if replicated else "All tiles"
    return [
        card("Fullest tile", units.size(memory.fullest_bytes),
             f"tile {memory.fullest_tile:,}, {units.share(memory.fullest_share)} of its memory"),
        card(every, units.size(memory.total_including_gaps),
             f"{units.size(memory.total)} without gaps"),
        card("Most of it", category_label(memory.largest_category),
             units.size(memory.largest_category_bytes)),
        card("Live at the peak", units.size(live.max_live),
             f"{units.size(live.always_live)} of it always"),
    ]  # fmt: skip


def _execution_cards(report: Report) -> list[Element]:
    """Show how long the runs took; that it is not known when no run was recorded."""
    try:
        spent = execution_overview(report)
    except NotRecordedError as problem:
        return [card("Execution", "not known", problem.wanted)]
    if not spent.runs:
        return [card("Execution", "no run", "has ended")]
    recorded = f"{spent.recorded_runs:,} of {spent.runs:,} runs recorded"
    return [
        card("Recorded runs", units.duration(spent.seconds), f"{units.count(spent.cycles)} cycles"),
        card("Executed steps", units.count(spent.steps), recorded),
        card("Compute", units.share(spent.time_shares["compute"]), "of the time"),
        card("Tiles computing", units.share(spent.compute_share), "on average"),
    ]


def _target(report: Report) -> Element:
    data = report.dataset
    numbers = {
        name: int(data.value("target", name))
        for name in ("num_ipus", "tiles_per_ipu", "num_tiles", "bytes_per_tile", "total_memory")
    }
    replicas = max(int(data.value("target", "num_replicas")), 1)
    return section(
        "Target",
        facts(
            [
                ("Type", kind_words(report)),
                ("Architecture", architecture_words(report)),
                ("IPUs", units.count(numbers["num_ipus"])),
                *([("Replicas", units.count(replicas))] if replicas > 1 else []),
                ("Tiles per IPU", units.count(numbers["tiles_per_ipu"])),
                ("Tiles", units.count(numbers["num_tiles"])),
                ("Memory per tile", units.size(numbers["bytes_per_tile"])),
                ("Memory", units.size(numbers["total_memory"])),
                ("Clock", units.frequency(float(data.value("target", "clock_frequency")))),
            ]
        ),
    )


def _graph(report: Report) -> Element:
    data = report.dataset
    words = {"num_compute_sets": "Compute sets", "num_vertices": "Vertices",
             "num_edges": "Edges", "num_vars": "Variables on tiles"}  # fmt: skip
    pairs = [(label, units.count(int(data.value("graph", name)))) for name, label in words.items()]
    return section("Graph", facts(pairs))


def _files(store: Store, key: str) -> Element:
    """List the files of the report, those that are not there in grey."""
    path = store.path(key)
    present = {name for name, _, _ in store.stamp(key)}
    names = [name for name in REPORT_FILES if name in present or name in ALWAYS_LISTED]
    names += sorted(present - set(names))
    items = [
        html.Li(
            [html.Span(name, className="file"), html.Span(FILE_MEANINGS.get(name, "host trace"))],
            className="present" if name in present or path.is_file() else "absent",
        )
        for name in (names if path.is_dir() else [path.name])
    ]
    return section("Files of the report", html.Ul(items, className="files"), note=path.name)


def _written(report: Report) -> Element:
    """Show version and creation."""
    data = report.dataset
    version = str(data.value("report", "version"))
    package = str(data.value("report", "package_hash"))
    written = [
        ("Version", f"{version} ({package})" if package else version),
        ("Compiled", str(data.value("report", "created")).replace("T", " ").replace("Z", " UTC")),
    ]
    return section("Written by", facts(written))


def _documents(report: Report) -> list[Element]:
    """Show what application and framework wrote down."""
    parts = []
    for heading, document in (("Application", report.app), ("Framework", report.framework)):
        pairs = flat_pairs(document)
        if pairs:
            parts.append(section(heading, facts(pairs)))
    return parts


def flat_pairs(document: Any, prefix: str = "") -> list[tuple[str, str]]:
    """Write a JSON document as names, joined by dots, and values."""
    if isinstance(document, dict):
        nested = (flat_pairs(value, f"{prefix}{name}.") for name, value in document.items())
        return [pair for pairs in nested for pair in pairs]
    if document is None:
        return []
    return [(prefix.rstrip("."), str(document))]


def _options(report: Report) -> Element:
    data = report.dataset
    if not data.length("engine_options"):
        return section("Engine options", components.message("No options were recorded."))
    names, values = (data.column("engine_options", name) for name in ("name", "value"))
    pairs = sorted(zip(map(str, names), map(str, values), strict=True))
    return section("Engine options", facts(pairs), note=counted(len(pairs), "option"))
