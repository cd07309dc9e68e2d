"""Lower copies between the replicas of a top-level replicated graph: one exchange between IPUs."""

from __future__ import annotations

import numpy as np

from simulator.compiler.global_exchange import cross_replica_cost
from simulator.compiler.lowering.copy import fragments, lower_copy
from simulator.compiler.lowering.state import Building, Part
from simulator.graph.program import CrossReplicaCopy


def lower_cross_replica(building: Building, node: CrossReplicaCopy) -> list[Part]:
    """Send what each replica holds to the replica that the map names.

    A graph that was replicated as a part of another holds all replicas: there it is a copy.
    """
    name = node.name or f"{node.dst.describe()}/CrossReplicaCopy"
    graph = building.graph
    if graph.replication == 1:
        return lower_copy(building, name, node.src, node.dst)
    moved = fragments(building, node.src, node.dst)
    to_replica = np.array([node.replicaMap[r] for r in range(graph.replication)], dtype=np.int64)
    cost = cross_replica_cost(
        graph.target, to_replica, moved.from_tile, moved.to_tile, moved.size, moved.from_byte
    )
    written, kills = building.whole(moved.written, moved.size)
    return building.between_ipus(f"{name}/ExchangePre", cost, [moved.read], [written], kills)
