"""The machine's constants: one frozen table a target.

Marks in the comments, as in the model's source list: [V] recomputed, [S] stated, [I] inferred.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from simulator.graph.errors import PoplarError

if TYPE_CHECKING:
    from simulator.graph.types import Type

Delays = np.ndarray[Any, np.dtype[np.int64]]

MEMORY_ELEMENT_BYTES = 0x4000  # TMEM_ELEMSIZE of the PopLibs codelets [S]
WORKER_CONTEXTS = 6  # CTXT_WORKERS of the PopLibs support headers [S]


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """Constants of one target; sizes in bytes, times in cycles, rates a second or a cycle."""

    name: str
    architecture: str
    tiles_per_ipu: int
    bytes_per_tile: int
    clock_frequency: int
    interleaved_base: int
    min_sync_delay: int
    relative_sync_delay: Delays = field(repr=False)
    host_packet_bytes: int
    stream_copy_limit: int
    conv_units: int
    conv_unit_coefficient_load_bytes: int
    repeat_count_max: int
    tiles_per_exchange_bus: int
    target_type: str = "IPU_MODEL"
    num_ipus: int = 1
    workers: int = WORKER_CONTEXTS
    exchange_bytes_per_cycle: int = 4  # needed to reproduce tutorial 7 on both chips [V]
    memcpy_bytes_per_cycle: int = 8  # one 64-bit data path [S]
    data_path_width: int = 64  # bits [S]
    memory_element_bytes: int = MEMORY_ELEMENT_BYTES
    host_bytes_per_second: int = 8_000_000_000  # fit of the tutorial 7 streams [I]
    global_sync_cycles: int = 600  # getGlobalSyncCycles of a third-party binding [S]
    stride_bits: int = 10  # NUM_STRIDE_BITS [S]
    conv_unit_pipeline_depth: int = 4  # DeviceInfo of PopLibs [S]
    atomic_store_bytes: int = 4
    compile_ipu_code: bool = False  # as IPUModel: without it the code categories are 0

    @property
    def num_tiles(self) -> int:
        """Count the tiles of all IPUs."""
        return self.num_ipus * self.tiles_per_ipu

    def sync_delay_by_tile(self) -> Delays:
        """Give the round-trip sync delay of every tile of every IPU, in cycles."""
        one_ipu = self.min_sync_delay + self.relative_sync_delay
        return np.tile(one_ipu, self.num_ipus)

    def physical_tile(self) -> Delays:
        """Give the physical tile of each tile; the identity, as the real order is not public."""
        return np.arange(self.num_tiles, dtype=np.int64)

    # Poplar's getters, under its names.
    def getTargetType(self) -> str:
        return self.target_type

    def getTargetSystemString(self) -> str:
        return f"ipu_model_{self.name}"

    def getTargetArchString(self) -> str:
        return self.architecture

    def getNumIPUs(self) -> int:
        return self.num_ipus

    def getTilesPerIPU(self) -> int:
        return self.tiles_per_ipu

    def getNumTiles(self) -> int:
        return self.num_tiles

    def getNumWorkerContexts(self) -> int:
        return self.workers

    def getBytesPerTile(self) -> int:
        return self.bytes_per_tile

    def getMemoryBytes(self) -> int:
        return self.bytes_per_tile * self.num_tiles

    def getExchangeBytesPerCycle(self) -> int:
        return self.exchange_bytes_per_cycle

    def getMemcpyBytesPerCycle(self) -> int:
        return self.memcpy_bytes_per_cycle

    def getMinIPUSyncDelay(self) -> int:
        return self.min_sync_delay

    def getMaxIPUSyncDelay(self) -> int:
        return self.min_sync_delay + int(self.relative_sync_delay.max())

    def getGlobalSyncCycles(self) -> int:
        return self.global_sync_cycles

    def getMemoryElementOffsets(self) -> list[int]:
        return list(range(0, self.bytes_per_tile, self.memory_element_bytes))

    def getInterleavedMemoryElementIndex(self) -> int:
        return self.interleaved_base // self.memory_element_bytes

    def getNumStrideBits(self) -> int:
        return self.stride_bits

    def getRptCountMax(self) -> int:
        return self.repeat_count_max

    def getDataPathWidth(self) -> int:
        return self.data_path_width

    def getVectorWidth(self, type_: Type) -> int:
        return self.data_path_width // (8 * type_.size)

    def getFloatVectorWidth(self) -> int:
        return self.data_path_width // 32

    def getHalfVectorWidth(self) -> int:
        return self.data_path_width // 16

    def getTypeSize(self, type_: Type) -> int:
        return type_.size

    def getNumConvUnits(self, input_type: Type, partial_type: Type) -> int:
        del input_type, partial_type  # both chips hold as many units for every pair of types
        return self.conv_units

    def getConvUnitInputLoadElemsPerCycle(self, type_: Type) -> int:
        return 8 // type_.size

    def getConvUnitMaxPipelineDepth(self, type_: Type) -> int:
        del type_
        return self.conv_unit_pipeline_depth

    def getConvUnitCoeffLoadBytesPerCycle(self) -> int:
        return self.conv_unit_coefficient_load_bytes

    def getWeightsPerConvUnit(self, type_: Type) -> int:
        return self.getConvUnitInputLoadElemsPerCycle(type_) * self.conv_unit_pipeline_depth

    def getTileClockFrequency(self) -> float:
        return float(self.clock_frequency)

    def supportsExchangeBusSharing(self) -> bool:
        return self.tiles_per_exchange_bus > 1

    def getTilesPerSharedExchangeBus(self) -> int:
        return self.tiles_per_exchange_bus

    def getAtomicStoreGranularity(self) -> int:
        return self.atomic_store_bytes


def _straight_line(tiles: int, nearest: int, farthest: int) -> Delays:
    """Spread even round-trip delays over the tiles, relative to the smallest.

    Synthetic: the real tables are not public. Even values keep the one-way delay a whole cycle.
    """
    distance = np.arange(tiles, dtype=np.int64) * ((farthest - nearest) // 2) // max(tiles - 1, 1)
    return 2 * distance


# The line through the two fitted points of the user guide's sample: the worst of tiles 0 to 391 has
# a round trip of 78 cycles, tile 1,215 has 118. It meets tile 0 at 60.
MK1 = Target(
    name="mk1",
    architecture="ipu1",
    tiles_per_ipu=1216,  # user guide, profile summary
    bytes_per_tile=256 * 1024,  # user guide, profile summary
    clock_frequency=1_600_000_000,  # user guide, profile summary
    interleaved_base=8 * MEMORY_ELEMENT_BYTES,  # eight elements; 131,608 = base + 536 [V]
    min_sync_delay=60,
    relative_sync_delay=_straight_line(1216, 60, 118),
    host_packet_bytes=64,  # 63 gather copies for 4,000 bytes in tutorial 7 [I]
    stream_copy_limit=128 << 20,  # user guide
    conv_units=8,  # PopLibs of 2019 [S]
    conv_unit_coefficient_load_bytes=8,
    repeat_count_max=0x0FFF,
    tiles_per_exchange_bus=1,
)

# The sync table is synthetic: getMaxIPUSyncDelay of a third-party binding gives 126, nothing more.
MK2 = Target(
    name="mk2",
    architecture="ipu2",
    tiles_per_ipu=1472,
    bytes_per_tile=624 * 1024,
    clock_frequency=1_330_000_000,
    interleaved_base=13 * MEMORY_ELEMENT_BYTES,  # 212,992, recomputed from public profiles [V]
    min_sync_delay=60,
    relative_sync_delay=_straight_line(1472, 60, 126),
    host_packet_bytes=128,  # 32 gather copies for 4,000 bytes in tutorial 7 [I]
    stream_copy_limit=256 << 20,
    conv_units=16,  # "numConvUnits == 16" in PopLibs' estimates [S]
    conv_unit_coefficient_load_bytes=16,
    repeat_count_max=0xFFFF,
    tiles_per_exchange_bus=2,  # exchange estimator of PopLibs [S]
)

TARGETS: dict[str, Target] = {
    "mk1": MK1,
    "mk2": MK2,
    "bow": replace(MK2, name="bow", clock_frequency=1_850_000_000),  # Mk2 with a faster clock
    "tiny": replace(
        MK2, name="tiny", tiles_per_ipu=4, relative_sync_delay=_straight_line(4, 60, 126)
    ),  # no real part: an Mk2 cut down to four tiles, for tests
}


def make_target(name: str, **changes: Any) -> Target:
    """Make a target from the named table with some fields changed.

    A changed `tiles_per_ipu` gets a sync table of that length between the same two ends.
    """
    if name not in TARGETS:
        raise PoplarError(f"target {name!r}: unknown; known targets are {', '.join(TARGETS)}")
    base = TARGETS[name]
    tiles = int(changes.get("tiles_per_ipu", base.tiles_per_ipu))
    if tiles < 1:
        raise PoplarError(f"target {name!r}: tiles_per_ipu is {tiles}; it must be at least 1")
    if tiles != base.tiles_per_ipu and "relative_sync_delay" not in changes:
        farthest = base.getMaxIPUSyncDelay()
        changes["relative_sync_delay"] = _straight_line(tiles, base.min_sync_delay, farthest)
    return replace(base, **changes)
