"""What changed from one report to another?"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dash import Dash, dcc, html

from dashboard import address, controls, downloads, tables, view
from dashboard.address import Address
from dashboard.declared import ALL_TABLES, Declaration
from dashboard.details.objects import KEY
from dashboard.elements import components
from dashboard.elements.components import GREW, SHRANK, Element, Frame, section
from dashboard.pages.compare import plots
from dashboard.pages.compare import tables as known
from dashboard.pages.compare import traces as compare_traces
from dashboard.pages.compare.figure_names import BETTER, FIGURE_WORDS
from dashboard.pages.compare.tables import TABS, both, compared, percent
from dashboard.pages.headlines import counted
from dashboard.store import Store
from pva import units
from pva.analysis.whole_report.comparison import (
    change_counts,
    code_of_one,
    compare_settings,
    rates_of_other_work,
    total_of,
)
from pva.errors import NotRecordedError
from pva.lazy import pandas as pd
from pva.plot.theme import Theme

PATH, TITLE = "/compare", "Compare"

QUESTION = "What changed from one report to the other?"
# What the answer tells, in this order: figure, words for more and for less.
ANSWERS = (
    ("tiles_out_of_memory", "has {} more out of memory", "has {} fewer out of memory"),
    ("total_cycles", "takes {} more", "takes {} less"),
    ("largest_tile", "needs {} more on its fullest tile", "needs {} less on its fullest tile"),
    ("max_live", "has {} more live at the peak", "has {} less live at the peak"),
)
RATES = ("passes {} more items a second", "passes {} fewer items a second")
SAME = {
    "total_cycles": "cycles",
    "largest_tile": "memory on its fullest tile",
    "max_live": "peak of liveness",
}
MAX_ROWS = 12


PAGE = Declaration(
    PATH,
    TITLE,
    QUESTION,
    order=120,
    letter="c",
    icon="M5 13V3M2.5 5.5 5 3l2.5 2.5M11 3v10m-2.5-2.5L11 13l2.5-2.5",
    subject="two reports",
    controls={
        "against": ("Compared with", "The second report; the first is that of the header"),
        "by": ("Rows", "What the rows of the table are"),
        "filter": ("Filter by name", "Shows only rows whose name contains this text"),
        "same": ("Rows that are the same", "Shows also what did not change"),
        "gaps": ("Gaps", "Counts what lies unused between variables, as the tile needs it too"),
        "show": ("How both are drawn", "In one plot, one above the other, or the change alone"),
    },
    tables=(("Columns", known.columns("bytes")),),
    laws=ALL_TABLES,
    chapter="""\
**What changed from one report to the other?** Rows are matched by name. Growth is ▲ with a plus,
shrinkage ▼ with a minus; *new* and *gone* are rows that only one report has. The rows add up to
the difference of the totals, exactly.

A waterfall leads from the total before to the total after: the eight largest changes of the
chosen rows, then all others together. *By cause* splits the cycles of the recorded runs: what
compute would take if all tiles shared it evenly, what uneven work and tiles without work add,
exchange, host exchange and sync.

## Tabs

The plot of memory counts no gaps until *Gaps* is on; the fullest tile among the figures is the
one with its gaps. Memory, liveness, operations and execution, each by what *Rows* chooses, and
the differences of target and options. A tab is grey when a report lacks what it compares.

Cycles are those of the recorded runs, whose number stands among the figures; without a recorded
run they are not compared. Where the clocks of the two differ, cycles are not written as time.
Operations go by names alone where only one report has debug information.

## Two host traces

Where the report in the header is a host trace, *Compare* takes a second trace. Labels are matched
by their text. The time of a label is that of its events without the events directly inside, so
that the rows add up to the time in which threads were inside events. The waterfall leads from the
first trace to the second one; where the changes are too small to be seen beside the totals, its
axis does not begin at 0.
""",
)


def available(store: Store, report: str) -> bool:
    """Return whether there are two reports, or two host traces."""
    if not store.has_report(report):
        return len(compare_traces.traces_of(store)) > 1
    reports = len(store.reports)
    return reports > 1 and bool(store.report(report))


def layout(store: Store, state: Address) -> Element:
    """Lay the page out; raises PvaError."""
    if not store.has_report(state.report):
        return compare_traces.layout(store, state)
    head = [components.title(QUESTION)]
    if not state.against:
        return html.Div([*head, _choose(store, state), _nothing(store)])
    tabs = [(tab, words, known.why_not(store, state, tab)) for tab, words in TABS.items()]
    tabs.sort(key=lambda tab: bool(tab[2]))
    tools = controls.exports("compare-figures")
    return html.Div(
        [
            *head,
            view.panel("compare-answer", PATH, ()),
            _choose(store, state),
            section("The figures of both", view.panel("compare-both", PATH, ()), tools=tools),
            html.Section(
                [
                    controls.tabs(tabs, state),
                    view.panel("compare-plot", PATH, ("tab", "show", "gaps"), themed=True),
                    view.panel("compare-way", PATH, ("tab", "by"), themed=True),
                    view.panel("compare-rows", PATH, ("tab", "by", "filter", "same")),
                ],
                className="section",
            ),
        ]
    )


def _nothing(store: Store) -> Element:
    if len(store.reports) > 1:
        return components.message("Choose the report to compare with.")
    hint = "Start with two: tilescope serve BEFORE AFTER, or a directory that holds several."
    return components.message("There is no other report here.", hint=hint)


def _choose(store: Store, state: Address) -> Element:
    """Choose the second report; the first is that of the header."""
    key = state.report or store.keys[0]
    choices = [(name, name) for name in store.reports]
    swapped = replace(state, path=PATH, report=state.against, against=key)
    parts: list[Element] = [
        html.Span(["Before ", html.Strong(key)], className="compare-name before"),
        html.Span("After", className="compare-name after"),
        controls.select("against", [("", "Choose a report"), *choices], state,
                        label="Report to compare with", width=230),
    ]  # fmt: skip
    if state.against:
        parts.append(dcc.Link("Swap", href=address.write(swapped), className="button"))
    return html.Div(parts, className="tools-row compare-choice")


def answer(store: Store, state: Address, _theme: Theme) -> Element:
    """Head the page with what changed most."""
    change = sentence(compared(store, state, "compare_figures"), state.against)
    names = (state.report or store.keys[0], state.against)
    return components.headline(change, more=code_of_one(*both(store, state), names))


def sentence(frame: Frame, after: str) -> str:
    """Return what changed most: cycles, the fullest tile, the peak; of what both reports hold."""
    rows = {row["figure"]: row for row in frame.to_dict("records")}
    sentences = {
        name: _told(rows[name], increase, less) for name, increase, less in ANSWERS if name in rows
    }
    runs = rows.get("recorded_runs", {"change": 0})
    if sentences.get("total_cycles") and runs["change"]:
        recorded = counted(int(runs["after"]), "recorded run")
        sentences["total_cycles"] += f" in {recorded} instead of {runs['before']:,.0f}"
    if rates_of_other_work(frame):
        sentences["items_per_second"] = _told(rows["items_per_second"], *RATES)
    changed = [text for text in sentences.values() if text]
    if changed:
        return f"{after} {_joined(changed)}."
    same = [words for name, words in SAME.items() if name in rows]
    return f"{after} has the same {_joined(same)}." if same else f"{after} holds no common figure."


def _told(row: dict[Any, Any], increase: str, less: str) -> str:
    before, change = row["before"], row["change"]
    if not change:
        return ""
    text = (increase if change > 0 else less).format(_amount(abs(change), row["unit"]))
    return f"{text} ({percent(before, row['after'])})" if before and row["after"] else text


def _amount(value: float, unit: str) -> str:
    if not unit:
        return counted(int(value), "tile")
    if unit == "items/s":
        return f"{value:,.0f}"
    return units.size(value) if unit == "bytes" else units.cycles_in_words(value)


def _joined(parts: list[str]) -> str:
    if len(parts) == 1:
        return parts[0]
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def figures_of_both(store: Store, state: Address, _theme: Theme) -> list[Element]:
    """Show the few figures that stand for a report, of both, with the change."""
    frame = compared(store, state, "compare_figures")
    head = html.Tr([html.Th(words, scope="col") for words in
                    ("Figure", "Before", "After", "Change", "Relative")])  # fmt: skip
    body = [
        html.Tr(
            [
                html.Th(FIGURE_WORDS[row["figure"]], scope="row"),
                html.Td(_written(row["before"], row["unit"])),
                html.Td(_written(row["after"], row["unit"])),
                html.Td(_change(row), className=_tone(row)),
                html.Td(_part(row)),
            ]
        )
        for row in frame.to_dict("records")
    ]
    table = html.Table([html.Thead(head), html.Tbody(body)], className="compare-figures")
    return [table, *_clocks(store, state)]


def _clocks(store: Store, state: Address) -> list[Element]:
    """Warn that equal cycles take different times, where the clocks differ."""
    frequencies = known.clocks(both(store, state))
    if len(set(frequencies)) < 2:
        return []
    before, after = map(units.frequency, frequencies)
    text = f"Their clocks differ, {before} before and {after} after: cycles are not told as time."
    return [html.P(components.unbroken(text), className="note")]


def _written(value: float, unit: str) -> str:
    if unit == "fraction":
        return units.share(value)
    write = _WRITE.get(unit, units.count)
    return write(value)


_WRITE = {"bytes": units.size, "cycles": units.cycles_or_time, "items/s": units.rate}


def _change(row: dict[Any, Any]) -> str:
    if row["unit"] == "fraction":
        return components.changed(
            row["change"], lambda value: f"{100 * value:,.1f} percentage points"
        )
    return components.changed(row["change"], lambda value: _written(value, row["unit"]))


def _part(row: dict[Any, Any]) -> str:
    return "" if row["unit"] == "fraction" else percent(row["before"], row["after"])


def _tone(row: dict[Any, Any]) -> str:
    """Colour what became worse and what became better; sign and arrow tell which way it went."""
    better = row["change"] * BETTER.get(row["figure"], -1)
    return "better" if better > 0 else "worse" if better < 0 else ""


def rows_of_tab(store: Store, state: Address, _theme: Theme) -> Element:
    """Fill the panel of the chosen tab."""
    name = state.option("tab", list(TABS))
    if name == "settings":
        return _settings(store, state)
    table = known.table_of(state)
    try:
        frame = compared(store, state, table.name)
    except NotRecordedError as error:
        why = known.why_not(store, state, name) or f"{error.found}; {error.wanted}"
        return html.Div([_by(state, name), components.message(why)])
    parts = [_by(state, name), _summary(frame, table)]
    shown = known.frame_of(store, state)
    if not len(shown):
        text = "No row fits the filter." if state.filter else "Every row is the same in both."
        return html.Div([*parts, components.message(text)])
    grid = tables.paged(
        f"compare-{table.unit}", known.columns(table.unit), total=_total(frame),
        rows=min(len(shown), MAX_ROWS), picks=(KEY, KEY),
    )  # fmt: skip
    return html.Div([*parts, grid])


def _by(state: Address, name: str) -> Element:
    choices = [(key, table.words) for key, table in known.TABLES[name].items()]
    unit = known.table_of(state).unit
    return html.Div(
        [
            controls.select("by", choices, state, label="Rows", width=170),
            controls.filter_box("name", "Filter by name", state),
            controls.switch("same", "Rows that are the same", state),
            html.Div(controls.exports(f"compare-{unit}"), className="tools"),
        ],
        className="tools-row compare-tools",
    )


def _summary(frame: Frame, table: known.Comparison) -> Element:
    """Write that the rows add up to the difference of the totals."""
    before, after, change = total_of(frame)
    write = units.size if table.unit == "bytes" else units.cycles_or_time
    counts = change_counts(frame)
    text = (
        f"{table.total[:1].upper()}{table.total[1:]}: {write(before)} before, {write(after)} after,"
        f" {components.changed(change, write)}. The rows add up to it: {counts.grown:,} grew"
        f" {GREW}, {counts.shrunk:,} shrank {SHRANK}, {counts.same:,} are the same."
    )
    return html.P(components.unbroken(text), className="note")


def _total(frame: Frame) -> Frame:
    before, after, change = total_of(frame)
    values = {"name": "Total", "before": before, "after": after, "change": change, "where": ""}
    return pd.DataFrame([values | {"percent": percent(before, after)}])


def settings(store: Store, state: Address) -> Frame:
    """Return target, graph, version and options of both."""
    return compare_settings(*both(store, state)).frame()


def _settings(store: Store, state: Address) -> Element:
    frame = settings(store, state)
    differ = frame[frame["differs"]]
    note = f"{len(differ):,} of {len(frame):,} differ"
    tools = html.Div(
        [html.H2("Target, graph, version and options"), html.Span(note, className="note"),
         html.Div(controls.row([controls.switch("same", "Those that are the same", state),
                                controls.exports("compare-settings")]), className="tools")],
        className="section-head",
    )  # fmt: skip
    shown = frame if state.text("same", "off") == "on" else differ
    if not len(shown):
        return html.Div([tools, components.message("Target, graph and options are the same.")])
    head = html.Tr([html.Th(words, scope="col") for words in ("About", "Name", "Before", "After")])
    body = [
        html.Tr(
            [html.Td(row["about"]), html.Th(row["name"], scope="row"), html.Td(row["before"]),
             html.Td(row["after"])],
            className="differs" if row["differs"] else "",
        )
        for row in shown.to_dict("records")
    ]  # fmt: skip
    return html.Div(
        [tools, html.Table([html.Thead(head), html.Tbody(body)], className="compare-settings")]
    )


def register(app: Dash, store: Store) -> None:
    """Add the callbacks of the page."""
    for identifier, make in (
        ("compare-answer", answer),
        ("compare-both", figures_of_both),
        ("compare-plot", plots.plot_of_tab),
        ("compare-way", plots.way),
        ("compare-rows", rows_of_tab),
    ):
        view.fill(app, store, identifier, make)
    compare_traces.register(app, store)
    for unit in known.UNITS:
        columns = known.columns(unit)
        tables.serve(app, store, PATH, f"compare-{unit}", columns, known.frame_of)
        downloads.offer(app, f"compare-{unit}", known.frame_of)
    for name in ("memory", "liveness"):
        downloads.offer(app, f"compare-{name}-curves", plots.curves_frame(name))
    downloads.offer(app, "compare-way", plots.way_of)
    downloads.offer(app, "compare-settings", settings)
    downloads.offer(
        app, "compare-figures", lambda store, state: compared(store, state, "compare_figures")
    )
