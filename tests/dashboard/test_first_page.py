"""The page that comes with the window: that of its address, where it was laid out before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("dash")

from dashboard.address import place
from dashboard.app import application
from dashboard.store import Store
from dashboard.warm_up import make_pages
from tests.builders import write_report
from tests.dashboard.test_kept_parts import asked


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store([write_report(tmp_path / "small")])


def parts_of(node: Any) -> dict[str, dict[str, Any]]:
    """Return the properties of all elements of a layout that have a name."""
    found: dict[str, dict[str, Any]] = {}
    for child in node if isinstance(node, list) else []:
        found |= parts_of(child)
    if isinstance(node, dict):
        properties = node.get("props", {})
        if isinstance(properties.get("id"), str):
            found[properties["id"]] = properties
        found |= parts_of(properties.get("children"))
    return found


def window(client: Any, at: str) -> dict[str, dict[str, Any]]:
    """Return the parts of the window that a browser asks for at an address."""
    return parts_of(client.get("/_dash-layout", query_string={"at": at}).json)


def test_page_that_was_made_before_comes_with_the_window_as_the_router_answers(
    store: Store,
) -> None:
    app = application(store)
    make_pages(app, store)
    client = app.server.test_client()
    parts = window(client, "/memory")
    assert parts["memory-plot"]["figure"]["data"]
    assert parts["shown"]["data"] == parts["kept"]["data"]["/memory"]
    assert parts["place"]["data"] == {"path": "/memory", "report": None, "against": None}
    assert parts["report-name"]["children"] == "small"
    assert '"report-name":{"children":"small"}' in asked(client, "/memory")


def test_window_comes_alone_until_its_page_was_made(store: Store) -> None:
    client = application(store).server.test_client()
    parts = window(client, "/memory")
    assert "memory-plot" not in parts and "data" not in parts["shown"]


@pytest.mark.parametrize("at", ["", "/nowhere", "/memory?tile=x", "/memory?report=gone", "/"])
def test_window_comes_alone_where_the_router_has_more_to_say(store: Store, at: str) -> None:
    app = application(store)
    make_pages(app, store)
    parts = window(app.server.test_client(), at)
    assert "data" not in parts["place"] and "data" not in parts["shown"]


@pytest.mark.parametrize(
    ("search", "report"), [("", None), ("?report=", ""), ("?report=a&report=b", "a")]
)
def test_place_is_that_of_the_browser(search: str, report: str | None) -> None:
    assert place("/memory", search) == {"path": "/memory", "report": report, "against": None}
