"""The part of an instance in a session: its replicas among those of all, on their machine."""

from __future__ import annotations

from dataclasses import replace

from simulator.graph.machine.target import Target, with_ipus
from simulator.instances.placement import placement
from simulator.instances.share import Share
from simulator.popart.errors import popart_exception
from simulator.popart.sessions.options import SessionOptions


def share_of(options: SessionOptions, subject: str) -> Share | None:
    """Return the share of this instance, None when it has all replicas; raises popart_exception."""
    replicas, total, first = options.replicas, options.total_replicas, options.globalReplicaOffset
    if not options.enableDistributedReplicatedGraphs or total == replicas:
        return None
    if total & (total - 1) or total % replicas or first % replicas or first >= total:
        raise popart_exception(
            f"{subject}: {replicas} replica(s) from {first} on of {total}; powers of two are "
            "needed, the first of an instance a multiple of those that it has"
        )
    place = placement()
    if place is None:
        raise popart_exception(
            f"{subject}: {replicas} of {total} replicas are here; start the program by poprun, "
            "which starts the other instances"
        )
    if (place.instances * replicas, place.instance * replicas) != (total, first):
        raise popart_exception(
            f"{subject}: globalReplicationFactor {total}, globalReplicaOffset {first} and "
            f"{replicas} replica(s) here; this is instance {place.instance} of {place.instances}, "
            "see popdist.popart.configureSessionOptions"
        )
    return Share(first, replicas)


def target_of_all(target: Target, options: SessionOptions) -> Target:
    """Return the machine of the replicas of all instances, each IPU-Link domain with its IPUs."""
    instances = options.total_replicas // options.replicas
    place = placement()
    if place is None:
        return target
    full_target = with_ipus(target, target.num_ipus * instances)
    domain = full_target.num_ipus // place.ilds
    return replace(full_target, link_domain_size=min(full_target.link_domain_size, domain))
