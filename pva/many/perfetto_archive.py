"""Write the host traces of a run as one archive for Perfetto, each host a machine of its own.

A TAR of a trace for each instance and a manifest that says on which machine each was, and what to
add to its clock: perfetto.dev/docs/reference/perfetto-manifest, version 1 (Perfetto 58 or later).
"""

from __future__ import annotations

import io
import json
import tarfile
from typing import BinaryIO

from pva.analysis.run_clocks import compared
from pva.analysis.run_events import host_events
from pva.errors import NotRecordedError
from pva.formats.run_file import folder_name
from pva.formats.trace_files import write
from pva.many.run import Run

MANIFEST = "perfetto_manifest.json"
SUFFIX = ".pftrace"


def write_archive(run: Run, out: BinaryIO) -> list[str]:
    """Write all traces whose clocks can be compared; return what is left out, a line each.

    Raises NotRecordedError where no trace is left, and MissingPackageError.
    """
    clocks = {clock.instance: clock for clock in compared(host_events(run))}
    placed = [one for one in run.instances
              if one.trace is not None and clocks[one.index].begin_ns is not None]  # fmt: skip
    if not placed:
        raise NotRecordedError(run.name, "no host trace that tells its clock", "set PVTI_OPTIONS")
    files = [
        {
            "path": f"{folder_name(one.index)}{SUFFIX}",
            "machine": {"name": one.host or f"instance {one.index}"},
            "clocks": {"offset_ns": clocks[one.index].offset_ns},
        }
        for one in placed
    ]
    manifest = {"perfetto_manifest": {"version": 1, "files": files}}
    with tarfile.open(fileobj=out, mode="w") as archive:
        _add(archive, MANIFEST, json.dumps(manifest, indent=2).encode())
        for one, entry in zip(placed, files, strict=True):
            stream = io.BytesIO()
            write(one.trace, stream, "perfetto")
            _add(archive, str(entry["path"]), stream.getvalue())
    return [f"instance {one.instance}: {one.problem}" for one in clocks.values() if one.problem]


def _add(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(data)
    archive.addfile(member, io.BytesIO(data))
