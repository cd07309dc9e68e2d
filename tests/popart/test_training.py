"""Training sessions change weights as the same steps in NumPy do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from models import model, node, tiny

from pva.analysis.operations.costs import operation_costs
from pva.report import openReport
from simulator import popart
from simulator.graph.types import Array

RANDOM = np.random.default_rng(5)
WEIGHTS = RANDOM.normal(size=(4, 3)).astype(np.float32)
DATA = RANDOM.normal(size=(2, 4)).astype(np.float32)
LABELS = np.int32([2, 0])
LAYER = model(
    [node("MatMul", "x w", "y"), node("Softmax", "y", "p", axis=1)],
    {"x": [2, 4]},
    ["p"],
    {"w": WEIGHTS},
)


def session_of(
    optimizer: popart.SGD, *anchors: str, loss: Any = None, proto: Any = LAYER
) -> popart.TrainingSession:
    """Prepare a session that trains the layer."""
    shapes = popart.InputShapeInfo()
    shapes.add("labels", popart.TensorInfo("INT32", [2]))
    session = popart.TrainingSession(
        proto,
        dataFeed=popart.DataFlow(1, list(anchors)),
        losses=[loss or popart.NllLoss("p", "labels", "loss")],
        optimizer=optimizer,
        inputShapeInfo=shapes,
        deviceInfo=tiny(),
    )
    session.prepareDevice()
    session.weightsFromHost()
    return session


def step(session: popart.TrainingSession, **inputs: Array) -> dict[str, Array]:
    """Run a batch."""
    anchors = session.initAnchorArrays()
    session.run(popart.PyStepIO(inputs or {"x": DATA, "labels": LABELS}, anchors))
    return anchors


def weights_of(session: popart.TrainingSession) -> Array:
    """Read the weights of the layer from the device."""
    session.weightsToHost()
    found = np.zeros_like(WEIGHTS)
    session.readWeights({"w": found})
    return found


def by_hand(weights: Array) -> tuple[float, Array]:
    """Return the loss and the gradient of the weights: x' (p - one-hot)."""
    powers = np.exp(DATA @ weights)
    probs = powers / powers.sum(axis=1, keepdims=True)
    loss = -np.log(probs[np.arange(2), LABELS]).sum()
    return float(loss), DATA.T @ (probs - np.eye(3)[LABELS])


def test_a_step_of_descent_is_that_of_numpy() -> None:
    session = session_of(popart.ConstSGD(0.1), "loss", "Gradient___w")
    found = step(session)
    loss, gradient = by_hand(WEIGHTS)
    assert found["loss"] == pytest.approx(loss, rel=1e-5)
    np.testing.assert_allclose(found["Gradient___w"], gradient, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(weights_of(session), WEIGHTS - 0.1 * gradient, rtol=1e-5)


def test_the_learning_rate_changes_between_steps() -> None:
    session = session_of(popart.SGD(0.0))
    step(session)
    assert weights_of(session).tolist() == WEIGHTS.tolist()
    session.updateOptimizer(popart.SGD(0.5))
    session.optimizerFromHost()
    step(session)
    expected = WEIGHTS - 0.5 * by_hand(WEIGHTS)[1]
    np.testing.assert_allclose(weights_of(session), expected, rtol=1e-5)


def test_weight_decay_is_added_to_the_gradient() -> None:
    session = session_of(popart.SGD(0.1, 0.25))
    step(session)
    expected = WEIGHTS - 0.1 * (by_hand(WEIGHTS)[1] + 0.25 * WEIGHTS)
    np.testing.assert_allclose(weights_of(session), expected, rtol=1e-5)


def test_the_mean_of_losses_has_the_mean_of_gradients() -> None:
    loss = popart.NllLoss("p", "labels", "loss", popart.ReductionType.Mean)
    found = step(session_of(popart.ConstSGD(0.1), "loss", "Gradient___w", loss=loss))
    total, gradient = by_hand(WEIGHTS)
    assert found["loss"] == pytest.approx(total / 2, rel=1e-5)
    np.testing.assert_allclose(found["Gradient___w"], gradient / 2, rtol=1e-4, atol=1e-6)


def test_a_likelihood_of_what_more_nodes_read_has_the_same_gradient() -> None:
    nodes = [*LAYER.graph.node, node("Identity", "p", "q"), node("Neg", "q", "r")]
    proto = model(nodes, {"x": [2, 4]}, ["p"], {"w": WEIGHTS})
    found = step(session_of(popart.ConstSGD(0.1), "Gradient___w", proto=proto))
    np.testing.assert_allclose(found["Gradient___w"], by_hand(WEIGHTS)[1], rtol=1e-4, atol=1e-6)


def test_an_absolute_loss_pulls_with_its_scale() -> None:
    loss = popart.L1Loss("y", "loss", 0.5)
    found = step(session_of(popart.ConstSGD(0.1), "loss", "Gradient___w", loss=loss), x=DATA)
    outputs = DATA @ WEIGHTS
    assert found["loss"] == pytest.approx(0.5 * np.abs(outputs).sum(), rel=1e-5)
    expected = 0.5 * DATA.T @ np.sign(outputs)
    np.testing.assert_allclose(found["Gradient___w"], expected, rtol=1e-5)


def test_batch_norm_is_trained_by_the_statistics_of_the_batch() -> None:
    x = RANDOM.normal(size=(4, 2, 3)).astype(np.float32)
    weights = {name: np.float32(v) for name, v in
               (("s", [1, 2]), ("b", [0, 1]), ("m", [0, 0]), ("v", [1, 1]))}  # fmt: skip
    nodes = [node("BatchNormalization", "x s b m v", "y"), node("Mul", "y y", "z")]
    proto = model(nodes, {"x": x.shape}, ["y"], weights)
    loss = popart.IdentityLoss("z", "loss")
    session = session_of(popart.ConstSGD(0.0), "y", "Gradient___s", loss=loss, proto=proto)
    found = step(session, x=x)
    mean, variance = x.mean(axis=(0, 2)), x.var(axis=(0, 2))
    white = (x - mean[:, None]) / np.sqrt(variance[:, None] + 1e-5)
    y = white * weights["s"][:, None] + weights["b"][:, None]
    np.testing.assert_allclose(found["y"], y, rtol=1e-3, atol=1e-4)
    expected = (2 * y * white).sum(axis=(0, 2))
    np.testing.assert_allclose(found["Gradient___s"], expected, rtol=1e-3)
    session.weightsToHost()
    running = {name: np.zeros(2, np.float32) for name in "mv"}
    session.readWeights(running)
    np.testing.assert_allclose(running["m"], 0.1 * mean, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(running["v"], 0.9 + 0.1 * variance, rtol=1e-3)


def test_batch_norm_without_spatial_is_trained_element_by_element() -> None:
    x, mix = (RANDOM.normal(size=(4, 2, 3)).astype(np.float32) for _ in range(2))
    filled = {"s": 2, "b": 1, "m": 0, "v": 1}
    weights = {name: np.full((2, 3), value, np.float32) for name, value in filled.items()}
    nodes = [node("BatchNormalization", "x s b m v", "y", spatial=0), node("Mul", "y mix", "z")]
    proto = model(nodes, {"x": x.shape}, ["y"], {**weights, "mix": mix}, opset=8)
    loss = popart.IdentityLoss("z", "loss")
    session = session_of(popart.ConstSGD(0.0), "y", "Gradient___s", loss=loss, proto=proto)
    found, white = step(session, x=x), (x - x.mean(axis=0)) / np.sqrt(x.var(axis=0) + 1e-5)
    np.testing.assert_allclose(found["y"], 2 * white + 1, rtol=1e-3, atol=1e-4)
    expected = (mix * white).sum(axis=0)
    np.testing.assert_allclose(found["Gradient___s"], expected, rtol=1e-3, atol=1e-4)


def test_the_change_of_a_weight_is_an_operation_of_the_optimiser(tmp_path: Path) -> None:
    engine = {"autoReport.all": True, "autoReport.directory": str(tmp_path)}
    session = popart.TrainingSession(
        LAYER, popart.DataFlow(1, []), [popart.IdentityLoss("p", "loss")], popart.SGD(0.1), tiny(),
        userOptions=popart.SessionOptions(engineOptions=engine),
    )  # fmt: skip
    session.prepareDevice()
    session.weightsFromHost()
    step(session, x=DATA)
    found = operation_costs(openReport(tmp_path / "training")).set_index("operation")["kind"]
    assert found["w"] == "SGD"


def test_dropout_drops_the_same_elements_of_the_gradient() -> None:
    nodes = [node("Dropout", "w", "y", ratio=0.5), node("Identity", "y", "z")]
    proto = model(nodes, {}, ["y"], {"w": np.ones(64, np.float32)})
    loss = popart.IdentityLoss("z", "loss")
    session = session_of(popart.ConstSGD(0.0), "y", "Gradient___w", loss=loss, proto=proto)
    found = session.initAnchorArrays()
    session.run(popart.PyStepIO({}, found))
    assert set(found["y"].tolist()) == {0, 2}
    assert found["Gradient___w"].tolist() == found["y"].tolist()


def test_training_goes_on_from_a_model_that_was_written(tmp_path: Path) -> None:
    session = session_of(popart.ConstSGD(0.1))
    step(session)
    path = tmp_path / "trained.onnx"
    session.modelToHost(path)
    session.let_go_of_model()
    with pytest.raises(popart.popart_exception, match="let go of"):
        session.modelToHost(path)
    (stored,) = onnx.load(path).graph.initializer
    assert (stored.HasField("raw_data"), list(stored.float_data)) == (True, [])
    assert onnx.numpy_helper.to_array(stored).tolist() == weights_of(session).tolist()
    other = session_of(popart.ConstSGD(0.1))
    other.resetHostWeights(path)
    other.weightsFromHost()
    assert weights_of(other).tolist() == weights_of(session).tolist()


def test_weights_that_are_handed_over_are_the_device_s_alone() -> None:
    session, other = session_of(popart.ConstSGD(0.1)), session_of(popart.ConstSGD(0.1))
    session.hand_over_weights()
    with pytest.raises(popart.popart_exception, match="weight 'w' has no values"):
        session.weightsFromHost()
    assert weights_of(session).tolist() == weights_of(other).tolist()


def test_weights_of_the_builder_are_written_as_float_data(tmp_path: Path) -> None:
    builder = popart.Builder()
    w = builder.addInitializedInputTensor(WEIGHTS, "w")
    n = builder.addInitializedInputTensor(np.array([3, 4]))
    half = builder.addInitializedInputTensor(np.array([0.5, 1, 2], np.float16))
    parts = [builder.aiOnnx.cast([name], "FLOAT") for name in (n, half)]
    loss = builder.aiGraphcore.identityloss([builder.aiGraphcore.square([w])])
    flow = popart.DataFlow(1, [loss, *parts])
    session = popart.TrainingSession(
        builder.getModelProto(), flow, loss, popart.ConstSGD(0.25), tiny()
    )
    session.prepareDevice()
    session.weightsFromHost()
    session.run(popart.PyStepIO({}, session.initAnchorArrays()))
    session.modelToHost(tmp_path / "trained.onnx")
    stored = {one.name: one for one in onnx.load(tmp_path / "trained.onnx").graph.initializer}
    expected = WEIGHTS.reshape(-1) * (1 - 0.25 * 2 / WEIGHTS.size)  # the loss is the mean of w * w
    np.testing.assert_allclose(list(stored[w].float_data), expected, rtol=1e-6)
    # Halves are 0x3800, 0x3c00 and 0x4000: two to a word, the first in the low bits.
    assert list(stored[half].int32_data) == [0x3C003800, 0x4000]
    assert list(stored[n].int64_data) == [3, 4]


def test_halves_of_a_written_model_are_read_again(tmp_path: Path) -> None:
    halves = RANDOM.normal(size=(3, 5)).astype(np.float16)
    builder = popart.Builder()
    x = builder.addInputTensor(popart.TensorInfo("FLOAT16", [3, 5]))
    y = builder.aiOnnx.add([x, builder.addInitializedInputTensor(halves, "w")])
    proto, flow = builder.getModelProto(), popart.DataFlow(1, [y])
    (word_each,) = onnx.ModelProto.FromString(proto).graph.initializer
    assert onnx.numpy_helper.to_array(word_each).tolist() == halves.tolist()
    first = popart.InferenceSession(proto, flow, tiny())
    first.prepareDevice()
    first.weightsFromHost()
    first.modelToHost(tmp_path / "model.onnx")
    again = popart.InferenceSession(str(tmp_path / "model.onnx"), flow, tiny())
    again.prepareDevice()
    anchors = again.initAnchorArrays()
    again.run(popart.PyStepIO({x: np.zeros((3, 5), np.float16)}, anchors))
    assert anchors[y].tolist() == halves.tolist()


def test_what_has_no_gradient_is_named_before_anything_is_compiled() -> None:
    flip = node("ConvFlipWeights", "w", "y", domain="ai.graphcore")
    proto = model([flip], {}, ["y"], {"w": np.zeros((4, 2, 3, 3), np.float32)})
    with pytest.raises(popart.popart_exception, match=r"ConvFlipWeights-1\) has no gradient"):
        session_of(popart.ConstSGD(0.1), loss=popart.IdentityLoss("y", "loss"), proto=proto)


def test_the_gradient_of_an_input_is_an_anchor_like_another() -> None:
    found = step(session_of(popart.ConstSGD(0.1), "Gradient___x"))["Gradient___x"]
    powers = np.exp(DATA @ WEIGHTS)
    reached = powers / powers.sum(axis=1, keepdims=True) - np.eye(3)[LABELS]
    np.testing.assert_allclose(found, reached @ WEIGHTS.T, rtol=1e-4, atol=1e-6)


def test_the_gradient_of_probabilities_divides_by_them() -> None:
    found = step(session_of(popart.ConstSGD(0.1), "Gradient___p", "Gradient___w", "p"))
    expected = -np.eye(3)[LABELS] / found["p"]
    np.testing.assert_allclose(found["Gradient___p"], expected, rtol=1e-4, atol=1e-6)
    reached = found["p"] - np.eye(3)[LABELS]
    np.testing.assert_allclose(found["Gradient___w"], DATA.T @ reached, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(
    ("anchor", "text"),
    [("x", "no loss depends on 'x'"), ("i", r"'i' is INT32 \[1\]; only floats")],
)
def test_an_anchor_that_has_no_gradient_is_refused_at_once(anchor: str, text: str) -> None:
    nodes = [node("Cast", "x", "i", to=onnx.TensorProto.INT32), node("Gather", "w i", "y"),
             node("Softmax", "y", "p")]  # fmt: skip
    proto = model(nodes, {"x": [1]}, ["p"], {"w": WEIGHTS})
    shapes = popart.InputShapeInfo().add("labels", popart.TensorInfo("INT32", [1]))
    with pytest.raises(popart.popart_exception, match=f"Gradient___{anchor}'.*{text}"):
        popart.TrainingSession(
            proto, popart.DataFlow(1, [f"Gradient___{anchor}"]),
            [popart.NllLoss("p", "labels", "loss")], popart.SGD(0.1), tiny(), shapes,
        )  # fmt: skip


def test_labels_that_do_not_fit_are_named() -> None:
    with pytest.raises(popart.popart_exception, match=r"labels are FLOAT \[2, 3\]; integers \[2\]"):
        session_of(popart.ConstSGD(0.1), loss=popart.NllLoss("p", "y", "loss"))


def test_losses_of_an_inference_session_are_computed() -> None:
    shapes = popart.InputShapeInfo()
    shapes.add("labels", popart.TensorInfo("INT32", [2]))
    losses = [popart.NllLoss("p", "labels", "loss")]
    flow = popart.DataFlow(1, ["loss"])
    session = popart.InferenceSession(LAYER, flow, tiny(), shapes, losses=losses)
    session.prepareDevice()
    session.weightsFromHost()
    found = session.initAnchorArrays()
    session.run(popart.PyStepIO({"x": DATA, "labels": LABELS}, found))
    assert found["loss"] == pytest.approx(by_hand(WEIGHTS)[0], rel=1e-5)
