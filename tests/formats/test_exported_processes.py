"""Processes and threads of one identifier stay apart in the formats of other viewers."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace as Of

import pytest

from pva.formats.traces import registry
from pva.formats.traces.identifiers import identifiers
from pva.trace import Trace, openTrace


def of_one_identifier(tmp_path: Path) -> Trace:
    """Return three files with a thread and a counter each, of processes 1, 1 and 2."""
    paths = []
    for rank, pid in enumerate((1, 1, 2)):
        common = {"pid": pid, "tid": 7, "cat": "c"}
        name = {"ph": "M", "name": "process_name", "args": {"name": f"rank {rank}"}}
        event = {"ph": "X", "name": f"step {rank}", "ts": rank, "dur": 5}
        loss = {"ph": "C", "name": "loss", "ts": rank, "args": {"v": rank}}
        paths.append(tmp_path / f"{rank}.json")
        paths[-1].write_text(json.dumps([common | each for each in (name, event, loss)]))
    return openTrace(paths)


def written(trace: Trace, path: Path, form: str) -> bytes:
    with path.open("wb") as out:
        registry.write(trace, out, form)
    return path.read_bytes()


def test_chrome_keeps_processes_of_one_identifier_apart(tmp_path: Path) -> None:
    written(of_one_identifier(tmp_path), tmp_path / "all.json", "chrome")
    again = openTrace(tmp_path / "all.json")
    assert [(one.pid, one.name) for one in again.processes] == [
        (1, "rank 0"), (3, "rank 1"), (2, "rank 2"),
    ]  # fmt: skip
    labels = [again.labels[thread.columns.label[0]] for thread in again.threads]
    assert labels == ["step 0", "step 1", "step 2"]
    assert [(line.pid, line.value.tolist()) for line in again.series] == [
        (1, [0.0]), (3, [1.0]), (2, [2.0]),
    ]  # fmt: skip


def test_perfetto_keeps_processes_of_one_identifier_apart(tmp_path: Path) -> None:
    protos = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    found = protos.Trace()
    found.ParseFromString(written(of_one_identifier(tmp_path), tmp_path / "a.pftrace", "perfetto"))
    tracks = [p.track_descriptor for p in found.packet if p.HasField("track_descriptor")]
    processes = {one.uuid: one.process for one in tracks if one.HasField("process")}
    assert [(one.pid, one.process_name) for one in processes.values()] == [
        (1, "rank 0"), (3, "rank 1"), (2, "rank 2"),
    ]  # fmt: skip
    threads = [(processes[one.parent_uuid].pid, one.thread.pid, one.thread.tid)
               for one in tracks if one.HasField("thread")]  # fmt: skip
    assert threads == [(1, 1, 7), (3, 3, 7), (2, 2, 7)]
    counters = [processes[one.parent_uuid].pid for one in tracks if one.HasField("counter")]
    assert counters == [1, 3, 2]


def test_threads_of_one_identifier_and_two_names_stay_apart(tmp_path: Path) -> None:
    threads = [Of(tid=7), Of(tid=8), Of(tid=7), Of(tid=1 << 31)]
    trace = Of(processes=[Of(pid=-1, threads=threads)], threads=threads)
    assert identifiers(trace) == ([-1], [(-1, 7), (-1, 8), (-1, 9), (-1, 1 << 31)])
    limited = identifiers(trace, range(1 << 31))
    most = (1 << 31) - 1
    assert limited == ([most], [(most, 7), (most, 8), (most, 9), (most, 0)])
