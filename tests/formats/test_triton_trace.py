from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pva
from pva.analysis import (
    batch_what_if,
    batches,
    latency_by_load,
    latency_percentiles,
    requests,
)
from pva.errors import NotRecordedError, PvaError
from pva.formats.traces.triton_file import rows_of_time
from pva.formats.traces.triton_trace import read, write

START = 2_259_961_222_771_924  # ns
# Two requests of one batch and one behind them, in ns since START; stages in any order.
MOMENTS = {
    1: {"HTTP_RECV_START": 0, "HTTP_RECV_END": 40, "REQUEST_START": 50, "QUEUE_START": 60,
        "COMPUTE_START": 100, "COMPUTE_INPUT_END": 110, "COMPUTE_OUTPUT_START": 170,
        "COMPUTE_END": 180, "INFER_RESPONSE_COMPLETE": 185, "REQUEST_END": 190,
        "HTTP_SEND_START": 195, "HTTP_SEND_END": 200},
    2: {"QUEUE_START": 80, "COMPUTE_START": 100, "COMPUTE_INPUT_END": 110,
        "COMPUTE_OUTPUT_START": 170, "COMPUTE_END": 180, "REQUEST_END": 190},
    3: {"QUEUE_START": 210, "COMPUTE_START": 220, "COMPUTE_INPUT_END": 221,
        "COMPUTE_OUTPUT_START": 250, "COMPUTE_END": 260, "REQUEST_END": 260},
}  # fmt: skip


def entries() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for number, moments in MOMENTS.items():
        stamps = [{"name": name, "ns": START + at} for name, at in reversed(moments.items())]
        model = {"model_name": "m", "model_version": 2, "request_id": f"r{number}"}
        parts = ({"timestamps": stamps[:3]}, {"timestamps": stamps[3:]}, model)
        found += [{"id": number, **part} for part in parts]
    tensor = {"name": "x", "shape": "5,8", "data": "1,2", "dtype": "FP32"}
    return [*found, {"id": 3, "activity": "TENSOR_QUEUE_INPUT", "tensor": tensor}]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("triton") / "trace.json"
    file.write_text(json.dumps(entries(), indent=1))
    return file


def test_a_trace_of_triton_opens_with_a_span_a_request_and_its_parts_inside(path: Path) -> None:
    trace = pva.openTrace(path)
    events = trace.frames.events()
    rows = list(zip(events["thread"], events["label"], events["begin_ns"], events["duration_ns"],
                    events["depth"], strict=True))  # fmt: skip
    assert rows == [
        (0, "request", 0, 200, 0), (0, "receive", 0, 40, 1), (0, "queue", 60, 40, 1),
        (0, "upload", 100, 10, 1), (0, "execute", 110, 60, 1), (0, "download", 170, 10, 1),
        (0, "send", 195, 5, 1),
        (0, "request", 210, 50, 0), (0, "queue", 210, 10, 1), (0, "upload", 220, 1, 1),
        (0, "execute", 221, 29, 1), (0, "download", 250, 10, 1),
        (1, "request", 80, 110, 0), (1, "queue", 80, 20, 1), (1, "upload", 100, 10, 1),
        (1, "execute", 110, 60, 1), (1, "download", 170, 10, 1),
    ]  # fmt: skip
    assert trace.is_finished and trace.problems == () and trace.channels == ("Serving",)


def test_requests_and_batches_of_a_trace_are_those_of_its_timestamps(path: Path) -> None:
    trace = pva.openTrace(path)
    frame = requests(trace)
    assert frame["id"].tolist() == ["r1", "r2", "r3"] and set(frame["version"]) == {"2"}
    assert frame["queue_ns"].tolist() == [40, 20, 10]
    assert frame["latency_ns"].tolist() == [200, 110, 50]
    assert frame["other_ns"].tolist() == [200 - 40 - 80, 110 - 20 - 80, 50 - 10 - 40]
    assert frame["rows"].tolist() == [0, 0, 5]
    found = batches(trace, model="m")
    assert found["requests"].tolist() == [2, 1] and found["rows"].tolist() == [2, 5]
    assert found["queue_mean_ns"].tolist() == [30, 10]
    assert found["queue_longest_ns"].tolist() == [40, 10]


def test_percentiles_of_the_parts_are_numpy_s(path: Path) -> None:
    frame = latency_percentiles(pva.openTrace(path)).set_index("part")
    assert frame.loc["latency", "p90_ns"] == pytest.approx(np.percentile([200, 110, 50], 90))
    assert frame.loc["execute", "mean_ns"] == pytest.approx((60 + 60 + 29) / 3)
    assert frame.loc["queue", "share"] == pytest.approx(70 / 360)
    assert frame["share"].drop("latency").sum() == pytest.approx(1)


def test_what_if_replays_the_arrivals_of_a_trace(path: Path) -> None:
    frame = batch_what_if(pva.openTrace(path), delay="0,100ns", instances="", max_batch=8,
                          compiled_batch=8, batch_time="60ns")  # fmt: skip
    # At 0 and 80 ns alone: the second waits 0; with 100 ns both go at 100, the third at 310.
    assert frame["batches"].tolist() == [3, 2] and frame["configured"].tolist() == [True, False]
    assert frame["latency_max_ns"].tolist() == [60, 160]


def test_parts_of_latency_by_load_are_means_over_windows_of_that_load() -> None:
    trace = pva.openTrace(Path(__file__).parents[1] / "traces" / "served.json")
    frame, all_requests = latency_by_load(trace, groups=3), requests(trace)
    begin = all_requests["begin_ns"].to_numpy()
    seconds = (begin.max() - begin.min()) / 1e9 / (len(begin) // 5)  # of a window
    assert frame["requests"].sum() == len(begin) == 120
    assert frame["load"].is_monotonic_increasing and len(frame) <= 3
    rates = frame["requests"] / (frame["windows"] * seconds)
    assert frame["load"].tolist() == pytest.approx(rates.tolist())
    weighted = (frame["latency_ns"] * frame["requests"]).sum() / 120
    assert weighted == pytest.approx(all_requests["latency_ns"].mean())
    parts = frame[["queue_ns", "upload_ns", "execute_ns", "download_ns", "other_ns"]].sum(axis=1)
    assert parts.tolist() == pytest.approx(frame["latency_ns"].tolist())


@pytest.mark.parametrize("model", ["", "none"])
def test_a_trace_without_requests_says_what_has_some(
    tmp_path: Path, model: str, path: Path
) -> None:
    chrome = tmp_path / "chrome.json"
    chrome.write_text('[{"ph": "X", "name": "request", "id": 1, "ts": 1, "dur": 2, "pid": 1}]')
    for analysis in (requests, batches, latency_percentiles, latency_by_load, batch_what_if):
        with pytest.raises(NotRecordedError, match="no request.*serve-model live, or of Triton"):
            analysis(pva.openTrace(path if model else chrome), model=model)


def test_a_trace_is_written_as_it_was_read(path: Path, tmp_path: Path) -> None:
    first = read(path)
    copy = tmp_path / "copy.json"
    with copy.open("wb") as stream:
        write(first, stream)
    again = read(copy)
    assert again.moments.tolist() == first.moments.tolist()
    columns = ("id", "parent", "rows")
    assert [getattr(again, name).tolist() for name in columns] == [
        getattr(first, name).tolist() for name in columns
    ]
    assert (again.model, again.version, again.request_id) == (
        first.model, first.version, first.request_id,
    )  # fmt: skip
    out = io.BytesIO()
    write(again, out)
    assert out.getvalue() == copy.read_bytes()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[{"id": 1, "model_name": "m"}]', "no request with timestamps"),
        ('[{"id": 1, "timestamps": [{"name": "QUEUE_START", "ns": 5}]}]', "no request with"),
        ('[{"id": 1, "timestamps": [{"name": "QUEUE_START"}]}]', "missing required field `ns`"),
        ('[{"id": 1, "timestamps": 5}]', "Expected `array`"),
        ('[{"id": 99999999999999999999999, "timestamps": []}]', "out of range|64 bits"),
    ],
)
def test_a_damaged_trace_is_one_line(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "bad.json"
    file.write_text(text)
    with pytest.raises(PvaError, match=words) as raised:
        pva.openTrace(file)
    assert "bad.json" in str(raised.value) and "\n" not in str(raised.value)


def test_a_file_that_is_cut_off_is_read_as_far_as_it_goes(path: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.json"
    cut.write_bytes(path.read_bytes()[:-200])
    trace = pva.openTrace(cut)
    assert len(requests(trace)) == 3
    assert "ends within its array" in trace.problems[0]


def test_rows_of_overlapping_spans_are_as_few_as_overlap_at_once() -> None:
    draw = np.random.default_rng(30)
    begin = np.sort(draw.integers(0, 1_000, 400))
    end = begin + draw.integers(1, 60, 400)
    rows = rows_of_time(begin, end)
    most = max(int(((begin <= at) & (end > at)).sum()) for at in begin)
    assert rows.max() + 1 == most
    for row in range(most):
        mine = np.flatnonzero(rows == row)
        assert (begin[mine][1:] >= end[mine][:-1]).all()
