"""Vertices of losses: the gradient of each output, and what it adds to the loss.

Values: PopLibs lib/popnn/codelets/Loss*Transform.cpp. Cycles: `loss_cycles`.
"""

from __future__ import annotations

import numpy as np

from simulator.codelets.elementwise.vertices import Compute, Cycles
from simulator.codelets.layers import loss_cycles
from simulator.codelets.vertex_type import POPNN_ESTIMATES, VertexTypes, worker
from simulator.graph.types import Array, IntArray, Type
from simulator.graph.vertices.vertex import Codelet, Operands, VertexGroup

TYPES = VertexTypes(
    (
        worker(
            "popnn::LossSumSquaredTransform<type>",
            "probs expected deltas transformed",
            loss_cycles.sum_squared,
            POPNN_ESTIMATES,
            (20, 100),
        ),
        worker(
            "popnn::LossCrossEntropyTransform<type>",
            "probs expected deltas transformed deltasScale modelOutputScaling",
            loss_cycles.cross_entropy,
            POPNN_ESTIMATES,
            (20, 120),
        ),
    )
)

# Added to a probability, so that the logarithm of 0 is finite: PopLibs' EncodingConstants.hpp.
LEAST = {"float": 1.17549435e-38, "half": 5.9605e-8}


def _codelet(name: str, compute: Compute, element_flops: int, once: int = 0) -> Codelet:
    def operations(group: VertexGroup) -> IntArray:
        return group.fields["deltas"].counts() * element_flops + once

    return TYPES.codelet(name, compute, operations)


def sum_squared_transform(dtype: Type) -> tuple[Codelet, Cycles]:
    """Return the loss vertex: deltas = probs - expected, loss = deltas^2 / 2."""

    def compute(operands: Operands) -> dict[str, Array]:
        deltas = operands.arrays["probs"] - operands.arrays["expected"]
        return {"deltas": deltas, "transformed": deltas * deltas * deltas.dtype.type(0.5)}

    codelet = _codelet(f"popnn::LossSumSquaredTransform<{dtype}>", compute, 3)
    return codelet, lambda n: loss_cycles.sum_squared(n, dtype)


def cross_entropy_transform(dtype: Type) -> tuple[Codelet, Cycles]:
    """Return the loss vertex of outputs that are probabilities times modelOutputScaling (s).

    deltas = deltasScale / s * (probs - s * expected), loss = -expected * log(probs / s).
    """

    def compute(operands: Operands) -> dict[str, Array]:
        names = ("probs", "expected", "deltasScale", "modelOutputScaling")
        probs, expected, scale, scaling = (
            operands.arrays[name].astype(np.float32) for name in names
        )
        size = operands.counts["deltas"]
        wide, factor = scaling.repeat(size), (scale / scaling).repeat(size)
        deltas = factor * (probs - expected * wide)
        logarithms = np.log(probs + np.float32(LEAST[dtype.name])) - np.log(wide)
        outputs = {"deltas": deltas, "transformed": -expected * logarithms}
        return {name: values.astype(dtype.numpy) for name, values in outputs.items()}

    codelet = _codelet(f"popnn::LossCrossEntropyTransform<{dtype}>", compute, 6, 2)
    return codelet, lambda n: loss_cycles.cross_entropy(n, dtype)
