"""Views that are made before the first visit, and the end of the server that makes them."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("dash")

from dashboard import warm_up
from dashboard.address import Address
from dashboard.app import application
from dashboard.store import Store
from dashboard.view import is_kept
from tests.builders import write_report


def test_end_of_the_server_waits_for_the_view_and_begins_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, ended, release = threading.Event(), [], threading.Event()

    def view(*_: Any) -> None:
        begun.set()
        release.wait(30)
        ended.append(threading.current_thread())

    store = Store([write_report(tmp_path / "run")])
    app = application(store)
    names = list(warm_up.makers(app))
    monkeypatch.setattr(warm_up, "makers", lambda _: dict.fromkeys(names, view))
    with warm_up.ready(app, store):
        assert begun.wait(30)
        threading.Timer(0.2, release.set).start()
    assert len(ended) == 1 and not ended[0].is_alive()


@pytest.mark.parametrize(
    ("ready", "largest", "made"),
    [(1, 1, set()), (1, 1 << 30, {"/memory"}), (1 << 30, 1 << 30, {"/memory", "/liveness"})],
)
def test_of_a_large_report_the_first_page_is_made_and_of_a_larger_one_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ready: int, largest: int, made: set[str]
) -> None:
    done = threading.Event()
    monkeypatch.setattr(warm_up, "MAX_BYTES", ready)
    monkeypatch.setattr(warm_up, "LARGEST", largest)
    monkeypatch.setattr(warm_up, "_make_reports_ready", lambda *_: done.set())
    store = Store([write_report(tmp_path / "run")])
    app = application(store)
    with warm_up.ready(app, store):
        assert done.wait(60)
    about = str(store.keys)
    pages = ("/memory", "/liveness")
    assert {path for path in pages if is_kept(store, Address(path), path, about=about)} == made
