"""The small report as old documents: with the keys of the chapter "Profiling" alone."""

from __future__ import annotations

from typing import Any

from pva.data.dataset import Dataset
from pva.formats import registry

EXCHANGE = ("bytesReceivedByTile", "bytesSentByTile", "cyclesByTile", "estimatedCyclesByTile")
# Keys of objects, and of the objects in lists; all of those that are not named here.
GRAPH_KEYS: dict[str, tuple[str, ...]] = {
    "target": (
        "type", "bytesPerIPU", "bytesPerTile", "clockFrequency", "numIPUs", "tilesPerIPU",
        "numTiles", "totalMemory", "relativeSyncDelayByTile", "minSyncDelay",
    ),
    "optimizationInfo": (),
    "graph": (),
    "vertexTypes": ("names", "sizes"),
    "computeSets": ("names", "vertexCounts", "vertexTypes", "cycleEstimates"),
    "exchanges": EXCHANGE,
    "externalExchanges": EXCHANGE,
    "hostExchanges": EXCHANGE,
    "programs": (
        "type", "name", "children", "computeSet", "exchange", "target", "memoryByInstruction",
    ),
    "controlPrograms": (),
    "functionPrograms": (),
    "memory": ("byTile", "byCategory", "byComputeSet", "byVertexType"),
}  # fmt: skip
EXECUTION_KEYS = ("profilerMode", "programTrace", "simulation")
SIMULATION_KEYS = ("cycles", "tileCycles", "steps")
STEP_KEYS = (
    "type", "syncType", "program", "name", "tileBalance", "activeTiles", "activeTileBalance",
    "cycles", "cyclesFrom", "cyclesTo", "totalData", "dataBalance", "threadBalance", "computeSet",
    "exchange", "externalExchange", "hostExchange", "cyclesOverlapped",
)  # fmt: skip
ACTIVITIES = (
    "activeCompute", "compute", "copySharedStructure", "doExchange", "globalExchange",
    "streamCopy", "sync",
)  # fmt: skip


def _only(value: Any, keys: tuple[str, ...]) -> Any:
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return [_only(row, keys) for row in value]
    if not keys or not isinstance(value, dict):
        return value
    return {key: value[key] for key in keys if key in value}


def graph_profile(data: Dataset) -> dict[str, Any]:
    """Return the graph profile as the chapter shows it."""
    whole = registry.value_of(data, "graph")
    return {key: _only(whole[key], keys) for key, keys in GRAPH_KEYS.items() if key in whole}


def execution_profile(data: Dataset) -> dict[str, Any]:
    """Return the execution profile as the chapter shows it, with its own slip for syncs."""
    whole = _only(registry.value_of(data, "execution"), EXECUTION_KEYS)
    simulation = _only(whole["simulation"], SIMULATION_KEYS)
    simulation["tileCycles"] = _only(simulation["tileCycles"], ACTIVITIES)
    simulation["steps"] = _only(simulation["steps"], STEP_KEYS)
    for step in simulation["steps"]:
        if step["type"] == "Sync":
            step["type"] = "sync"
    return whole | {"simulation": simulation}
