"""Which operation costs most, in cycles, code and memory?"""

from __future__ import annotations

from dataclasses import replace

import dash_mantine_components as dmc
import numpy as np
from dash import ClientsideFunction, Dash, Input, Output, html

from dashboard import controls, downloads, tables, view
from dashboard.address import Address
from dashboard.declared import Declaration
from dashboard.details.objects import KEY
from dashboard.elements import components
from dashboard.elements.columns import declared_columns
from dashboard.elements.components import Column, Element, Frame
from dashboard.pages.headlines import code_sentence, other_runs_sentence
from dashboard.pages.module_tree import LEVELS, MODULE_NAME, SOURCE, branches
from dashboard.pages.operations import details as operation_details
from dashboard.pages.operations.headlines import costs_sentence, outside_words, reasons_sentence
from dashboard.pages.operations.totals import costs_in
from dashboard.pages.provenance import badge
from dashboard.store import Store
from pva.analysis.memory.totals import counts_code
from pva.analysis.operations.costs import operation_costs, total_of_costs
from pva.analysis.operations.layers import MODULE, software_layers
from pva.plot.theme import Theme

PATH, TITLE = "/operations", "Operations"
QUESTION = "Which operation costs most, in cycles, code and memory?"

TABLE = "operations-table"
# With the columns that are shown at first, the table fits a window of 1,440 pixels.
NAME, KIND = declared_columns(operation_costs, "operation/name@170 Operation", "kind/text@150 Kind")
# Columns to choose from.
CHOICES = declared_columns(
    operation_costs,
    "programs@100 Programs", "steps@90 Steps", "cycles@110 Cycles", "share@90 Share",
    "compute@115 Compute", "exchange@115 Exchange", "host_exchange@125 Host exchange",
    "sync@100 Sync", "estimated_cycles@110 Estimate", "flops@125 FLOPs", "code@90 Code",
    "control_code@120 Control code", "exchange_code@125 Exchange code",
    "vertex_code@115 Vertex code", "vertex_state@90 State", "variables@110 Variables",
    "peak_bytes@110 At the peak",
)  # fmt: skip
COLUMNS = (
    NAME,
    MODULE_NAME,
    SOURCE,
    KIND,
    Column("mark", "Mark", "text"),
    *CHOICES,
)
FIELDS = tuple(column.field for column in CHOICES)
DEFAULT = ("cycles", "share", "estimated_cycles", "flops", "code", "vertex_state", "peak_bytes")
FALLBACK = ("operation", "Operations")


PAGE = Declaration(
    PATH,
    TITLE,
    QUESTION,
    order=70,
    letter="o",
    icon="M2.5 3.5h11m-11 3h8m-8 3h5.5m-5.5 3h3",
    controls={
        "levels": (
            "Levels of the tree",
            "Opens so many levels of modules; single modules are opened by hand",
        ),
        "layer": (
            "Software layer",
            "Takes operations as Poplar's libraries, PopART, ONNX or your own scopes name them",
        ),
        "filter": ("Filter operations", "Shows only rows whose name contains this text"),
    },
    tables=(
        ("Columns: operations", tuple(column for column in COLUMNS if column.note)),
        ("Columns: compute sets of an operation", operation_details.COMPUTE_SET_COLUMNS),
        ("Columns: arithmetic of an operation", operation_details.FLOPS_COLUMNS),
    ),
    laws=(
        "programs",
        "compute_set",
        "vertex",
        "memory_by",
        "debug_contexts",
        "steps",
        "runs",
        "measured",
    ),
    chapter="""\
**Which operation costs most, in cycles, code and memory?** An operation is what a call of a
library, or a node of a model, was compiled into. *Columns* chooses what the table shows; a click
on a heading sorts by it; the first row adds all up. Cycles in no operation are told in the
sentence on top.

## Tabs

With an operation chosen: its figures, its programs, its code on each tile, its cycles by phase
and compute set, its arithmetic and how near that comes to the peak, and where it was made.
""",
)


def available(store: Store, report: str) -> bool:
    """Return whether the programs were recorded."""
    return store.report(report).dataset.has("programs")


def layout(store: Store, state: Address) -> Element:
    """Lay the page out; raises PvaError."""
    report = store.report(state.report)
    layers = store.derived(state.report, "layers", lambda: software_layers(report).frame())
    choices = list(zip(layers["layer"], layers["label"], strict=True)) or [FALLBACK]
    costs = costs_of(store, state, tree=False)
    code = code_sentence(counted=counts_code(report))
    sentences = reasons_sentence(costs), outside_words(costs), code, other_runs_sentence(report)
    detail = " ".join(filter(None, sentences))
    tools = html.Div(
        [
            controls.row(
                [
                    controls.choice("layer", choices, state, label="Software layer"),
                    *(
                        [controls.choice("levels", LEVELS, state, label="Levels of the tree")]
                        if MODULE in set(layers["layer"])
                        else []
                    ),
                ]
            ),
            badge(report, "steps"),
            controls.row(
                [
                    controls.filter_box("operation", "Filter operations", state),
                    _columns_menu(state),
                    controls.exports("operations"),
                ]
            ),
        ],
        className="tools-bar",
    )
    place = view.panel(
        "operations-place", PATH, ("layer", "levels", "columns", "filter"), name="fills"
    )
    above = html.Div([tools, html.Div(place, className="fills")], className="grow column")
    below = view.panel("operations-details", PATH, ("operation", "layer", "tab"), themed=True)
    return html.Div(
        [
            components.title(QUESTION),
            components.headline(f"{costs_sentence(costs)}{_where(store, state)}", more=detail),
            controls.split(above, below, name="operations"),
        ]
    )


def _where(store: Store, state: Address) -> str:
    """Return where the code is of the module that takes most cycles by itself."""
    if not is_tree(state):
        return ""
    tree = costs_of(store, state)
    tree = tree[~tree["operation"].str.startswith("(")]
    first = tree.iloc[int(tree["own_cycles"].argmax())]
    return f" {first['operation']} is at {first['source']}." if first["source"] else ""


def _columns_menu(state: Address) -> Element:
    boxes = dmc.CheckboxGroup(
        [dmc.Checkbox(label=column.title, value=column.field, size="xs") for column in CHOICES],
        id="operations-columns",
        value=list(chosen_fields(state)),
        className="columns-choice",
    )
    return html.Details(
        [
            html.Summary("Columns", title="Choose the columns"),
            html.Div(boxes, className="menu"),
        ],
        className="exports stays",
    )


def chosen_fields(state: Address) -> tuple[str, ...]:
    """Return the fields of the columns that the address asks for; what is no column is left out."""
    names = state.text("columns").split(",")
    return tuple(field for field in FIELDS if field in names) or DEFAULT


def costs_of(store: Store, state: Address, *, tree: bool = True) -> Frame:
    """Return the costs of the operations of the chosen layer; raises PvaError.

    Modules have the costs of all within, or without `tree` their own alone.
    """
    layer = state.text("layer", FALLBACK[0])
    by = MODULE if tree and layer == MODULE else ""
    return costs_in(store, state.report, layer, by)


def is_tree(state: Address) -> bool:
    """Return whether modules are shown, which are in one another."""
    return state.text("layer", FALLBACK[0]) == MODULE


def apart(costs: Frame) -> Frame:
    """Leave out the modules within others, so that nothing counts twice."""
    return costs[costs["depth"] == 0] if "depth" in costs else costs


def rows(store: Store, state: Address) -> Frame:
    """Return the rows of the table, unknown figures as missing; raises PvaError."""
    frame = components.filtered(_recorded(costs_of(store, state)), state.filter)
    frame = branches(frame, state) if is_tree(state) else frame.assign(label="", source="")
    name = state.text("operation")
    kind = {"operation": "operation", "scope": "layer"}.get(state.text("layer", FALLBACK[0]))
    if kind:
        frame = frame.assign(**{KEY: f"{kind}:" + frame["operation"]})
    return frame.assign(mark=np.where(frame["operation"] == name, "chosen", ""))


def _recorded(costs: Frame) -> Frame:
    return costs.assign(**{name: costs[name].where(costs[name] >= 0) for name in FIELDS})


def total(costs: Frame) -> Frame:
    """Add all operations up, as a frame of one row."""
    return total_of_costs(_recorded(costs), FIELDS).assign(operation="Total", kind="", mark="")


def table(store: Store, state: Address, theme: Theme) -> Element:
    """Make room for the table, with the columns that are chosen."""
    del theme
    frame = rows(store, state)
    fields = chosen_fields(state)
    if not state.text("columns"):  # what was not recorded is no column until it is asked for
        filled = {name for name in fields if frame[name].notna().any()}
        filled |= {"code"} - ({"code"} if counts_code(store.report(state.report)) else set())
        fields = tuple(name for name in fields if name in filled) or fields
    longest = max(map(len, costs_of(store, state)["kind"]), default=0)
    kind = replace(KIND, width=min(40 + 8 * longest, KIND.width))
    figures = [column for column in CHOICES if column.field in fields]
    named = [MODULE_NAME, SOURCE] if is_tree(state) else [NAME]
    shown = [*named, *([kind] if longest else []), *figures]
    if not len(frame):
        return components.message("No operation fits the filter.", hint="Clear the filter box.")
    measured = [name for name in fields if frame[name].notna().any()]
    order = next((name for name in ("cycles", "estimated_cycles", "code") if name in measured), "")
    sum_row = total(apart(components.filtered(costs_of(store, state), state.filter)))
    if is_tree(state):
        sum_row, order = sum_row.assign(label="Total", source=""), ""  # the tree has an order
    return tables.paged(
        TABLE,
        shown,
        rows=min(len(frame), 10),
        picks=("operation", "operation"),
        sort=order,
        total=sum_row,
        follows="folded" if is_tree(state) else "",
    )


def register(app: Dash, store: Store) -> None:
    """Add the callbacks of the page."""
    view.fill(app, store, "operations-place", table)
    tables.serve(app, store, PATH, TABLE, COLUMNS, rows)
    operation_details.register(app, store, "operations-details", costs_of)
    downloads.offer(
        app, "operations", lambda store, address: components.filtered(
            costs_of(store, address), address.filter
        ),
    )  # fmt: skip
    app.clientside_callback(
        ClientsideFunction("tilescope", "chooseColumns"),
        Input("operations-columns", "value"),
        prevent_initial_call=True,
    )
    app.clientside_callback(
        ClientsideFunction("tilescope", "showOperation"),
        Output(f"{TABLE}-note", "title"),
        Input("address", "search"),
        prevent_initial_call=True,
    )
