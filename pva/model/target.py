"""The machine of a report, its IPUs and their tiles."""

from __future__ import annotations

import enum
from collections.abc import Sequence

from pva.data.dataset import Dataset
from pva.model.memory import TileMemory
from pva.model.show import Shown
from pva.model.views import Item, Items, Numbers


class TargetType(enum.Enum):
    """Kind of target."""

    Ipu = enum.auto()
    IpuModel = enum.auto()
    Cpu = enum.auto()
    Unknown = enum.auto()


TargetType.__name__, TargetType.__qualname__ = "Type", "Target.Type"  # as libpva shows it
TYPES = {"IPU": TargetType.Ipu, "IPU_MODEL": TargetType.IpuModel, "CPU": TargetType.Cpu}


class Architecture(enum.Enum):
    """Generation of IPU."""

    Ipu1 = enum.auto()
    Ipu2 = enum.auto()
    Ipu21 = enum.auto()
    Unknown = enum.auto()


Architecture.__qualname__ = "IPU.Architecture"
ARCHITECTURES = {"ipu1": Architecture.Ipu1, "ipu2": Architecture.Ipu2, "ipu21": Architecture.Ipu21}


class Target(Shown):
    """The machine that the program was compiled for. Sizes are bytes, the clock is in Hz."""

    _figures = ("type", "architecture", "numIPUs", "numTiles")

    Type = TargetType

    def __init__(self, data: Dataset) -> None:
        self._data = data
        values = {name: column.tolist()[0] for name, column in data.table("target").items()}
        self.type = TYPES.get(str(data.texts("target", "type")[0]), TargetType.Unknown)
        self.architecture = ARCHITECTURES.get(str(values["architecture"]), Architecture.Unknown)
        self.numIPUs = int(values["num_ipus"])
        self.tilesPerIpu = int(values["tiles_per_ipu"])
        self.numTiles = int(values["num_tiles"])
        self.bytesPerTile = int(values["bytes_per_tile"])
        self.bytesPerIPU = int(values["bytes_per_ipu"])
        self.totalMemory = int(values["total_memory"])
        self.clockFrequency = float(values["clock_frequency"])
        self.minSyncDelay = int(values["min_sync_delay"])
        self.numReplicas = max(int(values["num_replicas"]), 1)
        self.ipusPerReplica = self.numIPUs // self.numReplicas
        self.tilesPerReplica = self.numTiles // self.numReplicas
        self.memoryPerReplica = self.totalMemory // self.numReplicas

    @property
    def relativeSyncDelayByTile(self) -> Numbers:
        """Sync delay of each tile of an IPU above `minSyncDelay`, in cycles."""
        return Numbers(self._data.array("relative_sync_delay"))


class Tile(Item):
    """One tile."""

    __slots__ = ()
    _figures = ("bytes=memory.total.includingGaps",)

    @property
    def id(self) -> int:
        """Number of the tile."""
        return self._row

    @property
    def memory(self) -> TileMemory:
        """What is in its memory, which is that of the same tile of each replica."""
        return TileMemory(self._data, self._row % self._data.of_replica("num_tiles"))


class IPU(Item):
    """One IPU."""

    __slots__ = ()
    _figures = ("tiles",)
    Architecture = Architecture

    @property
    def id(self) -> int:
        """Number of the IPU."""
        return self._row

    @property
    def tiles(self) -> Sequence[Tile]:
        """Its tiles."""
        size = int(self._data.value("target", "tiles_per_ipu"))
        return tiles(self._data)[self._row * size : (self._row + 1) * size]


def tiles(data: Dataset) -> Items[Tile]:
    """Return all tiles in the order of the device, replica after replica."""
    return Items(range(int(data.value("target", "num_tiles"))), lambda row: Tile(data, row))


def ipus(data: Dataset) -> Items[IPU]:
    """Return the IPUs of all replicas."""
    return Items(range(int(data.value("target", "num_ipus"))), lambda row: IPU(data, row))
