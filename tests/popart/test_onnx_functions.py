"""An operator without a lowering runs by the nodes of the function that ONNX defines it by."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from models import model, node, outcome, prepared, tiny

from simulator import popart
from simulator.popart.importing.from_onnx import import_model

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


@pytest.mark.parametrize("opset", [7, 9, 13])
def test_a_rectifier_with_slopes_is_computed_in_versions_before_its_function(opset: int) -> None:
    slope = np.float32([0.5, 2, 1, 3])
    proto = model([node("PRelu", "x s", "y")], {"x": X.shape}, ["y"], {"s": slope}, opset=opset)
    (found,) = outcome(proto, {"x": X}, "y")
    assert found.tolist() == [[-1.5, -1.0, 0.0, 200.0]]


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
    crop = node("CenterCropPad", "x s", "y")
    proto = model([node("Shape", "x", "n"), node("Cast", "x", "s", to=7), crop], {"x": [4]}, ["y"],
                  opset=18)  # fmt: skip
    place = r"node 'y/padded_input' \(ai.onnx.Pad-18\): input 1"
    with pytest.raises(popart.popart_exception, match=place):
        popart.InferenceSession(proto, popart.DataFlow(1, ["y"]), tiny())


@pytest.mark.parametrize(
    ("wrong", "weights", "text"),
    [
        (node("CumSum", "x w", "y"), np.int64(5), r"axis 5 of FLOAT \[2, 3\]"),
        (node("GatherElements", "x w", "y", axis=2), np.int64([[0]]), r"axis 2 of FLOAT \[2, 3\]"),
        (node("GatherElements", "x w", "y"), np.int64([0]), r"indices INT64 \[1\] for FLOAT"),
        (node("LayerNormalization", "x w", "y", axis=3), np.ones(3, np.float32), "axis 3 of FLOAT"),
        (
            node("LayerNormalization", "x w", "y"),
            np.ones((2, 3), np.float32),
            r"at most \[3\], for",
        ),
        (node("Upsample", "x w", "y", mode="odd"), np.float32([1, 2]), "mode 'odd'; known are nea"),
        (node("GRU", "x w w", "y"), np.ones((1, 3, 1), np.float32), "First input tensor must have"),
    ],
)
def test_what_an_operator_cannot_do_is_said_in_one_line(
    wrong: onnx.NodeProto, weights: object, text: str
) -> None:
    opset = 9 if wrong.op_type == "Upsample" else 17
    with pytest.raises(popart.popart_exception, match=text) as found:
        prepared(model([wrong], {"x": [2, 3]}, ["y"], {"w": weights}, opset), ["y"])
    assert "\n" not in str(found.value)


def test_a_node_whose_shape_cannot_be_found_says_so() -> None:
    sideways = node("GRU", "x w r", "y", hidden_size=2, direction="sideways")
    stored = {"w": np.ones((1, 6, 3), np.float32), "r": np.ones((1, 6, 2), np.float32)}
    with pytest.raises(popart.popart_exception, match="what shape 'y' has cannot be found"):
        prepared(model([sideways], {"x": [4, 1, 3]}, ["y"], stored, 14), ["y"])


def test_the_triangle_of_truths_is_one() -> None:
    nodes = [node("Greater", "x z", "t"), node("Trilu", "t", "y")]
    (found,) = outcome(
        model(nodes, {"x": [2, 2]}, ["y"], {"z": np.float32(0)}, 14),
        {"x": np.ones((2, 2), "f")},
        "y",
    )
    assert found.tolist() == [[True, True], [False, True]]
