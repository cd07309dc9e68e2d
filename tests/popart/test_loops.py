"""Loops run as onnx's reference evaluator runs them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from models import tiny
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from simulator import popart
from simulator.graph.types import Array

RANDOM = np.random.default_rng(4)
A, B = (RANDOM.normal(size=(2, 2)).astype(np.float32) for _ in range(2))


def looped(
    nodes: list[onnx.NodeProto], outputs: list[str], carried: list[str], results: list[str],
    trips: Any = 5, condition: Any = True, constant: bool = True,
) -> onnx.ModelProto:  # fmt: skip
    """Make a model of a Loop whose body has these nodes: `i`, `go` and `<carried>_in` come in."""
    typed = helper.make_tensor_value_info
    ins = [
        typed("i", TensorProto.INT64, []),
        typed("go", TensorProto.BOOL, []),
        *(helper.make_value_info(f"{name}_in", onnx.TypeProto()) for name in carried),
    ]
    outs = [helper.make_value_info(name, onnx.TypeProto()) for name in outputs]
    body = helper.make_graph(nodes, "body", ins, outs)
    given = {"M": trips, "cond": condition}
    values = {"M": np.asarray(trips or 0, np.int64), "cond": np.asarray(condition)}
    names = [name if given[name] is not None else "" for name in ("M", "cond")]
    loop = helper.make_node("Loop", [*names, *carried], results, "loop", body=body)
    made = [
        helper.make_node("Constant", [], [n], value=numpy_helper.from_array(values[n], n))
        for n in values
        if constant and given[n] is not None
    ]
    inputs = [typed(name, TensorProto.FLOAT, [2, 2]) for name in ("a", "b")]
    if not constant:
        inputs += [typed("M", TensorProto.INT64, []), typed("cond", TensorProto.BOOL, [])]
    found = [helper.make_value_info(name, onnx.TypeProto()) for name in results if name]
    graph = helper.make_graph([*made, loop], "main", inputs, found)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def assert_alike(proto: onnx.ModelProto, *names: str, **more: Array) -> None:
    """Run the model here and by onnx's evaluator."""
    found = outcome(proto, *names, **more)
    expected = ReferenceEvaluator(proto).run(list(names), {"a": A, "b": B, **more})
    for name, values in zip(names, expected, strict=True):
        np.testing.assert_allclose(found[name], values, rtol=1e-4, atol=1e-5)


def outcome(proto: onnx.ModelProto, *names: str, **more: Array) -> dict[str, Array]:
    """Run the model here."""
    session = popart.InferenceSession(proto, popart.DataFlow(1, list(names)), tiny())
    session.prepareDevice()
    found = session.initAnchorArrays()
    session.run(popart.PyStepIO({"a": A, "b": B, **more}, found))
    return found


MAT_MUL = helper.make_node("MatMul", ["a_in", "b"], ["a_out"])
ADD = helper.make_node("Add", ["a_in", "b"], ["a_out"])


@pytest.mark.parametrize("node", [MAT_MUL, ADD])
@pytest.mark.parametrize("trips", [1, 2, 7])
def test_a_body_reads_what_is_around_it(node: onnx.NodeProto, trips: int) -> None:
    assert_alike(looped([node], ["go", "a_out"], ["a"], ["y"], trips), "y")


def test_slices_are_stacked_and_the_number_of_the_run_is_read() -> None:
    nodes = [ADD, helper.make_node("Cast", ["i"], ["f"], to=TensorProto.FLOAT),
             helper.make_node("Mul", ["a_out", "f"], ["s"]),
             helper.make_node("Identity", ["go"], ["on"])]  # fmt: skip
    proto = looped(nodes, ["on", "a_out", "s", "f"], ["a"], ["y", "t", "n"])
    found = outcome(proto, "y", "t", "n")  # onnx's evaluator joins slices that it should stack
    runs = np.arange(5)[:, None, None]
    np.testing.assert_allclose(found["y"], A + 5 * B, rtol=1e-5)
    np.testing.assert_allclose(found["t"], (A + (runs + 1) * B) * runs, rtol=1e-4, atol=1e-5)
    assert found["n"].tolist() == [0, 1, 2, 3, 4]


def test_what_is_carried_can_change_places() -> None:
    proto = looped([], ["go", "b_in", "a_in"], ["a", "b"], ["y", "z"], trips=3)
    assert_alike(proto, "y", "z")


@pytest.mark.parametrize("trips", [20, None])
def test_a_body_stops_when_it_wants_to(trips: int | None) -> None:
    nodes = [ADD, helper.make_node("ReduceSum", ["a_out"], ["total"], keepdims=0),
             helper.make_node("Abs", ["total"], ["size"]),
             helper.make_node("Constant", [], ["most"], value=numpy_helper.from_array(
                 np.float32(12), "most")),
             helper.make_node("Less", ["size", "most"], ["on"])]  # fmt: skip
    expected = A + B
    for _ in range(19):  # it stops long before
        expected = expected + B if abs(expected.sum()) < 12 else expected
    found = outcome(looped(nodes, ["on", "a_out"], ["a"], ["y"], trips), "y")["y"]
    assert abs(expected.sum()) >= 12
    np.testing.assert_allclose(found, expected, rtol=1e-4)


@pytest.mark.parametrize(("trips", "go"), [(3, True), (0, True), (3, False)])
def test_how_often_can_be_an_input(trips: int, go: bool) -> None:
    proto = looped([ADD], ["go", "a_out"], ["a"], ["y"], constant=False)
    assert_alike(proto, "y", M=np.asarray(trips, np.int64), cond=np.asarray(go))


@pytest.mark.parametrize(
    ("nodes", "outputs", "given", "text"),
    [
        ([ADD], ["go", "a_out", "a_out"], {"constant": False}, "how many slices it stacks is not"),
        ([helper.make_node("Concat", ["a_in", "b"], ["c"], axis=0)], ["go", "c"], {},
         r"'a' goes in as FLOAT \[2, 2\] and comes out as FLOAT \[4, 2\]; the same"),
        ([ADD], ["go", "a_out"], {"trips": 0}, "it never runs; what it leaves would be what"),
    ],
)  # fmt: skip
def test_a_loop_that_cannot_run_says_why(
    nodes: list[onnx.NodeProto], outputs: list[str], given: dict[str, Any], text: str
) -> None:
    results = ["y", "t"][: len(outputs) - 1]
    proto = looped(nodes, outputs, ["a"], results, **given)
    with pytest.raises(popart.popart_exception, match=text):
        popart.InferenceSession(proto, popart.DataFlow(1, ["y"]), tiny())


def test_a_loop_has_no_gradient() -> None:
    proto = looped([ADD], ["go", "a_out"], ["a"], ["y"])
    loss = popart.IdentityLoss("y", "loss")
    with pytest.raises(
        popart.popart_exception, match=r"'loop' \(ai.onnx.Loop-13\) has no gradient"
    ):
        popart.TrainingSession(
            proto, popart.DataFlow(1, ["Gradient___a"]), loss, popart.SGD(0.1), tiny()
        )


def test_the_builder_makes_loops() -> None:
    builder = popart.Builder()
    a, b = (builder.addInputTensor(popart.TensorInfo("FLOAT", [2, 2])) for _ in range(2))
    trips = builder.aiOnnx.constant(np.array(4, np.int64), "M")
    condition = builder.aiOnnx.constant(np.array(True), "cond")
    body = builder.createSubgraphBuilder()
    body.setGraphName("body")
    body.addInputTensor(popart.TensorInfo("INT64", []))
    go = body.addInputTensor(popart.TensorInfo("BOOL", []))
    inside = body.addUntypedInputTensor(a)
    made = body.aiOnnx.matmul([inside, b])
    for name in (go, made):
        body.addOutputTensor(name)
    (y,) = builder.aiOnnx.loop([trips, condition, a], 1, body)
    session = popart.InferenceSession(builder.getModelProto(), popart.DataFlow(1, [y]), tiny())
    session.prepareDevice()
    found = session.initAnchorArrays()
    session.run(popart.PyStepIO({a: A, b: B}, found))
    np.testing.assert_allclose(found[y], A @ np.linalg.matrix_power(B, 4), rtol=1e-3, atol=1e-4)
