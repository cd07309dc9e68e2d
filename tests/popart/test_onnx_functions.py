"""An operator without a lowering runs by the nodes of the function that ONNX defines it by."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from models import model, node, outcome, tiny

from simulator import popart
from simulator.popart.importing import import_model

X = np.float32([[-3.0, -0.5, 0.0, 200.0]])


def test_a_function_of_functions_is_computed() -> None:
    # Mish is x tanh(softplus x); its exponential of 200 would be infinite.
    (found,) = outcome(
        model([node("Mish", "x", "y")], {"x": X.shape}, ["y"], opset=18), {"x": X}, "y"
    )
    wide = X.astype(np.float64)
    expected = wide * np.tanh(np.log1p(np.exp(wide)))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_an_older_operator_has_its_function_though_that_is_newer() -> None:
    proto = model([node("Celu", "x", "y", alpha=2.0)], {"x": X.shape}, ["y"], opset=12)
    (found,) = outcome(proto, {"x": X}, "y")
    wide = X.astype(np.float64)
    expected = np.where(X > 0, wide, 2 * np.expm1(np.minimum(wide, 0) / 2))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_the_nodes_of_a_function_are_called_after_its_node_and_lie_where_it_was_put() -> None:
    swish = onnx.helper.make_node("Swish", ["x"], ["y"], name="act", __ipu_number=1)
    ir, wrong = import_model(model([swish], {"x": [4]}, ["y"], opset=24), "model", None)
    assert wrong == []
    assert [n.name for n in ir.nodes] == ["act/AlphaMulX", "act/SigmoidAlphaMulX", "act/Y"]
    assert {n.attributes["__ipu_number"] for n in ir.nodes} == {1}


def test_what_no_output_needs_of_a_function_is_left_out() -> None:
    nodes = {}
    for outputs in ("y", "y p"):
        loss = node("SoftmaxCrossEntropyLoss", "x t", outputs)
        proto = model([loss], {"x": [2, 3]}, ["y"], {"t": np.int64([0, 2])}, opset=13)
        nodes[outputs] = {made for n in import_model(proto, "model", None)[0].nodes
                          for made in n.outputs}  # fmt: skip
    assert nodes["y p"] - nodes["y"] == {"p"}


def test_a_node_of_a_function_that_cannot_run_is_named_with_its_place() -> None:
    draw = node("Bernoulli", "x", "y", seed=1.0)
    proto = model([draw], {"x": [4]}, ["y"], opset=15)
    place = r"node 'Bernoulli/y/X_random' \(ai.onnx.RandomUniformLike-1\)"
    with pytest.raises(popart.popart_exception, match=place):
        popart.InferenceSession(proto, popart.DataFlow(1, ["y"]), tiny())
