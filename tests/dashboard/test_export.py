"""The data of an exported file: packed without loss, joined where there is much, names as data."""

from __future__ import annotations

import base64
import json
import re
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dashboard.export import packed, timelines, write
from dashboard.store import Store
from dashboard.timeline.endpoint import timeline
from pva.analysis.timeline.pyramid import build
from pva.formats import registry
from pva.plot.lanes import Lane, Timeline
from tests.builders import small_report, write_report

SAMPLES = Path(__file__).parents[2] / "sample_reports"
HOSTILE = "</script><script>alert('x')</script>"


def unpacked(data: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read packed columns back, number by number."""
    length = int.from_bytes(data[:4], "little")
    head = json.loads(data[4 : 4 + length])
    at, found = 4 + length, {}
    for name, width in head["columns"]:
        size = head["rectangles"]
        planes = [data[at + size * plane : at + size * (plane + 1)] for plane in range(width)]
        found[name] = [sum(p[i] << (8 * n) for n, p in enumerate(planes)) for i in range(size)]
        at += size * width
    assert at == len(data)
    return head, found


@pytest.fixture(scope="module")
def whole() -> Timeline:
    store = Store([SAMPLES / "mlp_digits_tiny"])
    return timeline(store, "device", store.keys[0])


@pytest.fixture(scope="module")
def many() -> Timeline:
    """Make a timeline of short events, every hundredth of them long, with gaps between."""
    numbers = np.random.default_rng(3)
    length = numbers.integers(1, 50, 20_000)
    length[::100] = 5_000
    end = np.cumsum(length + numbers.integers(0, 90, len(length)))
    tracks = build([(end - length, end, numbers.integers(0, 40, len(length)))], lambda: [0] * 41)
    lane = Lane("IPU 0", (), 0, 1, ("Steps",), ("step",), 0)
    labels = [f"name {number}" for number in range(40)]
    return Timeline("cycles", 1e9, (lane,), tracks, labels, [("quiet", "Other")])


def test_planes_hold_each_byte_of_each_number() -> None:
    width, data = packed.planes(np.array([1, 258, 70_000]))
    assert (width, list(data)) == (3, [1, 2, 112, 0, 1, 17, 0, 0, 1])


def test_signs_fold_to_numbers_from_nought_on() -> None:
    assert packed.signed(np.array([0, -1, 1, -2, 2])).tolist() == [0, 1, 2, 3, 4]


def test_every_event_comes_back_with_its_begin_length_and_number(whole: Timeline) -> None:
    head, columns = unpacked(timelines.timeline_bytes(whole, 1_000_000))
    assert (head["rectangles"], head["finest"]) == (len(whole.tracks.begin), {})
    unfold = [value // 2 if value % 2 == 0 else -(value + 1) // 2 for value in columns["gap"]]
    begins = []
    for first, stop in zip(head["offset"][:-1], head["offset"][1:], strict=True):
        end = 0
        for i in range(first, stop):
            begins.append(end + unfold[i])
            end = begins[-1] + columns["length"][i]
    assert begins == whole.tracks.begin.tolist()
    assert columns["length"] == np.diff(whole.tracks.before).tolist()
    labels = [head["labels"][number] for number in columns["label"]]
    assert labels == [whole.labels[number] for number in whole.tracks.label.tolist()]


def test_of_many_events_what_is_longer_than_the_limit_is_as_it_is(many: Timeline) -> None:
    found = timelines.kept(many, 2_000)
    length = np.diff(many.tracks.before)
    assert len(found.begin) <= 2_000 < len(length)
    assert (found.count.sum(), found.time.sum()) == (len(length), length.sum())
    limit = timelines.finest(many, found)["step"]
    assert 50 < limit < 5_000
    alone = found.count == 1
    kept = zip(found.begin[alone].tolist(), found.length[alone].tolist(), strict=True)
    long = length > limit
    wanted = zip(many.tracks.begin[long].tolist(), length[long].tolist(), strict=True)
    assert set(wanted) <= set(kept)
    assert long.sum() == 200


def test_a_file_too_large_has_fewer_rectangles(
    many: Timeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write, "FEWEST", 500)
    every = len(write._timelines([(many, None)], 10_000_000))
    assert 0 < len(write._timelines([(many, None)], every // 3)) <= every // 3


def test_names_cannot_leave_their_place_and_nothing_may_be_fetched(tmp_path: Path) -> None:
    names = small_report().table("programs") | {"name": [HOSTILE] * 14}
    folder = write_report(tmp_path / "<b>run", small_report(programs=names))
    html = write.html_of([folder]).decode()
    assert "alert('x')" not in html
    assert "<title>&lt;b&gt;run – tilescope</title>" in html
    assert "default-src 'none'" in html
    assert not re.search(r"""(?:src|href)=["']?(?:https?:)?//""", html)
    pages = re.search(r'id="data-pages">([^<]+)<', html)
    assert pages
    document = json.loads(zlib.decompress(base64.b64decode(pages[1])))
    assert HOSTILE in json.dumps(document, ensure_ascii=False)


def test_a_report_of_one_part_has_the_pages_of_this_part(tmp_path: Path) -> None:
    registry.write(small_report().select("graph"), tmp_path / "graph.pop")
    html = write.html_of([tmp_path / "graph.pop"]).decode()
    pages = re.search(r'id="data-pages">([^<]+)<', html)
    assert pages
    document = json.loads(zlib.decompress(base64.b64decode(pages[1])))
    titles = [page["title"] for page in document["sources"][0]["pages"]]
    assert titles == ["Summary", "Insights", "Memory", "Liveness", "Operations"]
    assert document["sources"][0]["timelines"] == {}
