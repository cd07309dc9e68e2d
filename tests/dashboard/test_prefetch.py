"""What is made of a source before its reader asks for it, and what that gives way to."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("dash")

from flask import Flask

from dashboard import prefetch
from dashboard.address import Address
from dashboard.app import application
from dashboard.pages import broken_laws, insights
from dashboard.prefetch import Prefetcher
from dashboard.requests import under_way
from dashboard.requests.under_way import UnderWay
from dashboard.store import Store
from dashboard.timeline import endpoint
from pva.analysis.timeline.pyramid import build
from pva.plot.lanes import Timeline
from tests.builders import write_report


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store([write_report(tmp_path / "small")])


def finished(soon: Prefetcher) -> Prefetcher:
    """Wait until nothing is awaited."""
    until = time.monotonic() + 30
    while soon.awaits("small") and time.monotonic() < until:
        time.sleep(0.01)
    return soon


def prepared(store: Store, rest: Any = lambda: None) -> Prefetcher:
    soon = Prefetcher(store, rest)
    soon.prepare("small")
    return finished(soon)


def timers() -> list[threading.Timer]:
    return [each for each in threading.enumerate() if isinstance(each, threading.Timer)]


def forbidden(*_: object) -> Any:
    raise AssertionError("worked out again")


def test_a_source_that_is_shown_is_made_ready_once(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    whole = Timeline("cycles", 1.0, (), build([]), [], [])

    def device_timeline(*_: object, **__: object) -> object:
        return made.append("device") or whole

    monkeypatch.setattr(endpoint, "device_timeline", device_timeline)
    monkeypatch.setattr(prefetch, "DELAY_SECONDS", 0)
    shown = Prefetcher(store, lambda: None)
    for _ in range(2):
        shown.show("small")
    for timer in timers():
        timer.join()
    finished(shown)
    assert endpoint.timeline(store, "device", "small") is whole
    assert made == ["device"]


def test_findings_and_laws_are_there_before_the_first_click(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared(store)
    monkeypatch.setattr(insights.analysis, "answer_of", forbidden)
    monkeypatch.setattr(broken_laws, "LAWS", ())
    monkeypatch.setattr(insights.analysis, "examination", forbidden)
    assert store.knows("small", broken_laws.PANEL)
    findings, _ = insights.examined(store, Address(insights.PATH, "small"))
    assert "does_it_fit" in findings["rule"].tolist()


def test_each_part_waits_for_a_rest_and_none_is_begun_after_the_end(store: Store) -> None:
    rests: list[int] = []
    kinds = (prefetch.findings, prefetch.timelines, prefetch.laws)
    count = sum(len(list(parts(store, "small"))) for parts in kinds)
    prepared(store, lambda: rests.append(1))
    assert len(rests) == count > len(broken_laws.LAWS)
    ended = Prefetcher(Store([store.path("small")]), lambda: rests.append(1))
    ended.end(1)
    ended.prepare("small")
    finished(ended)
    assert len(rests) == count + len(kinds) and not ended.awaits("small")


def test_who_asks_during_the_work_waits_for_one_rule_alone(store: Store) -> None:
    begun, release = threading.Event(), threading.Event()
    rests = iter(range(1000))

    def rest() -> None:
        if next(rests) == 5:  # among the rules
            begun.set()
            release.wait(30)

    soon = Prefetcher(store, rest)
    worker = threading.Thread(target=soon.prepare, args=("small",))
    worker.start()
    assert begun.wait(30)
    findings, _ = insights.examined(store, Address(insights.PATH, "small"))
    assert len(findings) and worker.is_alive()
    release.set()
    worker.join()
    finished(soon)


def test_the_browser_asks_again_for_laws_that_are_under_way(store: Store) -> None:
    app = application(store)
    with app.server.app_context():
        answers = app.callback_map
        name = next(key for key in answers if key.startswith(f"{broken_laws.PANEL}.children@"))
    view = {"path": "/execution", "search": "?report=small", "theme": "light", "stamp": ""}
    body = {
        "output": name,
        "outputs": {"id": broken_laws.PANEL, "property": name.partition(".")[2]},
        "inputs": [{"id": broken_laws.LATER, "property": "n_intervals", "value": 1}],
        "state": [{"id": {"view": broken_laws.PANEL}, "property": "data", "value": view}],
        "changedPropIds": [f"{broken_laws.LATER}.n_intervals"],
    }
    client, soon = app.server.test_client(), prefetch.prefetcher_of(app)
    soon._waiting.add("small")
    assert client.post("/_dash-update-component", json=body).status_code == 204
    soon._waiting.clear()
    assert client.post("/_dash-update-component", json=body).status_code == 200
    assert store.knows("small", broken_laws.PANEL)


def test_a_source_that_went_away_is_prepared_in_silence(tmp_path: Path) -> None:
    path = write_report(tmp_path / "small")
    store = Store([path])
    (path / "profile.pop").unlink()
    soon = Prefetcher(store, lambda: None)
    thread = threading.Thread(target=soon.prepare, args=("small",))
    thread.start()
    thread.join()
    assert store.trace("small") is None and not finished(soon).awaits("small")


def test_rest_waits_for_requests_but_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(under_way, "PATIENCE", 0.1)
    monkeypatch.setattr(under_way, "PAUSE", 0.0)
    server, waited = Flask("server"), []
    requests = UnderWay(server)

    def asked() -> str:
        begin = time.monotonic()
        requests.rest()
        waited.append((requests.count, time.monotonic() - begin))
        return ""

    server.add_url_rule("/", view_func=asked)
    server.test_client().get("/")
    assert waited[0][0] == 1 and waited[0][1] >= 0.1
    assert requests.count == 0
    begin = time.monotonic()
    requests.rest()
    assert time.monotonic() - begin < 0.1


@pytest.mark.parametrize(("kind", "seconds"), [("document", 0.3), ("empty", 0.1)])
def test_rest_lasts_longer_than_the_pauses_of_a_page(
    monkeypatch: pytest.MonkeyPatch, kind: str, seconds: float
) -> None:
    monkeypatch.setattr(under_way, "PAUSE", 0.1)
    monkeypatch.setattr(under_way, "LOADING", 0.3)
    server = Flask("server")
    requests = UnderWay(server)
    begin = time.monotonic()
    server.test_client().get("/", headers={"Sec-Fetch-Dest": kind})
    requests.rest()
    assert seconds <= time.monotonic() - begin < seconds + 0.15
