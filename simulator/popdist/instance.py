"""One instance: give the program its place and its own directories, wait for it, write it down.

    python -m simulator.popdist.instance PLAN PROGRAM [ARGUMENTS]...

`poprun` starts this once for each instance, by MPI or as a process of its own.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pva.data.graph_hash import graph_hash
from pva.errors import PvaError
from pva.formats import registry, report_directory
from pva.formats.run_file import (
    INSTANCE_NAME,
    InstanceFile,
    clock_now,
    folder_name,
    read_instance,
    write_instance,
)
from simulator.graph.errors import PoplarError
from simulator.instances.placement import RANK, VARIABLE, Placement
from simulator.popdist.bridge import Bridge
from simulator.signals import TURN

# What Open MPI tells its processes; of it the program may know its place.
MPI_VARIABLES, PLACE_VARIABLES = ("PMIX_", "PRTE_", "OMPI_"), "OMPI_COMM_WORLD_"
ENGINE, TRACE = "POPLAR_ENGINE_OPTIONS", "PVTI_OPTIONS"
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
NO_PROGRAM, FAULT = 127, 2  # exit codes
_SIGNAL_BASE = 128  # what shells add to the number of a signal
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG of Linux' prctl


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What all instances of a run are told alike."""

    run: str
    directory: str
    placement: Placement
    scratch: str = ""  # a directory of the host of poprun, removed at the end
    variables: dict[str, str] = field(default_factory=dict)  # of `-x NAME=VALUE`
    own_variables: dict[int, dict[str, str]] = field(default_factory=dict)  # by instance

    def as_text(self) -> str:
        """Return the plan as an argument."""
        return json.dumps(asdict(self))

    @classmethod
    def of(cls, text: str) -> Plan:
        """Read the plan from an argument."""
        values = json.loads(text)
        return cls(**{**values, "placement": Placement(**values["placement"])})


def main(arguments: Sequence[str]) -> int:
    """Run the program of one instance; return its exit code, of a signal as shells do."""
    plan, command = Plan.of(arguments[0]), list(arguments[1:])
    index = int(os.environ[RANK])
    folder = Path(plan.directory) / folder_name(index)
    try:
        _make_room(folder)
        environment = _environment(plan, index, folder)
        begun = InstanceFile(
            run=plan.run, instance=index, host=socket.gethostname(), pid=0,
            command=tuple(command), begin=clock_now(),
        )  # fmt: skip
        with _bridge(plan, index, environment) as bridge:
            code, pid = _run(command, environment, folder, begun)
            ended = replace(
                begun, pid=pid, end=clock_now(), exit_code=code, graph=_graph_of(folder)
            )
            write_instance(folder, ended)
            if bridge is not None and not code:
                for stopping in STOPPING:
                    signal.signal(stopping, signal.SIG_DFL)
                bridge.end()
    except (PvaError, PoplarError) as error:
        print(f"poprun: instance {index}: {error}", file=sys.stderr)
        return FAULT
    return code


@contextmanager
def _bridge(plan: Plan, index: int, environment: dict[str, str]) -> Iterator[Bridge | None]:
    """Return a bridge to the other instances where MPI started them, in a directory of its own."""
    place = plan.placement
    if place.socket_directory or place.instances == 1 or place.offline:
        yield None
        return
    within = plan.scratch if os.path.isdir(plan.scratch) else None  # poprun removes it
    with TemporaryDirectory(prefix="poprun-", dir=within) as directory:
        placement = replace(place, instance=index, socket_directory=directory)
        environment[VARIABLE] = placement.as_text()
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # until the program is there
        bridge = Bridge(Path(directory), index, place.instances)
        bridge.start()
        yield bridge


def _make_room(folder: Path) -> None:
    """Take away the report and the traces that an earlier run left. Raises PvaError."""
    earlier = folder / INSTANCE_NAME
    if earlier.exists():
        pid = read_instance(earlier).pid
        for trace in folder.glob(f"*_{pid}.pvti"):
            trace.unlink()
        earlier.unlink()
    marked = (folder / ".tilescope-report").exists()
    report_directory.claim(folder, registry.PARTS, alone=marked).release()
    folder.mkdir(exist_ok=True)


def _environment(plan: Plan, index: int, folder: Path) -> dict[str, str]:
    """Return the environment of the program: its place, and directories that are its own."""
    instance_variables = {
        int(key): values for key, values in plan.own_variables.items()
    }  # JSON has texts
    inherited = {name: text for name, text in os.environ.items() if not _is_of_mpi(name)}
    environment = {**inherited, **plan.variables, **instance_variables.get(index, {})}
    report = {"autoReport.all": "true", **options(environment, ENGINE)}
    if plan.placement.offline:
        report["simulator.compileOnly"] = "true"
    trace = {"enable": "true", **options(environment, TRACE)}
    return {
        "PYTHONUNBUFFERED": "1",  # its lines come when it writes them
        **environment,
        VARIABLE: replace(plan.placement, instance=index).as_text(),
        ENGINE: json.dumps({**report, "autoReport.directory": str(folder)}),
        TRACE: json.dumps({**trace, "directory": str(folder)}),
    }


def _is_of_mpi(name: str) -> bool:
    """Return whether MPI told a variable to its process: the program would join with its rank.

    Two processes of one rank write into each other's memory. What says where the instance is stays.
    """
    return name.startswith(MPI_VARIABLES) and not name.startswith(PLACE_VARIABLES)


def options(environment: Mapping[str, str], variable: str) -> dict[str, Any]:
    """Read a variable that holds a JSON object; raises PvaError."""
    text = environment.get(variable, "")
    try:
        values = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        raise PvaError(variable, "no JSON object", "an object of options, or nothing")
    return values


def _run(
    command: Sequence[str], environment: Mapping[str, str], folder: Path, begun: InstanceFile
) -> tuple[int, int]:
    """Run a program until it ends, signals handed on; return its exit code and its process."""
    pending: list[int] = []
    for stopping in STOPPING:
        signal.signal(stopping, lambda caught, _: pending.append(caught))
    die_with(os.getppid(), signal.SIGTERM)
    parent = os.getpid()
    program = shutil.which(command[0], path=environment.get("PATH"))
    if program is None:
        print(f"poprun: {command[0]}: no such program", file=sys.stderr)
        return NO_PROGRAM, 0
    with subprocess.Popen(
        [program, *command[1:]], env=environment,
        preexec_fn=lambda: die_with(parent, signal.SIGKILL),
    ) as process:  # fmt: skip
        for stopping in STOPPING:
            signal.signal(stopping, lambda caught, _: process.send_signal(caught))
        for number in pending:
            process.send_signal(number)
        write_instance(folder, replace(begun, pid=process.pid))
        while (code := process.poll()) is None:
            with suppress(subprocess.TimeoutExpired):
                process.wait(TURN)
    return (_SIGNAL_BASE - code if code < 0 else code), process.pid


def _graph_of(folder: Path) -> str:
    """Return the hash of the graph that the last report is of; empty when there is none."""
    reports = [place for place in (folder, *folder.iterdir()) if place.is_dir() and
               registry.directory_files(place).get("profile")]  # fmt: skip
    if not reports:
        return ""
    last = max(
        reports, key=lambda place: registry.directory_files(place)["profile"].stat().st_mtime
    )
    with suppress(PvaError):  # a damaged report is named where it is read
        return graph_hash(registry.read(last))
    return ""


def die_with(parent: int, number: int) -> None:
    """Request a signal for this process when its parent dies, also when that is killed (Linux)."""
    import ctypes

    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, number)
    if os.getppid() != parent:  # it is dead already
        os.kill(os.getpid(), number)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
