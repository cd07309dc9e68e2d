"""Explorations: points in processes of their own, resumable, with their faults."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import onnx
import pandas as pd
import pytest
from click.testing import CliRunner
from onnx import TensorProto, helper, numpy_helper

import pva
from cli.main import tilescope
from cli.serve import checked_paths
from pva.errors import PvaError
from pva.many.points import pareto
from simulator.explore.engine import Processes
from simulator.explore.explore import Exploration, Plan
from simulator.explore.levers import Space, read_levers
from simulator.explore.record import owned
from simulator.explore.search import searched
from simulator.explore.work import Task, run_point
from simulator.graph.errors import PoplarError
from simulator.signals import ctrl_c_noted
from tests.many.explored import write_explored

pytest.importorskip("pyarrow")


def write_model(path: Path, width: int = 16) -> Path:
    """Write x @ w for a batch of 4."""
    weights = numpy_helper.from_array(np.ones((width, width), np.float32), "w")
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, width]) for name in "xy"]
    node = helper.make_node("MatMul", ["x", "w"], ["y"], "MatMul")
    graph = helper.make_graph([node], "small", values[:1], values[1:], [weights])
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), path)
    return path


def write_program(path: Path, *lines: str) -> Path:
    """Write a program whose argument --how says what happens to it."""
    path.write_text("import argparse, os, signal, sys, time\n" + "\n".join(lines) + "\n")
    return path


def run(*arguments: object) -> dict:
    """Run `tilescope explore ... --json` and return its object."""
    found = CliRunner().invoke(tilescope, ["explore", *map(str, arguments), "--json"])
    assert found.exit_code == 0, found.output
    return json.loads(found.stdout)


def fullest(report: pva.Report) -> int:
    """Return the bytes of the fullest tile, as libpva's objects have them."""
    return max(tile.memory.total.includingGaps for tile in report.compilation.tiles)


@pytest.fixture(scope="module")
def explored(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, dict]:
    """Explore four points of a model on a machine of four tiles."""
    folder = tmp_path_factory.mktemp("explored")
    model = write_model(folder / "small.onnx", 64)
    machine = folder / "mine.toml"
    machine.write_text('like = "tiny"\nbytes_per_tile = 20_000\n')
    out = folder / "space"
    levers = ("--vary", f"target=tiny,{machine}", "--vary", "batch=2,4", "--keep", "1")
    return model, out, run(model, *levers, "--out", out)


def test_every_point_is_a_row_and_a_miss_says_where_and_by_how_much(explored) -> None:
    _, out, found = explored
    frame = pd.read_parquet(out / "points.parquet")
    assert (found["space"], found["run"], found["computed"]) == (4, 4, 4)
    assert sorted(frame["batch"]) == [2, 2, 4, 4]
    misses = frame[~frame["fits"]]
    assert list(misses["target"].str.endswith("mine.toml")) == [True, True]
    assert ((misses["fullest_tile"] - 20_000) == misses["over"]).all()
    assert (misses["over"] > 0).all()
    assert misses["live"].str.contains("bytes").all()


def test_figures_of_a_point_are_those_of_its_report(explored) -> None:
    _, out, _ = explored
    found = pva.openExploration(out)
    row = found.frame[found.frame["report"] != ""].iloc[0]
    report = found.report(row["key"])
    cycles = int(report.dataset.column("runs", "cycles").sum())
    assert row["cycles"] == cycles
    assert row["cycles_per_sample"] == pytest.approx(cycles / row["batch"])
    assert row["fullest_tile"] == fullest(report)


def test_only_the_best_reports_are_kept_and_others_made_again(explored) -> None:
    _, out, _ = explored
    assert len(list((out / "reports").iterdir())) == 1
    found = pva.openExploration(out)
    gone = found.frame[found.frame["report"] == ""].iloc[0]
    assert fullest(found.report(gone["key"])) == gone["fullest_tile"]


def test_a_larger_grid_computes_only_what_is_new(explored) -> None:
    model, out, _ = explored
    found = run(model, "--vary", "target=tiny", "--vary", "batch=2,4,8",
                "--vary", "precision=float", "--out", out)  # fmt: skip
    assert (found["run"], found["computed"]) == (3, 1)


def test_a_point_without_a_name_is_the_same_under_any_order_of_levers(tmp_path: Path) -> None:
    model = str(write_model(tmp_path / "m.onnx"))
    space = Space(model, (), {})
    key = space.point({"batch": "2", "ipus": "1"}).key
    assert key == space.point({"ipus": "1", "batch": "2"}).key == space.point({"batch": "2"}).key
    assert key != space.point({"batch": "2", "ipus": "2"}).key
    write_model(tmp_path / "m.onnx", 32)
    assert space.point({"batch": "2"}).key != key


def test_a_program_that_crashes_hangs_or_is_killed_is_a_row_with_its_reason(
    tmp_path: Path,
) -> None:
    program = write_program(
        tmp_path / "p.py",
        "how = sys.argv[1].partition('=')[2]",
        "if how == 'raise': raise ValueError('no such luck')",
        "if how == 'kill': os.kill(os.getpid(), signal.SIGKILL)",
        "if how == 'hang': time.sleep(600)",
        "if how == 'memory': x = bytearray(1 << 33)",
    )
    found = run(program, "--vary", "how=raise,kill,hang,memory", "--out", tmp_path / "s",
                "--time-limit", 8, "--memory-limit", "1GB", "--workers", 4)  # fmt: skip
    errors = {point["how"]: point["error"] for point in found["points"]}
    assert "no such luck" in errors["raise"] or "made no Engine" in errors["raise"]
    assert "SIGKILL" in errors["kill"]
    assert "longer than 8 s" in errors["hang"]
    assert "memory" in errors["memory"].lower()
    assert found["failed"] == 4


def test_a_second_exploration_says_who_has_the_directory(tmp_path: Path) -> None:
    model = write_model(tmp_path / "m.onnx")
    (tmp_path / "s").mkdir()
    with (tmp_path / "s" / "lock").open("w") as stream:
        stream.write("process 7 of there")
        stream.flush()
        fcntl.flock(stream, fcntl.LOCK_EX)
        found = CliRunner().invoke(
            tilescope, ["explore", str(model), "--vary", "batch=1", "--out", str(tmp_path / "s")]
        )
    assert found.exit_code == 2
    assert "process 7 of there explores into it" in found.stderr


def test_what_an_interrupted_run_had_done_is_kept_and_not_done_again(tmp_path: Path) -> None:
    out, go = tmp_path / "s", tmp_path / "go"
    program = write_program(
        tmp_path / "p.py",
        f"while sys.argv[1] != '--how=a' and not os.path.exists({str(go)!r}): time.sleep(0.01)",
    )
    levers = ("--vary", "how=a,b,c", "--workers", "1", "--out", str(out))
    command = [sys.executable, "-m", "cli.main", "explore", str(program), *levers]
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job has none
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    signal.signal(signal.SIGINT, before)
    deadline = time.monotonic() + 120
    while not list(out.glob("points/*.json")) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    assert list(pd.read_parquet(out / "points.parquet")["how"]) == ["a"]
    go.touch()
    found = run(program, *levers)
    assert (found["run"], found["computed"]) == (3, 2)


def test_a_signal_that_wakes_no_thread_ends_the_run(tmp_path: Path) -> None:
    """As one that comes when the main thread begins to wait: another thread takes it."""
    program = write_program(tmp_path / "p.py", "time.sleep(60)")
    thread = threading.Timer(1, lambda: signal.pthread_kill(threading.get_ident(), signal.SIGINT))
    given = Plan((), lambda rows: rows, {}, 60, 1 << 32)
    space = Space(str(program), (), read_levers(("how=a,b",)))
    thread.start()
    began = time.monotonic()
    with owned(tmp_path / "s"), pytest.raises(KeyboardInterrupt):
        Exploration(space, tmp_path / "s", Processes(1), given).run()
    thread.join()
    assert time.monotonic() - began < 20


def test_ctrl_c_is_raised_where_it_is_asked_for_and_at_the_end() -> None:
    seen = []
    with pytest.raises(KeyboardInterrupt), ctrl_c_noted() as raise_noted:
        signal.raise_signal(signal.SIGINT)
        seen.append("went on")
        with pytest.raises(KeyboardInterrupt):
            raise_noted()
    assert seen == ["went on"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_while_a_point_is_recorded_ends_those_that_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid, out = tmp_path / "pid", tmp_path / "s"
    waits = f"open({str(pid)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    program = write_program(tmp_path / "p.py", f"if sys.argv[1] == '--how=b': {waits}")

    def interrupted(*_: object) -> None:
        while not (pid.exists() and pid.read_text()):
            time.sleep(0.01)
        raise KeyboardInterrupt

    monkeypatch.setattr(Exploration, "_take", interrupted)
    given = Plan((), lambda rows: rows, {}, 60, 1 << 32)
    space = Space(str(program), (), read_levers(("how=a,b",)))
    with owned(out), pytest.raises(KeyboardInterrupt) as kept:
        Exploration(space, out, Processes(2), given).run()
    assert kept.value.__traceback__ is not None  # its frames hold what was at work
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


def test_a_full_disk_ends_the_run_and_keeps_what_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = iter([{"fits": True, "samples_per_second": 1.0}, {"error": "No space left on device"}])
    monkeypatch.setattr("simulator.explore.engine.run_point", lambda task, _: dict(next(rows)))
    model, out = write_model(tmp_path / "m.onnx"), tmp_path / "s"
    found = CliRunner().invoke(tilescope, ["explore", str(model), "--vary", "batch=1,2,3",
                                           "--workers", "1", "--out", str(out)])  # fmt: skip
    assert found.exit_code == 2
    assert "the disk is full" in found.stderr
    assert len(pd.read_parquet(out / "points.parquet")) == 1


def test_as_many_processes_run_as_the_first_point_shows_that_memory_allows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("simulator.explore.engine.available_memory", lambda: 10_000)
    monkeypatch.setattr("simulator.explore.engine.os.cpu_count", lambda: 64)
    engine = Processes()
    assert engine._room() == 1
    engine._measure({"memory": 1_600})
    assert engine._room() == 5  # 10,000 / (1,600 * 1.25)
    engine._measure({"memory": 100})
    assert engine._room() == 5


def test_the_pareto_set_is_that_of_brute_force() -> None:
    random = np.random.default_rng(3)
    frame = pd.DataFrame({"fits": random.random(60) < 0.8,
                          "samples_per_second": random.integers(0, 9, 60).astype(float),
                          "fullest_tile": random.integers(0, 9, 60)})  # fmt: skip
    found = pareto(frame, ["samples_per_second", "fullest_tile"])
    rows = list(frame.itertuples(index=False))
    for row, is_best in zip(rows, found, strict=True):
        beaten = any(o.fits and o.samples_per_second >= row.samples_per_second
                     and o.fullest_tile <= row.fullest_tile and (o[1], o[2]) != (row[1], row[2])
                     for o in rows)  # fmt: skip
        assert is_best == (row.fits and not beaten)


def test_optuna_asks_for_the_same_points_with_the_same_seed(tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    model = str(write_model(tmp_path / "m.onnx"))
    space = Space(model, (), {"batch": tuple(map(str, range(1, 9))), "ipus": ("1", "2", "4", "8")})

    def asked(seed: int) -> list[str]:
        rows: dict = {}

        def compute(points) -> None:
            for point in points:
                value = float(point.levers["batch"]) * float(point.levers["ipus"])
                rows[point.key] = {"fits": True, "samples_per_second": value}

        searched(space, compute, rows, {"samples_per_second": 1}, 12, seed, tmp_path)
        return list(rows)

    first = asked(1)
    assert len(first) == 12
    assert first == asked(1)
    assert first != asked(2)


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        (["batch"], "--vary batch: write LEVER=VALUE,VALUE"),
        (["batch=1,,2"], "write LEVER=VALUE,VALUE"),
        (["batch=1", "batch=2"], "--vary batch: it is there twice"),
        (["target=mk9"], "no part 'mk9'"),
    ],
)
def test_wrong_levers_are_refused(pairs: list[str], message: str) -> None:
    with pytest.raises(PoplarError, match=message):
        read_levers(pairs)


def test_a_task_that_says_nothing_before_it_ends_still_has_a_reason(tmp_path: Path) -> None:
    row = run_point(Task("k", ("nothing.onnx",), str(tmp_path / "r"), 60, 0))
    assert "nothing.onnx" in row["error"]


@pytest.mark.parametrize("name", ["points.parquet", "exploration.json", "lock", "reports/a.txt"])
def test_a_directory_of_something_else_is_refused_and_left_as_it_is(
    tmp_path: Path, name: str
) -> None:
    file = tmp_path / "mine" / name
    file.parent.mkdir(parents=True)
    file.write_text("precious")
    model = write_model(tmp_path / "m.onnx")
    arguments = ("explore", str(model), "--vary", "batch=4", "--target", "tiny", "--out")
    done = CliRunner().invoke(tilescope, [*arguments, str(tmp_path / "mine")])
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert f"holds {name.split('/')[0]}, which no exploration wrote" in done.stderr
    assert file.read_text() == "precious"
    assert [one for one in (tmp_path / "mine").rglob("*") if one.is_file()] == [file]


def test_an_exploration_that_was_killed_as_it_began_is_begun_again(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text("process 12 of host-1")
    with owned(tmp_path):
        assert (tmp_path / "lock").read_text().startswith("process ")


@pytest.mark.parametrize("reports", [0, 2])
def test_the_dashboard_takes_the_directory_of_an_exploration(reports: int, tmp_path: Path) -> None:
    folder = write_explored(tmp_path / "space", reports=reports)
    assert checked_paths([folder], strict=True) == [folder]
    (folder / "exploration.json").write_text("{")
    with pytest.raises(PvaError, match="not JSON"):
        checked_paths([folder])


@pytest.mark.parametrize("shared", [("--batch", "8", "--train"), ("--batch=8", "--train")])
def test_an_option_that_a_lever_sets_stands_once_in_the_command(shared: tuple[str, ...]) -> None:
    point = Space("m.onnx", shared, {"batch": ("4",)}).point({"batch": "4"})
    assert point.arguments == ("m.onnx", "--train", "--no-values", "--batch=4")
