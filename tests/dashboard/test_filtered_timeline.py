"""The device timeline with a filter: what is left, its numbers, its figures, what is kept."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dashboard.address import parse
from dashboard.pages.execution import page as execution
from dashboard.store import Store
from dashboard.timeline import endpoint
from dashboard.timeline.filtered import Filtered, filter_of, filtered_timeline
from dashboard.timeline.packing import unpack
from dashboard.timeline.search import search
from pva.analysis.filters import FilterError
from pva.analysis.timeline.pyramid import build
from pva.plot.lanes import Lane, Timeline
from tests.builders import small_report, write_report
from tests.dashboard.layouts import words

# Step n begins at 10 n and takes 8; layers "a" of steps 0 to 3, "b" of 4 and 5.
NAMES = ("run", "a", "b", "a/mul", "a/ADD", "b/mul")
LABELS = np.array([3, 4, 3, 4, 5, 5])


def made() -> Timeline:
    begin = 10 * np.arange(6)
    layer = np.array([0, 40]), np.array([38, 58]), np.array([1, 2])
    rows = [(begin[:1], begin[:1] + 60, begin[:1]), layer, (begin, begin + 8, LABELS)]
    lane = Lane("IPU 0", (), 0, 3, ("", "", ""), ("run", "layer", "step"), 2)
    return Timeline("cycles", 1.0, (lane,), build(rows), NAMES, [("run", "Run")])


def left(text: str) -> Timeline:
    chosen = filter_of(text)
    assert chosen is not None
    return filtered_timeline(made(), chosen)


def shown(whole: Timeline, row: int) -> list[int]:
    return whole.tracks.begin[slice(*whole.tracks.offset[row : row + 2])].tolist()


@pytest.mark.parametrize(
    ("text", "steps", "layers"),
    [("name~MUL", [0, 20, 40, 50], [0, 40]), ("name~add", [10, 30], [0]),
     ("name!~mul", [10, 30], [0]), ("name=b/mul", [40, 50], [40]), ("name~zzz", [], [])],
)  # fmt: skip
def test_steps_that_fit_and_their_layers_are_left_with_all_runs(
    text: str, steps: list[int], layers: list[int]
) -> None:
    whole = left(text)
    assert [shown(whole, row) for row in range(3)] == [[0], layers, steps]
    assert whole.found == (len(steps), 6)
    assert whole.extent == (0, 60)


def test_numbers_of_steps_stay_and_a_search_finds_what_is_left() -> None:
    whole = left("name~add")
    assert whole.item(np.arange(4)).tolist() == [0, 1, 4, 6]  # the run, a layer, steps 1 and 3
    assert search(whole, "a/")["item"] == [4, 6]


def test_rectangles_stand_for_what_is_left_alone() -> None:
    header, columns = unpack(endpoint.answer(left("name~add"), 0, 60, 2))  # 30 cycles a pixel
    steps = columns["row"] == 2
    assert columns["count"][steps].tolist() == [1, 1]
    assert columns["time"][steps].tolist() == [8, 8]
    assert header["labels"][columns["label"][steps][0]] == "a/ADD"


def test_a_filter_that_leaves_out_nothing_takes_no_room() -> None:
    whole = made()
    chosen = filter_of("name~/")
    assert chosen is not None
    assert filtered_timeline(whole, chosen).tracks is whole.tracks


def test_a_filter_of_another_column_is_not_one_of_the_timeline() -> None:
    assert filter_of("cycles>100") is None and filter_of("") is None
    with pytest.raises(FilterError, match="no filter"):
        filter_of("zzz")


def test_timelines_of_filters_are_let_go_when_they_are_more_than_the_whole() -> None:
    kept, asked = Filtered(most=12), []
    for text in ("name~mul", "name~add", "name~mul", "name~b", "name~add"):
        kept.get(text, lambda text=text: asked.append(text) or left(text))
    assert asked == ["name~mul", "name~add", "name~b", "name~add"]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store([write_report(tmp_path_factory.mktemp("filtered") / "small", small_report())])


def test_figures_of_a_range_say_of_which_steps_they_are(store: Store) -> None:
    data = store.report().dataset
    names = [data.column("programs", "name")[p] for p in data.column("steps", "program")]
    found = words(execution.range_details(store, parse("/execution", "?filter=name~mult"), "light"))
    count = sum("mult" in name for name in names)
    assert f"Only of steps whose name contains “mult”: {count} steps," in found
    assert "Other steps" in found and "Tile balance of all steps" in found
    every = words(execution.range_details(store, parse("/execution", ""), "light"))
    assert "Only of steps" not in every and "Other steps" not in every


def test_address_of_the_canvas_takes_a_filter(tmp_path: Path) -> None:
    from dashboard.app import create_app

    client = create_app([write_report(tmp_path / "small")]).server.test_client()
    layout = client.get("/timeline/device/layout?filter=name~mult").json
    assert 0 < layout["found"][0] < layout["found"][1] == 24 + small_report().length("blocks")
    wrong = client.get("/timeline/device/layout?filter=zzz")
    assert (wrong.status_code, wrong.text.count("\n")) == (404, 0)
