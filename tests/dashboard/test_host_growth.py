"""A host timeline that is continued as its file grows, against the same laid out at once."""

from __future__ import annotations

import sqlite3
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dashboard.timeline import host_growth
from dashboard.timeline.host_growth import grown_timeline
from pva.plot.host import HostTimeline, host_timeline
from pva.trace import openTrace
from pvti import schema

SECOND = 1_000_000_000
Event = tuple[int, int, int]  # begin, end, label


def nested(seed: int, first: int) -> list[Event]:
    """Return nested events of one thread, from a moment on to the tenth second."""
    random = np.random.default_rng(seed)
    events, around = [], []
    for time in np.unique(random.integers(first, 10 * SECOND, 600)).tolist():
        if around and random.random() < 0.5:
            begin, label = around.pop()
            events.append((begin, time, label))
        else:
            around.append((time, int(random.integers(1, 5))))
    return [*events, *((begin, 11 * SECOND, label) for begin, label in around)]


def write(path: Path, threads: list[list[Event]], now: int) -> Path:
    """Write what is in the file at a moment: threads, labels and marks that were there by then."""
    path.unlink(missing_ok=True)
    rows: dict[str, list[tuple[Any, ...]]] = {table.name: [] for table in schema.TABLES}
    rows["processes"] = [(1, 7, "made.py", 0, 10**18, now, 0, 0)]
    rows["channels"] = [(1, "one"), (2, "two")]
    rows["labels"] = [(1, 1, "Engine.run"), (2, 2, "b"), (3, 1, "c"), (4, 2, "d")]
    for number, events in enumerate(threads, 1):
        if events[0][0] > now:
            continue
        rows["threads"].append((number, 1, 100 + number, f"thread {number}"))
        ended = sorted((e for e in events if e[1] <= now), key=lambda e: e[1])
        is_open = [e for e in events if e[0] <= now < e[1]]
        brief = [(b, e - b, label) for b, e, label in ended if e - b < 1 << 32]
        rows["long_events"] += [(number, b, e - b, 0, n) for b, e, n in ended if e - b >= 1 << 32]
        data = b"".join(struct.pack("<QII", *event) for event in brief)
        begins, ends = [b for b, _, _ in brief], [b + d for b, d, _ in brief]
        if brief:
            chunk = (number, len(brief), min(begins), max(ends), zlib.crc32(data), data)
            rows["event_chunks"].append((number, *chunk))
        spans = enumerate(sorted(is_open))
        rows["open_spans"] += [(number, place, e[0], e[2]) for place, e in spans]
        rows["event_metadata"] += [(number, *e[::2], f'"{e[0]}"') for e in ended[::7]]
        marks = [e for e in events[::9] if e[0] <= now]
        rows["instants"] += [(number, begin, 2, None) for begin, _, _ in marks]
    file = sqlite3.connect(path)
    for statement in schema.create_statements():
        file.execute(statement)
    for table, values in rows.items():
        if values:
            file.executemany(schema.insert_statement(table), values)
    file.commit()
    file.close()
    return path


def told(made: HostTimeline) -> tuple[Any, ...]:
    """Return all that a page shows of a timeline, but for the number of rows never used again."""
    tracks = made.timeline.tracks
    rows = [
        (tracks.begin[low:high].tolist(), tracks.ends(np.arange(low, high)).tolist(),
         tracks.label[low:high].tolist())
        for low, high in zip(tracks.offset[:-1].tolist(), tracks.offset[1:].tolist(), strict=True)
    ]  # fmt: skip
    noted = made.timeline.lanes, dict(made.metadata), made.still_open, made.events
    return rows, noted, made.self_time.tolist(), made.timeline.extent


@pytest.mark.parametrize("seed", range(3))
def test_a_trace_that_grows_is_laid_out_as_if_it_had_been_there_at_once(
    tmp_path: Path, seed: int
) -> None:
    threads = [nested(seed, 0), nested(seed + 100, 2 * SECOND), nested(seed + 200, 8 * SECOND)]
    former = None
    for now in (5, 7, 9):
        trace = openTrace(write(tmp_path / "t.pvti", threads, now * SECOND))
        former = grown_timeline(trace, former)
        assert told(former) == told(host_timeline(trace))
        assert former.until == 3 * SECOND  # it was laid out once


def test_a_trace_is_laid_out_anew_when_much_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_growth, "MAX_LATE", 10)
    former = host_timeline(openTrace(write(tmp_path / "t.pvti", [nested(1, 0)], 5 * SECOND)))
    trace = openTrace(write(tmp_path / "t.pvti", [nested(1, 0)], 9 * SECOND))
    assert grown_timeline(trace, former).until == 7 * SECOND


def test_another_trace_of_the_same_name_is_laid_out_anew(tmp_path: Path) -> None:
    first = openTrace(write(tmp_path / "t.pvti", [nested(1, 0)], 5 * SECOND))
    former = host_timeline(first)
    other = openTrace(write(tmp_path / "t.pvti", [nested(2, 0)], 9 * SECOND))
    assert told(grown_timeline(other, former)) == told(host_timeline(other))
