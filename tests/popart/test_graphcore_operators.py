"""The operators of ai.graphcore give what their formulas in NumPy give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from models import model, node, outcome, tiny

from simulator import popart
from simulator.graph.types import Array
from simulator.popart.representation.ir import GRAPHCORE

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


A, B = floats(3, 4) + 3, floats(4) - 3
CASES = {
    "Atan2": (np.arctan2(A, B), B / (A * A + B * B), -A / (A * A + B * B)),
    "Fmod": (np.fmod(A, B), np.ones_like(A), -np.trunc(A / B)),
    "Remainder": (np.mod(A, B), np.ones_like(A), -np.floor(A / B)),
    "Expm1": (np.expm1(A), np.exp(A), None),
    "Log1p": (np.log1p(A), 1 / (1 + A), None),
    "Nop": (A, np.ones_like(A), None),
    "Reshape": (A.reshape(2, 6), np.ones_like(A), None),
}


@pytest.mark.parametrize("operator", CASES)
def test_operators_on_elements_and_their_gradients_are_those_of_numpy(operator: str) -> None:
    value, by_first, by_second = CASES[operator]
    builder = popart.Builder()
    names = [builder.addInitializedInputTensor(values) for values in (A, B)]
    taken = names if by_second is not None else names[:1]
    arguments = [[2, -1]] if operator == "Reshape" else []
    y = getattr(builder.aiGraphcore, operator.lower())(taken, *arguments)
    loss = builder.aiGraphcore.identityloss([y], popart.ReductionType.Sum)
    anchors = [y, *(f"Gradient___{name}" for name in taken)]
    flow = popart.DataFlow(1, anchors)
    session = popart.TrainingSession(
        builder.getModelProto(), flow, loss, popart.ConstSGD(0.1), tiny()
    )
    session.prepareDevice()
    session.weightsFromHost()
    out = session.initAnchorArrays()
    session.run(popart.PyStepIO({}, out))
    np.testing.assert_allclose(out[y], value, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(out[anchors[1]], by_first, rtol=1e-3, atol=1e-4)
    if by_second is not None:
        np.testing.assert_allclose(out[anchors[2]], by_second.sum(axis=0), rtol=1e-3, atol=1e-4)


def test_what_is_detached_has_no_gradient() -> None:
    builder = popart.Builder()
    w = builder.addInitializedInputTensor(A)
    y = builder.aiOnnx.mul([w, builder.aiGraphcore.detach([w])])
    loss = builder.aiGraphcore.identityloss([y], popart.ReductionType.Sum)
    flow = popart.DataFlow(1, [f"Gradient___{w}"])
    session = popart.TrainingSession(
        builder.getModelProto(), flow, loss, popart.ConstSGD(0.0), tiny()
    )
    session.prepareDevice()
    session.weightsFromHost()
    out = session.initAnchorArrays()
    session.run(popart.PyStepIO({}, out))
    assert out[f"Gradient___{w}"].tolist() == A.tolist()


def test_numbers_are_rounded_to_even_and_bits_are_joined() -> None:
    (y,) = found("Round", {"x": np.float32([0.5, 1.5, -2.5, 2.4])})
    assert y.tolist() == [0, 2, -2, 2]
    a, b = np.int32([12, -1, 7]), np.int32([10, 3, 0])
    builder = popart.Builder()
    x, z = (builder.addInputTensor(popart.TensorInfo(values)) for values in (a, b))
    domain = builder.aiGraphcore
    names = [domain.bitwiseand([x, z]), domain.bitwiseor([x, z]), domain.bitwisexor([x, z]),
             domain.bitwisexnor([x, z]), domain.bitwisenot([x])]  # fmt: skip
    made = outcome(builder.getModelProto(), {x: a, z: b}, *names)
    expected = [a & b, a | b, a ^ b, ~(a ^ b), ~a]
    assert [values.tolist() for values in made] == [values.tolist() for values in expected]
