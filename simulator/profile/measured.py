"""The profiler mode of an execution, and what instrumentation measured in it.

Costs are static: what is executed again takes as long as before, so that a counter holds the cost
of what it measures once that has been executed, and 0 until then.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from simulator.compiler.executable import Executable
from simulator.compiler.instrument import counted_vertices
from simulator.graph.types import Array, IntArray

Ran = npt.NDArray[np.bool_]
# The mode of each level; one tile of the device and one of each IPU are both a single tile.
MODES = {
    "vertex": "VERTICES",
    "tile": "COMPUTE_SETS",
    "device": "SINGLE_TILE_COMPUTE_SETS",
    "ipu": "SINGLE_TILE_COMPUTE_SETS",
}


def profiler_mode(executable: Executable, *, profiled: bool = True) -> str:
    """Name the mode of an execution: that of compute before that of exchanges."""
    counted = executable.instrumentation
    if executable.graph.target.target_type == "CPU":
        return "CPU"
    if not profiled:
        return "NONE"
    if counted.compute:
        return MODES[counted.compute]
    if counted.external_exchange and executable.lowered.global_exchanges:
        return "EXTERNAL_EXCHANGES"
    return "HOST_EXCHANGES" if counted.host_exchange else "IPU_MODEL"


class Measured:
    """What the counters of a program hold."""

    def __init__(self, executable: Executable) -> None:
        self._executable = executable
        self._ran = np.zeros(len(executable.lowered.programs), dtype=np.bool_)

    def start(self) -> dict[str, Array]:
        """Return the counters before the first run, and what the counters of vertices belong to."""
        arrays = self._counters()
        if "measured_vertex_cycles" in arrays:
            groups = self._executable.lowered.groups
            sizes = [len(group) for group in groups]
            sets = np.array([group.compute_set for group in groups], dtype=np.int64)
            arrays["vertex_compute_set"] = np.repeat(sets, sizes)
            arrays["vertex_vertex_type"] = np.repeat(self._executable.type_of_group, sizes)
        return arrays

    def run(self, programs: IntArray) -> dict[str, Array]:
        """Count the execution of programs (rows); give the counters if any of them is new."""
        if self._ran[programs].all():
            return {}
        self._ran[programs] = True
        return self._counters()

    def _counters(self) -> dict[str, Array]:
        executable, counted = self._executable, self._executable.instrumentation
        lowered = executable.lowered
        arrays: dict[str, Array] = {}
        if counted.compute:
            ran = self._of("OnTileExecute", "compute_set", len(lowered.compute_sets))
            arrays |= _compute(executable, ran)
        for name, exchanges, tag, on in (
            ("external", lowered.global_exchanges, "GlobalExchange", counted.external_exchange),
            ("host", lowered.host_exchanges, "StreamCopy", counted.host_exchange),
        ):
            if on and exchanges:
                ran = self._of(tag, "exchange", len(exchanges))
                cycles = np.stack([exchange.cycles for exchange in exchanges])
                arrays[f"measured_{name}_exchange_cycles"] = cycles * ran[:, None]
        return arrays

    def _of(self, tag: str, column: str, count: int) -> Ran:
        """Return which rows of what programs of a type run have been executed."""
        mask = np.zeros(count, dtype=np.bool_)
        for row in np.flatnonzero(self._ran).tolist():
            program = self._executable.lowered.programs[row]
            if program.type == tag:
                mask[getattr(program, column)] = True
        return mask


def _compute(executable: Executable, ran: Ran) -> dict[str, Array]:
    """Return the counters of the compute sets that have been executed, by their level."""
    level, target = executable.instrumentation.compute, executable.graph.target
    if level == "vertex":
        return {"measured_vertex_cycles": _vertices(executable, ran)}
    by_tile = executable.costs.cycles * ran[:, None]
    if level == "tile":
        return {"measured_compute_set_cycles_by_tile": by_tile}
    arrays = {"measured_compute_set_cycles": by_tile.max(axis=1, initial=0)}
    if level == "ipu":
        shape = (len(by_tile), target.num_ipus, target.tiles_per_ipu)
        arrays["measured_compute_set_cycles_by_ipu"] = by_tile.reshape(shape).max(axis=2)
    return arrays


def _vertices(executable: Executable, ran: Ran) -> IntArray:
    """Return the tile's cycles from begin to end of each vertex.

    A worker has one cycle in as many as there are workers.
    """
    groups = counted_vertices(executable.instrumentation, executable.lowered.groups)
    workers = executable.graph.target.workers
    parts = [
        group.cycles * (1 if group.codelet.supervisor else workers) * ran[group.compute_set]
        for group in groups
    ]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
