"""The devices that programs of files run on."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from simulator.device import Device
from simulator.device import DeviceManager as SystemDevices
from simulator.executable import Executable
from simulator.graph.errors import PoplarError
from simulator.graph.machine.constants import TargetType
from simulator.model_runtime.config import DeviceWaitConfig

T = TypeVar("T")


class DeviceManager:
    """Opens devices: a model of the machine of a program, or IPUs of the simulated system.

    >>> DeviceManager().getDevices(16)[0].getTarget().getNumIPUs()
    16
    """

    def getDevice(self, executable: Executable) -> Device:
        """Return a device of the machine that a program was compiled for; nobody else has it.

        >>> from simulator.executable import compileGraph
        >>> from simulator.trial import Trial
        >>> trial = Trial()  # for 4 tiles
        >>> executable = compileGraph(trial.graph, [trial.prog])
        >>> DeviceManager().getDevice(executable).getTarget().getNumTiles()
        4
        """
        return Device(executable.graph.device_target)

    def getDevices(self, num_ipus: int | None = None) -> list[Device]:
        """List the devices of the simulated system, those of a size if given.

        >>> len(DeviceManager().getDevices(8))
        2
        """
        return SystemDevices().getDevices(TargetType.IPU, num_ipus)

    def acquireDevice(
        self, num_ipus: int = 1, wait_config: DeviceWaitConfig | None = None
    ) -> Device:
        """Attach a device of the system that is free, or wait for one; raises PoplarError.

        >>> device = DeviceManager().acquireDevice(2)
        >>> device.isAttached()
        True
        >>> device.detach()
        """
        manager = SystemDevices()
        return waited(lambda: manager.acquireAvailableDevice(num_ipus), wait_config)

    def ipu_hardware_version(self) -> int:
        """Return the digits of the system's architecture: 2 of a Mk2.

        >>> DeviceManager().ipu_hardware_version()
        2
        """
        (device, *_) = self.getDevices(1)
        return int(device.getTarget().architecture.removeprefix("ipu"))


def waited(acquire: Callable[[], T], wait_config: DeviceWaitConfig | None) -> T:
    """Try again until there is a device, as long as the settings say; raises PoplarError."""
    config = wait_config or DeviceWaitConfig()
    end = time.monotonic() + config.seconds
    while True:
        try:
            return acquire()
        except PoplarError:
            if time.monotonic() >= end:
                raise
        time.sleep(max(0.0, config.sleepTime.total_seconds()))
