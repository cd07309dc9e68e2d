"""Vertices that sort, and that compare and swap; their cycles are in `sorting_cycles`."""

from __future__ import annotations

from functools import cache, partial
from typing import NamedTuple

import numpy as np

from simulator.codelets.indexing import cycles as indexing_cycles
from simulator.codelets.indexing import sorting_cycles
from simulator.codelets.indexing.sorting_cycles import Values
from simulator.codelets.vertex_type import POPOPS_CYCLES, VertexTypes, supervisor, worker
from simulator.graph.geometry.intervals import spread
from simulator.graph.types import Array, IntArray, Type
from simulator.graph.vertices.vertex import Codelet, Operands

TYPES = VertexTypes(
    (
        worker(
            "popops::HeapSortVertex<type>",
            "out",
            indexing_cycles.heap_sort,
            POPOPS_CYCLES,
            (8, 220),
        ),
        worker(
            "popops::HeapSortVertexKV<key,value>",
            "key value",
            sorting_cycles.heap_sort_key_value,
            POPOPS_CYCLES,
            (12, 280),
        ),
        supervisor(
            "popops::CompareAndSwapAtDistance<key>",
            "keys",
            partial(sorting_cycles.compare_and_swap, values="none"),
            POPOPS_CYCLES,
            (100, 200),
        ),
        supervisor(
            "popops::CompareAndSwapAtDistanceKeyVal<key,value,stable>",
            "keys values",
            partial(sorting_cycles.compare_and_swap, values="moved"),
            POPOPS_CYCLES,
            (104, 260),
        ),
    )
)


@cache
def heap_sort_codelet(dtype: Type) -> Codelet:
    """Return the worker that sorts its elements of `out` in ascending order."""

    def compute(operands: Operands) -> dict[str, Array]:
        values = operands.arrays["out"]
        return {"out": values[_order(operands, values, "out")]}

    return TYPES.codelet(f"popops::HeapSortVertex<{dtype}>", compute)


@cache
def heap_sort_key_value_codelet(key: Type, value: Type) -> Codelet:
    """Return the worker that sorts `key`, and moves the elements of `value` with it."""

    def compute(operands: Operands) -> dict[str, Array]:
        order = _order(operands, operands.arrays["key"], "key")
        return {name: operands.arrays[name][order] for name in ("key", "value")}

    return TYPES.codelet(f"popops::HeapSortVertexKV<{key},{value}>", compute)


def _order(operands: Operands, keys: Array, field: str) -> IntArray:
    """Return the places of the elements in the order of each vertex's keys."""
    counts = operands.counts[field]
    vertex = np.repeat(np.arange(len(counts)), counts)
    return np.lexsort((keys, vertex))


class Step(NamedTuple):
    """One step of a sorting network over `rows`: all blocks of twice a distance do the same.

    Row i of a block's first half is compared with row i + distance, or when mirrored with the row
    that is as far from the block's end; rows that are not there are the worst. Each row is `batch`
    elements, of problems that have nothing to do with one another.
    """

    distance: int
    mirrored: bool
    rows: int
    batch: int

    def pairs(self) -> tuple[IntArray, IntArray]:
        """Return the elements that are compared, the first of each pair and the second."""
        place = np.arange(self.distance, dtype=np.int64)
        block = np.arange(0, self.rows, 2 * self.distance)[:, None]
        partner = (2 * self.distance - 1 - place) if self.mirrored else (place + self.distance)
        first, second = (block + place).reshape(-1), (block + partner).reshape(-1)
        in_range = second < self.rows
        return self._elements(first[in_range]), self._elements(second[in_range])

    def _elements(self, rows: IntArray) -> IntArray:
        elements: IntArray = (rows[:, None] * self.batch + np.arange(self.batch)).reshape(-1)
        return elements

    def parameters(self, vertices: int, first: IntArray) -> dict[str, Array]:
        """Return the parameters of vertices that begin with the pairs `first`."""
        numbers = {name: np.full(vertices, value) for name, value in self._asdict().items()}
        return numbers | {"first": first}


@cache
def compare_and_swap_codelet(
    key: Type, value: Type | None, largest: bool, values: Values
) -> Codelet:
    """Return the supervisor that brings the better of each pair of its `keys` to the first place.

    What else it has (`values`, and `others`) moves with the keys; when values are compared, the
    smaller of them goes first among equal keys. Its elements lie in the order of the network's.
    """

    def compute(operands: Operands) -> dict[str, Array]:
        if "first" not in operands.prepared:
            operands.prepared |= _places(operands)
        first, second = operands.prepared["first"], operands.prepared["second"]
        keys = operands.arrays["keys"]
        left, right = keys[first], keys[second]
        swapped = right > left if largest else right < left
        if values == "compared":
            second_keys = operands.arrays["values"]
            swapped |= (left == right) & (second_keys[second] < second_keys[first])
        source = np.arange(len(keys))
        source[first[swapped]] = second[swapped]
        source[second[swapped]] = first[swapped]
        return {name: array[source] for name, array in operands.arrays.items()}

    if value is None:
        return TYPES.codelet(f"popops::CompareAndSwapAtDistance<{key}>", compute)
    secondary = str(values == "compared").lower()
    name = f"popops::CompareAndSwapAtDistanceKeyVal<{key},{value},{secondary}>"
    return TYPES.codelet(name, compute)


def _places(operands: Operands) -> dict[str, IntArray]:
    """Return the places of the two elements of each pair among the elements of all vertices."""
    parameters = operands.group.parameters
    distance, mirrored, rows, batch = (int(parameters[name][0]) for name in Step._fields)
    step = Step(distance, bool(mirrored), rows, batch)
    counts = operands.counts["keys"] // 2
    numbers = spread(parameters["first"], counts)
    elements = np.concatenate([side[numbers] for side in step.pairs()])
    vertex = np.tile(np.repeat(np.arange(len(counts)), counts), 2)
    place = np.empty(len(elements), dtype=np.int64)
    place[np.lexsort((elements, vertex))] = np.arange(len(elements))
    first, second = place.reshape(2, -1)
    return {"first": first, "second": second}
