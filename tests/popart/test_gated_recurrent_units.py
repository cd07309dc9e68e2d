"""A GRU gives what its formulas give, in both directions and with either place of the reset."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from models import model, node, outcome, prepared, trained

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


LENGTHS = [3, 4]


def of_lengths(after: int, known: bool) -> onnx.ModelProto:
    """Return a GRU of sequences of two lengths, which are a constant or come with the batch."""
    layer = node("GRU", "x w r b", "y last", hidden_size=SIZE, linear_before_reset=after)
    layer.input.extend(["lengths", "h"])
    weights = {name: values[:1] for name, values in WEIGHTS.items()}
    if known:
        weights["lengths"] = np.array(LENGTHS, np.int32)
    proto = model([layer], {"x": X.shape}, ["y", "last"], weights, opset=14)
    if not known:
        kind = onnx.TensorProto.INT32
        proto.graph.input.append(onnx.helper.make_tensor_value_info("lengths", kind, [BATCH]))
    return proto


@pytest.mark.parametrize("after", [0, 1])
@pytest.mark.parametrize("known", [True, False])
def test_sequences_of_a_gru_end_at_their_lengths(after: int, known: bool) -> None:
    given = {"x": X} if known else {"x": X, "lengths": np.array(LENGTHS, np.int32)}
    y, last = outcome(of_lengths(after, known), given, "y", "last")
    whole = by_hand(X, 0, after)
    inside = np.arange(STEPS)[:, None] < LENGTHS
    np.testing.assert_allclose(y[:, 0], whole * inside[..., None], rtol=1e-4, atol=1e-6)
    ends = whole[np.array(LENGTHS) - 1, np.arange(BATCH)]
    np.testing.assert_allclose(last[0], ends, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("lengths", [[0, 4], [3, 5]])
def test_a_sequence_has_a_step_and_no_more_than_there_are(lengths: list[int]) -> None:
    layer = node("GRU", "x w r b", "y", hidden_size=SIZE)
    layer.input.append("lengths")
    weights = {name: values[:1] for name, values in WEIGHTS.items() if name != "h"}
    weights["lengths"] = np.array(lengths, np.int32)
    proto = model([layer], {"x": X.shape}, ["y"], weights, opset=14)
    with pytest.raises(popart.popart_exception, match="1 to 4 steps would be needed"):
        prepared(proto, ["y"])


@pytest.mark.parametrize("after", [0, 1])
@pytest.mark.parametrize("name", ["x", "w", "r", "b", "h"])
def test_gradients_of_sequences_that_end(after: int, name: str, monkeypatch: Any) -> None:
    rng = np.random.default_rng(3)
    mixes = [rng.normal(size=shape).astype(np.float32) for shape in
             ((STEPS, 1, BATCH, SIZE), (1, BATCH, SIZE))]  # fmt: skip
    layer = node("GRU", "x w r b", "y last", hidden_size=SIZE, linear_before_reset=after)
    layer.input.extend(["lengths", "h"])
    nodes = [layer, node("Mul", "y m", "ym"), node("Mul", "last n", "lastn"),
             node("ReduceSum", "ym", "s"), node("ReduceSum", "lastn", "t"),
             node("Add", "s t", "z")]  # fmt: skip
    parts = {"x": X, **{key: values[:1] for key, values in WEIGHTS.items()}}
    weights = {**parts, "lengths": np.array(LENGTHS, np.int32), "m": mixes[0], "n": mixes[1]}
    loss = popart.IdentityLoss("z", "loss", reduction=popart.ReductionType.Sum)
    found = trained(nodes, weights, loss, f"Gradient___{name}", opset=12)[f"Gradient___{name}"]
    inside = np.arange(STEPS)[:, None] < LENGTHS

    def total(values: Array) -> float:
        changed = {**parts, name: values}
        for key in "wrbh":
            monkeypatch.setitem(WEIGHTS, key, changed[key])
        whole = by_hand(changed["x"], 0, after)
        ends = whole[np.array(LENGTHS) - 1, np.arange(BATCH)]
        shown = whole * inside[..., None]
        return float((shown * mixes[0][:, 0]).sum() + (ends * mixes[1][0]).sum())

    expected, base = np.zeros(parts[name].shape), parts[name].astype(np.float64)
    for place in np.ndindex(*base.shape):
        step = np.zeros(base.shape)
        step[place] = 1e-5
        expected[place] = (total(base + step) - total(base - step)) / 2e-5
    np.testing.assert_allclose(found, expected, rtol=2e-3, atol=2e-3)
