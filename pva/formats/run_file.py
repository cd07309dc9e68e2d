"""`run.json` and `instance.json`: what a run of several instances writes about itself.

    run.json                 the whole run: written by the process that starts the instances
    instance_0003/           one instance: its report, its host trace
        instance.json        and what it says about itself: no two instances write one file

Both carry the identity of the run, so that what an earlier run left in a directory is told apart.
"""

from __future__ import annotations

import socket
import time
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

from pva.errors import DamagedFileError, NewerVersionError, NotFoundError, PvaError
from pva.formats.files import replaced

NAME, INSTANCE_NAME = "run.json", "instance.json"
FORMAT_VERSION = 1
SIZE_LIMIT = 16 << 20  # bytes
_FOLDER = "instance_{:04d}"


def folder_name(instance: int) -> str:
    """Return the name of the directory of an instance, as in `instance_0003`."""
    return _FOLDER.format(instance)


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """One moment on both clocks of a host: the monotonic one, of its traces, and the wall clock."""

    clock_ns: int
    wall_ns: int


def clock_now() -> Clock:
    """Read both clocks."""
    return Clock(clock_ns=time.monotonic_ns(), wall_ns=time.time_ns())


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """How the work is divided: instances over hosts, replicas over instances."""

    hosts: tuple[str, ...] = ()
    instances: int = 1
    replicas: int = 1
    ipus_per_replica: int = 1
    ilds: int = 1

    @property
    def local_replicas(self) -> int:
        """Return the replicas of each instance."""
        return self.replicas // self.instances


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceFile:
    """One instance: where, which process, when. Without `end` it runs, or was killed."""

    run: str
    instance: int
    host: str
    pid: int
    command: tuple[str, ...]
    begin: Clock
    end: Clock | None = None
    exit_code: int | None = None
    graph: str = ""  # the hash of the graph that it compiled, of its last report
    format: int = FORMAT_VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFile:
    """One run: its topology, and all that its instances said."""

    run: str
    command: tuple[str, ...]
    topology: Topology
    launcher: str  # mpi or processes
    begin: Clock
    host: str = field(default_factory=socket.gethostname)
    pid: int = 0
    end: Clock | None = None
    exit_code: int | None = None
    instances: tuple[InstanceFile, ...] = ()
    format: int = FORMAT_VERSION


_File = TypeVar("_File", RunFile, InstanceFile)


def write_run(directory: Path, run: RunFile) -> None:
    """Write `run.json`; raises PvaError, also where one is there that is not of a run."""
    _write(directory / NAME, run, "the file of a run")


def write_instance(directory: Path, instance: InstanceFile) -> None:
    """Write `instance.json` into the directory of an instance; raises PvaError as write_run."""
    _write(directory / INSTANCE_NAME, instance, "the file of an instance")


def read_run(path: Path) -> RunFile:
    """Read a `run.json`; raises PvaError."""
    return _read(path, RunFile)


def read_instance(path: Path) -> InstanceFile:
    """Read an `instance.json`; raises PvaError."""
    return _read(path, InstanceFile)


def _write(path: Path, value: _File, subject: str) -> None:
    try:
        _read(path, type(value))
    except NotFoundError:
        pass
    except DamagedFileError:
        remedy = "move it away, or give another directory"
        raise PvaError(path, "not written by tilescope", remedy) from None
    import orjson

    replaced(path, orjson.dumps(asdict(value), option=orjson.OPT_INDENT_2) + b"\n", subject)


def _read(path: Path, kind: type[_File]) -> _File:
    try:
        with path.open("rb") as stream:
            data = stream.read(SIZE_LIMIT + 1)
    except FileNotFoundError:
        raise NotFoundError(path, "no such file", f"the {path.name} of a run") from None
    except OSError as error:
        raise PvaError(path, error.strerror or str(error), "a file that can be read") from None
    if len(data) > SIZE_LIMIT:
        raise DamagedFileError(path, f"more than {SIZE_LIMIT} bytes", f"the {path.name} of a run")
    import msgspec  # takes long: who looks whether this is a run needs the names alone

    try:
        content: dict[str, Any] = msgspec.json.decode(data, type=dict[str, Any])
        version = content.get("format")
        if isinstance(version, int) and version > FORMAT_VERSION:
            remedy = f"this one reads up to {FORMAT_VERSION}"
            raise NewerVersionError(path, f"format {version}", remedy)
        names = {one.name for one in fields(kind)}
        return msgspec.convert({key: content[key] for key in content if key in names}, kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise DamagedFileError(path, str(error), f"the {path.name} of a run") from None
