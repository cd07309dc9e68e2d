"""The memory of a tile by region and category. All sizes are bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pva import schema
from pva.data.dataset import Dataset
from pva.model.graph import VertexType
from pva.model.show import Shown
from pva.model.views import Item, Items


@dataclass(frozen=True, slots=True, repr=False)
class Gaps(Shown):
    """A size with and without the gaps between variables."""

    _figures = ("includingGaps", "excludingGaps")

    includingGaps: int
    excludingGaps: int


@dataclass(frozen=True, slots=True, repr=False)
class Overlaps(Shown):
    """A size by whether the place is shared with what is not live at the same time."""

    _figures = ("nonOverlapped", "overlapped")

    nonOverlapped: int
    overlapped: int

    @property
    def total(self) -> int:
        """Both."""
        return self.nonOverlapped + self.overlapped


@dataclass(frozen=True, slots=True, repr=False)
class CategoryMemory(Shown):
    """One category of data on a tile, by region."""

    _figures = ("total",)

    nonInterleaved: Overlaps
    interleaved: Overlaps
    overflowed: Overlaps

    @property
    def total(self) -> int:
        """All regions."""
        return self.nonInterleaved.total + self.interleaved.total + self.overflowed.total


class Categories(Shown):
    """The categories of data on a tile as attributes: `category.vertexCode.total`."""

    _figures = tuple(f"{name}={name}.total" for name in ("variable", "constant", "vertexCode"))

    def __init__(self, data: Dataset, tile: int) -> None:
        self._data = data
        self._tile = tile

    def __getattr__(self, name: str) -> CategoryMemory:
        if name not in schema.CATEGORIES:
            raise AttributeError(f"no category {name}; there are {', '.join(schema.CATEGORIES)}")
        sizes = self._data.array("memory_by_category")[
            schema.CATEGORIES.index(name), :, :, self._tile
        ]
        return CategoryMemory(*(Overlaps(*overlaps) for overlaps in sizes.tolist()))

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *schema.CATEGORIES]


class TileVertexType(Item):
    """A vertex type on a tile; the row is that of the type."""

    __slots__ = ("_tile",)
    _figures = ("type=type.name", "codeBytes")

    def __init__(self, data: Dataset, row: int, tile: int) -> None:
        super().__init__(data, row)
        self._tile = tile

    @property
    def type(self) -> VertexType:
        """The vertex type."""
        return VertexType(self._data, self._row)

    @property
    def codeBytes(self) -> int:
        """Code of the type on the tile."""
        return int(self._data.array("memory_by_vertex_type_code")[self._row, self._tile])


class TileMemory(Item):
    """What is in the memory of a tile."""

    __slots__ = ()
    _figures = ("includingGaps=total.includingGaps", "excludingGaps=total.excludingGaps")

    @property
    def total(self) -> Gaps:
        """All regions; including the gaps between them."""
        return self._gaps("total")

    @property
    def nonInterleaved(self) -> Gaps:
        """The non-interleaved region."""
        return self._gaps("non_interleaved")

    @property
    def interleaved(self) -> Gaps:
        """The interleaved region."""
        return self._gaps("interleaved")

    @property
    def overflowed(self) -> Gaps:
        """What does not fit."""
        return self._gaps("overflowed")

    @property
    def alwaysLiveBytes(self) -> int:
        """What is always live."""
        return int(self._data.array("always_live_bytes")[self._row])

    @property
    def notAlwaysLiveBytes(self) -> int:
        """Most that is live at a step beside the always-live."""
        return int(self._data.array("not_always_live_max_bytes")[self._row])

    @property
    def category(self) -> Categories:
        """The same memory by category of data."""
        return Categories(self._data, self._row)

    @property
    def vertices(self) -> Sequence[TileVertexType]:
        """The vertex types that have code or data on the tile."""
        sizes = self._data.array("memory_by_vertex_type_total")[:, self._row]
        data, tile = self._data, self._row
        return Items(np.flatnonzero(sizes).tolist(), lambda row: TileVertexType(data, row, tile))

    def _gaps(self, region: str) -> Gaps:
        excluding = self._value("memory_by_tile", region)
        return Gaps(int(self._value("memory_by_tile", f"{region}_including_gaps")), int(excluding))
