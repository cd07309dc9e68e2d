"""The lower pane of the program tree as it was written: what one program says, and became."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from dash import dcc, html

from dashboard import address, controls
from dashboard.address import Address
from dashboard.elements import components
from dashboard.elements.components import Element, Facts, Frame, facts, recorded_fact, rows_of
from dashboard.pages.headlines import counted
from dashboard.pages.programs.headlines import line_words, program_link
from dashboard.pages.programs.stage import owners_at, stage_tree, whole_tree
from dashboard.store import Report, Store
from pva import units
from pva.analysis.machine import clock_frequency
from pva.analysis.operations.layers import DEFAULT
from pva.analysis.programs.compilation import WRITTEN, compiled_of, function_program, program_count
from pva.analysis.programs.written import WrittenFigures, written_figures
from pva.analysis.selection import SelectionError
from pva.analysis.table import arrays_of
from pva.lazy import pandas as pd
from pva.plot.theme import Theme, step_words

MAX_ROWS = 200  # of what a program became; a copy of many parts may become more
NOBODY = "Added by the compiler: the program does not contain it."
NOBODY_HINT = "Choose the stage as compiled to see what it does and costs."
NOTHING = "It became no program: there was nothing to do."
DOWNLOAD = "compiled-programs"
Line = dict[str, Any]


def details(store: Store, state: Address, theme: Theme) -> Element:
    """Show the written program that the chosen one was made of; raises PvaError."""
    del theme
    row, line = _chosen(store, state)
    if line is None:
        return components.message(NOBODY, hint=NOBODY_HINT)
    report = store.report(state.report)
    figures = written_figures(report, program=row)
    clock = clock_frequency(report)
    became = _became(store, state, row)
    columns = [_identity(figures, line), _operands(figures), _cost(line, became, clock)]
    return html.Div(
        [
            _head(store, state, figures, line, became),
            _results(state, line, became),
            html.Div([facts(pairs) for pairs in columns if pairs], className="facts-columns"),
        ]
    )


def offered(store: Store, state: Address) -> Frame:
    """Return what the chosen program became for a file; raises PvaError."""
    row, line = _chosen(store, state)
    if line is None:
        raise SelectionError("the program", "not in what was written", "the compiler added it")
    return _became(store, state, row)


def _became(store: Store, state: Address, row: int) -> Frame:
    """Return what a written program was compiled to; raises PvaError."""
    tree = arrays_of(whole_tree(store, state.report))
    return pd.DataFrame(compiled_of(store.report(state.report), tree, row))


def _chosen(store: Store, state: Address) -> tuple[int, Line | None]:
    """Return the row and line of the chosen program as written; -1 and None for the compiler's."""
    tree, text = stage_tree(store, state), state.text("program")
    line = tree.line(text)
    if line >= 0:
        return int(tree.rows[line]), rows_of(tree.lines.iloc[[line]])[0]
    count = program_count(store.report(state.report))
    if not (text.isascii() and text.isdigit()) or len(text) > 18 or int(text) >= count:
        hint = f"the report has programs 0 to {count - 1:,}"
        raise SelectionError(f"program {text}", "not there", hint)
    return -1, None


def _head(
    store: Store, state: Address, figures: WrittenFigures, line: Line, became: Frame
) -> Element:
    """Name the program, and lead to where else it is seen."""
    base = Address(report=state.report, tiles=state.tiles)
    layer = state.text("layer", DEFAULT)
    report = store.report(state.report)
    operation = str(owners_at(store, state, WRITTEN)[figures.program])
    of_layer = {} if layer == DEFAULT else {"layer": layer}
    first = {"program": str(line["program"])} if len(became) else {}
    links = [
        ("As compiled", "/programs", -1, first),
        ("Live at this step", "/liveness", line["liveness_step"], {}),
        ("In the execution", "/execution", line["first_step"], {}),
        (
            f"Operation {operation}",
            "/operations",
            -1,
            {} if operation.startswith("(") else of_layer | {"operation": operation},
        ),
        ("Its function", "/programs", -1, _function(report, figures)),
    ]
    shown = [
        dcc.Link(words, href=_link(base, path, step, options), className="button")
        for words, path, step, options in links
        if step >= 0 or options
    ]
    tick = html.Span(
        className="program-tick", style={"background": f"var(--step-{figures.type}, var(--quiet))"}
    )
    words = [step_words(figures.type), " ", html.Span(line["name"], className="quiet")]
    return html.Div(
        [
            html.Div([tick, html.H2(words)], className="details-head"),
            html.Div(shown, className="details-links"),
        ],
        className="details-top",
    )


def _link(base: Address, path: str, step: int, options: dict[str, str]) -> str:
    steps = () if step < 0 else (int(step),)
    to = replace(base, path=path, steps=steps, options=tuple(sorted(options.items())))
    return address.write(to)


def _function(report: Report, figures: WrittenFigures) -> dict[str, str]:
    """Return the options of a link to the function that a call runs."""
    program = function_program(report, figures.target) if figures.type == "Call" else -1
    return {} if program < 0 else {"program": str(program), "stage": WRITTEN}


def _identity(figures: WrittenFigures, line: Line) -> Facts:
    """Return what the program is, and where it stands."""
    part = {"control": "control program"}.get(line["part"], line["part"])
    return [
        ("Type", figures.type),
        ("Written program", f"{figures.program:,}"),
        ("Part of", f"{part} {line['number']}"),
        *([("Branch", figures.role)] if figures.role else []),
        *recorded_fact("Runs its body", figures.count, lambda count: counted(count, "time")),
        *([("Compute set", figures.compute_set_name)] if figures.compute_set_name else []),
        *recorded_fact("Calls function", figures.target, units.count),
    ]


def _operands(figures: WrittenFigures) -> Facts:
    """Return what it reads and writes by itself."""
    decides = figures.type in ("If", "Switch") or figures.type.startswith("Repeat")
    read = "Decides by" if decides else "From"
    return [
        *([(read, figures.source)] if figures.source else []),
        *([("To", figures.destination)] if figures.destination else []),
        *recorded_fact("Moves", figures.bytes, units.size),
    ]


def _cost(line: Line, became: Frame, clock: float) -> Facts:
    """Return what it became, and what that costs with all its parts."""
    pairs = [("Became", counted(len(became), "program") if len(became) else "no program")]
    pairs += recorded_fact("Ran in the recorded runs", line["executions"], units.count)
    pairs += recorded_fact(
        "Cycles in all", line["cycles"], lambda value: units.cycles(value, clock)
    )
    pairs += recorded_fact("Of all cycles", line["share"], units.share)
    pairs += recorded_fact("One execution, mean", line["mean_cycles"], units.cycles_or_time)
    estimate = line["estimated_cycles"]
    return pairs + recorded_fact("Estimate of one execution", estimate, units.cycles_or_time)


def _results(state: Address, line: Line, became: Frame) -> Element:
    """List the programs that it became, each a link to its line as compiled."""
    if not len(became):
        return components.message(NOTHING)
    first = became.head(MAX_ROWS)
    # What `line_words` says more of, a line of its own tells.
    words = line_words(first.assign(count=-1, function=-1)).tolist()
    rows = zip(rows_of(first), words, strict=True)
    titles = ("Compiled to", "Ran", "Cycles", "Share", "Estimate", "Programs in it")
    head = html.Tr([html.Th(title, scope="col") for title in titles])
    body = [_result(state, row, words) for row, words in rows]
    if len(became) > 1:
        body.append(_total(line))
    remainder = len(became) - len(first)
    note = f"{counted(remainder, 'more program')}; the file has them all." if remainder else ""
    grid = html.Table([html.Thead(head), html.Tbody(body)], className="tree")
    return html.Div(
        [
            html.Div(
                [html.H3("What it became"), controls.exports(DOWNLOAD)], className="details-top"
            ),
            html.Div(grid, className="tree-scroller"),
            html.P(note, className="note"),
        ],
        id="written-results",
    )


def _result(state: Address, row: Line, words: str) -> Element:
    depth = f"in-{min(row['depth'], 3)}"
    name = html.Th(program_link(state, row, words), scope="row", className=depth)
    return html.Tr(
        [name, *_cells(row), html.Td(units.count(row["parts"]) if row["parts"] else "–")]
    )


def _total(line: Line) -> Element:
    name = html.Th("Together", scope="row")
    return html.Tr([name, *_cells(line), html.Td()], className="level-0")


def _cells(row: Line) -> list[Element]:
    texts = (
        _or_dash(row["executions"], units.count),
        _or_dash(row["cycles"], units.cycles_or_time),
        _or_dash(row["share"], units.share),
        _or_dash(row["estimated_cycles"], units.cycles_or_time),
    )
    return [html.Td(text) for text in texts]


def _or_dash(value: float, write: Callable[[Any], str]) -> str:
    return write(value) if value == value and value >= 0 else "–"
