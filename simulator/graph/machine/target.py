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
    """A machine of some IPUs. `half` is 16 bits of IEEE 754 on every target, the CPU's too."""

    @staticmethod
    def createCPUTarget(accurateHalf: bool = False, numIPUs: int = 1) -> Target:
        """Return a target that runs values without a model: one tile and one worker an "IPU".

        `accurateHalf` is taken as Poplar takes it, and always true here: without it Poplar's half
        is a float of 32 bits on a CPU, whose values would differ from the IPU's. What the getters
        say of memory, exchange and clock means nothing.
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
        """
        changes: dict[str, Any] = {"num_ipus": _count("numIPUs", numIPUs)}
        if tilesPerIPU is not None:
            changes["tiles_per_ipu"] = _count("tilesPerIPU", tilesPerIPU)
        return make_target(part_name("createIPUTarget", systemType), options, **changes)

    def createVirtualTarget(self, numIPUs: int, tilesPerIPU: int) -> Target:
        """Return a target of the first tiles of the first IPUs of this one."""
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
        return self.target_type

    def getTargetSystemString(self) -> str:
        return "cpu" if self.target_type is TargetType.CPU else f"ipu_model_{self.name}"

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

    @property
    def sync_cycles_between_ipus(self) -> int:
        """Return by how much a sync of all IPUs takes longer than one of the tiles of an IPU."""
        return self.global_sync_cycles if self.num_ipus > 1 else 0

    def getMemoryElementOffsets(self) -> list[int]:
        return list(range(0, self.bytes_per_tile, self.memory_element_bytes))

    def getInterleavedMemoryElementIndex(self) -> int:
        return -(-self.interleaved_base // self.memory_element_bytes)

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

    def getQuarterVectorWidth(self) -> int:
        return self.data_path_width // 8

    def getTypeSize(self, type_: Type) -> int:
        return type_.size

    def getFp8ConvUnitMaxPipelineDepth(self) -> int:
        return self.fp8_conv_unit_pipeline_depth

    def getFp16ConvUnitMaxPipelineDepth(self) -> int:
        return self.fp16_conv_unit_pipeline_depth

    def getFp32ConvUnitMaxPipelineDepth(self) -> int:
        return self.fp32_conv_unit_pipeline_depth

    def getFp8ConvUnitInputLoadElemsPerCycle(self) -> int:
        return self.fp8_conv_unit_input_load

    def getFp16ConvUnitInputLoadElemsPerCycle(self) -> int:
        return self.fp16_conv_unit_input_load

    def getFp32ConvUnitInputLoadElemsPerCycle(self) -> int:
        return self.fp32_conv_unit_input_load

    def getFp8InFp16OutConvUnitsPerTile(self) -> int:
        return self.fp8_in_fp16_out_conv_units

    def getFp16InFp16OutConvUnitsPerTile(self) -> int:
        return self.fp16_in_fp16_out_conv_units

    def getFp16InFp32OutConvUnitsPerTile(self) -> int:
        return self.fp16_in_fp32_out_conv_units

    def getFp32InFp32OutConvUnitsPerTile(self) -> int:
        return self.fp32_in_fp32_out_conv_units

    def getNumConvUnits(self, input_type: Type, partial_type: Type) -> int:
        """Count the units for a pair of types; by their sizes, others are counted as float."""
        pair = (input_type.size, partial_type.size)
        return {
            (1, 2): self.fp8_in_fp16_out_conv_units,
            (2, 2): self.fp16_in_fp16_out_conv_units,
            (2, 4): self.fp16_in_fp32_out_conv_units,
        }.get(pair, self.fp32_in_fp32_out_conv_units)

    def getConvUnitInputLoadElemsPerCycle(self, type_: Type) -> int:
        by_size = {1: self.fp8_conv_unit_input_load, 2: self.fp16_conv_unit_input_load}
        return by_size.get(type_.size, self.fp32_conv_unit_input_load)

    def getConvUnitMaxPipelineDepth(self, type_: Type) -> int:
        by_size = {1: self.fp8_conv_unit_pipeline_depth, 2: self.fp16_conv_unit_pipeline_depth}
        return by_size.get(type_.size, self.fp32_conv_unit_pipeline_depth)

    def getConvUnitCoeffLoadBytesPerCycle(self) -> int:
        return self.conv_unit_coefficient_load_bytes

    def getWeightsPerConvUnit(self, type_: Type) -> int:
        load = self.getConvUnitInputLoadElemsPerCycle(type_)
        return load * self.getConvUnitMaxPipelineDepth(type_)

    def getTileClockFrequency(self) -> float:
        return float(self.clock_frequency)

    def supportsExchangeBusSharing(self) -> bool:
        return self.tiles_per_exchange_bus > 1

    def getTilesPerSharedExchangeBus(self) -> int:
        return self.tiles_per_exchange_bus

    def getAtomicStoreGranularity(self) -> int:
        return self.atomic_store_bytes

    # Of the host exchange: synthetic, tiles fill contexts and contexts fill blocks in order.
    def getNumTilesPerXBContext(self) -> int:
        return self.tiles_per_exchange_context

    def getNumContextsPerXB(self) -> int:
        return self.contexts_per_exchange_block

    def getTileHostExchangeXB(self, tile: int) -> int:
        return self._exchange_context(tile) // self.contexts_per_exchange_block

    def getTileHostExchangeContext(self, tile: int) -> int:
        return self._exchange_context(tile) % self.contexts_per_exchange_block

    def getTileHostExchangeContextPosition(self, tile: int) -> int:
        self._exchange_context(tile)
        return tile % self.tiles_per_ipu % self.tiles_per_exchange_context

    def _exchange_context(self, tile: int) -> int:
        if not 0 <= tile < self.num_tiles:
            raise PoplarError(f"Target: tile {tile}; there are tiles 0 to {self.num_tiles - 1}")
        return tile % self.tiles_per_ipu // self.tiles_per_exchange_context

    # Of the system: what the target options say.
    def getIpuLinkConfiguration(self) -> IpuLinkConfiguration:
        return self.link_configuration

    def getIpuLinkTopology(self) -> IpuLinkTopology:
        return self.link_topology

    def getIpuLinkDomainSize(self) -> int:
        return self.link_domain_size

    def getInstanceSize(self) -> int:
        return self.instance_size

    def getGatewayMode(self) -> bool:
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
