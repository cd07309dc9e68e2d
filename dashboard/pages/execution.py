"""Where do the cycles go? The device timeline, and what a range of it holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from dash import Dash, dcc, html

from dashboard import address, components, controls, downloads, tables, view
from dashboard.address import Address, Filter, Range
from dashboard.components import Column, Element, section
from dashboard.pages import step_details
from dashboard.pages.canvas import canvas, follow
from dashboard.pages.provenance import badge
from dashboard.pages.words import counted, execution_sentence, other_runs_sentence
from dashboard.store import Report, Store
from dashboard.theme import Theme, step_words
from dashboard.timeline.endpoint import FLAT, timeline
from dashboard.timeline.filtered import filter_of
from dashboard.timeline.lanes import Timeline
from pva import units
from pva.analysis import blocks as block_analysis
from pva.analysis import execution as analysis
from pva.analysis import ranges
from pva.analysis.filters import texts_matching

PATH, TITLE = "/execution", "Execution"

LAYERS = (("layers", "Flame"), (FLAT, "Flat"))
PROGRAM_COLUMNS = (
    Column("name", "Program", "name", note="A program, by its debug name"),
    Column("type", "Type", "text", 140, "What kind of step it is"),
    Column("executions", "Executed", "number", 100, "Executions that touch the range"),
    Column("cycles", "Cycles", "cycles", 110, "By how many cycles it made the range longer"),
    Column("share", "Share", "share", 90, "Of the cycles of the range"),
    Column("bytes", "Data", "bytes", 100, "Half of what the tiles sent and received"),
)
BLOCK_COLUMNS = (
    Column("name", "Block", "name", note="A Block of the program, or what emptied its buffer"),
    Column("kind", "Kind", "text", 120, "common: a Block; others fill or empty the buffer"),
    Column("ipu", "IPU", "number", 70, "The IPU on which a tile recorded it"),
    Column("count", "Times", "number", 90, "How often it ran, in all runs"),
    Column("total_cycles", "Cycles", "cycles", 120, "Of all its executions, with those inside"),
    Column("mean_cycles", "Mean", "cycles", 110, "Of one execution on average"),
    Column("max_cycles", "Most", "cycles", 110, "Of its longest execution"),
)
MOVED = (
    ("stream", "Stream copies"), ("remote", "Remote buffers"), ("global", "Between IPUs"),
)  # fmt: skip
STANDS = {"~": "contains", "!~": "does not contain", "=": "is", "==": "is", "!=": "is not"}
WINDOW = ("range", "selection")  # the keys that say which part of the execution is meant


def available(store: Store, report: str) -> bool:
    """Tell whether executed steps were recorded."""
    return store.report(report).dataset.has("steps")


def layout(store: Store, chosen: Address) -> Element:
    """Lay the page out; raises PvaError."""
    report = store.report(chosen.report)
    overview = analysis.execution_overview(report)
    question, answer = components.title("Where do the cycles go?"), execution_sentence(overview)
    if not overview.steps:
        data = report.dataset
        absent = "" if data.has("steps") else f"No steps: {data.why_absent('steps')}."
        return html.Div([question, components.headline(answer, more=absent)])
    note = f"{overview.recorded_runs:,} of {overview.runs:,} runs recorded in full"
    tools = controls.row(
        [
            *_against(store, chosen),
            controls.choice("show", LAYERS, chosen, label="Layers above the steps"),
            controls.switch("bsp", "Tiles", chosen, on=True),
        ]
    )
    parts = [
        question,
        components.headline(answer, more=_more(store, chosen)),
        section(
            "Device timeline",
            view.panel(
                "execution-legend", PATH, ()
            ),  # the timeline of a large report takes a while
            canvas("device", "Device timeline", tiles=_tiles(report)),
            note=note,
            badge=badge(report, "steps"),
            tools=tools,
        ),
        html.Div(
            [
                view.panel("execution-range", PATH, (*WINDOW, "filter")),
                view.panel("execution-step", PATH, ("step",), themed=True),
            ],
            className="columns",
        ),
        section(
            "Programs by cycles",
            view.panel("execution-programs", PATH, (*WINDOW, "filter")),
            tools=controls.row(
                [
                    controls.filter_box("name", "Filter programs", chosen),
                    controls.exports("execution-programs"),
                ]
            ),
        ),
    ]
    if report.dataset.has("blocks") and report.dataset.length("blocks"):
        frame = block_analysis.blocks(report)
        grid = components.table("execution-blocks", frame, BLOCK_COLUMNS)
        words = "seen by lightweight profiling on one tile of each IPU, in all runs"
        parts.append(section("Blocks", grid, note=words))
    return html.Div(parts)


def _more(store: Store, chosen: Address) -> str:
    """Say what is not counted, and answer the question for the second report, if there is one."""
    others = other_runs_sentence(store.report(chosen.report))
    if not chosen.against:
        return others
    overview = analysis.execution_overview(store.report(chosen.against))
    return f"{others} {chosen.against}: {execution_sentence(overview)}".strip()


def _options(chosen: Address) -> dict[str, str]:
    """Give what of the address the timeline depends on."""
    return {"against": chosen.against}


def _against(store: Store, chosen: Address) -> list[Element]:
    """Offer the other reports with an execution, to be shown below this one."""
    shown = chosen.report or store.keys[0]
    others = [(key, key) for key in store.reports if key != shown]
    choices = (("", "No other report"), *others)
    words = "Compare with"
    return [controls.select("against", choices, chosen, label=words, width=170)] if others else []


def _tiles(report: Report) -> int:
    """Count the tiles that can be shown over time."""
    return report.dataset.of_replica("num_tiles") if report.dataset.has("tile_clock") else 0


def legend(store: Store, chosen: Address, theme: Theme) -> Element:
    """List what the colours of the timeline stand for, of those that it has; raises PvaError."""
    del theme
    whole = timeline(store, "device", chosen.report, _options(chosen))
    tracks = whole.tracks
    used = {int(kind) for kind in tracks.kind[: len(whole.labels)].tolist()}
    items = [
        html.Li([html.Span(className="swatch", style={"background": f"var(--{token})"}), words])
        for number, (token, words) in enumerate(whole.colours)
        if number in used
    ]
    return html.Ul(items, className="key", **{"aria-label": "Colours"})


def window_of(store: Store, chosen: Address) -> tuple[Range, str]:
    """Give the part of the execution that is chosen, or in view, and what to call it."""
    selection = chosen.text("selection")
    if selection:
        return address.parse_range(selection, "selection"), "Chosen range"
    if chosen.range:
        return chosen.range, "In view"
    whole = timeline(store, "device", chosen.report, _options(chosen))
    return Range(*whole.extent), "All recorded runs"


def range_details(store: Store, chosen: Address, _theme: Theme) -> Element:
    """Say what the IPUs did in a part of the execution, of both reports when there are two."""
    window, words = window_of(store, chosen)
    cycles = window.end - window.begin
    by = name_filter(chosen)
    parts = _of_report(store, chosen.report, (window, by), "")
    if chosen.against:
        key = chosen.report or store.keys[0]
        parts = _of_report(store, chosen.report, (window, by), f"{key}, ")
        parts += _of_report(store, chosen.against, (window, by), f"{chosen.against}, ")
    programs = _by_program(store, chosen, window)
    note = []
    if by:
        programs = components.filtered(_named(programs), by)
        note = [html.P(_filtered_words(programs, by, cycles), className="note")]
    text = f"{units.count(cycles)} cycles{_time(store, chosen, cycles)}"
    top = _top(chosen, programs.head(5))
    return section(words, *note, *parts, html.H3("What took most"), top, note=text)


def _time(store: Store, chosen: Address, cycles: int) -> str:
    """Write how long cycles take, by the clock of each report where these differ."""
    keys = (chosen.report or store.keys[0], *filter(None, [chosen.against]))
    clocks = {key: timeline(store, "device", key).clock for key in keys}
    times = {key: units.duration(cycles / clock) for key, clock in clocks.items() if clock}
    if len(set(clocks.values())) > 1:
        times = {key: f"{time} in {key}" for key, time in times.items()}
    return f" ({', '.join(dict.fromkeys(times.values()))})" if times else ""


def name_filter(chosen: Address) -> Filter | None:
    """Give the filter of the timeline: the one of the table of programs, where it is by name."""
    return filter_of(str(chosen.filter)) if chosen.filter else None


def _filtered_words(programs: Any, by: Filter, cycles: int) -> str:
    """Say that figures are those of some steps, and what these take."""
    steps, spent = int(programs["executions"].sum()), int(programs["cycles"].sum())
    share = units.share(spent / max(cycles, 1))
    return (
        f"Only of steps whose name {STANDS[by.operator]} “{by.value}”: {counted(steps, 'step')}, "
        f"{units.cycles_in_words(spent)} ({share})"
    )


def _by_program(store: Store, chosen: Address, window: Range) -> Any:
    """Give the programs of a part of the execution; those of all of it are kept."""
    report, extent = store.report(chosen.report), timeline(store, "device", chosen.report).extent
    make = partial(ranges.range_by_program, report, begin=window.begin, end=window.end)
    if (window.begin, window.end) != extent:
        return make()
    return store.derived(chosen.report, "all by program", make)


def _of_report(
    store: Store, key: str, part: tuple[Range, Filter | None], name: str
) -> list[Element]:
    """Describe the lanes of a report in a part of its execution, of the steps of a filter."""
    window, by = part
    report, whole = store.report(key), timeline(store, "device", key)
    labels = [None, *([texts_matching(whole.labels, by)] if by else [])]
    whole_range = (window.begin, window.end) == whole.extent
    by_ipu = partial(ranges.range_by_ipu, report, begin=window.begin, end=window.end)
    frame = store.derived(key, "all by IPU", by_ipu) if whole_range else by_ipu()
    rows = zip(whole.lanes, frame.to_dict("records"), strict=True)
    cycles = window.end - window.begin
    return [
        _proportions(
            f"{name}{lane.name}",
            [whole.spent(lane.overview, window.begin, window.end, kept) for kept in labels],
            whole, cycles, row,
        )
        for lane, row in rows
    ]  # fmt: skip


def _top(chosen: Address, frame: Any) -> Element:
    """List programs with a link to their first step."""
    rows = [
        html.Tr(
            [
                html.Td(
                    dcc.Link(
                        row["name"] or step_words(row["type"]),
                        href=address.write(replace(chosen, steps=(row["first_step"],))),
                    )
                ),
                html.Td(counted(row["executions"], "time"), className="number"),
                html.Td(units.share(row["share"]), className="number"),
            ]
        )
        for row in frame.to_dict("records")
    ]
    return html.Table(html.Tbody(rows), className="facts top-steps")


def _proportions(
    lane: str, spent: Sequence[Any], whole: Timeline, cycles: int, row: Any
) -> Element:
    """Draw the shares of one lane as a bar with its key, and its balances and bytes.

    `spent` are the cycles of each colour, and with a filter those of the steps it lets through.
    """
    every, by_colour = spent[0], spent[-1]
    rest, others = cycles - int(every.sum()), int((every - by_colour).sum())
    shares = [
        (token, words, int(amount))
        for (token, words), amount in zip(whole.colours, by_colour.tolist(), strict=True)
        if amount
    ]
    shares = sorted(shares, key=lambda part: -part[2])
    shares += [("line", "Other steps", others)] if others > 0 else []
    shares += [("idle", "Idle", rest)] if rest > 0 else []
    bar = [
        html.Span(
            className="bar-part",
            title=f"{words} {units.share(amount / cycles)}",
            style={"width": f"{100 * amount / cycles:.4f}%", "background": f"var(--{token})"},
        )
        for token, words, amount in shares
    ]
    key = [
        html.Li([html.Span(className="swatch", style={"background": f"var(--{token})"}), words,
                 html.Span(units.share(amount / cycles), className="key-value")])
        for token, words, amount in shares
    ]  # fmt: skip
    return html.Div(
        [
            html.H3(lane),
            html.Div(bar, className="bar"),
            html.Ul(key, className="key"),
            components.facts(_balances(row, len(spent) > 1)),
        ]
    )


def _balances(row: Any, is_filtered: bool) -> list[tuple[str, str]]:
    """Write the figures of one IPU, which are those of all steps."""
    of = " of all steps" if is_filtered else ""
    known = row["tile_balance"] == row["tile_balance"]
    moved = [
        (
            f"{words}{of}",
            f"{units.size(row[f'{name}_bytes_in'])} in, {units.size(row[f'{name}_bytes_out'])} out",
        )
        for name, words in MOVED
        if row[f"{name}_bytes_in"] or row[f"{name}_bytes_out"]
    ]
    return [
        (f"Parallel efficiency{of} (tiles not waiting)", units.share(row["parallel_efficiency"])),
        (
            f"Tile balance{of or ' of what was run'}",
            units.share(row["tile_balance"]) if known else "–",
        ),
        *moved,
    ]


def program_frame(store: Store, chosen: Address) -> Any:
    """Give the programs of a part of the execution, filtered by name."""
    window, _ = window_of(store, chosen)
    frame = _named(_by_program(store, chosen, window))
    moved = frame["bytes"].where(frame["bytes"] > 0)  # a dash for what moves nothing
    return components.filtered(frame.assign(bytes=moved), chosen.filter)


def _named(frame: Any) -> Any:
    """Name programs that have no name by their type, as the timeline does."""
    unnamed = frame["name"] == ""
    return frame.assign(name=frame["name"].where(~unnamed, frame["type"].map(step_words)))


def program_table(store: Store, chosen: Address, _theme: Theme) -> Element:
    """List the programs by the cycles that they cost."""
    _, words = window_of(store, chosen)
    note = html.P(f"{words}; click one to choose its first step", className="note")
    picks = ("step", "first_step")
    return html.Div([note, tables.paged("execution-program-table", PROGRAM_COLUMNS, picks=picks)])


def register(app: Dash, store: Store) -> None:
    """Add the callbacks of the page."""
    view.fill(app, store, "execution-legend", legend)
    view.fill(app, store, "execution-range", range_details)
    view.fill(app, store, "execution-step", step_details.details)
    view.fill(app, store, "execution-programs", program_table)
    tables.serve(app, store, PATH, "execution-program-table", PROGRAM_COLUMNS, program_frame)
    downloads.offer(app, "execution-programs", program_frame)
    follow(app, "device")
