"""Where do these data come from, and where do they go?

Drawn is what lies around the chosen nodes alone, so that a graph of any size can be read: a click
puts a node in the middle, Shift-click opens one more beside it, or closes it again.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from dash import Dash, dcc, html

from dashboard import address, controls, downloads, tables, view
from dashboard.address import Address
from dashboard.declared import ONE_IPU, Declaration
from dashboard.details.object_rows import node_objects
from dashboard.details.objects import KEY
from dashboard.elements import components
from dashboard.elements.columns import declared_columns
from dashboard.elements.components import Column, Element, Frame
from dashboard.elements.overview import magnifier
from dashboard.figures import graph as figures
from dashboard.pages.headlines import counted
from dashboard.pages.liveness.tabs import scope_words
from dashboard.store import Report, Store
from pva import units
from pva.analysis.memory import computation_graph as analysis
from pva.analysis.memory.placement import largest_variables, variable_by_tile
from pva.analysis.memory.totals import category_label
from pva.analysis.selection import SelectionError
from pva.plot.axes import Figure
from pva.plot.theme import Theme

PATH, TITLE = "/graph", "Computation graph"
QUESTION = "Where do these data come from, and where do they go?"

NODE = "node"  # the key of the address: what is in the middle, and what is opened beside it
PLACE = ("ipu", "tile")  # the keys of the address that say where; a tile is narrower
MAX_DRAWN = 10  # neighbours of a node
COMPUTE = "OnTileExecute"
KIND = Column("words", "Kind", "text", 150, "A variable, or the kind of program")
NODE_COLUMNS = (
    *declared_columns(analysis.graph_nodes, "name/name Name"),
    KIND,
    *declared_columns(
        analysis.graph_nodes, "bytes@120 Bytes", "reads@100 Reads", "writes@100 Writes"
    ),
)
NEIGHBOUR_COLUMNS = (
    Column("does", "Access", "text", 120, "Whether the data come from there or go there"),
    Column("name", "Name", "name", note="The neighbour of what is in the middle"),
    KIND,
    *declared_columns(analysis.graph_edges, "bytes@120 Bytes"),
)
TABS = (
    ("details", "Details"),
    ("compute-sets", "Compute sets"),
    ("variables", "Variables"),
    ("copies", "Copies"),
)


PAGE = Declaration(
    PATH,
    TITLE,
    QUESTION,
    objects={"node": {"v": "variable", "p": "program"}},
    order=80,
    letter="g",
    icon=(
        "M6 4a2 2 0 1 1-4 0 2 2 0 0 1 4 0zm8 4a2 2 0 1 1-4 0 2 2 0 0 1 "
        "4 0zm-8 4a2 2 0 1 1-4 0 2 2 0 0 1 4 0zM5.8 4.9l4.4 2.2m-4.4 4 "
        "4.4-2.2"
    ),
    controls={
        "ipu": ONE_IPU,
        "tile": ("One tile", "Shows only what lies on this tile"),
        "filter": ("Filter by name", "Shows only rows whose name contains this text"),
    },
    tables=(
        ("Columns: nodes", NODE_COLUMNS),
        ("Columns: neighbours", NEIGHBOUR_COLUMNS),
    ),
    laws=("graph", "variable", "compute_set", "vertex", "debug_contexts"),
    chapter="""\
**Where do these data come from, and where do they go?** Boxes with sharp corners are variables,
rounded ones read and write them; an arrow leads from a variable to the program that reads it, or
from a program to what it writes. Only what is around the chosen node is drawn, so that a graph of
any size can be read. At first that is the program at the peak of liveness.

Click a box to put it in the middle, with Shift to open it beside, or close it again. The tables
below list all variables, compute sets and copies; a click on a row puts it in the middle.
""",
)


def available(store: Store, report: str) -> bool:
    """Return whether it was recorded who reads and writes the variables."""
    return store.report(report).dataset.has("access")


def layout(store: Store, state: Address) -> Element:
    """Lay the page out; raises PvaError."""
    report = store.report(state.report)
    head = components.title(QUESTION)
    if not analysis.has_accesses(report):
        return html.Div([head, components.message("No program reads or writes a variable.")])
    above = [
        _head(report, state),
        view.plot("graph-plot", PATH, (NODE, *PLACE), height=0, picks=NODE),
    ]
    keys = (NODE, *PLACE, "tab", "filter")
    below = html.Div(
        [controls.tabs(TABS, state), _tools(state), view.panel("graph-details", PATH, keys)]
    )
    return html.Div(
        [
            head,
            view.panel("graph-answer", PATH, (NODE, *PLACE)),
            controls.split(above, below, name="graph"),
        ]
    )


def _head(report: Report, state: Address) -> Element:
    note = "click a box to put it in the middle, Shift-click to open it beside; drag to move"
    legend = [
        html.Span(words, className=f"graph-key {kind}")
        for kind, words in (("variable", "Variable"), ("compute", "Compute set"),
                            ("exchange", "Exchange"), ("stream", "Stream copy"))
    ]  # fmt: skip
    ipus = int(report.dataset.of_replica("num_ipus"))
    of_ipu = [("", "All tiles"), *((str(ipu), f"IPU {ipu}") for ipu in range(ipus))]
    where = [controls.select("ipu", of_ipu, state, label="IPU", width=110)] if ipus > 1 else []
    tile = controls.box("tile", "One tile, e.g. 3", state, width=150)
    link = address.write(Address(PATH, state.report, state.against))
    start = dcc.Link("Back to the peak", href=link, className="button")
    save = controls.exports("graph-drawn", "graph-plot")
    tools = controls.row([magnifier("graph-plot"), *legend, *where, tile, start, save])
    parts = [
        html.H2("What is around it"),
        html.Span(note, className="note"),
        html.Div(tools, className="tools"),
    ]
    return html.Div(parts, className="section-head")


def _tools(state: Address) -> Element:
    box = controls.filter_box("name", "Filter by name", state, width=240)
    return html.Div(
        [box, html.Div(controls.exports("graph-nodes"), className="tools")],
        className="tools-row compare-tools",
    )


def place(state: Address) -> dict[str, int | None]:
    """Return the IPU or the tile whose variables are shown, as analyses take them."""
    return {"ipu": state.ipu, "tile": state.tile}


def where_words(state: Address) -> str:
    """Return what tile or IPU is shown; nothing for all."""
    if state.tile is None and state.ipu is None:
        return ""
    return scope_words(state).replace("Tile", "tile")


def _there(state: Address) -> str:
    """Write where, to follow what is there; nothing for all tiles."""
    where = where_words(state)
    return f" on {where}" if where else ""


def keys_of(state: Address) -> list[str]:
    """Return the nodes that the link opens, each once; none for the one at the peak."""
    return list(dict.fromkeys(filter(None, state.text(NODE).split(","))))


def around(report: Report, state: Address, most: int = MAX_DRAWN) -> analysis.Neighbourhood:
    """Return what is drawn; raises SelectionError."""
    return analysis.neighbourhood(report, keys_of(state), most=most, **place(state))


def selected(report: Report, state: Address) -> str:
    """Return the key of the node that the details are about: the one opened last."""
    keys = keys_of(state) or around(report, state).nodes["key"].head(1).tolist()
    if not keys:
        raise SelectionError(where_words(state), "no variable lies there")
    return str(keys[-1])


def graph_figure(store: Store, state: Address, theme: Theme) -> Figure:
    """Draw the chosen nodes with what is around them."""
    drawn = around(store.report(state.report), state)
    return figures.neighbourhood(drawn.nodes.frame(), drawn.edges.frame(), theme=theme)


def neighbours(store: Store, state: Address) -> Frame:
    """Return the neighbours of the node that was chosen last: what it does with them, key, kind."""
    report = store.report(state.report)
    key = selected(report, state)
    neighbourhood = analysis.neighbourhood(report, [key], most=1 << 30, **place(state))
    key = str(neighbourhood.nodes["key"].iloc[0])
    nodes = neighbourhood.nodes.set_index("key")
    frame = neighbourhood.edges.frame()
    frame = frame[(frame["source"] == key) | (frame["target"] == key)]
    inward = frame["target"] == key
    neighbour = frame["source"].where(inward, frame["target"])
    words = ("written by", "read by") if key.startswith("v") else ("reads", "writes")
    frame = frame.assign(
        does=[words[0] if comes else words[1] for comes in inward],
        key=neighbour,
        name=nodes.loc[neighbour, "name"].tolist(),
        kind=nodes.loc[neighbour, "kind"].tolist(),
        bytes=nodes.loc[neighbour, "bytes"].tolist(),
    )
    frame["words"] = frame["kind"].map(figures.kind_words)
    frame[KEY] = node_objects(frame["key"].tolist())
    return components.filtered(frame, state.filter)


def answer(store: Store, state: Address, _theme: Theme) -> Element:
    """Return what the chosen node reads and writes, or who reads and writes it."""
    report = store.report(state.report)
    key = selected(report, state)
    alone = Address(PATH, state.report, ipu=state.ipu, tiles=state.tiles,
                    options=((NODE, key),))  # fmt: skip
    frame = neighbours(store, alone)
    row = analysis.neighbourhood(report, [key], most=0, **place(state)).nodes.iloc[0]
    if str(row["key"]).startswith("v"):
        writers, readers = (
            analysis.link_totals(frame["bytes"], frame["does"] == word).links
            for word in ("written by", "read by")
        )
        size = f"{units.size(row['bytes'])}{_there(state)}"
        return components.headline(
            f"{row['name']} ({size}) is written by {counted(writers, 'program')} and read "
            f"by {counted(readers, 'program')}."
        )
    links = {
        word: analysis.link_totals(frame["bytes"], frame["does"] == word)
        for word in ("reads", "writes")
    }
    parts = [
        f"{word} {counted(one.links, 'variable')} ({units.size(one.bytes)})"
        for word, one in links.items()
        if one.links
    ]
    does = " and ".join(parts) or "touches no variable"
    return components.headline(f"{row['name']} {does}{_there(state)}.")


def details(store: Store, state: Address, _theme: Theme) -> Element:
    """Fill the panel below the graph with the chosen tab."""
    if state.option("tab", [tab for tab, _ in TABS]) != "details":
        return tables.paged("graph-nodes", NODE_COLUMNS, picks=(NODE, "key"))
    report = store.report(state.report)
    row = analysis.neighbourhood(
        report, [selected(report, state)], most=0, **place(state)
    ).nodes.iloc[0]
    frame = neighbours(store, state)
    is_variable = row["kind"] == analysis.VARIABLE
    facts = _variable(report, row) if is_variable else _program(report, row, _there(state))
    name = html.P(str(row["name"]), className="subject")
    if len(frame):
        grid = tables.paged(
            "graph-neighbours", NEIGHBOUR_COLUMNS, rows=min(len(frame), 12), picks=(NODE, "key")
        )
    else:
        grid = components.message("No neighbour fits the filter." if state.filter else "Nothing "
                                  "reads or writes it.")  # fmt: skip
    columns = [html.Div(components.facts(facts)), html.Div(grid)]
    return html.Div([name, html.Div(columns, className="columns wide-right")])


def _variable(report: Report, row: Any) -> list[tuple[str, str]]:
    """List what is known of a variable."""
    frame = largest_variables(report).frame()
    variable = frame[frame["variable"] == row["row"]].iloc[0]
    facts = [
        ("Kind", "Variable"),
        ("Type and shape", f"{variable['type']} {variable['shape']}".strip() or "not told"),
        ("Category", category_label(variable["category"])),
        ("Bytes on all tiles", units.size(variable["bytes"])),
        ("Always live", "yes" if variable["always_live"] else "no"),
        ("Live at the peak", "yes" if variable["at_peak"] else "no"),
    ]
    if report.dataset.has("variable_pieces"):
        tiles = variable_by_tile(report, variable=int(row["row"])).frame()
        facts.append(("Tiles that it lies on", units.count(len(tiles))))
    return facts


def _program(report: Report, row: Any, scope: str) -> list[tuple[str, str]]:
    """List what is known of a program: its kind, its bytes in `scope`, and all vertices it runs."""
    facts = [
        ("Kind", figures.kind_words(str(row["kind"]))),
        (f"Bytes of its variables{scope}", units.size(row["bytes"])),
    ]
    frame = analysis.vertices_of(report, int(row["row"])) if row["kind"] == COMPUTE else None
    if frame is not None:
        pairs = zip(frame["vertex_type"].tolist(), frame["instances"].tolist(), strict=True)
        on_all = " on all tiles" if scope else ""
        words = ((name, "1 vertex" if n == 1 else f"{n:,} vertices") for name, n in pairs)
        facts += [(name, count + on_all) for name, count in words]
    return facts


def _all_nodes(store: Store, state: Address) -> Frame:
    """Return the nodes of the whole graph, worked out once, or of a tile."""
    report = store.report(state.report)
    if where_words(state):
        return analysis.graph_nodes(report, **place(state)).frame()
    return store.derived(state.report, "graph nodes", lambda: analysis.graph_nodes(report).frame())


def nodes(store: Store, state: Address) -> Frame:
    """Return the nodes of the chosen tab: compute sets, variables or copies; all for Details."""
    frame = _all_nodes(store, state)
    tab = state.option("tab", [tab for tab, _ in TABS])
    kinds = frame["kind"]
    keep = {
        "details": kinds.notna(),
        "compute-sets": kinds == COMPUTE,
        "variables": kinds == analysis.VARIABLE,
        "copies": ~kinds.isin([COMPUTE, analysis.VARIABLE]),
    }
    frame = frame[keep[tab]]
    words, objects = frame["kind"].map(figures.kind_words), node_objects(frame["key"].tolist())
    frame = frame.assign(words=words, **{KEY: np.array(objects, dtype=object)})
    return components.filtered(frame, state.filter)


def drawn(store: Store, state: Address) -> Frame:
    """Return the edges of what is drawn, by name."""
    neighbourhood = around(store.report(state.report), state)
    names = dict(zip(neighbourhood.nodes["key"], neighbourhood.nodes["name"], strict=True))
    return neighbourhood.edges.frame().assign(
        source_name=neighbourhood.edges["source"].map(names),
        target_name=neighbourhood.edges["target"].map(names),
    )


def register(app: Dash, store: Store) -> None:
    """Add the callbacks of the page."""
    view.draw(app, store, "graph-plot", graph_figure)
    view.fill(app, store, "graph-answer", answer)
    view.fill(app, store, "graph-details", details)
    tables.serve(app, store, PATH, "graph-nodes", NODE_COLUMNS, nodes)
    tables.serve(app, store, PATH, "graph-neighbours", NEIGHBOUR_COLUMNS, neighbours)
    downloads.offer(app, "graph-nodes", nodes)
    downloads.offer(app, "graph-drawn", drawn)
