"""Vertices of a classifier's end: one-hot labels, which class, how many are right.

Their cycles: `indexing_cycles` (EncodeOneHot), `loss_cycles` (the others).
"""

from __future__ import annotations

import numpy as np

from simulator.codelets.costs import ceil_div
from simulator.codelets.elementwise.vertices import Cycles
from simulator.codelets.indexing import cycles as indexing_cycles
from simulator.codelets.layers import loss_cycles
from simulator.codelets.layers.loss_cycles import (
    CLASSES_A_WORKER,
    accuracy,
    class_gather,
    class_sparse,
)
from simulator.codelets.vertex_type import (
    POPNN_CYCLES,
    POPOPS_CYCLES,
    VertexTypes,
    supervisor,
    worker,
)
from simulator.graph.geometry.intervals import offsets_of, spread
from simulator.graph.types import FLOAT, HALF, UNSIGNED_INT, Array, IntArray, Type
from simulator.graph.vertices.vertex import Codelet, Operands

TYPES = VertexTypes(
    (
        supervisor(
            "popops::EncodeOneHot<index,out>, 2019",
            "indices out offsets sliceLength",
            indexing_cycles.one_hot_2019,
            f"{POPOPS_CYCLES} of 2019",
            (28, 120),
        ),
        worker(
            "popops::EncodeOneHotCustomValues<index,out>",
            "indices out offsets sliceLength On Off",
            indexing_cycles.one_hot_levels,
            POPOPS_CYCLES,
            (36, 140),
        ),
        worker(
            "popops::EncodeOneHot<index,out>",
            "indices out",
            indexing_cycles.one_hot,
            POPOPS_CYCLES,
            (16, 120),
        ),
        supervisor(
            "popnn::ReduceMaxClassGather<type,index>",
            "activations value index",
            loss_cycles.class_gather,
            POPNN_CYCLES,
            (20, 120),
        ),
        supervisor(
            "popnn::ReduceMinClassGather<type,index>",
            "activations value index",
            loss_cycles.class_gather,
            POPNN_CYCLES,
            (20, 120),
        ),
        supervisor(
            "popnn::ReduceMaxClassGather<type,index>, several workers",
            "activations value index",
            loss_cycles.class_gather_supervisor,
            POPNN_CYCLES,
            (20, 120),
        ),
        worker(
            "popnn::ReduceMaxClassSparse<type,index>",
            "activations labels value index",
            loss_cycles.class_sparse,
            POPNN_CYCLES,
            (16, 90),
        ),
        worker(
            "popnn::ReduceMinClassSparse<type,index>",
            "activations labels value index",
            loss_cycles.class_sparse,
            POPNN_CYCLES,
            (16, 90),
        ),
        worker(
            "popnn::CalcAccuracy<type>",
            "maxPerBatch expected numCorrect",
            loss_cycles.accuracy,
            POPNN_CYCLES,
            (16, 100),
        ),
    )
)


def one_hot_codelet(index: Type, output: Type, *, levels: bool = False) -> Codelet:
    """Return popops::EncodeOneHot: a one in each slice of `out` that has its row's label.

    With `levels` what field `on` holds, and elsewhere what `off` holds.

    Slice i of a vertex has `sliceLength[i]` classes from `offsets[i]` on of the row that
    `indices[i]` labels.
    """

    def compute(operands: Operands) -> dict[str, Array]:
        sizes = operands.arrays["sliceLength"].astype(np.int64)
        first = operands.arrays["offsets"].astype(np.int64)
        label = np.repeat(operands.arrays["indices"], sizes)
        chosen = label == spread(first, sizes)
        if levels:
            counts = operands.counts["out"]
            on, off = (np.repeat(operands.arrays[key], counts) for key in ("on", "off"))
            return {"out": np.where(chosen, on, off)}
        return {"out": chosen.astype(output.numpy)}

    family = "EncodeOneHotCustomValues" if levels else "EncodeOneHot"
    return TYPES.codelet(f"popops::{family}<{index},{output}>", compute)


def class_gather_codelet(dtype: Type, index: Type, *, largest: bool) -> tuple[Codelet, Cycles]:
    """Return the vertex that finds the largest (or smallest) of each 32 of its `activations`.

    It writes their values, those of float and half as floats, and their places in the row, of which
    the vertex has the part from `first` (a parameter) on.
    """

    def compute(operands: Operands) -> dict[str, Array]:
        counts = operands.counts["activations"]
        parts = ceil_div(counts, CLASSES_A_WORKER)
        start = np.repeat(offsets_of(counts)[:-1], parts)
        begins = start + spread(np.zeros(len(parts), dtype=np.int64), parts) * CLASSES_A_WORKER
        values = operands.arrays["activations"]
        winners = _first_best(values, begins, largest=largest)
        places = winners - start + np.repeat(operands.group.parameters["first"], parts)
        return _best(values[winners].astype(partial_type(dtype).numpy), places.astype(index.numpy))

    name = f"popnn::Reduce{_kind(largest)}ClassGather<{dtype},{index}>"
    return TYPES.codelet(name, compute), lambda n: class_gather(n, dtype)


def class_sparse_codelet(dtype: Type, index: Type, *, largest: bool) -> tuple[Codelet, Cycles]:
    """Return the vertex that selects the best of its `activations`, with its label of `labels`."""

    def compute(operands: Operands) -> dict[str, Array]:
        begins = offsets_of(operands.counts["activations"])[:-1]
        winners = _first_best(operands.arrays["activations"], begins, largest=largest)
        return _best(operands.arrays["activations"][winners], operands.arrays["labels"][winners])

    name = f"popnn::Reduce{_kind(largest)}ClassSparse<{dtype},{index}>"
    return TYPES.codelet(name, compute), lambda n: class_sparse(n, dtype)


def partial_type(dtype: Type) -> Type:
    """Return the type of the values that are the best so far: halves are kept as floats."""
    return FLOAT if dtype == HALF else dtype


def _kind(largest: bool) -> str:
    return "Max" if largest else "Min"


def _best(values: Array, places: Array) -> dict[str, Array]:
    return {"value": values, "index": places}


def _first_best(values: Array, begins: IntArray, *, largest: bool) -> IntArray:
    """Return the place of the first of the best values from each of `begins` on to the next."""
    pick = np.maximum if largest else np.minimum
    best = np.repeat(pick.reduceat(values, begins), np.diff(begins, append=len(values)))
    # What is no number is the best, as in NumPy's argmax.
    hits = np.flatnonzero((values == best) | (values != values))
    return hits[np.searchsorted(hits, begins)]


def accuracy_codelet(dtype: Type) -> tuple[Codelet, Cycles]:
    """Return popnn::CalcAccuracy: it adds to `numCorrect` how often `maxPerBatch` is `expected`."""

    def compute(operands: Operands) -> dict[str, Array]:
        right = operands.arrays["maxPerBatch"].astype(dtype.numpy) == operands.arrays["expected"]
        bounds = offsets_of(operands.counts["maxPerBatch"])[:-1]
        counted = np.add.reduceat(right.astype(UNSIGNED_INT.numpy), bounds)
        return {"numCorrect": operands.arrays["numCorrect"] + counted}

    return TYPES.codelet(f"popnn::CalcAccuracy<{dtype}>", compute), accuracy
