from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import pva
import pvti
from pva.analysis import batch_what_if, batches, requests
from simulator.serving.server import InferRequest, Server
from simulator.serving.settings import Settings
from tests.serving.small_models import SYNCHRONOUS

ROWS = (1, 5, 4)


def asked(server: Server, settings: Settings) -> list[int]:
    """Ask for 1, 5 and 4 rows one after another; return the cycles of each."""
    cycles = []
    for number, rows in enumerate(ROWS):
        array = np.ones((rows, 8), np.float32)
        with settings.recorded("HTTP", f"r{number}") as record:
            answer = server.infer(InferRequest("lin", "", f"r{number}", {}, {"x": array}))
            record(answer)
        cycles.append(answer.parameters["device_cycles"])
    return cycles


def test_requests_of_a_recorded_server_have_their_batch_times_and_cycles(
    started: Callable[..., Server], tmp_path: Path
) -> None:
    pvti.startTrace(tmp_path / "trace")
    try:
        cycles = asked(started(SYNCHRONOUS), Settings())
    finally:
        pvti.closeTrace()
    trace = pva.openTrace(tmp_path / "trace")
    frame = requests(trace, model="lin")
    assert frame["id"].tolist() == ["r0", "r1", "r2"] and frame["rows"].tolist() == list(ROWS)
    assert frame["cycles"].tolist() == cycles and frame["padding"].tolist() == [3, 3, 0]
    parts = frame[["queue_ns", "upload_ns", "execute_ns", "download_ns", "other_ns"]]
    assert parts.sum(axis=1).tolist() == frame["latency_ns"].tolist()
    assert batches(trace)["fill"].tolist() == pytest.approx([1 / 4, 5 / 8, 1])
    labels = trace.frames.labels().set_index("label")["count"]
    assert (labels["queue"], labels["batch"], labels["execute"]) == (3, 3, 4)
    assert (labels["upload"], labels["pad"], labels["download"]) == (4, 2, 4)
    found = batch_what_if(trace, delay="", instances="")
    # What the server wrote of its model, and cycles by its clock: one step is one piece.
    assert found["pieces"].tolist() == [4] and found["padding_rows"].tolist() == [6]
    assert found["device_ns"][0] == 4 * round(cycles[0] * 1e9 / 1.33e9)


def test_a_trace_file_has_one_of_so_many_requests_and_at_most_so_many(
    server: Server, tmp_path: Path
) -> None:
    file = tmp_path / "t.json"
    settings = Settings(file, rate=2, count=4)
    for _ in range(4):
        asked(server, settings)
    assert settings.traced == 4 and settings.write_trace() == file
    assert {entry["id"] for entry in json.loads(file.read_text())} == {1, 2, 3, 4}
    frame = requests(pva.openTrace(file))
    assert frame["id"].tolist() == ["r0", "r2", "r1", "r0"]
    assert frame["rows"].tolist() == [1, 4, 5, 1]
    assert (frame["execute_ns"] > 0).all()


def test_spans_end_with_their_bound(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import itertools

    from simulator.model_runtime import spans

    monkeypatch.setattr(spans, "_numbers", itertools.count(spans.MOST - 5))
    pvti.startTrace(tmp_path / "trace")
    try:
        for _ in range(20):
            with spans.span("batch"):
                pass
    finally:
        pvti.closeTrace()
        pvti.enableTraceChannel(spans.CHANNEL)
    trace = pva.openTrace(tmp_path / "trace")
    assert sum(len(columns) for columns in trace.read_threads()) == 5
