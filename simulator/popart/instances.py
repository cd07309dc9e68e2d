"""The part of an instance in a session: its replicas among those of all, on their machine."""

from __future__ import annotations

from dataclasses import replace

from simulator.graph.target import Target, with_ipus
from simulator.instances.placement import placement
from simulator.instances.share import Share
from simulator.popart.errors import popart_exception
from simulator.popart.session_options import SessionOptions


def share_of(options: SessionOptions, what: str) -> Share | None:
    """Return the share of this instance, None when it has all replicas; raises popart_exception."""
    here, total, first = options.replicas, options.total_replicas, options.globalReplicaOffset
    if not options.enableDistributedReplicatedGraphs or total == here:
        return None
    if total & (total - 1) or total % here or first % here or first >= total:
        raise popart_exception(
            f"{what}: {here} replica(s) from {first} on of {total}; powers of two are needed, the "
            "first of an instance a multiple of those that it has"
        )
    place = placement()
    if place is None:
        raise popart_exception(
            f"{what}: {here} of {total} replicas are here; start the program by poprun, which "
            "starts the other instances"
        )
    if (place.instances * here, place.instance * here) != (total, first):
        raise popart_exception(
            f"{what}: globalReplicationFactor {total}, globalReplicaOffset {first} and {here} "
            f"replica(s) here; this is instance {place.instance} of {place.instances}, see "
            "popdist.popart.configureSessionOptions"
        )
    return Share(first, here)


def target_of_all(target: Target, options: SessionOptions) -> Target:
    """Return the machine of the replicas of all instances, each IPU-Link domain with its IPUs."""
    instances = options.total_replicas // options.replicas
    place = placement()
    if place is None:
        return target
    whole = with_ipus(target, target.num_ipus * instances)
    domain = whole.num_ipus // place.ilds
    return replace(whole, link_domain_size=min(whole.link_domain_size, domain))
