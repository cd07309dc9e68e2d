"""Inputs and anchors that go by tiles of their own, while the others compute.

What comes from the host waits on I/O tiles until a batch begins, and what goes there leaves from
them: the host loads batch k + 1 and takes what batch k - 1 has made while batch k is computed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from simulator.graph.graph import Graph
from simulator.graph.program import Copy
from simulator.graph.tensors.tensor import Tensor
from simulator.popart.errors import popart_exception
from simulator.popart.scheduling.placement import graphs_of
from simulator.popart.settings.dataflow import DataFlow
from simulator.popart.settings.input_settings import ExchangeStrategy, InputSettings, TileSet
from simulator.poplibs import gcl, poputil
from simulator.runtime.arrangement import in_memory_order

PLAIN = InputSettings()


@dataclass(frozen=True, slots=True)
class Ways:
    """The tiles that compute and the I/O tiles (None without), and how inputs and anchors go."""

    compute: Graph
    aside: Graph | None = None
    inputs: Mapping[str, InputSettings] = field(default_factory=dict)
    anchors: Mapping[str, InputSettings] = field(default_factory=dict)

    @property
    def chosen(self) -> list[InputSettings]:
        """List those that do not come or go just in time by the tiles that compute."""
        every = (*self.inputs.values(), *self.anchors.values())
        return [one for one in every if is_apart(one)]

    @property
    def overlap(self) -> bool:
        """Return whether some are exchanged while others compute."""
        return any(is_overlapped(one) for one in self.chosen)

    @property
    def over_loops(self) -> bool:
        """Return whether some are exchanged so over both loops."""
        strategies = [one.exchangeStrategy() for one in self.chosen]
        return ExchangeStrategy.OverlapLoops in strategies

    def waiting(self, tensor: Tensor, settings: InputSettings, ipu: int, name: str) -> Tensor:
        """Add the tensor in which data wait, in the order in which they lie on their tiles."""
        graph = self.aside if settings.tileSet() is TileSet.IO else self.compute
        assert graph is not None
        io_graph = graphs_of(graph)[ipu]
        buffer = io_graph.addVariable(tensor.dtype, [tensor.numElements()], name)
        poputil.mapTensorLinearly(io_graph, buffer)
        return buffer


def is_overlapped(settings: InputSettings) -> bool:
    """Return whether data are exchanged while others compute."""
    return settings.exchangeStrategy() is not ExchangeStrategy.JustInTime


def is_apart(settings: InputSettings) -> bool:
    """Return whether data wait in a tensor of their own."""
    return is_overlapped(settings) or settings.tileSet() is TileSet.IO


def handed(source: Tensor, destination: Tensor, name: str) -> Copy:
    """Copy between a tensor and the one in which its data wait."""
    return Copy(in_memory_order(source), in_memory_order(destination), name=name)


def ways_of(
    graph: Graph, count: int, inputs: Mapping[str, InputSettings], flow: DataFlow, subject: str
) -> Ways:
    """Set `count` tiles of each IPU apart; raises popart_exception for what cannot be."""
    anchors = {name: flow.art(name).settings for name in flow.anchors()}
    wrong = [n for n, one in {**inputs, **anchors}.items() if one.tileSet() is TileSet.IO]
    if not count:
        if wrong:
            raise popart_exception(
                f"{subject}: {wrong[0]!r} goes by I/O tiles, and SessionOptions.numIOTiles is 0"
            )
        return Ways(graph, None, inputs, anchors)
    tiles_per_ipu = graph.getTarget().getTilesPerIPU()
    if count % 2 or count >= tiles_per_ipu:
        raise popart_exception(
            f"{subject}: numIOTiles is {count}; an even number below {tiles_per_ipu}, "
            "the tiles of an IPU, is needed"
        )
    aside = graph.createVirtualGraph(
        gcl.perIPUTiles(graph, 0, count, tilePairs=tiles_per_ipu % 2 == 0)
    )
    compute_tiles = gcl.perIPUTiles(
        graph, count, tiles_per_ipu - count, tilePairs=tiles_per_ipu % 2 == 0
    )
    return Ways(graph.createVirtualGraph(compute_tiles), aside, inputs, anchors)
