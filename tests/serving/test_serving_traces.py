from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import pva
import pvti
from dashboard.address import Range, parse
from dashboard.pages import serving
from dashboard.store import Store
from pva.analysis import batch_what_if, batches, requests
from pva.analysis.host.alignment import Alignment
from pva.analysis.serving import batch_runs
from pva.errors import PvaError
from simulator.serving import program
from simulator.serving.server import InferRequest, Server
from simulator.serving.settings import Settings
from tests.dashboard.layouts import parts
from tests.serving.small_models import SYNCHRONOUS, write_model

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


@pytest.mark.parametrize("more", [SYNCHRONOUS, ""])
def test_a_batch_leads_to_its_steps_in_the_report_beside_the_trace(
    started: Callable[..., Server], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: str
) -> None:
    monkeypatch.setattr(program, "RUNS", 4)  # weights, the first batch, the two steps of the second
    run = tmp_path / "run"
    pvti.startTrace(run)
    try:
        cycles = asked(started(more, report=run), Settings())
    finally:
        pvti.closeTrace()
    store, report = Store([run]), pva.openReport(run)
    numbers = batches(pva.openTrace(run))["batch"].tolist()
    found = [linked(store, batch, "/execution") for batch in numbers]
    runs = report.execution.runs
    assert [run.cycles for run in runs][1:] == [cycles[0], *[cycles[1] // 2] * 2, cycles[2]]
    first, second, third = found
    assert first is not None and first.end - first.begin == cycles[0]
    assert second is not None and second.end - second.begin == cycles[1]
    assert first.end == second.begin and third is None  # it was not recorded in full
    assert linked(store, numbers[2], "/together") is not None


def linked(store: Store, batch: int, path: str) -> Range | None:
    """Return the range of a page that a batch leads to."""
    chosen = serving.chosen(store, parse("/serving", f"?batch={batch}"), "light")
    links = [one.href for one in parts(chosen) if hasattr(one, "href")]
    mine = [link for link in links if link.startswith(path)]
    return parse(*mine[0].split("?", 1)).range if mine else None


def test_a_report_is_of_one_model(compiled: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        shutil.copytree(compiled, write_model(tmp_path / "m", name) / "1", dirs_exist_ok=True)
    with pytest.raises(PvaError, match="2 models; a report is of one: --model-control-mode"):
        Server(tmp_path / "m", report=tmp_path / "run").start()


def test_runs_of_a_batch_are_the_last_of_its_time_that_have_its_cycles() -> None:
    begin = np.array([0, 10, 20, 30, 40])
    runs = Alignment(
        np.arange(5), ["r"] * 5, begin, begin + 8, begin * 100, np.array([7, 5, 5, 5, 5]),
        begin, 1e9,
    )  # fmt: skip
    # In its time it first waits for another's run; one of half the length is left out at the end.
    assert batch_runs(runs, 5, 39, 10) == (2, 3)
    assert batch_runs(runs, 5, 39, 15) == (1, 3)
    assert batch_runs(runs, 5, 39, 11) is None  # other cycles: no run of this report
    assert batch_runs(runs, 41, 47, 5) is None and batch_runs(runs, 0, 99, 0) is None


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
