"""What does this program do, in which order, and which part takes the time?"""

from __future__ import annotations

from typing import Any

import dash_ag_grid as dag
import numpy as np
from dash import ClientsideFunction, Dash, Input, Output, State, ctx, dcc, html
from dash.exceptions import PreventUpdate

from dashboard import address, components, controls, downloads, tables, view
from dashboard.address import Address
from dashboard.components import Column, Element, Frame
from dashboard.pages import program_details
from dashboard.pages.program_words import line_words, more_words, stage_shares, stages_sentence
from dashboard.pages.provenance import badge
from dashboard.store import Store
from dashboard.theme import Theme
from pva.analysis import program_lines as lines
from pva.analysis.layers import DEFAULT, owners_in, software_layers
from pva.analysis.program_stages import program_stages
from pva.analysis.program_tree import program_tree
from pva.analysis.selection import SelectionError

PATH, TITLE = "/programs", "Program tree"

GRID, PLACE, FOUND = "programs-tree", "programs-place", "programs-found"
ALL = "all"
MOST_PARTS = 200  # control programs and functions to choose from; the others are in the whole tree
LEVELS = (("0", "All open"), ("1", "All closed"), *((str(n), f"{n} levels") for n in range(2, 7)))
STATE = ("part", "level", "turned", "syncs", "program", "layer")  # what the lines depend on
SENT = (
    Column("program", "Row", "text"),
    Column("depth", "Depth", "text"),
    Column("fold", "Open", "text"),
    Column("type", "Type", "text"),
    Column("words", "Kind", "text"),
    Column("mark", "Mark", "text"),
    Column("name", "Program", "name", note="Its kind, and its debug name"),
    Column("executions", "Ran", "number", 70, "How often it ran in the recorded runs"),
    Column("cycles", "Cycles", "cycles", 104, "By how much it and its parts made the recorded runs "
           "longer; a function's are shared out among its calls"),
    Column("share", "Share", "share", 80, "Of the cycles of the recorded runs"),
    Column("mean_cycles", "Once", "cycles", 92, "One execution on average, as it was recorded"),
    Column("estimated_cycles", "Estimate", "cycles", 96,
           "One execution, by the estimates of the compiler, its parts included"),
)  # fmt: skip
_FIGURES = ("executions", "cycles", "share", "mean_cycles", "estimated_cycles")
_COUNTED = ("executions", "cycles", "estimated_cycles")


def available(store: Store, report: str) -> bool:
    """Tell whether the programs were recorded."""
    return store.report(report).dataset.has("program_children")


def layout(store: Store, chosen: Address) -> Element:
    """Lay the page out; raises PvaError."""
    report = store.report(chosen.report)
    tree = whole_tree(store, chosen.report)
    data = report.dataset
    absent = "" if data.has("steps") else f" No steps: {data.why_absent('steps')}."
    stages = store.derived(chosen.report, "program_stages", lambda: program_stages(report))
    above = html.Div(
        [
            _tools(store, report, chosen, tree),
            html.Div(_grid(executed=data.has("steps")), className="grow"),
            html.Div(id=f"{GRID}-note", className="hidden"),
        ],
        className="grow column",
    )
    below = view.panel("programs-details", PATH, ("program", "tab", "layer"), themed=True)
    return html.Div(
        [
            components.title("What does this program do, in which order, and where is the time?"),
            components.headline(
                stages_sentence(stages, recorded=data.has("steps")),
                more=more_words(tree) + absent,
            ),
            stage_shares(stages, chosen),
            controls.split(above, below, name="programs"),
            dcc.Store(id="programs-goto"),
        ]
    )


def whole_tree(store: Store, key: str) -> Frame:
    """Give the tree of a report, laid out once; raises PvaError."""
    return store.derived(key, "program_tree", lambda: program_tree(store.report(key)))


def _tools(store: Store, report: Any, chosen: Address, tree: Frame) -> Element:
    layers = store.derived(chosen.report, "layers", lambda: software_layers(report))
    related = [(name, f"Related: {label}") for name, label in layers[["layer", "label"]].to_numpy()]
    buttons = [
        html.Button(
            words,
            id=f"programs-{name}",
            className="button",
            title=title,
            **{"aria-label": title},
        )
        for name, words, title in (
            ("previous", "↑", "Previous step found (Shift Enter)"),
            ("next", "↓", "Next step found (Enter)"),
        )
    ]
    return html.Div(
        [
            controls.row(
                [
                    controls.select("part", _parts(tree), chosen, label="Part", width=160),
                    controls.select("level", LEVELS, chosen, label="Open levels", width=110),
                    controls.select(
                        "layer",
                        related,
                        chosen,
                        label="Steps of one operation, by layer",
                        width=170,
                    ),
                    controls.switch("syncs", "Syncs", chosen, on=True),
                ]
            ),
            view.panel(PLACE, PATH, STATE, name="note"),
            badge(report, "steps"),
            controls.row(
                [
                    view.panel(FOUND, PATH, ("find", "program"), name="note"),
                    controls.box("find", "Search for steps", chosen, width=190),
                    *buttons,
                    controls.exports("program-tree"),
                ]
            ),
        ],
        className="tools-bar",
    )


def _parts(tree: Frame) -> list[tuple[str, str]]:
    """List control programs and functions."""
    roots = tree[tree["parent"] < 0].head(MOST_PARTS)
    words = {"control": "Control program", "function": "Function"}
    choices = [
        (f"{part}-{number}", f"{words[part]} {number}" + (f" ({name})" if name else ""))
        for part, number, name in zip(roots["part"], roots["number"], roots["name"], strict=True)
    ]
    return [(ALL, "All programs"), *choices]


def _grid(*, executed: bool) -> Element:
    shown = ("name", *_FIGURES) if executed else ("name", "estimated_cycles")
    definitions = [
        components.column_definition(column) | {"sortable": False}
        for column in SENT
        if column.field in shown
    ]
    definitions[0] |= {"cellRenderer": "ProgramLine", "minWidth": 280, "tooltipField": "name"}
    return dag.AgGrid(
        id=GRID,
        rowModelType="infinite",
        columnDefs=definitions,
        defaultColDef={"resizable": True, "suppressMovable": True},
        getRowId="'' + params.data.program",
        dashGridOptions={
            "rowHeight": 26,
            "headerHeight": components.HEADER_PIXELS,
            "cacheBlockSize": tables.BLOCK,
            "maxBlocksInCache": 4,
            "maxConcurrentDatasourceRequests": 1,  # as in `tables.paged`
            "blockLoadDebounceMillis": 40,
            "infiniteInitialRowCount": 1,
            "animateRows": False,
            "tooltipShowDelay": 500,
            "rowClassRules": {
                mark: f"params.data && params.data.mark == '{mark}'"
                for mark in ("chosen", "related")
            },
        },
        className="table program-tree",
        style={"height": "100%"},
    )


def shown_lines(store: Store, chosen: Address) -> Frame:
    """Give the lines that are seen, with what stands on each; raises PvaError."""
    tree = whole_tree(store, chosen.report)
    opened, seen = _seen(tree, chosen)
    written = store.derived(chosen.report, "program_lines", lambda: _written(tree))
    fold = np.where(opened, "open", np.where(written["has_parts"], "closed", ""))
    found: Frame = written[seen]
    return found.assign(fold=fold[seen], mark=_marks(store, chosen, tree)[seen])


def _written(tree: Frame) -> Frame:
    """Give what stands on each line, whatever is chosen."""
    columns = [column.field for column in SENT if column.field in tree]
    known = {name: tree[name].where(tree[name] >= 0) for name in columns if name in _COUNTED}
    has_parts = tree["end"] > tree.index + 1
    return tree[columns].assign(**known, words=line_words(tree), has_parts=has_parts)


def _seen(tree: Frame, chosen: Address) -> tuple[Any, Any]:
    """Tell which lines are open, and which are seen."""
    level = int(chosen.option("level", [value for value, _ in LEVELS]))
    opened = lines.open_lines(tree, level=level, turned=turned(chosen))
    seen = lines.visible_lines(tree, opened)
    part = chosen.text("part", ALL)
    if part != ALL:
        inside = ((tree["part"] + "-" + tree["number"].astype(str)) == part).to_numpy()
        if not inside.any():
            raise SelectionError(
                f"part={part}", "not there", "as in part=control-0, part=function-0"
            )
        seen &= inside
    if chosen.option("syncs", ("on", "off")) == "off":
        seen &= (tree["type"] != "Sync").to_numpy()
    return opened, seen


def turned(chosen: Address) -> set[int]:
    """Give the programs that are open or closed other than their level has it.

    `turned=2:13,40` counts at level 2 alone: to choose another level starts anew.
    """
    level, colon, rows = chosen.text("turned").rpartition(":")
    if colon and level != chosen.text("level", LEVELS[0][0]):
        return set()
    return {int(row) for row in rows.split(",") if row.isascii() and row.isdigit()}


def _marks(store: Store, chosen: Address, tree: Frame) -> Any:
    """Mark the chosen line, and those of the same operation."""
    marks = np.full(len(tree), "", dtype=object)
    line = chosen_line(tree, chosen)
    if line < 0:
        return marks
    report = store.report(chosen.report)
    layer = chosen.text("layer", DEFAULT)
    owners = store.derived(chosen.report, f"owners {layer}", lambda: owners_in(report, layer))
    marks[lines.related_lines(tree, owners, line)] = "related"
    marks[line] = "chosen"
    return marks


def chosen_line(tree: Frame, chosen: Address) -> int:
    """Give the line of the program in the address, -1 for none."""
    text = chosen.text("program")
    if not (text.isascii() and text.isdigit()):
        return -1
    found = np.flatnonzero(tree["program"] == int(text))
    return int(found[0]) if len(found) else -1


def place(store: Store, chosen: Address, theme: Theme) -> Element:
    """Say how many lines are seen, and for the browser which of them is the chosen one."""
    del theme
    tree = whole_tree(store, chosen.report)
    _, seen = _seen(tree, chosen)
    line = chosen_line(tree, chosen)
    at = int(seen[:line].sum()) if line >= 0 and seen[line] else -1
    count = int(seen.sum())
    words = f"{count:,} lines" if count == len(tree) else f"{count:,} of {len(tree):,} lines"
    # With an id it stays a component of Dash, whose properties assets/programs.js reads.
    return html.Span(words, id="programs-line", **{"data-line": str(at), "data-lines": str(count)})


def search_words(store: Store, chosen: Address, theme: Theme) -> str:
    """Say how many steps were found, and which of them is chosen."""
    del theme
    text = chosen.text("find")
    if not text:
        return ""
    tree = whole_tree(store, chosen.report)
    found = lines.found_lines(tree, text)
    at = np.flatnonzero(found == chosen_line(tree, chosen))
    return f"{at[0] + 1:,} of {len(found):,}" if len(at) else f"{len(found):,} found"


def go_on(store: Store, chosen: Address, text: str, *, backwards: bool) -> dict[str, Any]:
    """Choose the next step found, and open what it lies in; raises PvaError."""
    tree = whole_tree(store, chosen.report)
    found = lines.found_lines(tree, text.strip())
    line = lines.following(found, chosen_line(tree, chosen), backwards=backwards)
    if line < 0:
        return {"find": text.strip()}
    opened, seen = _seen(tree, chosen)
    closed = set(lines.closed_above(tree, opened, line).tolist())
    rows = ",".join(map(str, sorted(turned(chosen) ^ closed)))
    level = chosen.text("level", LEVELS[0][0])
    hidden = not seen[line] and not closed
    return {
        "find": text.strip(),
        "program": str(tree["program"][line]),
        "turned": f"{level}:{rows}" if rows else "",
        **({"part": "", "syncs": ""} if hidden else {}),
    }


def register(app: Dash, store: Store) -> None:
    """Add the callbacks of the page."""
    tables.serve(app, store, PATH, GRID, SENT, shown_lines)
    view.fill(app, store, PLACE, place)
    view.fill(app, store, FOUND, search_words)
    program_details.register(app, store, "programs-details")
    downloads.offer(app, "program-tree", lambda store, chosen: whole_tree(store, chosen.report))

    def search(
        _next: int | None, _previous: int | None, _enter: int | None, text: str | None, link: str
    ) -> Any:
        if not text:
            raise PreventUpdate
        backwards = ctx.triggered_id == "programs-previous"
        return go_on(store, address.parse(PATH, link), text, backwards=backwards)

    find: Any = {"box": "find", "column": ""}
    app.callback(
        Output("programs-goto", "data"),
        Input("programs-next", "n_clicks"),
        Input("programs-previous", "n_clicks"),
        Input(find, "n_submit"),
        State(find, "value"),
        State("address", "search"),
        prevent_initial_call=True,
    )(components.or_nothing(search))
    for function, inputs in (
        ("goTo", [Input("programs-goto", "data")]),
        ("showLine", [Input(PLACE, "children")]),
        ("pickProgram", [Input(GRID, "cellClicked")]),
    ):
        app.clientside_callback(
            ClientsideFunction("tilescope", function), *inputs, prevent_initial_call=True
        )
