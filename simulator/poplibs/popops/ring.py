"""A ring of tensors, the newest of which can be had again (popops/CircBuf.hpp)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simulator.codelets.indexing import sequences as vertices
from simulator.graph.arguments import refuse_in
from simulator.graph.errors import poplibs_error
from simulator.graph.geometry.intervals import Interval
from simulator.graph.graph import Graph
from simulator.graph.program import Execute
from simulator.graph.program import Sequence as Program
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import UNSIGNED_INT, Type
from simulator.graph.vertices.vertex import Codelet, VertexGroup, cut_field
from simulator.poplibs.popops.regions import debug_name
from simulator.poplibs.popops.slicing.dynamic_slice import (
    dynamicSlice,
    dynamicUpdate,
    getSliceMapping,
)
from simulator.poplibs.popops.slicing.sliceable import add_sliceable


@refuse_in
class CircBuf:
    """A ring of `size` tensors of one shape, in which a new one takes the place of the oldest."""

    def __init__(
        self, graph: Graph, dataType: Type, size: int, shape: Sequence[int], debugContext: str = ""
    ) -> None:
        name = debug_name(debugContext, "CircBuf")
        if size < 1:
            raise poplibs_error(f"{name}: size is {size}; at least 1 is needed")
        self._graph, self._size, self._shape = graph, size, tuple(shape)
        self._rows = add_sliceable(graph, dataType, (size, *shape), [0], name)
        self._index = graph.addVariable(UNSIGNED_INT, [1], debug_name(debugContext, "CircBufIndex"))
        graph.setInitialValue(self._index, 0)
        graph.setTileMapping(self._index, 0)

    def prev(self, i: int, seq: Program, debugContext: str = "") -> Tensor:
        """Return the tensor that was added i tensors before the newest."""
        name = debug_name(debugContext, "CircBufPrev")
        if not 0 <= i < self._size:
            raise poplibs_error(f"{name}: i is {i}; 0 to {self._size - 1} is needed")
        place = self._graph.addVariable(UNSIGNED_INT, [1], debug_name(debugContext, "Offset"))
        self._graph.setTileMapping(place, 0)
        codelet = vertices.offset_codelet(self._size, self._size - i)
        fields = {"indexIn": self._index, "indexOut": place}
        self._step(codelet, vertices.ring_offset(np.zeros(1, np.int64)), fields, seq, name)
        row = dynamicSlice(self._graph, self._rows, place, [0], [1], seq, debugContext)
        return row.squeeze([0])

    def add(self, t: Tensor, seq: Program, debugContext: str = "") -> None:
        """Put a tensor in the place of the oldest."""
        name = debug_name(debugContext, "CircBufSet")
        if t.shape != self._shape or t.dtype != self._rows.dtype:
            needed = f"{self._rows.dtype}{list(self._shape)}"
            raise poplibs_error(f"{name}: {t!r}; {needed} is needed")
        codelet = vertices.increment_codelet(self._size)
        cycles = vertices.increment_index(np.zeros(1, np.int64))
        self._step(codelet, cycles, {"index": self._index}, seq, name)
        row = t.expand([0])
        dynamicUpdate(self._graph, self._rows, row, self._index, [0], [1], seq, debugContext)

    def _step(
        self,
        codelet: Codelet,
        cycles: np.ndarray[tuple[int], np.dtype[np.int64]],
        tensors: dict[str, Tensor],
        seq: Program,
        name: str,
    ) -> None:
        """Add one vertex beside the index."""
        ways = {"index": "inout", "indexIn": "input", "indexOut": "output"}
        fields = {
            key: cut_field(key, ways[key], tensor, [0], [1])  # type: ignore[arg-type]
            for key, tensor in tensors.items()
        }
        compute_set = self._graph.addComputeSet(name)
        tile = np.zeros(1, np.int64)
        self._graph.add_vertices(VertexGroup(compute_set.id, codelet, tile, fields, {}, cycles))
        seq.add(Execute(compute_set))

    def getIndex(self) -> Tensor:
        """Return the place of the newest tensor."""
        return self._index

    def size(self) -> int:
        """Count the tensors that the ring holds."""
        return self._size

    def getTileMapping(self) -> list[list[Interval]]:
        """List, for each tile, the parts of a tensor of the ring that it holds."""
        return getSliceMapping(self._graph, self._rows, [0], [1])
