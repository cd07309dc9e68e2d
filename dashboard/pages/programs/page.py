"""What does this program do, in which order, and which part takes the time?"""

from __future__ import annotations

from typing import Any

import dash_ag_grid as dag
import numpy as np
import numpy.typing as npt
from dash import ClientsideFunction, Dash, Input, Output, State, ctx, dcc, html
from dash.exceptions import PreventUpdate

from dashboard import address, controls, downloads, tables, view
from dashboard.address import Address
from dashboard.declared import Declaration
from dashboard.elements import components
from dashboard.elements.columns import declared_columns
from dashboard.elements.components import Column, Element, Frame
from dashboard.pages.programs import details as program_details
from dashboard.pages.programs.headlines import (
    line_words,
    more_words,
    stage_shares,
    stages_sentence,
    written_sentence,
)
from dashboard.pages.programs.stage import (
    StageTree,
    owners_at,
    selector,
    stage_of,
    stage_tree,
    whole_tree,
)
from dashboard.pages.provenance import badge
from dashboard.store import Report, Store
from pva.analysis.operations.layers import software_layers
from pva.analysis.programs import lines
from pva.analysis.programs.compilation import WRITTEN, compiled_types
from pva.analysis.programs.hierarchy import program_tree
from pva.analysis.programs.outline import program_stages
from pva.analysis.programs.written import written_roles
from pva.analysis.selection import SelectionError
from pva.plot.theme import Theme

PATH, TITLE = "/programs", "Program tree"
QUESTION = "What does this program do, in which order, and where is the time?"

GRID, PLACE, FOUND = "programs-tree", "programs-place", "programs-found"
HEAD, PARTS = "programs-head", "programs-parts"
ALL = "all"
MAX_PARTS = 200  # control programs and functions to choose from; the others are in the whole tree
LEVELS = (("0", "All open"), ("1", "All closed"), *((str(n), f"{n} levels") for n in range(2, 7)))
# What the lines depend on.
STATE = ("stage", "part", "level", "turned", "syncs", "program", "layer")
SENT = (
    Column("program", "Row", "text"),
    Column("depth", "Depth", "text"),
    Column("fold", "Open", "text"),
    Column("type", "Type", "text"),
    Column("words", "Kind", "text"),
    Column("mark", "Mark", "text"),
    Column("name", "Program", "name", note="Its kind, and its debug name"),
    *declared_columns(
        program_tree, "executions@70 Ran", "cycles@104 Cycles", "share@80 Share",
        "mean_cycles@92 Once", "estimated_cycles@96 Estimate",
    ),
)  # fmt: skip
_FIGURES = ("executions", "cycles", "share", "mean_cycles", "estimated_cycles")
_COUNTED = ("executions", "cycles", "estimated_cycles")


PAGE = Declaration(
    PATH,
    TITLE,
    QUESTION,
    objects={"program": {"": "program"}},
    order=60,
    letter="p",
    icon="M2.5 3.5h4m-2 0v9H8M4.5 8H8m2.5 0h3m-3 4.5h3",
    controls={
        "stage": (
            "Stage of the compilation",
            (
                "Shows the programs as they were compiled, or as they were "
                "written: as given to the engine, each with what it became"
            ),
        ),
        "part": ("Part", "Shows one control program or function instead of all"),
        "level": (
            "Open levels",
            "Opens the tree down to a level; single lines are opened by hand",
        ),
        "layer": (
            "Related",
            (
                "Chooses the software layer by which steps belong to one "
                "operation: those of the chosen step's are marked"
            ),
        ),
        "syncs": ("Syncs", "Shows or hides the syncs"),
        "find": (
            "Search for steps",
            (
                "Enter and Shift Enter go to the next and the previous step"
                " whose name contains this text"
            ),
        ),
    },
    tables=(
        ("Columns: the tree", tuple(column for column in SENT if column.note)),
        ("Columns: vertices", program_details.VERTEX_COLUMNS),
        ("Columns: variables", program_details.VARIABLE_COLUMNS),
        ("Columns: debug", program_details.CONTEXT_COLUMNS),
    ),
    laws=(
        "program",
        "control_programs",
        "function_programs",
        "written",
        "compute_set",
        "vertex",
        "exchange_",
        "external_",
        "debug_contexts",
        "steps",
    ),
    chapter="""\
**What does this program do, in which order, and which part takes the time?** A line is a program;
what it holds is indented below it. The colour tells its kind, as in the timeline. Control
programs are those that can be run, functions are called from several places. *As written* shows
the programs that were given to the engine, each with what it became and what that costs.

Click a line for its details; other steps of the same operation are then marked. Arrow keys go
from line to line, and open and close them.

## Tabs

| Tab | What it shows |
| --- | --- |
| Details | what the step is, how often it ran and what it took; links to Liveness and Execution |
| Tiles | cycles or bytes a tile |
| Vertices | which vertices it runs |
| Variables | what it reads and writes |
| Debug | which layers of the software made it, down to file and line |
""",
)


def available(store: Store, report: str) -> bool:
    """Return whether the programs were recorded."""
    return store.report(report).dataset.has("program_children")


def layout(store: Store, state: Address) -> Element:
    """Lay the page out; raises PvaError."""
    report = store.report(state.report)
    data = report.dataset
    tree = stage_tree(store, state).lines
    above = html.Div(
        [
            _tools(store, report, state),
            html.Div(
                _grid(tree, executed=data.has("steps")),
                className="grow",
                **{"data-picks-key": "program", "data-picks-field": "program"},
            ),
            html.Div(id=f"{GRID}-note", className="hidden"),
        ],
        className="grow column",
    )
    keys = ("stage", "program", "tab", "layer")
    below = view.panel("programs-details", PATH, keys, themed=True)
    return html.Div(
        [
            components.title(QUESTION),
            view.panel(HEAD, PATH, ("stage",)),
            stage_shares(_stages(store, state), state),
            controls.split(above, below, name="programs"),
            dcc.Store(id="programs-goto"),
        ]
    )


def _stages(store: Store, state: Address) -> Frame:
    report = store.report(state.report)
    return store.derived(state.report, "program_stages", lambda: program_stages(report).frame())


def head(store: Store, state: Address, theme: Theme) -> Element:
    """Answer the question of the page, for the chosen stage; raises PvaError."""
    del theme
    report, key = store.report(state.report), state.report
    data, tree = report.dataset, whole_tree(store, key)
    recorded = data.has("steps")
    if stage_of(report, state) == WRITTEN:
        types = store.derived(key, "compiled_types", lambda: compiled_types(report).frame())
        sentence, detail = written_sentence(whole_tree(store, key, WRITTEN), types)
        return components.headline(sentence, more=detail)
    absent = "" if recorded else f" No steps: {data.why_absent('steps')}."
    return components.headline(
        stages_sentence(_stages(store, state), recorded=recorded), more=more_words(tree) + absent
    )


def parts_choice(store: Store, state: Address, theme: Theme) -> Element:
    """Choose a control program or function of the stage; raises PvaError."""
    del theme
    parts = _parts(stage_tree(store, state).lines)
    return controls.select("part", parts, state, label="Part", width=160)


def _tools(store: Store, report: Report, state: Address) -> Element:
    layers = store.derived(state.report, "layers", lambda: software_layers(report).frame())
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
                    selector(report, state),
                    view.panel(PARTS, PATH, ("stage", "part")),
                    controls.select("level", LEVELS, state, label="Open levels", width=110),
                    controls.select(
                        "layer",
                        related,
                        state,
                        label="Steps of one operation, by layer",
                        width=190,
                    ),
                    controls.switch("syncs", "Syncs", state, on=True),
                ]
            ),
            view.panel(PLACE, PATH, STATE, name="note"),
            badge(report, "steps"),
            controls.row(
                [
                    view.panel(FOUND, PATH, ("stage", "find", "program"), name="note"),
                    controls.box("find", "Search for steps", state, width=190),
                    *buttons,
                    controls.exports("program-tree"),
                ]
            ),
        ],
        className="tools-bar",
    )


def _parts(tree: Frame) -> list[tuple[str, str]]:
    """List control programs and functions."""
    roots = tree[tree["parent"] < 0].head(MAX_PARTS)
    words = {"control": "Control program", "function": "Function"}
    choices = [
        (f"{part}-{number}", f"{words[part]} {number}" + (f" ({name})" if name else ""))
        for part, number, name in zip(roots["part"], roots["number"], roots["name"], strict=True)
    ]
    return [(ALL, "All programs"), *choices]


def _grid(tree: Frame, *, executed: bool) -> Element:
    shown = ("name", *_FIGURES) if executed else ("name", "estimated_cycles")
    columns = [column for column in SENT if column.field in shown]
    figures = [column for column in columns[1:] if column.field in tree]
    largest = components.formatted(tree[[column.field for column in figures]].agg(["max"]), figures)
    definitions = [
        components.column_definition(column) | {"sortable": False}
        for column in components.widened(columns, largest)
    ]
    definitions[0] |= {"cellRenderer": "ProgramLine", "minWidth": 340, "tooltipField": "name"}
    return dag.AgGrid(
        id=GRID,
        rowModelType="infinite",
        columnDefs=definitions,
        defaultColDef={"resizable": True, "suppressMovable": True},
        getRowId="'' + params.data.program",
        dashGridOptions=components.GRID
        | {
            "rowHeight": 26,
            "cacheBlockSize": tables.BLOCK,
            "maxBlocksInCache": 4,
            "maxConcurrentDatasourceRequests": 1,  # as in `tables.paged`
            "blockLoadDebounceMillis": 40,
            "infiniteInitialRowCount": 1,
            "enableCellTextSelection": False,
            "rowClassRules": {
                mark: f"params.data && params.data.mark == '{mark}'"
                for mark in ("chosen", "related")
            },
        },
        className="table program-tree",
        style={"height": "100%"},
    )


def shown_lines(store: Store, state: Address) -> Frame:
    """Return the lines that are seen, with what stands on each; raises PvaError."""
    tree = stage_tree(store, state)
    opened, seen = _seen(tree.lines, state)
    shown = store.derived(
        state.report, f"program_lines {tree.stage}", lambda: _said(store, state, tree)
    )
    fold = np.where(opened, "open", np.where(shown["has_parts"], "closed", ""))
    frame: Frame = shown[seen]
    return frame.assign(fold=fold[seen], mark=_marks(store, state, tree)[seen])


def _said(store: Store, state: Address, of_stage: StageTree) -> Frame:
    """Return what stands on each line, whatever is chosen."""
    tree = of_stage.lines
    roles = None
    if of_stage.stage == WRITTEN:
        roles = written_roles(store.report(state.report))[of_stage.rows]
    columns = [column.field for column in SENT if column.field in tree]
    counts = {name: tree[name].where(tree[name] >= 0) for name in columns if name in _COUNTED}
    has_parts = tree["end"] > tree.index + 1
    return tree[columns].assign(**counts, words=line_words(tree, roles), has_parts=has_parts)


def _seen(tree: Frame, state: Address) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return which lines are open, and which are seen."""
    level = int(state.option("level", [value for value, _ in LEVELS]))
    opened = lines.open_lines(tree, level=level, turned=turned(state))
    seen = lines.visible_lines(tree, opened)
    return opened, seen & _asked(tree, state)


def _asked(tree: Frame, state: Address) -> npt.NDArray[np.bool_]:
    """Return which lines are of the chosen part, and no syncs where these are left out."""
    mask = np.ones(len(tree), dtype=bool)
    part = state.text("part", ALL)
    if part != ALL:
        inside = ((tree["part"] + "-" + tree["number"].astype(str)) == part).to_numpy()
        if not inside.any():
            raise SelectionError(
                f"part={part}", "not there", "as in part=control-0, part=function-0"
            )
        mask &= inside
    if state.option("syncs", ("on", "off")) == "off":
        mask &= (tree["type"] != "Sync").to_numpy()
    return mask


def turned(state: Address) -> set[int]:
    """Return the programs that are open or closed other than their level has it.

    `turned=2:13,40` counts at level 2 alone: to choose another level starts anew.
    """
    level, colon, rows = state.text("turned").rpartition(":")
    if colon and level != state.text("level", LEVELS[0][0]):
        return set()
    return {int(row) for row in rows.split(",") if row.isascii() and row.isdigit()}


def _marks(store: Store, state: Address, tree: StageTree) -> Any:
    """Mark the chosen line, and those of the same operation."""
    marks = np.full(len(tree.lines), "", dtype=object)
    line = tree.line(state.text("program"))
    if line < 0:
        return marks
    rows = tree.lines.assign(program=tree.rows)
    marks[lines.related_lines(rows, owners_at(store, state, tree.stage), line)] = "related"
    marks[line] = "chosen"
    return marks


def place(store: Store, state: Address, theme: Theme) -> Element:
    """Return how many lines are seen, and for the browser which of them is the chosen one."""
    del theme
    tree = stage_tree(store, state)
    _, seen = _seen(tree.lines, state)
    count, at = lines.line_place(seen, tree.line(state.text("program")))
    words = f"{count:,} lines" if count == len(seen) else f"{count:,} of {len(seen):,} lines"
    # With an id it stays a component of Dash, whose properties assets/programs.js reads.
    return html.Span(words, id="programs-line", **{"data-line": str(at), "data-lines": str(count)})


def search_words(store: Store, state: Address, theme: Theme) -> str:
    """Return how many steps were found, and which of them is chosen."""
    del theme
    text = state.text("find")
    if not text:
        return ""
    tree = stage_tree(store, state)
    hits = lines.found_lines(tree.lines, text)
    at = np.flatnonzero(hits == tree.line(state.text("program")))
    return f"{at[0] + 1:,} of {len(hits):,}" if len(at) else f"{len(hits):,} found"


def go_on(store: Store, state: Address, text: str, *, backwards: bool) -> dict[str, object]:
    """Choose the next step found, and open what it lies in; raises PvaError."""
    of_stage = stage_tree(store, state)
    tree = of_stage.lines
    hits = lines.found_lines(tree, text.strip())
    line = lines.following(hits, of_stage.line(state.text("program")), backwards=backwards)
    if line < 0:
        return {"find": text.strip()}
    opened, seen = _seen(tree, state)
    closed = set(lines.closed_above(tree, opened, line).tolist())
    rows = ",".join(map(str, sorted(turned(state) ^ closed)))
    level = state.text("level", LEVELS[0][0])
    hidden = not seen[line] and not closed
    return {
        "find": text.strip(),
        "program": str(tree["program"][line]),
        "turned": f"{level}:{rows}" if rows else "",
        **({"part": "", "syncs": ""} if hidden else {}),
    }


def tree_offered(store: Store, state: Address) -> Frame:
    """Return the lines of the chosen stage for a file, folded or not; raises PvaError."""
    tree = whole_tree(store, state.report, stage_of(store.report(state.report), state))
    lines: Frame = tree[_asked(tree, state)]
    return lines


def register(app: Dash, store: Store) -> None:
    """Add the callbacks of the page."""
    tables.serve(app, store, PATH, GRID, SENT, shown_lines)
    view.fill(app, store, PLACE, place)
    view.fill(app, store, FOUND, search_words)
    program_details.register(app, store, "programs-details")
    view.fill(app, store, HEAD, head)
    view.fill(app, store, PARTS, parts_choice)
    downloads.offer(app, "program-tree", tree_offered)

    def search(
        _next: int | None, _previous: int | None, _enter: int | None, text: str | None, link: str
    ) -> Any:
        if not text:
            raise PreventUpdate
        components.check_texts(text, link)
        backwards = ctx.triggered_id == "programs-previous"
        return go_on(store, address.parse(PATH, link), text, backwards=backwards)

    find: Any = {"box": "find", "column": "", "page": PATH}
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
    ):
        app.clientside_callback(
            ClientsideFunction("tilescope", function), *inputs, prevent_initial_call=True
        )
