"""Timelines of the small report and of hand-made names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dashboard.store import Store
from dashboard.timeline import endpoint
from dashboard.timeline.device import layer_codes
from dashboard.timeline.lanes import Labels, Timeline
from dashboard.timeline.packing import unpack
from pva.errors import NotFoundError
from tests.builders import TRACE, replicated_report, small_report, write_report


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Give a store of the small report."""
    return Store([write_report(tmp_path_factory.mktemp("lanes") / "small")])


@pytest.fixture(scope="module")
def device(store: Store) -> Timeline:
    """Give the device timeline of the small report: two IPUs, two runs of twelve steps."""
    return endpoint.timeline(store, "device", "")


def test_each_ipu_is_a_lane_of_runs_layers_and_steps(device: Timeline) -> None:
    lanes = [(row.lane, row.name) for row in device.rows]
    names = ["Runs", "Layers", "", "Steps"]
    assert lanes == [(lane, name) for lane in ("IPU 0", "IPU 1") for name in names]


def test_every_executed_step_is_in_the_row_of_steps(device: Timeline) -> None:
    for row in device.rows:
        if row.overview:
            assert row.track.item.tolist() == list(range(2 * len(TRACE)))


def test_rows_ascend_without_overlap(device: Timeline) -> None:
    for row in device.rows:
        assert (row.track.begin <= row.track.end).all()
        assert (row.track.end[:-1] <= row.track.begin[1:]).all()


def test_runs_are_named_and_numbered(device: Timeline) -> None:
    runs = device.rows[0].track
    assert [device.labels[label] for label in runs.label] == ["Run 0: main", "Run 1: main"]


def test_layers_are_left_out_when_asked(store: Store) -> None:
    flat = endpoint.timeline(store, "device", "", endpoint.FLAT)
    assert [row.name for row in flat.rows] == ["Runs", "Steps"] * 2


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
    assert header["extent"] == header["window"] == [begin, end]
    steps = [number for number, row in enumerate(device.rows) if row.overview]
    assert np.isin(columns["row"], steps).sum() == 4 * len(TRACE)
    header, columns = unpack(endpoint.answer(device, begin, begin + 1, 4000))
    assert header["window"] == [begin, begin + 1]
    assert columns["begin"].max() <= begin + 1


def test_source_without_trace_says_how_to_record_one(store: Store) -> None:
    with pytest.raises(NotFoundError, match="small: no host trace; set PVTI_OPTIONS"):
        endpoint.timeline(store, "host", "")


def test_unknown_source_is_answered_with_the_known_ones(store: Store) -> None:
    with pytest.raises(NotFoundError, match="known: device, host"):
        endpoint.timeline(store, "moon", "")


def test_address_of_the_canvas_answers_bytes_or_one_line(tmp_path: Path) -> None:
    from dashboard.app import create_app

    client = create_app([write_report(tmp_path / "small")]).server.test_client()
    good = client.get("/timeline/device?report=small&begin=0&end=100&pixels=500")
    assert unpack(good.data)[0]["unit"] == "cycles"
    bad = client.get("/timeline/host?report=small")
    assert (bad.status_code, bad.text.count("\n")) == (404, 0)


def test_an_ipu_that_takes_no_part_in_a_step_does_not_show_it(tmp_path: Path) -> None:
    whole = small_report()
    kept = whole.column("steps_by_ipu", "step") * 2 + whole.column("steps_by_ipu", "ipu") != 7
    rows = {name: values[kept] for name, values in whole.table("steps_by_ipu").items()}
    store = Store([write_report(tmp_path / "small", small_report(steps_by_ipu=rows))])
    tracks = [row.track for row in endpoint.timeline(store, "device", "").rows if row.overview]
    steps = list(range(2 * len(TRACE)))
    assert tracks[0].item.tolist() == steps
    assert tracks[1].item.tolist() == [step for step in steps if step != 3]


def test_lanes_of_a_replicated_graph_are_the_ipus_of_one_replica(tmp_path: Path) -> None:
    store = Store([write_report(tmp_path / "two", replicated_report(2))])
    rows = endpoint.timeline(store, "device", "").rows
    assert {row.lane for row in rows} == {"IPU 0", "IPU 1"}
