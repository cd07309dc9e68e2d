"""Streams and a callback that counts, for tests of the host's end of streams."""

from __future__ import annotations

from typing import Any

from value_program import Values

from simulator.graph.graph import Graph
from simulator.graph.host.streams import Stream
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import FLOAT, Type
from simulator.poplibs import poputil
from simulator.runtime.callbacks import Result, StreamCallback
from simulator.runtime.host_streams import HostStreams

IN, OUT = 0, 1


def streams() -> tuple[HostStreams, list[Stream]]:
    graph = Values().graph
    graph.addHostToDeviceFIFO("images", FLOAT, 2)
    graph.addDeviceToHostFIFO("losses", FLOAT, 2)
    return HostStreams(graph.streams), graph.streams


def stream(dtype: Type = FLOAT, elements: int = 2, replicas: int = 1, **options: Any) -> Stream:
    return Stream(0, "s", dtype, elements, "in", replicas=replicas, **options)


class Counter(StreamCallback):
    """Counts up to a limit, and writes down how it is called."""

    def __init__(self, available: int) -> None:
        self.next, self.available, self.calls = 0, available, ""

    def fetch(self, buffer: Any) -> None:
        self.calls += "F"
        self._give(buffer)

    def prefetch(self, buffer: Any) -> StreamCallback.Result:
        if self.next >= self.available:
            self.calls += "n"
            return Result.NotAvailable
        self.calls += "p"
        self._give(buffer)
        return Result.Success

    def complete(self) -> None:
        self.calls += "c"

    def invalidatePrefetched(self) -> None:
        self.calls += "i"

    def _give(self, buffer: Any) -> None:
        buffer[:] = self.next
        self.next += 1


def mapped(graph: Graph, elements: int, dtype: Type = FLOAT, tile: int | None = None) -> Tensor:
    tensor = graph.addVariable(dtype, [elements], f"t{len(graph.variables)}")
    if tile is None:
        poputil.mapTensorLinearly(graph, tensor)
    else:
        graph.setTileMapping(tensor, tile)
    return tensor
