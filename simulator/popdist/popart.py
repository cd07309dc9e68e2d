"""`popdist.popart`: sessions of PopART whose replicas are those of all instances."""

from __future__ import annotations

from typing import Any

from simulator import popart
from simulator.popdist.calls import place


def configureSessionOptions(options: popart.SessionOptions) -> None:
    """Set how many replicas there are in all and here, and which of them are here."""
    here = place()
    options.enableReplicatedGraphs = here.local_replicas > 1
    options.replicatedGraphCount = here.local_replicas
    options.enableDistributedReplicatedGraphs = here.instances > 1
    options.globalReplicationFactor = here.replicas
    options.globalReplicaOffset = here.replica_offset


def getDevice(
    ipus_per_replica: int | None = None, connectionType: Any = None, **model: Any
) -> popart.DeviceInfo:
    """Return an IPU Model with the IPUs of the replicas of this instance, each as many as asked.

    Without a number it is that of --ipus-per-replica. `model` are options of createIpuModelDevice,
    as ipuVersion="mk2".
    """
    del connectionType  # a model is there when it is needed
    each = ipus_per_replica or place().ipus_per_replica
    ipus = each * place().local_replicas
    return popart.DeviceManager().createIpuModelDevice({"numIPUs": ipus, **model})
