"""Tables for what `components.table` is too small for: long tables, trees with columns.

`paged` shows a frame of any length: the browser asks /rows/NAME for the hundred rows that it shows
(assets/parts.js), and the server sorts. The page registers where the rows come from, once:

    layout:    tables.paged("memory-variables", COLUMNS)
    register:  tables.serve(app, store, PATH, "memory-variables", COLUMNS, frame)

with `frame(store, state) -> DataFrame`, already filtered; columns that depend on the address are a
function of it. Put the element into a panel that follows the keys that the frame depends on, and it
asks again when they change; a key on which only the rows depend is left out there and named by
`follows`, and the table stays as it is and asks for its rows again. A row that is
clicked can set a key of the address: `picks=("variable", "name")` puts the clicked row's `name`
into `variable`; with `many` it is added to what stands there, or taken away. Fields that only the
click needs are sent beside the columns.

`tree` is a small table of nested rows (`Row`: path, words, cells), each of which can be folded;
what is folded stands in the address (`folded=a/b,c`). All cells are text: names stay as they are.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import dash_ag_grid as dag
import orjson
from dash import Dash, html
from flask import Flask, Response, request

from dashboard import address, preferences, view
from dashboard.address import Address
from dashboard.elements.components import (
    EXPECTED,
    FAILED,
    GRID,
    HEADER_PIXELS,
    OPENS,
    ROW_PIXELS,
    Column,
    Element,
    Frame,
    column_definition,
    formatted,
    rows_of,
    widened,
    with_objects,
)
from dashboard.store import Store

BLOCK = 100  # rows sent at a time
NO_ROWS: dict[str, Any] = {"rowData": [], "rowCount": 0}
_SERVED = "tilescope-tables"
MakeFrame = Callable[[Store, Address], Frame]


def paged(
    identifier: str,
    columns: Sequence[Column],
    *,
    rows: int = 12,
    picks: tuple[str, str] | None = None,
    many: bool = False,
    sort: str = "",
    total: Frame | None = None,
    follows: str = "",
) -> Element:
    """Make room for a long table of `rows` visible rows; `serve` sends what is shown.

    `sort` is the field that is sorted by at first, the largest on top. `total` is a frame of one
    row that stays on top; columns are wide enough for it. A row whose field `mark` is "chosen"
    stands out.
    """
    pinned = [] if total is None else formatted(total, columns)
    definitions = [column_definition(column) for column in widened(columns, pinned)]
    for definition in definitions:
        if definition["field"] == sort:
            definition["sort"] = "desc"
    grid = dag.AgGrid(
        id=identifier,
        rowModelType="infinite",
        columnDefs=definitions,
        defaultColDef={"resizable": True, "sortable": True, "suppressMovable": True},
        dashGridOptions=GRID
        | {
            "cacheBlockSize": BLOCK,
            "maxBlocksInCache": 10,
            "maxConcurrentDatasourceRequests": 1,
            "infiniteInitialRowCount": 1,
            "pinnedTopRowData": pinned,
            "rowClassRules": {
                "chosen": "params.data && params.data.mark == 'chosen' || isChosen(params)",
                "opens": OPENS,
            },
        },
        className="table",
        style={"height": f"{HEADER_PIXELS + (rows + len(pinned)) * ROW_PIXELS + 2}px"},
    )
    data = {"data-picks-key": picks[0], "data-picks-field": picks[1]} if picks else {}
    data |= {"data-picks-many": ""} if picks and many else {}
    data |= {"data-follows": follows, "data-grid": identifier} if follows else {}
    note = html.Div(id=f"{identifier}-note", className="note", role="status")
    return html.Div([grid, note], className="paged", **data)


def serve(
    app: Dash,
    store: Store,
    path: str,
    identifier: str,
    columns: Sequence[Column] | Callable[[Address], Sequence[Column]],
    make: MakeFrame,
) -> None:
    """Send the rows of a paged table as the browser asks for them, as JSON.

    The rows are kept for the same address, files and units, as a view is (`view.fill`).
    """

    def answer(query: dict[str, object]) -> bytes:
        try:
            state = address.parse(path, str(query.get("search") or ""))
            preferences.clocked(store, state.report)
            block = orjson.dumps([query.get(key) for key in ("startRow", "endRow", "sortModel")])
            return view.remembered(store, state, (identifier, block), lambda: rows(state, query))
        except EXPECTED as problem:
            return _json(NO_ROWS | {"note": str(problem)})
        except Exception:
            logging.getLogger("tilescope").exception("the dashboard failed")
            return _json(NO_ROWS | {"note": FAILED})

    def rows(state: Address, query: dict[str, object]) -> bytes:
        frame = make(store, state)
        definitions = columns(state) if callable(columns) else columns
        return _json(rows_asked(frame, definitions, query) | {"note": counted_rows(len(frame))})

    app.server.extensions.setdefault(_SERVED, {})[identifier] = answer


def _json(answer: dict[str, object]) -> bytes:
    return orjson.dumps(answer, default=str, option=orjson.OPT_SERIALIZE_NUMPY)


def served(server: Flask) -> dict[str, Callable[[dict[str, Any]], bytes]]:
    """Return what sends the rows of each table, by its name."""
    answers: dict[str, Any] = server.extensions.get(_SERVED, {})
    return answers


def register(server: Flask) -> None:
    """Add the address of the rows to the server: it takes and gives a JSON object."""

    def rows(name: str) -> Response:
        answer = served(server).get(name)
        query = request.get_json(silent=True)
        if answer is None or not isinstance(query, dict):
            return Response(f"{name}: no such table\n", 404, mimetype="text/plain")
        if not _is_asked(query):
            return Response(f"{name}: no request for rows\n", 400, mimetype="text/plain")
        return Response(answer(query), mimetype="application/json")

    server.add_url_rule("/rows/<name>", "rows", rows, methods=["POST"])


def _is_asked(query: dict[str, object]) -> bool:
    """Return whether a request has the parts that the browser sends, or none of them."""
    order = query.get("sortModel")
    numbers = [query.get(name) for name in ("startRow", "endRow")]
    return (
        isinstance(query.get("search"), str | None)
        and all(number is None or type(number) is int for number in numbers)
        and isinstance(order, list | None)
        and all(isinstance(e, dict) and isinstance(e.get("colId"), str) for e in order or [])
    )


def counted_rows(number: int) -> str:
    """Return how long a table is."""
    return "1 row" if number == 1 else f"{number:,} rows"


def rows_asked(frame: Frame, columns: Sequence[Column], query: dict[str, Any]) -> dict[str, object]:
    """Sort a frame and give the rows that the browser asks for, as AG Grid wants them."""
    fields = {column.field for column in columns}
    order = [rule for rule in query.get("sortModel") or [] if rule.get("colId") in fields]
    if order:
        frame = frame.sort_values(
            [rule["colId"] for rule in order],
            ascending=[rule.get("sort") == "asc" for rule in order],
            kind="stable",
        )
    begin = max(int(query.get("startRow") or 0), 0)
    end = min(max(int(query.get("endRow") or BLOCK), begin), begin + 10 * BLOCK)
    part = with_objects(frame.iloc[begin:end])
    shown = formatted(part, columns)
    extras = [name for name in part.columns if name not in fields]
    if extras:  # of no columns pandas 3.0 gives no records
        for row, extra in zip(shown, rows_of(part[extras]), strict=True):
            row.update(extra)
    return {"rowData": shown, "rowCount": len(frame)}


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a tree: its place (`a/b` lies in `a`), its words, and a text for each column.

    `picks` is what a click sets: a key of the address and its value.
    """

    path: str
    words: str
    cells: tuple[str, ...]
    note: str = ""
    picks: tuple[str, str] | None = None


def tree(
    headings: Sequence[str],
    rows: Sequence[Row],
    state: Address,
    *,
    texts: bool = False,
) -> Element:
    """Show nested rows, each with a cell for each heading after the first; folded as chosen.

    Cells are numbers, at the right, unless they are `texts`.
    """
    folded = set(filter(None, state.text("folded").split(",")))
    parents = {row.path.rpartition("/")[0] for row in rows}
    head = html.Tr([html.Th(words, scope="col") for words in headings])
    body = [
        _tree_row(row, is_parent=row.path in parents, folded=row.path in folded)
        for row in rows
        if not any(row.path.startswith(f"{path}/") for path in folded)
    ]
    grid = html.Table(
        [html.Thead(head), html.Tbody(body)], className="tree texts" if texts else "tree"
    )
    return html.Div(grid, className="tree-scroller")


def _tree_row(row: Row, *, is_parent: bool, folded: bool) -> Element:
    level = row.path.count("/")
    fold = html.Button(
        className="fold closed" if folded else "fold",
        **{"data-fold": row.path, "aria-expanded": str(not folded).lower(),
           "aria-label": f"{row.words}: {'show' if folded else 'hide'} what is in it"},
    ) if is_parent else html.Span(className="fold-none")  # fmt: skip
    words: Element = row.words
    if row.picks:
        key, value = row.picks
        words = html.Button(row.words, className="pick", **{"data-key": key, "data-value": value})
    first = html.Th([fold, words], scope="row", title=row.note or None, className=f"in-{level}")
    return html.Tr([first, *(html.Td(cell) for cell in row.cells)], className=f"level-{level}")
