"""`popdist.popart`: sessions of PopART whose replicas are those of all instances."""

from __future__ import annotations

from simulator import popart
from simulator.popdist.calls import place


def configureSessionOptions(options: popart.SessionOptions) -> None:
    """Set how many replicas there are in all and here, and which of them are here.

    >>> from simulator import popart, popdist
    >>> from simulator.popdist.popart import configureSessionOptions
    >>> options = popart.SessionOptions()
    >>> configureSessionOptions(options)
    >>> options.globalReplicationFactor
    1
    """
    local = place()
    options.enableReplicatedGraphs = local.local_replicas > 1
    options.replicatedGraphCount = local.local_replicas
    options.enableDistributedReplicatedGraphs = local.instances > 1
    options.globalReplicationFactor = local.replicas
    options.globalReplicaOffset = local.replica_offset


def getDevice(
    ipus_per_replica: int | None = None, connectionType: object = None, **model: object
) -> popart.DeviceInfo:
    """Return an IPU Model with the IPUs of the replicas of this instance, each as many as asked.

    Without a number it is that of --ipus-per-replica. `model` are options of createIpuModelDevice,
    as ipuVersion="mk2".

    >>> from simulator.popdist.popart import getDevice
    >>> getDevice().numIpus
    1
    """
    del connectionType  # a model is there when it is needed
    per_replica = ipus_per_replica or place().ipus_per_replica
    ipus = per_replica * place().local_replicas
    return popart.DeviceManager().createIpuModelDevice({"numIPUs": ipus, **model})
