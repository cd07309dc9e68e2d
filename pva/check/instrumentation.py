"""Laws about what instrumentation measured."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pva.array_types import Values
from pva.check.law import Laws, Violation, at_most, equal
from pva.data.dataset import Dataset

LAWS = Laws()

# What a profiler mode must have; fields of other modes may stand beside it.
FIELDS = {
    "COMPUTE_SETS": ("measured_compute_set_cycles_by_tile",),
    "SINGLE_TILE_COMPUTE_SETS": ("measured_compute_set_cycles",),
    "VERTICES": ("measured_vertex_cycles", "vertex_compute_set", "vertex_vertex_type"),
    "EXTERNAL_EXCHANGES": ("measured_external_exchange_cycles",),
    "HOST_EXCHANGES": ("measured_host_exchange_cycles",),
}
WITHOUT_TRACE = ("NONE", "CPU")
# Measured by tile, the estimate, and the steps and the column of `programs` that it belongs to.
BY_TILE = {
    "measured_compute_set_cycles_by_tile": (
        "compute_set_cycles_by_tile", "OnTileExecute", "compute_set",
    ),
    "measured_external_exchange_cycles": ("external_exchange_cycles", "GlobalExchange", "exchange"),
    "measured_host_exchange_cycles": ("host_exchange_cycles", "StreamCopy", "exchange"),
}  # fmt: skip


@LAWS.needing("execution", walks=True)
def a_mode_has_its_fields(data: Dataset) -> Iterator[Violation]:
    """What a profiler mode measures is there; without a device there are neither steps nor time."""
    mode = str(data.texts("execution", "profiler_mode")[0])
    for name in FIELDS.get(mode, ()):
        if not data.has(name):
            yield Violation(f"profiler mode {mode}", f"no {name}", "it was measured")
    if mode in WITHOUT_TRACE and data.length("steps"):
        yield Violation(f"profiler mode {mode}", f"{data.length('steps')} steps", "there are none")


@LAWS.needing("execution", "target")
def only_a_cpu_is_profiled_as_one(data: Dataset) -> Iterator[Violation]:
    """The mode of a profile is that of a CPU just where the target is one."""
    mode, target = (
        data.texts(*at)[0] for at in (("execution", "profiler_mode"), ("target", "type"))
    )
    yield from equal(mode == "CPU", target == "CPU", "whether the mode is CPU", why="the target is")


def _last_cycles(data: Dataset, tag: str, column: str, count: int) -> Values:
    """Return by row the cycles of the last step that ran it; -1 for what no recorded step ran."""
    program = data.column("steps", "program")
    steps = np.flatnonzero((program >= 0) & (data.texts("steps", "type") == tag))
    rows = data.column("programs", column)[program[steps]]
    valid = (rows >= 0) & (rows < count)
    result = np.full(count, -1)
    result[rows[valid]] = data.column("steps", "cycles")[steps[valid]]
    return result


@LAWS.needing("steps", "programs")
def what_was_measured_is_what_the_steps_took(data: Dataset) -> Iterator[Violation]:
    """A step takes the cycles that its slowest tile measured."""
    measured = {
        name: (data.array(name).max(axis=1, initial=0), tag, column)
        for name, (_, tag, column) in BY_TILE.items()
        if data.has(name)
    }
    if data.has("measured_compute_set_cycles"):
        single = data.array("measured_compute_set_cycles")
        measured["measured_compute_set_cycles"] = (single, "OnTileExecute", "compute_set")
    for name, (longest, tag, column) in measured.items():
        cycles = _last_cycles(data, tag, column, len(longest))
        ran = cycles >= 0
        yield from equal(longest[ran], cycles[ran], name, f"executed {column}")


@LAWS.needing("execution")
def nothing_is_measured_below_its_estimate(data: Dataset) -> Iterator[Violation]:
    """What was executed took at least what was estimated, on every tile."""
    for name, (estimate, _, _) in BY_TILE.items():
        if data.has(name) and data.has(estimate):
            ran = data.array(name).any(axis=1)
            low, high = data.array(estimate)[ran], data.array(name)[ran]
            yield from at_most(low, high, f"{estimate} of what ran", "row, tile", "measured")


@LAWS.needing("measured_compute_set_cycles", "measured_compute_set_cycles_by_ipu")
def a_compute_set_lasts_as_long_as_on_its_slowest_ipu(data: Dataset) -> Iterator[Violation]:
    """The cycles of a compute set are those of the IPU that took longest."""
    slowest = data.array("measured_compute_set_cycles_by_ipu").max(axis=1, initial=0)
    measured = data.array("measured_compute_set_cycles")
    yield from equal(measured, slowest, "measured_compute_set_cycles", "compute set")


@LAWS.needing(
    "vertex_compute_set",
    "vertex_vertex_type",
    "compute_set_vertices",
    "compute_sets",
    "vertex_types",
)
def measured_vertices_are_those_of_the_compute_sets(data: Dataset) -> Iterator[Violation]:
    """There are as many vertices of each type in each compute set as are counted."""
    shape = (data.length("compute_sets"), data.length("vertex_types"))
    counted = np.zeros(shape, dtype=np.int64)
    rows = (data.column("compute_set_vertices", name) for name in ("compute_set", "vertex_type"))
    np.add.at(counted, tuple(rows), data.column("compute_set_vertices", "count"))
    listed = np.zeros(shape, dtype=np.int64)
    np.add.at(listed, (data.array("vertex_compute_set"), data.array("vertex_vertex_type")), 1)
    yield from equal(listed, counted, "vertices", "compute set, vertex type")


@LAWS.needing("measured_vertex_cycles", "vertex_compute_set", "compute_set_cycles_by_tile")
def no_vertex_takes_longer_than_its_compute_set(data: Dataset) -> Iterator[Violation]:
    """A vertex takes at most the cycles of the busiest tile of its compute set."""
    longest = data.array("compute_set_cycles_by_tile").max(axis=1, initial=0)
    limit = longest[data.array("vertex_compute_set")]
    yield from at_most(data.array("measured_vertex_cycles"), limit, "cycles", "vertex")
