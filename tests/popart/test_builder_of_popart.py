"""What PopART's builder has beside operators: attributes of nodes, scopes, forms of arguments."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from models import prepared, tiny

from simulator import popart


def relu() -> tuple[popart.Builder, str]:
    builder = popart.Builder()
    return builder, builder.aiOnnx.relu([builder.addInputTensor("FLOAT", [2])])


@pytest.mark.parametrize(
    ("kind", "value"),
    [("Int64", 3), ("Int64Vector", [3, -1]), ("Float", 0.5), ("FloatVector", [0.5, 1.0]),
     ("String", "here"), ("StringVector", ["a", "b"])],
)  # fmt: skip
def test_attributes_are_read_by_their_kinds(kind: str, value: object) -> None:
    builder, y = relu()
    builder.addNodeAttribute("mine", value, {y})
    assert getattr(builder, f"get{kind}NodeAttribute")("mine", {y}) == value
    other = "String" if kind != "String" else "Float"
    with pytest.raises(popart.popart_exception, match="is not a"):
        getattr(builder, f"get{other}NodeAttribute")("mine", {y})
    with pytest.raises(popart.popart_exception, match="already has"):
        builder.addNodeAttribute("mine", value, {y})
    builder.removeNodeAttribute("mine", {y})
    assert not builder.nodeHasAttribute("mine", {y})
    with pytest.raises(popart.popart_exception, match="does not exist"):
        builder.removeNodeAttribute("mine", {y})


def test_a_node_of_several_outputs_is_noted_once() -> None:
    builder = popart.Builder()
    x = builder.addInputTensor("FLOAT", [4])
    parts = builder.aiOnnx.split([x], num_outputs=2)
    builder.addNodeAttribute("mine", 1, set(parts))
    assert builder.getAllNodeAttributeNames(parts).count("mine") == 1


def test_scopes_tell_what_they_note() -> None:
    builder, y = relu()
    assert not builder.hasVirtualGraph() and not builder.hasPipelineStage()
    with pytest.raises(popart.popart_exception, match="Virtual graph not set"):
        builder.getVirtualGraph()
    with builder.virtualGraph(1), builder.pipelineStage(2), builder.nameScope("layer"):
        z = builder.aiOnnx.relu([y])
        assert (builder.getVirtualGraph(), builder.getPipelineStage()) == (1, 2)
        assert builder.getNameScope("x") == "layer/x"
    assert builder.getVirtualGraph(z) == 1


def test_numbers_become_those_of_the_attribute() -> None:
    builder, y = relu()
    z = builder.aiOnnx.leakyrelu([y], alpha=np.float64(2))
    assert builder.getFloatNodeAttribute("alpha", {z}) == 2.0
    t = builder.aiOnnx.transpose([z], np.array([0]))
    assert builder.getInt64VectorNodeAttribute("perm", {t}) == [0]
    with pytest.raises(popart.popart_exception, match="alpha is 'much'; FLOAT is needed"):
        builder.aiOnnx.leakyrelu([y], alpha="much")


@pytest.mark.parametrize("method", ["reducesum", "reducelogsum"])
@pytest.mark.parametrize("axis", [-3, 2])
def test_an_axis_that_is_not_there_is_refused_by_the_session(method: str, axis: int) -> None:
    builder = popart.Builder()
    x = builder.addInputTensor("FLOAT", [2, 3])
    y = getattr(builder.aiOnnx, method)([x], axes=[axis])
    with pytest.raises(popart.popart_exception, match=rf"Axis {axis} is out of .* \[-2, 1\]"):
        popart.InferenceSession(builder.getModelProto(), popart.DataFlow(1, [y]), tiny())


def test_initialisers_in_a_file_are_read_from_it(tmp_path: Path) -> None:
    builder, y = relu()
    w = builder.addInitializedInputTensor(np.array([1, 2], np.float32))
    builder.saveInitializersExternally([w], str(tmp_path / "w.bin"))
    assert (tmp_path / "w.bin").read_bytes() == np.array([1, 2], "<f4").tobytes()
    with pytest.raises(popart.popart_exception, match="already has an external"):
        builder.saveInitializersExternally([w], str(tmp_path / "w.bin"))
    z = builder.aiOnnx.add([y, w])
    session = popart.InferenceSession(builder.getModelProto(), popart.DataFlow(1, [z]), tiny())
    session.prepareDevice()
    out = session.initAnchorArrays()
    session.run(popart.PyStepIO({"input": np.float32([3, -3])}, out))
    assert out[z].tolist() == [4, 2]


def test_nodes_are_given_as_json_with_those_of_the_backward_pass() -> None:
    builder, y = relu()
    w = builder.addInitializedInputTensor(np.ones(2, np.float32))
    loss = builder.aiGraphcore.l1loss([builder.aiOnnx.mul([y, w])], 0.1)
    session = popart.TrainingSession(
        builder.getModelProto(), popart.DataFlow(1, [loss]), loss, popart.ConstSGD(0.1), tiny()
    )
    nodes = json.loads(session._serializeIr(popart.IrSerializationFormat.JSON))["maingraph"]
    types = ["Relu", "Mul", "L1", "L1Grad", "MulGrad", "SGD0VarUpdate"]
    assert [node["type"] for node in nodes] == types
    assert nodes[0]["inputs"] == [{"name": "input", "index": "0", "shape": "[2]", "type": "FLOAT"}]


@pytest.mark.parametrize("on", [True, False])
def test_the_loss_of_a_scalar_is_an_identity_unless_its_pattern_is_off(on: bool) -> None:
    builder = popart.Builder()
    x = builder.addInputTensor(popart.TensorInfo("FLOAT", [2]))
    product = builder.aiOnnx.mul([x, builder.addInitializedInputTensor(np.float32([2, 3]))])
    loss = builder.aiGraphcore.identityloss([builder.aiGraphcore.l1loss([product], 1.0)])
    patterns = popart.Patterns({"OpToIdentity": on})
    session = popart.TrainingSession(
        builder.getModelProto(), popart.DataFlow(1, [loss]), loss, popart.ConstSGD(0.1), tiny(),
        patterns=patterns,
    )  # fmt: skip
    nodes = json.loads(session._serializeIr())["maingraph"]
    assert ("IdentityLoss" in {node["type"] for node in nodes}) != on
    session.prepareDevice()
    session.weightsFromHost()
    anchors = session.initAnchorArrays()
    session.run(popart.PyStepIO({x: np.float32([1, -1])}, anchors))
    assert anchors[loss] == 2.5  # the mean of 2 and 3


def test_a_model_that_draws_nothing_is_seeded_before_it_is_compiled() -> None:
    builder = popart.Builder()
    x = builder.addInputTensor(popart.TensorInfo("FLOAT", [2]))
    y = builder.aiOnnx.relu([x])
    popart.InferenceSession(builder.getModelProto(), popart.DataFlow(1, [y]), tiny()).setRandomSeed(
        1
    )
    drawn = builder.aiOnnx.randomnormal(shape=[2])
    session = popart.InferenceSession(builder.getModelProto(), popart.DataFlow(1, [drawn]), tiny())
    with pytest.raises(popart.popart_exception, match="prepare"):
        session.setRandomSeed(1)


def test_random_nodes_have_no_seed_of_their_own() -> None:
    builder = popart.Builder()
    with pytest.raises(popart.popart_exception, match="setRandomSeed"):
        builder.aiOnnx.randomnormal(shape=[2], seed=1.0)
    assert builder.getTensorShape(builder.aiOnnx.randomnormal(shape=[2])) == [2]


def test_patterns_tell_whether_they_are_on() -> None:
    patterns = popart.Patterns()
    patterns.CosGradOp = False
    assert patterns.PreUniRepl and patterns.SinGradOp and not patterns.CosGradOp
    assert not popart.Patterns(popart.PatternsLevel.NoPatterns).InPlace
    with pytest.raises(AttributeError, match="no 'Sideways'"):
        _ = patterns.Sideways


def test_an_operator_is_supported_or_it_is_not() -> None:
    supported = {(one.type, one.version) for one in popart.getSupportedOperations(False)}
    lacking = {(one.type, one.version) for one in popart.getUnsupportedOperations(10)}
    assert {("Constant", 1), ("Conv", 1), ("Ctc", 1), ("Sort", 1)} <= supported
    assert lacking and not lacking & supported
    assert ("MulGrad", 1) in {
        (one.type, one.version) for one in popart.getSupportedOperations(True)
    }


def test_a_device_tells_what_it_is() -> None:
    manager = popart.DeviceManager()
    device = manager.createIpuModelDevice({"ipuVersion": "mk2"})
    assert (device.type, device.version) == (popart.DeviceType.IpuModel, device.target.architecture)
    with manager.acquireAvailableDevice(
        1, connectionType=popart.DeviceConnectionType.OnDemand
    ) as taken:
        assert taken.connectionType is popart.DeviceConnectionType.OnDemand
        assert not taken.isAttached and taken.attach()
        assert manager.tryAcquireDeviceById(taken.id) is None
    assert manager.enumerateDevices(deviceType=popart.DeviceType.Cpu) == []


def test_an_engine_is_loaded_when_that_is_asked_for() -> None:
    builder, y = relu()
    session = popart.InferenceSession(builder.getModelProto(), popart.DataFlow(1, [y]), tiny())
    session.prepareDevice(loadEngine=False)
    session.loadEngineAndConnectStreams()
    out = session.initAnchorArrays()
    session.run(popart.PyStepIO({"input": np.float32([-1, 2])}, out))
    assert out[y].tolist() == [0, 2]


def test_a_choice_is_also_its_number() -> None:
    schedule = popart.AccumulateOuterFragmentSchedule
    assert int(schedule.Scheduler) == 0 and int(schedule.OverlapMemoryOptimized) == 3
    assert [int(one) for one in popart.SyntheticDataMode] == [0, 1, 2, 3]
    assert int(popart.RecomputationType.Pipeline) == 3 and int(popart.ReductionType.Mean) == 0


def test_inputs_are_named_with_the_weights_as_they_were_added() -> None:
    builder = popart.Builder()
    w = builder.addInitializedInputTensor(np.ones(2, np.float32), "w")
    x = builder.addInputTensor("FLOAT", [2], "x")
    assert builder.getInputTensorIds() == [w, x]
    assert builder.isInitializer(w) and not builder.isInitializer(x)
    builder.addOutputTensor(builder.aiOnnx.add([w, x]))
    assert sorted(popart.Builder(builder.getModelProto()).getInputTensorIds()) == ["w", "x"]


def test_a_pad_has_two_values_for_each_dimension() -> None:
    builder = popart.Builder()
    x = builder.addInputTensor("FLOAT", [10], "x")
    assert builder.getTensorShape(builder.aiOnnx.pad([x], [2, 3])) == [15]
    with pytest.raises(
        popart.popart_exception, match=r"^Padding vector \(length 4\) does not have"
    ):
        builder.aiOnnx.pad([x], [2, 3, 4, 5])


def test_weights_are_saved_into_a_folder_that_there_is(tmp_path: Path) -> None:
    builder = popart.Builder()
    w = builder.addInitializedInputTensor(np.ones(2, np.float32), "w")
    with pytest.raises(popart.popart_exception, match="its parent directory does not exist"):
        builder.saveInitializersExternally([w], str(tmp_path / "none" / "w.bin"))
    builder.saveInitializersExternally([w], str(tmp_path / "w.bin"))
    assert (tmp_path / "w.bin").stat().st_size == 8


def test_an_inference_takes_weights_that_it_has_and_no_others(tmp_path: Path) -> None:
    def session(*names: str) -> popart.InferenceSession:
        builder = popart.Builder()
        y = builder.addInputTensor("FLOAT", [2], "x")
        for name in names:
            y = builder.aiOnnx.add([y, builder.addInitializedInputTensor(np.ones(2, "f"), name)])
        return popart.InferenceSession(builder.getModelProto(), popart.DataFlow(1, [y]), tiny())

    more = session("w", "v")
    more.prepareDevice()
    more.modelToHost(tmp_path / "more.onnx")
    few = session("w")
    with pytest.raises(popart.popart_exception, match="^resetWeights, no tensor 'v' in tensors"):
        few.resetHostWeights(tmp_path / "more.onnx")
    few.resetHostWeights(
        tmp_path / "more.onnx", ignoreWeightsInModelWithoutCorrespondingHostWeight=True
    )
    more.resetHostWeights(tmp_path / "more.onnx")


@pytest.mark.parametrize(("name", "shown"), [("", "maingraph"), ("network", "network")])
def test_graphs_are_shown_by_their_names(name: str, shown: str) -> None:
    builder = popart.Builder()
    if name:
        builder.setGraphName(name)
    x = builder.addInputTensor(popart.TensorInfo("FLOAT", [2]))
    branch = builder.createSubgraphBuilder()
    branch.setGraphName("branch")
    branch.addOutputTensor(branch.aiOnnx.neg([x]))
    condition = builder.addInputTensor(popart.TensorInfo("BOOL", []))
    (y,) = builder.aiOnnx.logical_if([condition], 1, branch, branch)
    session = prepared(builder.getModelProto(), [y])
    graphs = json.loads(session._serializeIr(popart.IrSerializationFormat.JSON))
    assert {key: len(nodes) for key, nodes in graphs.items()} == {shown: 1, "branch": 1}


def test_an_input_that_nothing_reads_need_not_be_given() -> None:
    builder = popart.Builder()
    x, unread = (builder.addInputTensor(popart.TensorInfo("FLOAT", [2])) for _ in range(2))
    y = builder.aiOnnx.relu([x])
    session = popart.InferenceSession(builder.getModelProto(), popart.DataFlow(1, [y]), tiny())
    session.prepareDevice()
    anchors = session.initAnchorArrays()
    values = np.float32([-1, 2])
    for arrays in ({x: values}, {x: values, unread: values}):
        session.run(popart.PyStepIO(arrays, anchors))
        assert anchors[y].tolist() == [0, 2]
    with pytest.raises(popart.popart_exception, match="is not given"):
        session.run(popart.PyStepIO({unread: values}, anchors))
