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


GROUPS = popart.CommGroupType
SUMS = {
    (GROUPS.All, 0): [[0, 1, 2, 3]] * 4,
    (GROUPS.Consecutive, 2): [[0, 1], [0, 1], [2, 3], [2, 3]],
    (GROUPS.Orthogonal, 2): [[0, 2], [1, 3], [0, 2], [1, 3]],
    (GROUPS["None"], 0): [[0], [1], [2], [3]],
}


def reduced_session(group: object, around: bool, training: bool) -> tuple[object, str, str]:
    """Prepare four replicas that add up an input by a group."""
    builder = popart.Builder()
    x = builder.addInputTensor(popart.TensorInfo("FLOAT", [2]))
    scaled = builder.aiGraphcore.scale([x], 2.0)
    if around:
        with builder.commGroup(*group):
            out = builder.aiGraphcore.replicatedallreduce([scaled])
    else:
        out = builder.aiGraphcore.replicatedallreduce([scaled], commGroup=popart.CommGroup(*group))
    options = popart.SessionOptions(enableReplicatedGraphs=True, replicatedGraphCount=4)
    proto = [builder.getModelProto()]
    if training:
        loss = builder.aiGraphcore.identityloss([out], reduction=popart.ReductionType.Sum)
        flow = popart.DataFlow(1, [f"Gradient___{x}"])
        proto = [builder.getModelProto(), flow, loss, popart.ConstSGD(0.1)]
        session = popart.TrainingSession(*proto, tiny(4), userOptions=options)
    else:
        session = popart.InferenceSession(
            *proto, popart.DataFlow(1, [out]), tiny(4), userOptions=options
        )
    session.prepareDevice()
    return session, x, out


@pytest.mark.parametrize("group", SUMS)
@pytest.mark.parametrize("around", [False, True])
def test_replicas_of_a_group_add_up(group: tuple[object, int], around: bool) -> None:
    session, x, out = reduced_session(group, around, training=False)
    data = RANDOM.normal(size=(4, 2)).astype(np.float32)
    anchors = session.initAnchorArrays()
    session.run(popart.PyStepIO({x: data}, anchors))
    expected_sums = [2 * data[replicas].sum(axis=0) for replicas in SUMS[group]]
    np.testing.assert_allclose(anchors[out], expected_sums, rtol=1e-5, atol=1e-6)


def test_the_gradient_of_a_sum_is_that_of_all_replicas() -> None:
    session, x, _ = reduced_session((GROUPS.Consecutive, 2), False, training=True)
    anchors = session.initAnchorArrays()
    session.run(popart.PyStepIO({x: np.ones((4, 2), np.float32)}, anchors))
    # each of two losses changes by 2 with an element
    assert np.unique(anchors[f"Gradient___{x}"]).tolist() == [4]


def test_a_group_that_divides_no_replicas_is_refused() -> None:
    with pytest.raises(popart.popart_exception, match="groups of 3 of 4 replicas"):
        reduced_session((GROUPS.Consecutive, 3), False, training=False)
