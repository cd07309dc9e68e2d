"""Instances train as one does, bit by bit, and say who waits where for whom when they do not."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from simulator.graph.errors import PoplarError
from simulator.instances import sockets
from simulator.popdist.starters import mpirun_path

HERE = Path(__file__).parent
NO_MPI = pytest.mark.skipif(mpirun_path() is None, reason="tilescope[distributed]")
POPRUN = [sys.executable, "-c", "from cli.run import poprun; poprun()"]
QUIET = {
    "POPLAR_ENGINE_OPTIONS": '{"autoReport.all": "false"}',
    "PVTI_OPTIONS": '{"enable":"false"}',
}
ALL = ("SGD", "1", "SGD", "2", "Adam", "1", "Adam", "2")


def poprun(*words: str | Path | int) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*POPRUN, *map(str, words)],
        capture_output=True, text=True, env={**os.environ, **QUIET}, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, np.ndarray]]:
    """Train in one instance of four replicas."""
    file = tmp_path_factory.mktemp("alone") / "of"
    subprocess.run([sys.executable, HERE / "training.py", file, *ALL], check=True)
    with np.load(f"{file}0.npz") as found:
        yield dict(found)


@pytest.mark.parametrize(
    ("launcher", "trained"),
    [("processes", ALL), pytest.param("mpi", ALL[2:4], marks=NO_MPI)],
)
def test_two_instances_of_two_replicas_are_one_of_four_bit_by_bit(
    launcher: str, trained: tuple[str, ...], alone: dict[str, np.ndarray], tmp_path: Path
) -> None:
    done = poprun("--launcher", launcher, "--num-instances", 2, "--num-replicas", 4,
                  "--timeout", 60, "--out", tmp_path, HERE / "training.py", tmp_path / "of",
                  *trained)  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    first, second = (dict(np.load(tmp_path / f"of{instance}.npz")) for instance in (0, 1))
    assert len(first) == 3 * len(trained) / 2
    for name, values in first.items():
        if name.endswith("_y"):  # [step, micro-batch, replica, ...]
            assert np.concatenate([values, second[name]], axis=2).tobytes() == alone[name].tobytes()
        else:
            assert values.tobytes() == second[name].tobytes() == alone[name].tobytes()


@pytest.mark.parametrize("root", [0, 2])
def test_all_instances_take_the_weights_of_one(root: int, tmp_path: Path) -> None:
    done = poprun("--launcher", "processes", "--num-instances", 3, "--num-replicas", 3,
                  "--timeout", 60, "--out", tmp_path, HERE / "broadcast.py", tmp_path / "of",
                  root)  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    for instance in range(3):
        sums = np.load(tmp_path / f"of{instance}.npy")
        assert sums.tolist() == (2 * (np.arange(6).reshape(2, 3) + 10 * root)).tolist()


def test_weights_of_an_instance_that_is_not_there_are_refused(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, HERE / "broadcast.py", tmp_path / "of", "1"],
        capture_output=True, text=True, env={**os.environ, **QUIET}, check=False,
    )  # fmt: skip
    assert done.stderr.splitlines()[-1].endswith(
        "popart_exception: broadcastWeights: rootRank is 1; 0 to 0 are there"
    )


def test_the_runs_change_the_weights(alone: dict[str, np.ndarray]) -> None:
    assert len({alone[f"{name}_w0"].tobytes() for name in ("SGD1", "SGD2", "Adam1", "Adam2")}) == 4
    assert all(
        len(np.unique(alone[f"{name}_y"][:, 0, 0, 0, 0])) == 20 for name in ("SGD1", "Adam2")
    )


@NO_MPI
def test_a_program_that_takes_up_mpi_by_itself_is_alone_there(tmp_path: Path) -> None:
    """It had the rank of the process that carries its messages, and their memory was mixed up."""
    program = tmp_path / "program.py"
    program.write_text(
        "from mpi4py import MPI\n"
        "print(MPI.COMM_WORLD.Get_size())\n"
        + (HERE / "broadcast.py").read_text().replace("from __future__ import annotations\n", "")
    )
    done = poprun("--launcher", "mpi", "--num-instances", 2, "--num-replicas", 2, "--timeout", 60,
                  "--out", tmp_path, program, tmp_path / "of", 1)  # fmt: skip
    assert (done.returncode, done.stdout.split()) == (0, ["1", "1"]), done.stderr
    sums = [np.load(tmp_path / f"of{instance}.npy").tolist() for instance in (0, 1)]
    assert sums[0] == sums[1] == (2 * (np.arange(6).reshape(2, 3) + 10)).tolist()


@NO_MPI
def test_a_hang_ends_with_who_waits_where_for_whom(tmp_path: Path) -> None:
    begun = time.monotonic()
    done = poprun("--launcher", "mpi", "--num-instances", 2, "--timeout", 1,
                  "--out", tmp_path, HERE / "collectives.py", "hang")  # fmt: skip
    assert done.returncode == 1 and time.monotonic() - begun < 50  # it would sleep for 60 s
    assert done.stderr.splitlines()[-1].endswith(
        "instance 0 has waited 1 s in 'w' (copy 1 of step 1, 'train') for instance 1; "
        "instance 1 was last in 'w' (copy 1 of step 0, 'train')"
    )


def test_a_wait_for_one_who_waits_names_whom_that_waits_for(tmp_path: Path) -> None:
    done = poprun("--launcher", "processes", "--num-instances", 4, "--timeout", 2,
                  "--out", tmp_path, HERE / "collectives.py", "hang")  # fmt: skip
    whole = (
        "instance 0 has waited 2 s in 'w' (copy 2 of step 1, 'train') for instance 2; "
        "instance 2 waits in 'w' (copy 1 of step 1, 'train') for instance 3; instance 3 "
        "has come to no copy with instance 0"
    )
    direct = "instance 2 has waited 2 s in 'w' (copy 1 of step 1, 'train') for instance 3; "
    assert whole in done.stderr or direct in done.stderr  # who gives up first ends the others


def test_who_comes_before_an_instance_listens_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    early: list[socket.socket | None] = []

    class Slow(socket.socket):
        def listen(self, *sizes: int) -> None:
            early.append(sockets.connected(tmp_path / "0", deadline=0))
            super().listen(*sizes)

    monkeypatch.setattr(socket, "socket", Slow)
    with sockets.listening(tmp_path / "0"):
        later = sockets.connected(tmp_path / "0", deadline=0)
        assert early == [None] and later is not None
        later.close()


def test_an_instance_has_one_process_at_a_time_that_exchanges(tmp_path: Path) -> None:
    text = "instance 0: File exists: .*; one process at a time"
    with sockets.listening(tmp_path / "0"), pytest.raises(PoplarError, match=text):
        sockets.listening(tmp_path / "0")
    sockets.listening(tmp_path / "0").close()  # what has ended is replaced
    assert [path.name for path in tmp_path.iterdir()] == ["0"]


@pytest.mark.parametrize(
    ("launcher", "last", "said"),
    [
        pytest.param("mpi", "end", r"and needs instance 1, which has ended", marks=NO_MPI),
        ("processes", "end", r"and needs instance 1, which has ended"),
        ("processes", "other", r"in '[wv]' .*: their programs took different ways"),
    ],
)
def test_an_instance_that_does_not_come_is_named(
    launcher: str, last: str, said: str, tmp_path: Path
) -> None:
    done = poprun("--launcher", launcher, "--num-instances", 2, "--timeout", 60,
                  "--out", tmp_path, HERE / "collectives.py", last)  # fmt: skip
    assert done.returncode == 1
    assert re.search(said, done.stderr.splitlines()[-1]), done.stderr
