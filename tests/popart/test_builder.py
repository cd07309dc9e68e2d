"""The builder makes models that run, as the guide's examples do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from models import outcome, tiny

from simulator import popart


def test_the_guides_addition() -> None:
    builder = popart.Builder()
    shape = popart.TensorInfo("FLOAT", [1])
    a, b = builder.addInputTensor(shape), builder.addInputTensor(shape)
    o = builder.aiOnnx.add([a, b])
    builder.addOutputTensor(o)
    flow = popart.DataFlow(1, {o: popart.AnchorReturnType("ALL")})
    session = popart.InferenceSession(
        builder.getModelProto(), dataFeed=flow, deviceInfo=popart.DeviceManager().createCpuDevice()
    )
    session.prepareDevice()
    anchors = session.initAnchorArrays()
    data = np.random.default_rng(1).random((2, 1), dtype=np.float32)
    session.run(popart.PyStepIO({a: data[0], b: data[1]}, anchors))
    assert anchors[o] == data.sum()


def test_a_convolution_with_weights_of_half() -> None:
    builder = popart.Builder()
    x = builder.addInputTensor(popart.TensorInfo("FLOAT16", [1, 4, 5, 5]))
    weights = np.ones((8, 4, 3, 3), dtype=np.float16)
    w = builder.addInitializedInputTensor(weights)
    bias = builder.addInitializedInputTensor(np.full(8, 0.5, np.float16))
    o = builder.aiOnnx.conv([x, w, bias], dilations=[1, 1], pads=[1, 1, 1, 1], strides=[1, 1])
    (found,) = outcome(builder.getModelProto(), {x: np.ones((1, 4, 5, 5), np.float16)}, o)
    assert found.shape == (1, 8, 5, 5)
    assert (found[0, 0, 0, 0], found[0, 0, 2, 2]) == (4 * 4 + 0.5, 4 * 9 + 0.5)


def test_names_go_into_nodes_and_tensors() -> None:
    builder = popart.Builder()
    x = builder.addInputTensor(popart.TensorInfo("FLOAT", [2]), "x")
    first, second = (builder.aiOnnx.relu([x], "debug-name") for _ in range(2))
    with builder.nameScope("layer"):
        third = builder.aiOnnx.relu([second])
    parts = [builder.aiOnnx.split([third], 2) for _ in range(2)]
    assert (x, first, second, third) == ("x", "Relu:0", "Relu:0/1", "layer/Relu:0")
    assert parts == [["Split:0", "Split:1"], ["Split:0/1", "Split:1/1"]]
    nodes = onnx.ModelProto.FromString(builder.getModelProto()).graph.node
    assert [node.name for node in nodes[:3]] == ["debug-name", "debug-name", "layer/Relu:0"]


def test_branches_beside_each_other_name_their_tensors_apart() -> None:
    builder = popart.Builder()
    x = builder.addInputTensor(popart.TensorInfo("FLOAT", [2]))
    flag = builder.addInputTensor(popart.TensorInfo("BOOL", []))
    first = builder.aiOnnx.relu([x])
    branches = [builder.createSubgraphBuilder() for _ in range(2)]
    inner = [branch.aiOnnx.relu([first]) for branch in branches]
    assert (first, inner) == ("Relu:0", ["Relu:0/1", "Relu:0/1"])
    with pytest.raises(popart.popart_exception, match="no tensor .Relu:0/1. in the builder"):
        builder.aiOnnx.neg([inner[0]])
    o = branches[1].aiOnnx.neg([inner[1]])
    branches[0].addOutputTensor(inner[0])
    branches[1].addOutputTensor(o)
    (y,) = builder.aiOnnx.logical_if([flag], 1, branches[1], branches[0])
    given = {x: np.float32([3, -3]), flag: np.bool_(False)}
    assert outcome(builder.getModelProto(), given, y)[0].tolist() == [-3, 0]


def test_gather_takes_its_axis_by_name() -> None:
    builder = popart.Builder()
    x = builder.addInputTensor(popart.TensorInfo("FLOAT", [2, 3]))
    i = builder.addInputTensor("INT32", [1])
    o = builder.aiOnnx.gather([x, i], axis=1, debugPrefix="My-Gather")
    given = {x: np.arange(6, dtype=np.float32).reshape(2, 3), i: np.int32([2])}
    assert outcome(builder.getModelProto(), given, o)[0].tolist() == [[2], [5]]


def test_operators_with_several_outputs_give_all_names() -> None:
    builder = popart.Builder()
    x = builder.addInputTensor(popart.TensorInfo("FLOAT", [4]))
    parts = builder.aiOnnx.split([x], 2, axis=0)
    values, places = builder.aiOnnx.topk([parts[1], builder.aiOnnx.constant(np.int64([1]))])
    found = outcome(builder.getModelProto(), {x: np.float32([9, 1, 2, 5])}, values, places)
    assert [part.tolist() for part in found] == [[5], [1]]


def test_types_of_casts_are_named() -> None:
    builder = popart.Builder()
    x = builder.addInputTensor(popart.TensorInfo("FLOAT", [2]))
    o = builder.aiOnnx.cast([x], "INT32")
    (found,) = outcome(builder.getModelProto(), {x: np.float32([1.7, -1.7])}, o)
    assert found.dtype == np.int32 and found.tolist() == [1, -1]


def test_places_are_noted_by_call_and_by_block() -> None:
    builder = popart.Builder()
    x = builder.addInputTensor(popart.TensorInfo("FLOAT", [2]))
    with builder.virtualGraph(1):
        y = builder.aiOnnx.relu([x])
    z = builder.aiOnnx.neg([y])
    builder.virtualGraph(z, 2)
    nodes = onnx.ModelProto.FromString(builder.getModelProto()).graph.node
    assert [{a.name: a.i for a in node.attribute} for node in nodes] == [
        {"__ipu_number": 1},
        {"__ipu_number": 2},
    ]


@pytest.mark.parametrize(
    ("method", "arguments", "text"),
    [
        ("relu", {"alpha": 1.0}, "ai.onnx.Relu: no attribute 'alpha'; there are none"),
        ("neg", {"args": ["x", "x"]}, "Neg has invalid number of inputs: 2; 1 to 1 are needed"),
        ("neg", {"args": ["y"]}, "ai.onnx.Neg: no tensor 'y' in the builder"),
    ],
)
def test_wrong_calls_are_refused(method: str, arguments: dict[str, object], text: str) -> None:
    builder = popart.Builder()
    builder.addInputTensor(popart.TensorInfo("FLOAT", [2]), "x")
    with pytest.raises(popart.popart_exception, match=text):
        getattr(builder.aiOnnx, method)(**{"args": ["x"], **arguments})


def test_an_unknown_operator_is_no_method() -> None:
    with pytest.raises(AttributeError, match="ai.onnx has no operator 'einsum'"):
        popart.Builder().aiOnnx.einsum([])


def test_the_methods_are_those_of_the_operator_set_asked_for() -> None:
    builder = popart.Builder(opsets={"ai.onnx": 17})
    x = builder.addInputTensor(popart.TensorInfo("FLOAT", [1, 2]))
    axes = builder.addInitializedInputTensor(np.int64([0]))
    scale = builder.addInitializedInputTensor(np.ones(2, np.float32))
    y = builder.aiOnnx.layernormalization([builder.aiOnnx.squeeze([x, axes]), scale], epsilon=0.0)
    (found,) = outcome(builder.getModelProto(), {x: np.float32([[1, 3]])}, y)
    assert found.tolist() == [-1, 1]
    assert not hasattr(popart.Builder().aiOnnx, "layernormalization")  # of operator set 11


def test_a_model_is_saved_as_a_file(tmp_path: Path) -> None:
    builder = popart.Builder()
    x = builder.addInputTensor(popart.TensorInfo("FLOAT", [2]))
    o = builder.aiOnnx.sqrt([x])
    builder.saveModelProto(str(tmp_path / "model.onnx"))
    session = popart.InferenceSession(tmp_path / "model.onnx", popart.DataFlow(1, [o]), tiny())
    assert session.getInfo(o).shape() == [2]
