"""The drawer of an object: what it says, where it is shown, and how it is closed."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import orjson
import pytest

from dashboard.address import Address, AddressError, parse
from dashboard.app import application
from dashboard.declared import declared
from dashboard.details import drawer, object_rows
from dashboard.details.object_rows import object_steps, object_tiles
from dashboard.details.objects import KINDS
from dashboard.store import Store
from dashboard.tables import served
from pva.analysis.attribution import elapsed
from pva.analysis.execution.exchanges import largest_exchanges
from pva.analysis.insight_rules import insights
from pva.analysis.selection import SelectionError
from pva.report import Report
from tests.analysis.samples import SAMPLES
from tests.builders import small_report, write_report
from tests.dashboard.layouts import parts, words


@pytest.fixture(scope="module")
def store() -> Store:
    """Return a store of a report whose source lines were recorded."""
    return Store([SAMPLES / "mlp_digits_tiny"])


def text(store: Store, search: str) -> str:
    made = drawer.drawer(store, parse("/liveness", search), "light")
    return words(made).replace("\u00a0", " ")


def test_the_drawer_says_where_a_variable_was_created_and_who_reads_it_last(store: Store) -> None:
    names = store.report().dataset.column("variables", "name").tolist()
    shown = text(store, f"?variable={names.index('Layer1/Fwd/weights')}")
    assert "Created at mlp_digits.py:" in shown
    assert "Read by 3 programs, last" in shown
    assert "Show in Memory" in shown and "Show in Liveness" not in shown


def test_an_object_of_the_second_report_of_two_is_described_from_it(tmp_path: Path) -> None:
    smaller = small_report(target=small_report().table("target") | {"bytes_per_tile": [600]})
    two = [write_report(tmp_path / "one"), write_report(tmp_path / "two", smaller)]
    link = "?report=one&against=two&object="
    first, second = (
        words(drawer.drawer(Store(two), parse("/compare", f"{link}{side}tile:0"), "light"))
        for side in ("", "after:")
    )
    assert "before: one" in first and "after: two" in second
    assert "600" not in first and "600" in second.replace("\u00a0", " ")


def test_no_variable_no_drawer(store: Store) -> None:
    assert drawer.drawer(store, Address("/liveness"), "light") is None


def test_close_leaves_the_rest_of_the_address(store: Store) -> None:
    made: Any = drawer.drawer(store, parse("/liveness", "?tab=always&variable=3"), "light")
    links = [part.href for part in parts(made) if getattr(part, "children", "") == "Close"]
    assert links == ["/liveness?tab=always"]


@pytest.mark.parametrize(("search", "fault"), [("?variable=9999", SelectionError),
                                               ("?variable=x", AddressError)])  # fmt: skip
def test_a_variable_that_is_not_there_is_one_line(
    store: Store, search: str, fault: type[Exception]
) -> None:
    with pytest.raises(fault):
        text(store, search)


def first_of(store: Store, tag: str) -> int:
    """Return the first program of a type."""
    return int((store.report().dataset.texts("programs", "type") == tag).argmax())


def test_a_compute_set_has_the_parts_that_a_variable_has(store: Store) -> None:
    data = store.report().dataset
    number = first_of(store, "OnTileExecute")
    shown = text(store, f"?object=program:{number}")
    spent = elapsed(store.report())[data.column("steps", "program") == number].sum()
    assert "Compute set" in shown and str(data.column("programs", "name")[number]) in shown
    for part in ("Created at mlp_digits.py:", "Part of", "Lies on", "Writes", "Reads", "Executed"):
        assert part in shown
    assert f"Cycles {spent:,} cycles" in shown


@pytest.mark.parametrize(
    ("text_of_object", "parts_shown"),
    [
        ("tile:0", ("Tile 0", "Part of IPU 0", "Show in Memory")),
        ("operation:Layer1/Fwd/Conv_1", ("Operation", "Created at", "Cycles", "Show in Execution")),
        ("layer:Layer1", ("Layer", "Created at", "Live at the peak", "Show in Operations")),
        ("step:2", ("Step 2", "Part of", "Show in Execution")),
    ],
)
def test_each_kind_of_object_is_told(
    store: Store, text_of_object: str, parts_shown: tuple[str, ...]
) -> None:
    shown = text(store, f"?object={text_of_object}")
    assert all(part in shown for part in parts_shown)


@pytest.mark.parametrize("wrong", ["tile:x", "colour:3", "variable", "operation:no such", "layer:"])
def test_an_object_that_is_not_there_is_one_line(store: Store, wrong: str) -> None:
    with pytest.raises(AddressError, match="not there|no number"):
        text(store, f"?object={wrong}")


def test_other_pages_keep_the_object(store: Store) -> None:
    made: Any = drawer.drawer(store, parse("/liveness", "?object=tile:3"), "light")
    links = [part.href for part in parts(made) if str(getattr(part, "href", "")).startswith("/mem")]
    assert links == ["/memory?tile=3&object=tile%3A3"]


def test_findings_about_the_object_stand_in_the_drawer(store: Store) -> None:
    frame = insights(store.report())
    about = frame[frame["tile"] >= 0].iloc[0]
    chosen = parse("/memory", f"?object=tile:{about['tile']}")
    shown = words(drawer.findings(store, chosen, "light")).replace("\u00a0", " ")
    assert str(about["what"]) in shown
    other = parse("/memory", f"?object=tile:{about['tile'] + 1}")
    assert drawer.findings(store, other, "light") is None


def test_exchanges_and_compute_sets_are_the_programs_that_run_them(store: Store) -> None:
    data = store.report().dataset
    number = first_of(store, "DoExchange")
    frame = largest_exchanges(store.report())
    row = (frame["kind"] == "internal") & (
        frame["exchange"] == data.column("programs", "exchange")[number]
    )
    made = np.array(object_rows.exchange_objects(store.report(), frame), dtype=object)
    assert made[row.to_numpy()].tolist() == [f"program:{number}"]


def test_a_variable_is_marked_where_it_lives_and_lies() -> None:
    report = Report.of(small_report())
    data = report.dataset
    rows = data.column("variable_intervals", "variable")
    number = int(rows[0])
    tiles, name = object_tiles(report, f"variable:{number}")
    on = data.column("variable_pieces", "tile")[
        data.column("variable_pieces", "variable") == number
    ]
    assert tiles.tolist() == sorted(set(on.tolist()))
    assert name == data.column("variables", "name")[number]
    life = object_steps(report, f"variable:{number}")
    begins, ends = (
        data.column("variable_intervals", word)[rows == number] for word in ("begin", "end")
    )
    assert life == (begins.min(), ends.max() - 1, name)


@pytest.mark.parametrize("text", ["", "variable:99999", "operation:fc1", "variable:-1"])
def test_what_has_no_place_is_not_marked(text: str) -> None:
    report = Report.of(small_report())
    assert object_steps(report, text) is None
    assert not len(object_tiles(report, text)[0])


def test_a_tile_is_marked_by_itself() -> None:
    assert object_tiles(Report.of(small_report()), "tile:3")[0].tolist() == [3]


def test_a_program_step_is_its_program_then(store: Store) -> None:
    data = store.report().dataset
    number = int(np.argmax(data.column("liveness_steps", "bytes")))
    of = int(data.column("liveness_steps", "program")[number])
    shown = text(store, f"?object=program-step:{number}")
    assert f"Program step {number:,}" in shown and f"at step {number:,}" in shown
    made: Any = drawer.drawer(store, parse("/liveness", f"?object=program-step:{number}"), "light")
    shows = getattr(made, "data-shows")
    assert shows == f"program-step:{number}\nprogram:{of}"


def test_what_is_chosen_on_one_axis_is_a_step_where_it_is_odd(store: Store) -> None:
    on_axis, alone = (text(store, f"?object={one}") for one in ("at:5", "step:2"))
    assert on_axis == alone


@pytest.fixture(scope="module")
def rows_of(store: Store) -> Any:
    """Return the request for the first rows of a table that a page serves."""
    answers = served(application(store).server)

    def ask(table: str, search: str) -> list[dict[str, Any]]:
        asked = {"search": search, "startRow": 0, "endRow": 40, "sortModel": []}
        rows: list[dict[str, Any]] = orjson.loads(answers[table](asked))["rowData"]
        return rows

    return ask


@pytest.mark.parametrize(
    ("table", "search", "kind"),
    [
        ("memory-rows", "?tab=variables", "variable"),
        ("memory-rows", "?tab=compute-sets", "program"),
        ("memory-addresses", "?tab=variables&lies=address", "variable"),
        ("liveness-always", "?tab=always", "variable"),
        ("liveness-lifetimes", "?tab=lifetimes", "variable"),
        ("liveness-steps", "?tab=steps", "program-step"),
        ("programs-tree", "", "program"),
        ("operations-table", "", "operation"),
        ("graph-nodes", "?tab=variables", "variable"),
        ("graph-nodes", "?tab=compute-sets", "program"),
        ("execution-programs-table", "", "step"),
        ("insights-variables", "", "variable"),
        ("insights-exchanges", "?tab=exchanges", "program"),
    ],
)
def test_rows_of_all_tables_are_objects_that_the_drawer_knows(
    store: Store, rows_of: Any, table: str, search: str, kind: str
) -> None:
    objects = [row["object"] for row in rows_of(table, search) if row["object"]]
    assert objects and all(one.startswith(f"{kind}:") for one in objects)
    assert text(store, f"?object={quote(objects[0])}")


def test_what_pages_declare_as_objects_the_drawer_knows() -> None:
    kinds = {kind for page in declared() for of in page.objects.values() for kind in of.values()}
    assert kinds == {"tile", "program-step", "program", "step", "variable", "event", "at"}
    assert kinds <= set(KINDS)


@pytest.mark.parametrize("chosen", ["step=2", "object=step:2", "step=2&object=step:2"])
def test_a_link_to_a_step_opens_the_drawer_which_says_what_this_execution_took(
    store: Store, chosen: str
) -> None:
    state = parse("/execution", f"?{chosen}&tab=path")
    made: Any = drawer.drawer(store, state, "light")
    assert getattr(made, "data-shows").startswith("step:2\n")
    took = words(drawer.details(store, state, "light"))
    cycles = int(store.report().dataset.column("steps", "cycles")[2])
    assert took.startswith(f"This execution Cycles of its longest tile {cycles:,}")
    links = [part.href for part in parts(made) if getattr(part, "children", "") == "Close"]
    assert links == ["/execution?tab=path"]


def test_the_same_key_opens_no_drawer_where_the_page_does_not_dock_it(store: Store) -> None:
    assert drawer.drawer(store, parse("/liveness", "?step=2"), "light") is None
    assert drawer.details(store, parse("/liveness", "?object=tile:2"), "light") is None


@pytest.mark.parametrize(
    "link", ["/memory?object=tile:99999", "/execution?step=999999", "/execution?object=step:99999"]
)
def test_a_number_that_is_not_there_is_refused(store: Store, link: str) -> None:
    with pytest.raises(SelectionError, match="not there"):
        drawer.drawer(store, parse(*link.split("?")), "light")
