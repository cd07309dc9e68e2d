"""What every page is made of: headline, cards, sections, facts, tables, plots, messages."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import dash_ag_grid as dag
import numpy as np
from dash import dcc, html, no_update
from dash.development.base_component import Component
from dash.exceptions import PreventUpdate
from werkzeug.exceptions import BadRequest, HTTPException

from dashboard.address import AddressError
from pva import units
from pva.analysis.filters import Filter, matching
from pva.analysis.selection import SelectionError
from pva.errors import PvaError
from pva.lazy import pandas as pd

Element: TypeAlias = "Component | str | Sequence[Element] | None"
Frame: TypeAlias = "pd.DataFrame"  # a text: pandas is loaded by who uses it
Tone = Literal["plain", "good", "bad"]
Kind = Literal[
    "text",
    "figure",
    "name",
    "branch",
    "number",
    "bytes",
    "cycles",
    "share",
    "rate",
    "nanoseconds",
    "change",
    "bytes change",
    "cycles change",
    "nanoseconds change",
]

NO_BREAK_SPACE = "\u00a0"
MAX_ROWS = 500  # of a table; the filter reaches the others, and `tables.paged` has them all
ROW_PIXELS, HEADER_PIXELS, SHOWN_ROWS = 32, 36, 12
NAME_PIXELS = 240  # of a column of names, at least
WORDS_PIXELS = 150, 280  # from here on a column is of words, and it is so wide at most
DIGIT_PIXELS, CELL_PIXELS = 7.5, 34  # of a number with its commas, and what a cell keeps free
# Of every table: the key Tab leads from the headings to the rows and out, the arrows from cell to
# cell (assets/grid.js has Enter choose a row).
GRID: dict[str, Any] = {
    "rowHeight": ROW_PIXELS,
    "headerHeight": HEADER_PIXELS,
    "enableCellTextSelection": True,
    "animateRows": False,
    "tooltipShowDelay": 300,
    "tabToNextCell": {"function": "false"},
    "tabToNextHeader": {"function": "false"},
    # Laid out below the window, too: the rows of a grid that is not are empty to screen readers.
    "suppressContentVisibilityAuto": True,
}
TURNING = re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069]")  # characters that set directions
HALF_WORD = 40  # letters that stay at either end of a word of more than twice as many
LONG_WORD = re.compile(rf"\S{{{2 * HALF_WORD + 2},}}")
PICKED_BY_KEYS = {"role": "group", "aria-label": "Plot; the arrow keys choose in it"}
PLOT_CONFIG = {
    "displaylogo": False,
    "displayModeBar": "hover",
    "modeBarButtons": [["toImage"], ["zoom2d", "pan2d", "resetScale2d"]],
    "toImageButtonOptions": {"format": "svg", "filename": "tilescope"},
    "responsive": True,
}

GREW, SHRANK = "▲", "▼"


def changed(value: float, write: Callable[[float], str] = units.count) -> str:
    """Write a difference with its sign and an arrow, so that colour is not needed to tell it."""
    if not value:
        return write(0)
    return f"{GREW} +{write(value)}" if value > 0 else f"{SHRANK} −{write(-value)}"


FORMATS: dict[str, Callable[[Any], str]] = {
    "number": units.count,
    "bytes": units.size,
    "cycles": units.cycles_or_time,
    "share": units.share,
    "rate": units.rate,
    "nanoseconds": lambda value: units.duration(value / 1e9),
    "change": changed,
    "bytes change": lambda value: changed(value, units.size),
    "cycles change": lambda value: changed(value, units.cycles_or_time),
    "nanoseconds change": lambda value: changed(value, FORMATS["nanoseconds"]),
}
_CHANGE_COLOUR = (
    "({'color': params.value > 0 ? 'var(--grew)' : params.value < 0 ? 'var(--shrank)' : ''})"
)
_STYLES = {"share": "({'--part': params.value})"} | dict.fromkeys(
    ("change", "bytes change", "cycles change", "nanoseconds change"), _CHANGE_COLOUR
)


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table: its field in the frame, its title, what it holds and what it means."""

    field: str
    title: str
    kind: Kind = "text"
    width: int = 130
    note: str = ""
    least: int = NAME_PIXELS  # of a column of names


def headline(sentence: str, tone: Tone = "plain", *, more: str = "") -> Element:
    """Answer the question of the page in one sentence, and add what else is worth a glance."""
    answer, detail = prose(sentence), prose(more)
    title = f"{sentence} {more}" if "…" in answer + detail else None
    parts = [html.P(answer, className=f"headline {tone}"), html.P(detail, className="more")]
    return html.Div(parts, className="headlines", title=title)


def prose(sentence: str) -> str:
    """Write a sentence with names in it: none is longer than a line or turns the rest round."""
    words = TURNING.sub("\ufffd", unbroken(sentence))
    return LONG_WORD.sub(lambda match: f"{match[0][:HALF_WORD]}…{match[0][-HALF_WORD:]}", words)


def unbroken(sentence: str) -> str:
    """Keep numbers and their units on one line."""
    return re.sub(r"(?<=\d) (?=%|[kMG]?B\b|[mµn]?s\b)", NO_BREAK_SPACE, sentence)


def title(question: str) -> Element:
    """Head a page with the question that it answers."""
    return html.H1(question)


def card(label: str, value: str, note: str = "") -> Element:
    """Show one figure with what it is and, below, what it means."""
    return html.Div(
        [
            html.Div(label, className="card-label"),
            html.Div(value, className="card-value"),
            html.Div(note, className="card-note"),
        ],
        className="card",
    )


def cards(*items: Element, name: str = "cards") -> Element:
    """Put cards beside each other."""
    return html.Div(list(items), className=name)


def section(
    heading: str,
    *children: Element,
    note: str = "",
    badge: Element = None,
    tools: Element = None,
    folds: str = "",
) -> Element:
    """Frame a part of a page with a heading, a note beside it and controls at its right.

    With a name in `folds` it can be closed, and is then closed for all reports in this browser.
    """
    parts = [
        html.H2(heading),
        badge,
        html.Span(note, className="note"),
        html.Div(tools, className="tools"),
    ]
    if folds:
        head = html.Summary(parts, className="section-head")
        attributes = {"className": "section folds", "data-kept": folds}
        return html.Details([head, *children], open=True, **attributes)
    return html.Section([html.Div(parts, className="section-head"), *children], className="section")


Facts = list[tuple[str, str]]


def recorded_fact(name: str, value: float, write: Callable[[Any], str]) -> Facts:
    """Return a fact; nothing where it was not recorded (-1, or not a number)."""
    return [(name, write(value))] if value == value and value >= 0 else []


def facts(pairs: Iterable[tuple[str, Element]]) -> Element:
    """List names and values in two columns."""
    rows = [html.Tr([html.Th(name, scope="row"), html.Td(value)]) for name, value in pairs]
    return html.Table(html.Tbody(rows), className="facts")


def with_note(element: Element, note: str) -> Element:
    """Add a line below an element, if there is something to say."""
    return html.Div([element, html.Div(note, className="note")]) if note else element


def message(text: str, *, hint: str = "") -> Element:
    """Return what is the matter or what to do, in place of a view."""
    parts = [html.P(text), html.P(hint, className="quiet")] if hint else [html.P(text)]
    return html.Div(parts, className="message", role="status")


def fault(text: str) -> Element:
    """Return in one line what went wrong."""
    return html.Div(html.P(text), className="message fault", role="alert")


def plot(identifier: str, height: int = 340) -> Element:
    """Make room for a figure; a callback of the page fills it."""
    return html.Div(
        dcc.Graph(id=identifier, config=PLOT_CONFIG, responsive=True, className="plot-inner"),
        className="plot",
        style={"height": f"{height}px"},
    )


def drawn(figure: object, identifier: str, height: int = 260, *, objects: str = "") -> Element:
    """Show a figure that is already drawn, in a panel that is made as a whole.

    Numbers along x, or those of its points, are `objects` of a kind that open the drawer; with ANY
    the `ids` of its points are objects.
    """
    graph = dcc.Graph(
        figure=figure, id=identifier, config=PLOT_CONFIG, responsive=True, className="plot-inner"
    )
    kind = "" if objects == ANY else objects
    data = {"data-picks": f"{kind}:", "tabIndex": "0", **PICKED_BY_KEYS} if objects else {}
    return html.Div(graph, className="plot", style={"height": f"{height}px"}, **data)


def table(
    identifier: str,
    frame: Frame,
    columns: Sequence[Column],
    *,
    total: Frame | None = None,
    picks: tuple[str, str] | None = None,
) -> Element:
    """Show a frame as a table: sortable, numbers at the right, names exactly as they are.

    `total` is a frame of one row that stays on top. With `picks=(key, field)` a clicked row sets a
    key of the address. One that is an object (`with_objects`) opens the drawer.
    """
    rows = records(frame, columns)
    frame = with_objects(frame)
    data = {"data-picks-key": picks[0], "data-picks-field": picks[1]} if picks else {}
    for field in {*(picks or ())[1:], *({"opens", OBJECT} & set(frame.columns))}:
        for row, value in zip(rows, frame[field].tolist(), strict=False):
            row[field] = value
    pinned = [] if total is None else formatted(total, columns)
    visible = min(max(len(rows), 1), SHOWN_ROWS) + len(pinned)
    grid = dag.AgGrid(
        id=identifier,
        rowData=rows,
        columnDefs=[column_definition(column) for column in widened(columns, [*rows, *pinned])],
        defaultColDef={"resizable": True, "sortable": True, "suppressMovable": True},
        dashGridOptions=GRID
        | {
            "pinnedTopRowData": pinned,
            "ensureDomOrder": True,
            "rowClassRules": {"chosen": "isChosen(params)", "opens": OPENS},
            "localeText": {"noRowsToShow": "Nothing to show"},
        },
        className="table",
        style={"height": f"{HEADER_PIXELS + visible * ROW_PIXELS + 2}px"},
    )
    left_out = len(frame) - len(rows)
    note = f"{left_out:,} more rows; filter by name to see them" if left_out > 0 else ""
    return html.Div([grid, html.Div(note, className="note")], **data)


ANY = "any"  # kind of objects: those that points of a plot tell
OBJECT = "object"  # the column that tells which object (dashboard/details/objects.py) a row is
OPENS = f"params.data && params.data.{OBJECT}"  # whether a row opens the drawer
OBJECT_COLUMNS = ("variable", "program", "event")  # that tell it, by its number


def with_objects(frame: Frame) -> Frame:
    """Return a frame whose rows tell which objects they are, where one of its columns does."""
    column = next((name for name in OBJECT_COLUMNS if name in frame), None)
    if OBJECT in frame or column is None:
        return frame
    numbers = frame[column].tolist()
    flags = (number is not None and number == number and number >= 0 for number in numbers)
    objects = [
        f"{column}:{int(number)}" if is_one else None
        for number, is_one in zip(numbers, flags, strict=True)
    ]
    return frame.assign(**{OBJECT: np.array(objects, dtype=object)})


def records(frame: Frame, columns: Sequence[Column]) -> list[dict[str, Any]]:
    """Return the rows of a table; a number comes with its text, which `pva.units` writes."""
    return formatted(frame.head(MAX_ROWS), columns)


def rows_of(frame: Frame) -> list[dict[str, Any]]:
    """Return the rows of a frame, by the names of its columns."""
    return [{str(name): row[name] for name in row} for row in frame.to_dict("records")]


def formatted(frame: Frame, columns: Sequence[Column]) -> list[dict[str, object]]:
    """Return all rows of a frame, a number with its text beside it."""
    rows = rows_of(frame[[column.field for column in columns]])
    for column in columns:
        write = FORMATS.get(column.kind)
        if write is None:
            continue
        for row in rows:
            value = row[column.field]
            is_number = value == value and value is not None
            row[column.field] = value if is_number else None
            row[f"{column.field}_text"] = write(value) if is_number else "–"
    return rows


def widened(columns: Sequence[Column], rows: Sequence[dict[str, Any]]) -> list[Column]:
    """Make columns of numbers so wide that none of formatted rows is cut."""
    longest = {
        column.field: max((len(row.get(f"{column.field}_text", "")) for row in rows), default=0)
        for column in columns
        if column.kind in FORMATS
    }
    pixels = {field: round(DIGIT_PIXELS * letters) + CELL_PIXELS
              for field, letters in longest.items()}  # fmt: skip
    return [
        replace(column, width=max(column.width, pixels.get(column.field, 0))) for column in columns
    ]


def column_definition(column: Column) -> dict[str, object]:
    """Describe a column for AG Grid."""
    definition: dict[str, Any] = {"field": column.field, "headerName": column.title}
    definition |= {"headerTooltip": column.note} if column.note else {}
    if column.kind in FORMATS:
        return definition | {
            "type": "rightAligned",
            "width": column.width,
            "valueFormatter": {"function": f"params.data && params.data.{column.field}_text"},
            "cellClass": f"ag-right-aligned-cell {column.kind.replace(' ', '-')}",
            "cellStyle": {"function": _STYLES[column.kind]} if column.kind in _STYLES else None,
            "sortingOrder": ["desc", "asc", None],
        }
    if column.kind == "figure":  # a number that was written before
        right = {"type": "rightAligned", "cellClass": "ag-right-aligned-cell"}
        return definition | right | {"width": column.width}
    least = max(column.width, column.least)
    size: dict[str, Any] = {"width": column.width}
    if column.kind in ("name", "branch"):
        size = {"flex": 1, "minWidth": least}
    if column.kind == "branch":  # of a tree: rows have `depth`, `fold` and its `fold_key`
        size |= {"cellRenderer": "Branch"}
    elif column.width >= WORDS_PIXELS[0]:  # words that are cut where there is no room for them
        size = {"flex": 0.6, "minWidth": column.width, "maxWidth": WORDS_PIXELS[1]}
    return definition | size | {"tooltipField": column.field, "cellClass": column.kind}


def filtered(frame: Frame, row_filter: Filter | None) -> Frame:
    """Keep the rows that a filter lets through; raises PvaError when it does not fit."""
    return frame if row_filter is None else matching(frame, [row_filter])


def check_texts(*values: object) -> None:
    """Raise BadRequest for what a page never sends: texts of another type."""
    if not all(isinstance(value, str | None) for value in values):
        raise BadRequest


def check_lists(*values: object) -> None:
    """Raise BadRequest for what a page never sends: lists of another type."""
    if not all(isinstance(value, list | None) for value in values):
        raise BadRequest


EXPECTED = (PvaError, AddressError, SelectionError)
FAILED = "the dashboard failed here; its log has the details"
Callback = Callable[..., Any]


def or_fault(make: Callback) -> Callback:
    """Return what a callback makes, or in its place the line that says what is wrong."""
    return or_else(make, _same, fault)


def or_nothing(make: Callback) -> Callback:
    """Return what a callback makes, or leave its output as it is; `or_fault` beside it says why."""
    return or_else(make, _same, lambda _: no_update)


def _same(result: object) -> object:
    return result


def or_else(
    make: Callback, then: Callable[[object], object], instead: Callable[[str], object]
) -> Callback:
    """Be the one error boundary of the dashboard: what is not expected goes to the log."""

    def answer(*arguments: object) -> Any:
        try:
            return then(make(*arguments))
        except (PreventUpdate, HTTPException):
            raise
        except EXPECTED as problem:
            return instead(str(problem))
        except Exception:
            logging.getLogger("tilescope").exception("the dashboard failed")
            return instead(FAILED)

    return answer
