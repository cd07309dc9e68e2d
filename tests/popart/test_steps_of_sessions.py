"""What a step takes and gives: seeds of replicas, inputs without checks, an optimiser's numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from models import model, node, prepared, tiny

from simulator import popart
from simulator.graph.types import Array


def drawn(seed: int, offset: int = 0) -> Array:
    """Draw numbers on two replicas."""
    options = popart.SessionOptions(enableReplicatedGraphs=True, replicatedGraphCount=2)
    builder = popart.Builder()
    y = builder.aiOnnx.randomnormal(shape=[5], dtype=1)
    session = popart.InferenceSession(
        builder.getModelProto(), popart.DataFlow(1, [y]), tiny(2), userOptions=options
    )
    session.prepareDevice()
    session.setRandomSeed(seed)
    out = session.initAnchorArrays()
    session.run(popart.PyStepIO({}, out))
    return out[y]


def test_each_replica_has_the_seed_above_that_of_the_one_before() -> None:
    first, second = drawn(7)
    assert (first != second).all()
    assert drawn(8)[0].tolist() == second.tolist()


def test_inputs_without_checks_begin_anew_at_their_end() -> None:
    proto = model([node("Neg", "x", "y")], {"x": [2]}, ["y"])
    session = prepared(proto, ["y"], batches=3)
    out = session.initAnchorArrays()
    step = popart.PyStepIO({"x": np.float32([1, 2, 3])}, out)
    with pytest.raises(popart.popart_exception, match="has 3 elements"):
        session.run(step)
    step.enableRuntimeAsserts(False)
    session.run(step)
    assert out["y"].tolist() == [[-1, -2], [-3, -1], [-2, -3]]


def test_arrays_of_weights_are_passed_over() -> None:
    proto = model([node("Mul", "x w", "y")], {"x": [1]}, ["y"], {"w": np.float32([-1])})
    session = prepared(proto, ["y"])
    out = session.initAnchorArrays()
    session.run(popart.PyStepIO({"x": np.float32([2]), "w": np.zeros(1)}, out))
    assert out["y"].tolist() == [-2]
    with pytest.raises(popart.popart_exception, match="no input 'other'"):
        session.run(popart.PyStepIO({"x": np.float32([2]), "other": np.zeros(1)}, out))


def test_numbers_of_an_optimiser_can_be_anchors() -> None:
    builder = popart.Builder()
    w = builder.addInitializedInputTensor(np.ones(2, np.float32))
    loss = builder.aiGraphcore.identityloss([builder.aiOnnx.neg([w])])
    names = [popart.reservedDefaultScaledLearningRate0Prefix() + "FLOAT",
             popart.reservedDefaultWeightDecayScaleFactor0Prefix() + "FLOAT",
             popart.reservedLossScalingPrefix() + "FLOAT"]  # fmt: skip

    def optimizer(rate: float) -> Any:
        return popart.SGD({"defaultLearningRate": (rate, False), "lossScaling": (4.0, False),
                           "defaultWeightDecay": (0.25, False)})  # fmt: skip

    session = popart.TrainingSession(
        builder.getModelProto(), popart.DataFlow(1, names), loss, optimizer(0.5), tiny()
    )
    session.prepareDevice()
    session.weightsFromHost()
    out = session.initAnchorArrays()
    for rate in (0.5, 1.0):
        session.updateOptimizerFromHost(optimizer(rate))
        session.run(popart.PyStepIO({}, out))
        expected = [rate / 4, 1 - rate * 0.25, 4]
        assert [float(out[name]) for name in names] == expected


@pytest.mark.parametrize("name", ["POPART_CACHE_DIR", "POPXL_CACHE_DIR"])
def test_compiled_models_are_kept_where_a_variable_says(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, str(tmp_path))
    proto = model([node("Neg", "x", "y")], {"x": [1]}, ["y"])
    prepared(proto, ["y"])
    assert list(tmp_path.iterdir())


def test_the_older_name_of_an_option_has_the_value_of_the_newer() -> None:
    options = popart.SessionOptions()
    options.prefetchBufferingDepthMap = {"x": 2}
    options.defaultBufferingDepth = 3
    assert options.bufferingDepthMap == {"x": 2}
    assert options.defaultPrefetchBufferingDepth == 3


@pytest.mark.parametrize(("condition", "ends"), [(None, True), (0, False), (2, True)])
def test_a_program_aborts_where_its_condition_is_not_zero(
    condition: int | None, ends: bool
) -> None:
    builder = popart.Builder()
    x = builder.addInputTensor(popart.TensorInfo("FLOAT", [1]))
    y = builder.aiOnnx.abs([x])
    builder.aiGraphcore.abort([] if condition is None else [y])
    session = prepared(builder.getModelProto(), [y])
    out = session.initAnchorArrays()
    step = popart.PyStepIO({x: np.float32([condition or 0])}, out)
    if ends:
        with pytest.raises(popart.poplar_runtime_error, match="Abort Program"):
            session.run(step)
    else:
        session.run(step)


@pytest.mark.parametrize("kind", ["normal", "uniform"])
def test_numbers_like_a_tensor_are_drawn_without_it(kind: str) -> None:
    builder = popart.Builder()
    x = builder.addInitializedInputTensor(np.ones((2, 3), np.float32))
    y = getattr(builder.aiOnnx, f"random{kind}like")([x])
    session = prepared(builder.getModelProto(), [y])
    assert f'"Random{kind.capitalize()}"' in session._serializeIr()
    assert session.initAnchorArrays()[y].shape == (2, 3)
