"""Losses of the model itself: likelihood, absolute values, identity, and any scalar."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from models import tiny

from simulator import popart
from simulator.graph.types import Array

RANDOM = np.random.default_rng(3)
LOGITS = RANDOM.normal(size=(5, 4)).astype(np.float32)
LABELS = np.int32([2, 0, 3, 1, 2])
KINDS = list(popart.ReductionType)
PROBS = np.exp(LOGITS) / np.exp(LOGITS).sum(axis=1, keepdims=True)


def outcome(builder: popart.Builder, loss: str, inputs: Any, *anchors: str, **given: Any) -> Any:
    """Train a batch; give the anchors."""
    session = popart.TrainingSession(
        builder.getModelProto(), dataFlow=popart.DataFlow(1, list(anchors)), loss=loss,
        optimizer=popart.ConstSGD(0.1), deviceInfo=tiny(), **given,
    )  # fmt: skip
    session.prepareDevice()
    session.weightsFromHost()
    found = session.initAnchorArrays()
    session.run(popart.PyStepIO(inputs, found))
    return [found[name] for name in anchors]


def whole(each: Array, kind: popart.ReductionType, count: int | None = None) -> Array:
    """Reduce the losses of samples."""
    if kind is popart.ReductionType.NoReduction:
        return each
    return each.sum() / (count or each.size if kind is popart.ReductionType.Mean else 1)


@pytest.mark.parametrize("ignored", [None, 2, -1])
@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("direct", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_likelihoods_and_their_gradients_are_those_of_numpy(
    kind: popart.ReductionType, direct: bool, log: bool, ignored: int | None
) -> None:
    builder = popart.Builder()
    x = builder.addInitializedInputTensor(LOGITS)
    t = builder.addInputTensor("INT32", [5])
    make = builder.aiOnnx.logsoftmax if log else builder.aiOnnx.softmax
    nll = builder.aiGraphcore.nllloss([make([x], axis=1), t], kind, ignored, log)
    scaled = builder.aiGraphcore.scale([nll], 1.5)
    loss = builder.aiOnnx.reducesum([scaled], keepdims=0)
    patterns = popart.Patterns({"SoftmaxGradDirect": direct})
    labels = np.where(LABELS == 1, ignored, LABELS).astype(np.int32) if ignored else LABELS
    names = (nll, loss, f"Gradient___{x}")
    found = outcome(builder, loss, {t: labels}, *names, patterns=patterns)
    kept = labels != (9 if ignored is None else ignored)
    each = -np.log(PROBS[np.arange(5), labels % 4]) * kept
    expected = whole(each, kind, int(kept.sum()))
    np.testing.assert_allclose(found[0], expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found[1], 1.5 * expected.sum(), rtol=1e-5)
    share = 1 / kept.sum() if kind is popart.ReductionType.Mean else 1
    gradient = 1.5 * share * (PROBS - np.eye(4)[labels % 4]) * kept[:, None]
    np.testing.assert_allclose(found[2], gradient, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("ignored", [None, 1])
def test_the_gradient_of_classes_of_no_probability_is_zero(
    dtype: type, ignored: int | None
) -> None:
    builder = popart.Builder()
    x = builder.addInitializedInputTensor(np.array([[0, 0.5, 0.5], [1, 0, 0]], dtype))
    t = builder.addInputTensor("INT32", [2])
    loss = builder.aiGraphcore.nllloss([x, t], popart.ReductionType.Sum, ignored)
    (found,) = outcome(builder, loss, {t: np.int32([2, 0])}, f"Gradient___{x}")
    np.testing.assert_array_equal(found, np.array([[0, 0, -2], [-1, 0, 0]], dtype))


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_the_gradient_of_a_label_of_no_probability_is_finite(dtype: type) -> None:
    builder = popart.Builder()
    x = builder.addInitializedInputTensor(np.array([[0, 1]], dtype))
    t = builder.addInputTensor("INT32", [1])
    loss = builder.aiGraphcore.nllloss([x, t], popart.ReductionType.Sum)
    ((first, second),) = outcome(builder, loss, {t: np.int32([0])}, f"Gradient___{x}")[0]
    assert np.isfinite(first) and first < -1e4 and second == 0


def test_a_mean_of_no_samples_is_zero() -> None:
    builder = popart.Builder()
    x, t = builder.addInitializedInputTensor(LOGITS), builder.addInputTensor("INT32", [5])
    probs = builder.aiOnnx.softmax([x], 1)
    loss = builder.aiGraphcore.nllloss([probs, t], ignoreIndex=-1)
    found = outcome(builder, loss, {t: np.full(5, -1, np.int32)}, loss, f"Gradient___{x}")
    assert found[0] == 0 and not found[1].any()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ["l1loss", "identityloss"])
def test_absolute_and_identity_losses_are_those_of_numpy(
    method: str, kind: popart.ReductionType
) -> None:
    builder = popart.Builder()
    x = builder.addInitializedInputTensor(LOGITS)
    if method == "l1loss":
        made = builder.aiGraphcore.l1loss([x], 0.25, kind)
        each, slope = 0.25 * np.abs(LOGITS), 0.25 * np.sign(LOGITS)
    else:
        made, each, slope = builder.aiGraphcore.identityloss([x], kind), LOGITS, np.ones((5, 4))
    loss = builder.aiOnnx.reducesum([made], keepdims=0)
    found = outcome(builder, loss, {}, made, f"Gradient___{x}")
    np.testing.assert_allclose(found[0], whole(each, kind), rtol=1e-5, atol=1e-6)
    share = 1 / 20 if kind is popart.ReductionType.Mean else 1
    np.testing.assert_allclose(found[1], share * slope, rtol=1e-5)


def test_the_gradient_of_a_loss_is_the_loss_scaling() -> None:
    builder = popart.Builder()
    x = builder.addInitializedInputTensor(LOGITS)
    loss = builder.aiOnnx.reducesum([x], keepdims=0)
    flow = popart.DataFlow(1, [f"Gradient___{loss}", f"Gradient___{x}"])
    optimizer = popart.SGD({"lossScaling": (32.0, False)})
    session = popart.TrainingSession(builder.getModelProto(), flow, loss, optimizer, tiny())
    session.prepareDevice()
    session.weightsFromHost()
    found = session.initAnchorArrays()
    session.run(popart.PyStepIO({}, found))
    assert found[f"Gradient___{loss}"] == 32 and (found[f"Gradient___{x}"] == 32).all()


def test_a_session_without_weights_gives_gradients_of_inputs() -> None:
    builder = popart.Builder()
    x = builder.addInputTensor(popart.TensorInfo(LOGITS))
    loss = builder.aiGraphcore.identityloss([builder.aiGraphcore.square([x])])
    (found,) = outcome(builder, loss, {x: LOGITS}, f"Gradient___{x}")
    np.testing.assert_allclose(found, 2 * LOGITS / 20, rtol=1e-5)


@pytest.mark.parametrize(
    ("loss", "text"),
    [
        ("Relu:0", "'Relu:0' is FLOAT \\[5, 4\\]. Loss tensor, 'Relu:0', must be a scalar tensor"),
        ("v", "loss 'v' is no tensor of the model"),
        (3, "3 is no loss; the name of a tensor is"),
    ],
)
def test_what_is_no_loss_is_said(loss: Any, text: str) -> None:
    builder = popart.Builder()
    x = builder.addInitializedInputTensor(LOGITS)
    builder.aiOnnx.relu([x], "y")
    with pytest.raises(popart.popart_exception, match=text):
        outcome(builder, loss, {}, x)


def test_an_anchor_that_views_a_weight_is_that_of_the_batch() -> None:
    builder = popart.Builder()
    x = builder.addInitializedInputTensor(LOGITS)
    turned = builder.aiOnnx.transpose([x])
    loss = builder.aiGraphcore.identityloss([turned], popart.ReductionType.Sum)
    before, after = outcome(builder, loss, {}, turned, x)
    assert before.tolist() == LOGITS.T.tolist()
    np.testing.assert_allclose(after, LOGITS - 0.1, rtol=1e-5)


def test_labels_of_another_shape_are_refused_with_the_node() -> None:
    builder = popart.Builder()
    x, t = builder.addInitializedInputTensor(LOGITS), builder.addInputTensor("INT32", [4])
    loss = builder.aiGraphcore.nllloss([x, t], debugContext="last")
    with pytest.raises(popart.popart_exception, match=r"label tensor \(INT32   \[4\]\).*'last'"):
        outcome(builder, loss, {}, x)
