"""The arrays of a report."""

from __future__ import annotations

from pva.schema.declaration import COMPUTE_OPTION, EXCHANGE_OPTION, EXECUTION_OPTION, Array
from pva.schema.enums import VERTEX_MEMORY_PARTS


def _exchange_arrays(table: str, place: str, cycles_key: str, subject: str) -> tuple[Array, ...]:
    index = (table, "tile")
    return (
        Array(f"{table}_bytes_received", "graph", f"{place}.bytesReceivedByTile", index, "bytes", f"received in {subject}"),
        Array(f"{table}_bytes_sent", "graph", f"{place}.bytesSentByTile", index, "bytes", f"sent in {subject}"),
        Array(f"{table}_code_bytes", "graph", f"{place}.codeBytesByTile", index, "bytes",
              f"code of {subject}; exchanges may share it"),
        Array(f"{table}_cycles", "graph", f"{place}.{cycles_key}", index, "cycles", f"time of {subject}"),
    )  # fmt: skip


def _vertex_memory(owner: str, place: str) -> tuple[Array, ...]:
    return tuple(
        Array(f"memory_by_{owner}_{part}", "graph", f"memory.{place}.{key}", (owner, "tile"), "bytes", meaning)
        for part, key, meaning in VERTEX_MEMORY_PARTS
    )  # fmt: skip


def _measured(name: str, place: str, index: tuple[str, ...], meaning: str, option: str) -> Array:
    last = f"cycles that {meaning} took when last executed, 0 for never"
    return Array(name, "execution", place, index, "cycles", last, option, replaced=True)


def _of_vertex(name: str, place: str, meaning: str) -> Array:
    return Array(name, "execution", place, ("vertex",), "", meaning, COMPUTE_OPTION)


# What instrumentation measures, at the places of the chapter's profiler modes.
MEASURED: tuple[Array, ...] = (
    _measured("measured_compute_set_cycles_by_tile", "computeSetCyclesByTile", ("compute_set", "tile"),
              "a compute set on a tile", COMPUTE_OPTION),
    _measured("measured_compute_set_cycles", "computeSetCycles", ("compute_set",), "a compute set on all tiles",
              COMPUTE_OPTION),
    _measured("measured_compute_set_cycles_by_ipu", "computeSetCyclesByIpu", ("compute_set", "ipu"),
              "a compute set on the tiles of an IPU", COMPUTE_OPTION),
    _measured("measured_vertex_cycles", "vertexCycles", ("vertex",), "a vertex", COMPUTE_OPTION),
    _of_vertex("vertex_compute_set", "vertexComputeSet", "row of compute_sets"),
    _of_vertex("vertex_vertex_type", "vertexType", "row of vertex_types"),
    _measured("measured_external_exchange_cycles", "externalExchangeCycles", ("external_exchange", "tile"),
              "an exchange between IPUs on a tile", EXCHANGE_OPTION),
    _measured("measured_host_exchange_cycles", "hostExchangeCycles", ("host_exchange", "tile"),
              "an exchange with the host on a tile", EXCHANGE_OPTION),
)  # fmt: skip

ARRAYS: tuple[Array, ...] = (
    Array("relative_sync_delay", "graph", "target.relativeSyncDelayByTile", ("tile_of_ipu",), "cycles",
          "sync delay of a tile above min_sync_delay, the same on each IPU"),
    Array("physical_tile", "graph", "target.physicalTile", ("tile_of_ipu",), "", "place of a tile in hardware order"),
    Array("compute_set_active_cycles_by_tile", "graph", "computeSets.cycleEstimates.activeCyclesByTile",
          ("compute_set", "tile"), "cycles", "cycles in which a vertex was being run"),
    Array("compute_set_active_cycles_by_vertex_type", "graph",
          "computeSets.cycleEstimates.activeCyclesByVertexType", ("compute_set", "vertex_type"), "cycles",
          "the same by vertex type, over all tiles"),
    Array("compute_set_cycles_by_tile", "graph", "computeSets.cycleEstimates.cyclesByTile",
          ("compute_set", "tile"), "cycles", "time on the tile, idle threads included"),
    Array("vertex_count_by_tile", "graph", "computeSets.vertexCountsByTile", ("compute_set_vertices", "tile"), "",
          "vertices of a type in a compute set on the tile; first index: row of compute_set_vertices"),
    *_exchange_arrays("exchange", "exchanges", "cyclesByTile", "an internal exchange"),
    *_exchange_arrays("external_exchange", "externalExchanges", "estimatedCyclesByTile", "an exchange between IPUs"),
    *_exchange_arrays("host_exchange", "hostExchanges", "estimatedCyclesByTile", "an exchange with the host"),
    Array("memory_by_category", "graph", "memory.byCategory", ("category", "region", "overlap", "tile"), "bytes",
          "memory by use, region, and whether it is overlapped by something that is not live at the same time"),
    *_vertex_memory("compute_set", "byComputeSet"),
    *_vertex_memory("vertex_type", "byVertexType"),
    Array("always_live_bytes", "graph", "memory.liveness.alwaysLive.bytesByTile", ("tile",), "bytes", "always live"),
    Array("not_always_live_max_bytes", "graph", "memory.liveness.notAlwaysLive.maxBytesByTile", ("tile",), "bytes",
          "most that is live at a step beside the always-live"),
    Array("liveness_bytes_by_ipu", "graph", "memory.liveness.notAlwaysLive.bytesByIpu", ("liveness_step", "ipu"),
          "bytes", "live beside the always-live; in the documents steps[].bytesByIpu"),
    Array("tile_clock", "execution", "simulation.tileClock", ("snapshot", "tile"), "cycles",
          "clock of each tile before steps 0, 1024, 2048, ...", EXECUTION_OPTION),
    *MEASURED,
)  # fmt: skip
