"""What is computed again needs less memory and more cycles, and gives the same weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from models import model, node, tiny

from simulator import popart
from simulator.graph.types import Array

RANDOM = np.random.default_rng(6)
LAYERS = 12
WEIGHTS = [RANDOM.normal(size=(8, 8)).astype(np.float32) / 3 for _ in range(LAYERS)]
X = RANDOM.normal(size=(1024, 8)).astype(np.float32)
TYPES = popart.RecomputationType


def built(
    *, noted: bool = False, ipus: int = 1, norm: bool = False
) -> tuple[popart.Builder, str, str, list[str]]:
    """Build layers of a product and a tangent; give the input, the loss and the weights."""
    builder = popart.Builder()
    x = y = builder.addInputTensor(popart.TensorInfo(X))
    names = []
    for place, values in enumerate(WEIGHTS):
        with builder.virtualGraph(place * ipus // LAYERS):
            names.append(builder.addInitializedInputTensor(values))
            y = builder.aiOnnx.matmul([y, names[-1]])
            if norm:
                given = [builder.addInitializedInputTensor(np.full(8, n, np.float32)) for n in
                         (1, 0, 0, 1)]  # fmt: skip
                names.append(given[2])
                y = builder.aiOnnx.batchnormalization([y, *given], 5, 1e-3, 0.9)[0]
            if noted:
                builder.recomputeOutputInBackwardPass(y)
            y = builder.aiOnnx.tanh([y])
            if noted and place % 3 != 2:
                builder.recomputeOutputInBackwardPass(y)
                assert builder.getRecomputeOutputInBackwardPass(y)
    with builder.virtualGraph(ipus - 1):
        loss = builder.aiGraphcore.identityloss([y], popart.ReductionType.Sum)
    return builder, x, loss, names


def trained(kind: Any = TYPES.NoRecompute, **given: Any) -> tuple[list[Array], int, int]:
    """Train a batch; give the weights, the bytes that are needed at most and the cycles."""
    pipeline, ipus = bool(given.pop("pipeline", False)), int(given.get("ipus", 1))
    builder, x, loss, names = built(**given)
    options = popart.SessionOptions(
        autoRecomputation=kind, enablePipelining=pipeline, enableGradientAccumulation=pipeline,
        accumulationFactor=4 if pipeline else 1,
        enableOutlining=False,  # whose copies would count, too
    )  # fmt: skip
    session = popart.TrainingSession(
        builder.getModelProto(), popart.DataFlow(1, []), loss, popart.ConstSGD(0.01), tiny(ipus),
        userOptions=options,
    )  # fmt: skip
    session.prepareDevice()
    session.weightsFromHost()
    inputs = np.stack([X, X + 1, X - 1, 2 * X]) if pipeline else X
    session.run(popart.PyStepIO({x: inputs}, {}))
    session.weightsToHost()
    found = {n: np.zeros_like(session._weights[n]) for n in names}
    session.readWeights(popart.PyWeightsIO(found))
    needed = session._engine.getGraphProfile()["memory"]["byTile"]["total"]
    cycles = session._engine.getExecutionProfile()["simulation"]["cycles"]
    return list(found.values()), sum(needed), cycles


def assert_alike(found: list[Array], expected: list[Array]) -> None:
    for values, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(values, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", [TYPES.Standard, "noted"])
def test_less_memory_is_needed_for_more_cycles_between_checkpoints(kind: Any) -> None:
    weights, memory, cycles = trained()
    noted = kind == "noted"
    again, less, more = trained(TYPES.NoRecompute if noted else kind, noted=noted)
    assert_alike(again, weights)
    # At least one of the twelve activations, of 1024 x 8 floats, is not there any more.
    assert less < memory - X.nbytes and more > cycles


def test_all_can_be_computed_again() -> None:
    weights, _, cycles = trained()
    again, _, more = trained(TYPES.RecomputeAll)
    assert_alike(again, weights)
    assert more > cycles


@pytest.mark.parametrize("kind", [TYPES.NormOnly, TYPES.RecomputeAll])
def test_norms_are_computed_again_and_their_statistics_change_once(kind: Any) -> None:
    assert_alike(trained(kind, norm=True)[0], trained(norm=True)[0])


@pytest.mark.parametrize("kind", [TYPES.Pipeline, TYPES.RecomputeAll])
def test_stages_of_a_pipeline_are_computed_again(kind: Any) -> None:
    weights, memory, cycles = trained(ipus=2, pipeline=True)
    again, less, more = trained(kind, ipus=2, pipeline=True)
    assert_alike(again, weights)
    assert more > cycles and less < memory


def test_what_was_dropped_is_dropped_on_the_way_back() -> None:
    builder = popart.Builder()
    w = builder.addInitializedInputTensor(np.ones(64, np.float32))
    (y,) = builder.aiOnnx.dropout([w], 1, 0.5)
    builder.recomputeOutput(y)
    loss = builder.aiGraphcore.identityloss([y], popart.ReductionType.Sum)
    flow = popart.DataFlow(1, [y, f"Gradient___{w}"])
    session = popart.TrainingSession(
        builder.getModelProto(), flow, loss, popart.ConstSGD(0.0), tiny()
    )
    session.prepareDevice()
    session.weightsFromHost()
    found = session.initAnchorArrays()
    session.run(popart.PyStepIO({}, found))
    assert set(found[y].tolist()) == {0, 2}
    assert found[f"Gradient___{w}"].tolist() == found[y].tolist()


def test_a_row_of_nodes_that_is_computed_again_may_be_long() -> None:
    nodes = [node("Tanh", f"x{i}", f"x{i + 1}") for i in range(300)]
    w = np.float32([0.5, -2.0])
    options = popart.SessionOptions(autoRecomputation=TYPES.RecomputeAll)
    session = popart.TrainingSession(
        model(nodes, {}, [], {"x0": w}), popart.DataFlow(1, ["Gradient___x0"]),
        popart.IdentityLoss("x300", "loss"), popart.ConstSGD(0.0), tiny(), userOptions=options,
    )  # fmt: skip
    session.prepareDevice()
    session.weightsFromHost()
    found = session.initAnchorArrays()
    session.run(popart.PyStepIO({}, found))
    value, slope = w.astype(float), np.ones(2)
    for _ in nodes:
        value = np.tanh(value)
        slope = slope * (1 - value**2)
    np.testing.assert_allclose(found["Gradient___x0"], slope, rtol=1e-3)
