"""Clocks of instances: one host, hosts that are apart, and when nothing shows how far."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from cli.main import tilescope
from pva.analysis import clock_residual, instance_pace, instance_utilisation
from pva.analysis.distributed.clocks import Clock
from pva.formats.traces.perfetto_trace import END
from pva.many.perfetto_archive import _files
from tests.many.planted import HOUR, Plan, instance, planted, write_planted


def of(frame: Any, column: str) -> list[Any]:
    return frame[column].tolist()


def test_instances_of_one_host_lie_by_its_wall_clock() -> None:
    frame = clock_residual(planted(Plan(instances=3), 0))
    assert of(frame, "method") == ["reference", "wall clock", "wall clock"]
    assert of(frame, "offset_ns") == [0, 0, 0]
    assert of(frame, "residual_ns") == [0, 0, 0]


def test_clocks_hours_apart_are_corrected_by_collectives() -> None:
    frame = clock_residual(planted(Plan(instances=4, hosts=2, apart=3 * HOUR), 0))
    assert of(frame, "method")[2:] == ["matched collectives"] * 2
    assert of(frame, "offset_ns") == [0, 0, -3 * HOUR, -3 * HOUR]
    assert frame["residual_ns"].max() == 0 and of(frame, "events") == [0, 0, 20, 20]


@pytest.mark.parametrize("seed", range(5))
def test_the_residual_is_how_far_the_ends_scatter(seed: int) -> None:
    run = planted(Plan(instances=2, hosts=2, apart=HOUR, steps=400), seed)
    thread = next(run.instances[1].trace.read_threads())
    noise = np.random.default_rng(seed).uniform(-50_000, 50_000, 400).astype(np.int64)
    thread.end_ns[thread.label == 2] += noise
    row = clock_residual(run).iloc[1]
    assert row["offset_ns"] == pytest.approx(-HOUR, abs=10_000)
    assert row["residual_ns"] == pytest.approx(45_000, abs=5_000)  # nine of ten


def test_hosts_without_collectives_are_refused_in_a_sentence() -> None:
    run = planted(Plan(instances=2, hosts=2, collectives=False), 0)
    row = clock_residual(run).iloc[1]
    assert row["method"] == "none" and pd.isna(row["residual_ns"])
    assert row["problem"] == (
        "no 3 collectives that it ends together with instance 0, so its times are not compared"
    )
    pace = instance_pace(run).groupby("instance")
    assert pace["begin_ns"].count().tolist() == pace["late_ns"].count().tolist() == [20, 0]
    assert set(instance_utilisation(run)["instance"]) == {0}


def test_a_trace_without_a_wall_clock_is_refused_in_a_sentence() -> None:
    run = planted(Plan(instances=2), 0)
    run.instances[1].trace.anchor.wall_ns = 0
    frame = clock_residual(run)
    assert of(frame, "problem") == [
        "", "its trace tells no wall clock, so its times are not compared"
    ]  # fmt: skip


def test_the_clocks_that_an_instance_wrote_stand_in_for_those_of_its_trace() -> None:
    run = planted(Plan(instances=2), 0)
    run.instances[1].trace.anchor = SimpleNamespace(wall_ns=0, clock_ns=700)
    begin = SimpleNamespace(clock_ns=500, wall_ns=10**18)
    run.instances[1].file = SimpleNamespace(begin=begin)
    run.instances[1].trace.anchor.clock_ns = 700
    frame = instance_pace(run)
    starts = [frame[frame["instance"] == one]["begin_ns"].min() for one in (0, 1)]
    own = [next(one.trace.read_threads()).begin_ns.min() for one in run.instances]
    assert starts == [own[0], own[1] + 200]


@pytest.mark.parametrize(("moved", "method"), [(10**8, "wall clock"), (2 * 10**9, "none")])
def test_a_wall_clock_that_was_set_is_no_clock_of_its_host(moved: int, method: str) -> None:
    spans = [(np.array([0, 10]), np.array([5, 15]), 0)]
    both = [instance(0, "h", spans, 10**18, 50), instance(1, "h", spans, 10**18 + moved, 50)]
    row = clock_residual(SimpleNamespace(instances=both)).iloc[1]
    assert row["method"] == method
    if method != "none":
        assert row["residual_ns"] == moved


def test_the_pace_has_the_nth_run_of_each_instance() -> None:
    run = planted(Plan(instances=3, steps=5, culprit=1, noise=0.0, late=1.0), 0)
    frame = instance_pace(run)
    late = frame.pivot(index="occurrence", columns="instance", values="late_ns")
    assert late[0].tolist() == [0] * 5 and late[1].tolist() == [10_000_000] * 5
    starts = frame[frame["instance"] == 1]["begin_ns"].diff().dropna()
    assert frame[frame["instance"] == 1]["period_ns"].dropna().tolist() == starts.tolist()


def test_what_is_finer_than_the_residual_is_not_late() -> None:
    run = planted(Plan(instances=2, hosts=2, apart=HOUR, steps=50, noise=0.01), 0)
    thread = next(run.instances[1].trace.read_threads())
    thread.end_ns[thread.label == 2] += np.where(np.arange(50) % 2, 90_000_000, -90_000_000)
    frame = instance_pace(run)
    assert set(frame["late_ns"]) == {0}
    parts = instance_utilisation(run)
    assert (parts["end_ns"] - parts["begin_ns"]).min() >= clock_residual(run)["residual_ns"].max()


def test_utilisation_is_the_part_of_the_time_inside_events() -> None:
    spans = [(np.array([0, 100]), np.array([50, 200]), 0), (np.array([0]), np.array([25]), 1)]
    run = SimpleNamespace(instances=[instance(0, "h", spans, 10**18)])
    frame = instance_utilisation(run, count=4)
    assert of(frame, "run") == [1.0, 0.0, 1.0, 1.0]
    assert of(frame, "callback") == [0.5, 0.0, 0.0, 0.0]
    assert of(frame, "begin_ns") == [0, 50, 100, 150]


@pytest.mark.parametrize("seed", range(3))
def test_utilisation_conserves_the_time_of_events(seed: int) -> None:
    run = planted(Plan(instances=4), seed)
    frame = instance_utilisation(run, count=37)
    length = frame["end_ns"] - frame["begin_ns"]
    for one in run.instances:
        thread = next(one.trace.read_threads())
        runs = (thread.end_ns - thread.begin_ns)[thread.label == 0].sum()
        mine = frame["instance"] == one.index
        assert (frame["run"] * length)[mine].sum() == pytest.approx(runs, rel=1e-9)


def archive_of(run: Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Convert a run for Perfetto; return the manifest and the traces by the paths of both."""
    out = run.with_suffix(".tar")
    done = CliRunner().invoke(tilescope, ["trace", "convert", str(run), "-o", str(out)])
    assert done.exit_code == 0, done.output
    with tarfile.open(out) as archive:
        files = {name: archive.extractfile(name).read() for name in archive.getnames()}  # type: ignore[union-attr]
    assert next(iter(files)) == "perfetto_manifest.json"
    return json.loads(files.pop("perfetto_manifest.json"))["perfetto_manifest"], files


def test_a_run_is_an_archive_with_a_manifest_for_perfetto(tmp_path: Path) -> None:
    pytest.importorskip("perfetto")
    write_planted(tmp_path / "run", Plan(instances=4, hosts=2, apart=HOUR))
    manifest, files = archive_of(tmp_path / "run")
    paths = [f"instance_000{number}.pftrace" for number in range(4)]
    assert list(files) == paths
    # As perfetto.dev/docs/reference/perfetto-manifest has it: a clock needs one that it differs
    # from, and machines of one name share their clock.
    first = {"file": paths[0], "clock": "BOOTTIME"}
    hosts = [{"machine": {"name": name}} for name in ("h0", "h0", "h1", "h1")]
    wanted: list[dict[str, Any]] = [
        {"path": path, **host} for path, host in zip(paths, hosts, strict=True)
    ]
    wanted[2]["clocks"] = {"clock": "BOOTTIME", "sync_to": first, "offset_ns": -HOUR}
    assert manifest == {"version": 1, "trace_time": first, "files": wanted}


def test_collectives_end_together_in_what_perfetto_gets(tmp_path: Path) -> None:
    protos = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    write_planted(tmp_path / "run", Plan(instances=2, hosts=2, apart=HOUR, noise=0.0))
    manifest, files = archive_of(tmp_path / "run")
    lasts = []
    for entry in manifest["files"]:
        trace = protos.Trace()
        trace.ParseFromString(files[entry["path"]])
        ends = [p.timestamp for p in trace.packet if p.track_event.type == END]
        lasts.append(max(ends) + entry.get("clocks", {}).get("offset_ns", 0))
    assert abs(lasts[0] - lasts[1]) <= 1000  # and an hour without the manifest


def test_a_host_whose_clock_was_set_is_two_machines() -> None:
    clocks = [Clock(n, "h", "wall clock", offset) for n, offset in enumerate((0, 0, -HOUR))]
    names = [entry["machine"]["name"] for entry in _files(clocks)]
    assert names == ["h", "h", "h, instance 2"]
