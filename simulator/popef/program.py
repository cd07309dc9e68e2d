"""An executable as a blob: what is known of it without reading it, and its bytes."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from simulator.executable import Executable
from simulator.graph.machine.constants import TargetType
from simulator.graph.machine.target import Target
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import Type
from simulator.popef.structures import (
    ExecutableInfo,
    Metadata,
    Option,
    TensorInfo,
    data_type,
)
from simulator.popef.writer import FileWriter

# Options that say where a report goes, which is no business of whoever runs the file.
REPORT_OPTIONS = ("autoReport.", "debug.graphReportDestination")


def portable(executable: Executable, host_order: Mapping[str, Tensor] | None = None) -> Executable:
    """Return an executable as files keep it: without the report's options, its graph its own."""
    options = {n: v for n, v in executable.options.items() if not n.startswith(REPORT_OPTIONS)}
    order = executable.host_order if host_order is None else host_order
    return replace(
        executable,
        options=options,
        host_order={n: replace(t, graph=executable.graph) for n, t in order.items()},
    )


def content_of(executable: Executable) -> bytes:
    """Return the bytes of an executable; raises PoplarError for one that cannot be kept."""
    content = io.BytesIO()
    executable.serialize(content)
    return content.getvalue()


def name_of(digest: str) -> str:
    """Return the name of an executable by the hash of what it is made of, a decimal number."""
    return str(int(digest[:16], 16))


def write_executable(
    writer: FileWriter,
    info: ExecutableInfo,
    content: bytes,
    programs: Sequence[int],
    streams: Mapping[str, str],
    compress: bool = False,
) -> None:
    """Write an executable.

    `programs` are the metadata's numbers of its programs, `streams` the handles that differ.
    """
    info.setPrograms(programs)
    info.setStreams([Option(name=handle, value=stream) for handle, stream in streams.items()])
    writer.createExecutable(info, compress).write(content)


def executable_info(name: str, executable: Executable) -> ExecutableInfo:
    """Return machine and memory of an executable."""
    target, memory = executable.graph.device_target, executable.compiled.memory.by_tile
    info = ExecutableInfo(
        name=name,
        machine=target.name,
        numIpus=target.num_ipus,
        tilesPerIpu=target.tiles_per_ipu,
        bytesPerTile=target.bytes_per_tile,
    )
    needed = memory.get("total_including_gaps")
    if needed is not None and target.target_type is not TargetType.CPU and len(needed):
        used = np.flatnonzero(needed) % target.tiles_per_ipu
        info.setBytesNeeded(int(needed.max()))
        info.setTilesUsed(int(used.max(initial=-1)) + 1)
    return info


def tensor_info(shape: Sequence[int], dtype: Type) -> TensorInfo:
    """Return shape and type of a tensor of the device."""
    return TensorInfo(shape=tuple(shape), dataType=data_type(np.dtype(dtype.numpy)))


def options_of(options: Mapping[str, Any]) -> list[Option]:
    """Return options with their values as texts, without those of reports."""
    from simulator import options as engine_options

    program_options = {n: v for n, v in options.items() if not n.startswith(REPORT_OPTIONS)}
    texts = engine_options.as_texts(program_options)
    return [Option(name=name, value=text) for name, text in texts.items()]


def set_machine(metadata: Metadata, target: Target) -> None:
    """Write the IPUs that a program is for into its metadata."""
    digits = target.architecture.removeprefix("ipu")
    metadata.setNumIpus(target.num_ipus)
    metadata.setIpuVersion(int(digits) if digits.isdigit() else 0)
