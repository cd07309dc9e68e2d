"""What targets say of themselves, against the public table of the parts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from simulator.graph.errors import InvalidOptionError, PoplarError
from simulator.graph.machine.constants import IpuLinkConfiguration, IpuLinkTopology, TargetType
from simulator.graph.machine.target import TARGETS, Target, make_target
from simulator.graph.types import FLOAT, HALF


@pytest.fixture(autouse=True)
def _no_options_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("POPLAR_TARGET_OPTIONS", raising=False)


# Getter (and arguments), Mk1, Mk2.
TABLE: list[tuple[str, tuple[Any, ...], Any, Any]] = [
    ("getTargetType", (), "IPU_MODEL", TargetType.IPU_MODEL),
    ("getTargetSystemString", (), "ipu_model_mk1", "ipu_model_mk2"),
    ("getTargetArchString", (), "ipu1", "ipu2"),
    ("getNumIPUs", (), 1, 1),
    ("getTilesPerIPU", (), 1216, 1472),
    ("getNumTiles", (), 1216, 1472),
    ("getNumWorkerContexts", (), 6, 6),
    ("getBytesPerTile", (), 262_144, 638_976),
    ("getMemoryBytes", (), 304 << 20, 897 << 20),
    ("getExchangeBytesPerCycle", (), 4, 4),
    ("getMemcpyBytesPerCycle", (), 8, 8),
    ("getMinIPUSyncDelay", (), 60, 60),
    ("getMaxIPUSyncDelay", (), 118, 126),
    ("getGlobalSyncCycles", (), 600, 600),
    ("getInterleavedMemoryElementIndex", (), 8, 13),
    ("getNumStrideBits", (), 10, 10),
    ("getDataPathWidth", (), 64, 64),
    ("getFp8ConvUnitMaxPipelineDepth", (), 4, 4),
    ("getFp16ConvUnitMaxPipelineDepth", (), 4, 4),
    ("getFp32ConvUnitMaxPipelineDepth", (), 4, 4),
    ("getFp8ConvUnitInputLoadElemsPerCycle", (), 8, 8),
    ("getFp16ConvUnitInputLoadElemsPerCycle", (), 4, 4),
    ("getFp32ConvUnitInputLoadElemsPerCycle", (), 2, 2),
    ("getFp8InFp16OutConvUnitsPerTile", (), 0, 0),
    ("getFp16InFp16OutConvUnitsPerTile", (), 8, 16),
    ("getFp16InFp32OutConvUnitsPerTile", (), 8, 8),
    ("getFp32InFp32OutConvUnitsPerTile", (), 8, 16),
    ("getConvUnitCoeffLoadBytesPerCycle", (), 8, 16),
    ("getRptCountMax", (), 0x0FFF, 0xFFFF),
    ("supportsExchangeBusSharing", (), True, True),
    ("getTilesPerSharedExchangeBus", (), 2, 2),
    ("getFloatVectorWidth", (), 2, 2),
    ("getHalfVectorWidth", (), 4, 4),
    ("getQuarterVectorWidth", (), 8, 8),
    ("getVectorWidth", (HALF,), 4, 4),
    ("getWeightsPerConvUnit", (FLOAT,), 8, 8),
    ("getWeightsPerConvUnit", (HALF,), 16, 16),
    ("getConvUnitInputLoadElemsPerCycle", (HALF,), 4, 4),
    ("getConvUnitMaxPipelineDepth", (FLOAT,), 4, 4),
    ("getNumConvUnits", (HALF, FLOAT), 8, 8),
    ("getNumConvUnits", (HALF, HALF), 8, 16),
    ("getTileClockFrequency", (), 1.6e9, 1.33e9),
    ("getTypeSize", (HALF,), 2, 2),
    ("getAtomicStoreGranularity", (), 4, 4),
    ("getIpuLinkConfiguration", (), "default", IpuLinkConfiguration.Default),
    ("getIpuLinkTopology", (), "mesh", IpuLinkTopology.Mesh),
    ("getIpuLinkDomainSize", (), 64, 64),
    ("getInstanceSize", (), 64, 64),
    ("getGatewayMode", (), True, True),
]


@pytest.mark.parametrize(("getter", "args", "mk1", "mk2"), TABLE)
def test_getters_give_the_published_figures(
    getter: str, args: tuple[Any, ...], mk1: Any, mk2: Any
) -> None:
    assert getattr(TARGETS["mk1"], getter)(*args) == mk1
    assert getattr(TARGETS["mk2"], getter)(*args) == mk2


def test_memory_elements_lie_16_kib_apart() -> None:
    offsets = TARGETS["mk1"].getMemoryElementOffsets()
    assert (len(offsets), offsets[1], offsets[-1]) == (16, 16_384, 245_760)
    assert len(TARGETS["mk2"].getMemoryElementOffsets()) == 39


# 15 ns a hop, both ways; 1, 1, 2, 3 and 5 hops for 2, 3, 4, 8 and 16 IPUs; 1.33 cycles a ns.
@pytest.mark.parametrize(
    ("part", "ipus", "cycles"),
    [("mk1", 2, 48), ("mk2", 2, 40), ("mk2", 3, 40), ("mk2", 4, 80), ("mk2", 8, 120)]
    + [("mk2", 16, 200), ("bow", 4, 111)],
)
def test_a_sync_of_several_ipus_takes_15_ns_a_hop(part: str, ipus: int, cycles: int) -> None:
    assert make_target(part, num_ipus=ipus).getGlobalSyncCycles() == cycles
    assert make_target(part, num_ipus=ipus, global_sync_cycles=7).getGlobalSyncCycles() == 7


def test_a_tile_has_a_place_in_the_host_exchange_of_its_ipu() -> None:
    target = make_target("mk2", num_ipus=2)
    per, contexts = target.getNumTilesPerXBContext(), target.getNumContextsPerXB()
    for tile in (0, 31, 32, 1471, 1472, 2943):
        place = (
            target.getTileHostExchangeXB(tile) * contexts * per
            + target.getTileHostExchangeContext(tile) * per
            + target.getTileHostExchangeContextPosition(tile)
        )
        assert place == tile % 1472
    with pytest.raises(PoplarError, match="tile 2944; there are tiles 0 to 2943"):
        target.getTileHostExchangeXB(2944)


def test_a_cpu_target_has_one_tile_with_one_worker_and_no_interleaved_memory() -> None:
    target = Target.createCPUTarget()
    assert target.getTargetType() == TargetType.CPU == "CPU"
    assert (target.getNumTiles(), target.getNumWorkerContexts()) == (1, 1)
    assert target.getInterleavedMemoryElementIndex() >= len(target.getMemoryElementOffsets())
    assert target.getMaxIPUSyncDelay() == 0
    assert Target.createCPUTarget(True, 3).getNumTiles() == 3
    assert target.getTypeSize(HALF) == 2


def test_a_target_is_made_by_version_or_part_and_cut_down() -> None:
    target = Target.createIPUTarget(4, "ipu2", tilesPerIPU=16)
    assert (target.name, target.getNumTiles(), target.getTargetType()) == ("mk2", 64, "IPU_MODEL")
    virtual = target.createVirtualTarget(2, 8)
    assert (virtual.getNumIPUs(), virtual.getTilesPerIPU()) == (2, 8)
    assert virtual.relative_sync_delay.tolist() == target.relative_sync_delay[:8].tolist()
    assert virtual.getGlobalSyncCycles() == 40


def test_a_tile_with_little_memory_has_no_interleaved_region() -> None:
    for size in (1 << 16, 70_000):
        target = make_target("mk2", bytes_per_tile=size)
        assert target.interleaved_base == size
        assert target.getInterleavedMemoryElementIndex() == len(target.getMemoryElementOffsets())
    assert make_target("mk2", bytes_per_tile=1 << 18).interleaved_base == 212_992


def test_the_part_with_8_bit_floats_has_units_for_them() -> None:
    target = Target.createIPUTarget(1, "ipu21")
    assert target.getTargetArchString() == "ipu21"
    assert target.getFp8InFp16OutConvUnitsPerTile() == 16


def test_target_options_come_from_the_program_and_the_environment_wins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    outside = {"ipuLinkTopology": "Torus", "instanceSize": "0x10"}
    monkeypatch.setenv("POPLAR_TARGET_OPTIONS", json.dumps(outside))
    target = Target.createIPUTarget(2, "ipu2", {"ipuLinkTopology": "line", "gatewayMode": "false"})
    assert target.getIpuLinkTopology() is IpuLinkTopology.Torus
    assert target.getInstanceSize() == 16
    assert target.getGatewayMode() is False


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"ipuLinkTopolgy": "mesh"}', "no option 'ipuLinkTopolgy'; did you mean ipuLinkTopology"),
        ('{"ipuLinkTopology": "ring"}', "is 'ring'; it must be one of mesh, torus, line"),
        ("{", "POPLAR_TARGET_OPTIONS: not JSON"),
        ("[]", "a JSON object of options is needed"),
        ('{"instanceSize": -1}', "instanceSize is -1; a number that is 0 or more"),
    ],
)
def test_wrong_target_options_are_refused(
    monkeypatch: pytest.MonkeyPatch, text: str, said: str
) -> None:
    monkeypatch.setenv("POPLAR_TARGET_OPTIONS", text)
    with pytest.raises(InvalidOptionError, match=said):
        make_target("tiny")


def test_target_options_that_are_not_modelled_are_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("POPLAR_LOG_LEVEL", "WARN")
    make_target("tiny", {"ipuLinkTopology": "torus", "gatewayMode": True})
    assert capsys.readouterr().err.endswith(
        " W: ipuLinkTopology is torus: kept, but not modelled\n"
    )


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: Target.createIPUTarget(0), "numIPUs is 0; a whole number from 1"),
        (lambda: Target.createIPUTarget(1, "ipu3"), "no part 'ipu3'; known are mk1, mk2"),
        (lambda: TARGETS["tiny"].createVirtualTarget(1, 5), "tilesPerIPU is 5; there are 4"),
        (lambda: Target.createCPUTarget(numIPUs=True), "numIPUs is True; a whole number"),
    ],
)
def test_wrong_targets_are_refused(wrong: Any, said: str) -> None:
    with pytest.raises(PoplarError, match=said):
        wrong()
