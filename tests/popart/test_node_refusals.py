"""Faults of nodes, in the words by which PopART's programs know them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import helper

from simulator import popart
from simulator.popart import popart_exception

Make = Callable[[popart.Builder, str], str]


def refused(make: Make, opset: int = 10, shape: tuple[int, ...] = (2, 3)) -> str:
    """Return what a session says of the node that `make` adds to a builder, behind an input."""
    builder = popart.Builder(opsets={"ai.onnx": opset})
    x = builder.addInputTensor("FLOAT", shape, "x")
    with pytest.raises(popart_exception) as error:
        output = make(builder, x)
        device = popart.DeviceManager().createCpuDevice()
        session = popart.InferenceSession(
            builder.getModelProto(), popart.DataFlow(1, [output]), device
        )
        session.prepareDevice()
    return str(error.value)


def product(mode: str, factor: int) -> Make:
    """Return what adds a product of [2, 3] and [3, 4] that is made in parts."""

    def make(builder: popart.Builder, x: str) -> str:
        w = builder.addInitializedInputTensor(np.ones((3, 4), np.float32), "w")
        output = builder.aiOnnx.matmul([x, w], "m")
        builder.setSerializeMatMul({output}, mode, factor)
        return output

    return make


@pytest.mark.parametrize(
    ("mode", "factor", "words"),
    [
        ("output_channels", 3, "Invalid serialisation factor 3 for output channels dim 4. output_"),
        ("reducing_dim", 2, "Invalid serialisation factor 2 for reducing dimension 3. reducing_"),
        ("input_channels", 4, "Invalid serialisation factor 4 for input channels dim 2. input_ch"),
        ("input_channels", 0, "Invalid serialisation factor 0. Serialisation factor must be a no"),
        ("rows", 2, "Unsupported mat mul serialization mode 'rows'. Supported modes are 'input_c"),
    ],
)
def test_parts_of_a_product_that_do_not_divide_it_are_refused(
    mode: str, factor: int, words: str
) -> None:
    assert refused(product(mode, factor)).startswith(words)


def test_a_product_whose_parts_divide_it_is_made_at_once() -> None:
    builder = popart.Builder()
    x = builder.addInputTensor("FLOAT", [2, 3], "x")
    output = product("output_channels", 2)(builder, x)
    session = popart.InferenceSession(
        builder.getModelProto(),
        popart.DataFlow(1, [output]),
        popart.DeviceManager().createCpuDevice(),
    )
    session.prepareDevice()
    anchors = session.initAnchorArrays()
    session.run(popart.PyStepIO({x: np.ones((2, 3), np.float32)}, anchors))
    assert anchors[output].tolist() == [[3.0] * 4] * 2


GRAPHCORE: dict[str, tuple[Make, str]] = {
    "backwards": (
        lambda b, x: b.aiGraphcore.reverse([x], [1, -1]),
        "invalid dimension '-1'. Only positive dimensions are supported",
    ),
    "twice": (
        lambda b, x: b.aiGraphcore.reverse([x], [1, 1]),
        "Dimension 1 appears multiple times in the list of dimensions",
    ),
    "beyond": (
        lambda b, x: b.aiGraphcore.reverse([x], [2]),
        "invalid dimension '2' for input tensor of rank 2",
    ),
    "stride": (
        lambda b, x: b.aiGraphcore.subsample([x], [1, 0]),
        "Strides invalid. 0 stride at index 1",
    ),
    "mask": (
        lambda b, x: b.aiGraphcore.shapeddropout([x], [2, 2]),
        "ShapedDropout: incompatible input tensor and dropout shape. [2 2] does not broadcast to",
    ),
    "labels": (
        lambda b, x: b.aiGraphcore.nllloss([x, b.addInputTensor("INT32", [4])]),
        "The label tensor (INT32   [4]) must have shape [2] to match all but the final dimension "
        "of the probabilities tensor (FLOAT   [2 3])",
    ),
}


@pytest.mark.parametrize("case", GRAPHCORE)
def test_words_stand_first_and_the_node_behind_them(case: str) -> None:
    make, words = GRAPHCORE[case]
    text = refused(make)
    assert text.startswith(words) and "(model: node '" in text.removeprefix(words)


def test_a_product_that_does_not_contract_names_both_sides() -> None:
    text = refused(lambda b, x: b.aiOnnx.matmul([x, x]))
    assert text == (
        "Op(ai.onnx.MatMul:9, inputs=[x, x], outputs=[MatMul:0]) contracting dimensions unequal: "
        "lhs 'x' [2 3], rhs 'x' [2 3]"
    )
    text = refused(lambda b, x: b.aiOnnx.matmul([b.addInputTensor("FLOAT", [], "s"), x], "named"))
    assert text.startswith("Op(named (ai.onnx.MatMul:9), inputs=[s, x], outputs=[MatMul:0]) doesn")


def test_an_order_of_axes_is_as_long_as_the_shape() -> None:
    assert refused(lambda b, x: b.aiOnnx.transpose([x], [1])) == (
        "Rank of permutation tensor [1], rank 1 must be equal to rank of input tensor, "
        "shape [2 3], rank 2."
    )


def test_a_dropout_drops_less_than_all() -> None:
    text = refused(lambda b, x: b.aiOnnx.dropout([x], 1, ratio=1.0)[0])
    assert text.startswith("model: node ")
    assert text.endswith("ratio value 1 is not valid. Please use a value in the interval [0,1)")


def test_a_mean_of_version_6_is_of_equal_shapes() -> None:
    row = np.ones(3, np.float32)
    text = refused(lambda b, x: b.aiOnnx.mean([x, b.addInitializedInputTensor(row)]), opset=7)
    assert text.startswith("Inputs to ai.onnx.Mean:6 do not all the same type & shape")


def test_a_resize_has_sizes_or_scales() -> None:
    def make(builder: popart.Builder, x: str) -> str:
        nothing, ones = np.zeros(0, np.float32), np.ones(2, np.float32)
        constants = [builder.aiOnnx.constant(v) for v in (nothing, ones, np.int64([2, 3]))]
        return builder.aiOnnx.resize([x, *constants])

    assert refused(make, opset=11).startswith("Resize op has inputs for `sizes` and `scales`. Only")


def rnn(**attributes: object) -> str:
    """Return what a session says of an RNN of one direction and one state, with attributes."""

    def make(builder: popart.Builder, x: str) -> str:
        weights = [builder.addInitializedInputTensor(np.ones((1, 1, 1), np.float32)) for _ in "WR"]
        outputs = builder.aiOnnx.rnn([x, *weights], 2)
        for name, value in attributes.items():
            builder.addNodeAttribute(name, value, set(outputs))
        return outputs[0]

    return refused(make, shape=(1, 1, 1))


def test_an_rnn_whose_attributes_are_not_its_weights_is_refused() -> None:
    assert "hidden_size 2 does not match the weights" in rnn(hidden_size=2)
    assert "of 1 directions; one only supports forward" in rnn(direction="bidirectional")
    assert "0 activations; an RNN of 1 direction only supports 1 activation" in rnn(activations=[])
    assert "activation 'Cubic' is not supported; known are" in rnn(activations=["Cubic"])


def test_a_pattern_that_there_is_not_cannot_be_excluded() -> None:
    def make(builder: popart.Builder, x: str) -> str:
        output = builder.aiOnnx.identity([x])
        builder.excludePatterns(output, ["Nothing"])
        return output

    assert refused(make).startswith("Invalid pattern name 'Nothing' in Op::excludePatterns")


@pytest.mark.parametrize(("excluded", "nodes"), [([], 1), (["PostNRepl"], 2), (["InPlace"], 1)])
def test_an_identity_stays_where_its_pattern_is_excluded(excluded: list[str], nodes: int) -> None:
    builder = popart.Builder()
    x = builder.addInputTensor("FLOAT", [2], "x")
    same = builder.aiOnnx.identity([x])
    builder.excludePatterns(same, excluded)
    output = builder.aiOnnx.neg([same])
    session = popart.InferenceSession(
        builder.getModelProto(),
        popart.DataFlow(1, [output]),
        popart.DeviceManager().createCpuDevice(),
    )
    ir = session._serializeIr(popart.IrSerializationFormat.JSON)
    assert ir.count('"type": ') - ir.count('"type": "FLOAT"') == nodes


def test_a_constant_of_few_places_is_refused() -> None:
    values = helper.make_tensor("v", onnx.TensorProto.FLOAT, [1], [2.0])
    places = helper.make_tensor("i", onnx.TensorProto.INT64, [1], [3])
    sparse = helper.make_sparse_tensor(values, places, [8])
    node = helper.make_node("Constant", [], ["c"], sparse_value=sparse)
    graph = helper.make_graph([node, helper.make_node("Neg", ["c"], ["y"])], "g", [], [])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)])
    with pytest.raises(popart_exception, match="^The Constant op attribute 'sparse_value' is not"):
        popart.InferenceSession(
            model, popart.DataFlow(1, ["y"]), popart.DeviceManager().createCpuDevice()
        )


@pytest.mark.parametrize("source", ["nothing.onnx", b"\x0a\xff"])
def test_what_is_no_model_is_said_by_builder_and_session(source: str | bytes) -> None:
    for open_it in (
        popart.Builder,
        lambda model: popart.InferenceSession(
            model, popart.DataFlow(1, ["y"]), popart.DeviceManager().createCpuDevice()
        ),
    ):
        with pytest.raises(popart_exception) as error:
            open_it(source)
        assert str(error.value).startswith("Failed to load a ModelProto from the string ")
        assert str(error.value).endswith("or is a valid onnx ModelProto string.")


def test_a_device_that_another_program_has_is_refused_by_its_id() -> None:
    manager = popart.DeviceManager()
    with (
        manager.acquireDeviceById(0),
        pytest.raises(popart_exception, match="^Failed to acquire device with id '0'"),
    ):
        manager.acquireDeviceById(0)
