"""Reductions of no axis, and the places of extremes, are PopART's."""

from __future__ import annotations

import numpy as np
import pytest
from models import tiny, trained

from simulator import popart
from simulator.graph.types import Array
from simulator.popart.operators.elements.reductions import REDUCED

DATA = np.float32([[1, -2], [3, 4]])


def built(operator: str, **attributes: object) -> tuple[popart.Builder, str, str]:
    builder = popart.Builder(opsets={"ai.onnx": 11, "ai.graphcore": 1})
    data = builder.addInputTensor(popart.TensorInfo("FLOAT", DATA.shape))
    return builder, data, getattr(builder.aiOnnx, operator)([data], **attributes)


def outcome(builder: popart.Builder, data: str, output: str) -> Array:
    flow = popart.DataFlow(1, [output])
    session = popart.InferenceSession(builder.getModelProto(), flow, tiny())
    session.prepareDevice()
    anchors = session.initAnchorArrays()
    session.run(popart.PyStepIO({data: DATA}, anchors))
    return anchors[output]


# What makes of one number another one.
OF_ONE = {"ReduceL1": np.abs, "ReduceL2": np.abs, "ReduceSumSquare": np.square}


@pytest.mark.parametrize("operator", [name for name in REDUCED if name != "ReduceLogSum"])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_a_reduction_of_no_axis_is_of_each_element(operator: str, keepdims: int) -> None:
    found = outcome(*built(operator.lower(), axes=[], keepdims=keepdims))
    assert found.tolist() == OF_ONE.get(operator, np.array)(DATA).tolist()


def test_a_logarithm_of_sums_of_no_axis_is_that_of_each_element() -> None:
    with np.errstate(invalid="ignore"):
        expected = np.log(DATA)
    np.testing.assert_allclose(outcome(*built("reducelogsum", axes=[])), expected, rtol=1e-6)


def test_a_reduction_that_names_no_axes_is_of_all() -> None:
    assert outcome(*built("reducesum")).tolist() == [[6]]


# By values 1, -2, 3 and 4, and those of an L1Loss of 0.5: half a sign of what comes out.
@pytest.mark.parametrize(
    ("operator", "gradient"),
    [
        ("ReduceL2", [[0.5, -0.5], [0.5, 0.5]]),
        ("ReduceProd", [[0.5, -0.5], [0.5, 0.5]]),
        ("ReduceSumSquare", [[1, -2], [3, 4]]),
    ],
)
def test_the_gradient_of_a_reduction_of_no_axis_is_that_of_each_element(
    operator: str, gradient: list[list[float]]
) -> None:
    from onnx import AttributeProto, helper

    node = helper.make_node(operator, ["w"], ["y"], name="reduced")
    node.attribute.append(helper.make_attribute("axes", [], attr_type=AttributeProto.INTS))
    loss = popart.L1Loss("y", "loss", 0.5)
    found = trained([node], {"w": DATA}, loss, "Gradient___w")
    assert found["Gradient___w"].tolist() == gradient


@pytest.mark.parametrize(("operator", "places"), [("argmax", [0, 1]), ("argmin", [1, 0])])
def test_places_of_extremes_are_int32(operator: str, places: list[int]) -> None:
    found = outcome(*built(operator, axis=1, keepdims=0))
    assert (found.dtype, found.tolist()) == (np.int32, places)


def test_places_are_added_to_numbers_of_64_bits() -> None:
    builder, data, places = built("argmin", axis=1, keepdims=0)
    total = builder.aiOnnx.add([places, builder.aiOnnx.constant(np.int64([10, 20]))])
    assert outcome(builder, data, total).tolist() == [11, 20]
