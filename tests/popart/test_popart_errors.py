"""What PopART's programs catch: the exception, when it is raised, and how its text begins."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from simulator import popart

MATRIX = np.ones((2, 3), dtype=np.float32)


def _builder() -> tuple[popart.Builder, str, str]:
    builder = popart.Builder()
    x = builder.addInputTensor(popart.TensorInfo("FLOAT", [1, 2, 5, 5]), "x")
    return builder, x, builder.addInitializedInputTensor(np.ones((4, 2, 3, 3), np.float32), "w")


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"strides": [1]}, "Length of strides vector 1 != number of spatial dimensions 2"),
        ({"dilations": [1, 1, 1]}, "Length of dilations vector 3 != number"),
        ({"pads": [0, 0]}, r"Padding vector \(length 2\) does not have 2 values for each spatial"),
        ({"kernel_shape": [2, 2]}, r"kernel_shape, \[2 2\], does not match .* 'w', \[3 3\]"),
        ({"dilations": [4, 1]}, r"invalid spatial output shape: \[-3 3\]"),
    ],
)
def test_a_window_that_does_not_fit_is_refused_when_it_is_added(
    settings: dict[str, list[int]], text: str
) -> None:
    builder, x, w = _builder()
    with pytest.raises(popart.popart_exception, match=text):
        builder.aiOnnx.conv([x, w], **settings)


def test_a_window_as_long_as_the_data_is_added() -> None:
    builder, x, w = _builder()
    assert builder.getTensorShape(builder.aiOnnx.conv([x, w], dilations=[2, 2])) == [1, 4, 1, 1]


@pytest.mark.parametrize(
    "call",
    [
        lambda builder: builder.aiOnnx.conv(),
        lambda builder: builder.aiOnnx.matmul(0, 0, 0),
        lambda builder: builder.aiOnnx.add(["x", "x"], 1, 0, "name"),
    ],
)
def test_arguments_of_another_form_are_a_type_error(call: Callable[[popart.Builder], str]) -> None:
    with pytest.raises(TypeError, match=r"^\w+\(\): incompatible function arguments\. The foll"):
        call(_builder()[0])


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: popart.AnchorReturnType("ALL", 2), "A return period should not be supplied"),
        (lambda: popart.AnchorReturnType("EveryN"), "Must specify return period with .*EVERYN"),
        (lambda: popart.Builder().addUntypedInputTensor(), "untyped tensors to the top-level"),
        (lambda: popart.Builder(opsets={"ai.onnx": 9}).aiOnnxOpset8, "already defined as 9"),
    ],
)
def test_texts_begin_as_popart_writes_them(call: Callable[[], object], text: str) -> None:
    with pytest.raises(popart.popart_exception, match=text):
        call()


def _session(anchors: list[str], patterns: popart.Patterns | None = None) -> popart.TrainingSession:
    builder = popart.Builder()
    x = builder.addInputTensor(popart.TensorInfo("FLOAT", [2, 3]), "x")
    w = builder.addInitializedInputTensor(MATRIX, "w")
    y = builder.aiOnnx.exp([builder.aiOnnx.sub([w, x], "difference")], "power")
    loss = builder.aiGraphcore.identityloss([y])
    device = popart.DeviceManager().createCpuDevice()
    return popart.TrainingSession(
        builder.getModelProto(), popart.DataFlow(1, anchors), loss, popart.ConstSGD(0.1), device,
        patterns=patterns,
    )  # fmt: skip


def test_a_gradient_whose_pattern_is_off_is_refused_when_the_session_is_made() -> None:
    with pytest.raises(popart.popart_exception, match="removed by pattern ExpGradOp$"):
        _session([], popart.Patterns([]).enableRuntimeAsserts(False))


@pytest.mark.parametrize(
    "patterns",
    [
        popart.Patterns(popart.PatternsLevel.Minimal),
        popart.Patterns({"InPlace": False}),
        popart.Patterns(["ExpGradOp"]),  # of SubtractArg1GradOp there is no need: x is not trained
    ],
)
def test_gradients_whose_patterns_are_on_are_computed(patterns: popart.Patterns) -> None:
    session = _session([], patterns)
    session.prepareDevice()
    session.weightsFromHost()
    session.run(popart.PyStepIO({"x": MATRIX}, {}))
    session.weightsToHost()
    found = {"w": np.empty_like(MATRIX)}
    session.readWeights(popart.PyWeightsIO(found))
    assert found["w"] == pytest.approx(MATRIX - 0.1 / 6)  # exp(0), of a mean of six


def test_calls_before_the_device_is_prepared_say_so() -> None:
    session = _session([])
    with pytest.raises(popart.popart_exception, match=r"^Devicex::prepare\(\) must be called befo"):
        session.weightsToHost()
    with pytest.raises(popart.popart_exception, match="before a report can be fetched$"):
        session.getSummaryReport()


def test_a_session_that_is_compiled_alone_loads_its_engine_when_it_runs() -> None:
    builder, x, _ = _builder()
    y = builder.aiOnnx.relu([x])
    device, flow = popart.DeviceManager().createCpuDevice(), popart.DataFlow(1, [y])
    session = popart.InferenceSession(builder.getModelProto(), flow, device)
    session.prepareDevice(loadEngine=False)
    anchors, data = session.initAnchorArrays(), np.full((1, 2, 5, 5), -1, np.float32)
    session.run(popart.PyStepIO({x: data}, anchors))
    assert not anchors[y].any()


@pytest.mark.parametrize(
    ("anchors", "text"), [([], "User must specify an anchor"), (["x"], "nothing to compute")]
)
def test_an_inference_that_computes_nothing_is_refused(anchors: list[str], text: str) -> None:
    builder, x, _ = _builder()
    builder.aiOnnx.relu([x])
    device, flow = popart.DeviceManager().createCpuDevice(), popart.DataFlow(1, anchors)
    with pytest.raises(popart.popart_exception, match=text):
        popart.InferenceSession(builder.getModelProto(), flow, device)


def test_a_call_with_other_numbers_of_tensors_than_its_graph_is_refused() -> None:
    builder, x, w = _builder()
    callee = builder.createSubgraphBuilder()
    callee.addOutputTensor(callee.aiOnnx.relu([callee.addUntypedInputTensor()]))
    y = builder.aiGraphcore.call([x, w], 1, callee, debugContext="layer")[0]
    device, flow = popart.DeviceManager().createCpuDevice(), popart.DataFlow(1, [y])
    text = r"For CallOp 'layer', number of inputs \(2\) does not match .* subgraph \(1\)"
    with pytest.raises(popart.popart_exception, match=text):
        popart.InferenceSession(builder.getModelProto(), flow, device)


def _options(**options: object) -> Callable[[type], object]:
    """Return what makes a session of some kind with options, on a device of one IPU."""

    def make(kind: type) -> object:
        builder, x, w = _builder()
        y = builder.aiOnnx.relu([builder.aiOnnx.conv([x, w])])
        builder.recomputeOutputInBackwardPass(y)
        loss = builder.aiGraphcore.identityloss([y])
        trained = {"loss": loss, "optimizer": popart.ConstSGD(0.1)}
        return kind(
            builder.getModelProto(), popart.DataFlow(1, [loss]),
            deviceInfo=popart.DeviceManager().createCpuDevice(),
            userOptions=popart.SessionOptions(**options),
            **(trained if kind is popart.TrainingSession else {}),
        )  # fmt: skip

    return make


FORWARD = "createImplicitPipeliningFwdOnlyProgram"
PIPELINED = {"enablePipelining": True, FORWARD: True}


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"accumulationFactor": 2}, "^enableGradientAccumulation is false, but accumulationFactor"),
        (
            {"enablePipelining": True, "virtualGraphMode": popart.VirtualGraphMode.Off},
            "^Pipelining requires more than 1 IPU",
        ),
        ({"autoRecomputation": popart.RecomputationType.NormOnly}, "^A mixture of auto and manual"),
        ({FORWARD: True}, "^Implicit .* program is not supported without implicit pipelining"),
        (PIPELINED, "^Implicit .* not supported without gradient accumulation"),
        ({**PIPELINED, "enableExplicitMainLoops": True}, "not supported with explicit pipelining"),
    ],
)
def test_options_that_exclude_each_other_are_refused_when_the_session_is_made(
    options: dict[str, object], text: str
) -> None:
    with pytest.raises(popart.popart_exception, match=text):
        _options(**options)(popart.TrainingSession)


def test_only_training_accumulates_and_an_inference_may_recompute() -> None:
    with pytest.raises(popart.popart_exception, match="^Gradient Accumulation only available when"):
        _options(enableGradientAccumulation=True)(popart.InferenceSession)
    _options(autoRecomputation=popart.RecomputationType.NormOnly)(popart.InferenceSession)


def test_an_option_that_there_is_not_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no option 'engineOption'; did you mean engineOpt"):
        popart.SessionOptions().engineOption = {}


def test_options_without_an_effect_hold_what_they_are_set_to() -> None:
    options = popart.SessionOptions()
    assert (options.logDir, options.updatableNamedBuffers) == ("", [])
    options.updatableNamedBuffers = ["w"]
    options.experimentalSettings.customTransformApplierSettings = {"Fwd0": ["Mine"]}
    options.experimentalSettings.createHostTransferableTensorWithOffset = True
    assert options.updatableNamedBuffers == ["w"]
    assert options.experimentalSettings.customTransformApplierSettings == {"Fwd0": ["Mine"]}
    other = popart.SessionOptions().experimentalSettings
    assert other.customTransformApplierSettings == {}
    assert other.createHostTransferableTensorWithOffset is False


@pytest.mark.parametrize(
    ("operator", "second", "text"),
    [
        ("add", np.ones((2, 4), np.float32), r"np broadcasting failed on 'Op Add:0\(ai.onnx.Add:7"),
        ("add", np.ones((2, 4), np.float32), r"frames \[2, 3\] and \[2, 4\] are not aligned$"),
        (
            "mul",
            MATRIX.astype(np.float16),
            r"types FLOAT and FLOAT16 \(shapes \[2 3\] and \[2 3\]\)$",
        ),
        ("expand", np.array([2, 2]), "same value or one of them must be 1$"),
        ("reshape", np.array([-1, -1]), "can only use -1 to specify one unknown dimension$"),
        ("tile", np.array([1, 2, 1]), "should have one element for each dimension of the data te"),
        ("tile", np.array([1, -2]), "Values must be non-negative in each shape dimension$"),
    ],
)
def test_inputs_that_do_not_fit_are_refused_in_the_words_of_popart(
    operator: str, second: np.ndarray, text: str
) -> None:
    builder = popart.Builder()
    x = builder.addInputTensor(popart.TensorInfo("FLOAT", [2, 3]), "x")
    y = getattr(builder.aiOnnx, operator)([x, builder.aiOnnx.constant(second)])
    device, flow = popart.DeviceManager().createCpuDevice(), popart.DataFlow(1, [y])
    with pytest.raises(popart.popart_exception, match=text):
        popart.InferenceSession(builder.getModelProto(), flow, device)


def test_a_ratio_of_a_shaped_dropout_beyond_its_interval_is_refused() -> None:
    builder = popart.Builder()
    x = builder.addInputTensor(popart.TensorInfo("FLOAT", [2, 3]), "x")
    y = builder.aiGraphcore.shapeddropout([x], shape=[2, 1], ratio=1.5)
    device, flow = popart.DeviceManager().createCpuDevice(), popart.DataFlow(1, [y])
    with pytest.raises(popart.popart_exception, match=r"value 1.5 is not valid.*interval \[0,1\)$"):
        popart.InferenceSession(builder.getModelProto(), flow, device)
