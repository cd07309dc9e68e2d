"""Timelines of the small report and of hand-made names."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from dashboard.address import parse
from dashboard.pages.execution import page as execution
from dashboard.store import Store
from dashboard.timeline import endpoint
from dashboard.timeline.packing import unpack
from dashboard.timeline.search import search
from pva.errors import NotFoundError, NotRecordedError
from pva.plot.device import device_timeline, layer_codes, overlapped
from pva.plot.lanes import Labels, RowItems, Timeline
from pva.report import Report
from tests.builders import TRACE, replicated_report, small_report, write_report
from tests.dashboard.layouts import words
from tests.io_tiles import clocks, report_of


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Return a store of the small report."""
    return Store([write_report(tmp_path_factory.mktemp("lanes") / "small")])


@pytest.fixture(scope="module")
def device(store: Store) -> Timeline:
    """Return the device timeline of the small report: two IPUs, two runs of twelve steps."""
    return endpoint.timeline(store, "device", "")


def rows_of(whole: Timeline, kind: str) -> list[int]:
    """List the rows of a kind."""
    return [
        lane.first + place
        for lane in whole.lanes
        for place, found in enumerate(lane.kinds)
        if found == kind
    ]


def items_of(whole: Timeline, row: int) -> list[int]:
    """Return the numbers of the events of a row."""
    events = np.arange(*whole.tracks.offset[row : row + 2])
    return whole.item(events).tolist()


def test_each_ipu_is_a_lane_of_runs_layers_steps_and_blocks(device: Timeline) -> None:
    assert [lane.name for lane in device.lanes] == ["IPU 0", "IPU 1"]
    for lane in device.lanes:
        assert lane.names[:4] == ("Runs", "Layers", "", "Steps")
        assert lane.kinds[:4] == ("run", "layer", "layer", "step")
        assert lane.overview == lane.first + 3


def steps_of(whole: Timeline) -> list[list[int]]:
    """Return of each IPU the steps of its rows, those beside other work too."""
    rows = zip(rows_of(whole, "step"), rows_of(whole, "io"), strict=True)
    return [sorted(items_of(whole, step) + items_of(whole, io)) for step, io in rows]


def test_every_executed_step_is_in_a_row_of_each_ipu(device: Timeline) -> None:
    assert steps_of(device) == 2 * [list(range(2 * len(TRACE)))]


def test_rows_ascend_without_overlap(device: Timeline) -> None:
    tracks = device.tracks
    for row in range(tracks.rows):
        events = np.arange(*tracks.offset[row : row + 2])
        begin, end = tracks.begin[events], tracks.ends(events)
        assert (begin <= end).all()
        assert (end[:-1] <= begin[1:]).all()


def test_runs_are_named_and_numbered(device: Timeline) -> None:
    events = np.arange(*device.tracks.offset[:2])
    labels = [device.labels[label] for label in device.tracks.label[events]]
    assert labels == ["Engine::run #0: main", "Engine::run #1: main"]


def test_a_run_outside_the_profile_is_shown_where_it_lies_between_runs() -> None:
    """The second run begins 100 cycles later, with one outside between them and one after."""
    runs = dict(small_report().table("runs"))
    runs["cycles_from"] = np.array([0, 612])
    others = {"name": ["weights", "late"], "program": [1, 1]} | {
        "cycles_from": [512, 1124], "cycles": [100, 100],
        "start_microseconds": [0.0] * 2, "end_microseconds": [0.0] * 2,
    }  # fmt: skip
    whole = device_timeline(Report.of(small_report(runs=runs, other_runs=others)))
    events = np.arange(*whole.tracks.offset[:2])
    labels = [whole.labels[label] for label in whole.tracks.label[events]]
    names = ["#0: main", ", not profiled: weights", "#1: main"]
    assert [label.removeprefix("Engine::run").strip() for label in labels] == names
    assert whole.tracks.begin[events].tolist() == [0, 512, 612]


@pytest.mark.parametrize("numbers", [[], [0], [0, 1, 2], [0, 2, 3, 7], [5], [1, 90], [3, 4, 5, 6]])
def test_items_of_a_row_are_kept_as_they_are_or_as_those_left_out(numbers: list[int]) -> None:
    kept = RowItems.of(np.array(numbers, dtype=np.int64))
    assert kept.at(np.arange(len(numbers))).tolist() == numbers
    assert len(kept.numbers) <= max(len(numbers), 1)
    assert RowItems().at(np.arange(2)).tolist() == [-1, -1]


def test_only_exchanges_with_the_host_beside_other_work_have_a_row_of_their_own() -> None:
    begin, end = np.array([0, 10, 18, 30, 40]), np.array([10, 20, 28, 40, 50])
    host = np.array([True, False, True, True, False])
    work = np.array([False, True, False, False, True])
    assert overlapped(begin, end, host, work).tolist() == [False] * 5  # 2 of 10 cycles are shared
    end[1] = 24  # 6 of 10 are
    assert overlapped(begin, end, host, work).tolist() == [False, False, True, False, False]
    begin[4] = 32  # the later step begins before the fourth ends
    assert overlapped(begin, end, host, work).tolist() == [False, False, True, True, False]


@pytest.mark.parametrize("ipus", [1, 2])
def test_io_tiles_have_a_row_of_their_own_beside_the_others(tmp_path: Path, ipus: int) -> None:
    data, _ = report_of(tmp_path, work=10, ipus=ipus)
    whole = device_timeline(Report.of(data))
    begin, end = clocks(data)
    fetches = data.column("programs", "name")[data.column("steps", "program")] == "fetch"
    steps = np.flatnonzero(fetches & (data.texts("steps", "type") == "StreamCopy"))
    by_ipu = (len(steps), ipus, -1)
    moving = (end > begin)[steps].reshape(by_ipu)
    first = np.where(moving, begin[steps].reshape(by_ipu), end.max()).min(axis=2)
    for ipu, lane in enumerate(whole.lanes):
        assert lane.names[-1] == "I/O tiles" and lane.kinds[-1] == "io"
        row = lane.first + len(lane.names) - 1
        events = np.arange(*whole.tracks.offset[row : row + 2])
        labels = [whole.labels[label] for label in whole.tracks.label[events]]
        shown = whole.tracks.begin[events][[label == "fetch" for label in labels]]
        assert np.abs(shown - first[:, ipu]).max() < 10  # a sync before it ends on another tile


def test_layers_follow_the_beginnings_that_names_share() -> None:
    labels = Labels()
    names = ["m4/Conv_1/Convolve", "m4/Conv_1/Reduce", "", "add", "m4"]
    shown = [
        [labels.texts[c] if c >= 0 else "" for c in codes] for codes in layer_codes(names, labels)
    ]
    assert shown == [
        ["m4", "m4", "", "", "m4"],
        ["m4/Conv_1", "m4/Conv_1", "", "", ""],
    ]


def test_names_without_layers_have_no_rows_of_layers() -> None:
    assert layer_codes(["a", "b", ""], Labels()) == []


def test_answer_holds_the_window_and_what_is_in_it(device: Timeline) -> None:
    begin, end = device.extent
    header, columns = unpack(endpoint.answer(device, None, None, 4000))
    assert header["window"] == [begin, end]
    steps = rows_of(device, "step") + rows_of(device, "io")
    assert np.isin(columns["row"], steps).sum() == 4 * len(TRACE)
    header, columns = unpack(endpoint.answer(device, begin, begin + 1, 4000))
    assert header["window"] == [begin, begin + 1]
    assert columns["begin"].max() <= begin + 1


def test_layout_is_plain_data_of_all_lanes(device: Timeline) -> None:
    layout = json.loads(json.dumps(device.layout()))
    assert layout["unit"] == "cycles"
    assert layout["extent"] == list(device.extent)
    assert [lane["name"] for lane in layout["lanes"]] == ["IPU 0", "IPU 1"]
    assert layout["lanes"][-1]["stop"] == device.tracks.rows
    assert {"token": "run", "words": "Run"} in layout["colours"]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("0-2", [0, 1]),
        ("1-2,0-1", [0, 1]),
        ("2-900000000000", [2, 3, 4]),
        ("", []),
        ("a-b,3-1,-4,7", []),
        ("0-1," * 9999, [0]),
        ("²-5", []),
    ],
)
def test_rows_are_read_from_an_address(text: str, rows: list[int]) -> None:
    assert endpoint.rows_asked(text, 5).tolist() == rows


@pytest.mark.parametrize(
    ("text", "value"),
    [("12", 12), ("1.5e3", 1500), ("-4", -4), ("nan", None), ("inf", None), ("x", None),
     ("1e300", None), ("", None), (None, None)],
)  # fmt: skip
def test_a_moment_is_a_finite_number(text: str | None, value: int | None) -> None:
    assert endpoint.moment(text) == value


def test_search_finds_steps_by_a_part_of_their_name(device: Timeline) -> None:
    label = device.labels[int(device.tracks.label[device.tracks.offset[3]])]
    found = search(device, label[1:].upper())
    begins = found["begin"]
    assert found["total"] == len(begins) > 0
    assert set(found["row"]) <= set(rows_of(device, "step") + rows_of(device, "io"))
    ranked = [search(device, label[1:], rank)["begin"] for rank in range(found["total"])]
    assert ranked == [[begin] for begin in sorted(begins)]
    assert search(device, "no step has this name") == {
        "total": 0, "row": [], "begin": [], "length": [], "item": []
    }  # fmt: skip


def test_source_without_trace_says_how_to_record_one(store: Store) -> None:
    with pytest.raises(NotRecordedError, match="small: no host trace; set PVTI_OPTIONS"):
        endpoint.timeline(store, "host", "")


def test_unknown_source_is_answered_with_the_known_ones(store: Store) -> None:
    with pytest.raises(NotFoundError, match="known: device, host"):
        endpoint.timeline(store, "moon", "")


def test_address_of_the_canvas_answers_bytes_or_one_line(tmp_path: Path) -> None:
    from dashboard.app import create_app

    client = create_app([write_report(tmp_path / "small")]).server.test_client()
    good = client.get("/timeline/device?report=small&begin=0&end=100&pixels=500")
    assert unpack(good.data)[0]["window"] == [0, 100]
    assert client.get("/timeline/device/layout?report=small").json["unit"] == "cycles"
    assert client.get("/timeline/device/search?report=small&q=zzz").json["total"] == 0
    bad = client.get("/timeline/host?report=small")
    assert (bad.status_code, bad.text.count("\n")) == (404, 0)


def test_an_ipu_that_takes_no_part_in_a_step_does_not_show_it(tmp_path: Path) -> None:
    whole = small_report()
    kept = whole.column("steps_by_ipu", "step") * 2 + whole.column("steps_by_ipu", "ipu") != 7
    rows = {name: values[kept] for name, values in whole.table("steps_by_ipu").items()}
    store = Store([write_report(tmp_path / "small", small_report(steps_by_ipu=rows))])
    found = endpoint.timeline(store, "device", "")
    steps = list(range(2 * len(TRACE)))
    assert steps_of(found) == [steps, [step for step in steps if step != 3]]


def test_lanes_of_a_replicated_graph_are_the_ipus_of_one_replica(tmp_path: Path) -> None:
    store = Store([write_report(tmp_path / "two", replicated_report(2))])
    lanes = endpoint.timeline(store, "device", "").lanes
    assert [lane.name for lane in lanes] == ["IPU 0", "IPU 1"]


def test_two_executions_are_shown_and_described_together(tmp_path: Path) -> None:
    store = Store([write_report(tmp_path / name, small_report()) for name in ("one", "two")])
    chosen = parse("/execution", "?against=two")
    lanes = endpoint.timeline(store, "device", "", {"against": "two"}).lanes
    assert [(lane.path, lane.name) for lane in lanes] == [
        (("one",), "IPU 0"), (("one",), "IPU 1"), (("two",), "IPU 0"), (("two",), "IPU 1"),
    ]  # fmt: skip
    left = endpoint.timeline(store, "device", "", {"against": "two", "filter": "name~mult"})
    counts = np.diff(left.tracks.offset)[rows_of(left, "step")]
    assert counts.tolist() == [8] * 4  # two programs twice in two runs, on each IPU
    shown = words(execution.range_details(store, chosen, "light"))
    assert all(f"{name}, IPU {ipu}" in shown for name in ("one", "two") for ipu in (0, 1))
    assert "two: 2 recorded runs took" in words(execution.layout(store, chosen))
