"""Does it fit, how long does it take, what did it run on?"""

from __future__ import annotations

from collections.abc import Callable

from dash import Dash, dcc, html

from dashboard import address, controls, downloads, view
from dashboard.address import Address
from dashboard.declared import ALL_TABLES, Declaration
from dashboard.elements import components
from dashboard.elements.components import Element, Frame, card, facts, section
from dashboard.pages.documents import dotted, flat_pairs, leaves, tree
from dashboard.pages.headlines import (
    code_sentence,
    counted,
    execution_sentence,
    fit_sentence,
    fit_tone,
    other_runs_sentence,
)
from dashboard.pages.provenance import trust_section
from dashboard.pages.summary.run_cards import run_cards
from dashboard.pages.targets import architecture_words, kind_words
from dashboard.sources import REPORT_FILES
from dashboard.store import Report, Store
from pva import units
from pva.analysis.execution.totals import execution_overview, total_of_runs
from pva.analysis.machine import Target, replica_count, target
from pva.analysis.memory.liveness import liveness_overview
from pva.analysis.memory.totals import category_label, memory_overview
from pva.analysis.whole_report.overview import graph_size, recorded_parts, report_writer
from pva.errors import NotRecordedError
from pva.lazy import pandas as pd
from pva.plain_file import as_text
from pva.plot.theme import Theme
from pva.summary import profile_summary

PATH, TITLE = "/summary", "Summary"
QUESTION = "Does it fit, and how long does it take?"

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
TABS = (
    ("overview", "Overview"),
    ("options", "Engine options"),
    ("documents", "Framework and application"),
    ("text", "Profile summary"),
)
# What instrumentation measured of the cycles, by level.
MEASURED = {
    "Off": "off: cycles are estimated",
    "Vertex": "each vertex",
    "Tile": "each tile",
    "Ipu": "one tile of each IPU",
    "Device": "one tile",
}
ALWAYS_LISTED = ("profile.pop", "debug.cbor", "framework.json", "app.json")


PAGE = Declaration(
    PATH,
    TITLE,
    QUESTION,
    order=20,
    letter="s",
    icon="M3.5 2.5h9v11h-9zM6 5.5h4M6 8h4M6 10.5h2.5",
    controls={
        "find": ("Filter", "Shows only options or entries that contain this text"),
    },
    laws=ALL_TABLES,
    chapter="""\
**Does it fit, how long does it take, and what did it run on?** The sentence on top answers. The
cards have the model's run, the fullest tile, all memory, the peak of liveness, and the cycles of
the recorded runs.

## The run

*Run time* is that of all runs of the model; what moves weights and the like before and after is
*Set-up*, and not counted. *Items a second* is what the runs took in, such as images, by the clock
of the tiles: where a run has enough batches, from one batch to the next with every stage of the
pipeline full, without its filling and draining. *Latency* is the longest that an item took from
the begin of its input to the end of its output. A PopART session records the items of a run; a
Poplar program does with `engine.run(work=poplar.Work(items=...))`. What was not recorded is a
dash.

"Fits, without code" is of a program that ran on an `IPUModel` without `compileIPUCode`: its code
was not counted, takes memory beside what is shown, and is a dash (–) on every page.

## Tabs

| Tab | What it shows |
| --- | --- |
| Overview | target, graph, files; what records the rest; how far each figure can be trusted |
| Engine options | the options that the program was compiled and run with, as a tree |
| Framework and application | the contents of `framework.json` and `app.json` |
| Profile summary | the text that `tilescope summary` prints |

## Exact, estimated, measured

A figure is *exact* when the compiler laid it out, *measured* when it was counted as the program
ran, and *estimated* when it comes from a model of the hardware. The reason stands in the table,
and on hover over the word wherever it is shown.

## When figures contradict each other

A report says many things twice: a tile's memory is that of its categories, a step takes the
cycles of its slowest tile. Where two of them differ, the pages that show either have a red bar on
top. It opens the list of the laws that are broken, each with a place, its figure and the one that
was expected. `tilescope check REPORT` lists all. Such a report was changed by hand, cut short, or
written by a faulty program.
""",
)


def available(store: Store, report: str) -> bool:
    """Return whether there is a report beside the trace."""
    return bool(store.report(report))


def layout(store: Store, state: Address) -> Element:
    """Lay the page out; raises PvaError."""
    if not store.has_report(state.report) and store.trace(state.report):
        return _trace_alone(state)
    report = store.report(state.report)
    return html.Div(
        [
            components.title(QUESTION),
            _fit(report),
            components.cards(
                *run_cards(report),
                *_memory_cards(report),
                *_execution_cards(report),
                name="cards four",
            ),  # fmt: skip
            html.Div(
                [
                    controls.tabs(TABS, state),
                    view.panel("summary-details", PATH, ("tab", "find", "folded")),
                ],
                className="section",
            ),
        ]
    )


def details(store: Store, state: Address, theme: Theme) -> Element:
    """Show the tab that the address asks for; raises PvaError."""
    del theme
    tab = state.option("tab", [value for value, _ in TABS])
    return _TABS[tab](store, state)


def _overview(store: Store, state: Address) -> Element:
    report = store.report(state.report)
    first = [*_if_recorded("target", _target, report), *_if_recorded("report", _written, report)]
    second = [*_if_recorded("graph", _graph, report), _files(store, state.report)]
    return html.Div(
        [
            html.Div([html.Div(first), html.Div(second)], className="columns"),
            _recorded(report),
            *trust_section(report),
        ]
    )


def _recorded(report: Report) -> Element:
    """List what was recorded, and the option that records what was not."""
    parts = recorded_parts(report).frame()
    rows = [
        html.Tr(
            [
                html.Th(part.capitalize(), scope="row"),
                html.Td("recorded" if is_recorded else "not recorded",
                        className="good" if is_recorded else "quiet"),
                html.Td(html.Code(option)),
            ]
        )
        for part, is_recorded, option in parts.itertuples(index=False)
    ]  # fmt: skip
    grid = html.Table(html.Tbody(rows), className="facts recorded")
    return section("What was recorded", grid, folds="recorded",
                   note="and the engine option that records it")  # fmt: skip


def _options(store: Store, state: Address) -> Element:
    """Show the engine options as a tree, those alone that fit the filter."""
    options = store.report(state.report).frames.engine_options()
    if options.empty:
        return components.message("No options were recorded.")
    pairs = dotted(options[["name", "value"]].astype(str).itertuples(index=False, name=None))
    return html.Div(
        [
            _find("Filter options", "summary-options", state),
            tree(pairs, state, name="o", wanted=state.text("find")),
        ]
    )


def _documents(store: Store, state: Address) -> Element:
    """Show what application and framework wrote down."""
    report = store.report(state.report)
    parts: list[Element] = [_find("Filter names and values", "summary-documents", state)]
    for heading, file, document in (
        ("Application", "app.json", report.app),
        ("Framework", "framework.json", report.framework),
    ):
        parts += [html.H2(f"{heading} ({file})"), _document(heading, document, state)]
    return html.Div(parts)


def _find(words: str, data: str, state: Address) -> Element:
    """Make the box that filters a tab, and offer its data."""
    save = html.Div(controls.exports(data), className="tools")
    return html.Div([controls.box("find", words, state), save], className="tools-row")


def options_frame(store: Store, state: Address) -> Frame:
    """Return the engine options that fit the filter: name and value."""
    return _fitting(store.report(state.report).frames.engine_options(), state)


def _fitting(frame: Frame, state: Address) -> Frame:
    """Keep the rows whose name or value has what is typed, as the tree on the page does."""
    needle = state.text("find").lower()
    texts = frame["name"].astype(str) + " " + frame["value"].astype(str)
    return frame[texts.str.lower().str.contains(needle, regex=False)]


def documents_frame(store: Store, state: Address) -> Frame:
    """Return the values of both JSON documents: document, name and value."""
    report = store.report(state.report)
    documents = {"app.json": report.app, "framework.json": report.framework}
    rows = [
        (file, *pair) for file, document in documents.items() for pair in flat_pairs(document or {})
    ]
    return _fitting(pd.DataFrame(rows, columns=["document", "name", "value"]), state)


def _document(heading: str, document: object, state: Address) -> Element:
    if not document:
        return components.message(f"No {heading.lower()} wrote one down.")
    return tree(leaves(document), state, name=heading[0].lower(), wanted=state.text("find"))


def _summary_text(store: Store, state: Address) -> Element:
    text = profile_summary(store.report(state.report))
    note = "What printProfileSummary and `tilescope summary` print."
    return html.Div([html.P(note, className="note"), html.Pre(text, className="summary-text")])


_TABS = {"overview": _overview, "options": _options, "documents": _documents,
         "text": _summary_text}  # fmt: skip


def _trace_alone(state: Address) -> Element:
    """Point to the page of the host trace, when there is nothing else."""
    link = address.write(Address("/trace", state.report))
    parts = [
        components.message("This is a host trace without a report."),
        html.P(dcc.Link("Open the host trace", href=link, className="button")),
    ]
    return html.Div([components.title(QUESTION), html.Div(parts, className="alone")])


def register(app: Dash, store: Store) -> None:
    """Add the callbacks of the page."""
    view.fill(app, store, "summary-details", details)
    downloads.offer(app, "summary-options", options_frame)
    downloads.offer(app, "summary-documents", documents_frame)


def _if_recorded(table: str, make: Callable[[Report], Element], report: Report) -> list[Element]:
    return [make(report)] if report.dataset.has(table) else []


def _fit(report: Report) -> Element:
    """Answer the question of the page, or say why the report cannot."""
    try:
        memory = memory_overview(report)
    except NotRecordedError as problem:
        return components.headline(f"Memory not known: {problem.wanted}.", more=_time(report))
    detail = f"{code_sentence(counted=memory.code_counted)} {_time(report)}".strip()
    return components.headline(fit_sentence(memory), fit_tone(memory), more=detail)


def _time(report: Report) -> str:
    try:
        spent = execution_sentence(execution_overview(report))
        return f"{spent} {other_runs_sentence(report)}".strip()
    except NotRecordedError as problem:
        return f"{_runs_alone(report)}Execution not known: {problem.wanted}."


def _runs_alone(report: Report) -> str:
    """Return how long the runs took when their steps were not recorded."""
    spent = total_of_runs(report)
    if not spent.runs:
        return ""
    time = units.duration(spent.seconds)
    return f"{counted(spent.runs, 'run')} took {units.count(spent.cycles)} cycles ({time}). "


def _memory_cards(report: Report) -> list[Element]:
    """Show how full the tiles are; that it is not known when memory was not recorded."""
    try:
        memory, live = memory_overview(report), liveness_overview(report)
    except NotRecordedError as problem:
        return [card("Memory", "not known", problem.wanted)]
    replicated = replica_count(report) > 1
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
    machine = target(report)
    measured = report.instrumentationSettings
    pairs = [
        ("Type", kind_words(machine)),
        ("Architecture", architecture_words(machine)),
        *[
            (label, text)
            for label, text in (("Machine", machine.machine), ("Differences", machine.differences))
            if text
        ],
        ("IPUs", units.count(machine.num_ipus)),
        *_of_replica(machine),
        ("Tiles per IPU", units.count(machine.tiles_per_ipu)),
        ("Tiles", units.count(machine.num_tiles)),
        ("Memory per tile", units.size(machine.bytes_per_tile)),
        ("Memory per IPU", units.size(machine.tiles_per_ipu * machine.bytes_per_tile)),
        ("Memory", units.size(machine.total_memory)),
        ("Clock", units.frequency(machine.clock_frequency)),
        ("Compute set instrumentation", MEASURED.get(measured.compute.name, "not told")),
        (
            "External exchange instrumentation",
            MEASURED.get(measured.externalExchange.name, "not told"),
        ),
    ]
    return section("Target", facts(pairs), folds="target")


def _of_replica(machine: Target) -> list[tuple[str, str]]:
    """Return what one of several replicas has."""
    replicas = machine.num_replicas
    if replicas <= 1:
        return []
    return [
        ("Replicas", units.count(replicas)),
        ("IPUs of a replica", units.count(machine.num_ipus // replicas)),
        ("Memory of a replica", units.size(machine.total_memory // replicas)),
    ]


def _graph(report: Report) -> Element:
    size = graph_size(report)
    pairs = [
        ("Compute sets", units.count(size.compute_sets)),
        ("Vertices", units.count(size.vertices)),
        ("Edges", units.count(size.edges)),
        ("Variables on tiles", units.count(size.variables)),
    ]
    return section("Graph", facts(pairs), folds="graph")


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
        for name in (names if path.is_dir() else [as_text(path.name)])
    ]
    listing = html.Ul(items, className="files")
    return section("Files of the report", listing, note=as_text(path.name), folds="files")


def _written(report: Report) -> Element:
    """Show version and creation."""
    writer = report_writer(report)
    package = f" ({writer.package})" if writer.package else ""
    pairs = [
        ("Version", f"{writer.version}{package}"),
        ("Compiled", writer.created.replace("T", " ").replace("Z", " UTC")),
    ]
    return section("Written by", facts(pairs), folds="written")
