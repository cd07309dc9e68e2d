"""Start the processes of a run: by MPI, on one host or several, or as processes of this host."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from pva.formats.run_file import Topology
from simulator.graph.errors import PoplarError
from simulator.instances.placement import LOCAL_RANK, RANK, SIZE
from simulator.popdist.instance import ENGINE, TRACE, Plan

INSTALL = "pip install 'tilescope[distributed]'"
# What every instance needs to have as this process has it, on other hosts, too.
FORWARDED = ("PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV", ENGINE, TRACE,
             "POPLAR_TARGET_OPTIONS", "POPLAR_LOG_LEVEL", "POPART_LOG_LEVEL")  # fmt: skip
NUMA = ("--map-by", "numa:OVERSUBSCRIBE", "--bind-to", "numa")
_ROOT = 0  # user id


@dataclass(frozen=True, slots=True)
class Started:
    """A process that was started: one instance, or `mpirun` with all of them."""

    process: subprocess.Popen[bytes]
    instance: int | None = None


def mpirun_path() -> Path | None:
    """Return the `mpirun` beside this Python, or on the path; None without mpi4py."""
    beside = Path(sys.executable).parent / "mpirun"
    path = str(beside) if beside.is_file() else shutil.which("mpirun")
    return Path(path) if path and find_spec("mpi4py") else None


def processes(
    plan: Plan, command: Sequence[str], topology: Topology, mpi_arguments: Sequence[str] = ()
) -> list[Started]:
    """Start each instance as a process of this host; raises OSError with none of them alive."""
    started: list[Started] = []
    for index in range(topology.instances):
        place = {RANK: index, LOCAL_RANK: index, SIZE: topology.instances}
        try:
            process = _popen(
                _wrapped(plan, command), {name: str(value) for name, value in place.items()}
            )
        except OSError:
            kill(*started)
            raise
        started.append(Started(process, index))
    return started


def mpirun(
    plan: Plan, command: Sequence[str], topology: Topology, mpi_arguments: Sequence[str] = ()
) -> list[Started]:
    """Start all instances by MPI, divided evenly among hosts; raises PoplarError, OSError."""
    path = mpirun_path()
    if path is None:
        raise PoplarError(f"no mpirun with mpi4py is there; {INSTALL}")
    per_host = topology.instances // len(topology.hosts)
    hosts = ",".join(f"{host}:{per_host}" for host in topology.hosts)
    forwarded = [word for name in FORWARDED if name in os.environ for word in ("-x", name)]
    root = ["--allow-run-as-root"] if os.geteuid() == _ROOT else []
    return [Started(_popen([
        str(path), *root, "--host", hosts, "-n", str(topology.instances), "--output", "tag",
        *forwarded, *mpi_arguments, *_wrapped(plan, command),
    ], {}))]  # fmt: skip


def kill(*started: Started) -> None:
    """Kill processes with all that they started; each leads a group of its own."""
    for one in started:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(one.process.pid, signal.SIGKILL)


def _wrapped(plan: Plan, command: Sequence[str]) -> list[str]:
    # -P: a folder of the user's that is called simulator is not ours.
    wrapper = [sys.executable, "-P", "-m", "simulator.popdist.instance"]
    return [*wrapper, plan.as_text(), *command]


def _popen(words: Sequence[str], environment: dict[str, str]) -> subprocess.Popen[bytes]:
    """Start a process in a session of its own, so that Ctrl-C reaches it through `poprun` alone."""
    return subprocess.Popen(
        words, env={**os.environ, **environment}, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
