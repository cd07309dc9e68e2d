"""`popdist.poptorch`: modules of PyTorch whose replicas are those of all instances."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar, NoReturn

from simulator import poptorch
from simulator.popdist.calls import place
from simulator.poptorch.errors import Error
from simulator.poptorch.options.parts import Distributed

_SET = "Cannot call `{}` with popdist.poptorch.Options"


class _Distributed(Distributed):
    """The instances, as poprun started them."""

    REFUSED: ClassVar[Mapping[str, str]] = dict.fromkeys(("disable", "setEnvVarNames"), "")
    TAKEN: ClassVar[tuple[str, ...]] = ("IPUoFConfigFiles",)

    def _refused(self, name: str) -> Callable[..., NoReturn]:
        return _refusal(f"Distributed.{name}")

    def configureProcessId(self, process_id: int, num_processes: int) -> NoReturn:
        """Raise Error: poprun has numbered the processes."""
        _refusal("Distributed.configureProcessId")(process_id, num_processes)


class Options(poptorch.Options):
    """Options of a module whose replicas poprun has divided among instances."""

    TAKEN: ClassVar[tuple[str, ...]] = tuple(
        name for name in poptorch.Options.TAKEN if name != "useIpuId"
    )
    REFUSED: ClassVar[Mapping[str, str]] = {"useIpuId": ""}

    def __init__(self, ipus_per_replica: int | None = None) -> None:
        super().__init__()
        local = place()
        self.Distributed = _Distributed()
        self.Distributed._set(processId=local.instance, numProcesses=local.instances)
        self._set(
            replicationFactor=local.local_replicas, totalReplicas=local.replicas,
            firstReplica=local.replica_offset, ipus=ipus_per_replica or local.ipus_per_replica,
        )  # fmt: skip

    def _refused(self, name: str) -> Callable[..., NoReturn]:
        return _refusal(name)

    def replicationFactor(self, replication_factor: int) -> NoReturn:
        """Raise Error: --num-replicas of poprun says it."""
        _refusal("replicationFactor")(replication_factor)


def _refusal(name: str) -> Callable[..., NoReturn]:
    def setter(*_: object, **__: object) -> NoReturn:
        raise Error(_SET.format(name))

    return setter
