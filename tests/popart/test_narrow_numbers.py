"""Numbers of two and four bits: packed in files, each in a byte or a half on the device."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from models import node, outcome, prepared
from onnx import TensorProto, helper

from simulator import popart
from simulator.popart.importing.model_files.input_values import fitted

NUMBERS = [0, 1, 15, 8, 3]  # an odd count: half of the last byte is empty


def dequantised(kind: int = TensorProto.UINT4, values: Any = NUMBERS) -> onnx.ModelProto:
    """Make a model that multiplies stored numbers by 0.5."""
    stored = [
        onnx.numpy_helper.from_array(np.array(values, helper.tensor_dtype_to_np_dtype(kind)), "q"),
        helper.make_tensor("s", TensorProto.FLOAT, [], [0.5]),
    ]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [len(values)])]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    nodes = [node("DequantizeLinear", "q s", "w"), node("Add", "w x", "y")]
    graph = helper.make_graph(nodes, "narrow", inputs, outputs, stored)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)])


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (TensorProto.UINT4, NUMBERS),
        (TensorProto.UINT2, [0, 1, 2, 3, 3]),
        (TensorProto.INT2, [-2, -1, 0, 1, -2]),
        (TensorProto.FLOAT4E2M1, [0.5, -6.0, 1.5, 3.0, -0.5]),
    ],
)
def test_stored_numbers_of_a_few_bits_are_dequantised(kind: int, values: list[float]) -> None:
    x = np.ones(5, np.float32)
    (found,) = outcome(dequantised(kind, values), {"x": x}, "y")
    assert found.tolist() == [0.5 * value + 1 for value in values]


def test_packed_numbers_are_read_from_a_file_beside_the_model(tmp_path: Path) -> None:
    proto, path = dequantised(), tmp_path / "m.onnx"
    onnx.save(proto, path, save_as_external_data=True, location="data", size_threshold=0)
    assert len(onnx.load(path, load_external_data=False).graph.initializer[0].external_data)
    (found,) = outcome(str(path), {"x": np.zeros(5, np.float32)}, "y")
    assert found.tolist() == [0, 0.5, 7.5, 4, 1.5]


def test_a_fed_number_that_needs_more_bits_is_refused() -> None:
    inputs = [helper.make_tensor_value_info("q", TensorProto.UINT2, [2])]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    graph = helper.make_graph([node("Cast", "q", "y", to=1)], "fed", inputs, outputs)
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)])
    session = prepared(proto, ["y"])
    anchors = session.initAnchorArrays()
    session.run(popart.PyStepIO({"q": np.int64([3, 0])}, anchors))
    assert anchors["y"].tolist() == [3, 0]
    with pytest.raises(popart.popart_exception, match="value 4; UINT2 is needed"):
        session.run(popart.PyStepIO({"q": np.int64([4, 0])}, anchors))
    with pytest.raises(popart.popart_exception, match="values that UINT2 cannot hold"):
        fitted(np.int64([4, 0]), session.getInfo("q"), "--input q")


def test_int4_bfloat16_and_float8_are_refused_by_name() -> None:
    for kind in ("INT4", "BFLOAT16", "FLOAT8E4M3FN", "FLOAT8E5M2"):
        with pytest.raises(popart.popart_exception, match=f"'q': element type {kind} of ONNX; "):
            prepared(dequantised(getattr(TensorProto, kind), [0] * 5), ["y"])
