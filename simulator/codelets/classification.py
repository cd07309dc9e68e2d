"""Vertices of a classifier's end: one-hot labels, cross entropy, which class, how many right.

Their cycles: `indexing_cycles` (EncodeOneHot), `nonlinearity_cycles` (the others).
"""

from __future__ import annotations

import numpy as np

from simulator.codelets.elementwise import Cycles
from simulator.codelets.indexing_cycles import one_hot
from simulator.codelets.nonlinearity_cycles import accuracy, class_gather, cross_entropy
from simulator.graph.intervals import offsets_of, spread
from simulator.graph.types import UNSIGNED_INT, Array, IntArray, Type
from simulator.graph.vertex import Codelet, Operands, VertexGroup


def one_hot_codelet(index: Type, output: Type, classes: int) -> tuple[Codelet, Cycles]:
    """Give popops::EncodeOneHot and its cycles by the rows that a vertex writes to.

    A vertex writes a part of the rows of `classes` elements, from position `first` (a parameter)
    on; `indices` are the labels of the rows that it touches.
    """

    def compute(operands: Operands) -> dict[str, Array]:
        if "row" not in operands.prepared:
            first = operands.group.parameters["first"]
            position = spread(first, operands.counts["out"])
            label = offsets_of(operands.counts["indices"])[:-1] - first // classes
            rows = position // classes + np.repeat(label, operands.counts["out"])
            operands.prepared |= {"row": rows, "class": position % classes}
        hot = operands.arrays["indices"][operands.prepared["row"]] == operands.prepared["class"]
        return {"out": hot.astype(output.numpy)}

    codelet = Codelet(f"popops::EncodeOneHot<{index},{output}>", compute, False, 16, 120)
    return codelet, lambda rows: one_hot(rows, output)


def cross_entropy_transform(dtype: Type) -> tuple[Codelet, Cycles]:
    """Give the loss vertex: deltas = probs - expected, loss = -expected * log(probs)."""
    least = np.finfo(dtype.numpy).tiny  # added, so that the logarithm of 0 is finite

    def compute(operands: Operands) -> dict[str, Array]:
        probs, expected = operands.arrays["probs"], operands.arrays["expected"]
        return {"deltas": probs - expected, "transformed": -expected * np.log(probs + least)}

    def operations(group: VertexGroup) -> IntArray:
        return group.fields["deltas"].counts() * 4

    name = f"popnn::LossCrossEntropyTransform<{dtype}>"
    return Codelet(name, compute, False, 20, 120, operations), cross_entropy


def class_gather_codelet(dtype: Type, *, largest: bool) -> tuple[Codelet, Cycles]:
    """Give the vertex that writes the index of the largest (or smallest) of its `activations`."""

    def compute(operands: Operands) -> dict[str, Array]:
        bounds = offsets_of(operands.counts["activations"])
        values = operands.arrays["activations"]
        pick = np.maximum if largest else np.minimum
        best = np.repeat(pick.reduceat(values, bounds[:-1]), np.diff(bounds))
        # Where there is a NaN it is the best, as in NumPy's argmax.
        hits = np.flatnonzero((values == best) | np.isnan(values))
        first = hits[np.searchsorted(hits, bounds[:-1])]
        return {"index": (first - bounds[:-1]).astype(UNSIGNED_INT.numpy)}

    kind = "Max" if largest else "Min"
    name = f"popnn::Reduce{kind}ClassGather<{dtype},{UNSIGNED_INT}>"
    return Codelet(name, compute, True, 20, 120), class_gather


def accuracy_codelet(dtype: Type) -> tuple[Codelet, Cycles]:
    """Give popnn::CalcAccuracy: it adds to `numCorrect` how often `found` is `expected`."""

    def compute(operands: Operands) -> dict[str, Array]:
        right = operands.arrays["found"].astype(dtype.numpy) == operands.arrays["expected"]
        bounds = offsets_of(operands.counts["found"])[:-1]
        counted = np.add.reduceat(right.astype(UNSIGNED_INT.numpy), bounds)
        return {"numCorrect": operands.arrays["numCorrect"] + counted}

    return Codelet(f"popnn::CalcAccuracy<{dtype}>", compute, False, 16, 100), accuracy
