"""The graph of a report: its size, compute sets and vertices."""

from __future__ import annotations

from collections.abc import Sequence

from pva.data.dataset import Dataset
from pva.model.show import Shown
from pva.model.views import Item, Items, Numbers


class Graph(Shown):
    """How large the graph is."""

    _figures = ("numComputeSets", "numVertices", "numVars", "numEdges")

    def __init__(self, data: Dataset) -> None:
        self.numComputeSets = int(data.value("graph", "num_compute_sets"))
        self.numEdges = int(data.value("graph", "num_edges"))
        self.numVars = int(data.value("graph", "num_vars"))
        self.numVertices = int(data.value("graph", "num_vertices"))


class VertexType(Item):
    """A vertex type that is in use."""

    __slots__ = ()
    _figures = ("size",)

    @property
    def name(self) -> str:
        """Codelet with its template arguments."""
        return self._text("vertex_types", "name")

    @property
    def size(self) -> int:
        """State of one vertex in bytes."""
        return int(self._value("vertex_types", "size"))


class VertexInstances(Item):
    """The vertices of one type in one compute set."""

    __slots__ = ()
    _figures = ("type=type.name", "count")

    @property
    def type(self) -> VertexType:
        """Their type."""
        return VertexType(self._data, int(self._value("compute_set_vertices", "vertex_type")))

    @property
    def count(self) -> int:
        """How many there are on all tiles."""
        return int(self._value("compute_set_vertices", "count"))

    @property
    def countByTile(self) -> Numbers:
        """How many there are on each tile; raises NotRecordedError."""
        return Numbers(self._data.array("vertex_count_by_tile")[self._row])


class ComputeSet(Item):
    """Vertices that run together."""

    __slots__ = ()
    _figures = ("vertexTypes=vertices",)

    @property
    def name(self) -> str:
        """Debug name, not always unique."""
        return self._text("compute_sets", "name")

    @property
    def vertices(self) -> Sequence[VertexInstances]:
        """Its vertices by type."""
        data = self._data
        rows = data.rows_where("compute_set_vertices", "compute_set", self._row)
        return Items(rows.tolist(), lambda row: VertexInstances(data, row))

    @property
    def estimatedCyclesByTile(self) -> Numbers:
        """How long each tile takes, in cycles."""
        return Numbers(self._data.array("compute_set_cycles_by_tile")[self._row])


def compute_sets(data: Dataset) -> Items[ComputeSet]:
    """Return the compute sets."""
    return Items(range(data.length("compute_sets")), lambda row: ComputeSet(data, row))
