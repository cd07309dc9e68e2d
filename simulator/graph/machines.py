"""The machines' constants: one frozen table a part.

Marks in the comments, as in the model's source list: [V] recomputed, [S] stated, [I] inferred.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np

Delays = np.ndarray[Any, np.dtype[np.int64]]

MEMORY_ELEMENT_BYTES = 0x4000  # TMEM_ELEMSIZE of the PopLibs codelets [S]
WORKER_CONTEXTS = 6  # CTXT_WORKERS of the PopLibs support headers [S]
CPU_BYTES = 1 << 40  # a CPU target names no limit: more than any program here needs


class TargetType(StrEnum):
    """What runs a program. Nothing here is hardware: IPU stands for what is asked for."""

    IPU = "IPU"
    IPU_MODEL = "IPU_MODEL"
    CPU = "CPU"


class IpuLinkConfiguration(StrEnum):
    """How the IPUs of a system are joined."""

    Default = "default"
    BarleyTwist = "barleyTwist"
    SlidingWindow = "slidingWindow"


class IpuLinkTopology(StrEnum):
    """What the IPU-Links form."""

    Mesh = "mesh"
    Torus = "torus"
    Line = "line"


class GlobalExchangeFlow(NamedTuple):
    """Traffic from one IPU to another."""

    src: int
    dst: int


class GlobalExchangeConstraint(NamedTuple):
    """Flows that share a bandwidth in bits a second."""

    bandwidth: float
    flows: tuple[GlobalExchangeFlow, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Machine:
    """Constants of one machine; sizes in bytes, times in cycles, rates a second or a cycle."""

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
    fp16_in_fp16_out_conv_units: int
    fp16_in_fp32_out_conv_units: int
    fp32_in_fp32_out_conv_units: int
    conv_unit_coefficient_load_bytes: int
    repeat_count_max: int
    tiles_per_exchange_bus: int
    fp8_in_fp16_out_conv_units: int = 0  # only "ipu21" knows 8-bit floats
    target_type: TargetType = TargetType.IPU_MODEL
    num_ipus: int = 1
    workers: int = WORKER_CONTEXTS
    exchange_bytes_per_cycle: int = 4  # needed to reproduce tutorial 7 on both chips [V]
    memcpy_bytes_per_cycle: int = 8  # one 64-bit data path [S]
    data_path_width: int = 64  # bits [S]
    memory_element_bytes: int = MEMORY_ELEMENT_BYTES
    host_bytes_per_second: int = 8_000_000_000  # fit of the tutorial 7 streams [I]
    host_fill_bytes_per_second: int = 0  # of its buffers; 0: it takes no time
    global_sync_cycles: int = 600  # getGlobalSyncCycles of a third-party binding [S]
    stride_bits: int = 10  # NUM_STRIDE_BITS [S]
    fp8_conv_unit_pipeline_depth: int = 4  # as the others [I]
    fp16_conv_unit_pipeline_depth: int = 4  # DeviceInfo of PopLibs [S]
    fp32_conv_unit_pipeline_depth: int = 4  # the same [S]
    fp8_conv_unit_input_load: int = 8  # elements a cycle: 64 bits [S]
    fp16_conv_unit_input_load: int = 4  # TileConstants of PopLibs [S]
    fp32_conv_unit_input_load: int = 2  # the same [S]
    atomic_store_bytes: int = 4
    tiles_per_exchange_context: int = 32  # synthetic: the host exchange's blocks are not public
    contexts_per_exchange_block: int = 2  # synthetic
    link_configuration: IpuLinkConfiguration = IpuLinkConfiguration.Default
    link_topology: IpuLinkTopology = IpuLinkTopology.Mesh
    link_domain_size: int = 64  # as in the option's public uses [S]
    instance_size: int = 64  # the same [S]
    gateway_mode: bool = True  # the same [S]
    sync_configuration: str = "intraReplicaAndAll"
    global_exchange_constraints: tuple[GlobalExchangeConstraint, ...] = ()  # (): the model's ladder
    compile_ipu_code: bool = False  # as IPUModel: without it the code categories are 0
    accurate_half: bool = True  # half is always 16 bits of IEEE 754 here

    @property
    def num_tiles(self) -> int:
        """Count the tiles of all IPUs."""
        return self.num_ipus * self.tiles_per_ipu


def sync_line(tiles: int, nearest: int, farthest: int) -> Delays:
    """Spread even round-trip delays over the tiles, relative to the smallest.

    Synthetic: the real tables are not public. Even values keep the one-way delay a whole cycle.
    """
    distance = np.arange(tiles, dtype=np.int64) * ((farthest - nearest) // 2) // max(tiles - 1, 1)
    return 2 * distance


def global_sync(num_ipus: int, clock_frequency: int) -> int:
    """Return the cycles of a sync of several IPUs.

    Of the IPU Model in PopLibs (lib/poplibs_test/Util.cpp): 15 ns a hop, there and back, over
    1 + (numIPUs / 2) / 2 hops; divisions are of whole numbers, cycles are rounded up.
    """
    hops = 1 + num_ipus // 2 // 2
    return -(-15 * clock_frequency * hops * 2 // 10**9)


# The line through the two fitted points of the user guide's sample: the worst of tiles 0 to 391 has
# a round trip of 78 cycles, tile 1,215 has 118. It meets tile 0 at 60.
MK1 = Machine(
    name="mk1",
    architecture="ipu1",
    tiles_per_ipu=1216,  # user guide, profile summary
    bytes_per_tile=256 * 1024,  # user guide, profile summary
    clock_frequency=1_600_000_000,  # user guide, profile summary
    interleaved_base=8 * MEMORY_ELEMENT_BYTES,  # eight elements; 131,608 = base + 536 [V]
    min_sync_delay=60,
    relative_sync_delay=sync_line(1216, 60, 118),
    host_packet_bytes=64,  # 63 gather copies for 4,000 bytes in tutorial 7 [I]
    stream_copy_limit=128 << 20,  # user guide
    fp16_in_fp16_out_conv_units=8,  # PopLibs of 2019 [S]
    fp16_in_fp32_out_conv_units=8,
    fp32_in_fp32_out_conv_units=8,
    conv_unit_coefficient_load_bytes=8,
    repeat_count_max=0x0FFF,
    tiles_per_exchange_bus=2,  # PopLibs of 2017 shares it, when only Mk1 existed [I]
)

# The sync table is synthetic: getMaxIPUSyncDelay of a third-party binding gives 126, nothing more.
MK2 = Machine(
    name="mk2",
    architecture="ipu2",
    tiles_per_ipu=1472,
    bytes_per_tile=624 * 1024,
    clock_frequency=1_330_000_000,
    interleaved_base=13 * MEMORY_ELEMENT_BYTES,  # 212,992, recomputed from public profiles [V]
    min_sync_delay=60,
    relative_sync_delay=sync_line(1472, 60, 126),
    host_packet_bytes=128,  # 32 gather copies for 4,000 bytes in tutorial 7 [I]
    stream_copy_limit=256 << 20,
    fp16_in_fp16_out_conv_units=16,  # "numConvUnits == 16" in PopLibs' estimates [S]
    fp16_in_fp32_out_conv_units=8,  # codelets with 4 and with 8 alone in PopLibs [S]
    fp32_in_fp32_out_conv_units=16,
    conv_unit_coefficient_load_bytes=16,
    repeat_count_max=0xFFFF,
    tiles_per_exchange_bus=2,  # exchange estimator of PopLibs [S]
)

BOW = replace(MK2, name="bow", clock_frequency=1_850_000_000)  # Mk2 with a faster clock

MACHINES: dict[str, Machine] = {
    "mk1": MK1,
    "mk2": MK2,
    "bow": BOW,
    "tiny": replace(
        MK2, name="tiny", tiles_per_ipu=4, relative_sync_delay=sync_line(4, 60, 126)
    ),  # no real part: an Mk2 cut down to four tiles, for tests
    # The part with 8-bit floats; all else as Bow, as nothing of its own is public.
    "ipu21": replace(BOW, name="ipu21", architecture="ipu21", fp8_in_fp16_out_conv_units=16),
    # A CPU runs values alone: one tile with one worker; its other figures mean nothing.
    "cpu": replace(
        MK2,
        name="cpu",
        architecture="cpu",
        tiles_per_ipu=1,
        bytes_per_tile=CPU_BYTES,
        clock_frequency=10**9,
        interleaved_base=CPU_BYTES,
        min_sync_delay=0,
        relative_sync_delay=sync_line(1, 0, 0),
        tiles_per_exchange_bus=1,
        target_type=TargetType.CPU,
        workers=1,
        memory_element_bytes=CPU_BYTES,
        global_sync_cycles=0,
    ),
}
