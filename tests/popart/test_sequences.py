"""Sequences and optional values are tuples of tensors that are known when a model is imported."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from models import model, node
from onnx import TensorProto, helper

from simulator import popart
from simulator.popart import backend
from simulator.popart.importing.from_onnx import import_model

X = np.arange(12, dtype=np.float32).reshape(3, 4)


def run(nodes: list[onnx.NodeProto], outputs: list[str], **weights: Any) -> list[Any]:
    proto = model(nodes, {"x": [3, 4]}, outputs, weights, opset=17)
    return list(backend.prepare(proto).run([X]))


def test_a_sequence_is_split_changed_and_joined_without_a_node_of_its_own() -> None:
    nodes = [
        node("SplitToSequence", "x", "s", axis=1, keepdims=0), node("SequenceErase", "s last", "t"),
        node("SequenceAt", "t first", "a"), node("SequenceInsert", "t a", "u"),
        node("ConcatFromSequence", "u", "y", axis=1, new_axis=1),
    ]  # fmt: skip
    (found,) = run(nodes, ["y"], first=np.int64(0), last=np.int64(-1))
    assert found.tolist() == X[:, [0, 1, 2, 0]].tolist()


def test_the_place_in_a_sequence_has_to_be_known() -> None:
    nodes = [
        node("SequenceConstruct", "x x", "s"), node("ReduceMax", "x", "f", keepdims=0),
        node("Cast", "f", "n", to=7), node("SequenceAt", "s n", "y"),
    ]  # fmt: skip
    wrong = import_model(model(nodes, {"x": [3, 4]}, ["y"], opset=17), "model", None)[1]
    assert wrong == [
        "model: node 'y' (ai.onnx.SequenceAt-11): input 1 ('n') is computed or fed when "
        "the program runs; a constant would be needed"
    ]


def test_a_loop_that_grows_a_sequence_is_laid_out_run_by_run() -> None:
    made = helper.make_tensor_sequence_value_info("t", TensorProto.FLOAT, None)
    before = helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None)
    scalars = [
        helper.make_tensor_value_info("i", TensorProto.INT64, []),
        helper.make_tensor_value_info("go", TensorProto.BOOL, []),
    ]
    nodes = [
        node("Gather", "x i", "row"), node("SequenceInsert", "s row", "t"),
        node("Identity", "go", "on"),
    ]  # fmt: skip
    on = helper.make_tensor_value_info("on", TensorProto.BOOL, [])
    body = helper.make_graph(nodes, "body", [*scalars, before], [on, made])
    loop = helper.make_node("Loop", ["three", "", "none"], ["all"], body=body)
    rest = [node("SequenceEmpty", "", "none"), loop,
            node("ConcatFromSequence", "all", "y", axis=0)]  # fmt: skip
    rest[0] = helper.make_node("SequenceEmpty", [], ["none"])
    assert run(rest, ["y"], three=np.int64(3))[0].tolist() == X.reshape(-1).tolist()


def sequence_model() -> onnx.ModelProto:
    proto = model([node("ConcatFromSequence", "s", "y", axis=0)], {}, ["y"], opset=17)
    value = helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None)
    proto.graph.input.append(value)
    return proto


def test_an_input_that_is_a_sequence_is_fed_by_its_elements() -> None:
    shapes = popart.InputShapeInfo()
    for n, rows in enumerate((1, 2)):
        shapes.add(f"s/{n}", popart.TensorInfo("FLOAT", [rows, 4]))
    ir, wrong = import_model(sequence_model(), "model", None, shapes)
    assert (wrong, ir.inputs, list(ir.infos["y"].dims)) == ([], ["s/0", "s/1"], [3, 4])
    (found,) = backend.prepare(sequence_model()).run([[X[:1], X[1:]]])
    assert found.tolist() == X.tolist()


def test_a_sequence_of_which_no_shapes_are_given_is_empty_and_cannot_be_joined() -> None:
    wrong = import_model(sequence_model(), "model", None)[1]
    assert "joins 's', a sequence of nothing" in wrong[0]


@pytest.mark.parametrize("there", [True, False])
def test_what_an_optional_input_is_decides_the_branch(there: bool) -> None:
    branches = {
        "then_branch": model([node("OptionalGetElement", "o", "got"), node("Neg", "got", "a")],
                             {}, ["a"]).graph,
        "else_branch": model([node("Identity", "x", "b")], {}, ["b"]).graph,
    }  # fmt: skip
    nodes = [node("OptionalHasElement", "o", "has"), node("If", "has", "y", **branches)]
    proto = model(nodes, {"x": [3, 4]}, ["y"], opset=18)
    kind = helper.make_optional_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, [3, 4]))
    proto.graph.input.append(helper.make_value_info("o", kind))
    (found,) = backend.prepare(proto).run([X, X if there else None])
    assert found.tolist() == (-X if there else X).tolist()
