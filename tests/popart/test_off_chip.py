"""Tensors off the chip: in remote buffers, with the values that they have on it."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import pva
from simulator import popart
from simulator.graph.types import Array

RANDOM = np.random.default_rng(27)
FIRST, SECOND, INPUT = (RANDOM.normal(size=(8, 8)).astype(np.float32) for _ in range(3))
OFF = popart.TensorLocationSettings(popart.TensorStorage.OffChip, 0)
KINDS = ("weight", "optimizerState", "accumulator")


def momentum(**more: Any) -> popart.SGD:
    return popart.SGD(
        {"defaultLearningRate": (0.1, False), "defaultMomentum": (0.9, False)}, **more
    )


def session_of(
    optimizer: popart.Optimizer | None = None, off: popart.TensorLocationSettings | None = OFF,
    ipus: int = 1, **chosen: Any,
) -> Any:  # fmt: skip
    """Return a session of two products in a row, trained where there is an optimiser."""
    builder = popart.Builder()
    value = builder.addInputTensor(popart.TensorInfo("FLOAT", [8, 8]), "x")
    for phase, weight in enumerate((FIRST, SECOND)):
        name = builder.addInitializedInputTensor(weight, f"w{phase}")
        with builder.executionPhase(phase):
            value = builder.aiOnnx.matmul([value, name])
    loss = builder.aiGraphcore.identityloss([value])
    located = {} if off is None else {f"{kind}TensorLocationSettings": off for kind in KINDS}
    options = popart.SessionOptions(engineOptions={"debug.instrument": "true"}, **located, **chosen)
    device = popart.DeviceManager().createIpuModelDevice({"ipuVersion": "tiny", "numIPUs": ipus})
    flow, model = popart.DataFlow(1, [loss]), builder.getModelProto()
    if optimizer is None:
        session: Any = popart.InferenceSession(model, flow, device, userOptions=options)
    else:
        session = popart.TrainingSession(model, flow, loss, optimizer, device, userOptions=options)
    session.prepareDevice()
    session.weightsFromHost()
    return session


def trained(session: Any, factor: int = 1) -> dict[str, Array]:
    """Return the weights after two changes."""
    anchors = session.initAnchorArrays()
    for _ in range(2):
        session.run(popart.PyStepIO({"x": np.stack([INPUT] * factor)}, anchors))
    session.weightsToHost()
    weights = {name: np.zeros((8, 8), np.float32) for name in ("w0", "w1")}
    session.readWeights(popart.PyWeightsIO(weights))
    return weights


def test_weights_off_the_chip_change_as_sgd_says() -> None:
    first, second = FIRST.astype(np.float64), SECOND.astype(np.float64)
    for _ in range(2):
        ones = np.ones((8, 8)) / 64  # the gradient of a mean
        gradients = INPUT.T @ ones @ second.T, (INPUT @ first).T @ ones
        first, second = first - 0.1 * gradients[0], second - 0.1 * gradients[1]
    weights = trained(session_of(popart.ConstSGD(0.1)))
    np.testing.assert_allclose(weights["w0"], first, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(weights["w1"], second, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("factor", [1, 3])
@pytest.mark.parametrize(
    "optimizer",
    [
        popart.SGD(0.1),
        momentum(),
        momentum(accumulatorAndMomentum=popart.SGDAccumulatorAndMomentum.Separate),
        popart.Adam({}),
    ],
    ids=["plain", "combined", "separate", "adam"],
)
def test_training_off_the_chip_is_that_on_it(optimizer: popart.Optimizer, factor: int) -> None:
    chosen = {"enableGradientAccumulation": factor > 1, "accumulationFactor": factor}
    on = trained(session_of(optimizer, None, **chosen), factor)
    off = trained(session_of(optimizer, **chosen), factor)
    assert all(np.array_equal(on[name], off[name]) for name in on)


def test_a_weight_off_the_chip_takes_no_memory_before_it_is_read() -> None:
    on, off = (session_of(popart.ConstSGD(0.1), where).getReport() for where in (None, OFF))

    def live(report: pva.Report) -> set[str]:
        steps = report.compilation.livenessProgramSteps
        first = next(step for step in steps if step.program.name.startswith("MatMul:0/Conv"))
        return {one.name for one in first.notAlwaysLiveMemory.variables} & {"w0", "w1"}

    assert live(on) == {"w0", "w1"}
    assert live(off) == {"w0"}


@pytest.mark.parametrize(("least", "off"), [(64, True), (65, False)])
def test_small_tensors_stay_on_the_chip(least: int, off: bool) -> None:
    settings = popart.TensorLocationSettings(popart.TensorStorage.OffChip, least)
    assert ("RemoteArg___w0" in tensors_of(session_of(off=settings))) == off


def tensors_of(session: Any) -> set[str]:
    nodes = json.loads(session._serializeIr(popart.IrSerializationFormat.JSON))["maingraph"]
    return {end["name"] for node in nodes for end in node["inputs"]}


def test_a_location_of_its_own_comes_before_that_of_all() -> None:
    own = {"w0": popart.TensorLocation(popart.TensorStorage.OnChip)}
    names = tensors_of(session_of(momentum(), tensorLocationSettingsOverride=own))
    assert "RemoteArg___w0" not in names
    assert {"RemoteArg___w1", "RemoteArg___Accl___w0"} <= names


def test_phases_take_turns_on_two_ipus() -> None:
    mode = {"virtualGraphMode": popart.VirtualGraphMode.ExecutionPhases}
    session = session_of(popart.ConstSGD(0.1), ipus=2, **mode)
    nodes = json.loads(session._serializeIr(popart.IrSerializationFormat.JSON))["maingraph"]
    placed = [n["attributes"]["__ipu_number"] for n in nodes if n["type"] == "MatMul"]
    assert placed == ["0", "1"]
    plain = trained(session_of(popart.ConstSGD(0.1), None))
    assert all(np.allclose(plain[name], value) for name, value in trained(session).items())


def test_a_shard_of_replicas_is_a_warning(capfd: pytest.CaptureFixture[str]) -> None:
    location = popart.TensorLocation(
        popart.TensorStorage.OffChip,
        replicatedTensorSharding=popart.ReplicatedTensorSharding.On,
    )
    many = {"enableReplicatedGraphs": True, "replicatedGraphCount": 2}
    session_of(off=popart.TensorLocationSettings(location, 0, 0), ipus=2, **many)
    assert "each replica has them whole" in capfd.readouterr().err


def test_a_location_of_another_kind_is_refused() -> None:
    with pytest.raises(popart.popart_exception, match="TensorStorage"):
        popart.TensorLocation("OffChip")  # type: ignore[arg-type]
