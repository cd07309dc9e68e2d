"""Devices, the manager that lends them, and the members of the IPU Model."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from simulator.device import (
    ALL_MEMBERS,
    Device,
    DeviceManager,
    IPUExchangeType,
    IPUModel,
    RelativeSyncDelayType,
)
from simulator.engine import Engine
from simulator.graph.errors import PoplarError
from simulator.graph.graph import Graph
from simulator.graph.machine.constants import (
    GlobalExchangeConstraint,
    GlobalExchangeFlow,
    TargetType,
)
from simulator.graph.program import Sequence


@pytest.fixture
def manager() -> DeviceManager:
    gc.collect()  # devices of earlier tests let go
    return DeviceManager.createDeviceManager()


def test_the_manager_lists_groups_of_sixteen_ipus(manager: DeviceManager) -> None:
    assert manager.getNumDevices() == 16 + 8 + 4 + 2 + 1
    assert len(manager.getDevices()) == 31
    assert [len(manager.getDevices(TargetType.IPU, n)) for n in (1, 2, 4, 8, 16, 3)] == [
        *(16, 8, 4, 2, 1, 0)
    ]
    pair = manager.getDevices(TargetType.IPU_MODEL, 2)[1]
    assert (pair.getId(), pair.getDriverIDs()) == (17, [2, 3])
    assert pair.getTarget().getNumIPUs() == 2
    assert [d.getTarget().getTargetType() for d in manager.getDevices("CPU")] == ["CPU"]


def test_the_loop_at_the_end_of_tutorial_1_finds_a_device(manager: DeviceManager) -> None:
    first = manager.getDevices(TargetType.IPU, 1)[0]
    assert first.attach()
    found = None
    for device in manager.getDevices(TargetType.IPU, 1):
        if device.attach():
            found = device
            break
    assert found is not None
    assert (found.getId(), found.isAttached()) == (1, True)


def test_a_device_that_another_holds_cannot_be_attached(manager: DeviceManager) -> None:
    first, again = manager.getDevice(3), manager.getDevice(3)
    assert first.attach()
    assert not again.attach()
    assert not again.isAttached()
    with pytest.raises(PoplarError, match="Engine: device 3 is attached as device 3; detach it"):
        again.take("Engine")
    first.detach()
    again.take("Engine")
    assert again.isAttached()


def test_a_second_attach_is_refused() -> None:
    device = IPUModel("tiny").createDevice()
    device.attach()
    with pytest.raises(PoplarError, match="device 0 is attached already; detach it first"):
        device.attach()
    device.detach()
    assert device.attach()


def loaded(device: Device) -> Engine:
    graph = Graph(device.getTarget())
    engine = Engine(graph, Sequence())
    engine.load(device)
    return engine


def test_an_engine_takes_its_device_and_does_not_run_without_it(manager: DeviceManager) -> None:
    device = manager.getDevice(4)
    engine = loaded(device)
    assert device.isAttached()
    engine.run()
    loaded(device).run()  # several engines may share a device
    with pytest.raises(PoplarError, match="Engine: device 4 is attached as device 4"):
        loaded(manager.getDevice(4))
    device.detach()
    with pytest.raises(PoplarError, match="device 4 has been detached; load it again"):
        engine.run()
    loaded(manager.getDevice(4)).run()


def test_devices_of_the_manager_count_code_and_a_model_when_told(manager: DeviceManager) -> None:
    acquired = manager.acquireAvailableDevice(2)
    assert acquired.getTarget().compile_ipu_code
    assert acquired.createVirtualDevice(4).getTarget().compile_ipu_code
    assert not IPUModel().getTarget().compile_ipu_code


def test_groups_that_share_an_ipu_exclude_each_other(manager: DeviceManager) -> None:
    pair = manager.acquireAvailableDevice(2)
    assert pair.getDriverIDs() == [0, 1]
    assert manager.acquireAvailableDevice(1).getId() == 2
    assert not manager.getDevice(30).attach()
    with pytest.raises(PoplarError, match="no device with 16 IPUs is free; all 1 are attached"):
        manager.acquireAvailableDevice(16)
    del pair
    gc.collect()
    assert manager.acquireAvailableDevice(1).getId() == 0


def test_the_groups_within_a_device_are_its_children(manager: DeviceManager) -> None:
    assert manager.getChildDeviceIds(17) == [2, 3]
    assert manager.getChildDeviceIds(30, 8) == [28, 29]


def test_devices_of_models_are_nobody_elses() -> None:
    one, other = IPUModel("tiny").createDevice(), IPUModel("tiny").createDevice()
    assert one.attach()
    assert other.attach()
    assert Device.createCPUDevice().getTarget().getTargetType() == "CPU"
    assert not Device.createCPUDevice().supportsRemoteBuffers()


@pytest.mark.parametrize(
    ("member", "value", "getter"),
    [
        ("numIPUs", 4, "getNumIPUs"),
        ("tilesPerIPU", 8, "getTilesPerIPU"),
        ("tilesPerSuperTile", 1, "getTilesPerSharedExchangeBus"),
        ("numWorkerContexts", 3, "getNumWorkerContexts"),
        ("memoryBytesPerTile", 1 << 16, "getBytesPerTile"),
        ("tileClockFrequency", 2e9, "getTileClockFrequency"),
        ("minIPUSyncDelay", 0, "getMinIPUSyncDelay"),
        ("globalSyncCycles", 0, "getGlobalSyncCycles"),
        ("exchangeBytesPerCycle", 8, "getExchangeBytesPerCycle"),
        ("memcpyBytesPerCycle", 16, "getMemcpyBytesPerCycle"),
        ("dataPathWidth", 128, "getDataPathWidth"),
        ("numStrideBits", 9, "getNumStrideBits"),
        ("rptCountMax", 15, "getRptCountMax"),
        ("atomicStoreGranularity", 8, "getAtomicStoreGranularity"),
        ("convUnitCoeffLoadBytesPerCycle", 8, "getConvUnitCoeffLoadBytesPerCycle"),
        ("fp16ConvUnitMaxPipelineDepth", 2, "getFp16ConvUnitMaxPipelineDepth"),
        ("fp32ConvUnitInputLoadElemsPerCycle", 1, "getFp32ConvUnitInputLoadElemsPerCycle"),
        ("fp8InFp16OutConvUnitsPerTile", 4, "getFp8InFp16OutConvUnitsPerTile"),
        ("fp16InFp32OutConvUnitsPerTile", 4, "getFp16InFp32OutConvUnitsPerTile"),
    ],
)
def test_a_member_of_the_model_reaches_its_target(member: str, value: Any, getter: str) -> None:
    model = IPUModel("ipu2", tilesPerIPU=16)
    setattr(model, member, value)
    assert getattr(model, member) == value
    assert getattr(model.createDevice().getTarget(), getter)() == value


def test_every_member_has_a_default() -> None:
    model = IPUModel()
    values = {member: getattr(model, member) for member in ALL_MEMBERS}
    assert values["compileIPUCode"] is False
    assert values["relativeSyncDelay"] is RelativeSyncDelayType.AUTO
    assert (values["IPUVersion"], values["tilesPerIPU"]) == ("mk2", 1472)
    model.numIPUs = 4
    assert model.globalSyncCycles == 80


def test_tiles_leave_a_sync_together_without_a_relative_delay() -> None:
    model = IPUModel("ipu1", minIPUSyncDelay=0)
    model.relativeSyncDelay = IPUModel.RelativeSyncDelayType.NO_DELAY
    target = model.createDevice().getTarget()
    assert target.getMaxIPUSyncDelay() == 0
    assert target.sync_delay_by_tile().tolist() == [0] * 1216


def test_what_cannot_be_modelled_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("POPLAR_LOG_LEVEL", "WARN")
    model = IPUModel("tiny", accurateHalf=False)
    model.IPUExchangeType = IPUExchangeType.BARE_NAKED_WITH_MULTICAST
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(" W: ")[1].partition(":")[0] for line in lines] == [
        "accurateHalf is False",
        "IPUExchangeType",
    ]
    assert model.createDevice().getTarget().accurate_half


def test_constraints_of_exchanges_between_ipus_reach_the_target() -> None:
    model = IPUModel("tiny", numIPUs=2)
    model.globalExchangeConstraints = [GlobalExchangeConstraint(1e9, (GlobalExchangeFlow(0, 1),))]
    target = model.createDevice().getTarget()
    assert target.global_exchange_constraints[0].flows[0].dst == 1
    with pytest.raises(PoplarError, match="a bandwidth and IPUs from 0 are needed"):
        model.globalExchangeConstraints = [GlobalExchangeConstraint(0, ())]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda m: m.getDevice(31), "No such device set id: '31'; there are 0 to 30"),
        (lambda m: m.getDevices("GPU"), "target type 'GPU'; it must be IPU, IPU_MODEL, CPU"),
        (lambda m: m.acquireAvailableDevice(3), "groups of 1, 2, 4, 8, 16"),
        (lambda m: IPUModel("mk2", compileIPUCode="yes"), "compileIPUCode is 'yes'; True or False"),
        (lambda m: IPUModel("mk2", numIPUs=1.5), "numIPUs is 1.5; a number from 1"),
        (lambda m: IPUModel("mk2", relativeSyncDelay=0), "RelativeSyncDelayType.AUTO, Rel"),
        (lambda m: IPUModel("mk2", globalExchangeConstraints=[1]), "GlobalExchangeConstraints are"),
        (lambda m: IPUModel("mk2", globalExchangeConstraints=1), "Constraints: 1; Global"),
        (lambda m: IPUModel("mk2", accurateHalf="no"), "accurateHalf is 'no'; True or False"),
        (lambda m: IPUModel("cpu"), "no part 'cpu'"),
    ],
)
def test_wrong_requests_are_refused(manager: DeviceManager, wrong: Any, said: str) -> None:
    with pytest.raises(PoplarError, match=said):
        wrong(manager)
