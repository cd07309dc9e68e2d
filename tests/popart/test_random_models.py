"""Models of random nodes have the values and gradients of the reference evaluator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from models import model, tiny, trained
from random_models import OPSET, evaluated, grown, slope

from simulator import popart
from simulator.graph.types import Array

NUMBERS = range(25)
LOSS = popart.IdentityLoss("z", "loss")
RATE = {"defaultLearningRate": (0.01, False)}
OPTIMIZERS = [
    lambda: popart.SGD(RATE),
    lambda: popart.SGD(RATE | {"defaultMomentum": (0.9, False)}),
    lambda: popart.SGD(RATE, clip_norm_settings=[popart.ClipNormSettings.clipAllWeights(1.0)]),
    lambda: popart.Adam(RATE),
]


@pytest.mark.parametrize("number", NUMBERS)
def test_a_random_model_has_the_values_of_the_reference(number: int) -> None:
    g = grown(number)
    (expected,) = evaluated(g.nodes, g.weights, ["z"])
    found = trained(g.nodes, g.weights, LOSS, "z", opset=OPSET)["z"]
    np.testing.assert_allclose(found, expected, rtol=2e-3, atol=1e-3)


@pytest.mark.parametrize("number", NUMBERS)
def test_a_random_model_has_the_slopes_of_the_reference(number: int) -> None:
    g, random = grown(number), np.random.default_rng(number)
    names = [name for name in g.weights if name.startswith("w")]
    asked = [f"Gradient___{name}" for name in names]
    gradients = trained(g.nodes, g.weights, LOSS, *asked, opset=OPSET)
    for name, gradient in zip(names, map(gradients.get, asked), strict=True):
        direction = random.normal(size=g.weights[name].shape)
        expected, parts = slope(g, name, direction), gradient * direction
        if expected is not None:
            assert abs(parts.sum() - expected) < 3e-3 * (1 + np.abs(parts).sum()), name


@pytest.mark.parametrize("number", NUMBERS)
def test_a_random_model_is_trained_alike_by_the_stages_of_a_pipeline(number: int) -> None:
    # Four batches, two for each change of the weights.
    g, random = grown(number), np.random.default_rng(number)
    name, first = next((n, v) for n, v in g.weights.items() if n.startswith("w"))
    weights = {n: v for n, v in g.weights.items() if n != name}
    given = {name: first + random.normal(size=(2, 2, *first.shape)).astype(np.float32) / 100}
    chosen = OPTIMIZERS[number % len(OPTIMIZERS)]
    plain, staged = (changed(g.nodes, given, weights, chosen(), stages) for stages in (1, 2))
    for one, expected in plain.items():
        np.testing.assert_allclose(staged[one], expected, rtol=2e-3, atol=1e-3, err_msg=one)


def changed(
    nodes: Any, inputs: dict[str, Array], weights: dict[str, Array], optimizer: Any, stages: int
) -> dict[str, Array]:
    """Return the weights after training."""
    options = popart.SessionOptions(
        autoVirtualGraph=stages > 1, enablePipelining=stages > 1,
        enableGradientAccumulation=True, accumulationFactor=2,
    )  # fmt: skip
    shapes = {name: value.shape[2:] for name, value in inputs.items()}
    session = popart.TrainingSession(
        model(nodes, shapes, [], weights, opset=OPSET), popart.DataFlow(2, ["loss"]),
        losses=[LOSS], optimizer=optimizer, deviceInfo=tiny(stages), userOptions=options,
    )  # fmt: skip
    session.prepareDevice()
    session.weightsFromHost()
    session.run(popart.PyStepIO(inputs, session.initAnchorArrays()))
    session.weightsToHost()
    found = {name: np.zeros_like(value) for name, value in weights.items() if name[0] == "w"}
    session.readWeights(found)
    return found
