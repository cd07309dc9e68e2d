"""What a PopEF file is: its programs, its anchors, what takes its space, which machines it fits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from simulator.executable_file import versions
from simulator.graph.machine.target import TARGETS
from simulator.popef.declaration import BLOBS, BlobType, TensorType
from simulator.popef.reader import ExecutableReader, FeedReader, Reader, TensorReader


@dataclass(frozen=True, slots=True)
class Fit:
    """How a program that was compiled for one machine would fill the tiles of another.

    `share` is that of the fullest tile; `tiles_missing` and `bytes_missing` are 0 where the machine
    has enough.
    """

    machine: str
    compiled: bool
    bytes_per_tile: int
    share: float
    tiles_missing: int
    bytes_missing: int

    @property
    def fits(self) -> bool:
        """Return whether tiles and memory are enough."""
        return not self.tiles_missing and not self.bytes_missing


def space(reader: Reader) -> list[dict[str, Any]]:
    """Return type, name, bytes in the file and bytes of the content of each blob."""
    named = {
        id(part.blob): (part.name, part.info.uncompressedSize()) for part in reader.executables()
    }
    for tensor in _data(reader):
        count = tensor.info.values().get("numTensors", "1")
        size = tensor.info.tensorInfo().sizeInBytes() * int(count)
        named[id(tensor.blob)] = (tensor.info.name(), size)
    for opaque in reader.opaqueBlobs():
        named[id(opaque.blob)] = (opaque.name, opaque.getAvailableReadSize())
    rows = []
    for blob in reader.blobs:
        name, size = named.get(id(blob), ("", blob.structure_bytes))
        row = {"type": BLOBS[blob.type][0], "name": name, "bytes": blob.end - blob.start}
        rows.append({**row, "content_bytes": size})
    return rows


def anchors(reader: Reader) -> list[dict[str, Any]]:
    """Return a row for each anchor: name, way, type, shape, when it goes, whether the data is here.

    An input of the main program without data is what a request gives.
    """
    data_names = {part.info.name() for part in _data(reader)}
    rows = []
    for metadata in reader.metadata():
        flow = metadata.programFlow()
        steps = {"load": flow.load(), "main": flow.main(), "save": flow.save()}
        for anchor in metadata.anchors():
            info, programs = anchor.tensorInfo(), set(anchor.programs())
            has_data = anchor.type() is TensorType.INPUT and anchor.name() in data_names
            when = ", ".join(step for step, numbers in steps.items() if programs & set(numbers))
            rows.append(
                {
                    "name": anchor.name(),
                    "way": anchor.type().value,
                    "type": info.dataType().value,
                    "shape": info.shape(),
                    "when": when,
                    "data": "in the file" if has_data else "",
                }
            )
    return rows


def fits(executable: ExecutableReader) -> list[Fit]:
    """Return how the tiles of each machine would be filled, that of the program first."""
    info, program_machine = executable.info, str(executable.info.machine())
    needed = int(info.bytesNeeded())
    if not needed:
        return []
    machines = {program_machine: (int(info.tilesPerIpu()), int(info.bytesPerTile()))}
    machines |= {
        name: (target.tiles_per_ipu, target.bytes_per_tile)
        for name, target in TARGETS.items()
        if name not in (program_machine, "tiny")
    }
    return [
        Fit(
            name, name == program_machine, size, needed / max(size, 1),
            max(0, int(info.tilesUsed()) - tiles), max(0, needed - size),
        )
        for name, (tiles, size) in machines.items()
    ]  # fmt: skip


def runs_here(executable: ExecutableReader) -> bool:
    """Return whether the version here made the program."""
    return bool(executable.info.version() == versions())


def _data(reader: Reader) -> list[TensorReader | FeedReader]:
    return [*reader.tensors(), *reader.feeds()]


def kinds(reader: Reader) -> dict[str, int]:
    """Count the blobs of each type."""
    return {BLOBS[kind][0]: sum(b.type is kind for b in reader.blobs) for kind in BlobType}
