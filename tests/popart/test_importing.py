"""A model that cannot be run is refused with one line that says where and why."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from models import model, node, outcome, prepared, tiny

from simulator import popart
from simulator.popart import backend
from simulator.popart.importing.model_files import model_file

FLOW = popart.DataFlow(1, [])


def refused(proto: object) -> str:
    """Return the error that importing a model ends with."""
    with pytest.raises(popart.popart_exception) as found:
        popart.InferenceSession(proto, FLOW, tiny())
    assert "\n" not in str(found.value)
    return str(found.value)


def unread(reason: str) -> str:
    """Return what is said of a file that cannot be read as a model."""
    return (
        f"Failed to load a ModelProto from the string ({reason}). Check that it is either a valid "
        "path to an existing onnx model file, or is a valid onnx ModelProto string."
    )


def test_a_file_that_is_no_protobuf_is_named(tmp_path: Path) -> None:
    path = tmp_path / "broken.onnx"
    path.write_bytes(b"\xff\xfe not a model")
    assert refused(path) == unread(f"{path}: not an ONNX model (its protobuf cannot be read)")


def test_a_model_for_which_memory_lacks_is_not_called_something_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(b"\xff\xfe not read, for lack of memory")
    monkeypatch.setattr(model_file, "_has_room", lambda size: False)
    assert refused(path) == f"{path}: too large for the memory; give an ONNX model"


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    path = tmp_path / "no.onnx"
    assert refused(str(path)) == unread(f"{path}: No such file; give an ONNX model")


def test_an_empty_model_is_refused() -> None:
    assert "no graph or no operator set" in refused(onnx.ModelProto())


def test_a_tensor_that_nothing_gives_is_named_with_its_reader() -> None:
    proto = model([node("Add", "a w", "b")], {"a": [2]}, ["b"])
    assert "node 'b' (Add) reads 'w', which no input, initialiser or node gives" in refused(proto)


def test_shapes_that_do_not_fit_are_shown() -> None:
    proto = model([node("MatMul", "a b", "c")], {"a": [2, 3], "b": [4, 5]}, ["c"])
    text = refused(proto)
    assert "MatMul" in text and "dimensions unequal: lhs 'a' [2 3], rhs 'b' [4 5]" in text


@pytest.mark.parametrize("operator", ["ReduceLogSum", "ReduceLogSumExp"])
def test_a_logarithm_of_whole_numbers_is_refused(operator: str) -> None:
    nodes = [node("Cast", "a", "i", to=onnx.TensorProto.INT32), node(operator, "i", "b")]
    text = refused(model(nodes, {"a": [2, 3]}, ["b"]))
    assert f"{operator}-11): input 'i' is INT32 [2, 3]; a logarithm is of FLOAT or FLOAT16" in text


def test_a_window_larger_than_its_field_is_refused() -> None:
    proto = model([node("MaxPool", "a", "b", kernel_shape=[9])], {"a": [1, 1, 3]}, ["b"])
    assert "node 'b' (ai.onnx.MaxPool): comes out with shape [1, 1, -5]" in refused(proto)


def test_what_a_library_refuses_names_the_node() -> None:
    weights = {"w": np.zeros((1, 1, 3), np.float32)}
    proto = model([node("Conv", "a w", "b", name="first")], {"a": [0, 1, 4]}, ["b"], weights)
    with pytest.raises(popart.popart_exception, match=r"node 'first' \(ai.onnx.Conv-11\): ConvPar"):
        prepared(proto, ["b"])


def test_an_open_shape_needs_input_shape_info() -> None:
    proto = model([node("Relu", "a", "b")], {"a": ["N", 2]}, ["b"])
    assert (
        "Input tensor 'a' must be specified in InputShapeInfo, as it has shape [N, 2], which uses "
        "an unknown value 'N'." in refused(proto)
    )
    shapes = popart.InputShapeInfo()
    shapes.add("a", popart.TensorInfo("FLOAT", [3, 2]))
    session = popart.InferenceSession(proto, popart.DataFlow(1, ["b"]), tiny(), shapes)
    assert session.getInfo("b") == popart.TensorInfo("FLOAT", [3, 2])


@pytest.mark.parametrize("given", [("INT32", [2, 2]), ("FLOAT", [4])])
def test_input_shape_info_that_is_not_of_the_input_is_refused(given: tuple[str, list[int]]) -> None:
    proto = model([node("Neg", "a", "b")], {"a": ["N", 2]}, ["b"])
    shapes = popart.InputShapeInfo().add("a", popart.TensorInfo(*given))
    with pytest.raises(popart.popart_exception, match="input 'a': is FLOAT of 2 dimensions; Input"):
        popart.InferenceSession(proto, FLOW, tiny(), inputShapeInfo=shapes)


def test_a_function_that_calls_itself_is_refused() -> None:
    calls = node("Again", "a", "b", domain="my")
    proto = model([calls], {"a": [2]}, ["b"])
    proto.opset_import.append(onnx.helper.make_opsetid("my", 1))
    sets = [onnx.helper.make_opsetid("my", 1)]
    proto.functions.append(onnx.helper.make_function("my", "Again", ["a"], ["b"], [calls], sets))
    assert "its functions cannot be inlined: Cycle detected" in refused(proto)


def test_a_cycle_names_its_nodes() -> None:
    proto = model([node("Add", "a c", "b"), node("Relu", "b", "c")], {"a": [2]}, ["c"])
    assert "a cycle of nodes, among them 'b' (Add), 'c' (Relu)" in refused(proto)


def test_nodes_in_any_order_are_sorted() -> None:
    nodes = [node("Neg", "b", "c"), node("Abs", "a", "b")]
    (found,) = outcome(model(nodes, {"a": [2]}, ["c"]), {"a": np.float32([-1, 2])}, "c")
    assert found.tolist() == [-1, -2]


def test_external_data_outside_the_folder_are_refused(tmp_path: Path) -> None:
    proto = model([node("Add", "a w", "b")], {"a": [2]}, ["b"], {"w": np.zeros(2, np.float32)})
    (stored,) = proto.graph.initializer
    stored.ClearField("raw_data")
    stored.data_location = onnx.TensorProto.EXTERNAL
    stored.external_data.add(key="location", value="../secret")
    path = tmp_path / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    assert "external data '../secret' lie outside the model's folder" in refused(path)


@pytest.mark.parametrize(
    ("location", "said"),
    [
        ("w\0.bin", "external data 'w\\x00.bin': embedded null byte; a path below the model's"),
        ("x" * 5000, "characters): File name too long; a path below the model's folder is needed"),
        ("loop", "external data 'loop': Symlink loop; a path below the model's folder is needed"),
        ("pipe", "pipe: no file"),
        (".", "a directory"),
        ("none", "none: no such file"),
    ],
)
def test_external_data_that_are_no_file_are_refused(
    location: str, said: str, tmp_path: Path
) -> None:
    proto = model([node("Add", "a w", "b")], {"a": [2]}, ["b"], {"w": np.zeros(2, np.float32)})
    (stored,) = proto.graph.initializer
    stored.ClearField("raw_data")
    stored.data_location = onnx.TensorProto.EXTERNAL
    stored.external_data.add(key="location", value=location)
    (tmp_path / "loop").symlink_to("loop")
    os.mkfifo(tmp_path / "pipe")
    path = tmp_path / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    assert said in refused(path)


def test_model_that_is_a_pipe_or_a_device_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.onnx")
    for path in (tmp_path / "pipe.onnx", Path("/dev/zero")):
        assert refused(path) == unread(f"{path}: no file; give an ONNX model")


def test_external_data_in_the_folder_are_read(tmp_path: Path) -> None:
    weights = np.float32([5, 6])
    proto = model([node("Add", "a w", "b")], {"a": [2]}, ["b"], {"w": weights})
    (stored,) = proto.graph.initializer
    stored.ClearField("raw_data")
    stored.data_location = onnx.TensorProto.EXTERNAL
    stored.external_data.add(key="location", value="w.bin")
    (tmp_path / "w.bin").write_bytes(weights.tobytes())
    path = tmp_path / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    assert outcome(path, {"a": np.float32([1, 1])}, "b")[0].tolist() == [6, 7]


def test_an_unknown_operator_is_refused_with_what_is_needed() -> None:
    three = node("Einsum", "a a a", "b", equation="ij,ij,ij->i")
    proto = model([three], {"a": [2, 2]}, ["b"], opset=13)
    assert "node 'b' (ai.onnx.Einsum-12): the operator has no lowering" in refused(proto)


def test_a_version_without_lowering_names_those_that_have_one() -> None:
    nodes = [node("Abs", "a", "b"), node("Upsample", "b", "c", height_scale=2.0, width_scale=2.0)]
    proto = model(nodes, {"a": [1, 1, 2, 2]}, ["c"], opset=5)
    assert "(ai.onnx.Abs-1): version 1 has no lowering; versions 6, 13 have" in refused(proto)


def test_versions_without_lowering_are_converted_where_onnx_can() -> None:
    proto = model([node("Abs", "a", "b")], {"a": [2]}, ["b"], opset=5)
    assert outcome(proto, {"a": np.float32([-1, 2])}, "b")[0].tolist() == [1, 2]


def test_an_input_that_has_to_be_known_is_named() -> None:
    proto = model([node("Tile", "a b", "c")], {"a": [2], "b": [1]}, ["c"])
    proto.graph.input[1].type.tensor_type.elem_type = onnx.TensorProto.INT64
    assert "input 1 ('b') is computed or fed when the program runs; a constant" in refused(proto)


def test_an_anchor_has_to_be_a_tensor() -> None:
    with pytest.raises(
        popart.popart_exception, match="Anchor tensor `x' not in Ir Tensors. model has no"
    ):
        prepared(model([node("Abs", "a", "b")], {"a": [2]}, ["b"]), ["x"])


def test_nodes_of_constants_are_computed_before() -> None:
    nodes = [
        node("Shape", "a", "s"),
        node("Gather", "s i", "g"),
        node("Unsqueeze", "g", "u", axes=[0]),
        node("Concat", "u m", "r", axis=0),
        node("Reshape", "a r", "b"),
    ]
    constants = {"i": np.int64(0), "m": np.int64([-1])}
    proto = model(nodes, {"a": [2, 3, 4]}, ["b"], constants)
    session = popart.InferenceSession(proto, popart.DataFlow(1, ["b"]), tiny())
    assert session.getInfo("b").shape() == [2, 12]
    assert [n.operator for n in session._ir.nodes] == ["Reshape"]


def test_names_have_to_be_text() -> None:
    data = model([node("Abs", "aaaa", "b")], {"aaaa": [2]}, ["b"]).SerializeToString()
    assert "a name in it is not UTF-8" in refused(data.replace(b"aaaa", b"\xff\xfe\xff\xfe"))


def test_an_attribute_that_the_operator_has_not_is_refused() -> None:
    proto = model([node("Conv", "a w", "b", stroides=[1, 1])], {"a": [1, 1, 4, 4]}, ["b"],
                  {"w": np.zeros((1, 1, 3, 3), np.float32)})  # fmt: skip
    assert "Unrecognized attribute: stroides for operator Conv" in refused(proto)


def test_spoilt_models_are_refused_or_run() -> None:
    data = model([node("Conv", "a w", "b", strides=[1, 1]), node("Relu", "b", "c")],
                 {"a": [1, 1, 4, 4]}, ["c"], {"w": np.zeros((1, 1, 3, 3), np.float32)}
                 ).SerializeToString()  # fmt: skip
    random = np.random.default_rng(4)
    for place in random.integers(0, len(data), 200):
        spoilt = bytearray(data)
        spoilt[place] = int(random.integers(256))
        try:
            popart.InferenceSession(bytes(spoilt), FLOW, tiny())
        except popart.popart_exception as error:
            assert str(error)


def test_a_node_of_constants_that_the_reference_cannot_compute_runs_on_the_device() -> None:
    # onnx's evaluator gathers with np.choose, which takes at most 32 rows.
    weights = {"data": np.arange(40), "places": np.array([39, 0, 33])}
    nodes = [node("GatherElements", "data places", "y"), node("Cast", "y", "z", to=1)]
    (gathered,) = outcome(model(nodes, {}, ["z"], weights, opset=13), {}, "z")
    assert gathered.tolist() == [39, 0, 33]


def test_of_an_if_whose_condition_is_known_the_other_branch_is_not_looked_at() -> None:
    branches = {
        "then_branch": model([node("Neg", "x", "then")], {}, ["then"]).graph,
        "else_branch": model([node("Unique", "x", "else")], {}, ["else"]).graph,
    }
    sizes = [node("Shape", "x", "shape"), node("ReduceProd", "shape", "count", keepdims=0)]
    nodes = [*sizes, node("Equal", "count six", "is_six"), node("If", "is_six", "y", **branches)]
    proto = model(nodes, {"x": [2, 3]}, ["y"], {"six": np.int64(6)})
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert backend.prepare(proto).run([x])[0].tolist() == (-x).tolist()
    assert "Unique" in refused(model(nodes, {"x": [2, 2]}, ["y"], {"six": np.int64(6)}))


def test_float_initialisers_may_be_the_bounds_of_a_range() -> None:
    bounds = {"first": np.float32(1), "end": np.float32(2), "step": np.float32(0.25)}
    nodes = [node("Range", "first end step", "r"), node("Add", "x r", "y")]
    proto = model(nodes, {"x": [4]}, ["y"], bounds)
    found = backend.prepare(proto).run([np.zeros(4, np.float32)])[0]
    assert found.tolist() == [1.0, 1.25, 1.5, 1.75]


@pytest.mark.parametrize("kind", ["BFLOAT16", "FLOAT8E4M3FN", "INT4", "STRING"])
def test_a_type_that_the_machine_lacks_is_refused_by_its_name(kind: str) -> None:
    proto = model([node("Identity", "x", "y")], {"x": [2]}, ["y"])
    proto.graph.input[0].type.tensor_type.elem_type = getattr(onnx.TensorProto, kind)
    assert f"input 'x': element type {kind} of ONNX; known are FLOAT, UINT8" in refused(proto)
