"""Operators whose outputs are as long as what is chosen: with their bound, and what counts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from models import model, node, outcome
from onnx.reference import ReferenceEvaluator

from simulator.popart import backend
from simulator.popart.importing.from_onnx import import_model
from simulator.popart.simulate import Request, simulate_model

X = np.float32([[0, 2, 0], [3, 0, 4]])


def refused(proto: onnx.ModelProto) -> str:
    return "\n".join(import_model(proto, "model", None)[1])


def test_places_that_are_not_zero_come_first_and_the_rest_of_the_bound_is_minus_one() -> None:
    (found,) = outcome(model([node("NonZero", "x", "y")], {"x": [2, 3]}, ["y"]), {"x": X}, "y")
    assert found.tolist() == [[0, 1, 1, -1, -1, -1], [1, 0, 2, -1, -1, -1]]


def test_what_is_gathered_by_a_mask_has_as_many_elements_as_the_mask_counts() -> None:
    # As PyTorch exports x[x > 1] * 2.
    nodes = [
        node("Greater", "x one", "mask"), node("NonZero", "mask", "places"),
        node("Transpose", "places", "rows", perm=[1, 0]), node("GatherND", "x rows", "kept"),
        node("Mul", "kept two", "y"),
    ]  # fmt: skip
    weights = {"one": np.float32(1), "two": np.float32(2)}
    proto = model(nodes, {"x": [2, 3]}, ["y"], weights, opset=13)
    (found,) = backend.prepare(proto).run([X])
    assert found.tolist() == (X[X > 1] * 2).tolist() == [4, 6, 8]


@pytest.mark.parametrize(
    ("reader", "attributes"),
    [("ReduceSum", {"keepdims": 0}), ("Softmax", {"axis": 1}), ("Flatten", {})],
)
def test_what_would_count_the_rest_of_a_bound_is_refused(
    reader: str, attributes: dict[str, int]
) -> None:
    nodes = [node("NonZero", "x", "p"), node("Cast", "p", "f", to=1)]
    proto = model([*nodes, node(reader, "f", "y", **attributes)], {"x": [2, 3]}, ["y"], opset=13)
    said = "reads 'f', FLOAT [2, 6], of which only the first elements along axis 1 count"
    assert said in refused(proto) and f"node 'y' (ai.onnx.{reader}" in refused(proto)


def test_a_bound_and_a_tensor_as_long_as_it_are_not_added() -> None:
    nodes = [node("NonZero", "x", "p"), node("Cast", "p", "f", to=1), node("Add", "f w", "y")]
    for columns, fits in ((1, True), (6, False)):
        weights = {"w": np.zeros((2, columns), np.float32)}
        assert (refused(model(nodes, {"x": [2, 3]}, ["y"], weights, opset=13)) == "") is fits


def test_the_written_outputs_of_a_model_are_as_long_as_what_is_chosen(tmp_path: Path) -> None:
    proto = model([node("NonZero", "x", "y")], {"x": [2, 3]}, ["y"], opset=13)
    onnx.save(proto, tmp_path / "m.onnx")
    request = Request(target="tiny", data={"x": X})
    found = simulate_model(tmp_path / "m.onnx", tmp_path / "out", request)
    assert found.outputs["y"].tolist() == [list(n) for n in np.nonzero(X)]


def boxes_model(limit: int | None = 3, **attributes: int) -> onnx.ModelProto:
    weights = {"iou": np.float32([0.1]), "least": np.float32([0.2])}
    if limit is not None:
        weights["limit"] = np.int64([limit])
    nms = node("NonMaxSuppression", "boxes scores limit iou least", "y", **attributes)
    inputs = {"boxes": [2, 12, 4], "scores": [2, 3, 12]}
    if limit is None:
        inputs["limit"] = [1]
    return model([nms], inputs, ["y"], weights, opset=11)


@pytest.mark.parametrize("center", [0, 1])
def test_boxes_are_chosen_as_onnx_does(center: int) -> None:
    random = np.random.default_rng(center)
    boxes = random.random((2, 12, 4)).astype(np.float32) * np.float32([1, 1, 0.5, 0.5])
    scores = random.random((2, 3, 12)).astype(np.float32)
    proto = boxes_model(8, center_point_box=center)
    (found,) = backend.prepare(proto).run([boxes, scores])
    (wanted,) = ReferenceEvaluator(proto).run(None, {"boxes": boxes, "scores": scores})
    assert found.tolist() == wanted.tolist() and 6 < len(found) < 48


def test_boxes_without_a_constant_limit_are_refused_by_name() -> None:
    proto = boxes_model(limit=None)
    proto.graph.input[2].type.tensor_type.elem_type = onnx.TensorProto.INT64
    said = "node 'y' (ai.onnx.NonMaxSuppression-11): input 2 ('limit')"
    assert said in refused(proto)
    assert "it is the bound of the rows" in refused(boxes_model(limit=0))
