"""Sequences of an LSTM that are shorter give what its formulas give, and no step is unrolled."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from models import model, node, outcome, prepared

from simulator.graph.types import Array

RANDOM = np.random.default_rng(7)
BATCH, INPUTS, SIZE = 3, 3, 5
SHAPES = {"w": (1, 4 * SIZE, INPUTS), "r": (1, 4 * SIZE, SIZE), "b": (1, 8 * SIZE),
          "h": (1, BATCH, SIZE), "c": (1, BATCH, SIZE)}  # fmt: skip
WEIGHTS = {name: RANDOM.normal(size=shape).astype(np.float32) for name, shape in SHAPES.items()}
CLOSE = {"rtol": 1e-4, "atol": 1e-5}


def by_hand(x: Array, lengths: list[int]) -> tuple[Array, Array, Array]:
    """Return all outputs, and the last output and cell of each sequence; gates i, o, f, c."""
    w, r, b, h, c = (WEIGHTS[name][0].astype(np.float64) for name in "wrbhc")
    outputs = np.zeros((len(x), BATCH, SIZE))
    for step, row in enumerate(x.astype(np.float64)):
        sums = row @ w.T + h @ r.T + b[: 4 * SIZE] + b[4 * SIZE :]
        i, o, f = (1 / (1 + np.exp(-part)) for part in np.split(sums, 4, axis=1)[:3])
        cell = f * c + i * np.tanh(np.split(sums, 4, axis=1)[3])
        goes_on = (step < np.array(lengths))[:, None]
        h, c = np.where(goes_on, o * np.tanh(cell), h), np.where(goes_on, cell, c)
        outputs[step] = h * goes_on
    return outputs, h, c


def of_lengths(steps: int, lengths: list[int] | None) -> onnx.ModelProto:
    """Return an LSTM whose lengths are a constant, or come with the batch."""
    layer = node("LSTM", "x w r b lengths h c", "y last cell", hidden_size=SIZE)
    weights = dict(WEIGHTS)
    if lengths:
        weights["lengths"] = np.array(lengths, np.int32)
    names = ["y", "last", "cell"]
    proto = model([layer], {"x": (steps, BATCH, INPUTS)}, names, weights, opset=14)
    if not lengths:
        kind = onnx.TensorProto.INT32
        proto.graph.input.append(onnx.helper.make_tensor_value_info("lengths", kind, [BATCH]))
    return proto


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("lengths", [[1, 4, 2], [0, 3, 3]])
def test_sequences_of_an_lstm_end_at_their_lengths(known: bool, lengths: list[int]) -> None:
    x = RANDOM.normal(size=(4, BATCH, INPUTS)).astype(np.float32)
    given = {"x": x} if known else {"x": x, "lengths": np.array(lengths, np.int32)}
    proto = of_lengths(4, lengths if known else None)
    found = outcome(proto, given, "y", "last", "cell")
    outputs, last, cell = by_hand(x, lengths)
    np.testing.assert_allclose(found[0][:, 0], outputs, **CLOSE)
    np.testing.assert_allclose(found[1][0], last, **CLOSE)
    np.testing.assert_allclose(found[2][0], cell, **CLOSE)


def test_steps_of_sequences_that_end_are_a_loop() -> None:
    counts = []
    for steps in (3, 12):
        session = prepared(of_lengths(steps, [1, 2, 3]), ["y"])
        counts.append(len(session._engine.getGraphProfile()["computeSets"]["names"]))
    assert counts[0] == counts[1]
