"""Instances of one program that share its replicas, started by `poprun`."""

from simulator.popdist.calls import (
    checkNumIpusPerReplica,
    getDeviceId,
    getInstanceIndex,
    getNumInstances,
    getNumIpusPerReplica,
    getNumLocalReplicas,
    getNumTotalReplicas,
    getReplicaIndexOffset,
    init,
    isBackendInitialized,
    isPopdistEnvSet,
)

__all__ = [
    "checkNumIpusPerReplica", "getDeviceId", "getInstanceIndex", "getNumInstances",
    "getNumIpusPerReplica", "getNumLocalReplicas", "getNumTotalReplicas", "getReplicaIndexOffset",
    "init", "isBackendInitialized", "isPopdistEnvSet",
]  # fmt: skip
