"""A long host trace is sketched until its events are read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dashboard.timeline import endpoint
from tests.dashboard.test_bad_timelines import client, drawn, write

EVENTS = [(thread, 1000 * thread + 10 * n, 1000 * thread + 10 * n + 8, 0)
          for thread in range(3) for n in range(50)]  # fmt: skip
LAYOUT = "/timeline/host/layout?sketch=on"


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Serve a trace that is long enough to be sketched."""
    monkeypatch.setattr(endpoint, "SKETCHED", len(EVENTS) - 1)
    return client(write(tmp_path / "t.pvti", EVENTS, ["a"]))


def test_a_sketch_has_the_lanes_and_the_extent_of_the_whole(served: Any) -> None:
    early, whole = (served.get(link).json for link in (LAYOUT, "/timeline/host/layout"))
    assert (early["sketch"], whole["sketch"]) == (True, False)
    assert early["extent"] == whole["extent"] == [0, 2498]
    lanes = [[(lane["name"], lane["path"]) for lane in layout["lanes"]]
             for layout in (early, whole)]  # fmt: skip
    assert lanes[0] == lanes[1] and len(lanes[0]) == 3


def test_a_sketch_tells_when_each_thread_had_events(served: Any) -> None:
    served.get(LAYOUT)
    header, columns = drawn(served, rows="0-3", sketch="on")
    assert columns["begin"].tolist() == [0, 1000, 2000]
    assert columns["length"].tolist() == [498] * 3
    assert header["labels"] == ["Events that are being read"]


def test_what_is_ready_is_not_sketched(served: Any) -> None:
    served.get("/timeline/host/layout")
    assert not served.get(LAYOUT).json["sketch"]


@pytest.mark.parametrize("more", ["merged=on", "align=start"])
def test_threads_that_are_laid_out_otherwise_are_not_sketched(served: Any, more: str) -> None:
    assert not served.get(f"{LAYOUT}&{more}").json["sketch"]


def test_a_short_trace_is_not_sketched(served: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "SKETCHED", len(EVENTS))
    assert not served.get(LAYOUT).json["sketch"]
