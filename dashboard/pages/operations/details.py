"""The lower part of the operations: one operation in tabs, or what all of them add up to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from dash import Dash, html

from dashboard import controls, downloads, view
from dashboard.address import Address
from dashboard.details.object_rows import compute_set_objects
from dashboard.details.objects import KEY
from dashboard.elements import components
from dashboard.elements.columns import declared_columns
from dashboard.elements.components import Column, Element, Facts, Frame, facts
from dashboard.figures.tiles import by_tile
from dashboard.pages.headlines import counted
from dashboard.pages.operations.totals import totals_table
from dashboard.pages.programs.details import contexts_table, with_time
from dashboard.pages.programs.headlines import line_words, program_link
from dashboard.pages.programs.page import SENT
from dashboard.pages.programs.stage import whole_tree
from dashboard.store import Report, Store
from pva import units
from pva.analysis.machine import clock_frequency
from pva.analysis.memory.totals import COUNT_CODE, counts_code
from pva.analysis.operations import details as parts
from pva.analysis.operations.costs import CODE, operation_totals
from pva.analysis.selection import SelectionError
from pva.analysis.table import Table
from pva.errors import NotRecordedError
from pva.plot.theme import Theme

MAX_LINES = 100  # programs of an operation; its others are in the program tree
MAX_SETS = 100  # compute sets of an operation
COMPUTE_SET_COLUMNS = declared_columns(
    parts.operation_compute_sets,
    "name/name Compute set",
    "vertices@110 Vertices",
    "executions@90 Ran",
    "cycles@120 Cycles",
    "estimated_cycles Estimate, once",
)
FLOPS_COLUMNS = declared_columns(
    parts.operation_compute_sets,
    "name/name Compute set",
    "executions@90 Ran",
    "flops FLOPs, once",
    "estimated_cycles Cycles, once",
    "float_peak_share@140 Of the float peak",
)
PHASES = (
    ("compute", "Compute", "step-OnTileExecute"),
    ("exchange", "Exchange", "step-DoExchange"),
    ("host_exchange", "Exchange with the host", "step-StreamCopy"),
    ("sync", "Sync", "step-Sync"),
)
TABS = (
    ("summary", "Summary"),
    ("tree", "Program tree"),
    ("code", "Code"),
    ("cycles", "Cycles"),
    ("flops", "FLOPs"),
    ("debug", "Debug"),
)
# Analysis of an operation by its name as a download; by tab, the download and the plot.
DOWNLOADS: dict[str, Callable[..., Table]] = {
    "operation-totals": lambda report, operation="", **layer: operation_totals(report, **layer),
    "operation-by-tile": parts.operation_by_tile,
    "operation-compute-sets": parts.operation_compute_sets,
    "operation-contexts": parts.operation_contexts,
}
_OF_TAB = {
    "code": ("operation-by-tile", "operation-code"),
    "cycles": ("operation-by-tile", "operation-cycles"),
    "flops": ("operation-compute-sets", ""),
    "debug": ("operation-contexts", ""),
}
CHOOSE = "Click an operation above to see its programs, code, cycles and source."


@dataclass(frozen=True, slots=True)
class Chosen:
    """The operation that is shown, its layer, and its row of costs."""

    operation: str
    layer: str
    costs: dict[str, Any]
    address: Address

    def asked(self) -> dict[str, str]:
        """Return the keywords that analyses of an operation take."""
        return {"operation": self.operation, "layer": self.layer}


def register(
    app: Dash, store: Store, identifier: str, costs_of: Callable[[Store, Address], Frame]
) -> None:
    """Register the panel to follow the chosen operation, and offer what it shows."""
    for name, analysis in DOWNLOADS.items():
        downloads.offer(app, name, _offered(analysis))
    view.fill(
        app,
        store,
        identifier,
        lambda store, address, theme: details(store, address, theme, costs_of(store, address)),
    )


def _offered(analysis: Callable[..., Table]) -> downloads.MakeFrame:
    def make(store: Store, state: Address) -> Frame:
        selection = {key: state.text(key) for key in ("operation", "layer") if state.text(key)}
        return analysis(store.report(state.report), **selection).frame()

    return make


def details(store: Store, state: Address, theme: Theme, costs: Frame) -> Element:
    """Show the chosen operation, or the totals; raises PvaError."""
    layer, name = state.text("layer", "operation"), state.text("operation")
    if not name:
        tabs = [(value, words, CHOOSE) for value, words in TABS[1:]]
        return html.Div(
            [
                html.P(CHOOSE, className="note"),
                html.Div(
                    [
                        controls.tabs((TABS[0], *tabs), replace(state, options=())),
                        controls.exports("operation-totals"),
                    ],
                    className="tabs-row",
                ),
                totals_table(store, state, layer),
            ]
        )
    records = costs[costs["operation"] == name].to_dict("records")
    if not records:
        raise SelectionError(name, "no operation of this layer", "choose one of the table above")
    shown = Chosen(name, layer, {str(k): v for k, v in records[0].items()}, state)
    tab = state.option("tab", [value for value, _ in TABS])
    head = html.Div(html.H2(name), className="details-top")
    save = controls.exports(*_OF_TAB[tab]) if tab in _OF_TAB else None
    row = html.Div([controls.tabs(TABS, state), save], className="tabs-row")
    return html.Div([head, row, _PANES[tab](store, shown, theme)])


def _pairs(
    costs: dict[str, Any], figures: tuple[tuple[str, str, Callable[[Any], str]], ...]
) -> Facts:
    """Write those figures that are known, and a dash for code that is not."""
    flags = [costs[field] == costs[field] and costs[field] >= 0 for field, _, _ in figures]
    return [
        (words, write(costs[field]) if is_known else "–")
        for (field, words, write), is_known in zip(figures, flags, strict=True)
        if is_known or field in ("code", *CODE)
    ]


def _summary(store: Store, shown: Chosen, theme: Theme) -> Element:
    del theme
    clock = clock_frequency(store.report(shown.address.report))

    def cycles(value: float) -> str:
        return with_time(value, clock)

    columns = (
        (
            ("cycles", "Cycles", cycles),
            ("share", "Of all cycles", units.share),
            ("estimated_cycles", "Cycles by estimate", cycles),
            ("steps", "Executed steps", units.count),
            ("programs", "Programs", units.count),
        ),
        (
            ("flops", "Floating-point operations", units.count),
            ("compute", "Cycles of compute", units.cycles_or_time),
            ("exchange", "Cycles of exchange", units.cycles_or_time),
            ("host_exchange", "Cycles of exchange with the host", units.cycles_or_time),
            ("sync", "Cycles of syncs", units.cycles_or_time),
        ),
        (
            ("code", "Code", units.size),
            ("vertex_state", "State of its vertices", units.size),
            ("variables", "Variables", units.size),
            ("peak_bytes", "Memory at the peak", units.size),
        ),
    )
    return html.Div(
        [facts(_pairs(shown.costs, figures)) for figures in columns], className="facts-columns"
    )


def _tree(store: Store, shown: Chosen, theme: Theme) -> Element:
    """List the programs of the operation in order, each a link to its line."""
    del theme
    key = shown.address.report
    report = store.report(key)
    tree = whole_tree(store, key)
    lines = tree[tree["program"].isin(parts.operation_programs(report, **shown.asked()))]
    if not len(lines):
        return components.message("It has variables, and no program.")
    first = lines.head(MAX_LINES)
    rows = zip(first.to_dict("records"), line_words(first).tolist(), strict=True)
    notes = {column.title: column.note for column in SENT}
    heads = ("Program", "Ran", "Cycles", "Once", "Estimate")
    head = html.Tr([html.Th(words, scope="col", title=notes[words]) for words in heads])
    body = [_line(shown.address, row, words) for row, words in rows]
    remainder = len(lines) - len(first)
    note = (
        f"{counted(remainder, 'more program')}; the program tree has them all." if remainder else ""
    )
    grid = html.Table([html.Thead(head), html.Tbody(body)], className="tree")
    return html.Div(
        [html.Div(grid, className="tree-scroller"), html.P(note, className="note")],
        id="operation-programs",
    )


def _line(state: Address, row: dict[Any, Any], words: str) -> Element:
    counts = ("cycles", "mean_cycles", "estimated_cycles")
    texts = [units.cycles_or_time(row[name]) if row[name] >= 0 else "–" for name in counts]
    cells = [units.count(row["executions"]) if row["executions"] >= 0 else "–", *texts]
    return html.Tr([html.Th(program_link(state, row, words), scope="row"), *map(html.Td, cells)])


def _code(store: Store, shown: Chosen, theme: Theme) -> Element:
    report = store.report(shown.address.report)
    frame = parts.operation_by_tile(report, **shown.asked()).frame()
    figures = (
        ("control_code", "Control code", units.size),
        ("exchange_code", "Exchange code", units.size),
        ("vertex_code", "Code of vertices that only it uses", units.size),
        ("vertex_state", "State of its vertices", units.size),
    )
    fields = parts.filled_columns(frame, ("control_code", "exchange_code", "vertex_state"))
    if not fields and not counts_code(report):
        return components.message("Code was not counted.", hint=f"To count it, {COUNT_CODE}.")
    if not fields:
        return components.message("The report tells no code of it by tile.")
    figure = by_tile(frame, fields, unit="bytes", stacked=True, theme=theme)
    return html.Div(
        [
            html.Div(facts(_pairs(shown.costs, figures)), className="facts-columns"),
            components.drawn(figure, "operation-code", 300, objects="tile"),
        ]
    )


def _cycles(store: Store, shown: Chosen, theme: Theme) -> Element:
    report = store.report(shown.address.report)
    frame = parts.operation_by_tile(report, **shown.asked()).frame()
    fields = parts.filled_columns(frame, [name for name, _, _ in PHASES[:3]])
    sets = _recorded(parts.operation_compute_sets(report, **shown.asked()).frame())
    pieces: list[Element] = [_phases(shown.costs)]
    if fields:
        figure = by_tile(frame, fields, unit="cycles", stacked=True, theme=theme)
        words = "each tile's own, in all recorded runs" if report.dataset.has("steps") else (
            "each tile's own, of one execution by estimate"
        )  # fmt: skip
        pieces += [
            html.P(f"Cycles by tile: {words}", className="note"),
            components.drawn(figure, "operation-cycles", 300, objects="tile"),
        ]
    if len(sets):
        pieces.append(_sets_table(report, "operation-compute-sets", sets, COMPUTE_SET_COLUMNS))
    return html.Div(pieces)


def _sets_table(report: Report, identifier: str, sets: Frame, columns: Sequence[Column]) -> Element:
    """List the first compute sets, and say how many there are."""
    remainder = len(sets) - MAX_SETS
    note = f"{counted(remainder, 'more compute set')}" if remainder > 0 else ""
    sets = sets.head(MAX_SETS)
    objects = compute_set_objects(report, sets["compute_set"].to_numpy())
    sets = sets.assign(**{KEY: np.array(objects, dtype=object)})
    grid = components.table(identifier, sets, columns)
    return html.Div([grid, html.P(note, className="note")])


def _recorded(frame: Frame) -> Frame:
    """Leave out what was not recorded."""
    counts = ("executions", "cycles", "estimated_cycles", "flops")
    return frame.assign(**{name: frame[name].where(frame[name] >= 0) for name in counts})


def _phases(costs: dict[str, Any]) -> Element:
    """Share the cycles out among phases, as a bar with its key."""
    spent = [(words, token, int(costs[field])) for field, words, token in PHASES]
    total = sum(max(cycles, 0) for _, _, cycles in spent)
    if not total:
        return html.P("No step of it was recorded.", className="note")
    parts = [(words, token, cycles) for words, token, cycles in spent if cycles > 0]
    bar = [
        html.Span(
            className="bar-part",
            style={"width": f"{100 * cycles / total:.4f}%", "background": f"var(--{token})"},
        )
        for _, token, cycles in parts
    ]
    key = [
        html.Li([html.Span(className="swatch", style={"background": f"var(--{token})"}), words,
                 html.Span(f"{units.cycles_or_time(cycles)} ({units.share(cycles / total)})",
                           className="key-value")])
        for words, token, cycles in parts
    ]  # fmt: skip
    return html.Div(
        [html.Div(bar, className="bar"), html.Ul(key, className="key")], className="stages"
    )


def _flops(store: Store, shown: Chosen, theme: Theme) -> Element:
    del theme
    report = store.report(shown.address.report)
    sets = _recorded(parts.operation_compute_sets(report, **shown.asked()).frame())
    if not sets["flops"].notna().any():
        why = "The report tells no floating-point operations of it."
        option = "profiler.includeFlopEstimates records them; what only moves data has none."
        return components.message(why, hint=option)
    flops = parts.executed_flops(sets)
    cycles = int(shown.costs["cycles"])
    rate = f", {flops / cycles:,.1f} a cycle of its {cycles:,}" if cycles > 0 else ""
    sets = parts.by_flops(sets)
    return html.Div(
        [
            html.P(f"{units.count(flops)} floating-point operations{rate}.", className="subject"),
            _sets_table(report, "operation-flops", sets, FLOPS_COLUMNS),
        ]
    )


def _debug(store: Store, shown: Chosen, theme: Theme) -> Element:
    del theme
    try:
        frame = parts.operation_contexts(
            store.report(shown.address.report), **shown.asked()
        ).frame()
    except NotRecordedError as absent:
        return components.message(str(absent))
    if not len(frame):
        return components.message("The compiler put it in: no debug context tells of it.")
    return contexts_table("operation-contexts", frame)


_PANES: dict[str, Callable[[Store, Chosen, Theme], Element]] = {
    "summary": _summary,
    "tree": _tree,
    "code": _code,
    "cycles": _cycles,
    "flops": _flops,
    "debug": _debug,
}
