"""What the layouts hold against what the callbacks and the server know."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from pyarrow.parquet import read_schema

from dashboard import downloads, tables, view
from dashboard.address import Address
from dashboard.app import create_app
from dashboard.pages import PAGES
from dashboard.store import Store
from dashboard.view import following
from tests.builders import write_report
from tests.dashboard.layouts import parts
from tests.fuzz.seeds import write_trace
from tests.many.explored import write_explored
from tests.many.planted import Plan, write_planted


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store([write_report(tmp_path_factory.mktemp("wiring") / "small")])


@pytest.fixture(scope="module")
def app(store: Store) -> Any:
    return create_app([store.path()])


def inputs(app: Any) -> set[str]:
    """Name the inputs of all callbacks."""
    found = set()
    for callback in app._callback_list:
        for each in callback["inputs"]:
            found.add(each["id"])
    return found


def layouts(store: Store) -> Iterator[Any]:
    for page in PAGES:
        if page.available(store, ""):
            yield from parts(page.layout(store, Address(page.PATH)))


def test_every_view_of_a_page_is_followed_by_a_callback(app: Any, store: Store) -> None:
    known = inputs(app)
    views = [
        part.id
        for part in layouts(store)
        if isinstance(getattr(part, "id", None), dict) and "view" in part.id
    ]
    assert views
    assert all(json.dumps(each, separators=(",", ":")) in known for each in views)


def test_every_download_that_a_page_offers_is_there(app: Any, store: Store) -> None:
    names = {getattr(part, "data-download", None) for part in layouts(store)} - {None}
    assert names <= set(downloads.offered(app.server))


def csv_columns(text: str) -> list[str]:
    """Return the names in the first line."""
    return next(csv.reader(text.splitlines()))


# What an address must choose for a download of the files below, by the download's name.
CHOICES = {"compare-labels": "report=trace.pvti&against=trace.pvti",
           "compare-": "report=small&against=other", "trace-": "report=trace.pvti",
           "instance-": "report=instance_0000", "serving-": "report=served.json",
           "explore-": "report=k0"}  # fmt: skip
SERVED = Path(__file__).parents[1] / "traces" / "served.json"
PROGRAM = "report=small&program=9"


def test_every_download_is_given_as_csv_and_parquet(tmp_path: Path) -> None:
    trace = tmp_path / "trace.pvti"
    write_trace(trace)
    reports = [write_report(tmp_path / name) for name in ("small", "other")]
    run = write_planted(tmp_path / "run", Plan(instances=2))
    space = write_explored(tmp_path / "space")
    app = create_app([*reports, trace, run, space, SERVED])
    client = app.server.test_client()
    for name in downloads.offered(app.server):
        query = next((CHOICES[head] for head in CHOICES if name.startswith(head)), PROGRAM)
        text, packed = (
            client.get(f"/download/{name}.{kind}?{query}") for kind in ("csv", "parquet")
        )
        assert (text.status_code, packed.status_code) == (200, 200), f"{name}: {text.text}"
        assert csv_columns(text.text) == read_schema(BytesIO(packed.data)).names, name
    assert client.get(f"/download/memory-total.exe?{PROGRAM}").status_code == 404


def test_a_download_of_what_no_report_has_is_one_line(app: Any) -> None:
    answer = app.server.test_client().get("/download/trace-labels.csv")
    assert (answer.status_code, answer.text.count("\n")) == (404, 1)
    assert "no host trace; set PVTI_OPTIONS and run again" in answer.text


def test_download_holds_what_the_address_chooses(app: Any) -> None:
    answer = app.server.test_client().get("/download/memory-variables.csv?tab=variables&tile=3")
    assert answer.text.startswith("variable,name,category")
    assert "attachment" in answer.headers["Content-Disposition"]


def test_rows_of_a_table_are_those_that_the_address_chooses(app: Any, store: Store) -> None:
    names = [str(name) for name in store.report().dataset.column("variables", "name")]
    asked = {"search": f"?tab=variables&filter=name~{names[0]}", "startRow": 0, "endRow": 100}
    sent = app.server.test_client().post("/rows/memory-rows", json=asked).json
    found = {name for name in names if names[0].lower() in name.lower()}
    assert {row["name"] for row in sent["rowData"]} == found and len(found) < len(set(names))
    assert sent["note"] == tables.counted_rows(sent["rowCount"])


@pytest.mark.parametrize(
    ("asked", "note"),
    [({"search": "?report=../large"}, "not there; known: small"),
     ({"search": "?tile=x"}, "tile=x")],
)  # fmt: skip
def test_rows_that_cannot_be_are_none_and_say_why(app: Any, asked: Any, note: str) -> None:
    sent = app.server.test_client().post("/rows/memory-rows", json=asked).json
    assert (sent["rowData"], sent["rowCount"]) == ([], 0) and note in sent["note"]


def test_a_place_of_rows_that_is_no_number_is_refused_in_one_line(app: Any) -> None:
    answer = app.server.test_client().post("/rows/memory-rows", json={"startRow": "x"})
    assert (answer.status_code, answer.text.count("\n")) == (400, 1)


def test_rows_of_no_table_are_not_found(app: Any) -> None:
    client = app.server.test_client()
    assert client.post("/rows/nothing", json={}).status_code == 404
    assert client.post("/rows/memory-rows", data="[").status_code == 404


def test_view_that_waits_for_its_page_makes_nothing(store: Store) -> None:
    from dash.exceptions import PreventUpdate

    answer = following(store, lambda *_: "made")
    with pytest.raises(PreventUpdate):
        answer({"path": "/memory", "keys": []})
    assert answer({"path": "/memory", "search": "tile=3"}) == "made"


def test_view_takes_its_theme_and_address() -> None:
    made = following(Store([]), lambda _, chosen, theme: (chosen.tiles, theme))
    assert made({"path": "/memory", "search": "tile=3-4", "theme": "dark"}) == ((3, 4), "dark")
    assert view.seen_theme({"theme": "pink"}) == "light"


def test_router_says_while_it_opens_a_report(app: Any) -> None:
    router = next(each for each in app._callback_list if "page-above.children" in each["output"])
    assert router["running"]["running"] == {"busy.className": "busy"}
