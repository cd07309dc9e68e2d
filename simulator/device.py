"""The device: a model of one of the known parts."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Any

from simulator.graph.errors import PoplarError
from simulator.graph.target import TARGETS, Target, make_target

# Poplar's version strings for the same parts.
VERSIONS = {"ipu1": "mk1", "ipu2": "mk2"}

# IPUModel's members, and the target fields that they set.
MEMBERS = {
    "numIPUs": "num_ipus",
    "tilesPerIPU": "tiles_per_ipu",
    "compileIPUCode": "compile_ipu_code",
    "memoryBytesPerTile": "bytes_per_tile",
    "tileClockFrequency": "clock_frequency",
    "minIPUSyncDelay": "min_sync_delay",
    "relativeSyncDelay": "relative_sync_delay",
    "globalSyncCycles": "global_sync_cycles",
    "exchangeBytesPerCycle": "exchange_bytes_per_cycle",
    "memcpyBytesPerCycle": "memcpy_bytes_per_cycle",
    "dataPathWidth": "data_path_width",
    "numWorkerContexts": "workers",
}


MAY_BE_ZERO = ("minIPUSyncDelay", "globalSyncCycles")


@dataclass(slots=True)
class Device:
    """A device that programs run on."""

    target: Target
    attached: bool = False

    def getTarget(self) -> Target:
        return self.target

    def getId(self) -> int:
        return 0

    def attach(self) -> bool:
        self.attached = True
        return True

    def detach(self) -> None:
        self.attached = False


class IPUModel:
    """A part by its name (mk1, mk2, bow, tiny) or version ("ipu1", "ipu2"), maybe with changes.

    Members can be given by keyword or set before `createDevice`, as in
    `IPUModel("mk2", tilesPerIPU=16)` or `model.compileIPUCode = True`.
    """

    def __init__(self, name: str = "mk2", *, ipuVersion: str = "", **members: Any) -> None:
        key = VERSIONS.get(ipuVersion or name, ipuVersion or name)
        if key not in TARGETS:
            known = ", ".join([*TARGETS, *VERSIONS])
            raise PoplarError(f"IPUModel: no part {key!r}; known are {known}")
        self._name = key
        self._members: dict[str, Any] = {}
        for member, value in members.items():
            setattr(self, member, value)

    def __setattr__(self, member: str, value: Any) -> None:
        if member.startswith("_"):
            object.__setattr__(self, member, value)
            return
        if member not in MEMBERS:
            near = difflib.get_close_matches(member, MEMBERS, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(MEMBERS)}"
            raise PoplarError(f"IPUModel: no member {member!r}; {hint}")
        number = type(getattr(TARGETS[self._name], MEMBERS[member])) in (int, float)
        least = 0 if member in MAY_BE_ZERO else 1
        if number and not (isinstance(value, int | float) and value >= least):
            raise PoplarError(f"IPUModel: {member} is {value!r}; a number from {least} is needed")
        self._members[MEMBERS[member]] = value

    def __getattr__(self, member: str) -> Any:
        if member not in MEMBERS:
            raise AttributeError(member)
        default = getattr(TARGETS[self._name], MEMBERS[member])
        return self._members.get(MEMBERS[member], default)

    def createDevice(self) -> Device:
        return Device(make_target(self._name, **self._members))
