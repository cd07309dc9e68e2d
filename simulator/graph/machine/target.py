"""What a program is compiled for: Poplar's getters over a machine's constants."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from simulator.graph.arguments import refuse_in
from simulator.graph.errors import PoplarError
from simulator.graph.machine.constants import (
    Delays,
    IpuLinkConfiguration,
    IpuLinkTopology,
    Machine,
    TargetType,
    global_sync,
    sync_line,
)
from simulator.graph.machine.files import SUFFIX, built_in, differences, read_machine
from simulator.graph.machine.options import option_fields

if TYPE_CHECKING:
    from simulator.graph.types import Type

# Poplar's version strings, and the parts that they mean.
VERSIONS = {"ipu1": "mk1", "ipu2": "mk2"}


@refuse_in
@dataclass(frozen=True, slots=True, eq=False)
class Target(Machine):
    """A machine of some IPUs. `half` is 16 bits of IEEE 754 on every target, the CPU's too.

    >>> target = Target.createIPUTarget(1, "mk2")
    >>> target.getNumTiles(), target.getBytesPerTile()
    (1472, 638976)
    """

    @staticmethod
    def createCPUTarget(accurateHalf: bool = False, numIPUs: int = 1) -> Target:
        """Return a target that runs values without a model: one tile and one worker an "IPU".

        `accurateHalf` is taken as Poplar takes it, and always true here: without it Poplar's half
        is a float of 32 bits on a CPU, whose values would differ from the IPU's. What the getters
        say of memory, exchange and clock means nothing.

        >>> Target.createCPUTarget().getNumTiles()
        1
        """
        del accurateHalf
        return replace(CPU, num_ipus=_count("numIPUs", numIPUs))

    @staticmethod
    def createIPUTarget(
        numIPUs: int,
        systemType: str = "ipu2",
        options: Mapping[str, object] | None = None,
        *,
        tilesPerIPU: int | None = None,
    ) -> Target:
        """Return a target of so many IPUs of a part (mk1, mk2, bow) or version ("ipu1", "ipu2").

        No hardware is there: its type is IPU_MODEL, and a program for it runs on an IPU Model.

        >>> Target.createIPUTarget(2, "mk2").getNumTiles()
        2944
        """
        changes: dict[str, Any] = {"num_ipus": _count("numIPUs", numIPUs)}
        if tilesPerIPU is not None:
            changes["tiles_per_ipu"] = _count("tilesPerIPU", tilesPerIPU)
        return make_target(part_name("createIPUTarget", systemType), options, **changes)

    def createVirtualTarget(self, numIPUs: int, tilesPerIPU: int) -> Target:
        """Return a target of the first tiles of the first IPUs of this one.

        >>> Target.createIPUTarget(2).createVirtualTarget(1, 10).getNumTiles()
        10
        """
        for name, count, most in (
            ("numIPUs", numIPUs, self.num_ipus),
            ("tilesPerIPU", tilesPerIPU, self.tiles_per_ipu),
        ):
            if _count(name, count) > most:
                raise PoplarError(f"createVirtualTarget: {name} is {count}; there are {most}")
        numIPUs, tilesPerIPU = int(numIPUs), int(tilesPerIPU)
        delays = self.relative_sync_delay[:tilesPerIPU]
        changed = replace(self, tiles_per_ipu=tilesPerIPU, relative_sync_delay=delays)
        return changed if numIPUs == self.num_ipus else with_ipus(changed, numIPUs)

    def sync_delay_by_tile(self) -> Delays:
        """Return the round-trip sync delay of every tile of every IPU, in cycles."""
        return np.tile(self.min_sync_delay + self.relative_sync_delay, self.num_ipus)

    def physical_tile(self) -> Delays:
        """Return the physical tile of each tile; the identity, as the real order is not public."""
        return np.arange(self.num_tiles, dtype=np.int64)

    # Poplar's getters, under its names.
    def getTargetType(self) -> TargetType:
        """Return the kind of device that programs are compiled for.

        >>> Target.createIPUTarget(1).getTargetType()
        <TargetType.IPU_MODEL: 'IPU_MODEL'>
        """
        return self.target_type

    def getTargetSystemString(self) -> str:
        """Name the system: of an IPU Model, its part.

        >>> Target.createIPUTarget(1).getTargetSystemString()
        'ipu_model_mk2'
        """
        return "cpu" if self.target_type is TargetType.CPU else f"ipu_model_{self.name}"

    def getTargetArchString(self) -> str:
        """Name the architecture by Poplar's version.

        >>> Target.createIPUTarget(1).getTargetArchString()
        'ipu2'
        """
        return self.architecture

    def getNumIPUs(self) -> int:
        """Count the IPUs.

        >>> Target.createIPUTarget(1).getNumIPUs()
        1
        """
        return self.num_ipus

    def getTilesPerIPU(self) -> int:
        """Count the tiles of an IPU.

        >>> Target.createIPUTarget(1).getTilesPerIPU()
        1472
        """
        return self.tiles_per_ipu

    def getNumTiles(self) -> int:
        """Count the tiles of all IPUs.

        >>> Target.createIPUTarget(1).getNumTiles()
        1472
        """
        return self.num_tiles

    def getNumWorkerContexts(self) -> int:
        """Count the workers of a tile.

        >>> Target.createIPUTarget(1).getNumWorkerContexts()
        6
        """
        return self.workers

    def getBytesPerTile(self) -> int:
        """Return the memory of a tile, in bytes: of Mk2 624 KiB.

        >>> Target.createIPUTarget(1).getBytesPerTile()
        638976
        """
        return self.bytes_per_tile

    def getMemoryBytes(self) -> int:
        """Return the memory of all tiles, in bytes: of Mk2 1472 times 638976.

        >>> Target.createIPUTarget(1).getMemoryBytes()
        940572672
        """
        return self.bytes_per_tile * self.num_tiles

    def getExchangeBytesPerCycle(self) -> int:
        """Return how many bytes a tile receives from others each cycle.

        >>> Target.createIPUTarget(1).getExchangeBytesPerCycle()
        4
        """
        return self.exchange_bytes_per_cycle

    def getMemcpyBytesPerCycle(self) -> int:
        """Return how many bytes a tile copies within its memory each cycle.

        >>> Target.createIPUTarget(1).getMemcpyBytesPerCycle()
        8
        """
        return self.memcpy_bytes_per_cycle

    def getMinIPUSyncDelay(self) -> int:
        """Return the cycles of a sync of an IPU for its nearest tile.

        >>> Target.createIPUTarget(1).getMinIPUSyncDelay()
        60
        """
        return self.min_sync_delay

    def getMaxIPUSyncDelay(self) -> int:
        """Return the cycles of a sync of an IPU for its farthest tile.

        >>> Target.createIPUTarget(1).getMaxIPUSyncDelay()
        126
        """
        return self.min_sync_delay + int(self.relative_sync_delay.max())

    def getGlobalSyncCycles(self) -> int:
        """Return the cycles of a sync of all IPUs.

        >>> Target.createIPUTarget(1).getGlobalSyncCycles()
        600
        """
        return self.global_sync_cycles

    @property
    def sync_cycles_between_ipus(self) -> int:
        """Return by how much a sync of all IPUs takes longer than one of the tiles of an IPU."""
        return self.global_sync_cycles if self.num_ipus > 1 else 0

    def getMemoryElementOffsets(self) -> list[int]:
        """List the byte at which each memory element of a tile begins.

        >>> Target.createIPUTarget(1).getMemoryElementOffsets()[:3]
        [0, 16384, 32768]
        """
        return list(range(0, self.bytes_per_tile, self.memory_element_bytes))

    def getInterleavedMemoryElementIndex(self) -> int:
        """Return the first memory element that is interleaved.

        >>> Target.createIPUTarget(1).getInterleavedMemoryElementIndex()
        13
        """
        return -(-self.interleaved_base // self.memory_element_bytes)

    def getNumStrideBits(self) -> int:
        """Return the bits of a stride in an instruction.

        >>> Target.createIPUTarget(1).getNumStrideBits()
        10
        """
        return self.stride_bits

    def getRptCountMax(self) -> int:
        """Return how often an instruction repeats others at most.

        >>> Target.createIPUTarget(1).getRptCountMax()
        65535
        """
        return self.repeat_count_max

    def getDataPathWidth(self) -> int:
        """Return what a worker loads at once, in bits.

        >>> Target.createIPUTarget(1).getDataPathWidth()
        64
        """
        return self.data_path_width

    def getVectorWidth(self, type_: Type) -> int:
        """Count the elements of a type that a worker loads at once.

        >>> from simulator.graph.types import HALF
        >>> Target.createIPUTarget(1).getVectorWidth(HALF)
        4
        """
        return self.data_path_width // (8 * type_.size)

    def getFloatVectorWidth(self) -> int:
        """Count the floats that a worker loads at once.

        >>> Target.createIPUTarget(1).getFloatVectorWidth()
        2
        """
        return self.data_path_width // 32

    def getHalfVectorWidth(self) -> int:
        """Count the halves that a worker loads at once.

        >>> Target.createIPUTarget(1).getHalfVectorWidth()
        4
        """
        return self.data_path_width // 16

    def getQuarterVectorWidth(self) -> int:
        """Count the quarters that a worker loads at once.

        >>> Target.createIPUTarget(1).getQuarterVectorWidth()
        8
        """
        return self.data_path_width // 8

    def getTypeSize(self, type_: Type) -> int:
        """Return the size of a type in bytes.

        >>> from simulator.graph.types import FLOAT
        >>> Target.createIPUTarget(1).getTypeSize(FLOAT)
        4
        """
        return type_.size

    def getFp8ConvUnitMaxPipelineDepth(self) -> int:
        """Return the stages of a convolution unit for quarters.

        >>> Target.createIPUTarget(1).getFp8ConvUnitMaxPipelineDepth()
        4
        """
        return self.fp8_conv_unit_pipeline_depth

    def getFp16ConvUnitMaxPipelineDepth(self) -> int:
        """Return the stages of a convolution unit for halves.

        >>> Target.createIPUTarget(1).getFp16ConvUnitMaxPipelineDepth()
        4
        """
        return self.fp16_conv_unit_pipeline_depth

    def getFp32ConvUnitMaxPipelineDepth(self) -> int:
        """Return the stages of a convolution unit for floats.

        >>> Target.createIPUTarget(1).getFp32ConvUnitMaxPipelineDepth()
        4
        """
        return self.fp32_conv_unit_pipeline_depth

    def getFp8ConvUnitInputLoadElemsPerCycle(self) -> int:
        """Count the quarters that convolution units take each cycle.

        >>> Target.createIPUTarget(1).getFp8ConvUnitInputLoadElemsPerCycle()
        8
        """
        return self.fp8_conv_unit_input_load

    def getFp16ConvUnitInputLoadElemsPerCycle(self) -> int:
        """Count the halves that convolution units take each cycle.

        >>> Target.createIPUTarget(1).getFp16ConvUnitInputLoadElemsPerCycle()
        4
        """
        return self.fp16_conv_unit_input_load

    def getFp32ConvUnitInputLoadElemsPerCycle(self) -> int:
        """Count the floats that convolution units take each cycle.

        >>> Target.createIPUTarget(1).getFp32ConvUnitInputLoadElemsPerCycle()
        2
        """
        return self.fp32_conv_unit_input_load

    def getFp8InFp16OutConvUnitsPerTile(self) -> int:
        """Count the units of a tile for quarters with sums in half; Mk2 has none.

        >>> Target.createIPUTarget(1).getFp8InFp16OutConvUnitsPerTile()
        0
        """
        return self.fp8_in_fp16_out_conv_units

    def getFp16InFp16OutConvUnitsPerTile(self) -> int:
        """Count the units of a tile for halves with sums in half.

        >>> Target.createIPUTarget(1).getFp16InFp16OutConvUnitsPerTile()
        16
        """
        return self.fp16_in_fp16_out_conv_units

    def getFp16InFp32OutConvUnitsPerTile(self) -> int:
        """Count the units of a tile for halves with sums in float.

        >>> Target.createIPUTarget(1).getFp16InFp32OutConvUnitsPerTile()
        8
        """
        return self.fp16_in_fp32_out_conv_units

    def getFp32InFp32OutConvUnitsPerTile(self) -> int:
        """Count the units of a tile for floats.

        >>> Target.createIPUTarget(1).getFp32InFp32OutConvUnitsPerTile()
        16
        """
        return self.fp32_in_fp32_out_conv_units

    def getNumConvUnits(self, input_type: Type, partial_type: Type) -> int:
        """Count the units for a pair of types; by their sizes, others are counted as float.

        >>> from simulator.graph.types import FLOAT, HALF
        >>> Target.createIPUTarget(1).getNumConvUnits(HALF, FLOAT)
        8
        """
        pair = (input_type.size, partial_type.size)
        return {
            (1, 2): self.fp8_in_fp16_out_conv_units,
            (2, 2): self.fp16_in_fp16_out_conv_units,
            (2, 4): self.fp16_in_fp32_out_conv_units,
        }.get(pair, self.fp32_in_fp32_out_conv_units)

    def getConvUnitInputLoadElemsPerCycle(self, type_: Type) -> int:
        """Count the elements of a type that convolution units take each cycle.

        >>> from simulator.graph.types import HALF
        >>> Target.createIPUTarget(1).getConvUnitInputLoadElemsPerCycle(HALF)
        4
        """
        by_size = {1: self.fp8_conv_unit_input_load, 2: self.fp16_conv_unit_input_load}
        return by_size.get(type_.size, self.fp32_conv_unit_input_load)

    def getConvUnitMaxPipelineDepth(self, type_: Type) -> int:
        """Return the stages of a convolution unit for a type.

        >>> from simulator.graph.types import HALF
        >>> Target.createIPUTarget(1).getConvUnitMaxPipelineDepth(HALF)
        4
        """
        by_size = {1: self.fp8_conv_unit_pipeline_depth, 2: self.fp16_conv_unit_pipeline_depth}
        return by_size.get(type_.size, self.fp32_conv_unit_pipeline_depth)

    def getConvUnitCoeffLoadBytesPerCycle(self) -> int:
        """Return how many bytes of weights the units load each cycle.

        >>> Target.createIPUTarget(1).getConvUnitCoeffLoadBytesPerCycle()
        16
        """
        return self.conv_unit_coefficient_load_bytes

    def getWeightsPerConvUnit(self, type_: Type) -> int:
        """Count the weights that a convolution unit holds: what it takes, each stage.

        >>> from simulator.graph.types import HALF
        >>> Target.createIPUTarget(1).getWeightsPerConvUnit(HALF)
        16
        """
        load = self.getConvUnitInputLoadElemsPerCycle(type_)
        return load * self.getConvUnitMaxPipelineDepth(type_)

    def getTileClockFrequency(self) -> float:
        """Return the cycles of a second.

        >>> Target.createIPUTarget(1).getTileClockFrequency()
        1330000000.0
        """
        return float(self.clock_frequency)

    def supportsExchangeBusSharing(self) -> bool:
        """Return whether tiles lend each other their part of the exchange.

        >>> Target.createIPUTarget(1).supportsExchangeBusSharing()
        True
        """
        return self.tiles_per_exchange_bus > 1

    def getTilesPerSharedExchangeBus(self) -> int:
        """Count the tiles that share a bus of the exchange.

        >>> Target.createIPUTarget(1).getTilesPerSharedExchangeBus()
        2
        """
        return self.tiles_per_exchange_bus

    def getAtomicStoreGranularity(self) -> int:
        """Return the fewest bytes that a worker stores without touching others.

        >>> Target.createIPUTarget(1).getAtomicStoreGranularity()
        4
        """
        return self.atomic_store_bytes

    # Of the host exchange: synthetic, tiles fill contexts and contexts fill blocks in order.
    def getNumTilesPerXBContext(self) -> int:
        """Count the tiles of a context of the host exchange.

        >>> Target.createIPUTarget(1).getNumTilesPerXBContext()
        32
        """
        return self.tiles_per_exchange_context

    def getNumContextsPerXB(self) -> int:
        """Count the contexts of a block of the host exchange.

        >>> Target.createIPUTarget(1).getNumContextsPerXB()
        2
        """
        return self.contexts_per_exchange_block

    def getTileHostExchangeXB(self, tile: int) -> int:
        """Return the block of the host exchange of a tile.

        >>> Target.createIPUTarget(1).getTileHostExchangeXB(100)
        1
        """
        return self._exchange_context(tile) // self.contexts_per_exchange_block

    def getTileHostExchangeContext(self, tile: int) -> int:
        """Return the context of a tile within its block of the host exchange.

        >>> Target.createIPUTarget(1).getTileHostExchangeContext(100)
        1
        """
        return self._exchange_context(tile) % self.contexts_per_exchange_block

    def getTileHostExchangeContextPosition(self, tile: int) -> int:
        """Return the place of a tile within its context of the host exchange.

        >>> Target.createIPUTarget(1).getTileHostExchangeContextPosition(100)
        4
        """
        self._exchange_context(tile)
        return tile % self.tiles_per_ipu % self.tiles_per_exchange_context

    def _exchange_context(self, tile: int) -> int:
        if not 0 <= tile < self.num_tiles:
            raise PoplarError(f"Target: tile {tile}; there are tiles 0 to {self.num_tiles - 1}")
        return tile % self.tiles_per_ipu // self.tiles_per_exchange_context

    # Of the system: what the target options say.
    def getIpuLinkConfiguration(self) -> IpuLinkConfiguration:
        """Return how the links between IPUs are set up.

        >>> Target.createIPUTarget(1).getIpuLinkConfiguration()
        <IpuLinkConfiguration.Default: 'default'>
        """
        return self.link_configuration

    def getIpuLinkTopology(self) -> IpuLinkTopology:
        """Return how the links join the IPUs.

        >>> Target.createIPUTarget(1).getIpuLinkTopology()
        <IpuLinkTopology.Mesh: 'mesh'>
        """
        return self.link_topology

    def getIpuLinkDomainSize(self) -> int:
        """Count the IPUs that links join.

        >>> Target.createIPUTarget(1).getIpuLinkDomainSize()
        64
        """
        return self.link_domain_size

    def getInstanceSize(self) -> int:
        """Count the IPUs of an instance of the program.

        >>> Target.createIPUTarget(1).getInstanceSize()
        64
        """
        return self.instance_size

    def getGatewayMode(self) -> bool:
        """Return whether the IPUs reach the host through a gateway.

        >>> Target.createIPUTarget(1).getGatewayMode()
        True
        """
        return self.gateway_mode


def _target(machine: Machine) -> Target:
    return Target(**{column.name: getattr(machine, column.name) for column in fields(machine)})


# What programs are compiled for; the parts that an IPU Model can be of, and those of files read.
TARGETS: dict[str, Target] = {n: _target(m) for n, m in built_in().items() if n != "cpu"}
MK1, MK2, CPU = TARGETS["mk1"], TARGETS["mk2"], _target(built_in()["cpu"])


def part_name(where: str, text: str) -> str:
    """Return the name of a part by its name, version or file, which is read; raises PoplarError."""
    name = VERSIONS.get(str(text), str(text))
    if name.endswith(SUFFIX):
        return _read_part(Path(name))
    if name not in TARGETS:
        parts = [*(part for part in built_in() if part != "cpu"), *VERSIONS]
        near = difflib.get_close_matches(str(text), parts, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise PoplarError(f"{where}: no part {text!r}; known are {', '.join(parts)}{hint}")
    return name


def _read_part(path: Path) -> str:
    """Read a machine of a file into TARGETS; raises PoplarError."""
    machines = built_in()
    machine = read_machine(path, machines)
    if machine.name in machines or machine.name in VERSIONS:
        raise PoplarError(f"{path}: name = {machine.name!r}: that is a part's; choose another name")
    TARGETS[machine.name] = _target(machine)
    return machine.name


def told_differences(target: Machine) -> str:
    """Return what a target has other than the machine that it is like, in a line of text."""
    base = built_in().get(target.like)
    if base is None:
        return ""
    texts = [f"{name} = {_plain(value)} ({base.name}: {_plain(base_value)})"
             for name, value, base_value in differences(target, base)]  # fmt: skip
    return "; ".join(texts)


def _plain(value: object) -> str:
    texts = [f"{part:,}" if isinstance(part, int | float) else str(part)
             for part in (value if isinstance(value, tuple) else (value,))]  # fmt: skip
    return " ".join(texts)


def make_target(name: str, options: Mapping[str, object] | None = None, **changes: Any) -> Target:
    """Make a target from the named table with some fields changed.

    A changed `tiles_per_ipu` gets a sync table of that length between the same two ends, and
    several IPUs the cycles of their global sync. `options` are target options, which
    POPLAR_TARGET_OPTIONS overrides.
    """
    if name.endswith(SUFFIX):
        name = _read_part(Path(name))
    if name not in TARGETS:
        raise PoplarError(f"target {name!r}: unknown; known targets are {', '.join(TARGETS)}")
    base = TARGETS[name]
    tiles = int(changes.get("tiles_per_ipu", base.tiles_per_ipu))
    if tiles < 1:
        raise PoplarError(f"target {name!r}: tiles_per_ipu is {tiles}; it must be at least 1")
    if tiles != base.tiles_per_ipu and "relative_sync_delay" not in changes:
        farthest = base.getMaxIPUSyncDelay()
        changes["relative_sync_delay"] = sync_line(tiles, base.min_sync_delay, farthest)
    target = replace(base, **{**option_fields(options), **changes})
    if target.interleaved_base > target.bytes_per_tile:  # less memory than that has no such region
        target = replace(target, interleaved_base=target.bytes_per_tile)
    return target if "global_sync_cycles" in changes else with_ipus(target, target.num_ipus)


def checked_target(source: Any) -> Target:
    """Return a target, that of a device too; raises PoplarError for anything else."""
    target = source.getTarget() if type(source).__name__ == "Device" else source
    if not isinstance(target, Target):
        raise PoplarError(f"Graph: needs a target or a device, not {type(source).__name__}")
    return target


def with_ipus(target: Target, num_ipus: int) -> Target:
    """Return the same target with so many IPUs, and the global sync of that many."""
    cycles = TARGETS[target.name].global_sync_cycles if target.name in TARGETS else 0
    if num_ipus > 1 and target.target_type is not TargetType.CPU:
        cycles = global_sync(num_ipus, target)
    return replace(target, num_ipus=num_ipus, global_sync_cycles=cycles)


def _count(name: str, value: int) -> int:
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
        raise PoplarError(f"Target: {name} is {value!r}; a whole number from 1 is needed")
    return int(value)
