"""A GRU gives what its formulas give, in both directions and with either place of the reset."""

from __future__ import annotations

import numpy as np
import pytest
from models import model, node, outcome, prepared

from simulator import popart
from simulator.graph.types import Array

RANDOM = np.random.default_rng(7)
STEPS, BATCH, INPUTS, SIZE = 4, 2, 3, 5
X = RANDOM.normal(size=(STEPS, BATCH, INPUTS)).astype(np.float32)
SHAPES = {"w": (2, 3 * SIZE, INPUTS), "r": (2, 3 * SIZE, SIZE), "b": (2, 6 * SIZE),
          "h": (2, BATCH, SIZE)}  # fmt: skip
WEIGHTS = {name: RANDOM.normal(size=shape).astype(np.float32) for name, shape in SHAPES.items()}


def by_hand(x: Array, way: int, after: int) -> Array:
    """Return the output of each step of a direction: gates z, r, then the candidate."""
    w, r, b, h = (WEIGHTS[name][way].astype(np.float64) for name in "wrbh")
    inputs, states = np.split(w, 3), np.split(r, 3)
    own, other = np.split(b[: 3 * SIZE], 3), np.split(b[3 * SIZE :], 3)
    found = []
    for row in x.astype(np.float64):
        z, reset = (
            1 / (1 + np.exp(-(row @ inputs[g].T + own[g] + h @ states[g].T + other[g])))
            for g in (0, 1)
        )
        late = reset * (h @ states[2].T + other[2])
        early = (reset * h) @ states[2].T + other[2]
        candidate = np.tanh(row @ inputs[2].T + own[2] + (late if after else early))
        h = (1 - z) * candidate + z * h
        found.append(h)
    return np.array(found)


@pytest.mark.parametrize("after", [0, 1])
def test_a_gru_is_that_of_its_formulas(after: int) -> None:
    layer = node("GRU", "x w r b", "y last", hidden_size=SIZE, direction="bidirectional",
                 linear_before_reset=after)  # fmt: skip
    layer.input.extend(["", "h"])
    proto = model([layer], {"x": X.shape}, ["y", "last"], WEIGHTS, opset=14)
    y, last = outcome(proto, {"x": X}, "y", "last")
    forward, backward = by_hand(X, 0, after), by_hand(X[::-1], 1, after)
    np.testing.assert_allclose(y[:, 0], forward, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(y[:, 1], backward[::-1], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(last, [forward[-1], backward[-1]], rtol=1e-4, atol=1e-6)


def test_what_a_gru_lacks_is_named() -> None:
    layer = node("GRU", "x w r b", "y", hidden_size=SIZE, direction="bidirectional", clip=1.0)
    proto = model([layer], {"x": X.shape}, ["y"], WEIGHTS, opset=14)
    with pytest.raises(popart.popart_exception, match="attribute 'clip'; sums of any size"):
        prepared(proto, ["y"])
