"""The constants of a machine. Their values stand in simulator/machines/, a file a machine."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np

Delays = np.ndarray[Any, np.dtype[np.int64]]


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
    """Traffic from one IPU to another.

    >>> GlobalExchangeFlow(0, 1).dst
    1
    """

    src: int
    dst: int


class GlobalExchangeConstraint(NamedTuple):
    """Flows that share a bandwidth in bits a second.

    >>> GlobalExchangeConstraint(1e9, (GlobalExchangeFlow(0, 1),)).bandwidth
    1000000000.0
    """

    bandwidth: float
    flows: tuple[GlobalExchangeFlow, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Machine:
    """Constants of one machine; sizes in bytes, times in cycles, rates a second or a cycle.

    Those without a value here stand in the machine's file, with their sources.
    """

    name: str
    like: str  # the machine whose constants these are but for some; its own name if none is
    architecture: str
    tiles_per_ipu: int
    bytes_per_tile: int
    clock_frequency: int
    workers: int
    memory_element_bytes: int
    interleaved_base: int
    memcpy_bytes_per_cycle: int
    data_path_width: int  # bits
    stride_bits: int
    repeat_count_max: int
    atomic_store_bytes: int
    read_past_bytes: int  # that a vertex may read behind its operands, so that they are its own
    exchange_apart: int  # 1 where an exchange cannot write a memory element that it reads
    scaled_pointer_bytes: int  # of a pointer that is kept in words of its data
    fp8_in_fp16_out_conv_units: int
    fp16_in_fp16_out_conv_units: int
    fp16_in_fp32_out_conv_units: int
    fp32_in_fp32_out_conv_units: int
    conv_unit_coefficient_load_bytes: int
    fp8_conv_unit_pipeline_depth: int
    fp16_conv_unit_pipeline_depth: int
    fp32_conv_unit_pipeline_depth: int
    fp8_conv_unit_input_load: int  # elements a cycle
    fp16_conv_unit_input_load: int
    fp32_conv_unit_input_load: int
    exchange_bytes_per_cycle: int
    tiles_per_exchange_bus: int
    exchange_latency: tuple[float, ...]  # at the tiles of exchange_latency_tiles, lines between
    exchange_latency_tiles: tuple[int, ...]
    min_sync_delay: int
    relative_sync_delay: Delays = field(repr=False)
    link_bits_per_second: float
    link_bundles: tuple[int, ...]  # links on the card, across the rung, up, down
    link_hop_nanoseconds: int
    global_sync_cycles: int
    gateway_ipus: int  # that share the links to other IPU-Link domains
    gateway_bits_per_second: float  # of these links together, each way
    gateway_nanoseconds: int
    host_packet_bytes: int
    host_bytes_per_second: int
    host_fill_bytes_per_second: int  # of its buffers; 0: it takes no time
    stream_copy_limit: int
    tiles_per_exchange_context: int
    contexts_per_exchange_block: int
    target_type: TargetType = TargetType.IPU_MODEL
    num_ipus: int = 1
    # As in the option's public uses.
    link_configuration: IpuLinkConfiguration = IpuLinkConfiguration.Default
    link_topology: IpuLinkTopology = IpuLinkTopology.Mesh
    link_domain_size: int = 64
    instance_size: int = 64
    gateway_mode: bool = True
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


def global_sync(num_ipus: int, machine: Machine) -> int:
    """Return the cycles of a sync of several IPUs.

    Of the IPU Model in PopLibs (lib/poplibs_test/Util.cpp): the time of a hop, there and back, over
    1 + (numIPUs / 2) / 2 hops; divisions are of whole numbers, cycles are rounded up.
    """
    hops = 1 + num_ipus // 2 // 2
    return -(-machine.link_hop_nanoseconds * machine.clock_frequency * hops * 2 // 10**9)
