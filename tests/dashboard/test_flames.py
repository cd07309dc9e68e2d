"""Flame graphs: the layout by hand, what a click and a search do, and the graphs of a report."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import numpy as np
import pytest

from dashboard import flames
from dashboard.address import Address, AddressError, parse
from dashboard.details import drawer
from dashboard.flames import Flame
from dashboard.pages import flames as page
from dashboard.store import Store
from pva.analysis.attribution import elapsed
from tests.analysis.samples import SAMPLES
from tests.dashboard.layouts import grid, parts, words

# a (8: b 6, c 2) and d (2)
SMALL = Flame(
    ["a", "a/b", "a/c", "d"], ["a", "b", "c", "d"], np.array([-1, 0, 0, -1]),
    np.array([8, 6, 2, 2]), str,
)  # fmt: skip


@pytest.fixture(scope="module")
def store() -> Store:
    """Return a store of a report with code, steps and a host trace."""
    return Store([SAMPLES / "mlp_digits_tiny"])


def links(made: Any) -> dict[str, Any]:
    return {part.title: part for part in parts(made) if "frame" in getattr(part, "className", "")}


def test_frames_are_as_wide_as_what_they_take_the_largest_first() -> None:
    shown = sorted(flames.placed(SMALL, flames.NOWHERE))
    assert shown == [(0, 0, 0.0, 0.8), (1, 1, 0.0, pytest.approx(0.6)),
                     (2, 1, pytest.approx(0.6), pytest.approx(0.2)),
                     (3, 0, 0.8, pytest.approx(0.2))]  # fmt: skip


def test_the_frame_zoomed_to_is_as_wide_as_all_below_those_around_it() -> None:
    assert sorted(flames.placed(SMALL, 2)) == [(0, 0, 0.0, 1.0), (2, 1, 0.0, 1.0)]
    assert (0, 0, 0.0, 1.0) in flames.placed(SMALL, 0)
    assert (1, 1, 0.0, 0.75) in flames.placed(SMALL, 0)


def test_what_is_too_narrow_to_be_seen_is_left_out() -> None:
    narrow = Flame(["a", "b", "c"], ["a", "b", "c"], np.array([-1] * 3),
                   np.array([10_000, 16, 14]), str)  # fmt: skip
    assert [frame for frame, *_ in flames.placed(narrow, flames.NOWHERE)] == [0, 1]


def test_a_click_zooms_in_and_the_next_one_out() -> None:
    made = links(flames.drawn(SMALL, Address("/flames"), ""))
    frame = made["b: 6, 60.0\u00a0% of all, 75.0\u00a0% of a".replace("\u00a0", " ")]
    assert frame.href == "/flames?frame=a%2Fb"
    again = links(flames.drawn(SMALL, parse("/flames", "?frame=a/b"), ""))
    assert again[frame.title].href == "/flames"


def test_a_search_marks_and_counts_nested_frames_once() -> None:
    frames = flames.matching(SMALL, "A") | flames.matching(SMALL, "b")
    assert (frames, flames.outermost(SMALL, frames)) == ({0, 1}, [0])
    made = links(flames.drawn(SMALL, Address("/flames"), "B"))
    marked = [title[0] for title, link in made.items() if "match" in link.className]
    assert marked == ["b"]


def test_the_graph_of_cycles_holds_all_cycles_of_the_runs(store: Store) -> None:
    flame = page.flame_of(store, parse("/flames", "?tab=cycles"))
    assert flame.whole == int(elapsed(store.report()).sum())
    made = words(page.graph(store, parse("/flames", "?find=Conv_1"), "light"))
    assert "frames named like “Conv_1”" in made and "of all" in made
    assert "takes most" in words(page.answer(store, Address("/flames"), "light"))


def opened_by(store: Store, search: str) -> dict[str, str]:
    """Return the object that a click on each frame opens, by its path."""
    state = parse("/flames", search)
    flame = page.flame_of(store, state)
    made = parts(flames.drawn(flame, state, ""))
    hrefs = [one.href for one in made if "frame" in getattr(one, "className", "")]
    options = [dict(parse("/flames", href.partition("?")[2]).options) for href in hrefs if href]
    return {one["frame"]: one.get("object", "") for one in options if "frame" in one}


def test_a_click_on_a_frame_opens_the_drawer_of_the_operation_or_layer_that_it_is(
    store: Store,
) -> None:
    opened = opened_by(store, "?tab=cycles&object=variable:3")
    assert opened["Layer1"] == "layer:Layer1"
    assert opened["Layer1/Fwd/Conv_1"] == "operation:Layer1/Fwd/Conv_1"
    assert opened["Layer1/Fwd"] == ""  # neither
    for text in {*opened.values()} - {""}:
        drawer.drawer(store, parse("/flames", f"?object={quote(text)}"), "light")


def test_a_click_on_a_call_opens_the_drawer_of_its_longest_event(store: Store) -> None:
    opened = opened_by(store, "?tab=host")
    whole = page.host(store, "").timeline
    for path, text in opened.items():
        label = whole.labels[whole.tracks.label[int(text.removeprefix("event:"))]]
        assert path.rpartition(">")[2] == label


def test_rows_of_what_is_in_a_frame_open_the_drawer_too(store: Store) -> None:
    made = page.inside(store, parse("/flames", "?tab=cycles&frame=Layer1/Fwd"), "light")
    rows = grid(made, "flames-rows").rowData
    assert {row["object"] for row in rows if row["name"] == "Conv_1"} == {
        "operation:Layer1/Fwd/Conv_1"
    }


def test_a_graph_that_there_is_not_is_one_line(store: Store) -> None:
    with pytest.raises(AddressError, match="tab=colour: not there; known: cycles"):
        page.flame_of(store, parse("/flames", "?tab=colour"))
