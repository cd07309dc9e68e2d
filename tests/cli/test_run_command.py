"""`poprun`: instances as real processes, each with a report of its own, that end together."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from shutil import which

import pytest
from click.testing import CliRunner, Result

from cli.run import run
from pva.formats.run_file import read_instance, read_run
from simulator.popdist.starters import mpirun_path

NO_MPI = pytest.mark.skipif(mpirun_path() is None, reason="tilescope[distributed]")
LAUNCHERS = ("processes", pytest.param("mpi", marks=NO_MPI))
WAIT = "echo up; exec sleep 60"
TWO_HOSTS = Path(__file__).parents[2] / "tools" / "two_hosts.sh"
NO_SPACES = pytest.mark.skipif(
    which("ip") is None or subprocess.run(["unshare", "--mount", "--net", "true"]).returncode != 0,
    reason="hosts of their own need root, unshare and iproute2",
)
POPRUN = [sys.executable, "-c", "from cli.run import poprun; poprun()"]


def poprun(*words: str | Path) -> Result:
    return CliRunner().invoke(run, list(map(str, words)), prog_name="poprun")


def started(folder: Path, count: int, launcher: str = "processes") -> subprocess.Popen[str]:
    """Start a run of instances that wait, and return when all are up and have told their pids."""
    words = ["--launcher", launcher, "--num-instances", str(count), "--out", str(folder)]
    process = subprocess.Popen(
        [*POPRUN, *words, "sh", "-c", WAIT],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert [process.stdout.readline() for _ in range(count)] == ["up\n"] * count
    deadline = time.monotonic() + 30
    while len(pids(folder)) < count and time.monotonic() < deadline:
        os.sched_yield()
    return process


def pids(folder: Path) -> list[int]:
    return [read_instance(file).pid for file in sorted(folder.glob("*/instance.json"))]


def is_alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().split()
    except (FileNotFoundError, ProcessLookupError):  # it ended, perhaps while it was read
        return False


def small_program(folder: Path) -> Path:
    program = folder / "program.py"
    program.write_text(
        "from simulator.examples import matmul_chain\n"
        "matmul_chain.run(((8, 8), (8, 8)), target='tiny', compile_ipu_code=False)\n"
    )
    return program


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_each_instance_has_a_report_and_a_trace_of_its_own(launcher: str, tmp_path: Path) -> None:
    program = small_program(tmp_path)
    done = poprun("--launcher", launcher, "--num-instances", 2, "--num-replicas", 4,
                  "--out", tmp_path / "run", program)  # fmt: skip
    assert (done.exit_code, done.stderr) == (0, "")
    found = read_run(tmp_path / "run" / "run.json")
    assert (found.launcher, found.topology.local_replicas, found.exit_code) == (launcher, 2, 0)
    first, second = found.instances
    assert first.graph == second.graph != ""
    assert first.pid != second.pid and first.end is not None
    for name in ("instance_0000", "instance_0001"):
        folder = tmp_path / "run" / name
        assert (folder / "profile.pop").is_file()
        assert len(list(folder.glob("*.pvti"))) == 1


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_the_first_that_fails_ends_all_and_speaks_last(launcher: str, tmp_path: Path) -> None:
    script = 'if [ $OMPI_COMM_WORLD_RANK = 1 ]; then echo "no data" >&2; exit 3; fi; exec sleep 60'
    begin = time.monotonic()
    done = poprun("--launcher", launcher, "--num-instances", 3, "--out", tmp_path,
                  "sh", "-c", script)  # fmt: skip
    assert done.exit_code == 3
    assert time.monotonic() - begin < 30
    *_, head, last = done.stderr.splitlines()
    assert head.startswith("poprun: instance 1 (") and head.endswith(
        " ended with 3; its last lines:"
    )
    assert last == "no data"
    assert not any(map(is_alive, pids(tmp_path)))


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_ctrl_c_ends_all_within_five_seconds(launcher: str, tmp_path: Path) -> None:
    process = started(tmp_path, 2, launcher)
    begin = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert time.monotonic() - begin < 5
    assert process.returncode == 130
    assert errors == "poprun: all instances were ended by SIGINT\n"
    assert not any(map(is_alive, pids(tmp_path)))


def test_a_killed_instance_ends_all(tmp_path: Path) -> None:
    process = started(tmp_path, 2)
    os.kill(pids(tmp_path)[0], signal.SIGKILL)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGKILL
    assert errors.startswith("poprun: instance 0 (")
    assert not any(map(is_alive, pids(tmp_path)))


def test_what_ignores_the_request_to_end_is_killed(tmp_path: Path) -> None:
    script = (
        'trap "" TERM; if [ $OMPI_COMM_WORLD_RANK = 1 ]; then exit 4; fi; while :; do sleep 1; done'
    )
    done = poprun("--launcher", "processes", "--num-instances", 2, "--out", tmp_path,
                  "sh", "-c", script)  # fmt: skip
    assert done.exit_code == 4
    assert not any(map(is_alive, pids(tmp_path)))


def test_the_death_of_poprun_is_that_of_its_instances(tmp_path: Path) -> None:
    process = started(tmp_path, 1)
    process.kill()
    process.communicate(timeout=60)
    deadline = time.monotonic() + 30
    while any(map(is_alive, pids(tmp_path))) and time.monotonic() < deadline:
        os.sched_yield()
    assert not any(map(is_alive, pids(tmp_path)))


def test_output_of_one_instance_leaves_the_errors_of_the_others(tmp_path: Path) -> None:
    script = "echo out; echo err >&2"
    done = poprun("--launcher", "processes", "--num-instances", 2, "--out", tmp_path,
                  "--tag-output", "--only-output-from-instance", 1, "sh", "-c", script)  # fmt: skip
    assert done.stdout == "[1,1]<stdout>:out\n"
    assert sorted(done.stderr.splitlines()) == ["[1,0]<stderr>:err", "[1,1]<stderr>:err"]


def test_variables_reach_all_instances_or_one(tmp_path: Path) -> None:
    done = poprun("--launcher", "processes", "--num-instances", 2, "--out", tmp_path,
                  "--mpi-global-args=--tag-output", "--mpi-local-args=-x A=1",
                  "--instance-mpi-local-args", "1:-x B=2", "sh", "-c", "echo $A$B")  # fmt: skip
    assert sorted(done.stdout.splitlines()) == ["[1,0]<stdout>:1", "[1,1]<stdout>:12"]


def test_a_program_learns_its_place(tmp_path: Path) -> None:
    done = poprun("--launcher", "processes", "--num-instances", 2, "--num-replicas", 6,
                  "--ipus-per-replica", 2, "--out", tmp_path,
                  "sh", "-c", "echo $TILESCOPE_POPDIST")  # fmt: skip
    places = sorted(map(json.loads, done.stdout.splitlines()), key=lambda place: place["instance"])
    expected = {"instances": 2, "replicas": 6, "ipus_per_replica": 2, "offline": False,
                "ilds": 1, "timeout": 300.0}  # fmt: skip
    assert len({place.pop("socket_directory") for place in places}) == 1
    assert places == [{"instance": 0, **expected}, {"instance": 1, **expected}]


def test_a_second_run_replaces_the_first_but_not_what_is_beside_it(tmp_path: Path) -> None:
    words = ("--launcher", "processes", "--out", tmp_path, sys.executable, "-c")
    trace = "import pvti\nwith pvti.Tracepoint(pvti.createTraceChannel('c'), 'l'): pass"
    assert poprun(*words, trace).exit_code == 0
    (tmp_path / "instance_0000" / "weights.bin").write_text("kept")
    first = {file.name for file in tmp_path.glob("*/*.pvti")}
    assert poprun(*words, trace).exit_code == 0
    assert {file.name for file in tmp_path.glob("*/*.pvti")}.isdisjoint(first)
    assert (tmp_path / "instance_0000" / "weights.bin").read_text() == "kept"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("run.json", "not written by tilescope; move it away"),
        ("instance_0000/instance.json", "Object missing required field `run`"),
    ],
)
def test_a_file_of_the_user_is_not_replaced(tmp_path: Path, name: str, words: str) -> None:
    (tmp_path / "instance_0000").mkdir()
    own = tmp_path / name
    own.write_text('{"mine": 1}')
    done = poprun("--launcher", "processes", "--out", tmp_path, "true")
    assert done.exit_code != 0
    assert f"{own}: {words}" in done.stderr
    assert own.read_text() == '{"mine": 1}'


def test_a_directory_in_use_is_refused(tmp_path: Path) -> None:
    process = started(tmp_path, 1)
    done = poprun("--launcher", "processes", "--out", tmp_path, "true")
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    assert "another program writes into it" in done.stderr


def test_offline_mode_compiles_and_runs_nothing(tmp_path: Path) -> None:
    program = small_program(tmp_path)
    done = poprun("--launcher", "processes", "--offline-mode", "--out", tmp_path / "run", program)
    assert done.exit_code == 1
    assert "compiled only, by simulator.compileOnly: nothing runs" in done.stderr
    assert read_run(tmp_path / "run" / "run.json").instances[0].graph


def test_options_of_the_hardware_are_taken_with_a_line_each(tmp_path: Path) -> None:
    done = poprun("--launcher", "processes", "--vipu-partition", "p", "--reset-partition=no",
                  "--remove-partition", "--out", tmp_path, "true")  # fmt: skip
    assert done.exit_code == 0
    why = "there is no V-IPU: every instance has a model of its own"
    names = ("--vipu-partition", "--reset-partition", "--remove-partition")
    assert done.stderr.splitlines() == [f"poprun: {name}: {why}" for name in names]


def test_an_exported_configuration_is_one_to_import(tmp_path: Path) -> None:
    file, first, second = tmp_path / "c.json", tmp_path / "a", tmp_path / "b"
    poprun("--launcher", "processes", "--num-instances", 2, "--export-config", file,
           "--out", first, "true")  # fmt: skip
    poprun("--import-config", file, "--num-replicas", 4, "--out", second, "true")
    topology = read_run(second / "run.json").topology
    assert (topology.instances, topology.replicas) == (2, 4)
    done = poprun("--export-config", file, "--out", first, "true")
    assert "is there already" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--num-instances", "2", "--num-replicas", "3", "true"), "--num-replicas is 3"),
        (("--host", "a,b", "--launcher", "processes", "true"), "reached by MPI alone"),
        (("--host", "a;b", "true"), "hosts are needed"),
        (("no-such-program",), "no such program"),
        (("no-such-program.py",), "no such file"),
        (("--only-output-from-instance", "1", "true"), "there are 1 instances, from 0"),
        (("--instance-mpi-local-args", "x", "true"), "is needed"),
        (("--num-instances", "2"), "no program to run"),
    ],
)
def test_a_wrong_call_is_one_line(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    done = subprocess.run([*POPRUN, "--out", str(tmp_path), *words], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and said in done.stderr


@NO_MPI
@NO_SPACES
def test_instances_run_on_two_hosts_and_say_on_which(tmp_path: Path) -> None:
    words = shlex.join(["--host", "h1,h2", "--num-instances", "2", "--out", str(tmp_path / "run")])
    script = f"{shlex.join(POPRUN)} {words} hostname"
    done = subprocess.run(["bash", TWO_HOSTS, "bash", "-c", script], capture_output=True, text=True)
    assert (done.returncode, sorted(done.stdout.split())) == (0, ["h1", "h2"]), done.stderr
    assert [one.host for one in read_run(tmp_path / "run" / "run.json").instances] == ["h1", "h2"]
