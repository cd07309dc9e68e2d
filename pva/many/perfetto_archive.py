"""Write the host traces of a run as one archive for Perfetto, each host a machine of its own.

A TAR of a trace for each instance and a manifest that says on which machine each was, and what to
add to the clock of a machine: perfetto.dev/docs/reference/perfetto-manifest, version 1 (Perfetto 58
or later). Packets that name no clock are of BOOTTIME there, of which each machine has its own.
"""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Sequence
from typing import Any, BinaryIO

from pva.analysis.distributed.clocks import Clock, compared
from pva.analysis.distributed.events import host_events
from pva.errors import NotRecordedError
from pva.formats.run_file import folder_name
from pva.formats.traces.registry import write
from pva.many.run import Run

MANIFEST = "perfetto_manifest.json"
SUFFIX, CLOCK = ".pftrace", "BOOTTIME"


def write_archive(run: Run, out: BinaryIO) -> list[str]:
    """Write all traces whose clocks can be compared; return what is left out, a line each.

    Raises NotRecordedError where no trace is left, and MissingPackageError.
    """
    clocks = {clock.instance: clock for clock in compared(host_events(run))}
    placed = [one for one in run.instances
              if one.trace is not None and clocks[one.index].begin_ns is not None]  # fmt: skip
    if not placed:
        raise NotRecordedError(run.name, "no host trace that tells its clock", "set PVTI_OPTIONS")
    files = _files([clocks[one.index] for one in placed])
    clock = {"clock": CLOCK, "file": files[0]["path"]}
    manifest = {"perfetto_manifest": {"version": 1, "trace_time": clock, "files": files}}
    with tarfile.open(fileobj=out, mode="w") as archive:
        _add(archive, MANIFEST, json.dumps(manifest, indent=2).encode())
        for one, entry in zip(placed, files, strict=True):
            stream = io.BytesIO()
            write(one.trace, stream, "perfetto")
            _add(archive, str(entry["path"]), stream.getvalue())
    return [f"instance {one.instance}: {one.problem}" for one in clocks.values() if one.problem]


def _files(clocks: Sequence[Clock]) -> list[dict[str, object]]:
    """Return the entry of each instance: its machine, and once a machine how its clock differs."""
    files: list[dict[str, Any]] = []
    machines: dict[tuple[str, int], str] = {}
    for clock in clocks:
        entry: dict[str, Any] = {"path": f"{folder_name(clock.instance)}{SUFFIX}"}
        key = (clock.host, clock.offset_ns)  # a host whose clock was set is another machine
        if key not in machines:
            alone = f"instance {clock.instance}"
            taken = any(host == clock.host for host, _ in machines)
            name = f"{clock.host}, {alone}" if taken else clock.host
            machines[key] = name if clock.host else alone
            if files:
                relation = {"file": files[0]["path"], "clock": CLOCK}
                entry["clocks"] = {
                    "clock": CLOCK,
                    "sync_to": relation,
                    "offset_ns": clock.offset_ns,
                }
        files.append({**entry, "machine": {"name": machines[key]}})
    return files


def _add(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(data)
    archive.addfile(member, io.BytesIO(data))
