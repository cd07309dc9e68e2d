"""The digits network against the same steps in NumPy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from simulator.examples import mlp_digits
from simulator.examples.mlp_digits import BATCH, EPOCHS, LEARNING_RATE, Floats


@dataclass(frozen=True)
class Reference:
    losses: Floats
    accuracy: float


def sigmoid(x: Floats) -> Floats:
    return (1 / (1 + np.exp(-x))).astype(np.float32)


@pytest.fixture(scope="module")
def reference() -> Reference:
    """Train in NumPy, float32, the same batches in the same order."""
    digits, start = mlp_digits.load_digits(), mlp_digits.initial_weights()
    w1, b1, w3, b3 = (values.copy() for values in start.by_handle().values())
    rate, losses = np.float32(LEARNING_RATE), []
    labels = np.eye(10, dtype=np.float32)[digits.train_labels]
    for _ in range(EPOCHS):
        for first in range(0, digits.batches * BATCH, BATCH):
            x, expected = digits.train_images[first : first + BATCH], labels[first : first + BATCH]
            hidden = sigmoid(x @ w1 + b1)
            out = sigmoid(hidden @ w3 + b3)
            error = out - expected
            losses.append(0.5 * (error * error).sum())
            delta3 = error * out * (1 - out)
            delta1 = (delta3 @ w3.T) * hidden * (1 - hidden)
            w3 -= rate * (hidden.T @ delta3)
            b3 -= rate * delta3.sum(axis=0)
            w1 -= rate * (x.T @ delta1)
            b1 -= rate * delta1.sum(axis=0)
    out = sigmoid(sigmoid(digits.test_images @ w1 + b1) @ w3 + b3)
    accuracy = float((out.argmax(axis=1) == digits.test_labels).mean())
    return Reference(np.array(losses, np.float32), accuracy)


@pytest.fixture(scope="module")
def trained() -> mlp_digits.Result:
    """Train as the demo does."""
    return mlp_digits.train()


def test_the_digits_are_1797_images_split_four_to_one() -> None:
    digits = mlp_digits.load_digits()
    assert len(digits.test_labels) == 359
    assert len(digits.train_labels) == 89 * 16
    assert 0 <= digits.train_images.min() < digits.train_images.max() == 1
    assert np.bincount(digits.test_labels).min() > 20


def test_the_first_200_losses_equal_numpys(
    trained: mlp_digits.Result, reference: Reference
) -> None:
    assert len(trained.losses) == EPOCHS * 89
    np.testing.assert_allclose(trained.losses[:200], reference.losses[:200], rtol=1e-4)


def test_the_accuracy_agrees_within_one_image(
    trained: mlp_digits.Result, reference: Reference
) -> None:
    assert abs(trained.accuracy - reference.accuracy) * 359 < 1.5


def test_the_network_learns(trained: mlp_digits.Result) -> None:
    assert trained.accuracy >= 0.9
    assert trained.losses[-89:].mean() < trained.losses[:89].mean() / 4


def test_progress_goes_from_nothing_to_everything() -> None:
    steps: list[tuple[int, int]] = []
    mlp_digits.train(
        target="tiny", epochs=1, progress=lambda done, total, text: steps.append((done, total))
    )
    assert steps == [(0, 4), (1, 4), (2, 4), (3, 4), (4, 4)]
