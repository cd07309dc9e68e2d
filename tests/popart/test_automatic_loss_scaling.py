"""Automatic loss scaling: the scale follows the gradients, and the weights do not notice."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from models import tiny

from simulator import popart
from simulator.graph.types import Array

Method = popart.GradientTensorTrackingMethod
LARGEST = 65504.0
SCALE = 8.0


def network() -> tuple[Any, str, list[str]]:
    """Make loss = mean((x w0) relu w1) in halves; returns the model, the loss and the weights."""
    builder = popart.Builder()
    random = np.random.default_rng(3)
    builder.addInputTensor(popart.TensorInfo("FLOAT16", [4, 8]), "x")
    weights = [
        builder.addInitializedInputTensor(random.random(shape).astype(np.float16), name)
        for name, shape in (("w0", (8, 6)), ("w1", (6, 2)))
    ]
    with builder.virtualGraph(0):
        hidden = builder.aiOnnx.relu([builder.aiOnnx.matmul(["x", weights[0]])])
    with builder.virtualGraph(1):
        out = builder.aiOnnx.matmul([hidden, weights[1]])
        loss = builder.aiGraphcore.identityloss([out], popart.ReductionType.Mean)
    return builder.getModelProto(), loss, weights


def trained(
    anchors: list[str], batches: int, ipus: int = 1, scale: Any = (SCALE, False), **settings: Any
) -> tuple[dict[str, Array], dict[str, Array]]:
    """Train some batches; give the anchors and the weights."""
    proto, loss, weights = network()
    options = popart.SessionOptions()
    for name, value in settings.pop("options", {}).items():
        setattr(options, name, value)
    for name, value in settings.items():
        setattr(options.automaticLossScalingSettings, name, value)
    optimizer = popart.SGD({"lossScaling": scale, "defaultLearningRate": (0.5, False)})
    session = popart.TrainingSession(
        proto, popart.DataFlow(batches, anchors), loss, optimizer, tiny(ipus), userOptions=options
    )
    session.prepareDevice()
    session.weightsFromHost()
    arrays = session.initAnchorArrays()
    count = batches * options.factor * options.replicas
    x = np.random.default_rng(4).random((count, 4, 8)).astype(np.float16)
    session.run(popart.PyStepIO({"x": x}, arrays))
    session.weightsToHost()
    values = {
        name: np.zeros(w, np.float16) for name, w in zip(weights, ((8, 6), (6, 2)), strict=True)
    }
    session.readWeights(popart.PyWeightsIO(values))
    return arrays, values


@pytest.mark.parametrize(
    ("edge", "period", "expected"),
    [
        (1.0, 1, [8, 16, 32, 64]),  # no gradient is so large
        (0.0, 1, [8, 4, 2, 1]),  # all are
        (1.0, 2, [8, 16, 16, 32]),
        (1.0, 3, [8, 16, 16, 16]),
    ],
)
def test_the_scale_doubles_or_halves_after_a_change(
    edge: float, period: int, expected: list[float]
) -> None:
    settings = {"enabled": True, "binEdgeLocation": edge, "updatePeriod": period}
    anchors, _ = trained(["finalLossScale"], 4, **settings)
    assert anchors["finalLossScale"].tolist() == expected


@pytest.mark.parametrize(
    ("ipus", "options"),
    [
        (1, {}),
        (2, {"virtualGraphMode": popart.VirtualGraphMode.Manual}),
        (1, {"enableGradientAccumulation": True, "accumulationFactor": 3}),
        (2, {"enableReplicatedGraphs": True, "replicatedGraphCount": 2}),
        (2, {"enablePipelining": True, "enableGradientAccumulation": True,
             "accumulationFactor": 4, "virtualGraphMode": popart.VirtualGraphMode.Manual}),
    ],
)  # fmt: skip
def test_weights_change_as_with_a_scale_that_stays(ipus: int, options: dict[str, Any]) -> None:
    settings = {"enabled": True, "binEdgeLocation": 1.0}
    anchors, moving = trained(["finalLossScale"], 3, ipus, options=options, **settings)
    _, fixed = trained([], 3, ipus, options=options)
    scales = np.unique(anchors["finalLossScale"])
    assert scales.tolist() == [8, 16, 32]
    for name, values in fixed.items():
        np.testing.assert_array_equal(moving[name], values)


@pytest.mark.parametrize(
    ("method", "tensors"),
    [
        # A product's gradients, and that of the Relu between them: 6 x 2, 4 x 6, 8 x 6 and 4 x 6.
        (Method.ConvAndMatmulGradients, ["w1", "Relu:0", "w0"]),
        (Method.AllNonViewChangingGradientTensors, ["w1", "Relu:0", "w0", "MatMul:0"]),
        (Method.GradientsOfUserSpecifiedTensors, ["w0"]),
    ],
)
def test_gradients_are_counted_by_their_size(method: Any, tensors: list[str]) -> None:
    names = [f"Gradient___{name}" for name in tensors]
    by_name = method is Method.GradientsOfUserSpecifiedTensors
    edge = 2.0 / LARGEST
    anchors, _ = trained(
        [*names, "Accum___autoLossScaleStats"], 1, enabled=True, binEdgeLocation=edge,
        gradientTensorTrackingMethod=method, toTrackTensors=["w0"] if by_name else None,
    )  # fmt: skip
    sizes = np.concatenate([np.abs(anchors[name]).reshape(-1) for name in names])
    limit = np.float16(LARGEST * edge)
    expected = [int((sizes < limit).sum()), int((sizes >= limit).sum())]
    assert min(expected) > 0
    assert anchors["Accum___autoLossScaleStats"].tolist() == expected


def test_counts_add_up_over_micro_batches() -> None:
    options = {"enableGradientAccumulation": True, "accumulationFactor": 3}
    anchors, _ = trained(["Accum___autoLossScaleStats"], 2, options=options, enabled=True)
    elements = 12 + 24 + 48 + 24
    sums = anchors["Accum___autoLossScaleStats"].sum(axis=-1)
    assert sums.tolist() == [[elements, 2 * elements, 3 * elements]] * 2


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"scale": (SCALE, True)}, "must have non-const loss scaling"),
        ({"toTrackTensors": ["w0"]}, "has not been set to 'GradientTensorTracking"),
        ({"gradientTensorTrackingMethod": Method.GradientsOfUserSpecifiedTensors},
         "'toTrackTensors' has not been set"),
        ({"toTrackTensors": ["w9"],
          "gradientTensorTrackingMethod": Method.GradientsOfUserSpecifiedTensors},
         "no tensor 'w9'"),
        ({"binEdgeLocation": 1.5}, "current value is 1.5"),
        ({"updatePeriod": "often"}, "'often'; a whole number of at least 1"),
        ({"options": {"enablePipelining": True}, "ipus": 2}, "not currently supported"),
    ],
)  # fmt: skip
def test_what_excludes_automatic_scaling_is_said(settings: Any, expected: str) -> None:
    with pytest.raises(popart.popart_exception, match=expected):
        trained([], 1, enabled=True, **settings)


def test_floats_are_not_scaled() -> None:
    builder = popart.Builder()
    builder.addInputTensor(popart.TensorInfo("FLOAT", [2, 2]), "x")
    weight = builder.addInitializedInputTensor(np.ones((2, 2), np.float32))
    loss = builder.aiGraphcore.identityloss([builder.aiOnnx.matmul(["x", weight])])
    options = popart.SessionOptions()
    options.automaticLossScalingSettings.enabled = True
    optimizer = popart.SGD({"lossScaling": (SCALE, False)})
    with pytest.raises(popart.popart_exception, match="of type fp16 were found"):
        popart.TrainingSession(
            builder.getModelProto(), popart.DataFlow(1, []), loss, optimizer, tiny(),
            userOptions=options,
        )  # fmt: skip


def test_a_written_model_goes_on_with_its_factor(tmp_path: Any) -> None:
    proto, loss, _ = network()
    options = popart.SessionOptions()
    settings = options.automaticLossScalingSettings
    settings.enabled, settings.binEdgeLocation, settings.updatePeriod = True, 1.0, 2
    optimizer = popart.SGD({"lossScaling": (SCALE, False)})
    model, scales = proto, []
    for number in range(4):
        session = popart.TrainingSession(
            model, popart.DataFlow(1, ["finalLossScale"]), loss, optimizer, tiny(),
            userOptions=options,
        )  # fmt: skip
        session.prepareDevice()
        session.weightsFromHost()
        arrays = session.initAnchorArrays()
        session.run(popart.PyStepIO({"x": np.ones((4, 8), np.float16)}, arrays))
        scales.append(float(arrays["finalLossScale"]))
        model = str(tmp_path / f"{number}.onnx")
        session.modelToHost(model)
    assert scales == [8, 16, 16, 32]
