"""Replicas and accumulated micro-batches change weights as one large batch does."""

from __future__ import annotations

import numpy as np
import pytest
from models import model, node, tiny

from simulator import popart
from simulator.graph.types import Array

RANDOM = np.random.default_rng(5)
W0, W1 = (RANDOM.normal(size=shape).astype(np.float32) for shape in ((4, 6), (6, 3)))
NODES = [node("MatMul", "x w0", "h"), node("Tanh", "h", "a"), node("MatMul", "a w1", "y")]
PROTO = model(NODES, {"x": [2, 4]}, ["y"], {"w0": W0, "w1": W1})
RATE = 0.05


def session_of(
    anchors: object, batches: int, ipus: int, **options: object
) -> popart.TrainingSession:
    session = popart.TrainingSession(
        PROTO, popart.DataFlow(batches, anchors), [popart.IdentityLoss("y", "loss")],
        popart.SGD(RATE), tiny(ipus), userOptions=popart.SessionOptions(**options),
    )  # fmt: skip
    session.prepareDevice()
    session.weightsFromHost()
    return session


def expected(x: Array, share: float) -> tuple[list[Array], Array, Array]:
    """Train in NumPy on [batch, one of several, samples, 4]; give outputs and weights."""
    w0, w1, outputs = W0.astype(float), W1.astype(float), []
    for batch in x:
        steps = np.zeros_like(w0), np.zeros_like(w1)
        for one in batch:
            a = np.tanh(one @ w0)
            outputs.append(a @ w1)
            up = np.ones((2, 3))
            steps[1][:] += a.T @ up
            steps[0][:] += one.T @ (up @ w1.T * (1 - a * a))
        w0, w1 = w0 - RATE * share * steps[0], w1 - RATE * share * steps[1]
    return outputs, w0, w1


@pytest.mark.parametrize(
    ("factor", "replicas", "ipus", "reduction"),
    [(3, 1, 1, "Sum"), (1, 4, 1, "Sum"), (2, 2, 1, "Mean"), (1, 2, 2, "Mean"), (4, 2, 2, "Sum")],
)
def test_weights_change_by_the_gradient_of_all(
    factor: int, replicas: int, ipus: int, reduction: str
) -> None:
    options: dict[str, object] = {
        "enableGradientAccumulation": factor > 1, "accumulationFactor": factor,
        "enableReplicatedGraphs": replicas > 1, "replicatedGraphCount": replicas,
        "accumulationAndReplicationReductionType": reduction,
        "autoVirtualGraph": ipus > 1, "enablePipelining": ipus > 1 and factor > 1,
    }  # fmt: skip
    session = session_of(["y"], 2, ipus * replicas, **options)
    x = RANDOM.normal(size=(2, factor * replicas, 2, 4)).astype(np.float32)
    anchors = session.initAnchorArrays()
    assert anchors["y"].shape == (2, *(n for n in (factor, replicas) if n > 1), 2, 3)
    session.run(popart.PyStepIO({"x": x}, anchors))
    session.weightsToHost()
    found = {"w0": np.zeros_like(W0), "w1": np.zeros_like(W1)}
    session.readWeights(found)
    share = 1 / (factor * replicas) if reduction == "Mean" else 1.0
    outputs, w0, w1 = expected(x, share)
    np.testing.assert_allclose(anchors["y"].reshape(-1, 2, 3), outputs, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(found["w0"], w0, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(found["w1"], w1, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("ipus", [1, 2])
def test_anchors_every_so_many_batches_have_all_their_micro_batches(ipus: int) -> None:
    kinds = {"y": popart.AnchorReturnType("EVERYN", 2), "h": popart.AnchorReturnType("FINAL")}
    options = {"autoVirtualGraph": ipus > 1, "enablePipelining": ipus > 1}
    session = session_of(
        kinds, 5, ipus, enableGradientAccumulation=True, accumulationFactor=3, **options
    )
    x = RANDOM.normal(size=(5, 3, 2, 4)).astype(np.float32)
    anchors = session.initAnchorArrays()
    session.run(popart.PyStepIO({"x": x}, anchors))
    outputs, *_ = expected(x, 1.0)
    every = np.reshape(outputs, (5, 3, 2, 3))[1::2]
    np.testing.assert_allclose(anchors["y"], every, rtol=1e-3, atol=1e-5)
    assert anchors["h"].shape == (2, 6)


@pytest.mark.parametrize(
    ("option", "value", "text"),
    [
        ("accumulationFactor", 0, "accumulationFactor is 0; a whole number of at least 1"),
        ("replicatedGraphCount", True, "replicatedGraphCount is True; a whole number"),
        ("accumulationAndReplicationReductionType", "Max", "is 'Max'; known are Sum, Mean"),
    ],
)
def test_a_wrong_option_is_named(option: str, value: object, text: str) -> None:
    with pytest.raises(popart.popart_exception, match=text):
        popart.SessionOptions(**{option: value})


def test_replicas_that_do_not_fit_the_device_are_refused() -> None:
    with pytest.raises(popart.popart_exception, match="2 replicas on a device of 1 IPUs"):
        session_of(["y"], 1, 1, enableReplicatedGraphs=True, replicatedGraphCount=2)


def test_only_training_accumulates() -> None:
    options = popart.SessionOptions(enableGradientAccumulation=True, accumulationFactor=2)
    with pytest.raises(popart.popart_exception, match="only available when training"):
        popart.InferenceSession(PROTO, popart.DataFlow(1, ["y"]), tiny(), userOptions=options)
