"""Random numbers have the distribution that is asked for, and differ from run to run."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from models import model, node, prepared, trained

from simulator import popart


@pytest.mark.parametrize("like", ["", "Like"])
@pytest.mark.parametrize(
    ("name", "how", "mean", "spread"),
    [
        ("RandomNormal", {"mean": 3.0, "scale": 0.5}, 3.0, 0.5),
        ("RandomUniform", {"low": -1.0, "high": 5.0}, 2.0, 6 / 12**0.5),
    ],
)
def test_numbers_are_drawn_anew_from_their_distribution(
    name: str, how: dict[str, Any], mean: float, spread: float, like: str
) -> None:
    inputs = ["x"] if like else []
    shape = {} if like else {"shape": [40, 100]}
    draw = onnx.helper.make_node(f"{name}{like}", inputs, ["y"], **how, **shape)
    session = prepared(model([draw, node("Neg", "x", "z")], {"x": [40, 100]}, ["y"]), ["y"])
    session.setRandomSeed(7)
    runs = []
    for _ in range(2):
        anchors = session.initAnchorArrays()
        session.run(popart.PyStepIO({"x": np.zeros((40, 100), np.float32)}, anchors))
        runs.append(anchors["y"].copy())
    numbers = np.concatenate(runs)
    assert abs(numbers.mean() - mean) < 5 * spread / numbers.size**0.5
    assert abs(numbers.std() / spread - 1) < 0.05
    assert not np.array_equal(*runs)


def test_what_is_drawn_like_a_tensor_gives_it_no_gradient() -> None:
    # As a variational autoencoder has it: the gradient of the scale is what was drawn.
    nodes = [
        node("RandomNormalLike", "w", "e"), node("Mul", "w e", "s"), node("Add", "w s", "y"),
    ]  # fmt: skip
    loss = popart.IdentityLoss("y", "loss")
    w = np.float32([[1, -2, 0.5]])
    found = trained(nodes, {"w": w}, loss, "Gradient___w", "e")
    np.testing.assert_allclose(found["Gradient___w"], 1 + found["e"], rtol=1e-6)
