"""Where do the cycles go? The device timeline, and what a range of it holds."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from dash import Dash, dcc, html

from dashboard import address, controls, downloads, tables, view
from dashboard.address import Address, Filter, Range
from dashboard.declared import ONE_IPU, Declaration
from dashboard.details.object_rows import texts_of
from dashboard.details.objects import KEY
from dashboard.elements import components
from dashboard.elements.columns import declared_columns
from dashboard.elements.components import Column, Element, Frame, section
from dashboard.pages.canvas import canvas, follow
from dashboard.pages.execution import ipus as execution_ipus
from dashboard.pages.headlines import counted, execution_sentence, other_runs_sentence
from dashboard.pages.provenance import badge
from dashboard.store import Report, Store
from dashboard.timeline.endpoint import FLAT, MODULES, timeline
from dashboard.timeline.filtered import filter_of
from pva import units
from pva.analysis.execution import profiled_blocks as block_analysis
from pva.analysis.execution import ranges
from pva.analysis.execution import totals as analysis
from pva.analysis.operations.modules import has_modules
from pva.analysis.waiting import causes
from pva.plot.theme import Theme, step_words

PATH, TITLE = "/execution", "Execution"
QUESTION = "Where do the cycles go?"

LAYERS = (("layers", "Flame"), (FLAT, "Flat"))
PROGRAM_COLUMNS = (
    *declared_columns(
        ranges.range_by_program,
        "name/name Program",
        "type/text@140 Type",
        "executions@100 Executed",
        "cycles@110 Cycles",
        "share@90 Share",
        "bytes@100 Data",
    ),
)
BLOCK_COLUMNS = declared_columns(
    block_analysis.blocks,
    "name/name Block",
    "kind/text@120 Kind",
    "ipu@70 IPU",
    "count@90 Times",
    "total_cycles@120 Cycles",
    "mean_cycles@110 Mean",
    "max_cycles@110 Most",
)
PATH_COLUMNS = (
    *declared_columns(causes.critical_path, "name/name Program"),
    Column("kind", "Type", "text", 150, "What kind of step it is, or the way to a sync and back"),
    *declared_columns(
        causes.critical_path,
        "ipu@70 IPU",
        "steps@90 Steps",
        "cycles@120 Cycles",
        "share@90 Share",
    ),
)
WAIT_COLUMNS = (
    *declared_columns(causes.waits, "ipu@70 IPU", "for_ipu@90 For IPU"),
    Column(
        "tile", "For tile", "text", 90, "The tile that arrives last; none for the way to a sync"
    ),
    *declared_columns(causes.waits, "name/name Which runs"),
    Column("kind", "Type", "text", 150, "What kind of step it is, or the way to a sync and back"),
    *declared_columns(causes.waits, "stage/text@90 Stage", "cycles@120 Cycles", "share@90 Share"),
)
TABS = (("programs", "Programs by cycles"), ("path", "Critical path"), ("waits", "Waits"))
TABLES = {"programs": PROGRAM_COLUMNS, "path": PATH_COLUMNS, "waits": WAIT_COLUMNS}
STANDS = {"~": "contains", "!~": "does not contain", "=": "is", "==": "is", "!=": "is not"}
WINDOW = ("range", "selection")  # the keys that say which part of the execution is meant


PAGE = Declaration(
    PATH,
    TITLE,
    QUESTION,
    objects={"step": {"": "step"}},
    docked="step",
    order=90,
    letter="e",
    icon="M2.5 3h11v3.3h-11zm0 3.3h5v3.4h-5zm7.5 0h3.5v3.4H10zM4 9.7h3V13H4z",
    controls={
        "against": ("Compare with", "Shows the execution of another report below this one"),
        "show": (
            "Layers above the steps",
            "Flame shows the steps inside the layers of their names, Flat the steps alone, Modules "
            "those of PyTorch, where the report tells them",
        ),
        "path": (
            "Critical path",
            "Shows the steps that the runs are as long as, in a lane above the IPUs",
        ),
        "ipu": ONE_IPU,
        "arrows": (
            "Arrows of waits",
            (
                "Leads from an IPU that waits for another to the one that "
                "arrives last, for the longest waits in view; those of the "
                "chosen sync always"
            ),
        ),
        "bsp": ("Tiles", "Shows what each tile does in each step, below the steps"),
        "filter": ("Filter programs", "Shows only rows whose name contains this text"),
    },
    tables=(
        ("Columns: why the IPUs do not compute", execution_ipus.IDLE_COLUMNS),
        ("Columns: programs by cycles", PROGRAM_COLUMNS),
        ("Columns: critical path", PATH_COLUMNS),
        ("Columns: waits", WAIT_COLUMNS),
        ("Columns: blocks", BLOCK_COLUMNS),
    ),
    laws=(
        "execution",
        "steps",
        "runs",
        "blocks",
        "tile_c",
        "compute_set_cycles",
        "compute_set_active",
        "measured",
        "target",
    ),
    chapter="""\
**Where do the cycles go?** The device timeline has a lane an IPU: the run on top, the layers of
the names below it, and the executed steps at the bottom. A step lasts as long as its slowest
tile. Below, each tile has a line of its own, which shows how much of a step it computes and how
long it waits. Where I/O tiles exchange with the host while the others compute, they have a row
*I/O tiles* below the steps.

Zoom with the wheel, two fingers or `w` and `s`, move by dragging or with `a` and `d`; drag with
Shift to choose a range. The panels below are about the range that is chosen, or else in view.

*Search names* frames the steps that are found, and `‹` and `›` go from one to the next. *Only
steps named* draws no others: `conv` those with this text in their name, `!~conv` those without
it, `=conv` those of this name. Layers stay where a step in them does, and runs; the image of the
tiles is that of all steps. The filter is that of the table of programs, too, and stands in the
link. Cycles and shares of the range are then those of the steps left, and say so; balances and
bytes are those of all steps.

**Why is an IPU idle?** *Why the IPUs do not compute* has a row for each: how long its tiles
compute, wait for the slowest tile of a compute set (*imbalance*) or for another IPU that computes
(*bubble*), exchange, or are on the way to syncs. The shares add up to 100 %. *Waits for* is the
IPU that it waits for longest, and what that one runs meanwhile. *Waits* lists all of that, tile
by tile.

**What makes the runs as long as they are?** The *critical path* goes from the end of a run back
to its begin: the tile that ended last, what it ran, the tile that it waited for before that, and
so on. Its cycles add up to those of the runs. To shorten a step that is not on it makes the runs
no shorter. The switch *Critical path* draws it as a lane above the IPUs.

**Whom does an IPU wait for?** *Arrows of waits* lead from an IPU that waits to the one that
arrives last, for the longest waits in view; those of the sync that is chosen are drawn anyhow.
*All IPUs* leaves the lanes, and the tiles, of one IPU; so does a click on its row.

The chosen step opens in the drawer. That of a sync says which tile arrives last, and how
long the others wait for it; that of a stream copy, to which IPUs, tiles and variables its data
goes.

## Words

* *Tile balance* is the cycles of the mean tile as a part of those of the slowest: 100 % when all
  tiles have the same to do.
* *Stream copies* move data from and to the host, *syncs* wait for all tiles, or for all I/O tiles
  or all others. What is hidden behind other steps counts in no share of the headline.
* *Recorded in full* are the first runs (`autoReport.executionProfileProgramRunCount`); of later
  ones only the cycles are known.
* *Not counted* are the runs of set-up: those made with profiling disabled, such as PopART's that
  move weights, seed and optimiser, and those of programs that ran once while another one ran more
  often. *Counted* in the header of all pages chooses whether the latter count. Between two runs
  of the model they are shown in grey; no figure has their cycles.
""",
)


def available(store: Store, report: str) -> bool:
    """Return whether executed steps were recorded."""
    return store.report(report).dataset.has("steps")


def layout(store: Store, state: Address) -> Element:
    """Lay the page out; raises PvaError."""
    report = store.report(state.report)
    overview = analysis.execution_overview(report)
    question, answer = components.title(QUESTION), execution_sentence(overview)
    if not overview.steps:
        data = report.dataset
        absent = "" if data.has("steps") else f"No steps: {data.why_absent('steps')}."
        return html.Div([question, components.headline(answer, more=absent)])
    note = f"{overview.recorded_runs:,} of {counted(overview.runs, 'run')} recorded in full"
    tools = controls.row(
        [
            *_against(store, state),
            *_ipus(report, state),
            controls.choice("show", _layers(report), state, label="Layers above the steps"),
            controls.switch("path", "Critical path", state),
            controls.switch("bsp", "Tiles", state, on=True),
        ]
    )
    parts = [
        question,
        components.headline(answer, more=_more(store, state)),
        section(
            "Device timeline",
            # the timeline of a large report takes a while
            view.panel("execution-legend", PATH, ()),
            canvas("device", "Device timeline", tiles=_tiles(report)),
            note=note,
            badge=badge(report, "steps"),
            tools=tools,
        ),
        section(
            "Why the IPUs do not compute",
            view.panel("execution-reasons", PATH, ()),
            note="all recorded runs; click an IPU to see it by itself",
        ),
        view.panel("execution-range", PATH, (*WINDOW, "filter")),
        section(
            "What takes the time",
            controls.tabs(TABS, state),
            view.panel("execution-programs", PATH, ("tab", *WINDOW, "filter")),
            tools=controls.filter_box("name", "Filter programs", state),
        ),
    ]
    if report.dataset.has("blocks") and report.dataset.length("blocks"):
        frame = block_analysis.blocks(report).frame()
        grid = components.table("execution-blocks", frame, BLOCK_COLUMNS)
        words = "seen by lightweight profiling on one tile of each IPU, in all runs"
        parts.append(section("Blocks", grid, note=words))
    return html.Div(parts)


def _layers(report: Report) -> tuple[tuple[str, str], ...]:
    """Offer the layers that the report has: those of names, and of PyTorch's modules."""
    return (*LAYERS, (MODULES, "Modules")) if has_modules(report) else LAYERS


def _more(store: Store, state: Address) -> str:
    """Name what is not counted, and answer the question for the second report, if there is one."""
    sentence = other_runs_sentence(store.report(state.report))
    if not state.against:
        return sentence
    overview = analysis.execution_overview(store.report(state.against))
    return f"{sentence} {state.against}: {execution_sentence(overview)}".strip()


def _options(state: Address) -> dict[str, str]:
    """Return what of the address the timeline depends on."""
    return {"against": state.against}


def _against(store: Store, state: Address) -> list[Element]:
    """Offer the other reports with an execution, to be shown below this one."""
    shown = state.report or store.keys[0]
    options = [(key, key) for key in store.reports if key != shown]
    choices = (("", "No other report"), *options)
    words = "Compare with"
    return [controls.select("against", choices, state, label=words, width=170)] if options else []


def _ipus(report: Report, state: Address) -> list[Element]:
    """Offer each IPU by itself, and arrows between them, where there are several."""
    count = int(report.dataset.of_replica("num_ipus"))
    choices = (("", "All IPUs"), *((str(ipu), f"IPU {ipu}") for ipu in range(count)))
    if count < 2:
        return []
    return [
        controls.select("ipu", choices, state, label="IPU", width=110),
        controls.switch("arrows", "Arrows of waits", state),
    ]


def _tiles(report: Report) -> int:
    """Count the tiles that can be shown over time."""
    full_report, _ = report.whole
    return (
        full_report.dataset.of_replica("num_tiles") if full_report.dataset.has("tile_clock") else 0
    )


def legend(store: Store, state: Address, theme: Theme) -> Element:
    """List what the colours of the timeline stand for, of those that it has; raises PvaError."""
    del theme
    run_timeline = timeline(store, "device", state.report, _options(state))
    tracks = run_timeline.tracks
    used = {int(kind) for kind in tracks.kind[: len(run_timeline.labels)].tolist()}
    items = [
        html.Li([html.Span(className="swatch", style={"background": f"var(--{token})"}), words])
        for number, (token, words) in enumerate(run_timeline.colours)
        if number in used
    ]
    return html.Ul(items, className="key", **{"aria-label": "Colours"})


def window_of(store: Store, state: Address) -> tuple[Range, str]:
    """Return the part of the execution that is chosen, or in view, and what to call it."""
    selection = state.text("selection")
    if selection:
        return address.parse_range(selection, "selection"), "Chosen range"
    if state.range:
        return state.range, "In view"
    run_timeline = timeline(store, "device", state.report, _options(state))
    return Range(*run_timeline.extent), "All recorded runs"


def range_details(store: Store, state: Address, _theme: Theme) -> Element:
    """Return what the IPUs did in a part of the execution, of both reports when there are two."""
    window, words = window_of(store, state)
    cycles = window.end - window.begin
    by = name_filter(state)
    keys = [state.report or store.keys[0], *filter(None, [state.against])]
    run_timeline = timeline(store, "device", state.report, _options(state))
    ipus = execution_ipus.table_of(store, keys, window, by, run_timeline)
    programs = _by_program(store, state, window)
    note = []
    if by:
        programs = components.filtered(_named(programs), by)
        note = [html.P(_filtered_words(programs, by, cycles), className="note")]
    text = f"{units.count(cycles)} cycles{_time(store, state, cycles)}"
    top = _top(state, programs.head(5))
    return section(words, *note, ipus, html.H3("What took most"), top, note=text)


def _time(store: Store, state: Address, cycles: int) -> str:
    """Write how long cycles take, by the clock of each report where these differ."""
    keys = (state.report or store.keys[0], *filter(None, [state.against]))
    clocks = {key: timeline(store, "device", key).clock for key in keys}
    times = {key: units.duration(cycles / clock) for key, clock in clocks.items() if clock}
    if len(set(clocks.values())) > 1:
        times = {key: f"{time} in {key}" for key, time in times.items()}
    return f" ({', '.join(dict.fromkeys(times.values()))})" if times else ""


def name_filter(state: Address) -> Filter | None:
    """Return the filter of the timeline: the one of the table of programs, where it is by name."""
    return filter_of(str(state.filter)) if state.filter else None


def _filtered_words(programs: Frame, by: Filter, cycles: int) -> str:
    """Write that figures are those of some steps, and what these take."""
    totals = ranges.total_of_programs(programs, cycles)
    return (
        f"Only of steps whose name {STANDS[by.operator]} “{by.value}”: "
        f"{counted(totals.steps, 'step')}, {units.cycles_in_words(totals.cycles)} "
        f"({units.share(totals.share)})"
    )


def _by_program(store: Store, state: Address, window: Range) -> Frame:
    """Return the programs of a part of the execution; those of all of it are kept."""
    report, extent = store.report(state.report), timeline(store, "device", state.report).extent
    make = partial(ranges.range_by_program, report, begin=window.begin, end=window.end)
    if (window.begin, window.end) != extent:
        return make().frame()
    return store.derived(state.report, "all by program", make).frame()


def _top(state: Address, frame: Frame) -> Element:
    """List programs with a link to their first step."""
    rows = [
        html.Tr(
            [
                html.Td(
                    dcc.Link(
                        row["name"] or step_words(row["type"]),
                        href=address.write(replace(state, steps=(row["first_step"],))),
                    )
                ),
                html.Td(counted(row["executions"], "time"), className="number"),
                html.Td(units.share(row["share"]), className="number"),
            ]
        )
        for row in frame.to_dict("records")
    ]
    return html.Table(html.Tbody(rows), className="facts top-steps")


def program_frame(store: Store, state: Address) -> Frame:
    """Return the programs of a part of the execution, filtered by name."""
    window, _ = window_of(store, state)
    frame = _named(_by_program(store, state, window))
    moved = frame["bytes"].where(frame["bytes"] > 0)  # a dash for what moves nothing
    return _steps_of(components.filtered(frame.assign(bytes=moved), state.filter))


def _named(frame: Frame) -> Frame:
    """Name programs that have no name by their type, as the timeline does."""
    unnamed = frame["name"] == ""
    return frame.assign(name=frame["name"].where(~unnamed, frame["type"].map(step_words)))


def path_frame(store: Store, state: Address) -> Frame:
    """Return the critical path of the recorded runs, filtered by name."""
    report = store.report(state.report)
    frame: Frame = store.derived(
        state.report, "path by program", lambda: causes.critical_path(report).frame()
    )
    frame = frame.assign(kind=frame["type"].map(step_words))
    return _steps_of(components.filtered(frame, state.filter))


def wait_frame(store: Store, state: Address) -> Frame:
    """Return who is waited for in the recorded runs, filtered by name."""
    report = store.report(state.report)
    frame = causes.waits(report).frame()
    tiles = frame["for_tile"].astype(str).where(frame["for_tile"] >= 0, "–")
    frame = frame.assign(kind=frame["type"].map(step_words), tile=tiles)
    return _steps_of(components.filtered(frame, state.filter))


def _steps_of(frame: Frame) -> Frame:
    """Return the rows, each as the object that its first step is."""
    steps = texts_of("step", frame["first_step"].to_numpy())
    return frame.assign(**{KEY: np.array(steps, dtype=object)})


def step_tables(store: Store, state: Address, _theme: Theme) -> Element:
    """Show the chosen tab: programs by cycles, the critical path, or waits."""
    tab = state.option("tab", [value for value, _ in TABS])
    words = {
        "programs": f"{window_of(store, state)[1]}; click one to choose its first step",
        "path": "All recorded runs: each step waits for the one before it; to shorten what is not "
        "on the path makes the runs no shorter",
        "waits": "All recorded runs: tiles wait for the one that arrives last at a sync",
    }
    note = html.Span(words[tab], className="note")
    tools = html.Div(controls.exports(f"execution-{tab}"), className="tools")
    picks = ("step", "first_step")
    return html.Div(
        [
            html.Div([note, tools], className="tools-row compare-tools"),
            tables.paged(f"execution-{tab}-table", TABLES[tab], picks=picks),
        ]
    )


def register(app: Dash, store: Store) -> None:
    """Add the callbacks of the page."""
    view.fill(app, store, "execution-legend", legend)
    view.fill(app, store, "execution-range", range_details)
    view.fill(app, store, "execution-reasons", execution_ipus.idle)
    view.fill(app, store, "execution-programs", step_tables)
    frames = {"programs": program_frame, "path": path_frame, "waits": wait_frame}
    for tab, make in frames.items():
        tables.serve(app, store, PATH, f"execution-{tab}-table", TABLES[tab], make)
        downloads.offer(app, f"execution-{tab}", make)
    follow(app, "device")
