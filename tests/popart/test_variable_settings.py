"""Weights that groups of replicas share: values, changes, and what is read of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simulator import popart
from simulator.graph.types import Array

Kind, Mode = popart.CommGroupType, popart.VariableRetrievalMode
WEIGHTS = np.float32([[1, 2], [3, 4]])  # of two groups
INPUTS = np.float32([[1, 1], [2, 1], [3, 1], [4, 1]])  # of four replicas
PAIRS = {Kind.Consecutive: [[0, 1], [2, 3]], Kind.Orthogonal: [[0, 2], [1, 3]]}


def session_of(settings: popart.VariableSettings, values: Array = WEIGHTS, **chosen: Any) -> Any:
    """Return a session of four replicas whose loss is the sum of x w."""
    builder = popart.Builder()
    builder.embedReplicationFactor(4)
    x = builder.addInputTensor(popart.TensorInfo("FLOAT", [2]), "x")
    product = builder.aiOnnx.mul([x, builder.addInitializedInputTensor(values, settings, "w")])
    assert builder.getTensorShape(product) == [2]
    loss = builder.aiGraphcore.identityloss([product], reduction=popart.ReductionType.Sum)
    session = popart.TrainingSession(
        builder.getModelProto(), popart.DataFlow(1, [loss]), loss, popart.ConstSGD(1.0),
        popart.DeviceManager().createIpuModelDevice({"ipuVersion": "tiny", "numIPUs": 4}),
        userOptions=popart.SessionOptions(
            enableReplicatedGraphs=True, replicatedGraphCount=4, **chosen
        ),
    )  # fmt: skip
    session.prepareDevice()
    session.weightsFromHost()
    return session


def read(session: Any, *shape: int) -> Array:
    session.weightsToHost()
    out = np.zeros(shape, np.float32)
    session.readWeights(popart.PyWeightsIO({"w": out}))
    return out


@pytest.mark.parametrize("kind", list(PAIRS))
def test_each_group_changes_its_weight_by_its_own_gradients(kind: popart.CommGroupType) -> None:
    session = session_of(popart.VariableSettings(popart.CommGroup(kind, 2)))
    anchors = session.initAnchorArrays()
    session.run(popart.PyStepIO({"x": INPUTS}, anchors))
    places = {replica: group for group, pair in enumerate(PAIRS[kind]) for replica in pair}
    losses = [INPUTS[replica] @ WEIGHTS[places[replica]] for replica in range(4)]
    np.testing.assert_allclose(list(anchors.values())[0], losses)
    sums = np.stack([INPUTS[pair].sum(axis=0) for pair in PAIRS[kind]])
    np.testing.assert_allclose(read(session, 2, 2), WEIGHTS - sums)


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (Mode.OnePerGroup, WEIGHTS),
        (Mode.AllReplicas, WEIGHTS[[0, 0, 1, 1]]),
        (Mode.AllReduceReplicas, 2 * WEIGHTS),
    ],
)
def test_what_is_read_is_one_of_a_group_or_all_or_their_sum(
    mode: popart.VariableRetrievalMode, expected: Array
) -> None:
    settings = popart.VariableSettings(popart.CommGroup(Kind.Consecutive, 2), mode)
    assert read(session_of(settings), *expected.shape).tolist() == expected.tolist()


def test_replicas_without_a_group_have_weights_of_their_own() -> None:
    values = np.arange(8, dtype=np.float32).reshape(4, 2)
    session = session_of(popart.VariableSettings(popart.CommGroup(Kind["None"], 0)), values)
    session.run(popart.PyStepIO({"x": INPUTS}, session.initAnchorArrays()))
    np.testing.assert_allclose(read(session, 4, 2), values - INPUTS)


def test_weights_of_groups_are_the_same_off_the_chip() -> None:
    off = popart.TensorLocationSettings(popart.TensorStorage.OffChip, 0)
    settings = popart.VariableSettings(popart.CommGroup(Kind.Consecutive, 2))
    found = []
    for located in ({}, {"weightTensorLocationSettings": off}):
        session = session_of(settings, **located)
        session.run(popart.PyStepIO({"x": INPUTS}, session.initAnchorArrays()))
        found.append(read(session, 2, 2).tolist())
    assert found[0] == found[1]


def test_a_written_model_goes_on_with_its_groups(tmp_path: Path) -> None:
    settings = popart.VariableSettings(popart.CommGroup(Kind.Orthogonal, 2))
    first = session_of(settings)
    first.run(popart.PyStepIO({"x": INPUTS}, first.initAnchorArrays()))
    first.modelToHost(tmp_path / "model.onnx")
    again = session_of(settings)
    again.resetHostWeights(tmp_path / "model.onnx")
    again.weightsFromHost()
    assert read(again, 2, 2).tolist() == read(first, 2, 2).tolist()


@pytest.mark.parametrize(
    ("settings", "replicas", "groups"),
    [
        (popart.VariableSettings(), 4, [[0, 1, 2, 3]]),
        (popart.VariableSettings(popart.CommGroup(Kind.Consecutive, 2)), 4, [[0, 1], [2, 3]]),
        (popart.VariableSettings(popart.CommGroup(Kind.Orthogonal, 2)), 4, [[0, 2], [1, 3]]),
        (popart.VariableSettings(popart.CommGroup(Kind["None"], 0)), 2, [[0], [1]]),
        (popart.VariableSettings(2, 2), 8, [[0, 2], [1, 3], [4, 6], [5, 7]]),
    ],
)
def test_groups_are_those_of_their_kind(
    settings: popart.VariableSettings, replicas: int, groups: list[list[int]]
) -> None:
    assert settings.groups(replicas) == groups
    assert settings.getGroupCount(replicas) == len(groups)
    assert settings.shapeOnHost([3], replicas) == ([3] if len(groups) == 1 else [len(groups), 3])


def test_what_is_no_group_is_refused() -> None:
    with pytest.raises(popart.popart_exception, match="at least 1"):
        popart.VariableSettings(popart.CommGroup(Kind.Consecutive, 0))
    with pytest.raises(popart.popart_exception, match="4 groups are needed"):
        session_of(popart.VariableSettings(popart.CommGroup(Kind["None"], 0)))
    with pytest.raises(popart.popart_exception, match="a power of two"):
        popart.VariableSettings(popart.CommGroup(Kind.Consecutive, 3)).groups(4)
