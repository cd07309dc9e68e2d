"""Names of 100,000 letters: the server sends their ends, and makes every answer of these."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dash._utils import to_json

from dashboard import tables, view
from dashboard.address import parse
from dashboard.app import create_app, show
from dashboard.store import MAX_LETTERS, Store
from pva.data.long_texts import cut, cut_inside
from pva.plot.device import layer_codes
from pva.plot.lanes import Labels
from pva.report import openReport
from tests.browser.reports import hostile
from tests.builders import write_report

LONG = 100_000
TEXT = "long-name/" * (LONG // 10)
PAGES = ("summary", "memory", "liveness", "programs", "operations", "graph", "insights",
         "execution", "trace", "compare", "compare-labels")  # fmt: skip
ASKED = {
    "trace": "?report=trace.json&event=1&range=0-9000",
    "compare": "?report=long&against=long",
    "compare-labels": "?report=trace.json&against=other.json",
    "summary": "?report=long&tab=documents",
}
EVENT = {"name": f"event {TEXT}", "ph": "X", "ts": 1, "dur": 5, "pid": 1, "tid": 1, "cat": TEXT,
         "args": {"a": TEXT}}  # fmt: skip
INSTANT = {"name": f"instant {TEXT}", "ph": "i", "s": "t", "ts": 2, "pid": 1, "tid": 1}
COUNTER = {"name": f"counter {TEXT}", "ph": "C", "ts": 3, "pid": 1, "args": {f"x{TEXT}": 4}}
NAMES = [{"name": name, "ph": "M", "pid": 1, "tid": 1, "args": {"name": TEXT}}
         for name in ("thread_name", "process_name")]  # fmt: skip


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Path]]:
    folder = tmp_path_factory.mktemp("names")
    report = write_report(folder / "long", hostile(TEXT))
    (report / "app.json").write_text(json.dumps({TEXT: {"a": [TEXT, 1]}}))
    trace = folder / "trace.json"
    trace.write_text(json.dumps([*NAMES, EVENT, EVENT, INSTANT, COUNTER]))
    other = folder / "other.json"
    other.write_text(json.dumps([*NAMES, EVENT | {"dur": 9}]))
    yield [report, trace, other]


def _of(page: str, makers: dict[str, Any]) -> list[Any]:
    """Return the makers of a page; Compare has some of reports and others of host traces."""
    parts = {name: name.startswith("compare-labels") for name in makers}
    of_traces = page == "compare-labels"
    path = page.partition("-")[0]
    return [make for name, make in makers.items()
            if name.partition("-")[0] == path and parts[name] == of_traces]  # fmt: skip


@pytest.mark.parametrize("page", PAGES)
def test_no_page_sends_a_long_name_in_full(paths: list[Path], page: str) -> None:
    app, store = create_app(paths), Store(paths)
    address = ASKED.get(page, "?report=long&step=0&program=1")
    path = f"/{page.partition('-')[0]}"
    chosen = parse(path, address)
    sent = [
        to_json(show(store, path, address, None)),
        *(to_json(make(store, chosen, "light")) for make in _of(page, view.makers(app))),
        *(table({"search": address}).decode() for table in _of(page, tables.served(app.server))),
    ]
    assert any("long-name" in text for text in sent)
    assert max(map(len, sent)) < LONG


@pytest.mark.parametrize("source", ["device?report=long", "host?report=trace.json"])
def test_no_timeline_sends_a_long_name_in_full(paths: list[Path], source: str) -> None:
    client = create_app(paths).server.test_client()
    name, _, report = source.partition("?")
    parts = ["", "/layout", "/search", *(["/charts"] if name == "host" else [])]
    for part in parts:
        answer = client.get(f"/timeline/{name}{part}?{report}&q=long")
        assert answer.status_code == 200
        assert len(answer.data) < LONG


def test_only_what_is_longer_than_the_limit_is_cut() -> None:
    whole = "x" * MAX_LETTERS
    assert cut(whole, MAX_LETTERS) == whole
    shown = cut("begin" + whole + "end", MAX_LETTERS)
    assert len(shown) == MAX_LETTERS
    assert shown.startswith("begin") and shown.endswith("end")
    assert "2,008-letters-" in shown


def test_long_names_that_differ_in_the_middle_stay_different() -> None:
    names = [f"{TEXT}{middle}{TEXT}" for middle in "aab"]
    first, again, other = (cut(name, MAX_LETTERS) for name in names)
    assert first == again != other


def test_a_document_is_cut_inside() -> None:
    text: Any = "b" * 90
    assert cut_inside({"a": [text, 1, None, {text: True}]}, 90) == {
        "a": [text, 1, None, {text: True}]
    }
    short = cut(text, 50)
    assert cut_inside({"a": [text, 1, None, {text: True}]}, 50) == {
        "a": [short, 1, None, {short: True}]
    }
    deep: Any = text
    for _ in range(20_000):
        deep = [deep]
    deep = cut_inside(deep, 50)
    while isinstance(deep, list):
        (deep,) = deep
    assert deep == short


def test_a_report_is_read_in_full_unless_a_limit_is_asked_for(paths: list[Path]) -> None:
    whole, short = (openReport(paths[0], longest=longest) for longest in (None, 500))
    names, cut_names = (each.dataset.column("programs", "name") for each in (whole, short))
    assert max(map(len, names)) > LONG and max(map(len, cut_names)) == 500
    assert list(cut_names) == [cut(name, 500) for name in names]
    assert whole.app == {TEXT: {"a": [TEXT, 1]}}
    assert short.app == {cut(TEXT, 500): {"a": [cut(TEXT, 500), 1]}}


def test_layers_of_long_names_are_the_outermost() -> None:
    labels = Labels()
    names = ["a/b/" + "c/" * LONG, "a/b", "a/b-c/d"]  # "-" sorts before "/"
    first, second, *_ = layer_codes(names, labels)
    assert [labels.texts[code] for code in first] == ["a", "a", "a"]
    assert [labels.texts[code] for code in second] == ["a/b", "a/b", "a/b-c"]
