"""Sessions give the values of a model, batch by batch."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import onnx.reference
import pytest
from models import model, node, outcome, prepared, tiny

from pva.analysis.operations.cycle_breakdown import cycles_by_operation
from pva.report import openReport
from simulator import popart
from simulator.graph.types import Array
from simulator.popart import AnchorReturnType
from simulator.popart.representation.tensor_info import ELEMENT_TYPES

ADD = model([node("Add", "a b", "c")], {"a": [2], "b": [2]}, ["c"])
DOUBLE = model([node("Add", "a a", "c")], {"a": [2]}, ["c"])


def test_a_sum_is_that_of_numpy() -> None:
    a, b = np.float32([1, 2]), np.float32([10, 20])
    assert outcome(ADD, {"a": a, "b": b}, "c")[0].tolist() == [11, 22]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (AnchorReturnType("ALL"), [[0, 2], [4, 6], [8, 10], [12, 14], [16, 18]]),
        (AnchorReturnType("EVERYN", 2), [[4, 6], [12, 14]]),
        (AnchorReturnType("EveryN", 3), [[8, 10]]),
        (AnchorReturnType("FINAL"), [16, 18]),
    ],
)
def test_anchors_come_from_the_batches_asked_for(kind: AnchorReturnType, expected: object) -> None:
    session = prepared(DOUBLE, {"c": kind}, batches=5)
    anchors = session.initAnchorArrays()
    session.run(popart.PyStepIO({"a": np.arange(10, dtype=np.float32)}, anchors))
    assert anchors["c"].tolist() == expected


@pytest.mark.parametrize("periods", [(2, 4), (2, 3)])
def test_anchors_of_several_periods_are_each_on_time(periods: tuple[int, int]) -> None:
    proto = model([node("Add", "a a", "c"), node("Neg", "a", "d")], {"a": [1]}, ["c", "d"])
    kinds = {
        name: AnchorReturnType("EVERYN", period) for name, period in zip("cd", periods, strict=True)
    }
    session = prepared(proto, kinds, batches=9)
    anchors = session.initAnchorArrays()
    session.run(popart.PyStepIO({"a": np.arange(1, 10, dtype=np.float32)}, anchors))
    first, second = (np.arange(period, 10, period) for period in periods)
    assert anchors["c"].reshape(-1).tolist() == (2 * first).tolist()
    assert anchors["d"].reshape(-1).tolist() == (-second).tolist()


@pytest.mark.parametrize(
    ("operator", "a", "b", "options"),
    [
        ("MatMul", (2, 0), (0, 3), {}),
        ("MatMul", (0, 4), (4, 3), {}),
        ("MatMul", (2, 4), (4, 0), {}),
        ("MatMul", (5, 2, 0), (5, 0, 3), {}),
        ("Gemm", (0, 2), (0, 3), {"transA": 1}),
    ],
)
def test_an_empty_product_is_numpys(
    operator: str, a: tuple[int, ...], b: tuple[int, ...], options: dict[str, int]
) -> None:
    proto = model([node(operator, "a w", "y", **options)], {"a": a}, ["y"], {"w": np.ones(b, "f")})
    data = np.ones(a, np.float32)
    (found,) = outcome(proto, {"a": data}, "y")
    expected = (data.T if options else data) @ np.ones(b)
    assert found.shape == expected.shape
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("operator", ["ReduceMean", "ReduceL1", "ReduceL2"])
@pytest.mark.parametrize("kind", [onnx.TensorProto.INT32, onnx.TensorProto.UINT32])
def test_a_reduction_of_whole_numbers_is_the_references(operator: str, kind: int) -> None:
    nodes = [node("Cast", "x", "i", to=kind), node(operator, "i", "y", axes=[1], keepdims=0)]
    proto = model(nodes, {"x": [2, 4]}, ["y"])
    data = np.float32([[3, 2, 1, 3], [1, 2, 3, 7]]) * (-1 if kind == onnx.TensorProto.INT32 else 1)
    (expected,) = onnx.reference.ReferenceEvaluator(proto).run(None, {"x": data})
    assert outcome(proto, {"x": data}, "y")[0].tolist() == expected.tolist()


def test_arrays_of_any_strides_are_filled() -> None:
    weights = np.arange(6, dtype=np.float32).reshape(2, 3)
    session = prepared(model([node("Add", "w w", "c")], {}, ["c"], {"w": weights}), ["c"])
    out, read = (np.zeros((3, 2), np.float32).T for _ in range(2))
    session.run(popart.PyStepIO({}, {"c": out}))
    session.weightsToHost()
    session.readWeights({"w": read})
    assert out.tolist() == (2 * weights).tolist()
    assert read.tolist() == weights.tolist()


def test_an_inference_session_has_no_optimiser() -> None:
    with pytest.raises(popart.popart_exception, match="only a training session has an optimiser"):
        prepared(DOUBLE, ["c"]).updateOptimizer(popart.SGD(0.1))


def test_a_step_can_be_run_again() -> None:
    session = prepared(DOUBLE, ["c"])
    for value in (1, 2):
        anchors = session.initAnchorArrays()
        session.run(popart.PyStepIO({"a": np.full(2, value, np.float32)}, anchors))
        assert anchors["c"].tolist() == [2 * value, 2 * value]


@pytest.mark.parametrize("depth", [1, 3])
def test_inputs_are_copied_in_phases_with_any_number_of_buffers(depth: int) -> None:
    options = popart.SessionOptions(defaultPrefetchBufferingDepth=depth)
    flow = popart.DataFlow(2, ["c"])
    session = popart.InferenceSession(DOUBLE, flow, tiny(), userOptions=options)
    session.prepareDevice()
    anchors = session.initAnchorArrays()
    session.run(popart.PyStepIO({"a": np.arange(4, dtype=np.float32)}, anchors))
    assert anchors["c"].tolist() == [[0, 2], [4, 6]]
    steps = session.getReport().execution.runs[0].steps
    names = [step.program.type.name for step in steps if step.program.name == "input/a"]
    assert names == [f"StreamCopy{phase}" for phase in ("Begin", "Mid", "End")] * 2


def test_weights_have_to_be_loaded_first() -> None:
    proto = model([node("Add", "a w", "c")], {"a": [2]}, ["c"], {"w": np.float32([1, 2])})
    options = popart.SessionOptions(constantWeights=False)
    session = popart.InferenceSession(proto, popart.DataFlow(1, ["c"]), tiny(), userOptions=options)
    session.prepareDevice()
    with pytest.raises(popart.popart_exception, match="call weightsFromHost"):
        session.run(popart.PyStepIO({}, {}))


@pytest.mark.parametrize(
    ("inputs", "text"),
    [
        ({}, r"input 'a' \(FLOAT \[2\]\) is not given"),
        ({"a": np.zeros(3)}, r"input 'a' has 3 elements; 1 of FLOAT \[2\] are needed"),
        ({"a": np.array(["x", "y"])}, "input 'a': values of type <U1; FLOAT"),
        ({"z": np.zeros(2)}, "no input 'z'; the model has a"),
    ],
)
def test_inputs_that_do_not_fit_are_named(inputs: dict[str, object], text: str) -> None:
    session = prepared(DOUBLE, ["c"])
    with pytest.raises(popart.popart_exception, match=text):
        session.run(popart.PyStepIO(inputs, session.initAnchorArrays()))


def test_numbers_beyond_32_bits_are_refused() -> None:
    proto = model([node("Add", "a a", "c")], {"a": [1]}, ["c"])
    for value in (*proto.graph.input, *proto.graph.output):
        value.type.tensor_type.elem_type = ELEMENT_TYPES["INT64"].onnx
    session = prepared(proto, ["c"])
    with pytest.raises(popart.popart_exception, match="input 'a': value 4294967296"):
        session.run(popart.PyStepIO({"a": np.int64([1 << 32])}, session.initAnchorArrays()))


@pytest.mark.parametrize(
    ("kind", "given"), [("INT8", np.int64([300])), ("INT32", np.int64([1 << 40])),
                        ("UINT8", np.uint16([256])), ("UINT8", np.int64([-1]))],
)  # fmt: skip
def test_a_whole_number_that_its_type_does_not_hold_is_refused(kind: str, given: Array) -> None:
    proto = model([node("Identity", "a", "c")], {"a": [1]}, ["c"])
    for value in (*proto.graph.input, *proto.graph.output):
        value.type.tensor_type.elem_type = ELEMENT_TYPES[kind].onnx
    session = prepared(proto, ["c"])
    with pytest.raises(popart.popart_exception, match=f"value {given[0]}; {kind} is needed"):
        session.run(popart.PyStepIO({"a": given}, session.initAnchorArrays()))


def test_without_values_weights_need_not_exist() -> None:
    proto = model([node("MatMul", "a w", "c")], {"a": [2, 4]}, ["c"], {"w": np.zeros((4, 8))})
    (stored,) = proto.graph.initializer
    stored.data_type = ELEMENT_TYPES["FLOAT"].onnx
    stored.ClearField("raw_data")
    stored.data_location = 1
    session = prepared(proto, ["c"], **{"simulator.computeValues": False})
    session.run(popart.PyStepIO({}, {}))


def test_batch_norm_of_halves_has_statistics_of_floats() -> None:
    names = ("x", "s", "b", "m", "v")
    proto = model([node("BatchNormalization", " ".join(names), "y")], {}, ["y"], {}, 15)
    given = {
        "x": np.ones((1, 2, 3), np.float16), "s": np.float16([2, 3]), "b": np.float16([1, 1]),
        "m": np.float32([0.5, 0.5]), "v": np.float32([1, 4]),
    }  # fmt: skip
    stored = [onnx.numpy_helper.from_array(given[name], name) for name in names[1:]]
    proto.graph.initializer.extend(stored)
    proto.graph.input.append(onnx.helper.make_tensor_value_info("x", 10, [1, 2, 3]))
    (y,) = outcome(proto, {"x": given["x"]}, "y")
    np.testing.assert_allclose(y[0, :, 0], [1 + 2 * 0.5, 1 + 3 * 0.25], rtol=1e-3)


def test_both_branches_of_an_if_give_its_output() -> None:
    branches = {
        f"{word}_branch": model([node(operator, "a", f"{word}_out")], {}, [f"{word}_out"]).graph
        for word, operator in (("then", "Neg"), ("else", "Abs"))
    }
    nodes = [node("Greater", "a z", "p"), node("If", "p", "c", **branches)]
    proto = model(nodes, {"a": [1]}, ["c"], {"z": np.float32([0])})
    for value, expected in ((3, -3), (-2, 2)):
        assert outcome(proto, {"a": np.float32([value])}, "c")[0].tolist() == [expected]


def test_operators_of_graphcore_are_those_of_the_libraries() -> None:
    nodes = [
        node("Scale", "a", "b", domain="ai.graphcore", scale=3.0),
        node("Square", "b", "c", domain="ai.graphcore"),
        node("Subsample", "c", "d", domain="ai.graphcore", strides=[2]),
    ]
    found = outcome(model(nodes, {"a": [3]}, ["d"]), {"a": np.float32([1, 2, 3])}, "d")
    assert found[0].tolist() == [9, 81]


def test_reports_speak_the_models_names(tmp_path: Path) -> None:
    proto = model([node("Exp", "a", "b", name="block/layer")], {"a": [2]}, ["b"])
    written = {"autoReport.all": True, "autoReport.directory": str(tmp_path)}
    session = prepared(proto, ["b"], **written)
    session.run(popart.PyStepIO({"a": np.zeros(2)}, session.initAnchorArrays()))
    report = openReport(tmp_path / "inference")
    contexts = report.frames.debug_contexts()
    (found,) = contexts[contexts["layer"] == "popart"].to_dict("records")
    wanted = {"node": "block/layer", "operator": "ai.onnx.Exp-6", "onnxLayer": "block"}
    assert found["name"] == "block/layer" and json.loads(found["json"])["arguments"] == wanted
    spent = cycles_by_operation(report)
    assert spent.loc[spent["operation"].str.startswith("block/layer"), "layer"].iloc[0] == "block"


@pytest.mark.parametrize("wide", [False, True])
def test_an_older_batch_norm_that_gives_statistics_uses_those_of_the_batch(wide: bool) -> None:
    random = np.random.default_rng(4)
    x = (random.random((3, 2, 5)) * 4).astype(np.float16)
    builder = popart.Builder()
    names = [builder.addInputTensor(popart.TensorInfo("FLOAT16", x.shape))]
    ones, zeros = np.ones(2, np.float16), np.zeros(2, np.float16)
    kind = np.float32 if wide else np.float16
    rest = (ones, zeros, zeros, (ones * 9).astype(kind))
    names += [builder.addInitializedInputTensor(values) for values in rest]
    y, mean, *_ = builder.aiOnnx.batchnormalization(names, 5, epsilon=1e-3, momentum=0.5)
    plain = builder.aiOnnx.batchnormalization(names, 1, epsilon=1e-3)
    plain = plain if isinstance(plain, str) else plain[0]
    session = prepared(builder.getModelProto(), [y, mean, plain])
    out = session.initAnchorArrays()
    session.run(popart.PyStepIO({names[0]: x}, out))
    flat = x.astype(float)
    centre, spread = flat.mean((0, 2)), flat.var((0, 2))
    white = (flat - centre[:, None]) / np.sqrt(spread + 1e-3)[:, None]
    np.testing.assert_allclose(out[y], white, atol=0.01)
    np.testing.assert_allclose(out[mean], centre / 2, atol=0.01)
    np.testing.assert_allclose(out[plain], flat / 3, atol=0.01)
