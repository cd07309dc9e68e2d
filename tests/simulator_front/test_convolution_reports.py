"""Reports of layers: every law holds, values are NumPy's, and the device's tiles suffice."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from convolved import convolved
from device_program import DeviceProgram
from value_program import numbers

from pva.formats import registry
from simulator import poplin
from simulator.graph.types import FLOAT, HALF, Type
from simulator.poplibs.poplin import ConvParams, InputTransform, OutputTransform

AROUND = InputTransform(paddingLower=(1, 1), paddingUpper=(1, 1))
LAYERS = {
    "3x3": ConvParams(HALF, 2, (9, 8), (3, 3), 16, 24, 1, AROUND),
    "stride": ConvParams(
        FLOAT, 1, (9, 9), (3, 3), 8, 8, 1, AROUND, outputTransform=OutputTransform(stride=(2, 2))
    ),
    "1x1": ConvParams(HALF, 4, (6, 6), (1, 1), 32, 16),
    "groups": ConvParams(HALF, 2, (8, 8), (3, 3), 1, 1, 16, AROUND),
}


@pytest.mark.parametrize("name", LAYERS)
def test_training_a_layer_breaks_no_law(name: str, tmp_path: Path) -> None:
    params, device = LAYERS[name], DeviceProgram(tiles=24, target="mk1")
    graph, program, dtype = device.graph, device.program, params.dataType
    shapes = params.input_shape(), params.weights_shape(), params.output_shape()
    data, weights, gradient = (np.rint(numbers(*s, seed=i)) for i, s in enumerate(shapes))
    x = device.give(poplin.createInput(graph, params, "x"), data)
    w = device.give(poplin.createWeights(graph, params, "w"), weights)
    g = device.tensor(gradient, dtype, "g")
    backward = poplin.getGradientParams(params)
    out = poplin.convolution(graph, x, w, params, False, program, "fwd")
    back = poplin.convolution(graph, g, w, backward, True, program, "bwd")
    poplin.convolutionWeightUpdate(graph, g, w, x, params, -1.0, program, "wu")
    report = tmp_path / "report"
    made, deltas, updated = device.run(out, back, w, report=report)
    expected = convolved(data, weights, params)
    assert (made == expected).all()
    # Both gradients are transposes: their products with anything are the forward product.
    forward = float((expected * gradient).sum())
    assert float((deltas.astype(np.float64) * data).sum()) == forward
    assert float(((weights - updated.astype(np.float64)) * weights).sum()) == forward
    names = registry.read(report).column("compute_sets", "name")
    assert any(text.startswith("wu/Conv_1") for text in names)


@pytest.mark.parametrize("dtype", [FLOAT, HALF])
def test_training_a_fully_connected_layer_breaks_no_law(dtype: Type, tmp_path: Path) -> None:
    device = DeviceProgram(tiles=40, target="mk1")
    graph, program = device.graph, device.program
    shapes = [16, 64], [64, 24]
    options = {
        name: {"fullyConnectedPass": name, "planConstraints": {"isJointPlan": True}}
        for name in ("TRAINING_FWD", "TRAINING_BWD", "TRAINING_WU")
    }
    first = options["TRAINING_FWD"]
    a, b, c = (np.rint(numbers(*s, seed=i)) for i, s in enumerate((*shapes, [16, 24])))
    x = device.give(poplin.createMatMulInputLHS(graph, dtype, dtype, *shapes, "x", first), a)
    w = device.give(poplin.createMatMulInputRHS(graph, dtype, dtype, *shapes, "w", first), b)
    g = device.tensor(c, dtype, "g")
    out = poplin.matMul(graph, x, w, program, "fwd", options=first)
    back = poplin.matMul(graph, g, w.transpose(), program, "bwd", options=options["TRAINING_BWD"])
    poplin.matMulAcc(graph, w, 2.0, x.transpose(), g, program, "wu", options=options["TRAINING_WU"])
    made, deltas, updated = device.run(out, back, w, report=tmp_path / "report")
    assert (made == a @ b).all() and (deltas == c @ b.T).all()
    assert (updated == b + 2 * a.T @ c).all()
