"""The operators of ai.graphcore give what their formulas in NumPy give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from models import model, node, outcome

from simulator import popart
from simulator.graph.types import Array
from simulator.popart.ir import GRAPHCORE

RANDOM = np.random.default_rng(11)


def found(operator: str, inputs: dict[str, Array], outputs: str = "y", **given: Any) -> list[Array]:
    """Run one node on inputs."""
    made = node(operator, " ".join(inputs), outputs, domain=GRAPHCORE, **given)
    shapes = {name: values.shape for name, values in inputs.items()}
    return outcome(model([made], shapes, outputs.split()), inputs, *outputs.split())


def floats(*shape: int) -> Array:
    return RANDOM.normal(size=shape).astype(np.float32)


def test_gelu_is_its_approximation_by_a_tangent() -> None:
    x = floats(3, 5)
    inner = np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)
    (y,) = found("Gelu", {"x": x})
    np.testing.assert_allclose(y, x / 2 * (1 + np.tanh(inner)), rtol=1e-4, atol=1e-6)


def test_group_normalisation_gives_mean_and_deviation_too() -> None:
    x, scale, bias = floats(2, 6, 3), floats(6), floats(6)
    groups = x.reshape(2, 3, 6)
    mean, variance = groups.mean(axis=2), groups.var(axis=2)
    white = (groups - mean[..., None]) / np.sqrt(variance[..., None] + 1e-3)
    expected = white.reshape(x.shape) * scale[:, None] + bias[:, None]
    given = {"x": x, "s": scale, "b": bias}
    y, m, d = found("GroupNormalization", given, "y m d", num_groups=3, epsilon=1e-3)
    np.testing.assert_allclose(y, expected, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(np.sort(m), np.sort(mean.reshape(-1)), rtol=1e-4, atol=1e-6)
    deviation = 1 / np.sqrt(variance.reshape(-1) + 1e-3)
    np.testing.assert_allclose(np.sort(d), np.sort(deviation), rtol=1e-3)


def test_weights_are_flipped_group_by_group() -> None:
    w = floats(4, 3, 2, 2)
    (y,) = found("ConvFlipWeights", {"w": w}, group=2)
    expected = w.reshape(2, 2, 3, 2, 2).transpose(0, 2, 1, 3, 4)[..., ::-1, ::-1]
    assert y.shape == (6, 2, 2, 2)
    assert y.tolist() == expected.reshape(6, 2, 2, 2).tolist()


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize("full", [0, 1])
def test_lstm_has_gates_forget_input_candidate_output(full: int) -> None:
    x, w, b, state = floats(3, 2, 4), floats(4, 4 + 5, 5), floats(4, 5), floats(2, 2, 5)
    h, c = state
    outputs = []
    for step in x:
        f, i, g, o = (np.concatenate([step, h], 1) @ w[gate] + b[gate] for gate in range(4))
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        outputs.append(h)
    given = {"x": x, "w": w, "b": b, "s": state}
    y, cell = found("LSTM", given, "y c", output_full_sequence=full)
    np.testing.assert_allclose(y, np.stack(outputs) if full else h, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(cell, c, rtol=1e-3, atol=1e-5)


def test_a_tensor_is_printed_when_it_is_made(capsys: pytest.CaptureFixture[str]) -> None:
    (y,) = found("PrintTensor", {"x": np.float32([1, 2])}, title="here")
    assert y.tolist() == [1, 2]
    assert "here" in capsys.readouterr().err


def test_shapes_that_do_not_fit_are_named() -> None:
    with pytest.raises(popart.popart_exception, match="do not fit"):
        found("Subsample", {"x": floats(2, 2)}, strides=[2])
