"""Does it fit, and what would make it smaller or faster?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from dash import Dash, dcc, html

from dashboard import address, controls, downloads, tables, view
from dashboard.address import Address
from dashboard.declared import ALL_TABLES, Declaration, page_at
from dashboard.details.finding_links import finding_address
from dashboard.details.object_rows import exchange_objects
from dashboard.details.objects import KEY, with_object
from dashboard.elements import components
from dashboard.elements.columns import declared_columns
from dashboard.elements.components import Column, Element, Frame, section
from dashboard.figures import insights as figures
from dashboard.pages import explore
from dashboard.pages.headlines import (
    code_sentence,
    counted,
    fit_sentence,
    fit_tone,
    other_runs_sentence,
    run_sentence,
)
from dashboard.pages.module_tree import MODULE_CLASS, MODULE_NAME, SOURCE, branches
from dashboard.store import Report, Store
from pva import units
from pva.analysis import insight_rules as analysis
from pva.analysis.execution.exchanges import largest_exchanges
from pva.analysis.insight_rules.trials import with_trials
from pva.analysis.memory import liveness
from pva.analysis.memory import totals as memory
from pva.analysis.memory.totals import CATEGORY_LABELS, category_label
from pva.analysis.operations.costs import operation_costs
from pva.analysis.operations.layers import MODULE
from pva.analysis.operations.modules import has_modules
from pva.analysis.table import columns_of
from pva.errors import NotRecordedError
from pva.lazy import pandas as pd
from pva.plot.axes import Figure
from pva.plot.theme import Theme

PATH, TITLE = "/insights", "Insights"
QUESTION = "Does it fit, and what would make it smaller or faster?"

SEVERITIES = {"problem": "Problem", "cost": "Could be less", "note": "Note"}
ABOUT = {"memory": "Memory", "time": "Time"}
WORST_TILES = 5
FIRST = 3  # findings of memory and time together
VARIABLE_COLUMNS = (
    *declared_columns(liveness.live_at_peak, "name/name Variable or category"),
    Column("words", "Category", "text", 150, "What it is used for"),
    Column("life", "Live", "text", 110, "Always, or only for some steps"),
    *declared_columns(liveness.live_at_peak, "bytes@120 Bytes", "share@120 Share"),
)
VERTEX_COLUMNS = declared_columns(
    memory.memory_by_vertex_type,
    "vertex_type/name Vertex type",
    "total@140 State and code",
    "code@110 Code",
    "vertex_data@110 Fields",
    "edge_pointers Edge pointers",
    "copy_pointers Copy pointers",
)
EXCHANGE_COLUMNS = (
    Column("label", "Exchange", "name", note="An exchange, by its debug name"),
    *declared_columns(
        largest_exchanges,
        "kind/text@120 Kind",
        "bytes_received@110 Received",
        "bytes_sent@110 Sent",
        "code_bytes@110 Code",
        "cycles@100 Cycles",
    ),
)


MODULE_COLUMNS = (
    MODULE_NAME,
    MODULE_CLASS,
    SOURCE,
    *declared_columns(
        operation_costs,
        "cycles@110 Cycles",
        "share@110 Share",
        "peak_bytes Live at the peak",
        "variables@110 Variables",
        "code@110 Code",
    ),
)


PAGE = Declaration(
    PATH,
    TITLE,
    QUESTION,
    order=30,
    letter="i",
    icon="M6.3 11.5h3.4M7 13.7h2M6.3 11.5c0-2-2-2.6-2-5a3.7 3.7 0 0 1 7.4 0c0 2.4-2 3-2 5",
    controls={
        "of": ("Where", "Shows all tiles, one IPU, or one of the fullest tiles"),
        "filter": ("Filter by name", "Shows only rows whose name contains this text"),
    },
    tables=(
        ("Columns: variables at the peak", VARIABLE_COLUMNS),
        ("Columns: vertices", VERTEX_COLUMNS),
        ("Columns: exchanges", EXCHANGE_COLUMNS),
        ("Columns: by module", MODULE_COLUMNS),
    ),
    laws=ALL_TABLES,
    chapter="""\
**Does it fit, and what would make it smaller or faster?** Each finding says what was found,
where, what to try, and the most that this could save; its link leads to the view that shows it.
*Problem* is what keeps the program from running, *Could be less* what can be saved, *Note* what
is good to know.

Of several IPUs, one finding names the one that *bounds* the runs, as the others wait for it, and
the layers that could move to the IPU beside it. *Critical path* is explained at Execution.

Where the advice is a lever of `tilescope explore`, *Try it* is the command that tries it. In the
report of a point of an exploration, what the point with that lever saved stands beside the
estimate, and leads to both points in Explore.

Savings are upper bounds, and do not add up: two findings may be about the same bytes or cycles.
Rules whose data were not recorded are listed at the end, with the option that records them.

## Below the findings

The five fullest tiles, a histogram of how full all are, and the largest variables where liveness
peaks, vertices and exchanges, on all tiles or at one place. A report of PyTorch has its modules,
too, each with all that is within.
""",
)


def available(store: Store, report: str) -> bool:
    """Return whether there is anything that a rule looks at."""
    data = store.report(report).dataset
    return data.has("memory_by_tile") or data.has("steps")


def layout(store: Store, state: Address) -> Element:
    """Lay the page out; raises PvaError."""
    report = store.report(state.report)
    parts = [components.title(QUESTION)]
    try:
        parts.append(_fit(report))
    except NotRecordedError as problem:
        parts.append(components.headline(f"Memory not known: {problem.wanted}."))
    parts.append(view.panel("insights-findings", PATH, ()))
    if report.dataset.has("memory_by_tile"):
        parts.append(_tiles(report, state))
        parts.append(_largest(report, state))
    parts.append(view.panel("insights-unchecked", PATH, ()))
    return html.Div(parts)


def _fit(report: Report) -> Element:
    overview = memory.memory_overview(report)
    spare = overview.bytes_per_tile - overview.fullest_bytes
    words = (
        f"{units.size(spare)} are spare on the fullest tile."
        if spare >= 0
        else f"{units.size(-spare)} must be saved on the fullest tile."
    )
    mean = units.size(overview.mean_bytes)
    parts = (
        f"{words} The mean tile needs {mean}.",
        code_sentence(counted=overview.code_counted),
        run_sentence(report),
        other_runs_sentence(report),
    )
    detail = " ".join(filter(None, parts))
    return components.headline(fit_sentence(overview), fit_tone(overview), more=detail)


def examined(store: Store, state: Address) -> tuple[Frame, Frame]:
    """Return findings and unchecked rules; the words have the units that the reader chose."""
    found, lacking = untried(store, state)
    rows = with_trials(store.report(state.report), components.rows_of(found))
    return pd.DataFrame(columns_of(rows, (*analysis.FIELDS, *analysis.TRIALS))), lacking


def untried(store: Store, state: Address) -> tuple[Frame, Frame]:
    """Return the same without the trials of the findings, which are looked for among files."""
    report = store.report(state.report)
    ask = partial(_asked, store, state.report)
    name = f"insights {units.manner()}"

    def make() -> tuple[Frame, Frame]:
        found, lacking = analysis.examination(report, ask)
        findings = pd.DataFrame(columns_of(found, analysis.FIELDS))
        return findings, pd.DataFrame(columns_of(lacking, analysis.UNCHECKED))

    return store.derived(state.report, name, make)


def is_examined(store: Store, state: Address) -> bool:
    """Return whether all rules were asked of the report before, in the units of the reader."""
    return store.knows(state.report, f"insights {units.manner()}")


def _asked(store: Store, key: str, rule: analysis.Rule, report: Report) -> analysis.Answer:
    """Ask a rule once; who asks while another one does waits for this rule alone."""
    name = f"rule {rule.__name__} {units.manner()}"
    return store.derived(key, name, lambda: analysis.answer_of(rule, report))


def parts(store: Store, state: Address) -> Iterator[Callable[[], object]]:
    """Return what makes `examined`, a part for each rule; raises PvaError."""
    report = store.report(state.report)
    for _, rule in analysis.all_rules():
        yield partial(_asked, store, state.report, rule, report)
    yield partial(examined, store, state)


def findings(store: Store, state: Address, _theme: Theme) -> Element:
    """Show what was found, in a column about memory and one about time."""
    frame, _ = examined(store, state)
    first = frame[(frame["severity"] != "note") & (frame["saving"] > 0)].head(FIRST)
    columns = [
        html.Div(_column(store, state, frame[frame["about"] == about], words))
        for about, words in ABOUT.items()
    ]
    return html.Div([_first(store, state, first), html.Div(columns, className="columns")])


def _first(store: Store, state: Address, frame: Frame) -> Element:
    """List what saves most, of memory and of time."""
    if not len(frame):
        return None
    rows = [
        html.Li(
            [
                html.Span(ABOUT[row["about"]], className="severity note"),
                html.Div(
                    [
                        html.Strong(components.prose(row["what"])),
                        *_at_most(row),
                        _link(store, state, row),
                    ]
                ),
            ]
        )
        for row in components.rows_of(frame)
    ]
    return section("What to change first", html.Ol(rows, className="first-findings"),
                   note="by the most that it can save")  # fmt: skip


def _at_most(row: Mapping[str, Any]) -> list[Element]:
    words = f"at most {units.share(row['saving_share'])} of {row['of']}"
    return [html.Span(components.unbroken(words), className="quiet")]


def _column(store: Store, state: Address, frame: Frame, heading: str) -> Element:
    rows = components.rows_of(frame)
    tools = controls.exports("insights") if heading == ABOUT["memory"] else None
    body = components.message("No finding, or nothing was recorded.")
    if rows:
        body = html.Ul([_finding(store, state, row) for row in rows], className="findings")
    return section(heading, body, note=counted(len(rows), "finding"), tools=tools)


def _finding(store: Store, state: Address, row: dict[str, Any]) -> Element:
    """Show one finding: what, where, what to try, what that saves, and where to look."""
    parts: list[Element] = [
        html.Span(SEVERITIES[row["severity"]], className=f"severity {row['severity']}"),
        html.P(components.prose(row["what"]), className="finding-what"),
        html.P(components.prose(row["where"]), title=row["where"], className="finding-where"),
    ]
    if row["advice"]:
        parts.append(html.P(row["advice"], className="finding-advice"))
    if row["saving"] > 0:
        parts.append(_saving(row))
    if row["try_it"]:
        parts.append(_trial(store, state, row))
    link = _link(store, state, row)
    if link is not None:
        parts.append(link)
    return html.Li(parts, className=f"finding {row['severity']}")


def _saving(row: dict[str, Any]) -> Element:
    write = units.size if row["unit"] == "bytes" else units.cycles_in_words
    share = units.share(row["saving_share"])
    text = f"Saves at most {write(row['saving'])}: {share} of {row['of']}"
    bar = html.Span(className="saving-bar", style={"--part": str(row["saving_share"])})
    return html.Div([bar, html.Span(components.unbroken(text))], className="saving")


def _trial(store: Store, state: Address, row: dict[str, Any]) -> Element:
    """Show the command that tries an advice, and what it saved where it was tried."""
    parts: list[Element] = ["Try it: ", html.Code(row["try_it"])]
    if row["trial"]:
        write = units.size if row["unit"] == "bytes" else units.cycles_in_words
        saved = row["measured_saving"]
        words = f"{write(abs(saved))} {'saved' if saved >= 0 else 'more'}"
        measured = components.unbroken(f"Measured: {words}, of {write(row['saving'])} at most")
        parts += [html.Br(), _measured(store, state, row, measured)]
    return html.P(parts, className="finding-advice")


def _measured(store: Store, state: Address, row: dict[str, object], text: str) -> Element:
    """Lead to the comparison of both points, where the report is itself one of them."""
    if store.exploration(state.report) is None:
        return html.Span(text)
    both = f"{store.path(state.report).name},{row['trial']}"
    link = Address(explore.PATH, state.report, options=((explore.POINT, both),))
    return dcc.Link(text, href=address.write(link), className="finding-link")


def _link(store: Store, state: Address, row: dict[str, object]) -> Element:
    """Lead to the view that shows a finding; none where there is no such view."""
    link = finding_address(state.report, row)
    page = page_at(link.path)
    if page is None:
        return None
    command = f"tilescope show {row['show']} REPORT"
    return dcc.Link(
        f"Show in {page.title}", href=address.write(link), className="finding-link", title=command
    )


def unchecked(store: Store, state: Address, _theme: Theme) -> Element:
    """Name the rules whose data was not recorded."""
    _, frame = examined(store, state)
    if not len(frame):
        return None
    rows = [
        html.Tr([html.Th(row["tells"], scope="row"), html.Td(row["why"])])
        for row in components.rows_of(frame)
    ]
    grid = html.Table(html.Tbody(rows), className="facts")
    note = "what they look at was not recorded"
    return section(f"{counted(len(frame), 'rule')} not checked", grid, note=note)


def _tiles(report: Report, state: Address) -> Element:
    """Show the fullest tiles beside a histogram of all."""
    worst = memory.fullest_tiles(report, count=WORST_TILES).frame()
    limit = memory.memory_overview(report).bytes_per_tile
    rows = [_tile_row(row, limit, state) for row in worst.to_dict("records")]
    heading = "The fullest tile" if len(rows) == 1 else f"The {len(rows)} fullest tiles"
    tools = controls.exports("insights-histogram", "insights-histogram")
    return html.Div(
        [
            section(heading, html.Ol(rows, className="worst-tiles"), note="gaps included"),
            section(
                "How full the tiles are",
                view.plot("insights-histogram", PATH, (), height=220),
                tools=tools,
            ),
        ],
        className="columns",
    )


def _tile_row(row: Any, limit: int, state: Address) -> Element:
    link = address.write(with_object(state, "tile", row["tile"]))
    share = row["bytes"] / max(limit, 1)
    size = f"{units.size(row['bytes'])} of {units.size(limit)} ({units.share(share)})"
    over = " over" if row["free"] < 0 else ""
    return html.Li(
        [
            dcc.Link(f"Tile {row['tile']:,}", href=link),
            html.Span(f"IPU {row['ipu']}", className="quiet"),
            html.Span(className=f"tile-bar{over}", style={"--part": str(min(share, 1.0))}),
            html.Span(components.unbroken(size + (", out of memory" if over else ""))),
        ]
    )


def histogram(store: Store, state: Address, theme: Theme) -> Figure:
    """Draw how full the tiles are."""
    report = store.report(state.report)
    limit = memory.memory_overview(report).bytes_per_tile
    return figures.memory_histogram(
        memory.memory_histogram(report).frame(), limit=limit, theme=theme
    )


TABS = (
    ("variables", "Variables at the peak"),
    ("vertices", "Vertices"),
    ("exchanges", "Exchanges"),
)
BY_MODULE = ("modules", "By module")  # where the report tells modules of PyTorch
PICKS = {"variables": ("variable", "variable"), "exchanges": (KEY, KEY)}


def _largest(report: Report, state: Address) -> Element:
    """Show the largest variables, vertices and exchanges, of a place that is chosen."""
    ipus = int(report.dataset.of_replica("num_ipus"))
    worst = memory.fullest_tiles(report, count=WORST_TILES).frame()["tile"].tolist()
    places = [
        ("", "All tiles"),
        *((f"ipu-{ipu}", f"IPU {ipu}") for ipu in range(ipus if ipus > 1 else 0)),
        *((f"tile-{tile}", f"Tile {tile:,}") for tile in worst),
    ]
    tools = controls.row(
        [
            controls.select("of", places, state, label="Where", width=130),
            controls.filter_box("name", "Filter by name", state, width=170),
        ]
    )
    return section(
        "The largest",
        controls.tabs(_tabs(report), state),
        view.panel("insights-largest", PATH, ("tab", "of")),
        tools=tools,
    )


def _tabs(report: Report) -> tuple[tuple[str, str], ...]:
    return (*TABS, BY_MODULE) if has_modules(report) else TABS


def _place(state: Address) -> dict[str, int]:
    """Read where the tables look: everywhere, on an IPU or on a tile."""
    kind, _, number = state.text("of").partition("-")
    if kind in ("ipu", "tile") and number.isascii() and number.isdigit():
        return {kind: int(number)}
    return {}


def largest(store: Store, state: Address, _theme: Theme) -> Element:
    """Fill the panel with the chosen tab."""
    report = store.report(state.report)
    tab = state.option("tab", [value for value, _ in _tabs(report)])
    whole = tab in ("exchanges", "modules") and _place(state)
    note = "of the whole program, on all tiles" if whole else ""
    if tab == "variables" and not report.dataset.has("liveness_steps"):
        return components.message(report.dataset.why_absent("liveness_steps"))
    return html.Div(
        [
            html.Div(
                [
                    html.Span(note, className="note"),
                    html.Div(controls.exports(f"insights-{tab}"), className="tools"),
                ],
                className="tools-row compare-tools",
            ),
            tables.paged(
                f"insights-{tab}",
                _COLUMNS[tab],
                follows="filter,folded",
                picks=PICKS.get(tab),
            ),
        ]
    )


def variables(store: Store, state: Address) -> Frame:
    """Return what is live at the peak of the chosen place."""
    frame = liveness.live_at_peak(store.report(state.report), **_place(state)).frame()
    frame["words"] = [category_label(word) if word else "" for word in frame["category"]]
    frame["variable"] = frame["variable"].astype(object).where(frame["variable"] >= 0, None)
    frame["life"] = ["always" if always else "at the peak" for always in frame["always_live"]]
    frame["name"] = [CATEGORY_LABELS.get(name, name) for name in frame["name"]]
    return components.filtered(frame, state.filter)


def vertices(store: Store, state: Address) -> Frame:
    """Return the memory of vertices by type in the chosen place."""
    frame = memory.memory_by_vertex_type(store.report(state.report), **_place(state)).frame()
    frame["code"] = frame["code"].where(frame["code"] >= 0)
    return _named(frame, "vertex_type", state)


def exchanges(store: Store, state: Address) -> Frame:
    """Return the largest exchanges."""
    frame = largest_exchanges(store.report(state.report)).frame()
    frame["label"] = frame["name"].where(frame["name"] != "", "(without a name)")
    frame[KEY] = exchange_objects(store.report(state.report), frame)
    frame["code_bytes"] = frame["code_bytes"].where(frame["code_bytes"] >= 0)
    return _named(frame, "label", state)


def modules(store: Store, state: Address) -> Frame:
    """Return what each module of PyTorch costs with all within, unknown figures as missing."""
    report = store.report(state.report)
    if has_modules(report):
        frame = operation_costs(report, by=MODULE).frame()
    else:
        frame = operation_costs(report, layer=MODULE).frame().assign(source="", depth=0)
    figures = [column.field for column in MODULE_COLUMNS if column.kind in ("bytes", "cycles")]
    frame = frame.assign(**{name: frame[name].where(frame[name] >= 0) for name in figures})
    return branches(_named(frame, "operation", state), state)


def _named(frame: Frame, column: str, state: Address) -> Frame:
    """Filter by name, whatever the column of names is called."""
    frame = frame.assign(name=frame[column])
    return components.filtered(frame, state.filter)


_COLUMNS = {"variables": VARIABLE_COLUMNS, "vertices": VERTEX_COLUMNS,
            "exchanges": EXCHANGE_COLUMNS, "modules": MODULE_COLUMNS}  # fmt: skip


def register(app: Dash, store: Store) -> None:
    """Add the callbacks of the page."""
    view.fill(app, store, "insights-findings", findings)
    view.fill(app, store, "insights-unchecked", unchecked)
    view.draw(app, store, "insights-histogram", histogram)
    view.fill(app, store, "insights-largest", largest)
    makes = {"variables": variables, "vertices": vertices, "exchanges": exchanges}
    for tab, make in (makes | {"modules": modules}).items():
        tables.serve(app, store, PATH, f"insights-{tab}", _COLUMNS[tab], make)
        downloads.offer(app, f"insights-{tab}", make)
    downloads.offer(app, "insights", lambda store, state: examined(store, state)[0])
    downloads.offer(app, "insights-histogram", lambda store, state: memory.memory_histogram(
        store.report(state.report)).frame())  # fmt: skip
