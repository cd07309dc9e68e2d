"""The tabs below the curve of liveness."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from dash import dcc, html

from dashboard import address, controls, tables, view
from dashboard.address import Address
from dashboard.details.object_rows import texts_of, variables_named
from dashboard.details.objects import KEY
from dashboard.elements import components
from dashboard.elements.columns import declared_columns
from dashboard.elements.components import PLOT_CONFIG, Column, Element, Frame, prose
from dashboard.pages.headlines import counted
from dashboard.pages.liveness import equal_names
from dashboard.pages.module_tree import MODULE_CLASS, MODULE_NAME, SOURCE, branches
from dashboard.store import Report, Store
from pva import units
from pva.analysis.memory import liveness as analysis
from pva.analysis.memory import step_comparison
from pva.analysis.memory.totals import CATEGORY_LABELS, category_label
from pva.analysis.operations.module_lives import live_by_module
from pva.analysis.operations.modules import has_modules
from pva.analysis.selection import chosen as known_number
from pva.lazy import pandas as pd
from pva.plot import liveness as figures
from pva.plot.theme import Theme, step_words

MAX_STEPS = 6  # that stand side by side
MAX_BARS = 24
PICKS = ("variable", "variable")
STEP = "program-step"  # the kind of object (dashboard/details/objects.py) that a step is
ALWAYS_COLUMNS = (
    *declared_columns(
        analysis.always_live_variables, "name/name Variable or category", "bytes Bytes"
    ),
    Column("share", "Share", "share", 130, "Of all that is always live there"),
)
STEP_COLUMNS = declared_columns(
    analysis.liveness_curve,
    "step@90 Step",
    "name/name Name",
    "type/text@160 Type",
    "not_always_live@150 Not always live",
    "total Live",
)
LIFETIME_COLUMNS = (
    *declared_columns(analysis.variable_lifetimes, "name/name Variable"),
    Column("category_label", "Category", "text", 150, "What it is used for"),
    *declared_columns(
        analysis.variable_lifetimes,
        "bytes@110 Bytes",
        "steps@90 Steps",
        "first_step@100 From step",
        "last_step@100 To step",
        "byte_steps/number@150 Bytes × steps",
    ),
)
TILE_COLUMNS = declared_columns(
    step_comparison.live_over_tiles,
    "step@90 Step",
    "name/name Name",
    "least@110 Least",
    "mean@110 Mean",
    "most@110 Most",
    "deviation@150 Standard deviation",
    "fullest_tile@120 Fullest tile",
)
CYCLE_COLUMNS = (
    *declared_columns(step_comparison.cycle_estimates, "step@90 Step", "name/name Name"),
    Column("words", "Type", "text", 150, "What kind of step it is"),
    *declared_columns(
        step_comparison.cycle_estimates,
        "cycles@120 Cycles",
        "mean_cycles@120 Mean tile",
        "active_tiles@120 Active tiles",
        "slowest_tile@120 Slowest tile",
    ),
)


def curve_of(store: Store, state: Address) -> Frame:
    """Return the curve of the program, of an IPU or of a tile; raises SelectionError.

    It is not to be changed: but for tiles it is worked out once.
    """
    report = store.report(state.report)
    if state.tile is not None:
        return analysis.liveness_curve(report, tile=state.tile).frame()
    return store.derived(
        state.report,
        f"liveness curve {state.ipu}",
        lambda: analysis.liveness_curve(report, ipu=state.ipu).frame(),
    )


def scope_words(state: Address) -> str:
    """Write where: all tiles, an IPU or a tile."""
    if state.tile is not None:
        tail = f", the first of {len(state.tiles):,}" if len(state.tiles) > 1 else ""
        return f"Tile {state.tile:,}{tail}"
    return "All tiles" if state.ipu is None else f"IPU {state.ipu}"


def at_steps(state: Address, path: str, steps: tuple[int, ...]) -> Address:
    """Return the address with other steps."""
    return replace(state, path=path, steps=steps)


def named(curve: Frame) -> pd.Series[str]:
    """Return the names of steps, the type in brackets for one without a name."""
    return curve["name"].where(curve["name"] != "", "(" + curve["type"] + ")")


def matches(curve: Frame, state: Address) -> npt.NDArray[np.bool_] | None:
    """Return which steps the filter lets through; None without one."""
    needle = state.text("find")
    if not needle:
        return None
    return named(curve).str.contains(needle, case=False, regex=False).to_numpy()


def compared_steps(store: Store, state: Address) -> list[int]:
    """Return the steps that are shown: those chosen, or the peak; of many the first, most and last.

    Raises SelectionError.
    """
    live = curve_of(store, state)["total"].to_numpy()
    if not len(live):
        return []
    for step in state.steps:
        known_number("step", step, len(live))
    steps = np.array(state.steps or (int(live.argmax()),))
    if len(steps) <= MAX_STEPS:
        return [int(step) for step in steps]
    middle = int(steps[live[steps].argmax()])
    return list(dict.fromkeys((int(steps[0]), middle, int(steps[-1]))))


def _heading(store: Store, state: Address, steps: list[int], data: str = "") -> Element:
    """Name the steps of the panel, and say so when they stand for more of them."""
    curve = curve_of(store, state)
    peak = int(curve["total"].argmax())
    words = [f"step {step:,}{' (the peak)' if step == peak else ''}" for step in steps]
    heading = f"{scope_words(state)} at {', '.join(words)}"
    remainder = len(state.steps) - len(steps)
    note = f"{counted(len(state.steps), 'step')} chosen; the first, the one with most and the last"
    names = prose(" → ".join(named(curve).iloc[steps]))
    return html.Div(
        [html.H2(heading), html.Span(note if remainder > 0 else names, className="note"),
         html.Div([_program_link(state, curve, steps), controls.exports(data) if data else None],
                  className="tools tools-row")],
        className="section-head",
    )  # fmt: skip


def _program_link(state: Address, curve: Frame, steps: list[int]) -> Element:
    """Lead to the program of the step, where there is one step."""
    program = int(curve["program"].iloc[steps[0]]) if len(steps) == 1 else -1
    if program < 0:
        return None
    options = (("program", str(program)),)
    link = Address("/programs", state.report, tiles=state.tiles, options=options)
    return dcc.Link("Show in Program tree", href=address.write(link), className="button")


def steps_frame(store: Store, state: Address) -> Frame:
    """Return what is live at the chosen steps, filtered, with the words of its category."""
    report = store.report(state.report)
    steps = compared_steps(store, state)
    frame = step_comparison.live_at_steps(
        report, steps=steps, ipu=state.ipu, tile=state.tile
    ).frame()
    frame["category"] = frame["category"].map(category_label)
    return components.filtered(frame, state.filter)


def _step_columns(compared: Callable[..., object], steps: list[int]) -> tuple[Column, ...]:
    """Make a column for each step, and the change when there are several."""
    shown = [f"{step_comparison.STEP}{step}@120 Step {step:,}" for step in steps]
    return declared_columns(compared, *shown, *(["change@140 Change"] if len(steps) > 1 else []))


def moving(store: Store, state: Address, _theme: Theme) -> Element:
    """Show what is not always live at the chosen steps."""
    report = store.report(state.report)
    steps = compared_steps(store, state)
    frame = step_comparison.live_at_steps(
        report, steps=steps, ipu=state.ipu, tile=state.tile
    ).frame()
    columns = [f"{step_comparison.STEP}{step}" for step in steps]
    total = step_comparison.total_of_variables(frame, columns).assign(name="Total", category="")
    if not len(frame):
        text = "Nothing but the always-live is live at this step."
        return html.Div([_heading(store, state, steps), components.message(text)])
    frame["category"] = frame["category"].map(category_label)
    shown = components.filtered(frame, state.filter)
    parts = [
        *declared_columns(
            step_comparison.live_at_steps, "name/name Variable", "category/text@150 Category"
        ),
        *_step_columns(step_comparison.live_at_steps, steps),
    ]
    if len(steps) == 1:
        parts.append(Column("share", "Share", "share", 120, "Of the not-always-live there"))
        size = max(int(total[columns[0]].iloc[0]), 1)
        shown, total = (frame.assign(share=frame[columns[0]] / size) for frame in (shown, total))
    if not len(shown):
        body = components.message("No variable fits the filter.")
    else:
        shown = equal_names.grouped(shown, columns, equal_names.opened(state))
        body = components.table("liveness-variables", shown, parts, total=total, picks=PICKS)
    return html.Div([_heading(store, state, steps, "liveness-steps-side-by-side"), body])


def module_columns(store: Store, state: Address) -> tuple[Column, ...]:
    """Return the columns of the table of modules: what is live always, and at each step."""
    steps = compared_steps(store, state)
    lives = declared_columns(live_by_module, "always_live@120 Always live")
    return (MODULE_NAME, MODULE_CLASS, SOURCE, *lives, *_step_columns(live_by_module, steps))


def modules(store: Store, state: Address, _theme: Theme) -> Element:
    """Show what is live at the chosen steps by module of PyTorch."""
    frame = modules_frame(store, state)
    head = _heading(store, state, compared_steps(store, state), "liveness-modules")
    if not len(frame):
        return html.Div([head, components.message("No module fits the filter.")])
    rows = min(len(frame), 12)
    table = tables.paged(
        "liveness-modules", module_columns(store, state), rows=rows, follows="folded"
    )
    return html.Div([head, table])


def modules_frame(store: Store, state: Address) -> Frame:
    """Return what is live by module at the chosen steps, without what is in closed ones."""
    report, steps = store.report(state.report), compared_steps(store, state)
    frame = live_by_module(report, steps=steps, ipu=state.ipu, tile=state.tile).frame()
    frame = components.filtered(frame.assign(name=frame["operation"]), state.filter)
    return branches(frame, state)


def always(store: Store, state: Address, _theme: Theme) -> Element:
    """Show what is always live."""
    report = store.report(state.report)
    frame = analysis.always_live_variables(report, ipu=state.ipu, tile=state.tile).frame()
    total = units.size(analysis.total_bytes(frame))
    words = f"{scope_words(state)}: {total} in {counted(len(frame), 'item')}"
    grid = tables.paged("liveness-always", ALWAYS_COLUMNS)
    return html.Div([_titled("Always live", words, "liveness-always"), grid])


def always_frame(store: Store, state: Address) -> Frame:
    """Return what is always live, filtered, with its share."""
    frame = analysis.always_live_variables(
        store.report(state.report), ipu=state.ipu, tile=state.tile
    ).frame()
    frame[KEY] = variables_named(store.report(state.report), frame["name"].tolist())
    frame["name"] = [CATEGORY_LABELS.get(name, name) for name in frame["name"]]
    return components.filtered(analysis.with_share(frame), state.filter)


def over_tiles(store: Store, state: Address, _theme: Theme) -> Element:
    """Show how evenly the chosen tiles, or all, share what is live at the chosen steps."""
    count = len(state.tiles)
    of = f"the {count:,} tiles chosen" if count > 1 else "all tiles; type several above for those"
    note = html.P(f"Live bytes of a tile, the always-live with them, of {of}.", className="note")
    head = _heading(store, state, compared_steps(store, state), "liveness-tiles")
    table = components.table("liveness-tiles", tiles_frame(store, state), TILE_COLUMNS)
    return html.Div([head, note, table])


def tiles_frame(store: Store, state: Address) -> Frame:
    """Return how evenly tiles share what is live at each chosen step."""
    report, steps = store.report(state.report), compared_steps(store, state)
    tiles = state.tiles if len(state.tiles) > 1 else ()
    frame = step_comparison.live_over_tiles(report, steps=steps, tiles=tiles).frame()
    frame[KEY] = texts_of(STEP, frame["step"].to_numpy())
    return frame.assign(name=named(frame))


def vertices(store: Store, state: Address, _theme: Theme) -> Element:
    """Show which vertices the chosen steps run."""
    steps = compared_steps(store, state)
    frame = vertices_frame(store, state)
    head = _heading(store, state, steps, "liveness-vertices" if len(frame) else "")
    if not len(frame):
        hint = (
            "Choose a step that runs a compute set: those of type OnTileExecute in the tab Steps."
        )
        return html.Div([head, components.message("No vertices run at this step.", hint=hint)])
    columns = [
        *declared_columns(
            step_comparison.vertices_at_steps, "vertex_type/name Vertex type", "state State of one"
        ),
        *_step_columns(step_comparison.vertices_at_steps, steps),
    ]
    return html.Div([head, components.table("liveness-vertices", frame, columns)])


def vertices_frame(store: Store, state: Address) -> Frame:
    """Return which vertices the chosen steps run."""
    steps = compared_steps(store, state)
    return step_comparison.vertices_at_steps(store.report(state.report), steps=steps).frame()


def cycles(store: Store, state: Address, _theme: Theme) -> Element:
    """Show what the chosen steps cost, with the steps inside them."""
    frame = cycles_frame(store, state)
    data = "liveness-cycles" if len(frame) else ""
    head = _heading(store, state, compared_steps(store, state), data)
    if not len(frame):
        text = "No compute set and no exchange runs at this step."
        return html.Div([head, components.message(text)])
    frame["words"] = frame["type"].map(step_words)
    frame[KEY] = texts_of(STEP, frame["step"].to_numpy())
    slowest = units.cycles_in_words(float(frame["cycles"].max()))
    note = html.P(f"Estimated, once each; the longest takes {slowest}.", className="note")
    return html.Div([head, note, components.table("liveness-cycles", frame, CYCLE_COLUMNS)])


def cycles_frame(store: Store, state: Address) -> Frame:
    """Return what the chosen steps cost, with the steps inside them."""
    report, steps = store.report(state.report), compared_steps(store, state)
    parts = [step_comparison.cycle_estimates(report, step=step).frame() for step in steps]
    return pd.concat([part for part in parts if len(part)] or parts[:1], ignore_index=True)


def lifetimes(store: Store, state: Address, _theme: Theme) -> Element:
    """List the variables that the filter leaves, below the bars of some; these alone are chosen."""
    if not len(lifetimes_frame(store, state)):
        return components.message("No variable fits the filter.")
    keys = ("ipu", "tile", "filter", "variable")
    grid = tables.paged("liveness-lifetimes", LIFETIME_COLUMNS, picks=PICKS, many=True)
    drawn = view.panel("liveness-bars", state.path, keys, themed=True, inner=True)
    return html.Div([drawn, grid])


def bars(store: Store, state: Address, theme: Theme) -> Element:
    """Draw when the chosen variables are live, or those kept longest for their size."""
    report = store.report(state.report)
    frame = lifetimes_frame(store, state)
    picked = list(state.numbers("variable"))
    rows = picked or frame["variable"].head(MAX_BARS).tolist()
    intervals = step_comparison.lifetime_intervals(report, variables=rows).frame()
    live = curve_of(store, state)
    figure = figures.lifetimes(
        intervals, steps=len(live), peak=int(live["total"].argmax()), theme=theme
    )
    words = f"{len(rows):,} of {counted(len(frame), 'variable')}, those kept longest for their size"
    if picked:
        words = f"{len(picked):,} chosen; click a row to add it or take it away"
    graph = dcc.Graph(
        id="liveness-lifetimes-plot", figure=figure, config=PLOT_CONFIG, responsive=True,
        style={"height": f"{figure.layout.height}px"},
    )  # fmt: skip
    plot = html.Div(graph, className="plot", **{"data-picks": ":"})
    head = _titled("Lifetimes", words, "liveness-lifetimes", "liveness-lifetimes-plot")
    return html.Div([head, plot])


def _lifetimes(report: Report) -> Frame:
    frame = analysis.variable_lifetimes(report).frame()
    return frame.assign(category_label=frame["category"].map(category_label))


def lifetimes_frame(store: Store, state: Address) -> Frame:
    """Return how long variables are kept, filtered."""
    report = store.report(state.report)
    frame = store.derived(state.report, "lifetimes", lambda: _lifetimes(report))
    return components.filtered(frame, state.filter)


def steps(store: Store, state: Address, _theme: Theme) -> Element:
    """List the steps, or those that the filter lets through."""
    curve = curve_of(store, state)
    mask = matches(curve, state)
    words = counted(len(curve), "step")
    if mask is not None:
        words = f"{np.count_nonzero(mask):,} of {words} named like “{state.text('find')}”"
    grid = tables.paged("liveness-steps", STEP_COLUMNS, picks=("step", "step"))
    return html.Div([_titled("Steps", f"{words}; click one", "liveness-steps"), grid])


def listed_steps(store: Store, state: Address) -> Frame:
    """Return the steps that the filter lets through."""
    curve = curve_of(store, state)
    mask = matches(curve, state)
    curve = curve.assign(name=named(curve))
    curve[KEY] = texts_of(STEP, curve["step"].to_numpy())
    return curve if mask is None else curve[mask]


def _titled(heading: str, note: str, data: str, plot: str = "") -> Element:
    return html.Div(
        [html.H2(heading), html.Span(note, className="note"),
         html.Div(controls.exports(data, plot), className="tools")],
        className="section-head",
    )  # fmt: skip


Make = Callable[[Store, Address, Theme], Element]
TABS: dict[str, Make] = {
    "moving": moving,
    "always": always,
    "modules": modules,
    "tiles": over_tiles,
    "vertices": vertices,
    "cycles": cycles,
    "lifetimes": lifetimes,
    "steps": steps,
}
PAGED: dict[str, tuple[tuple[Column, ...], Callable[[Store, Address], Frame]]] = {
    "liveness-always": (ALWAYS_COLUMNS, always_frame),
    "liveness-lifetimes": (LIFETIME_COLUMNS, lifetimes_frame),
    "liveness-steps": (STEP_COLUMNS, listed_steps),
}
_WORDS = {
    "moving": "Not always live",
    "always": "Always live",
    "modules": "By module",
    "tiles": "Over tiles",
    "vertices": "Vertices",
    "cycles": "Cycle estimates",
    "lifetimes": "Lifetimes",
    "steps": "Steps",
}
_NEEDS = {
    "moving": "variable_intervals",
    "always": "always_live_variables",
    "modules": "variable_intervals",
    "tiles": "variable_pieces",
    "vertices": "compute_set_vertices",
    "cycles": "compute_set_cycles_by_tile",
    "lifetimes": "variable_intervals",
}


def choices(report: Report) -> list[Any]:
    """Return the tabs; those whose data was not recorded come last and say so.

    That of modules is there only where the report tells some.
    """
    data = report.dataset
    every = {tab: words for tab, words in _WORDS.items() if tab != "modules" or has_modules(report)}
    recorded_tabs = [(tab, words) for tab, words in every.items() if _has(data, tab)]
    return recorded_tabs + [
        (tab, words, data.why_absent(_NEEDS[tab]))
        for tab, words in every.items()
        if not _has(data, tab)
    ]


def _has(data: Any, tab: str) -> bool:
    return tab not in _NEEDS or bool(data.has(_NEEDS[tab]))
