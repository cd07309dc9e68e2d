"""Operations: the table, its sentence, and the tabs of one, called as functions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from dash import Dash

from dashboard import tables
from dashboard.address import parse
from dashboard.app import create_app
from dashboard.elements.components import column_definition
from dashboard.pages.operations import details as operation_details
from dashboard.pages.operations import page as operations
from dashboard.pages.operations.headlines import costs_sentence, outside_words, reasons_sentence
from dashboard.store import Store
from pva.analysis.selection import SelectionError
from tests.builders import report_without_code, small_report, write_report
from tests.dashboard.layouts import words
from tests.dashboard.test_programs_page import find, rows


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Return a store of the small report."""
    return Store([write_report(tmp_path / "small")])


def asked(search: str) -> Any:
    return parse(operations.PATH, search)


def details(store: Store, search: str) -> Any:
    chosen = asked(search)
    costs = operations.costs_of(store, chosen)
    return operation_details.details(store, chosen, "light", costs)


def test_the_sentence_names_what_costs_most(store: Store) -> None:
    costs = operations.costs_of(store, asked(""))
    code = int(costs.set_index("operation")["code"]["multiply"])
    share = 100 * code / int(costs["code"].clip(lower=0).sum())
    assert costs_sentence(costs).startswith(
        f"multiply takes the most cycles, 638 (62.3 %), the most code, {code} B ({share:.1f} %)"
    )
    # The syncs take 140 of 1,024 cycles.
    assert "13.7 % of the cycles are in none of them, most of it (Sync)" in outside_words(costs)


def test_the_three_that_take_most_cycles_say_what_on() -> None:
    columns = ("operation", "cycles", "compute", "exchange", "host_exchange", "sync")
    rows = [
        ("a", 500, 500, 0, 0, 0), ("b", 300, 200, 0, 99, 1), ("(Sync)", 100, 0, 0, 0, 100),
        ("c", 100, 0, 100, 0, 0), ("d", 0, 0, 0, 0, 0),
    ]  # fmt: skip
    costs = pd.DataFrame(rows, columns=list(columns))
    assert reasons_sentence(costs) == (
        "Most cycles: a 50.0 % (100.0 % compute), b 30.0 % (66.7 % compute, 33.0 % host exchange) "
        "and c 10.0 % (100.0 % exchange)."
    )
    assert reasons_sentence(costs[:3]) == ""


def test_code_that_was_not_counted_is_a_dash_with_the_option(tmp_path: Path) -> None:
    store = Store([write_report(tmp_path / "without", report_without_code())])
    chosen = asked("operation=multiply")
    grid = str(operations.table(store, chosen, "light"))
    assert "'headerName': 'Code'" in grid  # though it is not known
    assert operations.rows(store, chosen)["code"].isna().all()
    head = words(operations.layout(store, chosen))
    assert "Code was not counted: to count it, run the program on a device with compile" in head
    assert "Code –" in words(details(store, "operation=multiply"))
    assert "Code was not counted." in words(details(store, "operation=(Sync)&tab=code"))


def test_rows_follow_layer_filter_and_choice(store: Store) -> None:
    frame = operations.rows(store, asked("filter=operation~ADD&operation=add"))
    assert frame[["operation", "cycles", "mark"]].to_numpy().tolist() == [["add", 102, "chosen"]]
    names = operations.rows(store, asked("layer=poplibs"))["operation"].tolist()
    assert names == ["multiply", "(outside)", "reduce", "add"]
    with pytest.raises(SelectionError, match="layer keras"):
        operations.rows(store, asked("layer=keras"))


def test_rows_are_sorted_where_they_are(store: Store) -> None:
    request = {"startRow": 0, "endRow": 2, "sortModel": [{"colId": "operation", "sort": "asc"}]}
    sent = tables.rows_asked(operations.rows(store, asked("")), operations.COLUMNS, request)
    assert [row["operation"] for row in sent["rowData"]] == ["(Call)", "(Repeat)"]


def test_columns_are_those_that_the_address_asks_for(store: Store) -> None:
    assert operations.chosen_fields(asked("")) == operations.DEFAULT
    assert operations.chosen_fields(asked("columns=code,cycles,colour")) == ("cycles", "code")
    grid = operations.table(store, asked("columns=code,cycles"), "light").children[0]
    assert [column["field"] for column in grid.columnDefs] == [
        "operation",
        "kind",
        "cycles",
        "code",
    ]
    assert "that no other operation has" in grid.columnDefs[3]["headerTooltip"]
    assert grid.dashGridOptions["pinnedTopRowData"][0]["cycles"] == 1024


def test_the_total_is_of_the_rows_that_are_shown(store: Store) -> None:
    grid = operations.table(store, asked("filter=operation~add"), "light").children[0]
    assert grid.dashGridOptions["pinnedTopRowData"][0]["cycles"] == 102
    assert "No operation fits" in words(
        operations.table(store, asked("filter=operation~nothing"), "light")
    )


def test_totals_reconcile_with_the_whole_report(store: Store) -> None:
    body = details(store, "layer=poplibs").children[2].children.children[1].children
    cells = {words(row.children[0]): [words(c) for c in row.children[1:]] for row in body}
    # multiply, reduce and add; x, y and syncs; nothing else; and all of it.
    assert cells["Cycles"] == ["860", "164", "0", "1,024"]


def test_the_summary_has_the_figures_of_the_row(store: Store) -> None:
    text = words(details(store, "operation=multiply"))
    assert "638 (638 ns)" in text and "62.3 %" in text and "80" in text


def test_programs_of_an_operation_lead_to_the_tree(store: Store) -> None:
    pane = details(store, "operation=multiply&tab=tree").children[2]
    assert "Internal exchange  multiply/ExchangePre" in words(pane)
    assert "/programs?program=6" in str(pane)
    assert "no program" in words(details(store, "layer=poplar&operation=w&tab=tree"))


def test_code_and_cycles_by_tile_are_those_of_the_analysis(store: Store) -> None:
    code = find(details(store, "operation=multiply&tab=code"), "figure").figure
    assert {trace.name: int(trace.y[1:-1].sum()) for trace in code.data} == {
        "Control code": 160, "Exchange code": 40, "State of vertices": 120,
    }  # fmt: skip
    cycles = find(details(store, "operation=multiply&tab=cycles"), "figure").figure
    # Four times 60 + 6 * tile.
    assert cycles.data[0].y[1:-1].tolist() == [240 + 24 * tile for tile in range(10)]


def test_arithmetic_stands_with_its_share_of_the_peak(store: Store) -> None:
    pane = details(store, "operation=multiply&tab=flops")
    assert "80 floating-point operations, 0.1 a cycle of its 638" in words(pane)
    assert [row["flops"] for row in rows(pane)] == [20]
    assert "tells no floating-point operations" in words(details(store, "operation=x&tab=flops"))


def test_contexts_have_their_source_and_their_further_keys(store: Store) -> None:
    pane = details(store, "operation=multiply&tab=debug")
    assert [row["place"] for row in rows(pane)] == ["model.py:10", "model.py:12"]
    assert "multiply: op multiply" in words(pane)


def test_nothing_chosen_greys_the_tabs_and_an_unknown_one_is_refused(store: Store) -> None:
    assert "Click an operation above" in words(details(store, "tab=code"))
    with pytest.raises(SelectionError, match="no operation of this layer"):
        details(store, "operation=divide")


def test_without_debug_information_paths_are_operations(tmp_path: Path) -> None:
    path = write_report(tmp_path / "plain")
    (path / "debug.cbor").unlink()
    store = Store([path])
    assert "multiply takes the most cycles" in words(operations.layout(store, asked("")))
    text = words(details(store, "operation=multiply&tab=debug"))
    assert "autoReport.outputDebugInfo" in text


def test_without_execution_estimates_are_compared(tmp_path: Path) -> None:
    data = small_report(steps=None, steps_by_ipu=None, runs=None)
    store = Store([write_report(tmp_path / "compiled", data)])
    page = words(operations.layout(store, asked("")))
    assert "multiply takes the most cycles by estimate, 163" in page
    assert operations.rows(store, asked(""))["cycles"].isna().all()
    grid = find(operations.table(store, asked(""), "light"), "columnDefs")
    assert "cycles" not in [column["field"] for column in grid.columnDefs]
    assert "No step of it was recorded" in words(details(store, "operation=multiply&tab=cycles"))


def test_callbacks_have_their_places(store: Store) -> None:
    app = Dash("test", suppress_callback_exceptions=True)
    operations.register(app, store)
    layout = str(operations.layout(store, asked("")))
    for place in ("operations-place", "operations-details", "operations-columns"):
        assert f"'{place}'" in layout
        assert any(
            place in key or place in str(entry["inputs"]) for key, entry in app.callback_map.items()
        )


def test_what_is_shown_can_be_downloaded_by_its_address(tmp_path: Path) -> None:
    client = create_app([write_report(tmp_path / "small")]).server.test_client()
    link = "/download/{}.csv?{}"
    for name, search, first in (
        ("operations", "filter=operation~reduce", "reduce,popops"),
        ("operation-totals", "layer=poplibs", "cycles,cycles,860,164,0,1024"),
        ("operation-by-tile", "operation=multiply", "0,0,240,160,0,16,4,"),
        ("program-tree", "", "0,-1,0,12,control,0,Sequence"),
        ("program-by-tile", "program=6", "0,0,60,10,0,0"),
    ):
        answer = client.get(link.format(name, search), headers={"Host": "127.0.0.1"})
        assert answer.status_code == 200
        assert answer.text.splitlines()[1].startswith(first), answer.text[:300]
    answer = client.get(link.format("program-vertices", "program=x"), headers={"Host": "127.0.0.1"})
    assert answer.status_code == 404 and "write a row, as in program=12" in answer.text


def test_columns_that_are_shown_at_first_fit_a_window_of_1440_pixels() -> None:
    first = [column for column in operations.CHOICES if column.field in operations.DEFAULT]
    columns = [column_definition(c) for c in (operations.NAME, operations.KIND, *first)]
    menu, page, section = 220, 56, 38  # of the window, what is beside the table
    assert sum(c.get("minWidth") or c["width"] for c in columns) <= 1440 - menu - page - section
    assert columns[0]["minWidth"] >= 160
