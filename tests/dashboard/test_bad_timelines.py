"""Traces that no screen is made for, windows that are none, files that go away or grow."""

from __future__ import annotations

import json
import sqlite3
import struct
import zlib
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest

from dashboard.address import parse
from dashboard.app import create_app
from dashboard.details import drawer
from dashboard.pages.trace import page
from dashboard.store import Store
from dashboard.timeline.packing import unpack
from pvti import schema

MEGABYTE = "<script>alert(1)</script>" * 40_000


def write(
    path: Path,
    events: list[tuple[int, int, int, int]],
    labels: list[str],
    *,
    pid: int = 7,
    wall: int = 10**18,
) -> Path:
    """Write a trace of events: thread, begin, end, label; it begins at `wall`."""
    path.unlink(missing_ok=True)
    file = sqlite3.connect(path)
    for statement in schema.create_statements():
        file.execute(statement)
    last = max((end for _, _, end, _ in events), default=0)
    rows: dict[str, list[tuple[Any, ...]]] = {
        "processes": [(1, pid, "made.py", 0, wall, last, 1, 0)],
        "channels": [(1, "<b>made</b>")],
        "labels": [(number + 1, 1, text) for number, text in enumerate(labels)],
        "threads": [],
        "event_chunks": [],
    }
    for thread in sorted({thread for thread, *_ in events}):
        mine = [event for event in events if event[0] == thread]
        mine.sort(key=lambda event: (event[2], -event[1]))
        data = b"".join(struct.pack("<QII", b, e - b, label + 1) for _, b, e, label in mine)
        rows["threads"].append((thread + 1, 1, 100 + thread, f"thread {thread}"))
        begins, ends = [event[1] for event in mine], [event[2] for event in mine]
        rows["event_chunks"].append(
            (thread + 1, thread + 1, len(mine), min(begins), max(ends), zlib.crc32(data), data)
        )
    for table, values in rows.items():
        file.executemany(schema.insert_statement(table), values)
    file.commit()
    file.close()
    return path


def client(path: Path) -> Any:
    return create_app([path]).server.test_client()


def drawn(served: Any, **asked: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Ask for a window."""
    search = "&".join(f"{key}={value}" for key, value in asked.items())
    answer = served.get(f"/timeline/host?{search}")
    assert answer.status_code == 200
    assert len(answer.data) < 100_000
    return unpack(answer.data)


CASES = {
    "no event": ([], []),
    "one event": ([(0, 5, 9, 0)], ["a"]),
    "one instant": ([(0, 5, 5, 0)], ["a"]),
    "all at one instant": ([(0, 5, 5, 0)] * 3000, ["a"]),
    "instant at the end": ([(0, 0, 100, 0), (0, 100, 100, 1)], ["a", "b"]),
    "deep": ([(0, n, 5000 - n, 0) for n in range(1000)], ["a"]),
    "long labels": ([(0, 5, 9, 0), (0, 10, 12, 1)], [MEGABYTE, "</div>"]),
}


@pytest.mark.parametrize("case", CASES)
def test_every_trace_is_drawn_and_every_event_is_in_it(tmp_path: Path, case: str) -> None:
    events, labels = CASES[case]
    served = client(write(tmp_path / "t.pvti", events, labels))
    layout = served.get("/timeline/host/layout").json
    assert layout["events"] == len(events)
    rows = max((lane["stop"] for lane in layout["lanes"]), default=0)
    seen = 0
    for first in range(0, rows, 300):
        header, columns = drawn(served, rows=f"{first}-{first + 300}")
        seen += int(columns["count"].sum())
        assert all(len(label) < 400 for label in header["labels"])
    assert seen == len(events)


@pytest.mark.parametrize("case", CASES)
def test_every_trace_has_a_page(tmp_path: Path, case: str) -> None:
    store = Store([write(tmp_path / "t.pvti", *CASES[case])])
    for search in ("", "?tab=calls", "?tab=callers", "?event=0" if CASES[case][0] else ""):
        chosen = parse("/trace", search)
        page.layout(store, chosen)
        page.answer(store, chosen, "light")
        page.time_tables(store, chosen, "light")
        drawer.drawer(store, chosen, "light")


def test_ten_thousand_threads_are_laid_out_and_drawn(tmp_path: Path) -> None:
    events = [(thread, thread, thread + 50, 0) for thread in range(10_000)]
    served = client(write(tmp_path / "t.pvti", events, ["a"]))
    layout = served.get("/timeline/host/layout")
    assert len(layout.json["lanes"]) == 10_000
    _, columns = drawn(served, rows="9990-20000")
    assert columns["row"].tolist() == list(range(9990, 10_000))


WINDOWS = [
    ("nan", "5"), ("5", "nan"), ("inf", "-inf"), ("9", "2"), ("5", "5"), ("x", "y"), ("", ""),
    ("-1e30", "1e30"), ("1e18", "2e18"), ("-500", "-400"), ("1e-9", "2e-9"),
]  # fmt: skip


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Serve a trace of one event."""
    folder = tmp_path_factory.mktemp("one")
    return client(write(folder / "t.pvti", [(0, 5, 9, 0)], ["x<b>%\x00(((*"]))


@pytest.mark.parametrize(("begin", "end"), WINDOWS)
def test_windows_that_are_none_are_answered(small: Any, begin: str, end: str) -> None:
    for pixels in ("0", "-7", "x", "1e9", "99999999999"):
        header, columns = drawn(small, begin=begin, end=end, pixels=pixels)
        assert header["n"] == len(columns["begin"]) <= 1
        assert header["window"][0] < header["window"][1]


@pytest.mark.parametrize("text", ["<b>", "%", "\x00", "a" * 5000, "*", "((("])
def test_any_text_is_searched_for(small: Any, text: str) -> None:
    found = small.get(f"/timeline/host/search?q={quote(text)}").json
    assert found["total"] == int(len(text) < 10)


def test_a_file_that_goes_away_is_told_in_one_line(tmp_path: Path) -> None:
    path = write(tmp_path / "t.pvti", [(0, 5, 9, 0)], ["a"])
    served = client(path)
    assert drawn(served)[0]["n"] == 1
    path.unlink()
    answer = served.get("/timeline/host")
    assert answer.status_code == 404
    assert answer.text.count("\n") == 0 and "t.pvti" in answer.text


def test_a_file_that_grows_is_read_again(tmp_path: Path) -> None:
    path = write(tmp_path / "t.pvti", [(0, 5, 9, 0)], ["a"])
    served = client(path)
    assert served.get("/timeline/host/layout").json["extent"] == [5, 9]
    write(path, [(0, 5, 9, 0), (0, 20, 3000, 0), (1, 1, 2, 0)], ["a"])
    layout = served.get("/timeline/host/layout").json
    assert (layout["extent"], layout["events"]) == ([1, 3000], 3)
    assert len(json.dumps(layout["lanes"])) and len(layout["lanes"]) == 2


def test_events_keep_their_numbers_in_the_answer(tmp_path: Path) -> None:
    events = [(0, 0, 100, 0), (0, 10, 20, 1), (0, 30, 40, 1)]
    served = client(write(tmp_path / "t.pvti", events, ["a", "b"]))
    _, columns = drawn(served)
    assert columns["item"].tolist() == [0, 1, 2]
    assert np.diff(columns["begin"][1:]).tolist() == [20]
