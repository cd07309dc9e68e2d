"""The devices that a session can be made for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from simulator import device as poplar_device
from simulator.graph.errors import PoplarError
from simulator.graph.machine.constants import TargetType
from simulator.graph.machine.target import Target
from simulator.popart.errors import popart_exception
from simulator.popart.settings.choices import DeviceType
from simulator.popart.settings.names import DeviceConnectionType

# PopART's names of the options of createIpuModelDevice, and IPUModel's.
MODEL_OPTIONS = {
    "numIPUs": "numIPUs",
    "tilesPerIPU": "tilesPerIPU",
    "compileIPUCode": "compileIPUCode",
    "ipuVersion": "IPUVersion",
}


SIMULATED_TILES = 4  # of each IPU of a device of createSimDevice


@dataclass(slots=True, eq=False)
class DeviceInfo:
    """A device for sessions; `created` for them, not one of the system's groups of IPUs.

    >>> device = DeviceManager().createIpuModelDevice({"numIPUs": 2, "tilesPerIPU": 4})
    >>> device.numIpus, device.tilesPerIPU, device.version
    (2, 4, 'ipu2')
    """

    device: poplar_device.Device
    connectionType: DeviceConnectionType = DeviceConnectionType.Always
    created: bool = False

    @property
    def isAttached(self) -> bool:
        """Return whether a program has taken the device.

        >>> device = DeviceManager().acquireDeviceById(16)  # two of the IPUs of the system
        >>> device.isAttached
        True
        >>> device.detach()
        """
        return self.device.isAttached()

    @property
    def id(self) -> int:
        """Return the system's number of the device, 0 if it is not of the system.

        >>> device = DeviceManager().acquireDeviceById(16)  # two of the IPUs of the system
        >>> device.id
        16
        >>> device.detach()
        """
        return self.device.getId()

    @property
    def version(self) -> str:
        """Return the architecture: ipu1, ipu2 or ipu21.

        >>> device = DeviceManager().createIpuModelDevice({"numIPUs": 2, "tilesPerIPU": 4})
        >>> device.version
        'ipu2'
        """
        return self.target.architecture

    @property
    def type(self) -> DeviceType:
        """Return the kind of device.

        >>> device = DeviceManager().createIpuModelDevice({"numIPUs": 2, "tilesPerIPU": 4})
        >>> device.type.name
        'IpuModel'
        """
        if self.connectionType is DeviceConnectionType.Never:
            return DeviceType.OfflineIpu
        kinds = {TargetType.CPU: DeviceType.Cpu, TargetType.IPU_MODEL: DeviceType.IpuModel}
        return kinds.get(self.target.target_type, DeviceType.Ipu)

    def tryAttachUntilTimeout(self) -> bool:
        """Attach the device; return whether it was free.

        >>> device = DeviceManager().createIpuModelDevice({"numIPUs": 2, "tilesPerIPU": 4})
        >>> device.tryAttachUntilTimeout()
        True
        """
        return self.attach()

    @property
    def target(self) -> Target:
        """Return the target that programs for the device are compiled for.

        >>> device = DeviceManager().createIpuModelDevice({"numIPUs": 2, "tilesPerIPU": 4})
        >>> device.target.getNumTiles()
        8
        """
        return self.device.getTarget()

    @property
    def numIpus(self) -> int:
        """Count the IPUs.

        >>> device = DeviceManager().createIpuModelDevice({"numIPUs": 2, "tilesPerIPU": 4})
        >>> device.numIpus
        2
        """
        return self.target.num_ipus

    @property
    def tilesPerIPU(self) -> int:
        """Count the tiles of an IPU.

        >>> device = DeviceManager().createIpuModelDevice({"numIPUs": 2, "tilesPerIPU": 4})
        >>> device.tilesPerIPU
        4
        """
        return self.target.tiles_per_ipu

    @property
    def isCpu(self) -> bool:
        """Return whether values are computed without a model.

        >>> DeviceManager().createCpuDevice().isCpu
        True
        """
        return self.target.target_type == TargetType.CPU

    def getId(self) -> int:
        """Return the system's number of the device, 0 if it is not of the system.

        >>> device = DeviceManager().createIpuModelDevice({"numIPUs": 2, "tilesPerIPU": 4})
        >>> device.getId()
        0
        """
        return self.device.getId()

    def __enter__(self) -> DeviceInfo:
        return self

    def __exit__(self, *exception_info: object) -> None:
        """Free the device at the end of a block; one that was created for sessions stays."""
        if not self.created and self.device.isAttached():
            self.device.detach()

    def attach(self) -> bool:
        """Attach the device; return whether it is, also where it was before.

        >>> device = DeviceManager().createIpuModelDevice({"numIPUs": 2, "tilesPerIPU": 4})
        >>> device.attach(), device.attach()
        (True, True)
        """
        return self.isAttached or self.device.attach()

    def detach(self) -> None:
        """Let the device go.

        >>> device = DeviceManager().createIpuModelDevice({"numIPUs": 2, "tilesPerIPU": 4})
        >>> device.attach()
        True
        >>> device.detach()
        >>> device.isAttached
        False
        """
        self.device.detach()


class DeviceManager:
    """Makes devices: a CPU, an IPU Model, or one of the simulated system's groups of IPUs.

    >>> DeviceManager().createIpuModelDevice({"numIPUs": 2}).numIpus
    2
    """

    def createCpuDevice(self) -> DeviceInfo:
        """Return a device that computes values without a model.

        >>> DeviceManager().createCpuDevice().type.name
        'Cpu'
        """
        return DeviceInfo(poplar_device.Device.createCPUDevice(), created=True)

    def createSimDevice(self, options: Mapping[str, object] | None = None) -> DeviceInfo:
        """Return a simulated device, of 4 tiles unless told otherwise: here the IPU Model, too.

        >>> DeviceManager().createSimDevice().tilesPerIPU
        4
        """
        return self.createIpuModelDevice({"tilesPerIPU": SIMULATED_TILES, **(options or {})})

    def createOfflineIPUDevice(self, options: Mapping[str, object] | None = None) -> DeviceInfo:
        """Return a device to compile for, which no session can be loaded onto.

        Its options are those of `createIpuModelDevice`; `syncPattern` changes nothing here.

        >>> DeviceManager().createOfflineIPUDevice({"numIPUs": 2}).type.name
        'OfflineIpu'
        """
        known = {name: value for name, value in (options or {}).items() if name != "syncPattern"}
        info = self.createIpuModelDevice(known)
        info.connectionType = DeviceConnectionType.Never
        return info

    def createOfflineIpuFromDeviceInfo(self, deviceInfo: DeviceInfo) -> DeviceInfo:
        """Return a device to compile for that is like another one.

        >>> manager = DeviceManager()
        >>> manager.createOfflineIpuFromDeviceInfo(manager.createSimDevice()).tilesPerIPU
        4
        """
        target = deviceInfo.target
        part = {"ipuVersion": target.name, "tilesPerIPU": target.tiles_per_ipu}
        return self.createOfflineIPUDevice({"numIPUs": target.num_ipus, **part})

    def createIpuModelDevice(self, options: Mapping[str, object] | None = None) -> DeviceInfo:
        """Return an IPU Model: {"numIPUs": 1, "tilesPerIPU": 1216, "ipuVersion": "mk2"}.

        As in PopART it compiles code for the IPU, unless `compileIPUCode` is false.

        >>> DeviceManager().createIpuModelDevice({"numIPUs": 2, "tilesPerIPU": 16}).tilesPerIPU
        16
        """
        members: dict[str, Any] = {"compileIPUCode": True}
        part = ""
        for name, value in (options or {}).items():
            if name not in MODEL_OPTIONS:
                option_names = ", ".join(MODEL_OPTIONS)
                raise popart_exception(
                    f"createIpuModelDevice: option {name!r}; known are {option_names}"
                )
            if name == "ipuVersion":
                part = str(value)
            elif name == "compileIPUCode":
                members[name] = str(value).lower() in ("true", "1")
            elif value is not None:
                members[name] = _number(name, value)
        return DeviceInfo(poplar_device.IPUModel(part, **members).createDevice(), created=True)

    def enumerateDevices(
        self,
        pattern: object = None,
        numIpus: int = 1,
        deviceType: DeviceType = DeviceType.Ipu,
        connectionType: object = None,
        tilesPerIPU: int | None = None,
    ) -> list[DeviceInfo]:
        """List the groups of so many IPUs that can be acquired.

        With a number of tiles they are of the first tiles of each IPU alone. There are none of
        another type: those are created. Pattern and connection change nothing here.

        >>> [device.id for device in DeviceManager().enumerateDevices(numIpus=8)]
        [28, 29]
        """
        if deviceType is not DeviceType.Ipu:
            return []
        devices = poplar_device.DeviceManager().getDevices(TargetType.IPU, numIpus)
        return [DeviceInfo(_with_tiles(device, tilesPerIPU)) for device in devices]

    def setOnDemandAttachTimeout(self, attachTimeout: int) -> None:
        """Take a time to wait for a device; here one is free or not.

        >>> DeviceManager().setOnDemandAttachTimeout(10)
        """

    def acquireAvailableDevice(
        self,
        numIpus: int = 1,
        tilesPerIpu: int | None = None,
        pattern: object = None,
        connectionType: object = None,
        selectionCriterion: object = None,
    ) -> DeviceInfo:
        """Attach the first group of so many IPUs that is free; raises popart_exception.

        With `tilesPerIpu` it has the first tiles of each IPU alone; 0 and None are all of them. A
        device that is connected on demand is attached when a session is loaded onto it. Pattern and
        criterion change nothing here: all IPUs of a device sync.

        >>> with DeviceManager().acquireAvailableDevice(2) as device:
        ...     device.numIpus, device.isAttached
        (2, True)
        """
        self.enumerateDevices(
            numIpus=numIpus, tilesPerIPU=tilesPerIpu
        )  # refuses too many tiles before one is taken
        try:
            device = poplar_device.DeviceManager().acquireAvailableDevice(numIpus)
        except PoplarError as error:
            raise popart_exception(
                f"Failed to acquire device with {numIpus} IPUs. Ensure that there are sufficient "
                f"IPUs available: {error}"
            ) from None
        info = DeviceInfo(_with_tiles(device, tilesPerIpu), _connection(connectionType))
        if info.connectionType is DeviceConnectionType.OnDemand:
            info.detach()
        return info

    def tryAcquireAvailableDevice(self, numIpus: int = 1, *choice: Any, **named: Any) -> Any:
        """Do what `acquireAvailableDevice` does; return None where no device is free.

        >>> with DeviceManager().tryAcquireAvailableDevice(2) as device:
        ...     device.numIpus
        2
        """
        try:
            return self.acquireAvailableDevice(numIpus, *choice, **named)
        except popart_exception:
            return None

    def acquireDeviceById(
        self, id: int, pattern: object = None, connectionType: object = None
    ) -> DeviceInfo:
        """Attach a group of IPUs by its id; raises PoplarError.

        >>> with DeviceManager().acquireDeviceById(16) as device:
        ...     device.id, device.numIpus
        (16, 2)
        """
        device = poplar_device.DeviceManager().getDevice(id)
        try:
            device.take("acquireDeviceById")
        except PoplarError as error:
            raise popart_exception(f"Failed to acquire device with id '{id}': {error}") from None
        return DeviceInfo(device, _connection(connectionType))

    def tryAcquireDeviceById(
        self, id: int, pattern: object = None, connectionType: object = None
    ) -> DeviceInfo | None:
        """Attach a group of IPUs by its id; None where another has it.

        >>> with DeviceManager().tryAcquireDeviceById(16) as device:
        ...     device.id
        16
        """
        if poplar_device.DeviceManager().getDevice(id).isAttached():
            return None
        try:
            return self.acquireDeviceById(id, pattern, connectionType)
        except PoplarError:
            return None


def _connection(connection: object) -> DeviceConnectionType:
    return (
        connection if isinstance(connection, DeviceConnectionType) else DeviceConnectionType.Always
    )


def _with_tiles(device: poplar_device.Device, tiles: int | None) -> poplar_device.Device:
    """Return a device of so many tiles an IPU, attached where this one is."""
    if not tiles or tiles == device.getTarget().tiles_per_ipu:
        return device
    return device.createVirtualDevice(tiles)


def _number(name: str, value: Any) -> int:
    """Return a whole number, which may come as text."""
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        number = None
    if number is None or not (isinstance(value, str) or number == value):
        raise popart_exception(
            f"createIpuModelDevice: {name} is {value!r}; a whole number is needed"
        )
    return number
