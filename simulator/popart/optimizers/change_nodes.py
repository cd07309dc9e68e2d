"""The changes of weights as nodes, as PopART's sessions show them.

Sources: popart `willow/src/patterns/sgd1decompose.cpp`, `sgd2decompose.cpp`, `adamdecompose.cpp`.
"""

from __future__ import annotations

from collections.abc import Iterable

from simulator.popart.optimizers.values import Optimizer
from simulator.popart.representation.ir import GRAPHCORE, ONNX, Node
from simulator.popart.settings.names import (
    reservedAcclFinalOutPrefix,
    reservedAcclToUpdatePrefix,
    reservedGradientPrefix,
    reservedUpdatedVarPrefix,
)


def change_nodes(optimizer: Optimizer, weights: Iterable[str]) -> list[Node]:
    """Return the nodes that change weights: norms of gradients, what is kept, the weights."""
    names = list(weights)
    clipped = [name for name in names if any(clip.covers(name) for clip in optimizer.clips)]
    squares = [_norm(name) for name in clipped]
    return [*squares, *(node for name in names for node in _changes(optimizer, name))]


def _norm(weight: str) -> Node:
    gradient = f"{reservedGradientPrefix()}{weight}"
    name = f"{weight}/ClipNorm"
    return Node(name, ONNX, "ReduceSumSquare", 1, (gradient,), (name,))


def _changes(optimizer: Optimizer, weight: str) -> list[Node]:
    """Return the nodes of a weight: SGD1 has names of its own for its velocity on the way."""
    kind, gradient = optimizer.shown_as(weight), f"{reservedGradientPrefix()}{weight}"
    updated = f"{reservedUpdatedVarPrefix()}{weight}"
    if kind == "SGD1":
        into, out = (
            f"{prefix()}{weight}"
            for prefix in (reservedAcclToUpdatePrefix, reservedAcclFinalOutPrefix)
        )
        (velocity,) = (f"{key}___{weight}" for key in optimizer.kept(weight))
        rows = [
            ("Accumulate", (velocity, gradient), into),
            ("SGD1AcclUpdate", (into,), out),
            ("SGD1VarUpdate", (weight, into), updated),
        ]
    else:
        kept = [f"{key}___{weight}" for key in optimizer.kept(weight)]
        rows = [("Accumulate", (label, gradient), f"Updated{label}") for label in kept]
        rows.append((f"{kind}VarUpdate", (weight, gradient, *kept), updated))
    return [
        Node(f"{weight}/{operator}", GRAPHCORE, operator, 1, inputs, (output,))
        for operator, inputs, output in rows
    ]
