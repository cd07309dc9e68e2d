"""Which parts come with their page, and what a page answers when its files change."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("dash")

from dashboard import parts
from dashboard.app import application
from dashboard.parts import follow
from dashboard.requests.written import Written
from dashboard.store import Store
from dashboard.warm_up import make_pages
from tests.builders import write_report

VIEW = {"path": "/memory", "keys": ["report", "against", "tile", "object!"], "themed": False}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store([write_report(tmp_path / "small")])


def asked(client: Any, path: str, search: str = "") -> str:
    """Ask for a page as the browser does, and return the text of the answer."""
    route = next(
        entry for entry in client.get("/_dash-dependencies").get_json()
        if "page-above.children" in entry["output"]
    )  # fmt: skip
    values = {"place": {"path": path}, "address.pathname": path, "address.search": search}

    def valued(source: dict[str, str]) -> dict[str, Any]:
        both = f"{source['id']}.{source['property']}"
        return source | {"value": values.get(both, values.get(source["id"]))}

    names = [name.rpartition(".") for name in route["output"].strip(".").split("...")]
    body = {
        "output": route["output"],
        "outputs": [{"id": name, "property": property} for name, _, property in names],
        "inputs": list(map(valued, route["inputs"])),
        "state": list(map(valued, route["state"])),
        "changedPropIds": ["place.data"],
    }
    return str(client.post("/_dash-update-component", json=body).get_data(as_text=True))


@pytest.mark.parametrize(("made_before", "comes"), [(False, False), (True, True)])
def test_parts_that_were_made_before_come_with_their_page(
    store: Store, made_before: bool, comes: bool
) -> None:
    app = application(store)
    if made_before:
        make_pages(app, store)
    page = asked(app.server.test_client(), "/memory")
    assert ('"figure":{"data":' in page) is comes
    assert ('"search":""' in page) is comes


def test_a_part_too_large_is_left_to_a_request_of_its_own(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "MAX_BYTES", 3000)
    app = application(store)
    make_pages(app, store)
    page = asked(app.server.test_client(), "/memory")
    assert '"figure"' not in page and '"search":""' in page


def test_a_page_written_before_is_read_again_when_its_files_change(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dashboard.store.QUICK", 3600.0)
    app = application(store)
    make_pages(app, store)
    client = app.server.test_client()
    before = json.loads(asked(client, "/memory"))["response"]["shown"]["data"]["stamp"]
    (tmp_path / "small" / "app.json").write_text('{"name": "another"}')
    page = asked(client, "/memory")
    assert json.loads(page)["response"]["shown"]["data"]["stamp"] != before
    assert '"figure":{"data":' not in page  # what was kept is of the files before


@pytest.mark.parametrize(
    ("search", "part"),
    [
        ("?tab=a&tile=3,17&report=a b~*", "report=a+b%7E*&tile=3%2C17"),
        ("?tile=1&tile=2", "tile=1"),
        ("", ""),
    ],
)
def test_a_view_follows_the_address_as_in_the_browser(search: str, part: str) -> None:
    assert follow(VIEW, search, "s") == VIEW | {"search": part, "stamp": "s"}


def test_a_view_that_shows_objects_is_left_to_the_browser_where_one_is_chosen() -> None:
    assert follow(VIEW, "?object=tile:3", "s") is None


def test_the_texts_used_longest_ago_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dashboard.requests.written.MAX_BYTES", 10)
    written = Written()
    for entry in ("a", "b"):
        written.keep(entry, "12")  # four letters with its quotes
    written.get("a")
    written.keep("c", "12")
    assert [written.get(entry) is None for entry in "abc"] == [False, True, False]
