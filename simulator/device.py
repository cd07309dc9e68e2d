"""Devices: models of the known parts, and the manager that lists and lends them."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np

from simulator.graph.arguments import refuse_in
from simulator.graph.errors import PoplarError
from simulator.graph.machine.constants import GlobalExchangeConstraint, TargetType
from simulator.graph.machine.options import DEFAULT_IPUS, DEFAULT_PART, model_defaults
from simulator.graph.machine.target import TARGETS, Target, make_target, part_name
from simulator.logging import log

MANAGED_PART = "mk2"  # what the manager lists: one system of so many IPUs of this part
MANAGED_IPUS = 16
GROUP_SIZES = (1, 2, 4, 8, 16)
# Number of the manager's IPU -> the device that holds it; what nobody holds on to is let go.
_HELD: WeakValueDictionary[int, Device] = WeakValueDictionary()


@refuse_in
@dataclass(slots=True, eq=False, weakref_slot=True)
class Device:
    """A device that programs run on.

    A device of the manager stands for some of its IPUs: while it is attached, no other device with
    one of them can be. Any other device (of an IPUModel, a CPU) is nobody else's.

    >>> IPUModel("mk2").createDevice().getTarget().getNumTiles()
    1472
    """

    target: Target
    id: int = 0
    driver_ids: tuple[int, ...] = ()
    _attached: bool = field(default=False, init=False)

    @staticmethod
    def createCPUDevice() -> Device:
        """Return a device that runs values without a model.

        >>> Device.createCPUDevice().getTarget().getNumTiles()
        1
        """
        return Device(Target.createCPUTarget())

    def getTarget(self) -> Target:
        """Return the target that programs for the device are compiled for.

        >>> IPUModel("mk2").createDevice().getTarget().getNumTiles()
        1472
        """
        return self.target

    def getId(self) -> int:
        """Return the manager's number of the device, 0 if it is not the manager's.

        >>> device = DeviceManager.createDeviceManager().getDevice(16)
        >>> device.getId()
        16
        """
        return self.id

    def getDriverIDs(self) -> list[int]:
        """List the manager's IPUs that the device stands for, none if it is not the manager's.

        >>> device = DeviceManager.createDeviceManager().getDevice(16)
        >>> device.getDriverIDs()
        [0, 1]
        """
        return list(self.driver_ids)

    def isAttached(self) -> bool:
        """Return whether a program has taken the device.

        >>> device = DeviceManager.createDeviceManager().getDevice(16)
        >>> device.isAttached()
        False
        """
        return self._attached

    def attach(self) -> bool:
        """Take the device; False when another device holds one of its IPUs.

        Raises PoplarError when it is attached already, by the program or by `Engine.load`.

        >>> device = DeviceManager.createDeviceManager().getDevice(16)
        >>> device.attach()
        True
        >>> DeviceManager().getDevice(1).attach()  # one of its IPUs
        False
        >>> device.detach()
        """
        if self._attached:
            raise PoplarError(f"device {self.id} is attached already; detach it first")
        if self._holder() is not None:
            return False
        for ipu in self.driver_ids:
            _HELD[ipu] = self
        self._attached = True
        return True

    def detach(self) -> None:
        """Let the device go.

        >>> device = DeviceManager.createDeviceManager().getDevice(16)
        >>> device.attach()
        True
        >>> device.detach()
        >>> device.isAttached()
        False
        """
        for ipu in self.driver_ids:
            if _HELD.get(ipu) is self:
                del _HELD[ipu]
        self._attached = False

    def take(self, subject: str) -> None:
        """Attach the device if it is not; raises PoplarError when another device holds it.

        >>> device = DeviceManager.createDeviceManager().getDevice(16)
        >>> device.take("example")
        >>> device.isAttached()
        True
        >>> device.detach()
        """
        if self._attached or self.attach():
            return
        holder = self._holder()
        place = f"as device {holder.id}" if holder is not None else "elsewhere"
        raise PoplarError(f"{subject}: device {self.id} is attached {place}; detach it first")

    def createVirtualDevice(self, tilesPerIPU: int) -> Device:
        """Return a device of the first tiles of each IPU, attached in the place of this one.

        >>> device = IPUModel("mk2").createDevice().createVirtualDevice(4)
        >>> device.getTarget().getNumTiles()
        4
        """
        target = self.target.createVirtualTarget(self.target.num_ipus, tilesPerIPU)
        device, attached = Device(target, self.id, self.driver_ids), self._attached
        if attached:
            self.detach()
            device.attach()
        return device

    def supportsRemoteBuffers(self) -> bool:
        """Return whether the host keeps remote buffers for the device; not for a CPU.

        >>> Device.createCPUDevice().supportsRemoteBuffers()
        False
        """
        return self.target.target_type is not TargetType.CPU

    def hasGateway(self) -> bool:
        """Return whether the device reaches the host through a gateway.

        >>> IPUModel("mk2").createDevice().hasGateway()
        True
        """
        return self.target.gateway_mode

    def _holder(self) -> Device | None:
        holders = (_HELD.get(ipu) for ipu in self.driver_ids)
        return next((device for device in holders if device not in (None, self)), None)


@refuse_in
class DeviceManager:
    """Lists simulated devices: 16 IPUs, alone and in groups of 2, 4, 8 and 16.

    They are Mk2, unless POPLAR_TARGET_OPTIONS sets `ipuModel.version`, and have code to count, as
    what they stand for has.

    Device ids count all groups of one IPU first, then those of two, and so on. Groups overlap, so
    that attaching one makes others unavailable, as `Device.attach` then says. All are IPU Models.

    >>> manager = DeviceManager.createDeviceManager()
    >>> device = manager.getDevice(16)
    >>> device.getTarget().getNumIPUs()
    2
    """

    @classmethod
    def createDeviceManager(cls) -> DeviceManager:
        """Return a manager.

        >>> DeviceManager.createDeviceManager().getDevice(0).getTarget().getNumIPUs()
        1
        """
        return cls()

    def getNumDevices(self) -> int:
        """Count the devices: 16 + 8 + 4 + 2 + 1.

        >>> manager = DeviceManager.createDeviceManager()
        >>> manager.getNumDevices()
        31
        """
        return len(_GROUPS)

    def getDevices(
        self,
        targetType: TargetType | str | None = None,
        numIPUs: int | None = None,
        options: Mapping[str, object] | None = None,
    ) -> list[Device]:
        """List the devices of a type with so many IPUs, all of them if neither is given.

        A request for `TargetType.IPU` lists the simulated devices too, so that a program written
        for hardware (as the end of tutorial 1) finds one; of type CPU there is one with one IPU.
        Target options are as in `Target.createIPUTarget`.

        >>> manager = DeviceManager.createDeviceManager()
        >>> [device.getId() for device in manager.getDevices(TargetType.IPU, 8)]
        [28, 29]
        """
        kind = None if targetType is None else _target_type(targetType)
        if kind is TargetType.CPU:
            return [Device.createCPUDevice()] if numIPUs in (None, 1) else []
        groups = [g for g, ipus in enumerate(_GROUPS) if numIPUs in (None, len(ipus))]
        return [self.getDevice(group, options) for group in groups]

    def getDevice(
        self, deviceManagerId: int, options: Mapping[str, object] | None = None
    ) -> Device:
        """Return a device by its id; raises PoplarError.

        >>> manager = DeviceManager.createDeviceManager()
        >>> manager.getDevice(30).getTarget().getNumIPUs()
        16
        """
        if deviceManagerId not in range(len(_GROUPS)):
            raise PoplarError(
                f"No such device set id: '{deviceManagerId}'; there are 0 to {len(_GROUPS) - 1}"
            )
        ipus = _GROUPS[deviceManagerId]
        part = part_name("DeviceManager", str(model_defaults().get(DEFAULT_PART, MANAGED_PART)))
        target = make_target(part, options, num_ipus=len(ipus), compile_ipu_code=True)
        return Device(target, int(deviceManagerId), ipus)

    def getChildDeviceIds(self, parentId: int, numChildDeviceIpus: int = 1) -> list[int]:
        """List the ids of the groups of a size that lie within a device.

        >>> manager = DeviceManager.createDeviceManager()
        >>> manager.getChildDeviceIds(17)
        [2, 3]
        """
        within = set(self.getDevice(parentId).driver_ids)
        return [
            number
            for number, ipus in enumerate(_GROUPS)
            if len(ipus) == numChildDeviceIpus and within.issuperset(ipus)
        ]

    def acquireAvailableDevice(
        self, numIPUs: int | None = None, options: Mapping[str, object] | None = None
    ) -> Device:
        """Return the first device with so many IPUs that can be attached, attached.

        Without a number it has one IPU, or as many as POPLAR_TARGET_OPTIONS says
        (`ipuModel.numIPUs`). Raises PoplarError when there is none.

        >>> manager = DeviceManager.createDeviceManager()
        >>> device = manager.acquireAvailableDevice(2)
        >>> device.isAttached(), device.getTarget().getNumIPUs()
        (True, 2)
        >>> device.detach()
        """
        numIPUs = int(model_defaults().get(DEFAULT_IPUS, 1)) if numIPUs is None else numIPUs
        devices = self.getDevices(TargetType.IPU, numIPUs, options)
        for device in devices:
            if device.attach():
                return device
        reason = f"all {len(devices)} are attached" if devices else f"there are {_SIZES_TEXT}"
        raise PoplarError(f"DeviceManager: no device with {numIPUs} IPUs is free; {reason}")


_GROUPS = [
    tuple(range(first, first + size))
    for size in GROUP_SIZES
    for first in range(0, MANAGED_IPUS, size)
]
_SIZES_TEXT = "groups of " + ", ".join(map(str, GROUP_SIZES))


def _target_type(kind: TargetType | str) -> TargetType:
    try:
        return TargetType(kind)
    except ValueError:
        types = ", ".join(TargetType)
        raise PoplarError(f"DeviceManager: target type {kind!r}; it must be {types}") from None


class RelativeSyncDelayType(Enum):
    """How much later than the first tile each tile leaves a sync."""

    AUTO = "AUTO"  # by the tile's place: the part's own table
    NO_DELAY = "NO_DELAY"  # all tiles at once


class IPUExchangeType(Enum):
    """How far the exchange makes use of one word that goes to several tiles."""

    BARE_NAKED_WITH_MULTICAST = "BARE_NAKED_WITH_MULTICAST"
    BARE_NAKED_WITH_AGGRESSIVE_MULTICAST = "BARE_NAKED_WITH_AGGRESSIVE_MULTICAST"


class Member(NamedTuple):
    """A member of IPUModel: the target field that it sets, and the least number it can be."""

    field: str
    least: int = 1
    most: int = (1 << 40) - 1


MEMBERS = {
    "numIPUs": Member("num_ipus", most=1 << 16),
    "tilesPerIPU": Member("tiles_per_ipu", most=1 << 20),
    "tilesPerSuperTile": Member("tiles_per_exchange_bus"),
    "numWorkerContexts": Member("workers"),
    "compileIPUCode": Member("compile_ipu_code"),
    "memoryBytesPerTile": Member("bytes_per_tile"),
    "tileClockFrequency": Member("clock_frequency"),
    "minIPUSyncDelay": Member("min_sync_delay", 0),
    "relativeSyncDelay": Member("relative_sync_delay"),
    "globalSyncCycles": Member("global_sync_cycles", 0),
    "globalExchangeConstraints": Member("global_exchange_constraints"),
    "hostFillBytesPerSecond": Member("host_fill_bytes_per_second", 0),
    "exchangeBytesPerCycle": Member("exchange_bytes_per_cycle"),
    "memcpyBytesPerCycle": Member("memcpy_bytes_per_cycle"),
    "dataPathWidth": Member("data_path_width", 64),  # one element of the widest type
    "numStrideBits": Member("stride_bits"),
    "rptCountMax": Member("repeat_count_max"),
    "atomicStoreGranularity": Member("atomic_store_bytes"),
    "convUnitCoeffLoadBytesPerCycle": Member("conv_unit_coefficient_load_bytes"),
    "accurateHalf": Member("accurate_half"),
} | {
    f"{kind}{name}": Member(f"{kind}_{column}")
    for kind in ("fp8", "fp16", "fp32")
    for name, column in (
        ("ConvUnitMaxPipelineDepth", "conv_unit_pipeline_depth"),
        ("ConvUnitInputLoadElemsPerCycle", "conv_unit_input_load"),
    )
}
MEMBERS |= {
    f"fp{a}InFp{b}OutConvUnitsPerTile": Member(f"fp{a}_in_fp{b}_out_conv_units", 0 if a == 8 else 1)
    for a, b in ((8, 16), (16, 16), (16, 32), (32, 32))
}
ALL_MEMBERS = (*MEMBERS, "IPUVersion", "IPUExchangeType")


@refuse_in
class IPUModel:
    """A part by its name (mk1, mk2, bow, tiny) or version ("ipu1", "ipu2"), maybe with changes.

    Members can be given by keyword or set before `createDevice`, as in
    `IPUModel("mk2", tilesPerIPU=16)` or `model.compileIPUCode = True`. What is not given is mk2 and
    one IPU, unless POPLAR_TARGET_OPTIONS sets `ipuModel.version` or `ipuModel.numIPUs`. Values
    that cannot be modelled are logged (WARN): half is always accurate, and one word goes at once to
    all tiles that want it.

    >>> target = IPUModel("mk2").createDevice().getTarget()
    >>> target.getNumTiles(), target.getBytesPerTile()
    (1472, 638976)
    """

    RelativeSyncDelayType = RelativeSyncDelayType
    ExchangeType = IPUExchangeType

    def __init__(self, name: str = "", /, **members: object) -> None:
        self._values: dict[str, Any] = {}
        defaults = model_defaults()
        part = defaults.get(DEFAULT_PART, "mk2") if name == "" else name
        self.IPUVersion = members.pop("ipuVersion", part)
        if DEFAULT_IPUS in defaults:
            members.setdefault("numIPUs", defaults[DEFAULT_IPUS])
        for member, value in members.items():
            setattr(self, member, value)

    def __setattr__(self, member: str, value: Any) -> None:
        if member.startswith("_"):
            object.__setattr__(self, member, value)
            return
        if member not in ALL_MEMBERS:
            near = difflib.get_close_matches(member, ALL_MEMBERS, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(ALL_MEMBERS)}"
            raise PoplarError(f"IPUModel: no member {member!r}; {hint}")
        _CHECKS.get(member, _check_number)(member, value)
        if member == "IPUVersion":
            object.__setattr__(self, "_name", part_name("IPUModel", value))
        self._values[member] = int(value) if isinstance(value, float | np.integer) else value

    def __getattr__(self, member: str) -> Any:
        if member.startswith("_") or member not in ALL_MEMBERS:
            raise AttributeError(member)
        if member in self._values:
            return self._values[member]
        if member in _DEFAULTS:
            return _DEFAULTS[member]
        if member == "globalSyncCycles":  # of several IPUs it follows from their number
            return self._target().global_sync_cycles
        return getattr(TARGETS[self._name], MEMBERS[member].field)

    def getTarget(self, options: Mapping[str, object] | None = None) -> Target:
        """Return the target of a device of this model.

        >>> IPUModel("mk2", tilesPerIPU=16, numIPUs=2).getTarget().getNumTiles()
        32
        """
        return self._target(options)

    def createDevice(
        self,
        options: Mapping[str, object] | None = None,
        accurateHalf: bool = True,
        deviceManagerId: int = 0,
    ) -> Device:
        """Make a device; target options are as in `Target.createIPUTarget`.

        `accurateHalf` is taken as Poplar takes it, and always true here.

        >>> IPUModel("mk2", numIPUs=2).createDevice().getTarget().getNumTiles()
        2944
        """
        del accurateHalf
        return Device(self._target(options), deviceManagerId)

    def _target(self, options: Mapping[str, object] | None = None) -> Target:
        changes = {
            MEMBERS[member].field: value
            for member, value in self._values.items()
            if member in MEMBERS and member not in _DEFAULTS
        }
        if self.relativeSyncDelay is RelativeSyncDelayType.NO_DELAY:
            base = TARGETS[self._name].relative_sync_delay
            tiles = changes.get("tiles_per_ipu", len(base))
            changes["relative_sync_delay"] = base[:1].repeat(tiles) * 0
        if self.globalExchangeConstraints:
            changes["global_exchange_constraints"] = tuple(self.globalExchangeConstraints)
        return make_target(self._name, options, **changes)


_DEFAULTS: dict[str, Any] = {
    "relativeSyncDelay": RelativeSyncDelayType.AUTO,
    "IPUExchangeType": IPUExchangeType.BARE_NAKED_WITH_AGGRESSIVE_MULTICAST,
    "globalExchangeConstraints": (),
    "accurateHalf": True,
}


def _check_number(member: str, value: Any) -> None:
    kind = type(getattr(TARGETS["mk2"], MEMBERS[member].field))
    if kind is bool and not isinstance(value, bool):
        raise PoplarError(f"IPUModel: {member} is {value!r}; True or False is needed")
    _, least, most = MEMBERS[member]
    is_integer = isinstance(value, int | np.integer) or (
        isinstance(value, float) and value.is_integer()
    )
    if kind is int and not (is_integer and not isinstance(value, bool) and least <= value <= most):
        problem = f"{member} is {value!r}"
        raise PoplarError(f"IPUModel: {problem}; a number from {least} to {most} is needed")


def _check_enum(kind: type[Enum]) -> Callable[[str, object], None]:
    def check(member: str, value: object) -> None:
        if not isinstance(value, kind):
            names = ", ".join(f"{kind.__name__}.{one.name}" for one in kind)
            raise PoplarError(f"IPUModel: {member} is {value!r}; it must be one of {names}")
        if value is IPUExchangeType.BARE_NAKED_WITH_MULTICAST:
            log("PO", "TARGET", "WARN", f"{member}: multicast is modelled as aggressive")

    return check


def _check_half(member: str, value: object) -> None:
    if not isinstance(value, bool):
        raise PoplarError(f"IPUModel: {member} is {value!r}; True or False is needed")
    if not value:
        log("PO", "TARGET", "WARN", f"{member} is {value}: half is always 16 bits of IEEE 754")


def _check_constraints(member: str, value: object) -> None:
    values = value if isinstance(value, list | tuple) else [value]
    wrong = [c for c in values if not isinstance(c, GlobalExchangeConstraint)]
    if wrong or values is not value:
        fault = wrong[0] if wrong else value
        raise PoplarError(f"IPUModel: {member}: {fault!r}; GlobalExchangeConstraints are needed")
    broken = next(
        (c for c in value if c.bandwidth <= 0 or min(map(min, c.flows), default=0) < 0), None
    )
    if broken is not None:
        raise PoplarError(f"IPUModel: {member}: {broken!r}; a bandwidth and IPUs from 0 are needed")


_CHECKS: dict[str, Callable[[str, Any], None]] = {
    "IPUVersion": lambda member, value: None,
    "IPUExchangeType": _check_enum(IPUExchangeType),
    "relativeSyncDelay": _check_enum(RelativeSyncDelayType),
    "accurateHalf": _check_half,
    "globalExchangeConstraints": _check_constraints,
}
