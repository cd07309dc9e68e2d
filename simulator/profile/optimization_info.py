"""What the compiler can tell about its own work, as figures by name (`optimizationInfo`).

None of them is a time: documents are the same on every machine.
"""

from __future__ import annotations

from collections.abc import Sequence

from pva import schema
from simulator.compiler.executable import Exchange, Executable

OVERLAPPED = schema.OVERLAPS.index("overlapped")


def optimization_info(executable: Executable) -> dict[str, float]:
    """Count what was given, what was made of it, and what that saved; sizes are bytes."""
    graph, lowered = executable.graph, executable.lowered
    categories = [variable.category for variable in lowered.variables]
    vertices = sum(map(len, lowered.groups))
    own_vertices = sum(map(len, graph.vertex_groups()))
    figures = {
        "variablesInGraph": len(graph.variables),
        "variablesAdded": len(categories),
        "variablesLowered": len(executable.pieces.variable),
        "messageVariables": categories.count("message"),
        "rearrangementVariables": categories.count("rearrangement"),
        "computeSetsInGraph": len(graph.compute_sets),
        "computeSetsAdded": len(lowered.compute_sets) - len(graph.compute_sets),
        "verticesInGraph": own_vertices,
        "verticesAdded": vertices - own_vertices,
        "vertexTypes": len(executable.vertex_types),
        "edges": executable.edges,
        "programsLowered": len(lowered.programs),
        "internalExchanges": len(lowered.exchanges),
        "internalExchangeBytesSent": _sent(lowered.exchanges),
        "externalExchanges": len(lowered.global_exchanges),
        "externalExchangeBytesSent": _sent(lowered.global_exchanges),
        "hostExchanges": len(lowered.host_exchanges),
        "hostExchangeBytesSent": _sent(lowered.host_exchanges),
        "livenessSteps": len(executable.liveness.program),
        "bytesOverlapped": executable.memory.by_category[:, :, OVERLAPPED].sum(),
        "bytesMaxLive": executable.liveness.bytes.max(initial=0),
    }
    return {name: float(value) for name, value in figures.items()}


def _sent(exchanges: Sequence[Exchange]) -> int:
    return sum(int(exchange.sent.sum()) for exchange in exchanges)
