"""What all operations add up to, and what they leave of the whole report."""

from __future__ import annotations

from dash import html

from dashboard.address import Address
from dashboard.elements import components
from dashboard.elements.components import Element, Frame
from dashboard.store import Store
from pva import units
from pva.analysis.operations.costs import operation_costs, totals_of
from pva.analysis.table import arrays_of
from pva.lazy import pandas as pd

TOTAL_WORDS = {
    "cycles": "Cycles",
    "flops": "Floating-point operations",
    "control_code": "Control code",
    "exchange_code": "Exchange code",
    "vertex_code": "Code of vertices",
    "peak_bytes": "Memory at the peak",
}


def costs_in(store: Store, key: str, layer: str, by: str = "") -> Frame:
    """Return the costs of the operations of a software layer, found once; raises PvaError."""
    name = f"operation_costs {layer} {by}"
    return store.derived(
        key, name, lambda: operation_costs(store.report(key), layer=layer, by=by).frame()
    )


def totals_table(store: Store, state: Address, layer: str) -> Element:
    """Show that operations and what is in none of them add up to the whole report."""
    frame = store.derived(
        state.report,
        f"operation_totals {layer}",
        lambda: pd.DataFrame(
            totals_of(store.report(state.report), arrays_of(costs_in(store, state.report, layer)))
        ),
    )
    if not len(frame):
        return components.message("The report tells no costs of operations.")
    head = html.Tr(
        [
            html.Th(words, scope="col", title=note)
            for words, note in (
                ("Figure", ""),
                ("Operations", "All rows above that are operations"),
                ("Outside", "Programs that are part of no operation of this layer"),
                ("Elsewhere", "What no program has alone: code that several share, stacks"),
                ("Whole report", ""),
            )
        ]
    )
    body = [
        html.Tr(
            [
                html.Th(TOTAL_WORDS[row["figure"]], scope="row"),
                *(html.Td(_written(row[name], row["unit"])) for name in _TOTAL_FIELDS),
            ]
        )
        for row in frame.to_dict("records")
    ]
    grid = html.Table([html.Thead(head), html.Tbody(body)], className="tree")
    return html.Div(grid, className="tree-scroller", id="operation-totals")


_TOTAL_FIELDS = ("operations", "outside", "elsewhere", "whole")


def _written(value: float, unit: str) -> str:
    write = {"bytes": units.size, "cycles": units.cycles_or_time}.get(unit, units.count)
    return write(value)
