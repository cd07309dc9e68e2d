"""Programs of Poplar in a PopEF file: their streams are its anchors."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from os import PathLike

import numpy as np

from simulator.executable import Executable
from simulator.graph.errors import PoplarError
from simulator.graph.host.streams import ReplicatedStreamMode, Stream
from simulator.graph.program import Copy, Program
from simulator.graph.types import Array
from simulator.graph.validation.programs import all_nodes
from simulator.popef.declaration import TensorType
from simulator.popef.program import (
    content_of,
    executable_info,
    name_of,
    options_of,
    portable,
    set_machine,
    tensor_info,
    write_executable,
)
from simulator.popef.structures import Anchor, Metadata, ProgramFlow, TensorDataInfo, TensorInfo
from simulator.popef.writer import FileWriter

FLOW: Mapping[str, Iterable[int]] = {"main": [0]}


def save_executable(
    executable: Executable,
    path: str | PathLike[str],
    flow: Mapping[str, Iterable[int]] | None = None,
) -> None:
    """Write metadata and executable; raises PoplarError for a flow that it does not have."""
    steps = _checked_flow(executable, flow)
    with FileWriter(path) as writer:
        write_program(writer, executable, steps)


def write_program(
    writer: FileWriter, executable: Executable, flow: Mapping[str, list[int]]
) -> None:
    """Write metadata and executable; raises PoplarError for one that cannot be kept."""
    portable_program, numbers = portable(executable), list(range(len(executable.programs)))
    graph = executable.graph
    metadata = Metadata(
        replicationFactor=graph.replication,
        anchors=_anchors(executable),
        engineOptions=options_of(executable.options),
        programFlow=ProgramFlow(**flow),
        programsMap={n: getattr(executable.programs[n], "name", "") for n in numbers},
    )
    set_machine(metadata, graph.device_target)
    content = content_of(portable_program)
    name = name_of(hashlib.sha256(content).hexdigest())
    metadata.setExecutable(name)
    writer.write(metadata)
    write_executable(writer, executable_info(name, portable_program), content, numbers, {})


def _checked_flow(
    executable: Executable, flow: Mapping[str, Iterable[int]] | None
) -> dict[str, list[int]]:
    numbers = set(range(len(executable.programs)))
    steps = {step: list(programs) for step, programs in (flow or FLOW).items()}
    wrong = sorted({n for programs in steps.values() for n in programs} - numbers)
    if wrong or set(steps) - {"load", "main", "save"}:
        fault = f"program {wrong[0]}" if wrong else f"the steps {', '.join(steps)}"
        raise PoplarError(
            f"saveExecutable: the flow has {fault}; load, main and save of programs 0 to "
            f"{len(numbers) - 1} are needed"
        )
    return steps


def save_tensors(values: Mapping[str, Array], path: str | PathLike[str]) -> None:
    """Write the values of tensors by name."""
    with FileWriter(path) as writer:
        write_tensors(writer, values)


def write_tensors(writer: FileWriter, values: Mapping[str, Array]) -> None:
    """Write a blob for each tensor."""
    for name, value in values.items():
        array = np.asarray(value)
        plain = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        info = TensorDataInfo(name=name, tensorInfo=TensorInfo.of(array))
        writer.createTensorData(info).write(plain.reshape(-1))


def _anchors(executable: Executable) -> list[Anchor]:
    """List the streams, each with the programs that copy from it or to it."""
    graph = executable.graph
    moved = [_streams_of(all_nodes(graph, [program])) for program in executable.programs]
    return [
        _anchor(stream, graph.replication, [n for n, ids in enumerate(moved) if stream.id in ids])
        for stream in graph.streams
    ]


def _streams_of(nodes: Iterable[Program]) -> set[int]:
    """Return the streams that programs copy from or to, by their ids."""
    ends = (end for node in nodes if isinstance(node, Copy) for end in (node.src, node.dst))
    return {end.id for end in ends if isinstance(end, Stream)}


def _anchor(stream: Stream, replicas: int, programs: list[int]) -> Anchor:
    broadcast = stream.replicated_mode is ReplicatedStreamMode.BROADCAST
    copies = 1 if broadcast else replicas * stream.replicas
    return Anchor(
        name=stream.handle,
        handle=stream.handle,
        tensorInfo=tensor_info([copies, stream.elements][copies == 1 :], stream.dtype),
        type=TensorType.INPUT if stream.direction == "in" else TensorType.OUTPUT,
        isPerReplica=copies > 1,
        programs=programs,
    )
