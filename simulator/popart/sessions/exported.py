"""A session in a PopEF file, with the numbers, handles and order of blobs of PopART.

Sources: graphcore/popart, willow/src/popx/popefserializerimpl.cpp (anchors, flow) and
willow/include/popart/popx/popprograms.hpp (numbers).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pva.errors import PvaError
from simulator.executable import Executable
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import UNSIGNED_INT, Array
from simulator.popart import programs as parts
from simulator.popart.backpropagation.updates import OPTIMIZER_FROM_HOST
from simulator.popart.programs import Programs
from simulator.popart.representation.tensor_info import TensorInfo, to_device
from simulator.popef.declaration import DataType, TensorType
from simulator.popef.engine_model import write_tensors
from simulator.popef.model import Model
from simulator.popef.program import (
    content_of,
    executable_info,
    options_of,
    portable,
    set_machine,
    tensor_info,
    write_executable,
)
from simulator.popef.structures import Anchor, Metadata, ProgramFlow
from simulator.popef.structures import TensorInfo as PopefInfo
from simulator.popef.writer import FileWriter

OPAQUE = "popart"
SEED, RNG_STATE, CYCLES = "randomSeed___fromHost", "rngStateTensor", "cycleCountTensor"
# Name of a program here -> its number and name in PopART.
PROGRAMS = {
    parts.WEIGHTS_FROM_HOST: (0, "WeightsFromHost"),
    OPTIMIZER_FROM_HOST: (1, "OptimizerFromHost"),
    parts.SEED_FROM_HOST: (2, "RandomSeedFromHost"),
    parts.RNG_FROM_HOST: (4, "RngStateFromHost"),
    parts.RUN: (5, "Program"),
    parts.RNG_TO_HOST: (6, "RngStateToHost"),
    parts.WEIGHTS_TO_HOST: (7, "WeightsToHost"),
    parts.CYCLES_TO_HOST: (8, "CycleCountTensorToHost"),
}
LOAD = (parts.WEIGHTS_FROM_HOST, OPTIMIZER_FROM_HOST, parts.SEED_FROM_HOST, parts.RNG_FROM_HOST)
SAVE = (parts.WEIGHTS_TO_HOST, parts.RNG_TO_HOST, parts.CYCLES_TO_HOST)


@dataclass(frozen=True, slots=True)
class Exported:
    """What of a session goes into a file beside its executable.

    `optimizer` are the streams of its numbers, `kept` what it keeps: label -> key, weight, type and
    shape. `states` says whether those of its generators are known.
    """

    infos: Mapping[str, TensorInfo]
    programs: Programs
    optimizer: Mapping[str, str]
    kept: Mapping[str, Sequence[Any]]
    training: bool
    replicas: int
    processes: int
    iterations: int
    in_flight: int
    states: bool = False


def host_order(programs: Programs) -> dict[str, Tensor]:
    """Return the streams whose elements go in the order of memory, and the tensor of each."""
    tensors = {}
    for name, tensor in programs.weights.items():
        for handles in (programs.weights_in, programs.weights_out):
            if name in handles:
                tensors[handles[name]] = tensor
    for name, tensor in programs.arranged.items():
        for handles in (programs.inputs, programs.anchors):
            if name in handles:
                tensors[handles[name]] = tensor
    return tensors


def write_session(
    writer: FileWriter, name: str, executable: Executable, exported: Exported, compress: bool
) -> None:
    """Write metadata, executable and what a session needs to go on with it; raises PoplarError."""
    portable_executable = portable(executable, host_order(exported.programs))
    streams: dict[str, str] = {}
    metadata = _metadata(name, executable, exported, streams)
    numbers = [PROGRAMS[program][0] for program in exported.programs.programs]
    content = content_of(portable_executable)
    writer.write(metadata)
    info = executable_info(name, portable_executable)
    write_executable(writer, info, content, numbers, streams, compress)
    writer.createOpaqueBlob(OPAQUE, name).write(json.dumps(_state(exported)).encode())


def write_weights(
    writer: FileWriter, weights: Mapping[str, Array | None], infos: Mapping[str, TensorInfo]
) -> None:
    """Write the values of weights, as the device has them."""
    tensors = {
        name: to_device(values, infos[name], f"weight {name!r}").reshape(infos[name].dims)
        for name, values in weights.items()
        if values is not None
    }
    write_tensors(writer, tensors)


def _metadata(
    name: str, executable: Executable, exported: Exported, streams: dict[str, str]
) -> Metadata:
    """Return how to run a session; `streams` gets the streams of its handles."""
    programs = exported.programs.programs
    told = LOAD if exported.states else LOAD[:-1]  # generators follow from the seed else
    flow = ProgramFlow(
        load=[PROGRAMS[p][0] for p in told if p in programs],
        main=[PROGRAMS[parts.RUN][0]],
        save=[
            PROGRAMS[p][0] for p in SAVE if p in programs and (exported.training or p != SAVE[0])
        ],
    )
    metadata = Metadata(
        executable=name,
        replicationFactor=exported.replicas,
        numProcesses=exported.processes,
        isInference=not exported.training,
        deviceIterations=exported.iterations,
        seedHandle=f"h2d_{SEED}" if parts.SEED_FROM_HOST in programs else "",
        anchors=list(_anchors(exported, streams)),
        engineOptions=options_of(executable.options),
        programFlow=flow,
        programsMap=dict(PROGRAMS[program] for program in programs),
    )
    set_machine(metadata, executable.graph.device_target)
    return metadata


def _anchors(exported: Exported, streams: dict[str, str]) -> Iterable[Anchor]:
    """List the anchors in PopART's order: weights, optimiser, data, anchors, seed, states, cycles.

    A weight is the same for all replicas on its way to the device.
    """
    programs, infos, replicas = exported.programs, exported.infos, exported.replicas

    def anchor(
        tensor: str, info: PopefInfo, stream: str, program: str, *, out: bool, copies: int
    ) -> Anchor:
        handle = f"{'d2h' if out else 'h2d'}_{tensor}"
        if handle in streams:
            handle = f"anchor_{handle}"  # a weight that is an anchor, too
        streams[handle] = stream
        if copies > 1:
            info = PopefInfo(shape=[copies, *info.shape()], dataType=info.dataType())
        return Anchor(
            name=tensor, handle=handle, tensorInfo=info, isPerReplica=copies > 1,
            type=TensorType.OUTPUT if out else TensorType.INPUT, programs=[PROGRAMS[program][0]],
        )  # fmt: skip

    def device_info(tensor: str) -> PopefInfo:
        return tensor_info(infos[tensor].dims, infos[tensor].device)

    down, up = parts.WEIGHTS_FROM_HOST, parts.WEIGHTS_TO_HOST
    for tensor in programs.weights:
        info = device_info(tensor)
        if tensor in programs.weights_in:
            yield anchor(tensor, info, programs.weights_in[tensor], down, out=False, copies=1)
            yield anchor(tensor, info, programs.weights_out[tensor], up, out=True, copies=replicas)
        else:
            yield Anchor(name=tensor, tensorInfo=info)
    number = PopefInfo(dataType=DataType.F32)
    for tensor, stream in exported.optimizer.items():
        yield anchor(tensor, number, stream, OPTIMIZER_FROM_HOST, out=False, copies=1)
    for handles, out in ((programs.inputs, False), (programs.anchors, True)):
        for tensor, stream in handles.items():
            info = device_info(tensor)
            yield anchor(tensor, info, stream, parts.RUN, out=out, copies=replicas)
    words = tensor_info([2], UNSIGNED_INT)
    if (seed := parts.SEED_FROM_HOST) in programs.programs:
        yield anchor(SEED, words, seed, seed, out=False, copies=1)
    states = tensor_info([programs.words], UNSIGNED_INT)
    for state, out in ((parts.RNG_FROM_HOST, False), (parts.RNG_TO_HOST, True)):
        if state in programs.programs:
            yield anchor(RNG_STATE, states, state, state, out=out, copies=replicas)
    if (cycles := parts.CYCLES_TO_HOST) in programs.programs:
        count = PopefInfo(dataType=DataType.U64)
        for name in programs.counts:
            shown, handle = f"{CYCLES}/{name}" if name else CYCLES, parts.cycles_handle(name)
            yield anchor(shown, count, handle, cycles, out=True, copies=replicas)


def _state(exported: Exported) -> dict[str, object]:
    """Return what a session needs to go on with an executable, as values of JSON."""
    programs = exported.programs
    return {
        "programs": list(programs.programs),
        "inputs": programs.inputs,
        "anchors": programs.anchors,
        "weights": list(programs.weights),
        "weightsIn": programs.weights_in,
        "weightsOut": programs.weights_out,
        "arranged": list(programs.arranged),
        "words": programs.words,
        "counts": list(programs.counts),
        "optimizer": dict(exported.optimizer),
        "kept": {label: list(row) for label, row in exported.kept.items()},
        "inFlight": exported.in_flight,
    }


def state_of(model: Model) -> dict[str, Any]:
    """Read what a session wrote; raises PvaError where there is none."""
    path = model.executable.blob.source.path
    blobs = [blob for blob in model.opaqueBlobs if blob.name == OPAQUE]
    if len(blobs) != 1:
        raise PvaError(
            path, f"{len(blobs)} blobs of {OPAQUE}", "one is needed: no session wrote it"
        )
    try:
        state = json.loads(blobs[0].data())
    except (ValueError, RecursionError):
        state = None
    if not isinstance(state, dict):
        raise blobs[0].blob.damaged("it is no state of a session")
    return state


def programs_of(executable: Executable, state: Mapping[str, Any]) -> Programs:
    """Return the programs of a session, whose executable was read; raises PvaError."""
    order = executable.host_order
    try:
        handles = {**state["inputs"], **state["anchors"]}
        weights = {
            n: order[state["weightsIn"][n]] for n in state["weights"] if n in state["weightsIn"]
        }
        return Programs(
            programs=dict(zip(state["programs"], executable.programs, strict=True)),
            inputs=dict(state["inputs"]),
            anchors=dict(state["anchors"]),
            weights_in=dict(state["weightsIn"]),
            weights_out=dict(state["weightsOut"]),
            weights=weights,
            arranged={name: order[handles[name]] for name in state["arranged"]},
            words=int(state["words"]),
            counts=tuple(state.get("counts", ("",))),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise PvaError(
            "PopEF file", f"its state of a session: {error}", "compile it anew"
        ) from None
