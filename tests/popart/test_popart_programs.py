"""What public PopART programs call does here what it does there."""

from __future__ import annotations

import json
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from models import model, node, tiny
from onnx.numpy_helper import from_array

from simulator import popart
from simulator.engine import Engine
from simulator.graph.types import Array
from simulator.popart import session as session_module
from simulator.popart.lowering import Lowering

RANDOM = np.random.default_rng(8)
X, W = (RANDOM.normal(size=(4, 4)).astype(np.float32) for _ in range(2))
PROTO = model([node("MatMul", "x w", "y")], {"x": [4, 4]}, ["y"], {"w": W})


def ready(proto: Any, names: Any, device: Any = None, batches: int = 1, **options: Any) -> Any:
    """Compile an inference."""
    flow, chosen = popart.DataFlow(batches, names), popart.SessionOptions(**options)
    session = popart.InferenceSession(proto, flow, device or tiny(), userOptions=chosen)
    session.prepareDevice()
    return session


def ran(session: Any, **inputs: Array) -> dict[str, Array]:
    anchors = session.initAnchorArrays()
    session.run(popart.PyStepIO(inputs, anchors))
    return anchors


def test_an_inference_loads_its_weights_when_they_are_constant() -> None:
    np.testing.assert_allclose(ran(ready(PROTO, ["y"]), x=X)["y"], X @ W, rtol=1e-5)
    with pytest.raises(popart.popart_exception, match="call weightsFromHost"):
        ran(ready(PROTO, ["y"], constantWeights=False), x=X)


def test_weights_are_written_and_read_by_name() -> None:
    session = ready(PROTO, ["y"])
    session.writeWeights(popart.PyWeightsIO({"w": 2 * W}))
    session.weightsFromHost()
    np.testing.assert_allclose(ran(session, x=X)["y"], 2 * X @ W, rtol=1e-5)
    found = np.zeros_like(W)
    session.readWeights(popart.PyWeightsIO({"w": found}))
    assert found.tolist() == (2 * W).tolist()


def test_callbacks_give_and_take_a_micro_batch_at_a_time() -> None:
    xs, said, outs = iter(RANDOM.normal(size=(3, 4, 4)).astype(np.float32)), [], []
    given: list[Array] = []

    def take(name: str, is_prefetch: bool) -> Array:
        given.append(next(xs))
        return given[-1]

    def out(name: str) -> Array:
        outs.append(np.zeros((4, 4), np.float32))
        return outs[-1]

    step = popart.PyStepIOCallback(take, said.append, out, said.append)
    ready(PROTO, ["y"], batches=3).run(step)
    np.testing.assert_allclose(outs, [x @ W for x in given], rtol=1e-4, atol=1e-5)
    assert said == ["x"] * 3 + ["y"] * 3


def test_synthetic_inputs_are_on_the_device_and_nothing_is_moved() -> None:
    mode = popart.SyntheticDataMode.Zeros
    session = ready(PROTO, ["y"], syntheticDataMode=mode)
    assert not ran(session, x=X)["y"].any()  # as initAnchorArrays made it
    text = json.dumps(json.loads(session.getExecutionReport()))
    assert "anchor/y" not in text and "input/x" not in text


@pytest.mark.parametrize("outer", [True, False])
@pytest.mark.parametrize("replicas", [1, 2])
def test_the_cycles_of_a_batch_are_measured_on_each_ipu(
    outer: bool, replicas: int, tmp_path: Any
) -> None:
    kinds = popart.Instrumentation
    options = {
        "instrumentWithHardwareCycleCounter": True,
        "hardwareInstrumentations": {kinds.Inner, kinds.Outer} if outer else {kinds.Inner},
        "enableReplicatedGraphs": replicas > 1,
        "replicatedGraphCount": replicas,
    }
    session = ready(PROTO, ["y"], tiny(2 * replicas), batches=3, **options)
    ran(session, x=np.stack([X] * 3 * replicas))
    inner = [session.getCycleCount(f"inner_ipu_{ipu}") for ipu in (0, 1)]
    # that of the second has the measuring of the first in it
    assert 0 < inner[0] < inner[1]
    if outer:
        assert 3 * inner[1] < session.getCycleCount()
    else:
        with pytest.raises(popart.popart_exception, match="hardwareInstrumentations correctly"):
            session.getCycleCount()
    session.saveExecutable(str(tmp_path / "kept.popef"))
    again = popart.InferenceSession(
        PROTO, popart.DataFlow(3, ["y"]), tiny(2 * replicas),
        userOptions=popart.SessionOptions(**options),
    )  # fmt: skip
    again.loadExecutable(str(tmp_path / "kept.popef"))
    again.prepareDevice()
    again.weightsFromHost()
    ran(again, x=np.stack([X] * 3 * replicas))
    assert again.getCycleCount("inner_ipu_1") == inner[1]


def test_a_pipeline_is_measured_as_a_whole() -> None:
    options = {
        "instrumentWithHardwareCycleCounter": True,
        "hardwareInstrumentations": {popart.Instrumentation.Inner},
        "enablePipelining": True,
        "autoVirtualGraph": True,
    }
    nodes = [node("Relu", "x", "y"), node("Tanh", "y", "z")]
    proto = model(nodes, {"x": [4]}, ["z"])
    with pytest.raises(popart.popart_exception, match="a pipeline is measured as a whole"):
        ready(proto, ["z"], tiny(2), batches=4, **options)


def test_the_cycles_of_a_run_are_measured() -> None:
    session = ready(PROTO, ["y"], instrumentWithHardwareCycleCounter=True)
    ran(session, x=X)
    first = session.getCycleCount()
    ran(session, x=X)
    total = session._engine.getExecutionProfile()["simulation"]["cycles"]
    with pytest.raises(popart.popart_exception, match="'inner_ipu_0' is not measured, but ''"):
        session.getCycleCount("inner_ipu_0")
    assert first == session.getCycleCount() and 0 < 2 * first < total
    with pytest.raises(popart.popart_exception, match="Must call run before getCycleCount"):
        ready(PROTO, ["y"], instrumentWithHardwareCycleCounter=True).getCycleCount()
    with pytest.raises(
        popart.popart_exception, match="^SessionOption 'instrumentWithHardwareCycleCounter' must be"
    ):
        ready(PROTO, ["y"]).getCycleCount()


def test_rounding_and_traps_write_registers_before_a_step() -> None:
    session = ready(PROTO, ["y"], enableStochasticRounding=True, enableFloatingPointChecks=True)
    np.testing.assert_allclose(ran(session, x=X)["y"], X @ W, rtol=1e-5)
    names = {one.name for one in session._engine.executable.graph.compute_sets}
    assert {"init/setStochasticRounding", "init/setFloatingPointBehaviour"} <= names


def test_nodes_are_not_balanced_over_more_ipus_than_there_are_nodes() -> None:
    with pytest.raises(popart.popart_exception, match="find enough splits: 1 nodes for 2 IPUs"):
        ready(PROTO, ["y"], tiny(2), autoVirtualGraph=True)


def test_a_seed_chooses_what_is_dropped() -> None:
    builder = popart.Builder()
    w = builder.addInitializedInputTensor(np.ones(64, np.float32))
    (y,) = builder.aiOnnx.dropout([w], 1, 0.5)
    loss = builder.aiGraphcore.identityloss([y])
    session = popart.TrainingSession(
        builder.getModelProto(), popart.DataFlow(1, [y]), loss, popart.ConstSGD(0.0), tiny()
    )
    session.prepareDevice()
    session.weightsFromHost()

    def dropped(seed: int) -> list[float]:
        session.setRandomSeed(seed)
        return ran(session)[y].tolist()

    assert dropped(7) == dropped(7) != dropped(1 << 40)


def test_notes_of_the_builder_plan_a_single_node() -> None:
    def cycles(note: bool, **options: Any) -> int:
        builder = popart.Builder()
        x = builder.addInputTensor(popart.TensorInfo("FLOAT16", [32, 64]))
        w = builder.addInitializedInputTensor(np.ones((64, 32), np.float16))
        y = builder.aiOnnx.matmul([x, w])
        if note:
            builder.setPartialsType(y, "HALF")
            assert builder.getPartialsType(y) == "HALF"
        options["instrumentWithHardwareCycleCounter"] = True
        session = ready(builder.getModelProto(), [y], **options)
        ran(session, **{x: np.ones((32, 64), np.float16)})
        return int(session.getCycleCount())

    noted = cycles(note=True)
    assert noted == cycles(note=False, matmulOptions={"partialsType": "half"})
    assert noted == cycles(note=False, partialsTypeMatMuls="half") < cycles(note=False)


def test_notes_of_places_are_for_the_mode_that_wants_them() -> None:
    builder = popart.Builder()
    x = builder.addInputTensor(popart.TensorInfo("FLOAT", [4]))
    with builder.virtualGraph(3):
        y = builder.aiOnnx.neg([x])
    proto, mode = builder.getModelProto(), popart.VirtualGraphMode
    for chosen, ipus in ((mode.Off, 2), (mode.Auto, 1)):
        found = ran(ready(proto, [y], tiny(ipus), virtualGraphMode=chosen), **{x: X[0]})
        assert found[y].tolist() == (-X[0]).tolist()
    with pytest.raises(popart.popart_exception, match="placed on IPU 3; the device has 2"):
        ready(proto, [y], tiny(2), virtualGraphMode=mode.Manual)


def test_the_builder_knows_shapes_scopes_and_branches() -> None:
    builder = popart.Builder()
    x = builder.addInputTensor(popart.TensorInfo(X), debugContext="x")
    flag = builder.addInputTensor("BOOL", [])
    then, other = builder.createSubgraphBuilder(), builder.createSubgraphBuilder()
    for branch, method in ((then, "relu"), (other, "neg")):
        branch.addInputTensorFromParentGraph(x)
        branch.addOutputTensor(getattr(branch.aiOnnx, method)([x]))
    with builder.nameScope("layer"):
        (y,) = builder.aiOnnx.logical_if([flag], 1, other, then, debugContext="choice")
    z = builder.reshape_const(builder.aiOnnx, [y], [2, 8])
    assert (y, builder.getTensorShape(z)) == ("layer/If:0", [2, 8])
    assert builder.getTensorDtypeString(z) == "float32"
    session = ready(builder.getModelProto(), [z])
    for value, expected in ((True, np.maximum(X, 0)), (False, -X)):
        found = ran(session, x=X, **{flag: np.asarray(value)})
        assert found[z].tolist() == expected.reshape(2, 8).tolist()


def test_operator_sets_have_their_own_methods_and_one_is_for_all() -> None:
    builder = popart.Builder()
    x = builder.addInputTensor(popart.TensorInfo(X))
    y = builder.aiOnnxOpset9.slice([x], [3], [1], [0])  # ends, starts, axes
    with pytest.raises(
        popart.popart_exception, match="already defined as 9; one is needed for all"
    ):
        builder.aiOnnxOpset11.relu([x])
    assert builder.getTensorShape(y) == [2, 4]
    again = popart.Builder(builder.getModelProto())
    assert again.getTensorShape(y) == builder.getTensorShape(y) and again.opset("ai.onnx") == 9


def test_rows_are_chosen_by_unsigned_indices_and_lstms_know_their_size() -> None:
    builder = popart.Builder()
    table = builder.addInitializedInputTensor(W)
    i = builder.addInputTensor("UINT32", [2])
    y = builder.aiOnnx.gather([table, i])
    gates = [builder.addInitializedInputTensor(np.ones((1, 8, 2), np.float32)) for _ in range(2)]
    s = builder.addInputTensor(popart.TensorInfo("FLOAT", [3, 1, 2]))
    _, h, _ = builder.aiOnnx.lstm([s, *gates], 3, clip=None)
    assert builder.getTensorShape(h) == [1, 1, 2]
    given = {i: np.uint32([3, 1]), s: np.zeros((3, 1, 2), np.float32)}
    found = ran(ready(builder.getModelProto(), [y]), **given)
    assert found[y].tolist() == W[[3, 1]].tolist()


@pytest.mark.parametrize(("ipus", "factor"), [(1, 1), (1, 3), (2, 1), (2, 3)])
def test_a_sum_is_of_all_batches_and_micro_batches_of_a_step(ipus: int, factor: int) -> None:
    builder = popart.Builder()
    x = y = builder.addInputTensor(popart.TensorInfo("FLOAT", [4]))
    for ipu in range(ipus):
        with builder.virtualGraph(ipu):
            w = builder.addInitializedInputTensor(np.ones(4, np.float32))
            y = builder.aiOnnx.mul([y, w])
    with builder.virtualGraph(ipus - 1):
        loss = builder.aiGraphcore.identityloss([y], popart.ReductionType.Sum)
    kinds = {y: popart.AnchorReturnType("Sum"), loss: popart.AnchorReturnType("ALL")}
    options = popart.SessionOptions(
        enableGradientAccumulation=factor > 1, accumulationFactor=factor, enablePipelining=ipus > 1
    )
    session = popart.TrainingSession(
        builder.getModelProto(), popart.DataFlow(5, kinds), loss, popart.ConstSGD(0.0),
        tiny(ipus), userOptions=options,
    )  # fmt: skip
    session.prepareDevice()
    session.weightsFromHost()
    xs = RANDOM.normal(size=(5 * factor, 4)).astype(np.float32)
    for _ in range(2):  # each step begins with zero
        found = ran(session, **{x: xs})
        np.testing.assert_allclose(found[y], xs.sum(axis=0), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(found[loss].reshape(-1), xs.sum(axis=1), rtol=1e-4, atol=1e-5)


def test_truths_have_no_sum() -> None:
    proto = model([node("Not", "x", "y")], {"x": [4]}, ["y"])
    proto.graph.input[0].type.tensor_type.elem_type = 9  # BOOL
    with pytest.raises(popart.popart_exception, match="anchor 'y': bool cannot be summed"):
        ready(proto, {"y": popart.AnchorReturnType("SUM")})


def test_a_model_is_made_of_halves() -> None:
    transformer = popart.GraphTransformer(PROTO)
    transformer.convertFloatsToHalfs()
    found = ran(ready(transformer.getModelProto(), ["y"]), x=np.float16(X))["y"]
    assert found.dtype == np.float16
    np.testing.assert_allclose(found, X @ W, rtol=2e-2, atol=2e-2)


def test_what_no_half_can_be_becomes_the_nearest_and_is_named() -> None:
    mask = np.float32([-3.4e38, 0, 65519, 65520, -np.inf])  # of 65519 the nearest half is 65504
    nodes = [node("Add", "x mask", "z"), node("Constant", "", "c", value=from_array(mask[:1])),
             node("Max", "z c", "y")]  # fmt: skip
    proto = model(nodes, {"x": [5]}, ["z", "y"], {"mask": mask})
    transformer = popart.GraphTransformer(proto)
    with pytest.warns(UserWarning) as said:
        transformer.convertFloatsToHalfs()
    assert [str(line.message) for line in said] == [
        "model: initialiser 'mask': -3.4e+38 becomes -65504, the nearest half, and 1 more",
        "model: constant 'c': -3.4e+38 becomes -65504, the nearest half",
    ]
    found = ran(ready(transformer.getModelProto(), ["z", "y"]), x=np.zeros(5, np.float16))
    assert found["z"].tolist() == [-65504, 0, 65504, 65504, -np.inf]
    assert found["y"].tolist() == [-65504, 0, 65504, 65504, -65504]


def test_weights_become_constants_and_unused_inputs_go() -> None:
    given = model([node("Add", "x w", "y")], {"x": [2], "z": [3]}, ["y"], {"w": np.ones(2, "f4")})
    transformer = popart.GraphTransformer(given)
    transformer.removeUnusedInputs()
    transformer.convertInitializersToConstants(["w"])
    session = ready(transformer.getModelProto(), ["y"])
    assert session.inputs == ["x"] and "w" not in session._weights
    assert ran(session, x=np.float32([1, 2]))["y"].tolist() == [2, 3]


@pytest.mark.parametrize("index", [4, 100, -5])
def test_an_index_beyond_the_table_is_named_before_the_run(index: int) -> None:
    builder = popart.Builder()
    table, i = builder.addInitializedInputTensor(W), builder.addInputTensor("INT32", [2], "i")
    rows = builder.aiOnnx.gather([table, i])
    session = ready(builder.getModelProto(), [rows])
    with pytest.raises(popart.popart_exception, match=f"'i': index {index}; there are 4 to choose"):
        ran(session, i=np.int32([-4, index]))


def test_names_without_a_counterpart_are_taken_and_what_cannot_be_is_refused() -> None:
    options = popart.SessionOptions(aliasZeroCopy=True, numIOTiles=0)
    options.accumulationAndReplicationReductionType = popart.ReductionType.Mean
    options.dotChecks = {popart.DotCheck.Fwd0}
    patterns = popart.Patterns(["PreUniRepl", "MatMulOp"]).enableRuntimeAsserts(False)
    patterns.InPlace = patterns.OpToIdentity = True
    assert patterns.isPatternEnabled("OpToIdentity") and options.dotChecks == ["FWD0"]
    options.batchSerializationSettings.factor = 1
    options.accumulateOuterFragmentSettings.schedule = "OverlapMemoryOptimized"
    with tiny() as device:
        assert device.numIpus == 1


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: popart.SessionOptions(enableNonStableSoftmax=True),
            "enableNonStableSoftmax is True; it cannot be done here",
        ),
        (lambda: popart.SessionOptions(numIOTiles=-2), "numIOTiles is -2; a whole number"),
        (lambda: popart.SessionOptions(enableOutlinin=1), "did you mean enableOutlining"),
        (lambda: popart.SessionOptions(virtualGraphMode="Auto"), "a VirtualGraphMode is needed"),
        (lambda: popart.Builder().executionPhase(-1), "executionPhase: .* a number is needed"),
        (
            lambda: popart.SessionOptions(hardwareInstrumentations={"Inner"}),
            "hardwareInstrumentations is .*; Outer and Inner are known",
        ),
        (
            lambda: popart.Builder().aiOnnx.concat([], 0),
            "Concat has invalid number of inputs: 0; 1 or",
        ),
        (
            lambda: popart.GraphTransformer(PROTO).convertInitializersToConstants(["v"]),
            "TensorId v not in the model initalizers",
        ),
        (lambda: popart.Builder().setPartialsType("y", "FLOAT8"), "'FLOAT8'; known are HALF, FLOA"),
        (lambda: ready(popart.Builder(), ["y"]), "Builder is none; a path, the bytes of getModelP"),
        (lambda: popart.Builder().aiOnnx.dropout([], 0), "dropout: num_outputs is 0; at least 1"),
        (lambda: ready(PROTO, ["y"]).setRandomSeed(-1), "setRandomSeed: -1; a whole number of 64"),
    ],
)
def test_what_is_wrong_is_one_clear_line(call: Callable[[], Any], text: str) -> None:
    with pytest.raises(popart.popart_exception, match=text):
        call()


def test_the_tensors_of_nodes_are_gone_when_the_graph_is_compiled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lowerings: list[weakref.ref[Lowering]] = []
    alive: list[bool] = []

    class Noted(Lowering):
        def lower(self, *arguments: Any) -> None:
            lowerings.append(weakref.ref(self))
            super().lower(*arguments)

    def compiled(*arguments: Any, **options: Any) -> Engine:
        alive.extend(reference() is not None for reference in lowerings)
        return Engine(*arguments, **options)

    monkeypatch.setattr(session_module, "Lowering", Noted)
    monkeypatch.setattr(session_module, "Engine", compiled)
    proto = model([node("Neg", "x", "y")], {"x": [4]}, ["y"])
    popart.InferenceSession(proto, popart.DataFlow(1, ["y"]), tiny()).prepareDevice()
    assert alive == [False]
