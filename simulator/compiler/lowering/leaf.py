"""The programs without others below them: each in the machine's steps."""

from __future__ import annotations

from simulator.compiler.executable import LoweredProgram
from simulator.compiler.host_work import with_host_work
from simulator.compiler.lowering.copy import lower_copy
from simulator.compiler.lowering.cross import lower_cross_replica
from simulator.compiler.lowering.packet_gathering import lower_gathered
from simulator.compiler.lowering.state import Building, Part, consensus, sync, with_access
from simulator.compiler.lowering.stream import lower_remote, lower_stream, transfer_limit
from simulator.graph.host.streams import RemoteBuffer, Stream
from simulator.graph.program import (
    Abort,
    AbortOnCondition,
    AssumeEqualAcrossReplicas,
    Copy,
    CrossReplicaCopy,
    ErrorProgram,
    PrintTensor,
    Program,
    Sync,
    SyncType,
    WriteUndef,
)
from simulator.graph.tensors.tensor import Tensor


def lower_leaf(building: Building, node: Program) -> list[Part]:
    """Lower one program that executes no compute set; the rows that it becomes, in order."""
    match node:
        case Copy():
            return _lower_copy(building, node)
        case CrossReplicaCopy():
            return lower_cross_replica(building, node)
        case PrintTensor():
            return lower_stream(building, node.name, node.tensor, False)
        case ErrorProgram():
            return lower_stream(building, node.name or "ErrorProgram", node.tensor, False)
        case AssumeEqualAcrossReplicas():
            return []
        case Abort():
            return [sync("External")]
        case AbortOnCondition():
            return consensus(building, node.name, node.predicate)
        case WriteUndef():
            size = node.tensor.dtype.size
            begins, lengths = node.tensor.begins * size, node.tensor.lengths * size
            ids, kills = building.whole(building.variables_at(begins), lengths)
            undefined = Part(LoweredProgram("WriteUndef", node.name))
            return [with_access(undefined, [], [ids], kills)]
        case Sync():
            return [sync("Internal" if node.type is SyncType.INTERNAL else "External")]
        case _:
            raise TypeError(f"no lowering for {type(node).__name__}")


def _lower_copy(building: Building, node: Copy) -> list[Part]:
    match node.src, node.dst:
        case Tensor() as source, Tensor() as destination:
            name = node.name or f"{destination.describe()}/Copy"
            return lower_copy(building, name, source, destination)
        case (Stream() as stream, Tensor() as tensor) | (Tensor() as tensor, Stream() as stream):
            name, limit = node.name or stream.handle, transfer_limit(stream, building.graph.target)
            first, costs = len(building.host_exchanges), building.host_exchanges
            parts = lower_gathered(building, name, tensor, stream.direction == "in", limit)
            target, prefetch = building.graph.target, building.prefetch
            costs[first:] = [with_host_work(target, stream, prefetch, c) for c in costs[first:]]
            return parts
        case RemoteBuffer() as buffer, Tensor() as tensor:
            name = node.name or buffer.handle
            return lower_remote(building, name, buffer, tensor, node.offset, True)
        case Tensor() as tensor, RemoteBuffer() as buffer:
            name = node.name or buffer.handle
            return lower_remote(building, name, buffer, tensor, node.offset, False)
        case _:
            raise TypeError(f"no lowering for a copy from {node.src!r} to {node.dst!r}")
