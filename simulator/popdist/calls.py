"""What a program asks about its place in a run: PopDist's calls, under its names.

Without `poprun` a program is the one instance of a run, with one replica.
"""

from __future__ import annotations

from simulator import device
from simulator.graph.errors import PoplarError
from simulator.graph.machine.constants import TargetType
from simulator.instances import sockets
from simulator.instances.placement import Placement, placement


def place() -> Placement:
    """Return the place of this instance; raises PoplarError for a variable that cannot be read."""
    return placement() or Placement()


def isPopdistEnvSet() -> bool:
    """Return whether poprun started this process.

    >>> from simulator import popdist
    >>> popdist.isPopdistEnvSet()
    False
    """
    return placement() is not None


def getInstanceIndex() -> int:
    """Return the number of this instance, from 0.

    >>> getInstanceIndex(), getNumInstances(), getNumTotalReplicas()
    (0, 1, 1)
    """
    return place().instance


def getNumInstances() -> int:
    """Count the instances of the run.

    >>> from simulator import popdist
    >>> popdist.getNumInstances()
    1
    """
    return place().instances


def getNumTotalReplicas() -> int:
    """Count the replicas of all instances.

    >>> from simulator import popdist
    >>> popdist.getNumTotalReplicas()
    1
    """
    return place().replicas


def getNumLocalReplicas() -> int:
    """Count the replicas of this instance.

    >>> from simulator import popdist
    >>> popdist.getNumLocalReplicas()
    1
    """
    return place().local_replicas


def getReplicaIndexOffset() -> int:
    """Return the number of the first replica of this instance among all.

    >>> from simulator import popdist
    >>> popdist.getReplicaIndexOffset()
    0
    """
    return place().replica_offset


def getNumIpusPerReplica() -> int:
    """Count the IPUs of each replica, as --ipus-per-replica says.

    >>> from simulator import popdist
    >>> popdist.getNumIpusPerReplica()
    1
    """
    return place().ipus_per_replica


def checkNumIpusPerReplica(ipus_per_replica: int) -> bool:
    """Return whether each replica has so many IPUs.

    >>> from simulator import popdist
    >>> popdist.checkNumIpusPerReplica(1)
    True
    """
    return ipus_per_replica == place().ipus_per_replica


def getDeviceId(ipus_per_replica: int | None = None) -> int:
    """Return the id of the first group of IPUs that the replicas of this instance fit on exactly.

    Raises PoplarError when no group of the simulated system has as many.

    >>> from simulator import popdist
    >>> popdist.getDeviceId(1)
    0
    """
    per_replica = ipus_per_replica or place().ipus_per_replica
    ipus = place().local_replicas * per_replica
    groups = device.DeviceManager().getDevices(TargetType.IPU, ipus)
    if not groups:
        raise PoplarError(f"popdist.getDeviceId: no group of {ipus} IPUs")
    return groups[0].getId()


def init() -> None:
    """Get ready to exchange with the other instances; sessions do it themselves when needed.

    >>> from simulator import popdist
    >>> popdist.init()
    >>> popdist.isBackendInitialized()
    True
    """
    if place().instances > 1 and not place().offline:
        sockets.links()


def isBackendInitialized() -> bool:
    """Return whether this instance is ready to exchange with the others.

    >>> from simulator import popdist
    >>> popdist.init()
    >>> popdist.isBackendInitialized()
    True
    """
    return place().instances == 1 or sockets.has_links()
