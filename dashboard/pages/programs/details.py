"""The lower pane of the program tree: what one step is, costs, uses, and where it was made."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from dash import Dash, dcc, html

from dashboard import address, controls, downloads, view
from dashboard.address import Address
from dashboard.details.objects import with_object
from dashboard.elements import components
from dashboard.elements.columns import declared_columns
from dashboard.elements.components import Column, Element, Facts, Frame, facts, recorded_fact
from dashboard.figures.tiles import by_tile
from dashboard.pages.documents import flat_pairs
from dashboard.pages.headlines import counted
from dashboard.pages.programs import written_details
from dashboard.pages.programs.stage import known_stages, stage_of, whole_tree
from dashboard.store import Report, Store
from pva import units
from pva.analysis.machine import clock_frequency
from pva.analysis.operations.layers import DEFAULT, owners_in
from pva.analysis.programs import details as parts
from pva.analysis.programs.compilation import WRITTEN, called_program, origins_of
from pva.analysis.programs.details import ProgramFigures
from pva.analysis.selection import SelectionError
from pva.analysis.table import Table
from pva.errors import NotRecordedError
from pva.plot.theme import Theme, step_words

VERTEX_COLUMNS = declared_columns(
    parts.vertices_of_program,
    "vertex_type/name Vertex type",
    "vertices@110 Vertices",
    "tiles@90 Tiles",
    "cycles@140 Active cycles",
    "state@110 State",
)
VARIABLE_COLUMNS = (
    *declared_columns(
        parts.variables_of_program,
        "name/name Variable",
        "access/text@100 Access",
        "type/text@120 Type",
        "shape/text@120 Shape",
        "bytes@110 Bytes",
    ),
    Column("always", "Live", "text", 120, "Always, or at which program steps"),
)
CONTEXT_COLUMNS = (
    *declared_columns(parts.contexts_of_program, "layer/text@110 Layer", "name/name Name"),
    Column("place", "Source", "text", 240, "File and line that made it"),
    *declared_columns(parts.contexts_of_program, "function/text@140 Function"),
)
CHOOSE = "Choose a step in the tree to see its details."
CHOOSE_HINT = "Click one, search for one, or go to one with the arrow keys and press Enter."
# Analysis of a program by its name as a download, and the plot that shows it.
DOWNLOADS: dict[str, tuple[Callable[..., Table], str]] = {
    "program-by-tile": (parts.program_by_tile, "program-tiles-0"),
    "program-vertices": (parts.vertices_of_program, ""),
    "program-variables": (parts.variables_of_program, ""),
    "program-contexts": (parts.contexts_of_program, ""),
}
_OF_TAB = {"tiles": "program-by-tile", "vertices": "program-vertices",
           "variables": "program-variables", "debug": "program-contexts"}  # fmt: skip
TABS = (
    ("details", "Details"),
    ("tiles", "Tiles"),
    ("vertices", "Vertices"),
    ("variables", "Variables"),
    ("debug", "Debug"),
)


def register(app: Dash, store: Store, identifier: str) -> None:
    """Register the panel to follow the chosen program, and offer what it shows."""
    view.fill(app, store, identifier, details)
    downloads.offer(app, written_details.DOWNLOAD, written_details.offered)
    for name, (analysis, _) in DOWNLOADS.items():
        downloads.offer(app, name, _offered(analysis))


def _offered(analysis: Callable[..., Table]) -> downloads.MakeFrame:
    def make(store: Store, state: Address) -> Frame:
        return analysis(store.report(state.report), program=chosen_program(state)).frame()

    return make


def chosen_program(state: Address) -> int:
    """Return the program in the address; raises SelectionError when there is none."""
    text = state.text("program")
    if not (text.isascii() and text.isdigit()):
        raise SelectionError(f"program={text}", "no program", "write a row, as in program=12")
    return int(text)


def details(store: Store, state: Address, theme: Theme) -> Element:
    """Show the chosen program; raises PvaError."""
    if not state.text("program"):
        return components.message(CHOOSE, hint=CHOOSE_HINT)
    report = store.report(state.report)
    if stage_of(report, state) == WRITTEN:
        return written_details.details(store, state, theme)
    figures = parts.program_figures(report, program=chosen_program(state))
    tabs = _tabs(report, figures)
    names = [tab[0] for tab in tabs if len(tab) == 2]
    now = state.option("tab", [value for value, _ in TABS])
    now = now if now in names else "details"
    name = _OF_TAB.get(now, "")
    save = controls.exports(name, DOWNLOADS[name][1]) if name else None
    return html.Div(
        [
            _head(store, report, state, figures),
            html.Div([controls.tabs(tabs, state), save], className="tabs-row"),
            _PANES[now](store, state, figures, theme),
        ]
    )


def _tabs(report: Report, figures: ProgramFigures) -> list[Any]:
    """Grey the tabs that say nothing of this kind of step."""
    data = report.dataset
    is_compute = figures.type == "OnTileExecute"
    why = {
        "tiles": "" if figures.operand >= 0 else "It takes the same on every tile, or nothing",
        "vertices": "" if is_compute else "Only compute runs vertices",
        "variables": "" if data.has("access") else f"Not recorded: {data.why_absent('access')}",
        "debug": "" if data.has("debug_contexts") else data.why_absent("debug_contexts"),
    }
    return [(value, words, *([why[value]] if why.get(value) else [])) for value, words in TABS]


def _head(store: Store, report: Report, state: Address, figures: ProgramFigures) -> Element:
    """Name the step, and lead to where else it is seen."""
    base = Address(report=state.report, tiles=state.tiles)
    layer = state.text("layer", DEFAULT)
    owners = store.derived(state.report, f"owners {layer}", lambda: owners_in(report, layer))
    operation = str(owners[figures.program])
    of_layer = {} if layer == DEFAULT else {"layer": layer}
    function = called_program(report, figures.program)
    links = [
        ("Live at this step", "/liveness", figures.liveness_step, {}),
        ("In the execution", "/execution", figures.first_step, {}),
        ("Longest execution", "/execution", figures.longest_step, {}),
        (
            f"Operation {operation}",
            "/operations",
            -1,
            {} if operation.startswith("(") else of_layer | {"operation": operation},
        ),
        ("Its function", "/programs", -1, {"program": str(function)} if function >= 0 else {}),
        ("As written", "/programs", -1, _written(report, figures)),
    ]
    if figures.longest_step == figures.first_step:
        links.pop(2)
    shown = [
        dcc.Link(
            words,
            href=address.write(
                replace(
                    base,
                    path=path,
                    steps=() if step < 0 else (step,),
                    options=tuple(options.items()),
                )
            ),
            className="button",
        )
        for words, path, step, options in links
        if step >= 0 or options
    ]
    about = address.write(with_object(state, "program", figures.program))
    shown.insert(0, dcc.Link("All about it", href=about, className="button"))
    name = "" if figures.name.startswith("(") else figures.name
    return html.Div(
        [
            html.Div(
                [
                    html.Span(
                        className="program-tick",
                        style={"background": f"var(--step-{figures.type}, var(--quiet))"},
                    ),
                    html.H2([step_words(figures.type), " ", html.Span(name, className="quiet")]),
                ],
                className="details-head",
            ),
            html.Div(shown, className="details-links"),
        ],
        className="details-top",
    )


def _written(report: Report, figures: ProgramFigures) -> dict[str, str]:
    """Return the options of a link to the program that this one was made of; none without one."""
    if WRITTEN not in known_stages(report) or origins_of(report)[figures.program] < 0:
        return {}
    return {"program": str(figures.program), "stage": WRITTEN}


def _details(store: Store, state: Address, figures: ProgramFigures, theme: Theme) -> Element:
    del theme
    report = store.report(state.report)
    clock = clock_frequency(report)
    tree = whole_tree(store, state.report)
    line: Lines = tree[tree["program"] == figures.program].iloc[:1].to_dict("records")
    columns = [_identity(figures, line), _time(figures, line, clock), _space(figures)]
    return html.Div([facts(pairs) for pairs in columns if pairs], className="facts-columns")


def with_time(cycles: float, clock: float) -> str:
    """Write cycles with the time beside them, where the report tells a clock."""
    return units.cycles(cycles, clock) if clock > 0 else units.count(cycles)


Lines = Any  # the line of a program as a dict, in a list; none of what is in no tree


def _identity(figures: ProgramFigures, line: Lines) -> Facts:
    """Return what the step is, by its kind."""
    pairs = [("Type", figures.type), ("Program", f"{figures.program:,}")]
    if figures.type == "OnTileExecute":
        pairs += [("Compute set", figures.operand_name or "–")]
        pairs += recorded_fact("Number of the compute set", figures.operand, units.count)
    elif figures.operand >= 0:
        pairs += recorded_fact("Number of the exchange", figures.operand, units.count)
    if figures.type == "StreamCopy":
        pairs += [("Host side", _host_side(figures))]
    if figures.sync_type:
        words = {"External": "external: with the host or other IPUs", "Internal": "on the IPU"}
        pairs += [("Kind of sync", words.get(figures.sync_type, figures.sync_type))]
    pairs += recorded_fact("Runs its body", figures.count, lambda count: counted(count, "time"))
    if line:
        words = {"control": "control program"}.get(line[0]["part"], line[0]["part"])
        pairs += [("Part of", f"{words} {line[0]['number']}")]
    return pairs


def _host_side(figures: ProgramFigures) -> str:
    """Return what goes to the host and what comes from it."""
    ways = (("from the host", figures.bytes_received), ("to the host", figures.bytes_sent))
    texts = [f"{units.size(moved)} {way}" for way, moved in ways if moved > 0]
    return ", ".join(texts) or "nothing"


def _time(figures: ProgramFigures, line: Lines, clock: float) -> Facts:
    """Return how often it ran and how long it took."""
    record = line[0] if line else {}
    ran = int(record.get("executions", -1))
    cycles = int(record.get("cycles", figures.cycles))
    pairs = recorded_fact("Ran in the recorded runs", max(ran, figures.executions), units.count)
    pairs += recorded_fact("Cycles in all", cycles, lambda value: with_time(value, clock))
    pairs += recorded_fact("Of all cycles", record.get("share", figures.share), units.share)
    if figures.min_cycles < figures.max_cycles:
        least, most, mean = map(
            units.cycles_or_time, (figures.min_cycles, figures.max_cycles, figures.mean_cycles)
        )
        span = f"{least} to {most}, mean {mean}"
        pairs += [("Cycles of one execution", span)]
    elif figures.max_cycles >= 0:
        pairs += [("Cycles of one execution", with_time(figures.max_cycles, clock))]
    estimate = int(record.get("estimated_cycles", figures.estimated_cycles))
    return pairs + recorded_fact("Estimate of one execution", estimate, units.cycles_or_time)


def _space(figures: ProgramFigures) -> Facts:
    """Return what it moves, computes and takes."""
    return [
        *recorded_fact("Active tiles", figures.active_tiles, units.count),
        *recorded_fact("Vertices", figures.vertices, units.count),
        *recorded_fact("Floating-point operations", figures.flops, units.count),
        *recorded_fact("Bytes received", figures.bytes_received, units.size),
        *recorded_fact("Bytes sent", figures.bytes_sent, units.size),
        *recorded_fact("Control code", figures.control_code, units.size),
        *recorded_fact("Exchange code", figures.exchange_code, units.size),
        *recorded_fact("State of its vertices", figures.vertex_state, units.size),
    ]


def _tiles(store: Store, state: Address, figures: ProgramFigures, theme: Theme) -> Element:
    frame = parts.program_by_tile(store.report(state.report), program=figures.program).frame()
    is_compute = figures.type == "OnTileExecute"
    first = ("cycles", "active_cycles") if is_compute else ("cycles",)
    drawn = [by_tile(frame, first, unit="cycles", stacked=False, theme=theme)]
    if not is_compute:
        moved = ("bytes_received", "bytes_sent")
        drawn.append(by_tile(frame, moved, unit="bytes", stacked=False, theme=theme))
    graphs = [
        components.drawn(figure, f"program-tiles-{n}", objects="tile")
        for n, figure in enumerate(drawn)
    ]
    return html.Div([html.P("One execution, by tile", className="note"), *graphs])


def _vertices(store: Store, state: Address, figures: ProgramFigures, theme: Theme) -> Element:
    del theme
    frame = parts.vertices_of_program(store.report(state.report), program=figures.program).frame()
    frame["tiles"] = frame["tiles"].where(frame["tiles"] >= 0)
    return components.table("program-vertices", frame, VERTEX_COLUMNS)


def _variables(store: Store, state: Address, figures: ProgramFigures, theme: Theme) -> Element:
    del theme
    frame = parts.variables_of_program(store.report(state.report), program=figures.program).frame()
    frame["always"] = frame["always_live"].map({True: "always", False: "at times"})
    if not len(frame):
        return components.message("It reads and writes no variable.")
    return components.table("program-variables", frame, VARIABLE_COLUMNS)


def _debug(store: Store, state: Address, figures: ProgramFigures, theme: Theme) -> Element:
    del theme
    try:
        frame = parts.contexts_of_program(
            store.report(state.report), program=figures.program
        ).frame()
    except NotRecordedError as absent:
        return components.message(str(absent))
    if not len(frame):
        return components.message("The compiler put it in: no debug context tells of it.")
    return contexts_table("program-contexts", frame)


def contexts_table(identifier: str, frame: Frame) -> Element:
    """List debug contexts with their place in the source."""
    place = frame["file"] + ":" + frame["line"].astype(str)
    frame = frame.assign(place=place.where(frame["file"] != "", "–"))
    further = [
        (f"{name}: {key}", text)
        for name, document in zip(frame["name"], frame["json"], strict=True)
        for key, text in flat_pairs(_read(document))
    ]
    grid = components.table(identifier, frame, CONTEXT_COLUMNS)
    return html.Div([grid, facts(further)] if further else grid, className="contexts")


def _read(document: str) -> Any:
    """Read the further keys of a context; a text that is no JSON stands for itself."""
    try:
        return json.loads(document) if document else None
    except ValueError:
        return document


_PANES: dict[str, Callable[[Store, Address, ProgramFigures, Theme], Element]] = {
    "details": _details,
    "tiles": _tiles,
    "vertices": _vertices,
    "variables": _variables,
    "debug": _debug,
}
