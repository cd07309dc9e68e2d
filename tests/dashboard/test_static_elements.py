"""What goes to the browser as plain elements, which scripts it loads, what the store keeps."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dash import dcc, html

from dashboard.app import create_app
from dashboard.elements import overview
from dashboard.elements.static_elements import StaticElements, with_static_parts
from dashboard.scripts import ASSETS, PLOTLY_URL, VENDOR
from dashboard.store import Store
from tests.builders import write_report


def test_elements_that_no_callback_names_become_plain_ones() -> None:
    made = with_static_parts(
        html.Ul([html.Li(["<b>", html.B(3)], className="x"), dcc.Link("on", href="/a")])
    )
    nodes = [["ul", {}, ["li", {"className": "x"}, "<b>", ["b", {}, "3"]],
              ["link", {"href": "/a"}, "on"]]]  # fmt: skip
    assert isinstance(made, StaticElements) and made.nodes == nodes


def test_element_with_an_id_stays_with_the_plain_ones_around_it() -> None:
    made = with_static_parts(
        html.Div([html.P("a"), html.P("b"), html.Div("c", id="place"), html.P("d")])
    )
    first, place, last = made.children
    assert first.nodes == [["p", {}, "a"], ["p", {}, "b"]]
    assert (place.id, place.children) == ("place", ["c"])
    assert last.nodes == [["p", {}, "d"]]


def test_plain_elements_inside_of_plain_ones_are_made_one() -> None:
    made = with_static_parts(html.Div([StaticElements([["svg", {}]]), "x"]))
    assert made.nodes == [["div", {}, ["svg", {}], "x"]]


def test_strip_goes_round_the_highest_of_each_stretch() -> None:
    assert overview.outline(np.array([5, 10])) == "M0 100V54H1V8H2V100Z"
    assert overview.outline(np.arange(800)).count("H") == overview.POINTS
    assert overview.strip(np.array([1]), "plot", "all") is None


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return create_app([write_report(tmp_path_factory.mktemp("still") / "small")])


def test_page_loads_no_script_that_waits_or_that_nothing_needs(app: Any) -> None:
    page = app.server.test_client().get("/memory").text
    scripts = [part.split('"')[0] for part in page.split('<script src="')[1:]]
    for part in ("polyfill", "dash_table", "dash_ag_grid", "plotly"):
        assert not any(part in script for script in scripts)
    grid = page.split('name="tilescope-grid" content="')[1].split('"')[0]
    assert app.server.test_client().get(grid).status_code == 200


@pytest.mark.parametrize(("path", "first"), [("/memory", True), ("/execution", False)])
def test_page_that_begins_with_a_plot_asks_for_plotly_before_all_scripts(
    app: Any, path: str, first: bool
) -> None:
    page = app.server.test_client().get(path).get_data(as_text=True)
    place = page.find(f'href="{PLOTLY_URL}"')
    assert (-1 < place < page.index("<script")) is first


def test_own_scripts_and_styles_are_one_file_each(app: Any) -> None:
    page = app.server.test_client().get("/").text
    for kind in ("js", "css"):
        address = page.split(f'"/vendor/assets.{kind}')[1].split('"')[0]
        sent = app.server.test_client().get(f"/vendor/assets.{kind}{address}").data
        own = [path for path in ASSETS.glob(f"*.{kind}") if path.name != "early.js"]
        assert len(own) > 1 and all(path.read_bytes() in sent for path in own)
        assert f"/assets/parts.{kind}" not in page


def test_large_scripts_are_compiled_as_a_whole(app: Any) -> None:
    page = app.server.test_client().get("/").text
    scripts = [part.split('"')[0] for part in page.split('<script src="')[1:]]
    whole = [url for url in [*scripts, PLOTLY_URL] if _is_whole(app, url)]
    for part in ("react-dom@", "dash_renderer", "mantine", "/dash_core_components.", "plotly"):
        assert sum(part in url for url in whole) == 1, part


def _is_whole(app: Any, url: str) -> bool:
    sent = app.server.test_client().get(url, buffered=True)
    assert sent.status_code == 200, url
    return bool(sent.data.startswith(b"//# allFunctionsCalledOnLoad\n"))


def test_plotly_and_what_dash_needs_of_the_polyfill_are_served(app: Any) -> None:
    client = app.server.test_client()
    assert len(client.get(PLOTLY_URL, buffered=True).data) < 2_000_000
    runtime = client.get("/vendor/regenerator-runtime.js", buffered=True)
    assert b"regeneratorRuntime" in runtime.data
    assert client.get("/vendor/%2e%2e%2fapp.py").data != (VENDOR.parent / "app.py").read_bytes()


def test_answer_is_made_again_when_a_file_changed(tmp_path: Path) -> None:
    store = Store([write_report(tmp_path / "small")])
    answers = iter(range(9))

    def kept() -> int:
        return store.answer(("name", store.shown("small")), lambda: next(answers))

    assert (kept(), kept()) == (0, 0)
    os.utime(tmp_path / "small" / "profile.pop", ns=(1, 1))
    assert (kept(), kept()) == (1, 1)
    store.forget("small")
    assert kept() == 2
